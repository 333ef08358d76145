"""Styles of QGIS for the layers of a GeoPackage, so that it opens looking right."""

from __future__ import annotations

from collections.abc import Sequence

RAMP = ("255,255,229,150", "254,227,145,170", "254,153,41,190", "217,95,14,205", "153,52,4,220")
"""Red, green, blue and alpha of low to high chances."""
HEAD = "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"


def styles(top: float) -> dict[str, str]:
    """Layer -> style (QML); ``top`` is the largest chance, where the colours end."""
    return {
        "cells": _cells(top),
        "queries": _document(_single("marker", _marker("31,95,191,255", "circle", 3.2)), "query"),
        "measurements": _document(_finds()),
        "area": _document(_zones()),
        "tours": _document(_single("line", _line("31,95,191,255", 0.8)), "crew"),
    }


def _document(renderer: str, label: str = "") -> str:
    labels = ""
    if label:
        labels = (
            '<labeling type="simple"><settings><text-style fontSize="9" fieldName='
            f'"{label}"/><placement placement="6" dist="1"/></settings></labeling>'
        )
    return (
        f'{HEAD}<qgis version="3.28" styleCategories="Symbology|Labeling" '
        f'labelsEnabled="{int(bool(label))}">{renderer}{labels}</qgis>\n'
    )


def _cells(top: float) -> str:
    """Chances in five steps; the edges of cells are hairlines."""
    step = max(top, 1e-6) / len(RAMP)
    ranges = "".join(
        f'<range symbol="{i}" lower="{i * step:.6f}" upper="{(i + 1) * step:.6f}" render="true" '
        f'label="{i * step:.2f} to {(i + 1) * step:.2f}"/>'
        for i in range(len(RAMP))
    )
    symbols = [_symbol(str(i), "fill", _fill(colour)) for i, colour in enumerate(RAMP)]
    return _document(
        '<renderer-v2 type="graduatedSymbol" attr="probability" graduatedMethod="GraduatedColor">'
        f"<ranges>{ranges}</ranges><symbols>{''.join(symbols)}</symbols></renderer-v2>"
    )


def _finds() -> str:
    rules = (
        '<rule key="hit" filter="&quot;outcome&quot; &gt; 0" symbol="0" label="found"/>'
        '<rule key="miss" filter="&quot;outcome&quot; = 0" symbol="1" label="nothing"/>'
    )
    symbols = [
        _symbol("0", "marker", _marker("47,180,87,255", "star", 4.2)),
        _symbol("1", "marker", _marker("216,67,59,255", "cross2", 2.6)),
    ]
    return _ruled(rules, symbols)


def _zones() -> str:
    rules = (
        '<rule key="outline" filter="&quot;zone&quot; = \'outline\'" symbol="0" label="area"/>'
        '<rule key="no_go" filter="&quot;zone&quot; = \'no_go\'" symbol="1" label="no-go"/>'
    )
    symbols = [
        _symbol("0", "fill", _outline("43,74,47,255", 0.6)),
        _symbol("1", "fill", _fill("216,67,59,90", "216,67,59,255", "b_diagonal")),
    ]
    return _ruled(rules, symbols)


def _ruled(rules: str, symbols: Sequence[str]) -> str:
    return (
        f'<renderer-v2 type="RuleRenderer"><rules key="root">{rules}</rules>'
        f"<symbols>{''.join(symbols)}</symbols></renderer-v2>"
    )


def _single(kind: str, layer: str) -> str:
    return (
        f'<renderer-v2 type="singleSymbol"><symbols>{_symbol("0", kind, layer)}</symbols>'
        "</renderer-v2>"
    )


def _symbol(name: str, kind: str, layer: str) -> str:
    return f'<symbol name="{name}" type="{kind}" alpha="1" clip_to_extent="1">{layer}</symbol>'


def _options(kind: str, **values: str) -> str:
    inside = "".join(f'<Option name="{k}" type="QString" value="{v}"/>' for k, v in values.items())
    return (
        f'<layer class="{kind}" enabled="1" pass="0" locked="0">'
        f'<Option type="Map">{inside}</Option></layer>'
    )


def _fill(colour: str, edge: str = "255,255,255,80", style: str = "solid") -> str:
    return _options(
        "SimpleFill", color=colour, style=style, outline_color=edge, outline_width="0.1",
        outline_style="solid",
    )  # fmt: skip


def _outline(colour: str, width: float) -> str:
    return _options(
        "SimpleFill", color="0,0,0,0", style="no", outline_color=colour,
        outline_width=str(width), outline_style="solid",
    )  # fmt: skip


def _marker(colour: str, shape: str, size: float) -> str:
    return _options(
        "SimpleMarker", color=colour, name=shape, size=str(size), size_unit="MM",
        outline_color="255,255,255,255", outline_width="0.3",
    )  # fmt: skip


def _line(colour: str, width: float) -> str:
    return _options("SimpleLine", line_color=colour, line_width=str(width), line_style="solid")
