"""The source before and after: lines by package, longest file, what is gone, and what answers cost.

    python benchmarks/house.py --before CHECKOUT [--runs 3] [--out benchmarks/results/house]

CHECKOUT is a git worktree of the older version. Lines are those of Python files under ``src``,
counted in both commits by git. Times are processor seconds of one thread, both versions in turn,
each in processes of their own, the best of ``--runs``: other work may run beside them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from campaign_cli import child
from imports import STARTS

from engram._writing import write_file
from engram.bench.provenance import machine

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PACKAGE = "src/engram/"

QUERY = """
import statistics, sys, time
from engram import load_memory, make_policy
from engram._threads import set_threads
from engram.tasks.balls import ball_task
set_threads(1)
task = ball_task(0)
policy = make_policy("em-ptdm", task.grid, 250, memory=load_memory("digits"))
def query():
    began = time.process_time()
    policy.observe(task.measure(policy.suggest()[0].cell))
    return time.process_time() - began
for _ in range(60):
    query()
print(statistics.mean(query() for _ in range(60)))
"""
CAMPAIGN = """
import os, tempfile, time
from engram._threads import set_threads
from engram.campaign import create_campaign, open_campaign
from engram.tasks.balls import ball_task
set_threads(1)
memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # no waiting for a disk
task, told, db = ball_task(0), {told}, tempfile.mkdtemp(dir=memory) + "/c.db"
campaign = create_campaign("house", task.grid, 1024, db=db, policy="{policy}")
for i in range(told):
    campaign.tell(task.grid.at(i), task.measure(task.grid.at(i)).outcome)
took = []
for i in range(5):
    {before}
    began = time.process_time()
    {what}
    took.append(time.process_time() - began)
print(min(took))
"""
ANSWERS = {
    "a query at 32x32 (em-ptdm, 60 to 120 told)": QUERY,
    "ask with 200 told (gp)": CAMPAIGN.format(
        told=200,
        policy="gp",
        before="campaign.tell(task.grid.at(told + i), 0.0)",
        what="campaign.ask()",
    ),
    "open a log of 1,000 events": CAMPAIGN.format(
        told=999, policy="random", before="", what="open_campaign('house', db=db)"
    ),
}
"""Programs that print processor seconds."""


def git(*command: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, check=True)
    return done.stdout.decode()


def lines_of(commit: str) -> dict[str, int]:
    """Lines of every Python file of the package."""
    found = {}
    for name in git("ls-tree", "-r", "--name-only", commit, PACKAGE).split():
        if name.endswith(".py"):
            found[name.removeprefix(PACKAGE)] = git("show", f"{commit}:{name}").count("\n")
    return found


def by_package(lines: dict[str, int]) -> Counter[str]:
    """Lines of each package; ``core`` are the files that are in none."""
    found: Counter[str] = Counter()
    for name, count in lines.items():
        found[name.split("/")[0] if "/" in name else "core"] += count
    return found


def gone(before: str, after: str) -> list[str]:
    """Files that are no longer there under any name."""
    listed = git("diff", "--name-only", "--diff-filter=D", "-M40%", before, after, "--", PACKAGE)
    return [name.removeprefix(PACKAGE) for name in listed.split()]


def printed(code: str, source: str) -> float:
    """The seconds that a program prints, run with a version's source."""
    place = {"PYTHONPATH": source, "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=place, capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def times(sources: dict[str, str], runs: int) -> dict[str, dict[str, float]]:
    """Best processor seconds of every answer and start, by version."""
    found: dict[str, dict[str, float]] = {}
    names = [*ANSWERS, "engram --help", "import engram"]
    for _ in range(runs):
        for name in names:
            for side, source in sources.items():
                took = (
                    printed(ANSWERS[name], source)
                    if name in ANSWERS
                    else child([sys.executable, "-c", STARTS[name]], source, HERE)
                )
                best = found.setdefault(name, {})
                best[side] = min(took, best.get(side, took))
                print(f"{name}, {side}: {took:.4f} s", file=sys.stderr, flush=True)
    return found


def table(facts: dict[str, object], took: dict[str, dict[str, float]]) -> str:
    """As Markdown, for the page that quotes it."""
    before, after = (str(facts[side]) for side in ("before", "after"))
    lines = {side: lines_of(str(facts[side])) for side in ("before", "after")}
    packages = {side: by_package(found) for side, found in lines.items()}
    out = [f"| lines of | {before} | {after} |", "| --- | --- | --- |"]
    for name in sorted(packages["before"] | packages["after"]):
        out.append(f"| {name} | {packages['before'][name]:,} | {packages['after'][name]:,} |")
    out.append("| **all** | " + " | ".join(f"{p.total():,}" for p in packages.values()) + " |")
    longest = [max(found.items(), key=lambda item: item[1]) for found in lines.values()]
    out.append("| longest file | " + " | ".join(f"`{n}`, {c}" for n, c in longest) + " |")
    out += ["", f"| milliseconds | {before} | {after} |", "| --- | --- | --- |"]
    for name, sides in took.items():
        out.append(f"| {name} | {1000 * sides['before']:.1f} | {1000 * sides['after']:.1f} |")
    lost = ", ".join(f"`{name}`" for name in gone(before, after)) or "none"
    out += [
        "",
        f"Files that are gone, merged into others or not needed any more: {lost}.",
        "",
        f"Processor time of one thread, best of {facts['runs']} runs in turn, other work beside "
        "them (`benchmarks/house.py`).",
        "",
    ]
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "house")
    args = parser.parse_args()
    roots = {"before": args.before.resolve(), "after": ROOT}
    sources = {side: str(root / "src") for side, root in roots.items()}
    commits = {
        side: git("-C", str(root), "rev-parse", "--short=7", "HEAD").strip()
        for side, root in roots.items()
    }
    took = times(sources, args.runs)
    facts: dict[str, object] = {**commits, "runs": args.runs}
    whole = {**facts, "machine": machine(), "seconds": took}
    write_file(args.out.with_suffix(".json"), json.dumps(whole, indent=1) + "\n")
    write_file(args.out.with_suffix(".md"), table(facts, took))
    print(table(facts, took))


if __name__ == "__main__":
    main()
