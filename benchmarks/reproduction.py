"""Make docs/reproduction.md from the small result files in benchmarks/results/paper.

    python benchmarks/reproduction.py [--take DIR ...] [--rows EXPERIMENT:PART=RESULTS[+...] ...]

``--take`` first takes the result files and figures of runs of ``engram bench paper --out DIR``;
what is kept of experiments and of parts that were not run stays, but for the tasks of all parts
taken together where these are of several runs. ``--rows`` takes a part whose very searches are
in result files of ``engram bench run`` already: of those that are kept by name
(``kappa:em-ptdm=balls-paper-fair``), of others by the folder of the run; of a policy that is in
several of them those of the last, and only tasks that every policy has searched. The page says
which commit made what. Rates and differences are computed again from the rows kept; a page that
they do not give is not made.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from engram._files import read_json
from engram._writing import write_file
from engram.bench.runner import read_results
from engram.bench.units import Row
from engram.policies.spec import PolicyChoice, parse_policies
from engram.reproduction.catalogue import EXPERIMENTS
from engram.reproduction.digest import digest
from engram.reproduction.experiments import Experiment, Part
from engram.reproduction.figures import figures_of
from engram.reproduction.joined import joined, rows_again, shown_by
from engram.reproduction.kept import differing
from engram.reproduction.page import page
from engram.reproduction.run import read_digests, write_digest

HERE = Path(__file__).resolve().parent
KEPT = HERE / "results" / "paper"
DOCS = HERE.parent / "docs"
IMAGES = DOCS / "images" / "reproduction"


def take(run: Path) -> None:
    """Keep the digests and figures of a run."""
    fresh = read_digests(run / "digests")
    if not fresh:
        raise SystemExit(f"no result files in {run / 'digests'}; run engram bench paper first")
    for name, digested in fresh.items():
        keep(EXPERIMENTS[name], digested, run / "figures")


def keep(one: Experiment, fresh: dict[str, Any], drawn: Path) -> None:
    """Replace what is kept of the parts of an experiment that are ``fresh``, with their figures
    (those in the folder ``drawn``); its other parts stay where nothing of it is quick."""
    before = read_digests(KEPT).get(one.name)
    made = joined(one, before, fresh)
    staying = made["parts"].keys() - fresh["parts"].keys()
    IMAGES.mkdir(parents=True, exist_ok=True)
    for path, part in _figures(IMAGES, one).items():
        if part not in staying:
            path.unlink()
    for path, part in _figures(drawn, one).items():
        if not part or part in fresh["parts"].keys() & made["parts"].keys():
            shutil.copy(path, IMAGES)
    write_digest(KEPT, made)
    if staying:
        again = {
            name: {"rows": rows_again(part), "options": part["options"]}
            for name, part in made["parts"].items()
            if part.get("rows")
        }
        figures_of(one, again, IMAGES, side_by_side=True)
        for name in sorted({*before["parts"], *fresh["parts"]} - made["parts"].keys()):
            print(f"{one.name} {name}: no longer kept, its parts are of several runs now")


def _figures(folder: Path, one: Experiment) -> dict[Path, str]:
    """Figures of an experiment in a folder, and the parts they show."""
    shown = {path: shown_by(path.stem) for path in sorted(folder.glob("*.png"))}
    return {path: found[1] for path, found in shown.items() if found and found[0] == one.name}


def take_rows(wanted: str) -> None:
    """Make a part of an experiment from the rows of result files: its policies, its budgets.

    The other parts stay as they are where they are no quick ones. Experiments that read this one
    are made again as well.
    """
    place, _, names = wanted.partition("=")
    experiment_name, _, part_name = place.partition(":")
    experiment = EXPERIMENTS[experiment_name]
    part = next(one for one in experiment.parts if one.name == part_name)
    results = _combined(part, place, names.split("+"))
    commits = sorted({row["commit"] for row in results["rows"]})
    own = [name for name in names.split("+") if not Path(name).is_dir()]
    source = {"from": own, "commits": commits}
    for one in EXPERIMENTS.values():
        if experiment.name in (one.name, one.reads):
            _make(one, part, results, source)


def _combined(part: Part, place: str, names: list[str]) -> dict[str, Any]:
    """The results of a part by those of others."""
    files = [_results(name) for name in names]
    rows: dict[tuple[str, int, int], Row] = {}
    for name, found in zip(names, files, strict=True):
        same = {"suite": part.suite, "settings": dict(part.settings), "seeds": part.seeds}
        if any(found["options"][key] != value for key, value in same.items()):
            raise SystemExit(f"{name} is not of {place}: other tasks, or other seeds")
        for policy, own in _policies(part, found).items():
            rows = {key: row for key, row in rows.items() if key[0] != policy}
            for row in own:
                commit = row.get("commit", found["commit"])
                key = policy, row["task"], row["seed"]
                rows[key] = {**row, "policy": policy, "commit": commit}
    needed = [(policy, seed) for policy in part.policies for seed in range(part.seeds)]
    searched = {task for _, task, _ in rows}
    tasks = sorted(t for t in searched if all((p, t, seed) in rows for p, seed in needed))
    if not tasks:
        raise SystemExit(f"{names} have no task that every policy of {place} has searched")
    memories = {k: v for found in files for k, v in found["options"]["memories"].items()}
    used = {k: v for k, v in memories.items() if k == part.prior} or memories
    options = {
        **files[-1]["options"],
        "at": list(part.at),
        "budget": part.budget,
        "policies": list(part.policies),
        "prior": part.prior,
        "memories": used,
        "tasks": [tasks[0], tasks[-1] + 1],
    }
    seen = {k: v for found in files for k, v in (found.get("seen") or {}).items() if k in used}
    kept = [rows[policy, task, seed] for task in tasks for policy, seed in needed]
    complete = tasks == list(range(*options["tasks"]))  # whatever else the runs were to search
    return {**files[-1], "rows": kept, "options": options, "seen": seen, "complete": complete}


def _make(one: Experiment, part: Part, results: dict[str, Any], source: dict[str, Any]) -> None:
    """The result file and the figures of an experiment by the results of one of its parts."""
    made = digest(one, {part.name: results}, quick=False)
    made["parts"][part.name]["taken"] = source
    with TemporaryDirectory() as drawn:
        figures_of(one, {part.name: results}, Path(drawn))
        keep(one, made, Path(drawn))


def _results(name: str) -> dict[str, Any]:
    """Of a kept file by name, or of the folder of a run."""
    if Path(name).is_dir():
        return read_results(Path(name))
    found: dict[str, Any] = read_json(KEPT.parent / f"{name}.json")
    return found


def _policies(part: Part, found: dict[str, Any]) -> dict[str, list[Row]]:
    """Rows of a result file by what the part calls their policy, which may spell out what is usual
    there, or be one whose memory the file spells out."""
    parsed = parse_policies(",".join(part.policies), preset="default", prior=part.prior)
    named = {choice.label: choice for choice in parsed}
    there = found["options"]["prior"]
    labels = sorted({row["policy"] for row in found["rows"]})
    out: dict[str, list[Row]] = {}
    for label in labels:
        (choice,) = parse_policies(label, preset=found["options"]["preset"], prior=there)
        for policy, own in named.items():
            if _alike(choice, own):
                out[policy] = [row for row in found["rows"] if row["policy"] == label]
    return out


def _alike(one: PolicyChoice, other: PolicyChoice) -> bool:
    """Whether two ways to write a policy mean the same searches; a = 1 is the usual factor."""
    options = [{"a": 1, **dict(choice.options)} for choice in (one, other)]
    same = (one.name, one.preset, options[0]) == (other.name, other.preset, options[1])
    return same and (not one.needs_memory or one.prior == other.prior)


def links(digests: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Figures by experiment."""
    return {
        name: [path.relative_to(DOCS).as_posix() for path in _figures(IMAGES, EXPERIMENTS[name])]
        for name in digests
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--take", type=Path, nargs="+", default=[], metavar="DIR", help="runs of engram bench paper"
    )
    parser.add_argument(
        "--rows", nargs="+", default=[], metavar="EXPERIMENT:PART=RESULTS[+...]", help="results"
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
