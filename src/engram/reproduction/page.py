"""One page about all experiments: the paper's figures, ours, and what may be said of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engram.bench.seen import seen_lines
from engram.bench.tables import Table, markdown
from engram.metrics import gap_closed
from engram.reproduction.catalogue import EXPERIMENTS
from engram.reproduction.experiments import Experiment
from engram.reproduction.jobs import LeftOut
from engram.reproduction.joined import commits_of
from engram.reproduction.presets import preset_of
from engram.reproduction.tables import tables_of
from engram.reproduction.verdicts import (
    ABOVE,
    BEYOND,
    RELATIONS,
    distance_words,
    object_words,
    verdict,
    words,
)

INTRODUCTION = """\
The experiments of the paper (EM-PTDM: active target discovery with a permanent and a transient
memory), each beside the paper's own row.

* **SR** (success rate): queried cells that hold target, over min(budget, cells that hold target).
* **Gap closed**, in brackets: (SR - R) / (1 - R), where R is random search on the same tasks: the
  paper's own random row for the paper, the exact expectation for ours. Tasks, data and in part the
  meaning of SR differ between the paper and us, so this share is what to compare, and not even it
  is exact.
* **±** is half of the 95 % interval over tasks (Student). Differences are paired task by task; a
  policy is *above* or *below* another when the interval of the difference leaves out zero, and
  *not told apart* otherwise; p is that of the paired test, uncorrected for the many comparisons.
* **preset** is the engine behind a row: `paper` follows the paper's algorithms in the reading that
  engine.md explains (h learns in hindsight, the memory is told the measurements), `default` is this
  package's own engine, for its rivals too; older rows of it are of the engine of their commit:
  without copies before bb3462c, with all eight views computed before e2c2cb5, without room before
  ff3c39f. Only of the paper's preset it is said that something is
  as in the paper or unlike it; of the default it is said whether a difference has the paper's sign.
* **Rows**: the result file of an experiment (benchmarks/results/paper) keeps its rows, one for each
  policy, task and seed, from which rates and differences are computed again when this page is made;
  experiments whose rows were not kept are named.
"""


def page(
    digests: Mapping[str, dict[str, Any]],
    figures: Mapping[str, Sequence[str]],
    *,
    left_out: Sequence[LeftOut] = (),
    title: str = "Reproduction of the paper's experiments",
) -> str:
    """Markdown; ``figures`` are links by experiment."""
    blocks = [f"# {title}", INTRODUCTION]
    if digests:
        blocks += [_origin(digests), "## At a glance", markdown(overview(digests))]
    for name, digest in digests.items():
        blocks += _section(EXPERIMENTS[name], digest, figures.get(name, ()))
    if left_out:
        blocks += ["## Left out for want of data", "\n".join(_missing(left_out))]
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def _missing(left_out: Sequence[LeftOut]) -> list[str]:
    return [f"* {part.title}: needs {', '.join(f'`{f}`' for f in part.files)}" for part in left_out]


def _origin(digests: Mapping[str, dict[str, Any]]) -> str:
    """Which code and machine; where there are several, what is of which."""
    commits = _grouped(digests, commits_of)
    lines = [
        f"Commit `{made_by}`" + (f": {', '.join(names)}." if len(commits) > 1 else ".")
        for made_by, names in commits.items()
    ]
    machines = _grouped(digests, _machines)
    lines += [
        text + (f": {', '.join(names)}." if len(machines) > 1 else ".")
        for text, names in machines.items()
    ]
    quick = [name for name, digest in digests.items() if digest["quick"]]
    if quick:
        which = "" if len(quick) == len(digests) else f" of {', '.join(quick)}"
        lines.append(
            f"**A quick run{which}: a few tasks and small budgets, to see that everything works. "
            "It says little about how good anything is.**"
        )
    bare = [
        name
        for name, digest in digests.items()
        if any(part["options"] and "rows" not in part for part in digest["parts"].values())
    ]
    if bare:
        lines.append(f"Rows were not kept of {', '.join(bare)}.")
    unfinished = [name for name, digest in digests.items() if not digest["complete"]]
    if unfinished:
        lines.append(f"**Unfinished: {', '.join(unfinished)}.**")
    return "\n".join(lines)


def _machines(digest: dict[str, Any], name: str) -> list[str]:
    """What ran a part; nothing of rows taken from result files, which may be of several."""
    part = digest["parts"][name]
    if "taken" in part:
        return []
    machine = part.get("machine", digest["machine"])
    return [
        f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gb']} GB, "
        f"Python {machine['python']}, torch {machine['torch']}"
    ]


def _grouped(
    digests: Mapping[str, dict[str, Any]],
    values_of: Callable[[dict[str, Any], str], Sequence[str]],
) -> dict[str, list[str]]:
    """Value -> the experiments that have it, or the parts where those of an experiment differ."""
    found: dict[str, list[str]] = {}
    for name, digest in digests.items():
        run = [part for part, kept in digest["parts"].items() if kept["options"]]
        values = {part: values_of(digest, part) for part in run}
        differ = len({tuple(own) for own in values.values()}) > 1
        for part, own in values.items():
            label = " ".join(filter(None, (name, part if differ else "")))
            label += " (in part)" if len(own) > 1 else ""
            for value in own:
                found[value] = list(dict.fromkeys([*found.get(value, ()), label]))
    return found


def _tasks(part: dict[str, Any], count: int) -> str:
    """How many tasks there are, or sequences of several."""
    return f"{count} sequences" if part.get("unit") == "sequence" else str(count)


def overview(digests: Mapping[str, dict[str, Any]]) -> Table:
    """Per experiment with rates: gap closed by the paper's and our lead, and who it beats."""
    head = [
        "experiment",
        "paper",
        "policy",
        "preset",
        "tasks",
        "budget",
        "gap closed, paper",
        "gap closed, ours",
        "above",
        "not above",
    ]
    lines = []
    for name, digest in digests.items():
        experiment = EXPERIMENTS[name]
        if not {"rates", "trials"} & set(experiment.views):
            continue
        for part_name, part in digest["parts"].items():
            lead = (
                experiment.lead if experiment.lead in part["rates"] else next(iter(part["rates"]))
            )
            source, budget = experiment.reported(part_name), part["at"][-1]
            rate = None if source is None else source.rate(lead, budget)
            chance = None if source is None else source.chance(budget)
            theirs = "-" if rate is None or chance is None else f"{gap_closed(rate, chance):.0%}"
            pairs = [
                p
                for p in part["paired"]
                if p["policy"] == lead and p["budget"] == budget and p["mean"] is not None
            ]
            above = [p["minus"] for p in pairs if verdict(p) == ABOVE]
            other = [p["minus"] for p in pairs if verdict(p) != ABOVE]
            lines.append(
                [
                    " ".join(filter(None, (name, part_name))),
                    experiment.where,
                    lead,
                    preset_of(lead, part),
                    _tasks(part, part["rates"][lead][str(budget)]["n"]),
                    str(budget),
                    theirs,
                    f"{part['rates'][lead][str(budget)]['gap_closed']:.0%}",
                    ", ".join(above) or "-",
                    ", ".join(other) or "-",
                ]
            )
    return head, lines


def _section(experiment: Experiment, digest: dict[str, Any], figures: Sequence[str]) -> list[str]:
    run = [_setting(name, part) for name, part in digest["parts"].items() if part["options"]]
    blocks = [
        f"## {experiment.title}",
        f"*{experiment.question}* Paper: {experiment.where}. Here: {'; '.join(run)}.",
    ]
    blocks += _seen(digest)
    for named in tables_of(experiment, digest):
        blocks += [f"{named.caption}.", markdown(named.table)]
    blocks += _said(experiment, digest)
    if experiment.bear:
        blocks.append(f"**Bear in mind.** {experiment.bear}")
    blocks += [f"![{experiment.title}]({link})" for link in figures]
    return blocks


def _setting(name: str, part: dict[str, Any]) -> str:
    options = part["options"]
    first, end = options["tasks"]
    what = "sequences" if "length" in options else "tasks"
    seeds = f", {options['seeds']} seeds" if options["seeds"] > 1 else ""
    label = f"{name}: " if name else ""
    setting = f"{label}{what} {first} to {end - 1}{seeds}, memory `{options['prior']}`"
    taken = part.get("taken")
    if taken is None:
        return setting
    made = ", ".join(f"`{commit[:7]}`" for commit in taken["commits"])
    files = " and ".join(f"`{name}`" for name in taken["from"])
    source = f"rows of {files}, " if files else ""
    return f"{setting} ({source}searched at {made})"


def _seen(digest: dict[str, Any]) -> list[str]:
    """What the memories have seen, each once."""
    lines = [
        line
        for part in digest["parts"].values()
        if part["options"]
        for line in seen_lines(part["options"]["memories"], part.get("seen"))
    ]
    return list(dict.fromkeys(lines))


def _said(experiment: Experiment, digest: dict[str, Any]) -> list[str]:
    """What the intervals say, grouped by how it stands to the paper."""
    lines: dict[str, list[str]] = {relation: [] for relation in RELATIONS}
    for name, part in digest["parts"].items():
        lead = f"{name}: " if name else ""
        if {"rates", "trials"} & set(experiment.views):
            for relation, line in words(experiment.reported(name), part):
                lines[relation].append(lead + line)
        if "distances" in part:
            lines[BEYOND] += [lead + line for line in distance_words(part)]
        if "objects" in part:
            lines[BEYOND] += object_words(name, part)
    return [
        f"**{relation}**\n\n" + "\n".join(f"* {line}" for line in said)
        for relation, said in lines.items()
        if said
    ]
