"""Tables of an experiment, made from its digest alone: the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engram.bench.tables import Table, plus_minus
from engram.metrics import gap_closed
from engram.reproduction import published
from engram.reproduction.experiments import Experiment
from engram.reproduction.presets import NONE, preset_of, presets_of
from engram.reproduction.published import Published
from engram.reproduction.verdicts import paper_difference, verdict

Digest = dict[str, Any]


@dataclass(frozen=True)
class Named:
    """A table with the name of its file and its caption."""

    name: str
    caption: str
    table: Table


def tables_of(experiment: Experiment, digest: Digest) -> list[Named]:
    """Every table of an experiment."""
    return [named for view in experiment.views for named in VIEWS[view](experiment, digest)]


def _stem(experiment: Experiment, *parts: str) -> str:
    return "-".join([experiment.name, *filter(None, parts)])


def _heading(experiment: Experiment, part: str) -> str:
    return f"{experiment.title}{f' ({part})' if part else ''}"


def _count(part: Digest) -> str:
    return f"{part['tasks']} {part['unit']}{'s' if part['tasks'] > 1 else ''}"


def _rates(experiment: Experiment, digest: Digest) -> list[Named]:
    found = []
    for name, part in digest["parts"].items():
        heading = _heading(experiment, name)
        source = experiment.reported(name)
        beside = "" if source is None else f"; paper: {source.where}, {source.setting}"
        caption = f"{heading}: success rate and share of the gap to random search closed{beside}"
        found.append(Named(_stem(experiment, name), caption, rate_table(source, part)))
        if part["paired"]:
            caption = f"{heading}: differences of success rate, paired over {_count(part)}"
            found.append(
                Named(_stem(experiment, name, "paired"), caption, pair_table(source, part))
            )
    return found


def rate_table(source: Published | None, part: Digest) -> Table:
    """SR per policy: the paper's (where it has one at that budget) and ours, per budget."""
    at = part["at"]
    with_paper = [b for b in at if _paper_has(source, b)]
    head = ["policy", "preset"]
    for b in at:
        head += [f"paper, {b}"] * (b in with_paper) + [f"ours, {b}"]
    lines = []
    for policy, cells in part["rates"].items():
        line = [policy, preset_of(policy, part)]
        for b in at:
            line += [_paper_rate(source, policy, b)] * (b in with_paper)
            cell = cells[str(b)]
            line.append(f"{plus_minus(cell)} ({cell['gap_closed']:.0%})")
        lines.append(line)
    chance = next(iter(part["rates"].values()))
    line = ["(random, expected)", NONE]
    for b in at:
        line += ["-"] * (b in with_paper) + [f"{chance[str(b)]['random']:.3f} (0%)"]
    return head, [*lines, line]


def _paper_has(source: Published | None, budget: int) -> bool:
    return source is not None and budget in source.budgets


def _paper_rate(source: Published | None, policy: str, budget: int) -> str:
    rate = None if source is None else source.rate(policy, budget)
    if source is None or rate is None:
        return "-"
    chance = source.chance(budget)
    share = "" if chance is None else f" ({gap_closed(rate, chance):.0%})"
    return f"{rate:.3f}{share}"


def pair_table(source: Published | None, part: Digest) -> Table:
    """One line per difference and budget."""
    head = ["difference of SR", "preset", "budget", "paper", "ours", "p", "+/=/-", "verdict"]
    lines = []
    for pair in part["paired"]:
        if pair["mean"] is None:
            continue
        theirs = paper_difference(source, pair["policy"], pair["minus"], pair["budget"])
        lines.append(
            [
                f"{pair['policy']} - {pair['minus']}",
                presets_of(pair, part),
                str(pair["budget"]),
                "-" if theirs is None else f"{theirs:+.3f}",
                plus_minus(pair, "+"),
                "-" if pair["p"] is None else f"{pair['p']:.2g}",
                f"{pair['wins']}/{pair['ties']}/{pair['losses']}",
                verdict(pair).removesuffix(" from").removesuffix(" against"),
            ]
        )
    return head, lines


def _objects(experiment: Experiment, digest: Digest) -> list[Named]:
    parts = digest["parts"]
    first = next(iter(parts.values()))
    policies = [*first["objects"]["found"]]
    head = ["task", "targets", *(_column(policy, first) for policy in policies)]
    lines = [
        [
            name,
            f"{part['objects']['in_task']:.3g}",
            *(_spread(part["objects"]["found"].get(p), 2) for p in policies),
        ]
        for name, part in parts.items()
    ]
    at = first["at"][-1]
    caption = f"{experiment.title}: mean number touched within {at} measurements"
    return [Named(_stem(experiment), caption, (head, lines))]


def _column(policy: str, part: Digest) -> str:
    """The head of a column about a policy."""
    preset = preset_of(policy, part)
    return policy if preset == NONE else f"{policy} ({preset})"


def _cost(experiment: Experiment, digest: Digest) -> list[Named]:
    head = [
        "area",
        "policy",
        "preset",
        "s/observation",
        "evaluations/observation",
        "peak MB",
        "times 32x32",
        "300 take (min)",
        "paper s (GPU)",
        "paper GB",
    ]
    base = digest["parts"].get("32x32", {}).get("cost", {})
    lines = []
    for name, part in digest["parts"].items():
        theirs = published.COST.get(name.removesuffix("x3"))
        for policy, cost in part["cost"].items():
            seconds, shown = (
                cost["seconds_per_observation"],
                theirs if policy == "em-ptdm" else None,
            )
            usual = base.get(policy, {}).get("seconds_per_observation")
            lines.append(
                [
                    name.removesuffix("-paper"),
                    policy,
                    preset_of(policy, part),
                    f"{seconds:.3f}",
                    f"{cost['network_evaluations_per_observation']:.2f}",
                    f"{cost['peak_rss_mb']:.0f}",
                    f"{seconds / usual:.1f}" if usual else "-",
                    f"{seconds * 300 / 60:.1f}",
                    "-" if shown is None else f"{shown[0]:.2f}",
                    "-" if shown is None else f"{shown[1]:.2f}",
                ]
            )
    return [Named(_stem(experiment), f"{experiment.title}, one CPU core", (head, lines))]


def _by_policy(part: Digest, head: list[str], lines: dict[str, list[str]]) -> Table:
    """A line for every policy, with its preset."""
    figures = [[policy, preset_of(policy, part), *line] for policy, line in lines.items()]
    return ["policy", "preset", *head], figures


def _trials(experiment: Experiment, digest: Digest) -> list[Named]:
    found = []
    for name, part in digest["parts"].items():
        heading, source, at = _heading(experiment, name), experiment.reported(name), part["at"]
        lines = {
            policy: [
                text
                for b in at
                for text in (_paper_trials(source, policy, b), _mean_sd(**cells[str(b)]))
            ]
            for policy, cells in part["trials"].items()
        }
        head = [f"{whose}, {b}" for b in at for whose in ("paper", "ours")]
        trials = next(iter(next(iter(part["trials"].values())).values()))["n"]
        caption = f"{heading}: mean over {_count(part)} ± standard deviation over {trials} trials"
        found.append(
            Named(_stem(experiment, name, "trials"), caption, _by_policy(part, head, lines))
        )
        caption = f"{heading}: differences, paired over tasks"
        found.append(Named(_stem(experiment, name, "paired"), caption, pair_table(source, part)))
    return found


def _paper_trials(source: Published | None, policy: str, budget: int) -> str:
    rate = None if source is None else source.rate(policy, budget)
    if source is None or rate is None:
        return "-"
    sd = source.spread[policy][source.budgets.index(budget)] if policy in source.spread else None
    return _mean_sd(rate, sd)


def _mean_sd(mean: float, sd: float | None, **_: object) -> str:
    return f"{mean:.3f}" + ("" if sd is None else f" ±{sd:.3f}")


def _distances(experiment: Experiment, digest: Digest) -> list[Named]:
    titles = {
        "forecast": "forecast, all cells",
        "forecast_targets": "forecast, target cells",
        "image": "content, all pixels",
        "image_targets": "content, target pixels",
    }
    found = []
    for name, part in digest["parts"].items():
        at = str(part["at"][-1])
        rates, means = part["rates"], part["distances"]["means"]
        lines = {
            p: [plus_minus(rates[p][at]), *(_spread(means[p].get(n), 4) for n in titles)]
            for p in means
        }
        table = _by_policy(part, [f"SR at {at}", *titles.values()], lines)
        caption = f"{_heading(experiment, name)}: distance to the truth, mean over the search"
        found.append(Named(_stem(experiment, name, "distances"), caption, table))
    return found


def _positions(experiment: Experiment, digest: Digest) -> list[Named]:
    found = []
    for name, part in digest["parts"].items():
        positions = part["positions"]
        count = len(next(iter(positions.values())))
        lines = {policy: [plus_minus(cell) for cell in row] for policy, row in positions.items()}
        table = _by_policy(part, [f"task {i + 1}" for i in range(count)], lines)
        caption = (
            f"{_heading(experiment, name)}: success rate at {part['at'][-1]} measurements, by "
            "place in the sequence"
        )
        found.append(Named(_stem(experiment, name, "positions"), caption, table))
    return found


def _evidence(experiment: Experiment, digest: Digest) -> list[Named]:
    parts = digest["parts"]
    policies = list(dict.fromkeys(p for part in parts.values() for p in part["evidence"]))
    first = next(iter(parts.values()))
    lines = {
        policy: [_spread(part["evidence"].get(policy), 3) for part in parts.values()]
        for policy in policies
    }
    table = _by_policy(first, [name or "mean" for name in parts], lines)
    caption = (
        f"{experiment.title}: mean log-likelihood of each outcome before it was seen (higher is "
        "better; a policy that is misled is noticed here)"
    )
    return [Named(_stem(experiment, "evidence"), caption, table)]


def _spread(cell: dict[str, Any] | None, digits: int) -> str:
    if cell is None:
        return "-"
    text = f"{cell['mean']:.{digits}f}"
    if cell["ci95"] is not None:
        text += f" ±{(cell['ci95'][1] - cell['ci95'][0]) / 2:.{digits}f}"
    return text


VIEWS: dict[str, Callable[[Experiment, Digest], list[Named]]] = {
    "rates": _rates,
    "objects": _objects,
    "cost": _cost,
    "trials": _trials,
    "distances": _distances,
    "positions": _positions,
    "evidence": _evidence,
}
