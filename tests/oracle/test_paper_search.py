r"""Algorithms 1 and 2 where the transient memory is known exactly.

The frozen memory believes in white noise, the area is a smooth field. The h that makes up the
difference is known (``ExactH``), gradient included, so a search with both memories has to
be, particle by particle, the search of DiffATD with a memory that knew the area all along.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engram import Grid, Task, make_policy
from engram.experience import posterior_samples
from engram.memory.denoiser import Known
from engram.memory.transient import CompositeDenoiser, Examples
from engram.observation import Observation, Observations
from engram.pacing import UpdateSchedule
from engram.policies.imagination import DrawPlan, measurements_of
from engram.policies.lessons import Lessons
from engram.policies.papersearch import PaperSearch
from engram.symmetry import TURNS, turned, turned_back
from engram.testing import Gaussian, exact_memory, squared_exponential

SIDE = 4
PIXELS = SIDE * SIDE
MEAN = np.linspace(-0.4, 0.4, PIXELS)
AREA = Gaussian(MEAN, 0.3 * squared_exponential(SIDE, SIDE, 1.2, nugget=0.05))
WALK = [(0, 0), (2, 1), (3, 3), (1, 2), (0, 3), (2, 2), (3, 0), (1, 0)]


class ExactH(nn.Module):
    """delta = (a x_t - E[x0 | x_t]) / s: what the area adds to white noise."""

    def forward(self, x_t: Tensor, x0: Tensor, t: Tensor, known: Known, signal: Tensor) -> Tensor:
        a, s = signal.flatten(1).double(), (1 - signal**2).sqrt().flatten(1).double()
        x = x_t.flatten(1).double()
        delta = (a * x - AREA.denoised(x, a, s)) / s.clamp_min(1e-6)
        return delta.to(x_t.dtype).reshape(x_t.shape)


def area() -> Task:
    """Dark pixels are target, so that a reward model has something to learn."""
    rng = np.random.default_rng(1)
    image = AREA.sample(1, rng)[0].clip(-1, 1).reshape(SIDE, SIDE)
    content = ((image + 1) / 2).astype(np.float32)[None]
    return Task("field", Grid(SIDE, SIDE), content, image < 0)


def search(name: str, prior: Gaussian, *, told: bool = False, **options: Any) -> PaperSearch:
    memory = exact_memory(prior, SIDE, SIDE, conditioned=told)
    grid = Grid(SIDE, SIDE)
    policy = make_policy(name, grid, 14, seed=2, memory=memory, preset="paper", **options)
    assert isinstance(policy, PaperSearch)
    return policy


def white(**options: Any) -> PaperSearch:
    chosen = {"schedule": UpdateSchedule(updates=0), **options}
    return search("em-ptdm", Gaussian(np.zeros(PIXELS), np.eye(PIXELS)), **chosen)


def with_exact_h(**options: Any) -> PaperSearch:
    policy = white(**options)
    policy.transient.body = ExactH()  # type: ignore[assignment]
    policy.transient.blank = False
    return policy


def few(guidance: str, **options: Any) -> DrawPlan:
    return DrawPlan(
        **{"particles": 6, "steps": 6, "trajectory": "fresh", **options}, guidance=guidance
    )


def particles_of(policy: PaperSearch) -> Tensor:
    policy.current_scores()
    particles = policy.imagination.particles
    assert particles is not None
    return particles


DRAWS = [
    pytest.param(few("dps"), id="dps"),
    pytest.param(few("mmps"), id="mmps"),
    pytest.param(few("dps", trajectory="warm", refresh_steps=3), id="dps-warm"),
    pytest.param(few("dps", trajectory="shared"), id="dps-shared"),
]


@pytest.mark.parametrize("draws", DRAWS)
def test_both_memories_search_like_one_that_knew_the_area(draws: DrawPlan) -> None:
    """h is used, with its sign, in the value and in the gradient that guidance takes."""
    task = area()
    together = with_exact_h(draws=draws, reward="affine")
    alone = search("diffatd", AREA, draws=draws, reward="affine")
    without = white(draws=draws, reward="affine")
    for cell in WALK[:5]:
        assert together.suggest()[0].cell == alone.suggest()[0].cell
        for policy in (together, alone, without):
            policy.observe(task.measure(cell))
    torch.testing.assert_close(particles_of(together), particles_of(alone), atol=2e-3, rtol=0)
    assert (particles_of(without) - particles_of(alone)).abs().max() > 0.3
    np.testing.assert_allclose(
        together.current_scores().total, alone.current_scores().total, rtol=2e-2, atol=0.1
    )
    torch.testing.assert_close(
        posterior_samples(together), posterior_samples(alone), atol=2e-3, rtol=0
    )


def test_the_reward_is_trained_after_every_measurement() -> None:
    task, policy = area(), white(draws=few("replacement"), reward="affine")
    for n, cell in enumerate(WALK, 1):
        policy.observe(task.measure(cell))
        seen = [task.measure(c) for c in WALK[:n]]
        x = np.array([2 * float(o.content[0, 0, 0]) - 1 for o in seen])
        design = np.vstack([np.column_stack([x, np.ones(n)]), np.sqrt(0.5) * np.eye(2)])
        wanted = np.append([o.outcome for o in seen], np.sqrt(0.5) * np.array([0.5, 0.5]))
        exact, *_ = np.linalg.lstsq(design, wanted, rcond=None)
        learnt = policy.reward.state()["weights"].numpy()
        np.testing.assert_allclose(learnt, exact, atol=1e-5)
    assert exact[0] < -0.2  # dark is target


class Recorded:
    """Stands in for the M-step: keeps what h would learn from."""

    def __init__(self, policy: PaperSearch) -> None:
        self.policy, self.calls = policy, []  # type: ignore[var-annotated]

    def __call__(
        self, permanent: Any, examples: Examples, plan: Any, *, seed: int, path: int
    ) -> Any:
        kept = replace(examples, weight=examples.weight.clone())
        self.calls.append((kept, path, self.policy.t, permanent))
        self.policy.transient.blank = False
        return [0.0]


def lessons(**options: Any) -> tuple[PaperSearch, list[Any]]:
    """A search of eight measurements, with updates due after three and six of them."""
    task = area()
    policy = white(draws=few("dps"), schedule=UpdateSchedule("uniform", every=3), **options)
    policy.transient.body = ExactH()  # type: ignore[assignment]
    recorded = Recorded(policy)
    policy.transient.adapt = recorded  # type: ignore[method-assign,assignment]
    for cell in WALK:
        policy.observe(task.measure(cell))
    return policy, recorded.calls


@pytest.mark.parametrize("lesson", ["posterior", "measured"])
def test_h_learns_from_draws_and_from_everything_measured(lesson: str) -> None:
    policy, calls = lessons(lesson=lesson)
    assert [(path, t) for _, path, t, _ in calls] == [(3, 3), (6, 6)]  # in time, each once
    for examples, due, _, permanent in calls:
        measurements = measurements_of(policy.observations.subset(range(due)))
        assert permanent is policy.frozen
        assert torch.equal(examples.known.values, measurements.known.values)
        assert torch.equal(examples.known.weight, measurements.mask)
        assert examples.known.weight.sum() == due
        off = (examples.x0 - measurements.values) * measurements.mask
        assert float(off.abs().max()) < 1e-6  # measured pixels are as they were measured
        assert (examples.x0 * (1 - measurements.mask)).std() > 0.2  # draws, not a blank
        weight = measurements.mask if lesson == "measured" else torch.ones_like(measurements.mask)
        assert torch.equal(examples.weight, weight)
        assert examples.anew is None


def test_joint_lessons_measure_every_draw_anew() -> None:
    _, calls = lessons(lesson="joint")
    examples, due, _, _ = calls[1]
    draws = torch.randn(200, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    x0, known, weight = examples.anew(draws, torch.Generator().manual_seed(1))
    assert torch.equal(x0, draws)
    assert torch.equal(weight, torch.ones_like(known.weight))
    counts = known.weight.sum(dim=(1, 2, 3))
    assert set(counts.tolist()) == set(range(1, due + 1))
    assert torch.equal(known.values, draws * known.weight)
    assert len({tuple(row) for row in known.weight.flatten(1).tolist()}) > 150


def test_lessons_of_the_prior_measure_the_memorys_draws_where_the_search_has_measured() -> None:
    """Joint draws of the permanent memory: its own areas, not those of this search."""
    policy, calls = lessons(lesson="prior")
    examples, due, _, _ = calls[1]
    assert examples.x0.shape == (64, 1, SIDE, SIDE)
    assert float(examples.x0.mean(dim=0).abs().max()) < 0.5  # a white memory: no trace of the area
    assert torch.equal(calls[0][0].x0, examples.x0)  # drawn once
    _, known, weight = examples.anew(examples.x0[:5], torch.Generator())
    mask = measurements_of(policy.observations.subset(range(due))).mask
    assert torch.equal(known.weight, mask.expand(5, -1, -1, -1))
    assert torch.equal(known.values, examples.x0[:5] * mask)
    assert torch.equal(weight, torch.ones_like(known.weight))


def test_prequential_lessons_tell_the_first_cells_and_ask_for_the_later_ones() -> None:
    policy, calls = lessons(lesson="prequential")
    examples, due, _, _ = calls[1]
    many = examples.x0.repeat(20, 1, 1, 1)
    _, known, weight = examples.anew(many, torch.Generator().manual_seed(1))
    order = [policy.grid.index(cell) for cell in WALK[:due]]
    seen = set()
    for told, asked in zip(known.weight.flatten(1), weight.flatten(1), strict=True):
        count = int(told.sum())
        seen.add(count)
        assert told[order].tolist() == [1.0] * count + [0.0] * (due - count)
        assert asked[order].tolist() == [0.0] * count + [1.0] * (due - count)
        assert int(asked.sum()) == due - count  # nothing that was never measured
    assert seen == set(range(due))
    truth = measurements_of(policy.observations).values
    assert float(((known.values - truth) * known.weight).abs().max()) < 1e-6


def test_lessons_in_hindsight_tell_the_first_cells_and_ask_for_all_that_is_known_now() -> None:
    """Every example under a symmetry of its own; what was never measured counts a little."""
    policy, calls = lessons(lesson="hindsight", imagined=0.1)
    examples, due, _, _ = calls[1]
    many = examples.x0[:1].repeat(600, 1, 1, 1)
    x0, known, weight = examples.anew(many, torch.Generator().manual_seed(1))
    measured = measurements_of(policy.observations.subset(range(due))).mask.flatten() > 0
    order = [policy.grid.index(cell) for cell in WALK[:due]]
    seen = set()
    for area, mask, values, counts in zip(x0, known.weight, known.values, weight, strict=True):
        turn = next(k for k in range(TURNS) if torch.equal(turned(examples.x0[0], k), area))
        told, asked = (turned_back(image, turn).flatten() for image in (mask, counts))
        assert torch.equal(values, area * mask)
        number = int(told.sum())
        assert told[order].tolist() == [1.0] * number + [0.0] * (due - number)
        assert torch.equal(asked, torch.where(measured, 1.0, 0.1))
        seen.add((turn, number))
    assert seen == {(k, n) for k in range(TURNS) for n in range(due + 1)}


def test_lessons_in_hindsight_leave_an_area_that_is_not_square_as_it_is() -> None:
    grid = Grid(3, 5)
    seen = Observations(grid, [Observation.checked(grid, (1, 4), 1.0, 1.0)])
    memory = exact_memory(Gaussian(np.zeros(15), np.eye(15)), 3, 5)
    draws = torch.randn(6, 1, 3, 5, generator=torch.Generator().manual_seed(0))
    made = Lessons("hindsight", memory, memory, 0, 0.1).examples(draws, seen)
    assert made.anew is not None
    x0, known, weight = made.anew(made.x0, torch.Generator().manual_seed(1))
    assert torch.equal(x0, made.x0)
    assert known.weight.shape == weight.shape == (6, 1, 3, 5)


def test_h_is_judged_by_what_both_forecast_of_the_next_outcomes() -> None:
    """The gain is the log-likelihood of each outcome with h less that of the memory alone, both
    from draws made before it was seen; before the first update they are the same draws."""
    task, schedule = area(), UpdateSchedule("uniform", every=3)
    policy = white(draws=few("mmps"), schedule=schedule, rollback=True, m_steps=2, reward="affine")
    expected = []
    for cell in WALK[:7]:
        policy.current_scores()
        q, item = policy.grid.index(cell), task.measure(cell)
        chances = []
        for imagination in (policy.imagination, policy._alone):
            assert imagination.particles is not None
            cells = imagination.cells(imagination.particles)[:, q]
            p = float(np.clip(policy.reward.predict(cells).mean(), 0.01, 0.99))
            chances.append(np.log(p if item.outcome > 0 else 1 - p))
        expected.append(chances[0] - chances[1])
        policy.observe(item)
    assert policy._gains == pytest.approx(expected)
    assert policy._gains[:3] == [0.0] * 3
    assert any(gain != 0 for gain in policy._gains[3:])


@pytest.mark.parametrize(("gain", "trusted"), [(-2.0, False), (-0.5, True), (3.0, True)])
def test_h_decides_only_while_it_predicts_no_worse_than_the_memory_alone(
    gain: float, trusted: bool
) -> None:
    task, schedule = area(), UpdateSchedule("uniform", every=3)
    policy = white(draws=few("mmps"), schedule=schedule, rollback=True, m_steps=2)
    for cell in WALK[:5]:
        policy.observe(task.measure(cell))
    policy._gains = [gain, *[0.0] * 39]
    used = policy.imagination if trusted else policy._alone
    scores = policy.scores()
    assert used.particles is not None
    shown = policy.view().particles
    assert shown is not None
    assert np.array_equal(shown, policy.imagination.in_range(used.particles))
    assert np.array_equal(scores.total, policy._score(used.particles, scores.alpha).total)
    assert isinstance(policy.composite(), CompositeDenoiser) == trusted
    policy._gains.append(0.0)  # older than forty outcomes: forgiven
    assert policy._trusted


def test_particles_that_see_the_area_turned_are_turned_back() -> None:
    """What was measured stands where it was measured, in every particle."""
    task = area()
    draws = few("amortised", particles=8, symmetries=True)
    policy = search("diffatd", AREA, draws=draws, told=True)
    for cell in WALK[:3]:
        policy.observe(task.measure(cell))
    particles = particles_of(policy).flatten(1)
    for cell in WALK[:3]:
        q = policy.grid.index(cell)
        exact = 2 * float(task.content[0][cell]) - 1
        assert particles[:, q].tolist() == pytest.approx([exact] * 8, abs=1e-5)


def test_a_shared_trajectory_goes_from_noise_to_the_area() -> None:
    """One reverse process for the whole search: at first nothing but the prior's mean is known of
    unmeasured pixels, in the end particles differ as draws of the area do."""
    task = area()
    policy = search("diffatd", AREA, draws=few("mmps", particles=64, trajectory="shared"))
    far = [q for q in range(PIXELS) if policy.grid.at(q) not in WALK]
    start = particles_of(policy).flatten(1)
    assert start.mean(dim=0).tolist() == pytest.approx(MEAN.tolist(), abs=0.05)
    assert float(start.std(dim=0).max()) < 0.05
    for cell in WALK:
        policy.observe(task.measure(cell))
        particles_of(policy)
    for q in far[:5]:
        policy.observe(task.measure(policy.grid.at(q)))
        particles_of(policy)
    spread = particles_of(policy).flatten(1).std(dim=0)[far[5:]]
    measured = policy.observations.measured
    doubt = np.sqrt(np.diag(AREA.given(np.zeros(PIXELS), np.full(PIXELS, 1e-4), measured).cov))
    assert 0.7 < float(spread.mean()) / doubt[far[5:]].mean() < 1.3
