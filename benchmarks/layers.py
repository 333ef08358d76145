"""What is known beforehand, measured: every table of docs/layers.md by one command.

    python benchmarks/layers.py --data-root DIR --runs DIR [--only NAME,...] [--tasks N]
                                [--workers N] [--as-they-are]

Runs ``engram bench run`` for every table, one after the other (the same command goes on after an
interruption), and writes ``benchmarks/results/layers-NAME.json`` and ``.md``. ``--tasks A:B`` runs
some of the tasks; those that the folder or the result file holds already are added.
``--as-they-are`` runs nothing; of runs that were stopped the tasks that every policy has searched
are taken. Policies that have searched the same tasks for another table (``Plan.kept``) are not run
again. A table says of which commit its rows are.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from combine import of_other_commits

from engram.bench.runner import read_results
from engram.bench.seen import seen_lines
from engram.bench.tables import cost_table, markdown, paired_table, rate_table, summarise

RESULTS = Path(__file__).resolve().parent / "results"
FOUR = "100,150,200,250"
NOISE = "+".join(f"noise-{i}" for i in range(5))
EVERYBODY = "random,spread,gp,greedy,diffatd,em-ptdm"
SAME = ("suite", "settings", "data", "prior", "memories", "budget", "at", "known")
"""Options that the rows of one table share."""


@dataclass(frozen=True)
class Plan:
    """One table: what ``engram bench run`` is given; data files lie under the root.

    kept : policies that have searched these tasks in another table: what they are called here, its
        result file, what they are called there
    """

    suite: str
    data: tuple[str, ...]
    options: tuple[str, ...]
    policies: str
    tasks: int
    at: str = f"50,{FOUR}"
    prior: str = "universal"
    kept: tuple[tuple[str, str, str], ...] = ()

    def arguments(self, root: Path, tasks: str) -> list[str]:
        data = [part for file in self.data for part in ("--data", str(root / file))]
        what = ["--policies", self.policies, "--prior", self.prior, "--tasks", tasks]
        at = ["--budget", self.at.split(",")[-1], "--at", self.at, "--track", "0"]
        return [self.suite, *data, *self.options, *what, *at]


def _species(name: str, *files: str, tasks: int = 24) -> Plan:
    data = tuple(f"species/{file}" for file in files)
    told = ("--species", name, "--effort-layer")
    return Plan("species", data, told, "em-ptdm,gp,layer-order", tasks, prior="species")


BIRDS = "species/feederwatch_2021.csv.gz"
CHICKADEE = ("--species", "Poecile atricapillus")
GOLD = ("extra/murchison_gold_128.npz",)
PLANS = {
    "chickadee": _species("Poecile atricapillus", "feederwatch_2021.csv.gz", tasks=48),
    "strymon": _species("Strymon melinus", "points_other.csv.gz", "inat_caterpillars.csv.gz"),
    "waxwing": _species("Bombycilla cedrorum", "ebird_fine_grid_monthly.csv.gz"),
    "waxwing-museum": _species("Bombycilla cedrorum", "points_other.csv.gz"),
    "gold": Plan(
        "windows",
        GOLD,
        ("--set", "target=gold_count,layers=greenstone"),
        "em-ptdm,gp,layer-order",
        8,
    ),
    "gold-more": Plan(
        "windows",
        GOLD,
        ("--set", "target=gold_count,layers=greenstone:more"),
        "em-ptdm,gp,layer-order",
        8,
    ),
    "gold-noise": Plan(
        "windows",
        GOLD,
        ("--set", "target=gold_count,layers=greenstone", "--noise-layers", "5"),
        "em-ptdm,em-ptdm[layers=greenstone]",
        8,
    ),
    "chickadee-noise": Plan(
        "species",
        (BIRDS,),
        (*CHICKADEE, "--effort-layer", "--noise-layers", "5"),
        f"em-ptdm,em-ptdm[layers={NOISE}],em-ptdm[layers=off]",
        24,
        prior="species",
        kept=(("em-ptdm[layers=effort]", "layers-chickadee", "em-ptdm"),),
    ),
    "balls-noise": Plan(
        "balls",
        (),
        ("--noise-layers", "5"),
        "em-ptdm,em-ptdm[layers=off]",
        24,
        "150,200,250",
    ),
    "coarse": Plan(
        "overhead",
        ("overhead/overhead_tiles.npz",),
        ("--set", "coarse=on"),
        "em-ptdm,em-ptdm[layers=off],gp,gp[layers=off]",
        24,
        "200,250,300,350",
        "natural",
    ),
    "visits-chickadee": Plan(
        "species", (BIRDS,), (*CHICKADEE, "--visits"), EVERYBODY, 12, "50,100,150", "species"
    ),
    "visits-lanternfly": Plan(
        "species",
        ("species/lanternfly_10km.csv.gz",),
        ("--species", "Lycorma delicatula", "--visits"),
        EVERYBODY,
        12,
        "50,100,150",
        "species",
    ),
}


def complete(rows: list[dict[str, Any]], policies: list[str]) -> list[dict[str, Any]]:
    """Rows of the tasks that every policy has searched."""
    searched = [{row["task"] for row in rows if row["policy"] == name} for name in policies]
    whole = set.intersection(*searched)
    return [row for row in rows if row["task"] in whole]


def merged(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Runs of one table, each of some tasks, as one; rows say their commit where it is another."""
    last = runs[-1]
    rows = {}
    for run in runs:
        if any(run["options"].get(key) != last["options"].get(key) for key in SAME):
            continue
        for row in run["rows"]:
            commit = row.get("commit", run["commit"])
            other = {} if commit == last["commit"] else {"commit": commit}
            rows[row["policy"], row["task"]] = {**row, **other}
    return {**last, "rows": [*rows.values()]}


def runs_of(name: str, folder: Path) -> list[dict[str, Any]]:
    """What the result file holds already, then the runs in the folder, oldest first."""
    files = [RESULTS / f"layers-{name}.json", *folder.glob("*/results.json")]
    there = [file for file in files if file.exists()]
    return [read_results(file) for file in [*there[:1], *sorted(there[1:], key=_age)]]


def _age(file: Path) -> float:
    return file.stat().st_mtime


def borrowed(plan: Plan, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of policies that have searched the same tasks with the same memory in another table."""
    rows = []
    for label, file, policy in plan.kept:
        there = read_results(RESULTS / f"{file}.json")
        for key in ("suite", "data", "prior", "budget", "memories"):
            if there["options"][key] != options[key]:
                raise SystemExit(f"{file}.json: {key} is not that of this table")
        for row in there["rows"]:
            if row["policy"] == policy:
                commit = row.get("commit", there["commit"])
                rows.append({**row, "policy": label, "commit": commit})
    return rows


def keep(name: str, runs: list[dict[str, Any]], command: str) -> None:
    """Write the results of the runs of a table, rows and tables, beside the others."""
    results, plan = merged(runs), PLANS[name]
    options = results["options"]
    others = [label for label, _, _ in plan.kept]
    options["policies"] = [*plan.policies.split(","), *others]
    own = [row for row in results["rows"] if row["policy"] not in others]
    rows = complete([*own, *borrowed(plan, options)], options["policies"])
    rows.sort(key=lambda row: (row["task"], options["policies"].index(row["policy"])))
    results["rows"], options["tasks"] = rows, [0, plan.tasks]
    count = len({row["task"] for row in rows})
    if not count:
        print(f"{name}: no task was searched by every policy yet", file=sys.stderr)
        return
    at = options["at"]
    summary = results["summary"] = summarise(rows, at)
    tables = [rate_table(summary, at), cost_table(summary), paired_table(summary, at)]
    short = "" if count == plan.tasks else f" of {plan.tasks}: the run was stopped"
    source = (
        f"`{command}` at {results['commit']}, {count} tasks{short}; ± is half of the 95 % interval "
        f"over tasks.{of_other_commits(rows)}"
    )
    seen = seen_lines(options["memories"], results.get("seen"))
    text = "\n".join([*map(markdown, tables), *(f"{line}\n" for line in seen), source, ""])
    (RESULTS / f"layers-{name}.md").write_text(text, encoding="utf-8")
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    whole = json.dumps({**results, "rows": []}, indent=1).replace(
        '"rows": []', f'"rows": [\n{lines}\n ]', 1
    )
    (RESULTS / f"layers-{name}.json").write_text(whole + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--only", default=",".join(PLANS))
    parser.add_argument("--tasks", help="A:B, B not included")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--as-they-are", action="store_true")
    args = parser.parse_args()
    for name in args.only.split(","):
        plan, folder = PLANS[name], args.runs / name
        every = f"0:{plan.tasks}"
        tasks = args.tasks or every
        given = ["bench", "run", *plan.arguments(args.data_root, tasks)]
        shown = shlex.join(["engram", "bench", "run", *plan.arguments(Path("DATA"), every)])
        if not args.as_they_are:
            more = ["--workers", args.workers, "--out", str(folder / tasks.replace(":", "-"))]
            subprocess.run([sys.executable, "-m", "engram", *given, *more], check=True)
        runs = runs_of(name, folder)
        if runs:
            keep(name, runs, shown)


if __name__ == "__main__":
    main()
