"""Long campaigns, this version beside another one, in one run.

    python benchmarks/campaign_long.py [--before FOLDER] [--out FILE] [--events 100000]

FOLDER is the ``src`` of the other version. Each figure is measured in a process of its own, on a
copy of the same database: opening a log of asks and tells (first, and again), an ask after a
status with 300 measurements, and the first status with 2,000. Seconds of processor time on one
core, without imports; ``wall`` beside them where the machine was not idle.

The version before keeps nothing between two openings: its one figure stands in both rows.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from engram._threads import set_threads
from engram._version import __version__
from engram.campaign import Event, create_campaign, open_campaign, status
from engram.campaign.model import canonical
from engram.grid import Grid
from engram.seeding import numpy_generator

NAMES = {
    "open": "open a log of {events:,} events",
    "open again": "open it again",
    "ask": "ask after a status, {asked} measurements (auto, 32x32)",
    "status": "first status, {told:,} measurements (random, 64x64)",
}


def build(db: str, grid: Grid, told: int, policy: str, *, asks: bool) -> None:
    """A campaign whose cells were told one by one; the log is written row by row, fast."""
    create_campaign("long", grid, told + 50, db=db, policy=policy)
    order = numpy_generator(1, "policy").permutation(grid.n_cells)[:told]
    with closing(sqlite3.connect(db)) as raw, raw:  # closed: a copy needs the whole file
        head = raw.execute("SELECT hash, at FROM engram_events").fetchone()
        previous, at, seq = head[0], head[1], 1

        def put(kind: str, payload: dict[str, Any], detail: str | None = None) -> None:
            nonlocal previous, seq
            seq += 1
            event, text = Event(seq, kind, at, "crew", f"k{seq}", payload), canonical(payload)
            previous = event.chained(previous, text)
            row = (1, seq, kind, at, "crew", event.key, text, detail, previous)
            raw.execute("INSERT INTO engram_events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

        for number, index in enumerate(order, 1):
            cell = list(grid.at(int(index)))
            found = float((cell[0] // 6 + cell[1] // 6) % 4 == 0)
            if asks:
                terms = {"total": 0.5, "probability": 0.5, "alpha": 0.1, "rank": 1}
                query = {"query": number, "cell": cell, "terms": terms}
                request = {"n": 1, "rank": "score", "start": None, "lease": None}
                more = {"basis": seq, "at": at, "queries": [query], "detail_sha256": ""}
                put("ask", {**request, **more})
            item = {"cell": cell, "outcome": found, "content": [found], "noise": 0.0}
            put("tell", {"items": [item], "queries": [number if asks else None]})


def seconds(work: Callable[[], object]) -> dict[str, float]:
    """Processor time and wall time of some work."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return {
        "seconds": round(time.process_time() - cpu, 3),
        "wall": round(time.perf_counter() - wall, 3),
    }


def measure(part: str, db: str) -> dict[str, float]:
    """One figure, by the version that is imported here."""
    import torch  # noqa: F401

    if part.startswith("open"):
        return seconds(lambda: open_campaign("long", db=db))
    campaign = open_campaign("long", db=db)
    if part == "status":
        return seconds(lambda: status(campaign))
    campaign.ask()
    status(open_campaign("long", db=db))
    again = open_campaign("long", db=db)
    return {**seconds(lambda: again.ask()), "replayed": again.keeper.replayed}


def run(source: str, part: str, db: str) -> dict[str, float]:
    """One figure in a process of its own, with another version's source."""
    place = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", part, "--db", db]
    done = subprocess.run(command, env=place, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def commit_of(source: str) -> str:
    command = ["git", "-C", source, "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def compare(
    sources: dict[str, str], parts: list[str], events: int, told: int, asked: int
) -> list[dict[str, Any]]:
    """These figures for every version, side by side."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        logs = {name: str(Path(folder) / f"{name}.db") for name in ("open", "ask", "status")}
        if "open" in parts:
            build(logs["open"], Grid(256, 256), events // 2, "random", asks=True)
        build(logs["ask"], Grid(32, 32), asked, "auto", asks=False)
        build(logs["status"], Grid(64, 64), told, "random", asks=False)
        copies: dict[str, str] = {}
        for part in parts:
            name = NAMES[part].format(events=events, told=told, asked=asked)
            row: dict[str, Any] = {"what": name}
            for version, source in sources.items():
                if part == "open again" and version == "before":
                    row[version] = rows[-1][version]  # it keeps nothing between two openings
                    continue
                db = str(Path(folder) / f"{version}-{part.split()[0]}" / "c.db")
                if db not in copies:
                    Path(db).parent.mkdir()
                    copies[db] = shutil.copy(logs[part.split()[0]], db)
                row[version] = run(source, part, db)
            print(json.dumps(row), file=sys.stderr, flush=True)
            rows.append(row)
    return rows


def as_table(rows: list[dict[str, Any]], versions: list[str], about: dict[str, Any]) -> str:
    """Markdown: seconds of processor time, one column per version."""
    lines = ["| processor seconds | " + " | ".join(versions) + " |"]
    lines.append("| --- |" + " ---: |" * len(versions))
    for row in rows:
        cells = " | ".join(f"{row[version]['seconds']:.2f}" for version in versions)
        lines.append(f"| {row['what']} | {cells} |")
    return "\n".join([*lines, "", f"<!-- {json.dumps(about)} -->", ""])


def keep(
    rows: list[dict[str, Any]], versions: list[str], about: dict[str, Any], out: Path | None
) -> None:
    """Print the table; keep it and its figures beside ``out``."""
    table = as_table(rows, versions, about)
    print(table)
    if out:
        out.with_suffix(".md").write_text(table)
        whole = {"about": about, "rows": rows}
        out.with_suffix(".json").write_text(json.dumps(whole, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", help="the src folder of another version")
    parser.add_argument("--out", type=Path, help="where to keep table (.md) and figures (.json)")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--told", type=int, default=2000)
    parser.add_argument("--asked", type=int, default=300)
    parser.add_argument("--only", nargs="+", choices=list(NAMES), default=list(NAMES))
    parser.add_argument("--measure", choices=list(NAMES), help=argparse.SUPPRESS)
    parser.add_argument("--db", help=argparse.SUPPRESS)
    args = parser.parse_args()
    set_threads(1)
    if args.measure:
        print(json.dumps(measure(args.measure, args.db)))
        return
    now = str(Path(sys.modules["engram"].__file__ or "").resolve().parents[1])
    sources = ({"before": args.before} if args.before else {}) | {"now": now}
    rows = compare(sources, args.only, args.events, args.told, args.asked)
    about = {
        "engram": __version__,
        "commits": {version: commit_of(source) for version, source in sources.items()},
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    keep(rows, list(sources), about, args.out)


if __name__ == "__main__":
    main()
