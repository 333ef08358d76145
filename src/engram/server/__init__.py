"""The campaign over HTTP, for any number of people; needs ``pip install 'engram[server]'``.

The server has no logic of its own: it says who may do what, passes requests on to the campaign
layer and tells everybody what has changed.
"""
