"""What every policy owes its caller. A new policy is held to it by adding its name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram import Grid, InputError, Observation, Task, make_policy, simulate
from engram.layers import Layers
from engram.policies import POLICIES, Policy
from engram.testing import tiny_memory

CONTRACTED: list[tuple[str, str]] = [(name, "default") for name in POLICIES]
"""(policy, preset) pairs under contract."""
PAPER = [(name, "paper") for name, spec in POLICIES.items() if spec.needs_memory]
"""The same of the paper preset, which takes many times as long: whole areas are left out."""

contracted = pytest.mark.parametrize(("name", "preset"), [*CONTRACTED, *PAPER])
contracted_throughout = pytest.mark.parametrize(("name", "preset"), CONTRACTED)


def made(name: str, preset: str, grid: Grid, budget: int, seed: int = 0) -> Policy:
    return make_policy(name, grid, budget, seed=seed, preset=preset, **needed(name, grid))


def needed(name: str, grid: Grid) -> dict[str, Any]:
    """What the policy cannot do without."""
    spec, given = POLICIES[name], dict[str, Any]()
    if spec.needs_memory:
        given["memory"] = tiny_memory(grid.channels)
    if spec.needs_layers:
        given["layers"] = Layers(grid, belief=np.linspace(0.1, 0.9, grid.n_cells))
    return given


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """Any grid: sizes, channels, cells that are not square, closed cells, all kinds of targets."""
    rows, cols, h, w = (draw(st.integers(1, n)) for n in (5, 5, 3, 3))
    channels = draw(st.sampled_from([1, 1, 3]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    closed = rng.random((rows, cols)) < draw(st.sampled_from([0.0, 0.3]))
    closed.flat[rng.integers(rows * cols)] = False
    low, width = draw(st.sampled_from([(0.0, 1.0), (-3.0, 10.0)]))
    grid = Grid(rows * h, cols * w, channels, (h, w), (low, low + width), closed)
    target = rng.random((grid.height, grid.width)) < draw(st.sampled_from([0.1, 0.5, 1.0]))
    target[grid.block(grid.at(int(grid.open_cells[0])))] = True
    content = low + width * rng.random((channels, grid.height, grid.width))
    return Task("any", grid, content.astype(np.float32), target)


def toy(rows: int = 6, cols: int = 6) -> Task:
    target = np.zeros((rows, cols), bool)
    target[1:3, 1:4] = True
    grid = Grid(rows, cols).with_closed([(0, 0), (rows - 1, 2)])
    return Task("toy", grid, target.astype(np.float32)[None], target)


@contracted_throughout
@given(data=st.data())
@settings(max_examples=25)
def test_the_budget_is_spent_exactly_and_no_cell_twice(
    name: str, preset: str, data: st.DataObject
) -> None:
    task = data.draw(tasks())
    budget = data.draw(st.integers(1, len(task.grid.open_cells)))
    trace = simulate(made(name, preset, task.grid, budget, seed=data.draw(st.integers(0, 9))), task)
    assert len(trace.cells) == len(set(trace.cells)) == len(trace.outcomes) == budget
    indices = [task.grid.index(cell) for cell in trace.cells]
    assert not task.grid.closed.ravel()[indices].any()
    assert trace.outcomes == task.outcomes[indices].tolist()
    assert len(trace.terms) == len(trace.evidence) == len(trace.forecast) == budget
    assert all(0 <= p <= 1 for p in trace.forecast)
    assert np.isfinite(trace.evidence).all()
    assert max(trace.evidence) <= 0


@contracted_throughout
def test_the_whole_area_can_be_searched(name: str, preset: str) -> None:
    task = toy()
    trace = simulate(made(name, preset, task.grid, 34), task)
    assert sorted(task.grid.index(c) for c in trace.cells) == task.grid.open_cells.tolist()
    assert trace.success_rate() == trace.recall() == trace.mass() == 1.0


@contracted
def test_same_seed_same_trace(name: str, preset: str) -> None:
    task = toy()
    one, two = (simulate(made(name, preset, task.grid, 12, seed=4), task) for _ in range(2))
    assert one.cells == two.cells
    assert one.terms == two.terms
    assert one.evidence == two.evidence


@contracted
def test_an_interrupted_search_goes_on_as_if_nothing_had_happened(name: str, preset: str) -> None:
    task = toy()
    whole = simulate(made(name, preset, task.grid, 12, seed=4), task)
    resumed = made(name, preset, task.grid, 12, seed=4)
    for cell in whole.cells[:7]:
        resumed.observe(task.measure(cell))
    for cell in whole.cells[7:]:
        assert resumed.suggest()[0].cell == cell
        resumed.observe(task.measure(cell))


@contracted
def test_asking_changes_nothing(name: str, preset: str) -> None:
    task = toy()
    policy = made(name, preset, task.grid, 10)
    policy.observe(task.measure((1, 1)))
    first = policy.suggest(3)
    policy.view()
    assert policy.suggest(3) == first
    assert policy.t == 1


@contracted
def test_several_crews_get_different_cells(name: str, preset: str) -> None:
    task = toy()
    policy = made(name, preset, task.grid, 10)
    policy.observe([task.measure((1, 1)), task.measure((4, 4))])
    picks = policy.suggest(5, pending=[(2, 2), (3, 3)])
    cells = [pick.cell for pick in picks]
    assert len(set(cells)) == 5
    assert not {(1, 1), (4, 4), (2, 2), (3, 3), (0, 0), (5, 2)} & set(cells)
    assert [pick.rank for pick in picks] == [1, 2, 3, 4, 5]
    everything = policy.suggest(100)
    assert len({pick.cell for pick in everything}) == len(everything) == 32
    free = {pick.cell for pick in policy.suggest(100, pending=[(2, 2), (3, 3)])}
    assert len(free) == 30
    assert not {(2, 2), (3, 3)} & free
    with pytest.raises(InputError, match="n=0"):
        policy.suggest(0)


def test_crews_stand_apart() -> None:
    """Where all cells promise about the same, crews are sent to cells far from each other."""
    policy = made("random", "default", Grid(12, 12), 20)
    worth = 0.5 - 0.001 * np.arange(144)
    picks = [pick.cell for pick in policy.suggest(3, pending=[(0, 0)], worth=worth)]
    for i, one in enumerate([(0, 0), *picks]):
        for other in picks[i:]:
            assert np.hypot(one[0] - other[0], one[1] - other[1]) > 2


@contracted
@pytest.mark.parametrize(
    "second",
    [
        Observation((1, 2), np.full((1, 1, 1), np.nan, np.float32), 0.0),
        Observation((1, 2), np.zeros((1, 1, 1), np.float32), 1.5),
        Observation((1, 2), np.zeros((1, 2, 2), np.float32), 0.0),
        Observation((9, 9), np.zeros((1, 1, 1), np.float32), 0.0),
        Observation((0, 0), np.zeros((1, 1, 1), np.float32), 0.0),
        Observation((1, 1), np.zeros((1, 1, 1), np.float32), 0.0),
    ],
    ids=["nan", "outcome", "shape", "outside", "closed", "twice"],
)
def test_a_faulty_batch_is_refused_as_a_whole(name: str, preset: str, second: Observation) -> None:
    task = toy()
    policy = made(name, preset, task.grid, 10)
    with pytest.raises(InputError):
        policy.observe([task.measure((1, 1)), second])
    assert policy.t == 0
    assert policy.log.evidence == []


@contracted
def test_beliefs_have_their_shapes(name: str, preset: str) -> None:
    task = toy()
    policy = made(name, preset, task.grid, 10)
    for cell in ((1, 1), (4, 4), (3, 1)):
        policy.observe(task.measure(cell))
    view, n = policy.view(), task.grid.n_cells
    for term in (
        "exploration",
        "likelihood",
        "reward",
        "exploitation",
        "total",
        "probability",
        "doubt",
    ):
        assert getattr(view.scores, term).shape == (n,)
    assert ((view.scores.probability >= 0) & (view.scores.probability <= 1)).all()
    assert set(policy.suggest()[0].terms) >= {"alpha", "total", "probability"}
    if view.mean is not None:
        assert view.mean.shape == (1, 6, 6)
    if view.particles is not None:
        assert view.particles.shape[1:] == (1, 6, 6)


@contracted
@pytest.mark.parametrize("budget", [0, -3, 35, 2.5])
def test_impossible_budgets_are_refused(name: str, preset: str, budget: Any) -> None:
    with pytest.raises(InputError, match="budget="):
        made(name, preset, toy().grid, budget)


@contracted
def test_unknown_options_are_refused(name: str, preset: str) -> None:
    grid = toy().grid
    with pytest.raises(InputError, match="option"):
        make_policy(name, grid, 5, preset=preset, colour="blue", **needed(name, grid))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="unknown policy 'clever'; choose one of random"):
        make_policy("clever", toy().grid, 5)
    with pytest.raises(InputError, match="unknown preset 'fast'"):
        make_policy("random", toy().grid, 5, preset="fast")
    with pytest.raises(InputError, match="needs a memory"):
        make_policy("greedy", toy().grid, 5)


def test_a_name_of_former_days_is_the_policy_of_today() -> None:
    task = toy()
    older, today = (made(name, "default", task.grid, 6) for name in ("auto", "em-ptdm"))
    assert simulate(older, task).cells == simulate(today, task).cells
    assert older.name == "em-ptdm"
    assert "auto" in POLICIES
    assert "auto" not in list(POLICIES)


def test_random_search_is_random() -> None:
    task = toy()
    traces = [simulate(made("random", "default", task.grid, 10, seed=s), task) for s in range(5)]
    assert len({tuple(t.cells) for t in traces}) == 5
