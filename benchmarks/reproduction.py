"""Make docs/reproduction.md from the small result files in benchmarks/results/paper.

    python benchmarks/reproduction.py [--take DIR ...] [--rows EXPERIMENT:PART=RESULTS ...]

``--take`` first takes the result files and figures of runs of ``engram bench paper --out DIR``;
what is kept of experiments that were not run stays. ``--rows`` takes a part whose very searches are
in a result file of ``engram bench run`` already (``kappa:em-ptdm=balls-paper-fair``). The page says
which commit made what. Rates and differences are computed again from the rows kept; a page that
they do not give is not made.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from engram._files import read_json
from engram._writing import write_file
from engram.reproduction.catalogue import EXPERIMENTS
from engram.reproduction.digest import digest
from engram.reproduction.kept import differing
from engram.reproduction.page import page
from engram.reproduction.run import read_digests, write_digest

HERE = Path(__file__).resolve().parent
KEPT = HERE / "results" / "paper"
DOCS = HERE.parent / "docs"
IMAGES = DOCS / "images" / "reproduction"
SAME = {"em-ptdm[preset=paper]": "em-ptdm[preset=paper,a=1]"}
"""Policies by the name they have in an experiment that spells out what is usual."""


def take(run: Path) -> None:
    """Replace what is kept of the experiments of a run by its digests and figures."""
    fresh = read_digests(run / "digests")
    if not fresh:
        raise SystemExit(f"no result files in {run / 'digests'}; run engram bench paper first")
    for folder in (KEPT, IMAGES):
        folder.mkdir(parents=True, exist_ok=True)
    for name, stale in links({**read_digests(KEPT), **fresh}).items():
        if name in fresh:
            shutil.copy(run / "digests" / f"{name}.json", KEPT)
            for link in stale:
                (DOCS / link).unlink()
    for path in (run / "figures").glob("*.png"):
        shutil.copy(path, IMAGES)


def take_rows(wanted: str) -> None:
    """Make a part of an experiment from the rows of a kept result file: its policies, its budgets.

    The other parts stay as they are where they are no quick ones.
    """
    place, _, name = wanted.partition("=")
    experiment_name, _, part_name = place.partition(":")
    experiment = EXPERIMENTS[experiment_name]
    part = next(one for one in experiment.parts if one.name == part_name)
    found = read_json(KEPT.parent / f"{name}.json")
    named = [{**row, "policy": SAME.get(row["policy"], row["policy"])} for row in found["rows"]]
    rows = [row for row in named if row["policy"] in part.policies]
    short = set(part.policies) - {row["policy"] for row in rows}
    at, tasks = list(part.at), sorted({row["task"] for row in rows})
    alike = (part.suite, dict(part.settings), part.prior)
    if short or alike != tuple(found["options"][k] for k in ("suite", "settings", "prior")):
        raise SystemExit(f"{name} is not of {place}: {sorted(short)} missing, or other tasks")
    options = {**found["options"], "at": at, "budget": at[-1], "policies": list(part.policies)}
    options["tasks"] = [tasks[0], tasks[-1] + 1]
    made = digest(experiment, {part.name: {**found, "rows": rows, "options": options}}, quick=False)
    commits = sorted({row.get("commit", found["commit"]) for row in rows})
    made["parts"][part.name]["taken"] = {"from": name, "commits": commits}
    before = read_digests(KEPT).get(experiment.name)
    if before is not None and not before["quick"]:
        made = {**before, "parts": {**before["parts"], **made["parts"]}}
    order = [one.name for one in experiment.parts]
    made["parts"] = dict(sorted(made["parts"].items(), key=lambda item: order.index(item[0])))
    write_digest(KEPT, made)


def links(digests: dict[str, dict[str, object]]) -> dict[str, list[str]]:
    """Figures by experiment: a file belongs to the longest name it starts with."""
    found: dict[str, list[str]] = {name: [] for name in digests}
    for path in sorted(IMAGES.glob("*.png")):
        owners = [n for n in digests if path.stem == n or path.stem.startswith(f"{n}-")]
        if owners:
            found[max(owners, key=len)].append(path.relative_to(DOCS).as_posix())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--take", type=Path, nargs="+", default=[], metavar="DIR", help="runs of engram bench paper"
    )
    parser.add_argument(
        "--rows", nargs="+", default=[], metavar="EXPERIMENT:PART=RESULTS", help="kept results"
    )
    args = parser.parse_args()
    for run in args.take:
        take(run)
    for wanted in args.rows:
        take_rows(wanted)
    digests = read_digests(KEPT)
    if not digests:
        raise SystemExit(f"no result files in {KEPT}; give --take DIR")
    for name, one in digests.items():
        for part, kept in one["parts"].items():
            faults = differing(kept)
            if faults:
                raise SystemExit(f"{name} {part}: the rows kept do not give {'; '.join(faults)}")
    write_file(DOCS / "reproduction.md", page(digests, links(digests)))


if __name__ == "__main__":
    main()
