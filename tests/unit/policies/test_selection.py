"""Several memories try out; the best by evidence stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engram import Grid, InputError, ball_task, make_policy, simulate
from engram.memory.library import load_memory
from engram.memory.permanent import PermanentMemory
from engram.observation import Observation, Observations
from engram.policies import selection
from engram.policies.base import Policy, flat_scores
from engram.policies.selection import ModelSelection, suited
from engram.scores import Scores
from engram.testing import tiny_memory


def named(memory: PermanentMemory, **changes: object) -> PermanentMemory:
    return PermanentMemory(memory.denoiser, replace(memory.card, **changes))  # type: ignore[arg-type]


def candidates() -> list[PermanentMemory]:
    noise = named(tiny_memory(1), name="noise", height=32, width=32)
    return [noise, load_memory("universal")]


def test_the_better_memory_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "TRIAL", 12)
    task = ball_task(0)
    policy = make_policy("em-ptdm", task.grid, 16, memory=candidates(), guard=False)
    assert isinstance(policy, ModelSelection)
    trace = simulate(policy, task)
    assert list(policy.candidates) == ["universal"]
    assert len(trace.forecast) == 16
    assert trace.evaluations > 0


def test_it_goes_on_from_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "TRIAL", 6)
    task = ball_task(1)
    for count in (3, 8):  # while both try out, and after
        one, two = (make_policy("em-ptdm", task.grid, 40, memory=candidates()) for _ in range(2))
        for _ in range(count):
            one.observe(task.measure(one.suggest(1)[0].cell))
        two.restore(Observations(task.grid, one.observations), one.state())
        assert one.suggest(2) == two.suggest(2)


def test_memories_of_the_same_name_all_try_out() -> None:
    """Labels are part of a state: they say which is which, whatever the order."""
    first, second = (named(tiny_memory(1), sha256=digit * 64) for digit in "ab")
    other = named(tiny_memory(1), name="other", sha256="c" * 64)
    task = ball_task(0)
    kept = {}
    for order in ([first, second, other], [other, second, first, second]):
        policy = make_policy("em-ptdm", task.grid, 10, memory=order)
        assert isinstance(policy, ModelSelection)
        policy.suggest(1)
        policy.observe([task.measure((0, col)) for col in range(3)])
        kept[len(order)] = policy
        assert sorted(policy.candidates) == ["other", "tiny@aaaaaaaa", "tiny@bbbbbbbb"]
    assert kept[3].state().keys() == kept[4].state().keys()
    kept[4].restore(Observations(task.grid, kept[3].observations), kept[3].state())
    assert kept[4].evidence == kept[3].evidence


def test_a_memory_given_twice_counts_once() -> None:
    memory = named(tiny_memory(1), sha256="a" * 64)
    again = named(memory, summary="the same weights")
    assert not isinstance(
        make_policy("em-ptdm", Grid(8, 8), 4, memory=[memory, again]), ModelSelection
    )


def test_memories_nobody_can_tell_apart_are_refused() -> None:
    unsaved = [tiny_memory(1), tiny_memory(1)]
    with pytest.raises(InputError, match=r"several memories are called 'tiny' and cannot be told"):
        make_policy("em-ptdm", Grid(8, 8), 4, memory=unsaved)


def test_memories_of_another_size_stay_out() -> None:
    small, large = candidates()[0], named(tiny_memory(1), name="large", height=64, width=64)
    assert [m.card.name for m in suited([small, large], Grid(32, 32))] == ["noise"]
    assert [m.card.name for m in suited([small, large], Grid(60, 60))] == ["large"]
    assert [m.card.name for m in suited([large], Grid(20, 20))] == ["large"]
    assert [m.card.name for m in suited([small, large], Grid(128, 128, 3, (4, 4)))] == ["noise"]


def test_no_suitable_memory_is_said() -> None:
    with pytest.raises(InputError, match="none of the memories"):
        suited([named(tiny_memory(3), name="colour")], Grid(8, 8, 2))


class Sure(Policy):
    """Forecasts the same for every cell, and searches from the first cell to the last."""

    def __init__(self, grid: Grid, p: float) -> None:
        super().__init__(grid, 12)
        self.p = p

    def scores(self) -> Scores:
        n = self.grid.n_cells
        return flat_scores(self.grid, np.full(n, self.p), -np.arange(n, dtype=float))


def test_the_leader_has_the_best_evidence_of_all_measurements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four blanks, then two finds: the pessimist is ahead to the end, though not by the last."""
    monkeypatch.setattr(selection, "TRIAL", 6)
    grid = Grid(4, 4)
    policy = ModelSelection([("optimist", Sure(grid, 0.7)), ("pessimist", Sure(grid, 0.2))])
    assert policy.leader == "optimist"  # the first wins a draw
    for i, outcome in enumerate([0.0, 0.0, 0.0, 0.0, 1.0, 1.0]):
        assert list(policy.candidates) == ["optimist", "pessimist"]
        policy.observe(Observation.checked(grid, grid.at(i), outcome, outcome))
        finds, blanks = max(0, i - 3), min(i + 1, 4)
        for name, p in (("optimist", 0.7), ("pessimist", 0.2)):
            exact = finds * np.log(p) + blanks * np.log(1 - p)
            assert policy.evidence[name] == pytest.approx(exact)
        assert policy.leader == "pessimist"
    assert list(policy.candidates) == ["pessimist"]
    assert policy.log.forecast == pytest.approx([0.7] + [0.2] * 5)
