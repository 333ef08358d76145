"""Styles of QGIS for the layers of a GeoPackage, so that it opens looking right."""

from __future__ import annotations

from engram._templates import rendered

RAMP = ("255,255,229,150", "254,227,145,170", "254,153,41,190", "217,95,14,205", "153,52,4,220")
"""Red, green, blue and alpha of low to high chances."""
LAYERS = ("cells", "queries", "measurements", "area", "tours")


def styles(top: float) -> dict[str, str]:
    """Layer -> style (QML); ``top`` is the largest chance, where the colours end."""
    step = max(top, 1e-6) / len(RAMP)
    steps = [
        {"low": i * step, "high": (i + 1) * step, "colour": colour} for i, colour in enumerate(RAMP)
    ]
    return {layer: rendered("qgis.qml", layer=layer, steps=steps) for layer in LAYERS}
