"""Where a grid lies on Earth, and everything that needs rasterio, pyproj or shapely.

The core knows an affine transform and the name of a coordinate system; what they mean is known
here alone. Files that a user gives are read within bounds, by readers that open no other file
and no connection (``vectors``, ``rasters``, ``markup``).
"""

from __future__ import annotations

from importlib.util import find_spec

from engram.errors import EngramError

PARTS = ("pyproj", "shapely", "rasterio", "pyogrio", "gpxpy", "defusedxml")


def needs_geo() -> None:
    """Say what to install when the libraries of maps are not there."""
    missing = [name for name in PARTS if find_spec(name) is None]
    if missing:
        raise EngramError(f"places on a map need {missing[0]}: pip install 'engram[geo]'")
