"""Windows of a large area by what has learnt the average of all views of the memory."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

from engram import Grid, Observation, make_policy
from engram.memory.denoiser import NetworkDenoiser
from engram.memory.permanent import PermanentMemory
from engram.observation import Observations
from engram.policies.emptdm import EmPtdm
from engram.policies.imagination import mean_of, measurements_of
from engram.policies.local.memory import LocalMemory
from engram.policies.local.windows import PERIOD, computed_by, wide_tiling
from engram.policies.views import expected_image
from engram.testing import tiny_memory

GRID, SIDE = Grid(72, 72), 8
WINDOW = Grid(SIDE, SIDE)
TINY = tiny_memory(1, conditioned=True)


def with_average() -> PermanentMemory:
    """A memory that has a network for the average: another one, to tell them apart."""
    network = deepcopy(TINY.network)
    with torch.no_grad():
        network.tail.head.bias += 0.7
    return TINY.with_symmetric(NetworkDenoiser(network), {})


MEMORY = with_average()


def policy(grid: Grid = GRID, wide: bool = False, **options: Any) -> EmPtdm:
    """Windows of the memory's own size, so that a few measurements are many for one."""
    plan = {"particles": 2, "steps": 1, "wide": wide, **options}
    made = make_policy("em-ptdm", grid, 60, memory=MEMORY, **plan)
    assert isinstance(made, EmPtdm)
    assert isinstance(made.memory, LocalMemory)
    return made


def walk(count: int, grid: Grid = GRID) -> list[Observation]:
    """Cells of the window that begins at (4, 4), and so of its neighbours."""
    cells = [(4 + 5 * i % 8, 4 + (3 * i + i // 8) % 8) for i in range(count)]
    return [
        Observation.checked(grid, c, float(i % 3) / 2, float(i % 3) / 2)
        for i, c in enumerate(cells)
    ]


def at_origin(items: list[Observation]) -> Observations:
    """The same, as the window that begins at (4, 4) sees them."""
    seen = [
        Observation.checked(WINDOW, (o.cell[0] - 4, o.cell[1] - 4), o.content.item(), o.outcome)
        for o in items
    ]
    return Observations(WINDOW, seen)


def windows(own: EmPtdm) -> Any:
    own.believed()
    return own.memory.windows  # type: ignore[attr-defined]


def number(own: EmPtdm) -> int:
    """Of the window that begins at (4, 4)."""
    tiling = own.memory.windows.tiling  # type: ignore[attr-defined]
    return next(n for n in tiling.near((4, 4)) if tiling.box(n) == (slice(4, 12), slice(4, 12)))


def averaged(seen: Observations) -> torch.Tensor:
    """The mean of all eight views."""
    nobody = np.zeros(WINDOW.n_cells, bool)
    return expected_image(MEMORY, measurements_of(seen), nobody, WINDOW, 8)


@pytest.mark.parametrize("count", [3, 8, 13, 21])
def test_a_window_is_what_was_learnt_and_what_all_views_said_beyond_it(count: int) -> None:
    assert MEMORY.symmetric is not None
    own = policy()
    own.observe(walk(count))
    told, then = at_origin(walk(count)), at_origin(walk(count - count % PERIOD))
    beyond = averaged(then) - mean_of(MEMORY.symmetric, measurements_of(then))
    measured = measurements_of(told)
    wanted = mean_of(MEMORY.symmetric, measured) + beyond * (1 - measured.mask)
    got = windows(own).means[number(own)]
    np.testing.assert_allclose(got, wanted[0].numpy(), atol=1e-5)
    assert beyond.abs().max() > 1e-2


def test_the_window_of_which_nothing_is_known_is_that_of_all_views() -> None:
    wanted = averaged(Observations(WINDOW, []))[0].numpy()
    np.testing.assert_allclose(windows(policy()).blank, wanted, atol=1e-5)


def test_one_by_one_in_batches_and_anew_windows_are_the_same() -> None:
    one_by_one, at_once = policy(), policy()
    for item in walk(21):
        one_by_one.observe(item)
        one_by_one.believed()
    at_once.observe(walk(21))
    for n, mean in windows(one_by_one).means.items():
        np.testing.assert_array_equal(mean, windows(at_once).means[n])


def evaluations(own: EmPtdm) -> tuple[float, float]:
    """(what has learnt the average, the memory), in images."""
    assert own.memory.symmetric is not None
    return own.memory.symmetric.evaluations * 16, own.memory.frozen.evaluations * 16


def test_a_measurement_costs_one_evaluation_a_window_and_all_views_every_eighth() -> None:
    own = policy()
    own.believed()
    assert evaluations(own) == (1, 8)  # of which nothing is known
    far = [(30, 30), (50, 20), (60, 60)]
    for cell in far:
        own.observe(Observation.checked(GRID, cell, 1.0, 1.0))
        own.believed()
    assert evaluations(own) == (1 + 3 * 4, 8)
    own = policy()
    own.observe(walk(7))
    own.believed()
    learnt, views = evaluations(own)
    here = windows(own).tiling.near(walk(8)[-1].cell)
    full = [n for n in here if len(windows(own).cells.get(n, ())) == PERIOD - 1]
    own.observe(walk(8)[-1])
    own.believed()
    assert number(own) in full
    assert evaluations(own) == (learnt + 4, views + 8 * len(full))


def test_a_restored_search_asks_no_view_again() -> None:
    own = policy()
    for item in walk(20):
        own.observe(item)
        own.believed()
    other = policy()
    other.restore(Observations(GRID, walk(20)), own.state())
    for n, mean in windows(own).means.items():
        np.testing.assert_allclose(windows(other).means[n], mean, atol=1e-6)
    assert evaluations(other) == (1, 8)
    late = walk(21)[-1]
    for one in (own, other):
        one.observe(late)
    for n in windows(own).means:
        np.testing.assert_allclose(windows(other).means[n], windows(own).means[n], atol=1e-6)
    assert evaluations(other) == (1 + 4, 8)


def test_when_doubt_is_gone_windows_are_those_of_what_is_known_now() -> None:
    found = [Observation.checked(GRID, o.cell, 1.0, 1.0) for o in walk(13)]
    blank = Observation.checked(GRID, found[2].cell, 0.0, 0.0)
    items = [*found[:2], blank, *found[3:], found[2]]
    live = policy(detection=0.7)
    for item in items:
        live.observe(item)
        live.believed()
    anew = policy(detection=0.7)
    anew.observe(items)
    for n, mean in windows(live).means.items():
        np.testing.assert_array_equal(mean, windows(anew).means[n])
    assert number(anew) in windows(anew).beyond


def test_where_reports_left_doubt_windows_see_the_four_turns() -> None:
    own, turns = policy(detection=0.7), policy(detection=0.7, window_views=4)
    for one in (own, turns):
        one.observe([Observation.checked(GRID, (6, 6), 0.0, 0.0)])
        one.believed()
    mean, wanted = (windows(one).means[number(one)] for one in (own, turns))
    np.testing.assert_array_equal(mean, wanted)


@pytest.mark.parametrize("options", [{"window_views": 4}, {"views": 8}, {"views": 4}])
def test_the_four_turns_where_they_are_asked_for(options: dict[str, int]) -> None:
    own = policy(**options)
    assert windows(own).see.learnt is None
    assert own.memory.frozen.evaluations * 16 == 4


def test_a_narrow_area_is_seen_by_what_has_learnt_the_average_alone() -> None:
    grid = Grid(6, 90)
    own = policy(grid)
    own.observe(Observation.checked(grid, (2, 40), 1.0, 1.0))
    own.believed()
    assert own.memory.frozen.evaluations == 0
    assert own.suggest()


def test_what_a_window_needs_is_sent_with_it() -> None:
    """Somewhere else nothing is known but what is sent."""
    own, other = policy(), policy()
    for one in (own, other):
        for part in (walk(9), walk(13)[9:]):
            one.observe(part)
            if one is own:
                one.believed()
                continue
            with computed_by(lambda see, sights: [see(deepcopy(s)) for s in sights]):
                one.believed()
    for n, mean in windows(own).means.items():
        np.testing.assert_array_equal(windows(other).means[n], mean)


def test_windows_are_wider_than_what_the_memory_was_trained_on() -> None:
    tiling = windows(policy(Grid(100, 120), wide=True)).tiling
    assert (tiling.rows.size, tiling.cols.size) == (64, 64)
    assert tiling.rows.starts.tolist() == [0, 36]
    assert tiling.cols.starts.tolist() == [0, 48, 56]
    assert wide_tiling(Grid(200, 200), (80, 96)).rows.starts.tolist() == [0, 64, 120]
