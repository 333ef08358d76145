"""Run a benchmark: units -> executor -> journal -> ``results.json``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import engram
from engram._files import read_json
from engram._threads import cores
from engram._writing import write_file
from engram.bench.journal import NAME as JOURNAL
from engram.bench.journal import Journal
from engram.bench.known import Known
from engram.bench.pool import run_pool
from engram.bench.provenance import commit, machine, plug_in_digest
from engram.bench.rows import check_options, check_rows
from engram.bench.suites import data_card, get_suite
from engram.bench.tables import summarise
from engram.bench.units import NOTES, TRACK, Row, Unit, run_unit
from engram.errors import InputError, shown
from engram.memory.kinds import KINDS
from engram.memory.library import DEFAULT_MEMORY, read_cards
from engram.policies import POLICIES
from engram.policies.spec import PolicyChoice, Value, parse_policies

if TYPE_CHECKING:
    from engram.memory.card import Card
    from engram.tasks.sets import TaskSet

FORMAT = "engram-bench-1"
RESULTS = "results.json"
REWRITE_SECONDS = 10.0
"""How often ``results.json`` is brought up to date during a run."""

Progress = Callable[[int, Row], None]
"""Called with (units done, the row that was finished)."""


MOST_UNITS = 1_000_000
"""Searches of one policy that a plan may ask for."""


@dataclass(frozen=True)
class Plan:
    """What is to be run; two plans with equal ``options`` give the same rows.

    track : measurements between two comparisons of beliefs with the truth, 0 = none
    """

    suite: str
    policies: tuple[PolicyChoice, ...]
    tasks: tuple[int, int]
    budget: int
    at: tuple[int, ...]
    seeds: int
    preset: str
    prior: str
    settings: tuple[tuple[str, Value], ...] = ()
    data: tuple[Path, ...] = ()
    known: Known = field(default_factory=Known)
    track: int = TRACK

    @classmethod
    def checked(
        cls,
        suite: str,
        policies: str,
        *,
        tasks: tuple[int, int] = (0, 20),
        budget: int | None = None,
        at: Sequence[int] = (),
        seeds: int = 1,
        preset: str = "default",
        prior: str = DEFAULT_MEMORY,
        settings: Mapping[str, Value] | None = None,
        data: Sequence[str | Path] = (),
        known: Known | None = None,
        track: int = TRACK,
    ) -> Plan:
        """A plan from user input; every fault is named before anything runs."""
        family = get_suite(suite)
        budget = max(family.budgets) if budget is None else budget
        first, end = tasks
        if not 0 <= first < end:
            raise InputError(f"tasks={first}:{end}: give A:B with 0 <= A < B (B is not included)")
        if seeds < 1:
            raise InputError(f"seeds={seeds}: give at least 1")
        if track < 0:
            raise InputError(f"track={track}: give 0 (never) or more measurements")
        if seeds * (end - first) > MOST_UNITS:
            raise InputError(
                f"tasks={first}:{end}, seeds={shown(seeds)}: more than {MOST_UNITS:,} searches; "
                "give fewer"
            )
        made = family.tasks(data, settings)
        if made.size is not None and end > made.size:
            raise InputError(
                f"tasks={first}:{end}: {made.name} has {made.size} tasks; end at {made.size} or "
                "before"
            )
        known = known or Known()
        task = known.told(made.task(first), first)
        task.grid.check_budget(budget)
        points = sorted(set(at)) or [b for b in family.budgets if b <= budget] or [budget]
        for b in points:
            if not 1 <= b <= budget:
                raise InputError(f"at={b}: give budgets between 1 and {budget}")
        read_cards(prior)
        choices = parse_policies(policies, preset=preset, prior=prior)
        for choice in choices:
            choice.layers_of(task)
        return cls(
            suite,
            choices,
            tasks,
            budget,
            tuple(points),
            seeds,
            preset,
            prior,
            family.checked(settings or {}),
            tuple(Path(path) for path in data),
            known,
            track,
        )

    def task_set(self) -> TaskSet:
        """The tasks the numbers of this plan refer to."""
        return get_suite(self.suite).tasks(self.data, dict(self.settings))

    def units(self) -> list[Unit]:
        """Task by task, so that an unfinished run compares the policies on the same tasks."""
        data = tuple(str(path.resolve()) for path in self.data)
        known = self.known.resolved()
        return [
            Unit(
                self.suite,
                choice,
                task,
                seed,
                self.budget,
                self.at,
                self.settings,
                data,
                known=known,
                track=self.track,
            )
            for task in range(*self.tasks)
            for seed in range(self.seeds)
            for choice in self.policies
        ]

    def cards(self) -> dict[str, Card]:
        """Name -> card of every memory that takes part."""
        priors = {choice.prior for choice in self.policies if choice.needs_memory}
        return {n: card for prior in sorted(priors) for n, card in read_cards(prior).items()}

    def _parts(self) -> dict[str, str]:
        """Name -> module of every part that another package may offer."""
        kinds = {card.kind for card in self.cards().values()}
        return {
            **{choice.name: POLICIES[choice.name].module for choice in self.policies},
            f"suite {self.suite}": get_suite(self.suite).make.__module__,
            **{f"memory kind {kind}": KINDS.find(kind).__module__ for kind in kinds},
        }

    def options(self) -> dict[str, Any]:
        """Everything the rows depend on, memories, data files and plug-ins by hash."""
        foreign = {name: plug_in_digest(module) for name, module in sorted(self._parts().items())}
        plug_ins = {name: digest for name, digest in foreign.items() if digest is not None}
        cards = self.cards()
        learnt = {name: c.symmetric["sha256"] for name, c in cards.items() if c.symmetric}
        return {
            "suite": self.suite,
            "settings": dict(self.settings),
            "data": data_card(self.task_set(), self.data),
            "policies": [choice.label for choice in self.policies],
            "preset": self.preset,
            "prior": self.prior,
            "memories": {name: card.sha256 for name, card in cards.items()},
            **({"symmetric": learnt} if learnt else {}),
            "tasks": list(self.tasks),
            "seeds": self.seeds,
            "budget": self.budget,
            "at": list(self.at),
            **({"known": self.known.options()} if self.known else {}),
            **({"track": self.track} if self.track != TRACK else {}),
            **({"plug_ins": plug_ins} if plug_ins else {}),
        }


class Executor(Protocol):
    """Runs units somewhere; yields (position, row) as they finish, in any order.

    A lost worker's unit is done again; an :class:`engram.EngramError` of a unit is raised.
    """

    def run(self, units: Sequence[Unit]) -> Generator[tuple[int, Row], None, None]: ...


@dataclass(frozen=True)
class LocalExecutor:
    """Processes on this machine, one thread each, never more than cores."""

    workers: int

    def run(self, units: Sequence[Unit]) -> Generator[tuple[int, Row], None, None]:
        return run_pool(run_unit, units, workers=min(self.workers, cores()))


def _local(workers: int | None, address: str | None) -> Executor:
    if address is not None:
        raise InputError(f"address={address!r}: the local executor has none; choose --executor ray")
    return LocalExecutor(workers or cores())


def _ray(workers: int | None, address: str | None) -> Executor:
    from engram.bench.ray_executor import RayExecutor

    return RayExecutor(workers, address)


EXECUTORS: dict[str, Callable[[int | None, str | None], Executor]] = {"local": _local, "ray": _ray}


def make_executor(name: str, workers: int | None = None, address: str | None = None) -> Executor:
    """An executor by name; without a number of workers it uses every core it has."""
    if name not in EXECUTORS:
        raise InputError(f"unknown executor {name!r}; choose one of {', '.join(EXECUTORS)}")
    if workers is not None and workers < 1:
        raise InputError(f"workers={workers}: give at least 1")
    return EXECUTORS[name](workers, address)


def run_bench(
    plan: Plan,
    out: Path,
    *,
    executor: Executor,
    fresh: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run what is missing of a plan in folder ``out``; returns the content of results.json.

    Finished units are in ``out/journal.jsonl`` at once and are never run again.
    """
    identity = {"format": FORMAT, "commit": commit(), "options": plan.options()}
    units = plan.units()
    if (out / RESULTS).exists() and not (out / JOURNAL).exists() and not fresh:
        raise InputError(
            f"{out} holds a {RESULTS} without the journal that belongs to it; choose another "
            "folder, or discard those results with --fresh"
        )
    with Journal(out, identity, fresh=fresh) as journal:
        check_rows([*journal.rows.values()], str(journal.path))
        missing = [unit for unit in units if unit.key not in journal.rows]
        written = time.monotonic()
        try:
            with closing(executor.run(missing)) as finished:
                for position, row in finished:
                    journal.add(missing[position].key, row)
                    if progress is not None:
                        progress(len(journal.rows), row)
                    if time.monotonic() - written > REWRITE_SECONDS:
                        _write(out, _results(plan, identity, units, journal))
                        written = time.monotonic()
        finally:
            results = _results(plan, identity, units, journal)
            if results["rows"]:
                _write(out, results)
    return results


def _results(
    plan: Plan, identity: dict[str, Any], units: Sequence[Unit], journal: Journal
) -> dict[str, Any]:
    tasks = plan.task_set()
    rows = [journal.rows[unit.key] for unit in units if unit.key in journal.rows]
    return {
        **identity,
        "version": engram.__version__,
        "machine": machine(),
        "task_set": {"description": tasks.description, "options": tasks.options},
        "units": {"done": len(rows), "all": len(units)},
        "complete": len(rows) == len(units),
        "seen": {name: card.seen for name, card in plan.cards().items()},
        "notes": NOTES,
        "rows": rows,
        "summary": summarise(rows, identity["options"]["at"]),
    }


def _write(out: Path, results: dict[str, Any]) -> None:
    """Readable, with one row a line."""
    rest = {key: value for key, value in results.items() if key != "rows"}
    rows = ",\n  ".join(json.dumps(row, allow_nan=False) for row in results["rows"])
    text = json.dumps(rest, indent=1, allow_nan=False)[: -len("\n}")]
    write_file(out / RESULTS, f'{text},\n "rows": [\n  {rows}\n ]\n}}\n')


def read_results(folder: Path) -> dict[str, Any]:
    """The results of a benchmark, checked to be such."""
    path = folder / RESULTS if folder.is_dir() else folder
    if not path.is_file():
        raise InputError(f"no results at {path}")
    data = read_json(path)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{path} was not written by 'engram bench run' (format {FORMAT})")
    if not data.get("rows"):
        raise InputError(f"{path} holds no rows yet")
    check_rows(data["rows"], str(path))
    check_options(data, str(path))
    return data
