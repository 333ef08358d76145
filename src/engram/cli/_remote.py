"""``engram campaign ... --server URL``: the commands as clients of a server.

The adapter speaks like a ``Campaign`` as far as the commands need it, and answers with the same
classes, so that what is printed is the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from engram.campaign import Explanation, LogLine, Query, Verification
    from engram.campaign.answers import Exported, Extended, Outline, Receipt, Told
    from engram.client import Client, RemoteCampaign
    from engram.grid import Cell, Grid
    from engram.layers import Layers
    from engram.policies.base import Suggestion


def is_server(db: str | None) -> bool:
    """Whether a database is a server's address."""
    return (db or os.environ.get("ENGRAM_DB", "")).startswith(("http://", "https://"))


def client_of(db: str | None) -> Client:
    from engram.client import Client

    return Client(db or os.environ.get("ENGRAM_DB"))


def create_there(
    db: str | None, name: str, grid: Grid, budget: float, mask: str | None, **terms: Any
) -> Outline:
    """Create a campaign on a server; what it was created with, as a database would say it."""
    import numpy as np

    from engram.campaign.answers import Outline

    if terms.pop("area"):
        raise InputError("--area: places are made where the database is, or in the server's page")
    seen = terms.pop("detection")
    if not seen.perfect:
        terms |= {"detection": seen.written, "false_alarm": seen.false_alarm}
    if (layers := terms.pop("layers")) is not None:
        terms |= _known(layers)
    terms.pop("by")
    client = client_of(db)
    closed = [[int(i) // grid.cols, int(i) % grid.cols] for i in np.flatnonzero(grid.closed)]
    cost = None if bool((grid.cost == 1).all()) else grid.cost.tolist()
    shape = {"size": (grid.height, grid.width), "cell": grid.cell, "channels": grid.channels}
    made = client.create(
        name, budget=budget, range=grid.range, closed=closed, cost=cost, **shape, **terms
    ).facts()
    known = {n: made[n] for n in ("budget_kind", "policy", "options", "prior", "seed")}
    return Outline(
        name=name,
        cells=[grid.rows, grid.cols],
        open=len(grid.open_cells),
        mask=mask,
        budget=made["budget"],
        database=client.url,
        **known,
    )


def _known(layers: Layers) -> dict[str, Any]:
    """Layers and a belief map as a server takes them: rows of numbers, or of categories."""
    import numpy as np

    grid = layers.grid

    def rows(values: Any) -> list[list[Any]]:
        flat = list(values)
        return [flat[i * grid.cols : (i + 1) * grid.cols] for i in range(grid.rows)]

    found = []
    for layer in layers:
        known: list[Any] = [None if np.isnan(v) else float(v) for v in layer.values]
        if layer.categories:
            known = [None if v is None else layer.categories[int(v)] for v in known]
        found.append({"name": layer.name, "values": rows(known), "expected": layer.expected})
    belief = None if layers.belief is None else rows(float(v) for v in layers.belief)
    return {"layers": found, "belief": belief}


class OverHttp:
    """A campaign of a server, as the commands use one."""

    def __init__(self, remote: RemoteCampaign) -> None:
        self.remote, self.name, self.note = remote, remote.name, ""

    @cached_property
    def grid(self) -> Grid:
        from engram.grid import Grid

        area = self.remote.facts()["area"]
        (h, w), (low, high) = area["cell"], area["range"]
        return Grid(area["height"], area["width"], area["channels"], (h, w), (low, high))

    def ask(self, n: int = 1, *, by: str = "", **terms: Any) -> list[Query]:
        from engram.campaign import Query
        from engram.campaign.timeline import Span

        queries = self.remote.ask(n, by=by or None, **terms)
        self.note = self.remote.note
        spans = [None if q.until is None else Span(q.at, q.until - q.at, q.at) for q in queries]
        return [
            Query(q.query, q.cell, q.by, q.at, span, 0, q.terms, q.state)
            for q, span in zip(queries, spans, strict=True)
        ]

    def peek(self, n: int = 10, *, by: str = "", **terms: Any) -> list[Suggestion]:
        from engram.policies.base import Suggestion

        picks = self.remote.peek(n, by=by or None, **terms)
        return [Suggestion(pick.cell, pick.rank, pick.terms) for pick in picks]

    def tell(
        self,
        cell: Cell,
        outcome: float,
        content: ArrayLike | None = None,
        *,
        by: str = "",
        **terms: Any,
    ) -> Told:
        return _told(self.remote.tell(cell, outcome, _flat(content), by=by or None, **terms).facts)

    def tell_file(self, path: Path, *, by: str = "", key: str | None = None, **place: Any) -> Told:
        given = {name: value for name, value in place.items() if value not in ("", False, None)}
        return _told(self.remote.tell_file(path, by=by or None, key=key, **given).facts)

    def fail(self, *, by: str = "", **terms: Any) -> Receipt:
        return _receipt(self.remote.fail(by=by or None, **terms).facts)

    def correct(
        self, cell: Cell, *, content: ArrayLike | None = None, by: str = "", **terms: Any
    ) -> Receipt:
        done = self.remote.correct(cell, value=_flat(content), by=by or None, **terms)
        return _receipt(done.facts)

    def retract(self, cell: Cell, *, by: str = "", **terms: Any) -> Receipt:
        return _receipt(self.remote.retract(cell, by=by or None, **terms).facts)

    def close(self, cells: list[Cell], *, by: str = "", **terms: Any) -> Receipt:
        return _receipt(self.remote.close(cells, by=by or None, **terms).facts)

    def open(self, cells: list[Cell], *, by: str = "", **terms: Any) -> Receipt:
        return _receipt(self.remote.open(cells, by=by or None, **terms).facts)

    def extend(self, amount: float, *, by: str = "", **terms: Any) -> Extended:
        from engram.campaign.answers import Extended

        facts = self.remote.extend(amount, by=by or None, **terms).facts
        return Extended(**vars(_receipt(facts)), budget=facts["budget"])

    def explain(self, query: int) -> Explanation:
        from engram.campaign import Explanation

        said = self.remote.explain(query)
        kept = {k: v for k, v in said.items() if k not in ("query", "state", "words")}
        return Explanation.of(query, said["state"], kept)

    def history(self) -> list[LogLine]:
        from engram.campaign import LogLine

        return [LogLine(**line) for line in self.remote.history()]

    def verify(self) -> Verification:
        from engram.campaign import Verification

        said = self.remote.verify()
        del said["ok"]
        return Verification(**said)

    def export(self, path: Path) -> Exported:
        from engram._writing import write_file
        from engram.campaign.answers import Exported

        form = path.suffix.lower().removeprefix(".")
        if form not in ("json", "csv", "npz"):
            raise InputError(f"{path}: give a .json, .csv or .npz file to write")
        facts = self.remote.facts() if form == "json" else self.remote.cells()
        write_file(path, self.remote.export(form))
        return Exported(str(path), facts["seq"] if form == "json" else len(facts["measured"]))


def _flat(content: ArrayLike | None) -> list[float] | None:
    """Content as a server takes it: one number per channel and pixel."""
    import numpy as np

    return None if content is None else [float(v) for v in np.asarray(content).ravel()]


def _receipt(facts: Mapping[str, Any]) -> Receipt:
    from engram.campaign.answers import Receipt

    return Receipt(**{name: facts[name] for name in Receipt.__dataclass_fields__})


def _told(facts: Mapping[str, Any]) -> Told:
    from engram.campaign.answers import Told

    return Told(**{name: facts[name] for name in Told.__dataclass_fields__})
