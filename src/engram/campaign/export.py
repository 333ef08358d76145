"""A campaign as files for other programs, and its log as readable lines."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from engram.campaign.campaign import Campaign
from engram.campaign.model import Event
from engram.errors import InputError


def iso(at: float) -> str:
    """A time of the log in ISO 8601, UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def history(campaign: Campaign) -> list[dict[str, Any]]:
    """Every event: number, time, kind, who, a short text, and the payload."""
    campaign.refresh()
    return [
        {
            "seq": event.seq,
            "at": iso(event.at),
            "kind": event.kind,
            "by": event.who,
            "key": event.key,
            "text": in_words(event),
            "payload": event.payload,
        }
        for event in campaign.events
    ]


def in_words(event: Event) -> str:
    """One event as a short text."""
    p = event.payload

    def at(cell: list[int]) -> str:
        return f"({cell[0]}, {cell[1]})"

    reason = f" ({p['reason']})" if p.get("reason") else ""
    match event.kind:
        case "create":
            return f"{p['policy']}, budget {p['budget']:g} {p['budget_kind']}, seed {p['seed']}"
        case "ask":
            return ", ".join(f"query {q['query']} at {at(q['cell'])}" for q in p["queries"])
        case "tell":
            return ", ".join(f"{at(i['cell'])} outcome {i['outcome']:g}" for i in p["items"])
        case "fail":
            again = "never again" if p["wait"] is None else f"again after {p['wait']:g} s"
            return f"{at(p['cell'])} {again}{reason}"
        case "correct":
            old, new = p["old"]["outcome"], p["new"]["outcome"]
            return f"{at(p['cell'])} outcome {old:g} -> {new:g}{reason}"
        case "retract":
            return f"{at(p['cell'])} outcome {p['old']['outcome']:g} withdrawn{reason}"
        case "extend":
            return f"budget + {p['by']:g}"
    return ", ".join(at(cell) for cell in p["cells"]) + reason


def export(campaign: Campaign, path: Path) -> int:
    """Write .json (the whole log), .csv or .npz (the measurements in force); returns the count.

    The CSV and NPZ files can be told to another campaign.
    """
    writers = {".json": _write_json, ".csv": _write_csv, ".npz": _write_npz}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise InputError(f"{path}: give a .json, .csv or .npz file to write")
    campaign.refresh()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return writer(campaign, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error}") from error


def _write_json(campaign: Campaign, path: Path) -> int:
    log = [
        {**line, "explanations": campaign.storage.detail(campaign.row.id, line["seq"])}
        for line in history(campaign)
    ]
    queries = [q.to_dict(campaign.now()) for q in campaign.state.queries.values()]
    whole = {"engram": "campaign-log-1", "name": campaign.name, "queries": queries, "events": log}
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    return len(log)


def _write_csv(campaign: Campaign, path: Path) -> int:
    observations = campaign.state.observations
    size = int(np.prod(campaign.grid.content_shape))
    values = ["value"] if size == 1 else [f"value_{i}" for i in range(size)]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "col", "outcome", "noise", *values])
        for o in observations:
            writer.writerow([*o.cell, o.outcome, o.noise, *(str(v) for v in o.content.ravel())])
    return len(observations)


def _write_npz(campaign: Campaign, path: Path) -> int:
    observations = campaign.state.observations
    np.savez_compressed(
        path,
        cells=np.array([o.cell for o in observations], np.int64).reshape(-1, 2),
        outcomes=np.array([o.outcome for o in observations], np.float64),
        contents=np.array([o.content for o in observations], np.float32).reshape(
            -1, *campaign.grid.content_shape
        ),
        noise=np.array([o.noise for o in observations], np.float64),
    )
    return len(observations)
