"""What the processes that compute can do with a campaign; each job is a name with arguments."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engram.campaign import Campaign, draw, export, status, verify
from engram.campaign.beliefs import beliefs

Answer = tuple[dict[str, Any], bytes]
Job = Callable[[Campaign, dict[str, Any]], Answer]


def ask(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """Hand out cells."""
    start, outing = args.pop("start"), args.pop("outing")
    if outing is not None:
        args["outing"] = _crews(campaign, outing, args["n"])
    with campaign.requested(via=args.pop("via"), head=args.pop("head")):
        queries = campaign.ask(**args, start=None if start is None else tuple(start))
    at = campaign.now()
    facts = {"queries": [q.to_dict(at) for q in queries], "note": campaign.note}
    if outing is None:
        return facts, b""
    asked = {q.query for q in queries}
    shown = [tour for tour in _tours(campaign) if asked & set(tour["queries"])]
    return {**facts, "tours": shown}, b""


def _crews(campaign: Campaign, outing: dict[str, Any], n: int) -> Any:
    """Crews that go on tours, where the campaign has a place."""
    from engram.geo import needs_geo

    needs_geo()
    from engram.geo.crews import Crews
    from engram.geo.place import Place
    from engram.geo.units import speed

    Place(campaign.grid)
    lat, lon = outing["start"]
    pace = speed(outing["speed"], "speed")
    return Crews(outing["crews"], n, (lat, lon), outing["hours"], pace, outing["minutes_per_visit"])


def _tours(campaign: Campaign) -> list[dict[str, Any]]:
    """Tours with a cell that is still out, their ways in degrees."""
    from engram.geo.place import Place
    from engram.geo.tours import tours_of

    found = []
    for tour in tours_of(campaign):
        where = Place(campaign.grid)
        lat, lon = where.degrees(*zip(*tour.line, strict=True))
        line = [[round(float(a), 7), round(float(b), 7)] for a, b in zip(lat, lon, strict=True)]
        found.append({**tour.to_dict(), "line": line, "words": tour.words()})
    return found


def tours(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """Tours with a cell that is still out; none where a campaign has no place."""
    grid = campaign.refresh().grid
    placed = grid.crs is not None and grid.transform is not None
    return {"tours": _tours(campaign) if placed else []}, b""


def peek(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """The cells that would be handed out."""
    start = args.pop("start")
    picks = campaign.peek(**args, start=None if start is None else tuple(start))
    rows: list[dict[str, Any]] = [
        {"cell": list(p.cell), "terms": {**p.terms, "rank": p.rank}} for p in picks
    ]
    return {"suggestions": rows}, b""


def status_(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """Where the campaign stands."""
    return {"status": status(campaign, **args).to_dict()}, b""


def beliefs_(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """Maps as 32-bit floats, one behind the other."""
    found = beliefs(campaign, args["at"], imagined=args["imagined"])
    names = list(found.layers)
    table = np.stack([found.layers[name] for name in names]).astype("<f4")
    facts = {"layers": names, "shape": list(table.shape[1:]), "rule": found.rule}
    return {**facts, "alpha": found.alpha, "seq": found.seq, "hash": found.hash}, table.tobytes()


def verify_(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """Replay the whole log."""
    return verify(campaign).to_dict(), b""


def picture(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """The kept explanation of a query as a PNG."""
    with tempfile.TemporaryDirectory(prefix="engram-") as folder:
        path = Path(folder) / "explanation.png"
        draw(campaign.explain(args["query"]), path)
        return {}, path.read_bytes()


def export_(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """The log or the measurements as a file."""
    with tempfile.TemporaryDirectory(prefix="engram-") as folder:
        path = Path(folder) / f"export.{args['form']}"
        count = export(campaign, path).count
        return {"count": count}, path.read_bytes()


def tell_file(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """Record what a file says; it is read here, where what it does to memory hurts nobody else."""
    with tempfile.TemporaryDirectory(prefix="engram-") as folder:
        path = Path(folder) / f"upload{args.pop('suffix')}"
        path.write_bytes(args.pop("blob", b""))
        with campaign.requested(via=args.pop("via"), head=args.pop("head")):
            receipt = campaign.tell_file(path, **args)
    return receipt.to_dict(), b""


def place(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """Where the cells lie on Earth."""
    from engram.server.areas import lattice

    state = campaign.refresh()
    outline = state.spec.area.get("outline")
    return {"lattice": lattice(state.grid), "outline": outline}, b""


def curves(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """Finds over measurements, and what was left."""
    from engram.campaign.curves import finds, left

    campaign.refresh()
    points = finds(campaign)
    rest = left(campaign, points, args["level"])
    facts = {"finds": [p.to_dict() for p in points], "left": [p.to_dict() for p in rest]}
    return facts, b""


def warm(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """Take in what is new before anybody asks, and imagine what explains the next answer."""
    campaign.refresh()
    _ = campaign.policy().current_scores().exploration
    return {}, b""


JOBS: dict[str, Job] = {
    "ask": ask,
    "peek": peek,
    "status": status_,
    "beliefs": beliefs_,
    "verify": verify_,
    "picture": picture,
    "export": export_,
    "tell_file": tell_file,
    "place": place,
    "tours": tours,
    "curves": curves,
    "warm": warm,
}
