"""The Gaussian process: its posterior, its hyperparameters, its look-ahead, the policy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor

from engram import Grid, InputError, Observation, simulate
from engram.expected_finds import expected_finds
from engram.policies.gp import GaussianProcess
from engram.spatial import (
    MEAN,
    MEAN_SD,
    Hyperparameters,
    SpatialModel,
    last_refit,
)
from engram.tasks.balls import ball_task

FIXED = Hyperparameters(variance=0.3, length=2.5, noise=0.02)


def some_cells(grid: Grid, n: int, seed: int = 0) -> np.ndarray:
    index = np.random.default_rng(seed).permutation(grid.n_cells)[:n]
    return np.stack(np.divmod(index, grid.cols), axis=1)


def closed_form(grid: Grid, coords: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance of all cells for FIXED and nu = 1.5, by the book."""
    side = np.sqrt(grid.cell[0] * grid.cell[1])
    every = np.stack(np.divmod(np.arange(grid.n_cells), grid.cols), axis=1)
    places = every * np.array(grid.cell) / side
    scaled = np.sqrt(3) * np.linalg.norm(places[:, None] - places[None], axis=2) / FIXED.length
    cov = FIXED.variance * (1 + scaled) * np.exp(-scaled) + MEAN_SD**2
    index = coords[:, 0] * grid.cols + coords[:, 1]
    gain = np.linalg.solve(
        cov[np.ix_(index, index)] + FIXED.noise * np.eye(len(index)), cov[index]
    ).T
    return MEAN + gain @ (y - MEAN), cov - gain @ cov[index]


@pytest.mark.parametrize("grid", [Grid(9, 7), Grid(12, 10, cell=(4, 1)), Grid(1, 20)])
def test_the_posterior_is_the_closed_form(grid: Grid) -> None:
    coords = some_cells(grid, 17)
    y = np.random.default_rng(1).random(17)
    model = SpatialModel(grid, hyperparameters=FIXED).fit(coords, y)
    mean, sd = model.predict()
    exact, cov = closed_form(grid, coords, y)
    assert mean == pytest.approx(exact, abs=1e-9)
    assert sd == pytest.approx(np.sqrt(np.diag(cov)), abs=1e-7)
    assert model.hyperparameters == FIXED
    cells = np.array([0, 5, 11])
    expected = cov[cells] / (np.diag(cov)[cells] + FIXED.noise)[:, None]
    assert model.response(cells) == pytest.approx(expected, abs=1e-8)


def test_the_response_is_what_the_next_measurement_does() -> None:
    grid = Grid(8, 8)
    coords, y = some_cells(grid, 12), np.random.default_rng(2).random(12)
    model = SpatialModel(grid, hyperparameters=FIXED).fit(coords[:-1], y[:-1])
    before, _ = model.predict()
    cell = int(coords[-1] @ [8, 1])
    step = model.response(np.array([cell]))[0]
    after, _ = model.fit(coords, y).predict()
    assert after == pytest.approx(before + step * (y[-1] - before[cell]), abs=1e-9)


def test_one_by_one_and_all_at_once_are_the_same_to_the_last_bit() -> None:
    task = ball_task(3)
    coords = some_cells(task.grid, 33)
    y = task.outcomes[coords @ [32, 1]]
    growing = SpatialModel(task.grid)
    for n in range(1, 34):
        growing.fit(coords[:n], y[:n])
    whole = SpatialModel(task.grid).fit(coords, y)
    assert growing.hyperparameters == whole.hyperparameters
    for one, other in zip(growing.predict(), whole.predict(), strict=True):
        assert np.array_equal(one, other)


def test_a_corrected_or_withdrawn_outcome_is_taken_in() -> None:
    grid = Grid(10, 10)
    coords, y = some_cells(grid, 14), np.tile([0.0, 1.0], 7)
    corrected = y.copy()
    corrected[12] = 1.0
    model = SpatialModel(grid).fit(coords, y)
    for cells, values in ((coords, corrected), (coords[:9], y[:9]), (coords[1:], y[1:])):
        fresh = SpatialModel(grid).fit(cells, values)
        assert np.array_equal(model.fit(cells, values).predict(), fresh.predict())


def test_the_length_follows_the_data() -> None:
    grid = Grid(24, 24)
    rows, cols = np.mgrid[0:24, 0:24]
    smooth = (np.sin(rows / 6) * np.sin(cols / 6) > 0.3).astype(float)
    rough = ((rows // 2 + cols // 2) % 2).astype(float)
    coords = some_cells(grid, 120)
    lengths = [
        SpatialModel(grid).fit(coords, field[tuple(coords.T)]).hyperparameters.length
        for field in (smooth, rough)
    ]
    assert lengths[0] > 2 * lengths[1]


def test_predictions_on_a_ball_task_beat_the_base_rate_by_far() -> None:
    task = ball_task(2)
    coords = some_cells(task.grid, 200)
    truth = task.outcomes
    p = SpatialModel(task.grid).fit(coords, truth[coords @ [32, 1]]).probability()
    rest = np.setdiff1d(np.arange(1024), coords @ [32, 1])
    error = ((p - truth) ** 2)[rest].mean()
    assert error < 0.5 * truth[rest].var()


def test_a_share_of_target_is_a_cell_with_target() -> None:
    grid = Grid(8, 8)
    coords, y = some_cells(grid, 30), np.tile([0.0, 0.2, 0.4], 10)
    model = SpatialModel(grid).fit(coords, y)
    mean, _ = model.predict()
    assert model.probability() == pytest.approx(np.clip(mean * (20 + 1) / (6 + 1), 0, 1))
    yes_or_no = SpatialModel(grid).fit(coords, (y > 0).astype(float))
    assert yes_or_no.probability() == pytest.approx(np.clip(yes_or_no.predict()[0], 0, 1))


@pytest.mark.parametrize("outcome", [0.0, 1.0, 0.3])
@pytest.mark.parametrize("n", [0, 1, 6, 40])
def test_no_one_or_equal_outcomes_are_no_trouble(n: int, outcome: float) -> None:
    grid = Grid(8, 8)
    model = SpatialModel(grid).fit(some_cells(grid, n), np.full(n, outcome))
    mean, sd = model.predict()
    p = model.probability()
    assert np.isfinite(mean).all()
    assert (sd >= 0).all()
    assert ((p >= 0) & (p <= 1)).all()
    if n == 40:
        assert p == pytest.approx(float(outcome > 0), abs=0.25)


def test_a_single_cell_is_an_area_too() -> None:
    model = SpatialModel(Grid(1, 1)).fit([[0, 0]], [1.0])
    assert model.probability()[0] > 0.5


def test_wrong_input_is_named() -> None:
    model = SpatialModel(Grid(4, 4))
    with pytest.raises(InputError, match="2 cells but 1 outcomes"):
        model.fit([[0, 0], [1, 1]], [1.0])
    with pytest.raises(InputError, match="outside the grid"):
        model.fit([[4, 0]], [1.0])
    with pytest.raises(InputError, match="finite"):
        model.fit([[0, 0]], [np.nan])
    with pytest.raises(InputError, match="acquisition='best'"):
        GaussianProcess(Grid(4, 4), 3, acquisition="best")
    with pytest.raises(InputError, match="discount=2"):
        GaussianProcess(Grid(4, 4), 3, discount=2)


def test_refits_are_frequent_at_first_and_bounded_in_number() -> None:
    at = sorted({last_refit(n) for n in range(351)})
    assert at[:4] == [0, 5, 10, 15]
    assert len(at) <= 32
    assert all(last_refit(n) == n for n in at)


@pytest.mark.parametrize("discount", [1.0, 0.6, 0.0])
def test_look_ahead_is_the_sum_over_both_outcomes(discount: float) -> None:
    rng = np.random.default_rng(4)
    n, left = 7, 4
    mean, response = rng.uniform(-0.1, 1.1, n), rng.normal(0, 0.4, (3, n))
    available = np.array([True, True, False, True, True, True, True])
    cells = np.array([0, 3, 5])
    total = expected_finds(mean, response, cells, available, left, discount)
    for row, x in zip(response, cells, strict=True):
        p = np.clip(mean[x], 0, 1)
        value = p
        for y, chance in ((1, p), (0, 1 - p)):
            after = np.clip(mean + row * (y - mean[x]), 0, 1)
            others = [after[z] for z in np.flatnonzero(available) if z != x]
            value += discount * chance * sum(sorted(others)[::-1][: left - 1])
        assert total[x] == pytest.approx(value)
    known = np.clip(mean, 0, 1)
    others = sorted((known[z] for z in np.flatnonzero(available) if z != 1), reverse=True)
    assert total[1] == pytest.approx(known[1] + discount * sum(others[: left - 1]))


def test_with_one_measurement_left_the_most_probable_cell_is_best() -> None:
    mean = np.array([0.2, 0.9, 0.4])
    total = expected_finds(mean, np.zeros((1, 3)), np.array([0]), np.ones(3, bool), 1)
    assert total.tolist() == mean.tolist()


@pytest.mark.parametrize("acquisition", ["lookahead", "ucb", "probability"])
def test_the_policy_finds_far_more_than_chance(acquisition: str) -> None:
    task = ball_task(1)
    trace = simulate(GaussianProcess(task.grid, 80, acquisition=acquisition), task)
    assert len(set(trace.cells)) == 80
    assert trace.found > 1.6 * 80 * task.targets / task.grid.n_cells


@pytest.mark.parametrize(("acquisition", "bonus"), [("ucb", 0.5), ("ucb", 2.0), ("probability", 0)])
def test_every_acquisition_ranks_by_its_formula(acquisition: str, bonus: float) -> None:
    policy = GaussianProcess(Grid(6, 6), 9, acquisition=acquisition, bonus=bonus)
    policy.observe([Observation((2, 2), np.ones((1, 1, 1), np.float32), 0.4)])
    mean, sd = policy.process.model.fit([(2, 2)], [0.4]).predict()
    assert policy.current_scores().total == pytest.approx(mean + bonus * sd, abs=1e-7)


def test_closed_cells_are_respected_and_the_whole_area_can_be_searched() -> None:
    closed = np.zeros((8, 8), bool)
    closed[:, 3] = True
    base = ball_task(0)
    grid = Grid(32, 32, cell=(4, 4), closed=closed)
    task = type(base)("coarse", grid, base.content, base.target)
    trace = simulate(GaussianProcess(grid, 56), task)
    assert sorted(grid.index(c) for c in trace.cells) == grid.open_cells.tolist()


def test_same_seed_same_cells_and_another_seed_others() -> None:
    task = ball_task(5)
    one, two, other = (simulate(GaussianProcess(task.grid, 25, s), task).cells for s in (1, 1, 2))
    assert one == two
    assert one != other


def test_a_restored_policy_goes_on_where_it_was() -> None:
    task = ball_task(6)
    policy = GaussianProcess(task.grid, 30, 3)
    for _ in range(17):
        policy.observe(task.measure(policy.suggest()[0].cell))
    resumed = GaussianProcess(task.grid, 30, 3)
    resumed.restore(policy.observations, policy.state())
    assert resumed.suggest(3) == policy.suggest(3)


def test_the_terms_of_a_score() -> None:
    policy = GaussianProcess(Grid(10, 10), 20)
    policy.observe([Observation((2, 2), np.ones((1, 1, 1), np.float32), 0.4)])
    scores = policy.current_scores()
    mean, sd = policy.process.model.predict()
    assert np.array_equal(scores.doubt, sd)
    assert not scores.exploration.any()  # that is Eq. 9, of particles
    assert np.array_equal(scores.exploitation, scores.probability)
    assert scores.probability == pytest.approx(np.clip(mean / 0.7, 0, 1))
    cells = np.arange(1, 100)  # as many as are looked ahead from do not matter to the rest
    response, available = policy.process.model.response(cells), policy.observations.available
    exact = expected_finds(mean, response, cells, available, 19, 0.6)
    best = int(np.argmax(scores.total))
    assert scores.total[best] == pytest.approx(exact[best], abs=1e-6)


@pytest.mark.parametrize("count", [1, 5, 60])
def test_the_evidence_of_the_usual_kernel_is_scikit_learns(count: int) -> None:
    grid, rng = Grid(20, 14, cell=(2, 1)), np.random.default_rng(count)
    model = SpatialModel(grid)
    index = rng.choice(grid.n_cells, count, replace=False)
    values = rng.random(count) - 0.2
    known = GaussianProcessRegressor(model._kernel(model.start), optimizer=None)
    known.fit(grid.geometry.places(index), values)
    ours = model._evidence(index, values)
    for _ in range(5):
        theta = rng.uniform(*model._bounds.T)
        value, slope = known.log_marginal_likelihood(theta, eval_gradient=True)
        found = ours(theta)
        assert found[0] == pytest.approx(value, rel=1e-9)
        assert found[1] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_terms_are_learnt_again_from_other_measurements() -> None:
    grid = Grid(6, 6)
    index, values = np.array([0, 1, 2, 7, 8, 20, 30]), np.array([1.0, 1, 1, 1, 0, 0, 0])
    model = SpatialModel(grid)
    first = model.learnt(index, values)
    assert model.learnt(index, values) is first
    others = (model.learnt(index, 1 - values), model.learnt(index + 5, values))
    assert others == tuple(
        SpatialModel(grid).learnt(*a) for a in ((index, 1 - values), (index + 5, values))
    )
    assert len({first, *others}) == 3
    assert (
        model.learnt(index, values, 0.3) == SpatialModel(grid).learnt(index, values, 0.3) != first
    )
