"""``engram.Client``: a server's campaigns from Python, with the standard library alone.

.. code-block:: python

    client = engram.Client("http://127.0.0.1:8765", token)     # or the link that serve prints
    pond = client.campaign("pond")
    for query in pond.ask(3):
        pond.tell(query.cell, outcome=0.0)
    for event in pond.events():
        ...

Every request that writes has a key. When the server goes away in the middle, the request is
repeated with its key until it is back, so that it takes effect once.
"""

from __future__ import annotations

from engram.client.connection import Client, HeadChangedError, RefusedError
from engram.client.remote import Query, Receipt, RemoteCampaign, Suggestion

__all__ = [
    "Client",
    "HeadChangedError",
    "Query",
    "Receipt",
    "RefusedError",
    "RemoteCampaign",
    "Suggestion",
]
