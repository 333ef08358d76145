"""A memory that is told only of what lies near a cell."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
import torch

from engram import Grid, InputError, Observation, make_policy
from engram.detection import Detection
from engram.memory.denoiser import CosineSchedule, CountedDenoiser, Estimate, Known, Schedule
from engram.observation import Observations
from engram.policies.context import NearbyMean
from engram.policies.emptdm_settings import EmPtdmSettings
from engram.policies.spec import PolicyChoice
from engram.policies.views import SymmetricMean
from engram.testing import tiny_memory

GRID = Grid(20, 20)
MEMORY = tiny_memory(1, conditioned=True, size=20)
N, REACH = 8, 7


class Everywhere:
    """A memory that expects everywhere the sum of all it was told, a little by place."""

    schedule: Schedule = CosineSchedule()
    conditioned = True

    def estimate(self, x_t: torch.Tensor, t: torch.Tensor, known: Known | None = None) -> Estimate:
        assert known is not None
        weight = known.weight * (1 + torch.arange(known.weight.shape[-1]) / 100)
        told = ((known.values + 0.3) * weight).sum(dim=(1, 2, 3), keepdim=True)
        return Estimate(0.01 * told.expand_as(x_t), x_t)


def visit(cell: tuple[int, int], content: float, grid: Grid = GRID) -> Observation:
    return Observation.checked(grid, cell, np.full(grid.content_shape, content), content)


NEAR = [visit((9, 9), 1.0), visit((11, 10), 0.0)]


def nearby(views: int = 8, period: int = 1, grid: Grid = GRID) -> NearbyMean:
    return NearbyMean(grid, N, SymmetricMean(grid, views, period))


def expected(items: Iterable[Observation], views: int = 8, period: int = 1) -> torch.Tensor:
    """(H, W) what ``Everywhere`` expects, told by windows."""
    return nearby(views, period)(Everywhere(), Observations(GRID, items))[0, 0]


def away(cell: tuple[int, int]) -> np.ndarray:
    """(H, W) cells between each cell and this one, down or across, whichever is more."""
    rows, cols = np.indices((GRID.rows, GRID.cols))
    return np.asarray(np.maximum(abs(rows - cell[0]), abs(cols - cell[1])))


@pytest.mark.parametrize("cell", [(0, 0), (3, 14), (10, 2), (19, 19), (7, 8)])
@pytest.mark.parametrize(("views", "period"), [(1, 1), (8, 1), (8, 4)])
def test_what_is_measured_farther_away_than_the_reach_changes_nothing(
    cell: tuple[int, int], views: int, period: int
) -> None:
    before, after = (expected(items, views, period) for items in (NEAR, [*NEAR, visit(cell, 0.7)]))
    changed = (before != after).numpy()
    distance, measured = away(cell), Observations(GRID, NEAR).mask > 0
    assert not changed[distance > REACH].any()
    assert changed[(distance <= N - N // 2) & ~measured].all()
    assert changed.sum() < GRID.n_cells


def test_the_number_of_measurements_far_away_changes_nothing_either() -> None:
    far = [visit((0, col), 0.5) for col in range(13)]
    others = [visit((12, 6), 0.5), visit((14, 13), 0.1), visit((8, 8), 0.9)]
    for count in range(14):
        mean = expected([*far[:count], *NEAR, *others], period=4)
        assert torch.equal(mean[8:], expected([*NEAR, *others], period=4)[8:])


def test_a_window_is_told_what_is_in_it_and_counts_as_the_tiling_says() -> None:
    items, mean = [*NEAR, visit((2, 3), 0.4), visit((15, 4), 0.9)], nearby(1)
    wanted = torch.zeros(20, 20)
    for number in range(mean.tiling.count):
        rows, cols = mean.tiling.box(number)
        i, j = divmod(number, len(mean.tiling.cols.starts))
        inside = [
            item
            for item in items
            if rows.start <= item.cell[0] < rows.stop and cols.start <= item.cell[1] < cols.stop
        ]
        said = SymmetricMean(GRID, 1)(MEMORY, Observations(GRID, inside))[0, 0]
        weight = np.outer(mean.tiling.rows.weights[i], mean.tiling.cols.weights[j])
        wanted[rows, cols] += torch.from_numpy(weight).float() * said[rows, cols]
    torch.testing.assert_close(mean(MEMORY, Observations(GRID, items))[0, 0], wanted)


def test_measured_cells_stay_as_they_were_measured() -> None:
    mean = nearby()(MEMORY, Observations(GRID, NEAR))[0, 0]
    low, high = GRID.range
    for item in NEAR:
        assert mean[item.cell] == pytest.approx(2 * (item.outcome - low) / (high - low) - 1)


def test_cells_of_several_pixels() -> None:
    grid = Grid(24, 48, cell=(2, 4))  # 12 x 12 cells
    told = [visit((6, 6), 0.6, grid)]
    before, after = (
        NearbyMean(grid, N, SymmetricMean(grid, 8))(Everywhere(), Observations(grid, items))[0, 0]
        for items in (told, [*told, visit((11, 11), 0.2, grid)])
    )
    changed = (before != after).numpy()
    assert changed[-4:, -8:].all()
    assert not changed[: 2 * (11 - REACH)].any()
    assert not changed[:, : 4 * (11 - REACH)].any()


@pytest.mark.parametrize(("views", "period"), [(8, 1), (8, 4)])
def test_a_mean_does_not_depend_on_what_was_asked_before(views: int, period: int) -> None:
    items = [visit(GRID.at(37 * i % 400), i % 3 / 2) for i in range(40)]
    kept, other = nearby(views, period), CountedDenoiser(Everywhere())
    asked = [(MEMORY, 12), (MEMORY, 30), (MEMORY, 13), (other, 13), (MEMORY, 14), (MEMORY, 0)]
    for denoiser, count in asked:
        for chance in (1.0, 0.7, 0.8):
            seen = Observations(GRID, items[:count], Detection(chance))
            assert torch.equal(kept(denoiser, seen), nearby(views, period)(denoiser, seen))


def test_windows_are_asked_again_only_where_something_was_measured() -> None:
    counted, mean = CountedDenoiser(MEMORY), nearby()
    windows = mean.tiling
    asked = [1]  # where nothing was measured all windows are one
    for count in range(1, 3):
        mean(counted, Observations(GRID, NEAR[:count]))
        asked.append(len(list(windows.near(NEAR[count - 1].cell))))
    assert counted.evaluations * 16 == 8 * sum(asked)
    assert sum(asked) < windows.count


def test_what_has_learnt_the_average_is_asked_for_windows_too() -> None:
    memory, average = CountedDenoiser(MEMORY), CountedDenoiser(MEMORY)
    mean = NearbyMean(GRID, N, SymmetricMean(GRID, 0, learnt=average))
    for count in range(3):
        mean(memory, Observations(GRID, NEAR[:count]))
    windows = [len(list(mean.tiling.near(item.cell))) for item in NEAR]
    assert (memory.evaluations * 16, average.evaluations * 16) == (8, 1 + sum(windows))


# -- as an option of the engine --------------------------------------------------------------


def policy(**options: object):  # type: ignore[no-untyped-def]
    return make_policy("em-ptdm", GRID, 60, memory=MEMORY, **options)


def test_the_engine_says_what_the_windows_expect_and_counts_their_evaluations() -> None:
    search = policy(context=N, h=False, guard=False)
    search.observe(NEAR)
    belief = search.believed().beliefs.memory
    wanted = NearbyMean(GRID, N, SymmetricMean(GRID, 0))
    counted = CountedDenoiser(MEMORY)
    means = [wanted(counted, Observations(GRID, NEAR[:n])) for n in (0, 2)]
    low, high = GRID.range
    content = np.clip(GRID.from_model(means[-1][0].numpy()), low, high)
    np.testing.assert_array_equal(belief.content, content)
    assert search.log.evaluations == counted.evaluations > 0


def test_the_default_is_the_whole_area() -> None:
    assert EmPtdmSettings().context == 0
    plain, named, near = policy(), policy(context=0), policy(context=N)
    for search in (plain, named, near):
        search.observe(NEAR)
    whole, same, windows = (s.believed().beliefs.memory.content for s in (plain, named, near))
    assert np.array_equal(whole, same)
    assert isinstance(plain.memory.posterior_mean, SymmetricMean)
    assert not np.allclose(whole, windows, atol=1e-3)


def test_a_search_goes_on_from_a_saved_state_as_if_nothing_had_happened() -> None:
    items = [visit(GRID.at(37 * i % 400), float(i % 3 == 0)) for i in range(24)]
    one, other = policy(context=N), policy(context=N)
    for item in items[:20]:
        one.observe([item])
    other.restore(Observations(GRID, items[:20]), one.state())
    for item in items[20:]:
        picks = [search.suggest()[0] for search in (one, other)]
        assert picks[0] == picks[1]
        assert np.array_equal(one.scores().probability, other.scores().probability)
        for search in (one, other):
            search.observe([item])


def test_it_stands_in_labels_and_reaches_the_engine() -> None:
    choice = PolicyChoice.parse("em-ptdm[context=12]", preset="default", prior="digits")
    assert choice.label == "em-ptdm[context=12]"
    assert dict(choice.options) == {"context": 12}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": 7}, "context=7: give .* at least 8, or 0 for the whole area"),
        ({"context": -1}, "context=-1: give"),
        ({"context": 12.5}, "context=12.5: give a whole number"),
        ({"context": 20}, "context=20: the area of 20 x 20 cells is not larger; give fewer"),
        ({"context": 12, "dreams": 2}, "context=12: dreams are .*; give dreams=0"),
        ({"context": 12, "preset": "thorough"}, "context=12: dreams are .*; give dreams=0"),
        ({"context": 12, "rule": "paper"}, "context=12: rule=paper .*; choose another rule"),
        ({"context": 12, "preset": "paper"}, "unknown option.* context"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        policy(**options)


def test_areas_that_are_computed_by_windows_are_refused() -> None:
    large = Grid(80, 80)
    with pytest.raises(InputError, match=r"context=12: .* 80 x 80 cells by windows; give windows="):
        make_policy("em-ptdm", large, 10, memory=MEMORY, context=12)
    make_policy("em-ptdm", large, 10, memory=MEMORY, context=12, windows=False)
