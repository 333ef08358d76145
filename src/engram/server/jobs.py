"""What the processes that compute can do with a campaign; each job is a name with arguments."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engram.campaign import (
    Campaign,
    create_campaign,
    default_policy,
    draw,
    export,
    status,
    verify,
)
from engram.campaign.beliefs import beliefs
from engram.errors import InputError, shown
from engram.grid import Grid

Answer = tuple[dict[str, Any], bytes]
Job = Callable[[Campaign, dict[str, Any]], Answer]


def ask(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """Hand out cells."""
    with campaign.requested(via=args.pop("via"), head=args.pop("head")):
        start = args.pop("start")
        queries = campaign.ask(**args, start=None if start is None else tuple(start))
    at = campaign.now()
    return {"queries": [q.to_dict(at) for q in queries], "note": campaign.note}, b""


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
    found = beliefs(campaign, args["at"])
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


def warm(campaign: Campaign, args: dict[str, Any]) -> Answer:
    """Take in what is new, before anybody asks."""
    campaign.refresh()
    campaign.policy().current()
    return {}, b""


JOBS: dict[str, Job] = {
    "ask": ask,
    "peek": peek,
    "status": status_,
    "beliefs": beliefs_,
    "verify": verify_,
    "picture": picture,
    "export": export_,
    "warm": warm,
}


def create(db: str | None, args: dict[str, Any]) -> Answer:
    """A new campaign: its policy is built once to see that it can be."""
    _check_prior(args)
    area = args.pop("grid")
    closed = np.zeros((area["height"] // area["cell"][0], area["width"] // area["cell"][1]), bool)
    closed.flat[area.pop("closed")] = True
    cost = area.pop("cost")
    whole = Grid(
        **{**area, "cell": tuple(area["cell"]), "range": tuple(area["range"])},
        closed=closed,
        cost=None if cost is None else np.array(cost, np.float64),  # type: ignore[arg-type]
    )
    crews = {who: tuple(start) for who, start in args.pop("crews").items()}
    campaign = create_campaign(db=db, grid=whole, crews=crews, **args)
    return {"uid": campaign.row.uid, "name": campaign.name}, b""


def _check_prior(args: dict[str, Any]) -> None:
    """Memories are chosen by name here: which files a machine has is not for strangers."""
    from engram.memory.library import AUTO, memory_files
    from engram.policies.spec import PolicyChoice

    text = args["policy"] or default_policy()
    choice = PolicyChoice.parse(text, preset=args["preset"], prior=args["prior"] or "")
    known = memory_files()
    for name in (choice.prior or AUTO).split("+"):
        if name != AUTO and name not in known:
            raise InputError(
                f"prior {shown(name)}: choose one of {', '.join(sorted(known))}, several with +, "
                f"or {AUTO}"
            )
