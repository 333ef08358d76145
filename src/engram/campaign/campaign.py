"""The real-world loop: ask, tell, fail, correct, retract, close, open, extend.

Every request is checked in full against what is in force before anything is written, and is
acknowledged only when its event is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from engram.campaign.answers import Extended, Receipt, Told
from engram.campaign.asking import Asking
from engram.campaign.decide import SLACK
from engram.campaign.events import (
    Close,
    Correct,
    Extend,
    Fail,
    Measured,
    Open,
    Retract,
    Tell,
)
from engram.campaign.files import default_content
from engram.campaign.log import Entry
from engram.campaign.model import (
    Measurement,
    check_amount,
    check_budget,
    check_length,
)
from engram.campaign.state import State
from engram.detection import Detection, settles
from engram.errors import (
    ConflictError,
    ExhaustedError,
    InputError,
    NotFoundError,
)
from engram.grid import Cell, Grid
from engram.observation import Observation
from engram.policies import takes_detection

RETRY_AFTER = 24 * 3600.0
"""Seconds after which a cell that could not be reached is tried again, unless told otherwise."""


class Campaign(Asking):
    """A search in the real world. Open one with ``open_campaign`` or ``create_campaign``."""

    # -- telling -------------------------------------------------------------------------

    def tell(
        self,
        cell: Cell,
        outcome: float,
        content: ArrayLike | None = None,
        *,
        noise: float = 0.0,
        detection: float | None = None,
        false_alarm: float | None = None,
        by: str = "",
        key: str | None = None,
    ) -> Told:
        """Record one measurement, whether the cell was asked for or not.

        ``content`` may be left out for one-channel areas: the outcome stands for it. ``detection``
        and ``false_alarm`` say how far this visit can be trusted (default: the campaign's).
        """
        seen = self.seen_by(detection, false_alarm)
        if content is None:
            content = default_content(self.grid, outcome)
        observation = Observation.checked(self.grid, cell, content, outcome, noise, seen)
        return self.tell_many([observation], by=by, key=key)

    def seen_by(self, detection: float | None, false_alarm: float | None) -> Detection | None:
        """How far a visit can be trusted that says so itself; None where it does not."""
        if detection is None and false_alarm is None:
            return None
        spec = self.state.spec
        usual = spec.detection
        own = Detection.read(
            usual.written if detection is None else detection,
            usual.false_alarm if false_alarm is None else false_alarm,
        )
        if not own.perfect and (spec.preset == "paper" or not takes_detection(spec.policy)):
            raise InputError(
                f"policy {spec.policy!r} (preset {spec.preset}) takes every visit for the truth "
                f"({own}); leave it out, or create a campaign with em-ptdm or gp"
            )
        if own.learnt:
            raise InputError(
                "detection='learn' is said when the campaign is created; give this visit a number"
            )
        return own

    def tell_file(self, path: Path, *, by: str = "", key: str | None = None, **place: Any) -> Told:
        """Record the measurements of a file, all of them or none; see ``telling.tell_file``."""
        from engram.campaign.telling import tell_file

        return tell_file(self, path, by=by, key=key, **place)

    def tell_many(
        self,
        observations: Sequence[Observation],
        *,
        by: str = "",
        key: str | None = None,
        labels: Sequence[str] | None = None,
        facts: Sequence[dict[str, Any]] | None = None,
        source: str = "",
    ) -> Told:
        """Record several measurements, all of them or none.

        labels : name them in errors
        facts  : what is kept in the log beside each
        source : hash of what they were read from, by which a repeated request is known
        """
        if not observations:
            raise InputError("there is no measurement to tell")
        names = labels or [""] * len(observations)
        told = (
            Measured.told(
                Observation.checked(self.grid, o.cell, o.content, o.outcome, o.noise, o.detection)
            )
            for o in observations
        )
        items = tuple(
            replace(item, more={**item.more, **({"facts": beside} if beside else {})})
            for item, beside in zip(told, facts or [{}] * len(observations), strict=True)
        )
        origin: dict[str, Any] = {"source": source} if source else {}
        request = origin or {"items": [item.plain() for item in items]}

        def prepare(state: State, at: float) -> Entry:
            seen: dict[int, float] = {}
            left = state.budget_left(at)
            queries = []
            out = set(state.pending(at))
            for observation, label in zip(observations, names, strict=True):
                index = _check_tell(state, observation, seen, label)
                if observation.cell not in out:
                    left -= state.spec.cost_of(index)
                out.discard(observation.cell)
                if left < -SLACK:
                    raise ExhaustedError(
                        f"{label}cell {_show(observation.cell)}: no budget left for a cell that is "
                        f"not out ({state.budget_left(at):g} of {state.budget:g} left); extend it, "
                        "or fail a cell that is out"
                    )
                asked = [q.query for q in state.queries_of(observation.cell) if q.state == "asked"]
                queries.append(asked[-1] if asked else None)
            return Entry(Tell(items, queries, more=origin))

        return Told(**vars(self._request("tell", by, key, request, prepare)))

    # -- everything else -----------------------------------------------------------------

    def fail(
        self,
        *,
        query: int | None = None,
        cell: Cell | None = None,
        retry: float | None = RETRY_AFTER,
        reason: str = "",
        by: str = "",
        key: str | None = None,
    ) -> Receipt:
        """A cell could not be measured: try again after ``retry`` seconds, or never (None)."""
        if (query is None) == (cell is None):
            raise InputError("name what failed: either a query or a cell")
        if retry is not None and not retry >= 0:
            raise InputError(f"retry={retry}: give a time of 0 or more, or never")
        if retry is not None:
            check_length(retry, "retry")
        if query is not None:
            self.refresh()
            known = self.state.queries.get(query)
            if known is None:
                raise NotFoundError(f"there is no query {query} in this campaign")
            cell = known.cell
        assert cell is not None
        target = self.grid.at(self.grid.index(cell))
        body = Fail(target, query, retry, reason)

        def prepare(state: State, at: float) -> Entry:
            if state.is_settled(state.grid.index(cell)):
                raise ConflictError(
                    f"cell {_show(cell)} was measured; retract the measurement instead"
                )
            if query is not None and state.queries[query].state == "failed":
                raise ConflictError(f"query {query} was marked failed already")
            return Entry(body)

        return self._request("fail", by, key, body.plain(), prepare)

    def correct(
        self,
        cell: Cell,
        *,
        outcome: float | None = None,
        content: ArrayLike | None = None,
        noise: float | None = None,
        reason: str = "",
        by: str = "",
        key: str | None = None,
    ) -> Receipt:
        """Replace values of the latest measurement of a cell; the old ones stay in the log."""
        if outcome is None and content is None and noise is None:
            raise InputError("nothing to correct: give an outcome, a content or a noise")
        change: dict[str, Any] = {"outcome": outcome, "noise": noise}
        if content is not None:
            checked = Observation.checked(self.grid, cell, content, 0.0)
            change["content"] = Measured.told(checked).content
        target = (int(cell[0]), int(cell[1]))
        request = {"cell": list(target), "change": change, "reason": reason}

        def prepare(state: State, at: float) -> Entry:
            old = _measured(state, cell).observation
            value = outcome if outcome is not None else old.outcome
            new = Observation.checked(
                state.grid,
                cell,
                _corrected_content(state.grid, old, content, outcome),
                value,
                old.noise if noise is None else noise,
                old.detection,
            )
            return Entry(Correct(target, change, reason, Measured.told(old), Measured.told(new)))

        return self._request("correct", by, key, request, prepare)

    def retract(
        self, cell: Cell, *, reason: str = "", by: str = "", key: str | None = None
    ) -> Receipt:
        """Withdraw the latest measurement of a cell; it stays in the log and its budget is given
        back."""
        target = (int(cell[0]), int(cell[1]))
        request = {"cell": list(target), "reason": reason}

        def prepare(state: State, at: float) -> Entry:
            old = _measured(state, cell)
            return Entry(Retract(target, reason, Measured.told(old.observation)))

        return self._request("retract", by, key, request, prepare)

    def close(
        self, cells: Iterable[Cell], *, reason: str = "", by: str = "", key: str | None = None
    ) -> Receipt:
        """Nobody may measure these cells from now on."""

        def check(state: State, at: float, cell: Cell) -> None:
            index = state.grid.index(cell)
            if state.is_closed(index):
                raise ConflictError(f"cell {_show(cell)} is closed already")
            if state.is_settled(index):
                raise ConflictError(f"cell {_show(cell)} was measured; there is nothing to close")
            if cell in state.pending(at):
                raise ConflictError(f"cell {_show(cell)} is out; mark it failed (never) instead")

        return self._cells(Close, cells, reason, by, key, check)

    def open(
        self, cells: Iterable[Cell], *, reason: str = "", by: str = "", key: str | None = None
    ) -> Receipt:
        """These cells may be measured (again)."""

        def check(state: State, at: float, cell: Cell) -> None:
            index = state.grid.index(cell)
            if not state.is_closed(index) and index not in state.waits(at):
                raise ConflictError(f"cell {_show(cell)} is open already")

        return self._cells(Open, cells, reason, by, key, check)

    def _cells(
        self,
        kind: type[Close | Open],
        cells: Iterable[Cell],
        reason: str,
        by: str,
        key: str | None,
        check: Callable[[State, float, Cell], None],
    ) -> Receipt:
        wanted = [self.grid.at(self.grid.index(cell)) for cell in cells]
        if not wanted:
            raise InputError(f"{kind.kind}: name at least one cell")
        body = kind(tuple(dict.fromkeys(wanted)), reason)

        def prepare(state: State, at: float) -> Entry:
            for cell in wanted:
                check(state, at, cell)
            return Entry(body)

        return self._request(kind.kind, by, key, body.plain(), prepare)

    def extend(self, amount: float, *, by: str = "", key: str | None = None) -> Extended:
        """Add to the budget."""
        kind = self.state.spec.budget_kind
        body = Extend(float(check_budget(amount, kind)))

        def prepare(state: State, at: float) -> Entry:
            check_amount(state.budget + amount, "a budget of")
            cells = int((~state.base_closed).sum())
            if kind == "measurements" and state.budget + amount > cells:
                raise InputError(
                    f"a budget of {state.budget + amount:g} is larger than the {cells} open cells"
                )
            return Entry(body)

        done = self._request("extend", by, key, body.plain(), prepare)
        return Extended(**vars(done), budget=self.state.budget)


def _show(cell: Cell) -> str:
    return f"({cell[0]}, {cell[1]})"


def _measured(state: State, cell: Cell) -> Measurement:
    found = state.measurements.get(state.grid.index(cell))
    if found is None:
        raise NotFoundError(f"cell {_show(cell)} has no measurement in force")
    return found


def _check_tell(state: State, told: Observation, seen: dict[int, float], label: str) -> int:
    """Index of a cell that may be told; ``seen`` is what visits told with it are worth so far."""
    cell, index = told.cell, state.grid.index(told.cell)
    if state.is_settled(index):
        raise ConflictError(f"{label}cell {_show(cell)} was measured already; correct it instead")
    if index in seen and settles(seen[index]):
        raise InputError(f"{label}cell {_show(cell)} is given twice")
    if state.is_closed(index):
        raise ConflictError(f"{label}cell {_show(cell)} is closed; open it first")
    before = seen.get(index, state.worth_of(index))
    seen[index] = before + state.worth_of_report(told)
    return index


def _corrected_content(
    grid: Grid, old: Observation, content: ArrayLike | None, outcome: float | None
) -> ArrayLike:
    """The new content; one that merely stood for the outcome follows the outcome."""
    if content is not None:
        return content
    if outcome is not None and grid.channels == 1:
        stood = default_content(grid, old.outcome)
        if (old.content == stood).all():
            return default_content(grid, outcome)
    return old.content
