"""The process of a large area: exact where its patches hold all measurements, smooth between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engram import Grid, Observation, make_policy
from engram.blocks import Field
from engram.expected_finds import expected_finds
from engram.observation import Observations
from engram.policies.local import lookahead
from engram.policies.local import process as local
from engram.policies.local.lookahead import LocalLookAhead, price_of
from engram.policies.local.patches import MORE, Patch, Terms
from engram.policies.local.process import LocalProcess, due
from engram.policies.process import ProcessForecaster
from engram.policies.ranking import Progress
from engram.policies.spread import spread_blocks
from engram.spatial import SpatialModel

GRID = Grid(96, 80)


def process(grid: Grid = GRID, side: int = 32) -> LocalProcess:
    return LocalProcess(grid, spread_blocks(grid, side, 0))


def told(cells: list[tuple[int, int]], grid: Grid = GRID, detection: Any = None) -> Observations:
    """Targets where the row and the column are both of one half of their eight."""
    seen = Observations(grid) if detection is None else Observations(grid, detection=detection)
    for row, col in cells:
        y = float(row % 8 < 4 and col % 8 < 4)
        seen.add(Observation.checked(grid, (row, col), y, y))
    return seen


def cluster(count: int, corner: tuple[int, int] = (20, 20), width: int = 9) -> list[Any]:
    rng = np.random.default_rng(1)
    places = rng.permutation(width * width)[:count]
    return [(corner[0] + int(i) // width, corner[1] + int(i) % width) for i in places]


def exact(observations: Observations, terms: Any) -> SpatialModel:
    model = SpatialModel(GRID, hyperparameters=terms)
    cells = np.array(observations.cells).reshape(-1, 2)
    return model.fit(cells, observations.outcomes, observations.factors)


@pytest.mark.parametrize("count", [0, 3, 12, 40])
def test_it_is_the_exact_process_where_patches_hold_all_measurements(count: int) -> None:
    seen, model = told(cluster(count)), process()
    belief = model.belief(seen)
    mean, sd = exact(seen, model.model.hyperparameters).predict()
    near = (slice(0, 32), slice(0, 32))  # every patch of these cells reaches the whole cluster
    np.testing.assert_allclose(
        np.asarray(belief.mean).reshape(96, 80)[near], mean.reshape(96, 80)[near], atol=1e-8
    )
    np.testing.assert_allclose(
        np.asarray(belief.doubt).reshape(96, 80)[near], sd.reshape(96, 80)[near], atol=1e-8
    )


def test_terms_are_those_of_the_exact_process_while_measurements_are_few() -> None:
    grid = Grid(66, 40)
    seen = told(cluster(30), grid)
    own = process(grid)
    own.belief(seen)
    whole = SpatialModel(grid, extent=local.EXTENT)
    whole.fit(np.array(seen.cells), seen.outcomes)
    assert own.model.hyperparameters == whole.hyperparameters


def test_it_does_not_matter_whether_measurements_came_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells = cluster(30) + cluster(25, (60, 50))
    one, seen = process(), Observations(GRID)
    for item in told(cells):
        seen.add(item)
        last = one.belief(seen)
    monkeypatch.setattr(local, "ROOM", 0)  # nothing is kept: every patch is made again
    once = process().belief(told(cells))
    for name in ("mean", "doubt", "probability"):
        assert np.array_equal(np.asarray(getattr(last, name)), np.asarray(getattr(once, name)))
    assert np.array_equal(last.counts, once.counts)


def test_a_belief_stays_what_it_was_and_fewer_measurements_are_understood() -> None:
    model, cells = process(), cluster(20)
    before = model.belief(told(cells[:9]))
    kept = np.asarray(before.mean).copy()
    after = model.belief(told(cells))
    fresh = process().belief(told(cells[:9]))
    assert np.array_equal(np.asarray(Field(before.mean.layout, before.mean.parts)), kept)  # type: ignore[attr-defined]
    assert not np.array_equal(np.asarray(after.mean), kept)
    assert np.array_equal(np.asarray(model.belief(told(cells[:9])).mean), np.asarray(fresh.mean))


def test_only_what_is_near_a_measurement_changes() -> None:
    model, seen = process(), told(cluster(6))
    before = model.belief(seen)
    seen.add(Observation.checked(GRID, (25, 32), 1.0, 1.0))
    after = model.belief(seen)
    changed = np.asarray(before.mean) != np.asarray(after.mean)
    rows, cols = np.nonzero(changed.reshape(96, 80))
    assert changed.reshape(96, 80)[25, 32]
    assert rows.max() < 25 + local.SIZE + local.MARGIN
    assert cols.max() < 32 + local.SIZE + local.MARGIN
    assert not changed.reshape(96, 80)[90:, 75:].any()


def test_no_seam_shows_where_patches_meet() -> None:
    rng = np.random.default_rng(0)
    cells = sorted({(int(r), int(c)) for r, c in rng.integers(0, 80, (90, 2))})
    belief = process().belief(told(cells))
    for name in ("mean", "doubt"):
        table = np.asarray(getattr(belief, name)).reshape(96, 80)
        steps = np.abs(np.diff(table, n=2, axis=0))
        free = np.ones((96, 80), bool)
        for row, col in cells:  # the process itself is sharp at its measurements
            free[max(row - 2, 0) : row + 3, max(col - 2, 0) : col + 3] = False
        ends = [n for start in (32, 40) for n in (start - 2, start - 1, start)]
        ends += [n for start in (56, 88) for n in (start - 2, start - 1, start)]
        at = np.zeros(94, bool)
        at[[n for n in ends if n < 94]] = True
        across, inside = steps[at][free[1:-1][at]], steps[~at][free[1:-1][~at]]
        assert np.quantile(across, 0.99) < 1.5 * np.quantile(inside, 0.99)


def test_the_nearest_of_many_measurements_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = cluster(60, (8, 8), 40)
    monkeypatch.setattr(local, "NEAREST", 20)
    model = process()
    model.belief(told(cells))
    number = model.tiling.number(0, 1)  # columns 24 to 79: a part of the cluster lies in its margin
    rows, _ = model.tiling.box(number)
    members = [i for i in model._members[number] if i < due(60)]
    inside = [i for i in members if rows.start <= cells[i][0] < rows.stop and cells[i][1] >= 24]
    kept = model._nearest(number, members)
    assert set(inside) <= set(kept)
    assert len(kept) == max(20, len(inside))


def test_misses_are_told_as_to_the_exact_process() -> None:
    from engram.detection import Detection

    seen, model = told(cluster(14), detection=Detection(0.7)), process()
    for cell in seen.cells[:4]:
        if not seen.settled[GRID.index(cell)]:
            seen.add(Observation.checked(GRID, cell, 0.0, 0.0))
    belief = model.belief(seen)
    whole = ProcessForecaster(GRID)
    whole.model = SpatialModel(GRID, hyperparameters=model.model.hyperparameters)
    truth = whole.belief(seen)
    near = np.zeros((96, 80), bool)
    near[:32, :32] = True
    share = model.model.chance_of(np.array([0.1]))  # outcomes are yes or no
    assert share == 0.1
    for got, want in (
        (belief.probability, truth.probability),
        (belief.others[0], truth.others[0]),
        (belief.others[1], truth.others[1]),
        (belief.mean, truth.mean),
    ):
        np.testing.assert_allclose(np.asarray(got)[near.ravel()], want[near.ravel()], atol=1e-7)


def test_the_look_ahead_is_that_of_the_whole_area_with_a_price() -> None:
    model, seen = process(), told(cluster(25))
    belief = model.belief(seen)
    progress = Progress.of(seen, 400)
    ranking = LocalLookAhead(0.6).order(belief, seen.available, progress)
    total = ranking.total
    assert isinstance(total, Field)
    cells = np.array([i for i in total.moved if GRID.at(i)[0] < 32 and GRID.at(i)[1] < 32])
    assert len(cells) > 5
    mean = np.asarray(belief.mean)
    responses = belief.response(cells)
    want = expected_finds(mean, responses, cells, seen.available, progress.left, 0.6)[cells]
    got = np.array([total.moved[int(i)] for i in cells])
    price = price_of(belief.counts, progress.left - 1)
    p = np.clip(mean[seen.available], 0, 1)
    shared = np.sort(p)[::-1][: progress.left - 1].sum()
    slack = np.abs(price - np.sort(p)[::-1][progress.left - 1]) * progress.left
    assert np.all(got - (want - 0.6 * shared) > -1e-6 - slack)  # a bound from above
    assert np.corrcoef(got, want)[0, 1] > 0.99
    assert int(cells[np.argmax(got)]) == int(cells[np.argmax(want)])


def test_the_price_is_the_probability_of_the_last_cell_that_is_visited() -> None:
    counts = np.zeros(local.BINS, np.intp)
    counts[[51, 128, 255]] = 1000, 10, 5
    steps = local.BINS - 1
    assert price_of(counts, 5) == 255 / steps
    assert price_of(counts, 6) == 128 / steps
    assert price_of(counts, 16) == 51 / steps
    assert price_of(counts, 5000) == 0


def test_cells_around_which_nothing_is_known_share_their_value() -> None:
    grid = Grid(320, 320)
    policy = make_policy("gp", grid, 50)
    for cell in ((5, 5), (200, 200)):
        policy.observe(Observation.checked(grid, cell, 1.0, 1.0))
    total = policy.current_scores().total
    assert isinstance(total, Field)
    blank = [
        value
        for index, value in total.moved.items()
        if min(grid.at(index)) >= 80
        and max(grid.at(index)) < 308
        and np.hypot(*(np.array(grid.at(index)) - 200)) > 90
    ]
    assert len(blank) >= 3
    assert len(total.moved) <= lookahead.LIKELY + lookahead.DOUBTFUL
    assert np.ptp(blank) < 1e-6


@pytest.mark.parametrize("acquisition", ["lookahead", "ucb", "probability", "foraging"])
def test_every_acquisition_searches_a_large_area(acquisition: str) -> None:
    grid = Grid(70, 65)
    policy = make_policy("gp", grid, 30, acquisition=acquisition)
    for _ in range(6):
        pick = policy.suggest(2)
        policy.observe([Observation.checked(grid, p.cell, 1.0, 1.0) for p in pick])
    assert len({*policy.observations.cells}) == 12
    whole = make_policy("gp", grid, 30, acquisition=acquisition, windows=False)
    assert isinstance(whole.scores().total, np.ndarray)


def _parts(belief: Any) -> list[Any]:
    found = [np.asarray(getattr(belief, name)) for name in ("mean", "doubt", "probability")]
    return [*found, belief.counts]


def test_what_was_computed_is_gone_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = Grid(200, 180)
    cells = [*cluster(30), *cluster(30, (70, 50)), (190, 5)]
    late = [*cells, (40, 21), (41, 22)]
    assert due(len(late)) == due(len(cells))
    first, made = process(grid), set[int]()
    before, kept = _parts(first.belief(told(cells, grid))), first.state()
    after = _parts(first.belief(told(late, grid)))
    whole = LocalProcess._computed

    def noted(self: LocalProcess, number: int) -> Any:
        made.add(number)
        return whole(self, number)

    monkeypatch.setattr(LocalProcess, "_computed", noted)
    again, straight = process(grid), process(grid)
    again.restore(told(cells, grid), kept)
    _same(_parts(again.belief(told(cells, grid))), before)
    assert not made
    _same(_parts(again.belief(told(late, grid))), after)
    made.clear()
    straight.restore(told(late, grid), kept)
    _same(_parts(straight.belief(told(late, grid))), after)
    assert 0 < len(made) < len(straight._members)  # patches far from what is new are not needed


def _same(ours: list[Any], theirs: list[Any]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_was_computed_under_other_terms_is_not_gone_on_from() -> None:
    grid = Grid(200, 180)
    cells = cluster(30)
    more = [*cells, *cluster(20, (150, 150))]
    assert due(len(more)) > due(len(cells))
    first, again = process(grid), process(grid)
    first.belief(told(cells, grid))
    again.restore(told(more, grid), first.state())
    fresh = process(grid)
    _same(_parts(again.belief(told(more, grid))), _parts(fresh.belief(told(more, grid))))
    assert process().state() == {}


def test_a_patch_that_is_full_takes_little_more_room() -> None:
    """And says what one says that was told everything at once, which takes what it needs."""
    terms = Terms.of(SpatialModel(Grid(30, 30)), (14, 14), 8)
    cells = np.random.default_rng(3).permutation(30 * 30)[: 3 * MORE]
    rows, cols = np.divmod(cells, 30)
    values = (rows % 3 == 0).astype(float)
    grown = Patch(terms, rows[:MORE], cols[:MORE], values[:MORE])
    for place in zip(rows[MORE:].tolist(), cols[MORE:].tolist(), values[MORE:], strict=True):
        grown.append(*place)
    whole = Patch(terms, rows, cols, values)
    assert len(grown.scaled) == 3 * MORE
    assert grown.size == whole.size == len(cells) * (len(cells) + 14 * 14) * 8
    np.testing.assert_allclose(grown.mean, whole.mean, atol=1e-9)
    np.testing.assert_allclose(grown.var, whole.var, atol=1e-9)
