"""Dreams against none: what preset ``thorough`` finds more, what it costs, what dreams are worth.

    python benchmarks/dreams.py

Reads ``benchmarks/results/dreams-*.json``, runs of ``engram bench run`` with the policies
``em-ptdm,em-ptdm[preset=thorough]``, and writes ``benchmarks/results/dreams.md``: success rates
of both paired over tasks; when the first dream came, what one costs and how often one was rolled
back (the copy that dreams counted less than one half when it dreamt again); and, dream by dream,
the prequential evidence: by how many nats the copy predicted the outcomes up to the next dream
better than the permanent memory, which has not dreamt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from engram.bench.tables import interval, markdown, paired, plus_minus
from engram.bench.units import Row

RESULTS = Path(__file__).resolve().parent / "results"
PLAIN, THOROUGH = "em-ptdm", "em-ptdm[preset=thorough]"


def dreams_of(row: Row) -> list[dict[str, Any]]:
    """The dreams of a search, in their order; other updates are those of h."""
    return [update for update in row["updates"] if "objects" in update]


def found(runs: dict[str, dict[str, Any]]) -> list[list[str]]:
    """Success rates of both at the last three budgets, and the difference."""
    lines = []
    for run in runs.values():
        rows, at = run["rows"], run["options"]["at"][-3:]
        for name in (PLAIN, THOROUGH):
            means = [np.mean([r["sr"][str(b)] for r in rows if r["policy"] == name]) for b in at]
            told = [f"{mean:.3f} at {b}" for mean, b in zip(means, at, strict=True)]
            lines.append([_title(run), name, *told])
        pairs = [paired(rows, THOROUGH, PLAIN, b) for b in at]
        told = f"difference, {pairs[0]['n']} tasks"
        lines.append([_title(run), told, *[plus_minus(pair, "+") for pair in pairs]])
    return lines


def costs(run: dict[str, Any]) -> list[str]:
    """First dream, number, cost and roll-backs of one run."""
    dreaming = [row for row in run["rows"] if row["policy"] == THOROUGH]
    plain = {row["task"]: row for row in run["rows"] if row["policy"] == PLAIN}
    dreams = [dreams_of(row) for row in dreaming]
    first = [own[0]["t"] for own in dreams if own]
    seconds = [
        (row["seconds_per_observation"] - plain[row["task"]]["seconds_per_observation"])
        * run["options"]["budget"]
        for row in dreaming
    ]
    total = [row["seconds_per_observation"] * run["options"]["budget"] for row in dreaming]
    count = sum(map(len, dreams))
    rolled = sum(not one["accepted"] for own in dreams for one in own)
    return [
        _title(run),
        f"{len(first)} of {len(dreaming)}",
        f"{np.median(first):.0f} ({min(first)} to {max(first)})" if first else "none",
        f"{count / len(dreaming):.1f}",
        f"{sum(seconds) / max(count, 1):.1f}",
        f"{sum(seconds) / sum(total):.0%}",
        f"{rolled} of {count}",
    ]


def worth(run: dict[str, Any]) -> list[list[str]]:
    """Nats won between one dream and the next, by the number of the dream."""
    dreams = [dreams_of(row) for row in run["rows"] if row["policy"] == THOROUGH]
    lines = []
    for k in range(max(map(len, dreams), default=0) - 1):
        pairs = [(own[k], own[k + 1]) for own in dreams if len(own) > k + 1]
        nats = interval([later["gain"] - one["gain"] for one, later in pairs])
        a_look = np.mean([(b["gain"] - a["gain"]) / (b["t"] - a["t"]) for a, b in pairs])
        since = np.mean([one["t"] for one, _ in pairs])
        objects = np.mean([one["objects"] for one, _ in pairs])
        told = [f"{since:.0f}", f"{objects:.1f}", plus_minus(nats, "+"), f"{a_look:+.4f}"]
        lines.append([_title(run), str(k + 1), str(len(pairs)), *told])
    return lines


def _title(run: dict[str, Any]) -> str:
    return f"{run['options']['suite']}, memory {run['options']['prior']}"


def page(runs: dict[str, dict[str, Any]]) -> str:
    """The three tables."""
    cost = ["tasks", "searches that dreamt", "first dream after", "dreams a search"]
    cost += ["seconds a dream", "share of the search", "rolled back"]
    each = ["tasks", "dream", "searches", "measured", "objects", "nats until the next"]
    each += ["nats a measurement"]
    commits = ", ".join(sorted({run["commit"] for run in runs.values()}))
    return "\n\n".join(
        (
            markdown((["tasks", "policy", "SR", "SR", "SR"], found(runs))),
            markdown((cost, [costs(run) for run in runs.values()])),
            markdown((each, [line for run in runs.values() for line in worth(run)])),
            f"`engram bench run` at {commits}, `benchmarks/dreams.py`; ± is half of the 95 % "
            "interval over tasks, of pairs for differences.",
        )
    )


def main() -> None:
    from engram.bench.runner import read_results

    paths = sorted(RESULTS.glob("dreams-*.json"))
    if not paths:
        raise SystemExit(f"{RESULTS}: no run of dreams (dreams-*.json) is there")
    (RESULTS / "dreams.md").write_text(page({p.stem: read_results(p) for p in paths}) + "\n")


if __name__ == "__main__":
    main()
