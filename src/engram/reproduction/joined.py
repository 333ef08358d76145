"""Result files of experiments whose parts were made by several runs, and what made which part."""

from __future__ import annotations

from typing import Any

from engram.bench.units import Row
from engram.reproduction import catalogue
from engram.reproduction.experiments import Experiment
from engram.reproduction.kept import PER_ROW

ORIGIN = ("commit", "version", "machine", "complete")
"""What a result file says of all its parts, and a part of its own where runs were joined."""

Digest = dict[str, Any]


def joined(experiment: Experiment, before: Digest | None, fresh: Digest) -> Digest:
    """``fresh`` with the parts of ``before`` that it lacks, each with its own origin.

    Quick results are never joined with others. Tasks of all parts taken together are left out:
    they would be of other rows than those of the parts beside them.
    """
    order = [part.name for part in catalogue.source_of(experiment).parts]
    staying = [] if before is None else [n for n in before["parts"] if n in order]
    staying = [name for name in staying if name not in fresh["parts"]]
    if before is None or before["quick"] or fresh["quick"] or not staying:
        return fresh
    parts = {name: _with_origin(fresh, name) for name in fresh["parts"] if name in order}
    parts |= {name: _with_origin(before, name) for name in staying}
    return {
        **fresh,
        "complete": all(part["complete"] for part in parts.values()),
        "parts": {name: parts[name] for name in order if name in parts},
    }


def _with_origin(digest: Digest, name: str) -> Digest:
    return {**{key: digest[key] for key in ORIGIN}, **digest["parts"][name]}


def commits_of(digest: Digest, name: str) -> list[str]:
    """The commits whose code made the rows of a part."""
    part = digest["parts"][name]
    if "taken" in part:
        return list(part["taken"]["commits"])
    return [part.get("commit", digest["commit"])]


def shown_by(figure: str) -> tuple[str, str] | None:
    """Experiment and part of a figure by the stem of its file; None for what is of no experiment.

    The part is the name under which all are pooled, or empty where the figure shows several side
    by side.
    """
    found = [
        (one.name, part)
        for one in catalogue.EXPERIMENTS.values()
        for part in ("", one.pool, *(p.name for p in catalogue.source_of(one).parts))
        if f"{figure}-".startswith("-".join(filter(None, (one.name, part))) + "-")
    ]
    return max(found, key=lambda names: len("".join(names)), default=None)


def rows_again(part: Digest) -> list[Row]:
    """The rows kept of a part, with all that figures of several parts need.

    What was kept of a policy alone is the same in each of its rows: the largest peak of memory.
    """
    return [
        {
            **row,
            **{name: row[short] for short, name in PER_ROW.items()},
            "peak_rss_mb": part["cost"][row["policy"]]["peak_rss_mb"],
            "objects_in_task": part.get("objects", {}).get("in_task"),
        }
        for row in part.get("rows", ())
    ]
