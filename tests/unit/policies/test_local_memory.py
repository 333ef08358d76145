"""Memory, h and rule of a large area: windows, blended, computed again only where measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.ndimage import convolve
from torch import Tensor

from engram import Grid, Observation, make_policy
from engram.blocks import Field
from engram.detection import weight_of
from engram.memory.denoiser import CosineSchedule, Estimate, Known
from engram.memory.permanent import PermanentMemory
from engram.observation import Observations
from engram.policies.emptdm import EmPtdm
from engram.policies.imagination import measurements_of
from engram.policies.local import terms
from engram.policies.local.memory import LocalMemory
from engram.policies.local.rings import Rings
from engram.policies.local.windows import computed_by
from engram.policies.outcome_h import OutcomeTransform
from engram.policies.spread import spread_blocks
from engram.policies.views import expected_image
from engram.testing import tiny_memory

GRID = Grid(80, 66)


class Spreading(torch.nn.Module):
    """Expects of a cell the weighted mean of what was measured within five cells, 0 elsewhere: a
    memory that is local, so that windows say what the whole would say."""

    schedule = CosineSchedule()
    conditioned = True

    def estimate(self, x_t: Tensor, t: Tensor, known: Known | None = None) -> Estimate:
        assert known is not None
        known = known.expand(len(x_t))
        kernel = torch.ones(1, 1, 11, 11)
        near = torch.nn.functional.conv2d(known.values * known.weight, kernel, padding=5)
        count = torch.nn.functional.conv2d(known.weight, kernel, padding=5)
        return Estimate(x0=near / (1 + count), eps=torch.zeros_like(x_t))


def local_memory(size: int = 32) -> PermanentMemory:
    card = tiny_memory(1, conditioned=True).card
    from dataclasses import replace

    return PermanentMemory(Spreading(), replace(card, height=size, width=size))


def policy(grid: Grid = GRID, **options: Any) -> EmPtdm:
    made = make_policy("em-ptdm", grid, 60, memory=options.pop("memory", local_memory()), **options)
    assert isinstance(made, EmPtdm)
    return made


def items(count: int, grid: Grid = GRID, seed: int = 0) -> list[Observation]:
    rng = np.random.default_rng(seed)
    cells = rng.choice(grid.n_cells, count, replace=False)
    out = []
    for index in cells.tolist():
        y = float(grid.at(index)[0] % 10 < 4)
        out.append(Observation.checked(grid, grid.at(index), y, y))
    return out


def test_windows_of_a_local_memory_say_what_the_whole_would_say() -> None:
    own = policy()
    seen = items(50)
    own.observe(seen)
    content = own.believed().beliefs.memory.image()  # type: ignore[attr-defined]
    observations = Observations(GRID, seen)
    whole = expected_image(
        Spreading(),
        measurements_of(observations),
        np.zeros(GRID.n_cells, bool),
        GRID,
        1,  # type: ignore[arg-type]
    )[0].numpy()
    middle = (slice(None), slice(5, -5), slice(5, -5))
    # windows fade to nothing five cells from their ends but for a few parts in a hundred
    assert np.abs(content - whole)[middle].max() < 0.15
    assert np.abs(content - whole)[middle].mean() < 0.01
    cells = tuple(np.array([o.cell for o in seen]).T)
    np.testing.assert_allclose(content[0][cells], whole[0][cells], atol=1e-6)


def test_windows_are_computed_once_and_again_where_something_was_measured() -> None:
    own = policy()
    memory = own.memory
    assert isinstance(memory, LocalMemory)
    own.suggest()
    assert memory.frozen.evaluations == 4 / 16  # all empty windows are one
    own.observe(Observation.checked(GRID, (40, 33), 1.0, 1.0))
    own.suggest()
    assert memory.frozen.evaluations == (1 + 4) * 4 / 16
    own.suggest(3)
    assert memory.frozen.evaluations == (1 + 4) * 4 / 16
    own.observe(Observation.checked(GRID, (0, 0), 0.0, 0.0))
    own.suggest()
    assert memory.frozen.evaluations == (1 + 4 + 1) * 4 / 16
    assert set(memory.windows.means) == {
        *memory.windows.tiling.near((40, 33)),
        *memory.windows.tiling.near((0, 0)),
    }


def beliefs(own: EmPtdm) -> list[np.ndarray]:
    found = own.believed().beliefs
    parts = (found.memory.probability, found.memory.own, found.mixed.probability, found.mixed.doubt)
    return [np.asarray(part) for part in parts]


def fresh_beliefs(own: EmPtdm, seen: list[Observation]) -> list[np.ndarray]:
    """What a policy believes that learnt the same and computes everything anew."""
    other = policy()
    other.restore(Observations(GRID, seen), own.state())
    other.memory.windows.ready = {}  # type: ignore[attr-defined]
    return beliefs(other)


def test_what_is_kept_is_what_would_be_computed_anew() -> None:
    own, seen = policy(), items(45)
    for item in seen:
        own.suggest()
        own.observe(item)
    for got, want in zip(beliefs(own), fresh_beliefs(own, seen), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_restored_search_goes_on_without_computing_windows_again() -> None:
    own, seen = policy(), items(12)
    for item in seen:
        own.suggest()
        own.observe(item)
    other = policy()
    other.restore(Observations(GRID, seen), own.state())
    assert [p.cell for p in other.suggest(3)] == [p.cell for p in own.suggest(3)]
    memory = other.memory
    late = set(memory.windows.tiling.near(seen[-1].cell))  # type: ignore[attr-defined]
    assert memory.evaluations == (1 + len(late)) * 4 / 16
    for got, want in zip(beliefs(other), beliefs(own), strict=True):
        np.testing.assert_array_equal(got, want)


def test_rings_are_those_of_the_whole_area() -> None:
    layout = spread_blocks(GRID, 16, 0)
    kernels = OutcomeTransform(GRID).kernels
    rings, rng = Rings(layout, kernels), np.random.default_rng(2)
    cells = rng.choice(GRID.n_cells, 40, replace=False).tolist()
    worth = dict(zip(cells, rng.choice([1.0, -1.0, 0.4, -0.7], 40).tolist(), strict=True))
    rings.tell(worth)
    worth[cells[3]] = -0.9  # a further visit
    touched = rings.tell({cells[3]: -0.9})
    tables = [np.zeros(GRID.n_cells), np.zeros(GRID.n_cells)]
    for cell, w in worth.items():
        tables[w < 0][cell] = abs(w)
    want = [
        convolve(table.reshape(80, 66), kernel, mode="constant").ravel()
        for kernel in kernels
        for table in tables
    ]
    for block in range(layout.count):
        for got, whole in zip(rings.of(block), want, strict=True):
            np.testing.assert_allclose(got, layout.taken(block, whole), atol=1e-12)
    assert layout.find(cells[3])[0] in touched
    assert len(touched) <= 4


def test_h_sees_what_it_would_see_in_the_whole_area() -> None:
    own, seen = policy(), items(30)
    own.observe(seen)
    belief = own.believed().beliefs
    memory = own.memory
    whole = memory.transient.features(
        np.asarray(belief.memory.own),
        tuple(np.asarray(one) for one in belief.process.others),  # type: ignore[arg-type]
        Observations(GRID, seen),
    )
    for index in (0, 700, 2222, GRID.n_cells - 1):
        np.testing.assert_allclose(belief.memory.features[index], whole[index], atol=1e-9)
    want = memory.transient.apply(whole)
    np.testing.assert_allclose(np.asarray(belief.memory.probability), want, atol=1e-9)
    tilt = own.believed().tilt
    assert tilt is not None
    assert tilt[700] == pytest.approx(want[700] - float(belief.memory.own[700]))


def test_misses_leave_doubt_in_a_large_area_too() -> None:
    own = policy(detection=0.6)
    target, blank = (20, 20), (60, 40)
    own.observe(Observation.checked(GRID, target, 1.0, 1.0))
    before = float(own.scores().probability[GRID.index(blank)])
    own.observe(Observation.checked(GRID, blank, 0.0, 0.0))
    once = float(own.scores().probability[GRID.index(blank)])
    own.observe(Observation.checked(GRID, blank, 0.0, 0.0))
    twice = float(own.scores().probability[GRID.index(blank)])
    assert before > once > twice > 0
    assert own.observations.available[GRID.index(blank)]
    worth = own.memory.rings._known[GRID.index(blank)]  # type: ignore[attr-defined]
    assert worth == pytest.approx(-float(weight_of(2 * np.log(0.4))))
    own.suggest(2)


def test_the_answer_is_the_best_of_the_whole_area() -> None:
    own = policy()
    for item in items(25):
        own.observe(item)
    answer = own.current()
    total = answer.scores.total
    assert isinstance(total, Field)
    free = own.observations.available
    best = own.suggest()[0]
    assert GRID.index(best.cell) == np.flatnonzero(free)[np.argmax(total.dense[free])]
    assert best.terms["probability"] == answer.scores.probability[GRID.index(best.cell)]


def test_particles_are_drawn_for_small_windows_whatever_the_memory_sees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terms, "LOOKED", 4)
    own = policy(memory=tiny_memory(1, conditioned=True), particles=2, steps=1)
    own.observe(items(9))
    imagined = own.believed().beliefs.imagined
    assert isinstance(imagined, terms.WindowImagined)
    number = imagined.tiling.home((40, 33))
    assert imagined.particles(number).shape == (2, 1, 4, 4)
    rows, cols = imagined.tiling.box(number)
    found = imagined.terms().reward[GRID.index((40, 33))]
    assert found == imagined.of(number).reward[(40 - rows.start) * 4 + 33 - cols.start]


@pytest.mark.parametrize("changed", ["h", "reward"])
def test_what_concerns_all_cells_changes_all(changed: str) -> None:
    """As if all blocks were computed anew."""
    own, again, before = policy(), policy(), policy()
    for one in (own, again, before):
        one.observe(items(30))
        one.suggest()
    first = np.asarray(before.believed().beliefs.memory.probability)
    for one in (own, again):
        assert isinstance(one.memory, LocalMemory)
        if changed == "h":
            one.memory.transient.weights = one.memory.transient.weights + 0.1
        else:
            one.memory.reward.bias -= 0.1
        one._beliefs, one._answers = None, []
    again.memory._begin()  # type: ignore[attr-defined]
    kept, anew = (one.believed().beliefs.memory for one in (own, again))
    for name in ("probability", "own", "tilt"):
        np.testing.assert_array_equal(*(np.asarray(getattr(b, name)) for b in (kept, anew)))
    assert (np.asarray(kept.probability) != first).mean() > 0.9


def test_terms_and_pictures_are_there_when_somebody_looks() -> None:
    own = policy(memory=tiny_memory(1, conditioned=True), particles=2, steps=1)
    assert own.local
    own.observe(items(6))
    pick = own.suggest()[0]
    assert set(pick.terms) > {"exploration", "likelihood", "reward", "exploitation"}
    assert np.isfinite(list(pick.terms.values())).all()
    again = policy(memory=tiny_memory(1, conditioned=True), particles=2, steps=1)
    again.observe(items(6))
    other = again.suggest(2)[1]
    assert other.terms["exploration"] >= 0  # another window first
    assert again.suggest()[0].terms["exploration"] == pick.terms["exploration"]
    view = own.view()
    assert view.mean is not None
    assert view.mean.shape == (1, 80, 66)
    assert view.particles is None
    assert view.scores.exploration.shape == (GRID.n_cells,)


def test_small_areas_and_those_that_need_all_cells_are_seen_as_a_whole() -> None:
    assert not policy(Grid(64, 64)).local
    assert not policy(windows=False).local
    assert not policy(rule="paper", particles=2, steps=1).local
    assert not policy(base_rate=True).local
    assert not policy(Grid(80, 66), memory=local_memory(128)).local
    assert policy(Grid(65, 10)).local
    assert policy().local


def test_a_narrow_area_with_closed_cells_is_searched() -> None:
    closed = np.zeros((12, 90), bool)
    closed[:, :50] = True
    grid = Grid(12, 90, closed=closed)
    own = policy(grid)
    picks = own.suggest(5)
    assert all(p.cell[1] >= 50 for p in picks)
    own.observe([Observation.checked(grid, p.cell, 1.0, 1.0) for p in picks])
    assert own.suggest()[0].cell[1] >= 50


def test_where_windows_are_computed_changes_nothing() -> None:
    own, other = policy(), policy()
    batches: list[int] = []

    def elsewhere(see: Any, sights: Any) -> list[Any]:
        batches.append(len(sights))
        return [see(sight) for sight in reversed(sights)][::-1]

    for one in (own, other):
        one.observe(items(20))
    with computed_by(elsewhere):
        found = [p.cell for p in other.suggest(4)]
    assert max(batches) == 4
    batches.clear()
    assert [p.cell for p in own.suggest(4)] == found
    assert not batches  # what was said holds no longer
