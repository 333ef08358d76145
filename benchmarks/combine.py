"""Put the rows of several runs of one table together.

    python benchmarks/combine.py NAME [RUN ...]
    python benchmarks/combine.py NAME RUN [RUN ...] --policies A,B,... [--prior MEMORY]

RUN is a folder of ``engram bench run`` (or a result file), of some of the tasks or policies of
``benchmarks/results/NAME.json``, with the same suite, memory and budgets. Of a search that is in
several, the last one given counts; rows of another commit than the last run's say theirs. Writes
NAME.json and NAME.md anew.

With ``--policies`` NAME is a table of these policies alone, in this order, and of the tasks that
all of them have searched; nothing is taken from a NAME that is there. ``--prior`` is the memory of
a policy that names none in that table: ``em-ptdm[prior=digits]`` of a run with another memory is
``em-ptdm`` where it is digits.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from engram.bench.provenance import command_of
from engram.bench.runner import read_results
from engram.bench.seen import seen_lines
from engram.bench.tables import cost_table, markdown, paired_table, rate_table, summarise
from engram.policies.spec import parse_policies

RESULTS = Path(__file__).resolve().parent / "results"
SAME = ("suite", "settings", "data", "prior", "budget", "at", "known")
"""Options that the rows of one table share."""


def named(row: dict[str, Any], prior: str) -> str:
    """The policy of a row as it is written where ``prior`` is the memory of those that name none:
    the memory is the first option, if it is another."""
    name, _, inside = row["policy"].removesuffix("]").partition("[")
    options = [o for o in inside.split(",") if o and not o.startswith("prior=")]
    if row["prior"] not in (None, prior):
        options = [f"prior={row['prior']}", *options]
    return f"{name}[{','.join(options)}]" if options else name


def under(run: dict[str, Any], prior: str, policies: list[str]) -> dict[str, Any]:
    """A run as if ``prior`` had been its memory, with the rows of some policies alone."""
    commit = run["commit"]
    rows = [{"commit": commit, **row, "policy": named(row, prior)} for row in run["rows"]]
    rows = [row for row in rows if row["policy"] in policies]
    used = {row["prior"] for row in rows}
    memories = {k: v for k, v in run["options"]["memories"].items() if k in used}
    options = {**run["options"], "prior": prior, "policies": policies, "memories": memories}
    seen = {k: v for k, v in run.get("seen", {}).items() if k in used}
    return {**run, "options": options, "seen": seen, "rows": rows}


def searched_by_all(run: dict[str, Any]) -> dict[str, Any]:
    """A run with the rows of those tasks alone that every policy has searched."""
    policies = run["options"]["policies"]
    tasks = [{row["task"] for row in run["rows"] if row["policy"] == name} for name in policies]
    whole = set.intersection(*tasks)
    missing = [name for name, own in zip(policies, tasks, strict=True) if not own]
    if missing:
        raise SystemExit(f"--policies {missing[0]}: none of the runs has a row of it")
    return combined([{**run, "rows": [row for row in run["rows"] if row["task"] in whole]}])


def combined(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Results with the rows of all runs; policies in the order in which they first come."""
    last, rows, memories = runs[-1], {}, {}
    for run in runs:
        for key in SAME:
            if run["options"].get(key) != last["options"].get(key):
                raise SystemExit(f"{key} is not the same in all runs")
        memories |= run["options"]["memories"]
        for row in run["rows"]:
            commit = row.get("commit", run["commit"])
            kept = {k: v for k, v in row.items() if k != "commit"}
            other = {} if commit == last["commit"] else {"commit": commit}
            rows[row["policy"], row["task"], row["seed"]] = {**kept, **other}
    policies = list(dict.fromkeys(p for run in runs for p in run["options"]["policies"]))
    order = sorted(rows, key=lambda key: (key[1], key[2], policies.index(key[0])))
    tasks = sorted({task for _, task, _ in rows})
    options = {
        **last["options"],
        "policies": policies,
        "memories": memories,
        "tasks": [tasks[0], tasks[-1] + 1],
    }
    seen = {name: text for run in runs for name, text in run.get("seen", {}).items()}
    count = len(policies) * len(tasks) * options["seeds"]
    made = [rows[key] for key in order]
    units = {"done": len(made), "all": count}
    summary = summarise(made, options["at"])
    rest = {"options": options, "seen": seen, "units": units, "complete": len(made) == count}
    return {**last, **rest, "rows": made, "summary": summary}


def of_other_commits(rows: list[dict[str, Any]]) -> str:
    """Which rows are of other commits, in words."""
    groups: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        if "commit" in row:
            groups.setdefault((row["policy"], row["commit"]), set()).add(row["task"])
    told = [f"{p} on {len(k)} tasks at {commit[:7]}" for (p, commit), k in groups.items()]
    return f" Searched before: {'; '.join(told)}." if told else ""


def write(name: str, results: dict[str, Any]) -> None:
    """The result file, one row a line, and its tables."""
    rows = ",\n  ".join(json.dumps(row, allow_nan=False) for row in results["rows"])
    rest = {key: value for key, value in results.items() if key != "rows"}
    text = json.dumps(rest, indent=1, allow_nan=False)[: -len("\n}")]
    (RESULTS / f"{name}.json").write_text(f'{text},\n "rows": [\n  {rows}\n ]\n}}\n')
    summary, at, units = results["summary"], results["options"]["at"], results["units"]
    tables = [rate_table(summary, at), cost_table(summary), paired_table(summary, at)]
    missing = "" if results["complete"] else f" {units['done']} of {units['all']} searches."
    source = (
        f"`{command_of(results['options'])}` at {results['commit']}; ± is half of the 95 % "
        "interval over tasks."
        f"{missing}{of_other_commits(results['rows'])}"
    )
    seen = seen_lines(results["options"]["memories"], results["seen"])
    lines = [*map(markdown, tables), *(f"{line}\n" for line in seen), source, ""]
    (RESULTS / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN")
    parser.add_argument("--policies")
    parser.add_argument("--prior", default="digits")
    args = parser.parse_args()
    if args.policies:
        choices = parse_policies(args.policies, preset="default", prior=args.prior)
        names = [choice.label for choice in choices]
        runs = [under(read_results(run), args.prior, names) for run in args.runs]
        write(args.name, searched_by_all(combined(runs)))
        return
    kept = RESULTS / f"{args.name}.json"
    files = [*([kept] if kept.exists() else []), *args.runs]
    if not files:
        parser.error(f"there is no {kept}, and no RUN was given")
    write(args.name, combined([read_results(file) for file in files]))


if __name__ == "__main__":
    main()
