"""Dreams: composed areas, and a copy of the memory that learns from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.ndimage import label

from engram import Grid, InputError, Observation, Observations, Task, make_policy
from engram.memory.denoiser import Known
from engram.memory.layers import LayerSet
from engram.memory.permanent import PermanentMemory
from engram.policies import dreaming, outlines
from engram.policies.base import Policy
from engram.policies.dreaming import DreamingForecaster
from engram.policies.dreams import DreamAreas, DreamPlan, learnt_from
from engram.policies.emptdm import EmPtdm
from engram.policies.imagination import DrawPlan
from engram.policies.lens import Lensed
from engram.policies.looks import Plain
from engram.policies.outlines import Mask, Outline, views
from engram.seeding import torch_generator
from engram.testing import tiny_memory

L = np.array([[1, 0], [1, 0], [1, 0], [1, 1]], bool)
GRID = Grid(16, 16)
FEW = DrawPlan(particles=3, steps=2, refresh_steps=1)


def outline(shape: Mask, unsure: float = 0.0) -> Outline:
    return Outline(shape, int(shape.sum()), unsure, False)


def dreams(*found: Outline, expected: float = 20, count: int = 200) -> Mask:
    areas = DreamAreas(list(found), expected, GRID)
    return np.asarray(areas.draw(count, torch_generator(0, "train")).numpy()[:, 0] > 0)


def test_a_dream_is_made_of_copies_of_what_was_found() -> None:
    allowed = {(v.shape, v.tobytes()) for v in views(L)}
    whole = 0
    for area in dreams(outline(L)):
        parts, count = label(area)
        for number in range(1, count + 1):
            rows, cols = np.nonzero(parts == number)
            inside = rows.min() > 0 and cols.min() > 0 and rows.max() < 15 and cols.max() < 15
            if len(rows) == L.sum() and inside:
                box = (parts == number)[rows.min() : rows.max() + 1, cols.min() : cols.max() + 1]
                assert (box.shape, box.tobytes()) in allowed
                whole += 1
    assert whole > 200


def test_as_much_target_is_dreamt_as_is_expected() -> None:
    few, many = (dreams(outline(L), expected=n).sum(axis=(1, 2)).mean() for n in (10, 30))
    assert 8 < few < 13
    assert 23 < many < 35


def test_things_are_turned_as_the_finds_are() -> None:
    def turned(*found: Outline) -> float:
        """Share of dreams with at least two ways round."""
        ways = []
        for area in dreams(*found):
            parts, count = label(area)
            boxes = [parts == n for n in range(1, count + 1)]
            tall = {int(np.ptp(np.nonzero(b)[0]) > np.ptp(np.nonzero(b)[1])) for b in boxes}
            ways.append(len(tall) > 1)
        return float(np.mean(ways))

    assert turned(outline(L), outline(L)) < 0.35
    assert turned(outline(L), outline(np.rot90(L))) > 0.6


def test_a_better_outlined_object_is_dreamt_of_more_often() -> None:
    bar = np.ones((1, 7), bool)
    cells = dreams(outline(L), outline(bar, unsure=40.0), expected=6).sum(axis=(1, 2))
    assert np.mean(cells % 5 == 0) > 0.8


def test_dreams_have_the_contents_that_were_measured() -> None:
    grid = Grid(8, 8, range=(0.0, 10.0))
    observations = Observations(grid)
    for k, (value, outcome) in enumerate([(2.0, 0.0), (4.0, 0.0), (9.0, 1.0)]):
        observations.add(Observation((0, k), np.full((1, 1, 1), value, np.float32), outcome))
    looks = Plain.of(observations)
    assert looks.blank == pytest.approx(-0.4)
    assert looks.target == pytest.approx(0.8)
    areas = DreamAreas([outline(L)], 10, grid, looks)
    drawn = areas.draw(3, torch_generator(0, "train"))
    assert np.unique(drawn.numpy()) == pytest.approx([-0.4, 0.8])
    assert drawn.shape == (3, 1, 8, 8)


def test_cells_of_several_pixels_are_dreamt_whole() -> None:
    areas = DreamAreas([outline(L)], 10, Grid(16, 24, cell=(2, 3)))
    drawn = areas.draw(5, torch_generator(0, "train")).numpy()[:, 0]
    blocks = drawn.reshape(5, 8, 2, 8, 3)
    assert (blocks == blocks[:, :, :1, :, :1]).all()
    assert (drawn > 0).any()


def test_nothing_outlined_is_refused() -> None:
    with pytest.raises(InputError, match="no outlined object"):
        DreamAreas([], 10, GRID)


def test_a_copy_learns_and_the_memory_stays_as_it_is() -> None:
    memory = tiny_memory(1, size=16)
    areas = DreamAreas([outline(L)], 20, GRID)
    held_out = areas.draw(16, torch_generator(1, "train"))
    before = {k: v.clone() for k, v in memory.network.state_dict().items()}
    plan = DreamPlan(steps=25, batch=12, learning_rate=2e-2)
    learnt, _ = learnt_from(memory, memory.network, areas, plan, 0, 40)

    def error(one: PermanentMemory) -> float:
        nothing = Known(torch.zeros_like(held_out), torch.zeros_like(held_out))
        guess = one.estimate(torch.zeros_like(held_out), torch.ones(16), nothing).x0
        return float((guess - held_out).square().mean())

    assert error(learnt) < 0.5 * error(memory)
    assert all(v.equal(before[k]) for k, v in memory.network.state_dict().items())
    again, _ = learnt_from(memory, memory.network, areas, plan, 0, 40)
    other, _ = learnt_from(memory, memory.network, areas, plan, 0, 41)
    assert error(again) == error(learnt) != error(other)


# -- in a search -------------------------------------------------------------------------------


def square_task() -> Task:
    target = np.zeros((12, 12), bool)
    target[2:5, 2:5] = target[7:10, 6:9] = True
    return Task("squares", Grid(12, 12), target[None].astype(np.float32), target)


@pytest.fixture
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engram.policies.emptdm_settings.FIRST_DREAM", 4)
    monkeypatch.setattr(outlines, "LEAST_FINDS", 1)
    monkeypatch.setattr(outlines, "LOOSE", 100.0)


def dreaming_policy(**options: Any) -> EmPtdm:
    given: dict[str, Any] = {"dreams": 4, "dream_steps": 2, **options}
    memory = tiny_memory(1, size=12)
    policy = make_policy("em-ptdm", square_task().grid, 30, memory=memory, draws=FEW, **given)
    assert isinstance(policy, EmPtdm)
    return policy


def searched(policy: Policy, task: Task, count: int) -> None:
    """Measure the targets first, then what the policy suggests."""
    cells = [(int(r), int(c)) for r, c in np.argwhere(task.outcomes.reshape(12, 12) > 0)]
    for k in range(count):
        cell = cells[k] if k < 9 else policy.suggest(1)[0].cell
        policy.observe([task.measure(cell)])


def dreams_of(policy: EmPtdm) -> list[dict[str, Any]]:
    return [update for update in policy.log.updates if "objects" in update]


@pytest.mark.usefixtures("_early")
def test_a_search_dreams_when_it_is_due_and_counts_what_that_cost() -> None:
    policy, plain = dreaming_policy(), dreaming_policy(dreams=0)
    for one in (policy, plain):
        searched(one, square_task(), 24)
    assert isinstance(policy.memory, DreamingForecaster)
    assert {update["t"] for update in dreams_of(policy)} <= policy.memory.due
    assert len(dreams_of(policy)) >= 2
    assert not dreams_of(plain)
    assert policy.log.evaluations > plain.log.evaluations


@pytest.mark.usefixtures("_early")
def test_a_memory_of_cells_dreams_of_what_it_saw() -> None:
    memory = tiny_memory(2, size=12)
    memory.card = replace(memory.card, layers=LayerSet(("density", "presence")))
    policy = make_policy(
        "em-ptdm", square_task().grid, 30, memory=memory, draws=FEW, dreams=4, dream_steps=2
    )
    searched(policy, square_task(), 24)
    assert isinstance(policy, Lensed)
    assert isinstance(policy.inner, EmPtdm)
    assert len(dreams_of(policy.inner)) >= 2
    assert isinstance(policy.inner.memory, DreamingForecaster)
    assert policy.inner.memory.copy is not None
    assert policy.inner.memory.weight > 0


@pytest.mark.usefixtures("_early")
def test_a_copy_that_predicts_worse_loses_its_say() -> None:
    policy = dreaming_policy()
    searched(policy, square_task(), 14)
    memory = policy.memory
    assert isinstance(memory, DreamingForecaster)
    memory._gains = []
    assert memory.weight == pytest.approx(1 / (1 + np.exp(-dreaming.FAVOUR)))
    memory._gains = [-1.0] * 8
    assert memory.weight < 0.01
    assert memory.imagining is memory.frozen
    belief = memory.belief(policy.observations)
    assert isinstance(belief, dreaming.DreamingBelief)
    assert np.allclose(belief.own, belief.permanent, atol=0.01)
    memory._gains = [1.0] * 8
    assert memory.imagining is memory.copy
    assert np.allclose(memory.belief(policy.observations).own, belief.dreaming, atol=0.01)


@pytest.mark.usefixtures("_early")
def test_gains_are_of_forecasts_made_before_the_outcome() -> None:
    policy, task = dreaming_policy(), square_task()
    searched(policy, task, 14)
    memory = policy.memory
    assert isinstance(memory, DreamingForecaster)
    (pick,) = policy.suggest(1)
    before, index = policy.believed().beliefs.memory, task.grid.index(pick.cell)
    assert isinstance(before, dreaming.DreamingBelief)
    policy.observe([task.measure(pick.cell)])
    hit = task.outcomes.ravel()[index] > 0
    told = [np.clip(p[index], 0.02, 0.98) for p in (before.dreaming, before.permanent)]
    ours, theirs = (np.log(p if hit else 1 - p) for p in told)
    assert memory._gains[-1] == pytest.approx(ours - theirs)


@pytest.mark.usefixtures("_early")
def test_a_dreaming_search_goes_on_where_it_was_put_away() -> None:
    task, whole = square_task(), dreaming_policy()
    searched(whole, task, 14)
    assert dreams_of(whole)
    parts = dreaming_policy()
    parts.restore(Observations(task.grid, whole.observations), whole.state())
    for _ in range(8):
        (pick,) = whole.suggest(1)
        assert parts.suggest(1) == [pick]
        for one in (whole, parts):
            one.observe([task.measure(pick.cell)])
    left, right = whole.state(), parts.state()
    assert left.keys() == right.keys()
    assert all(left[name].equal(right[name]) for name in left)
    assert any(name.startswith("dreaming/") for name in left)


def test_a_thorough_search_dreams_where_its_memory_can() -> None:
    task = square_task()
    thorough = make_policy("em-ptdm", task.grid, 30, memory=tiny_memory(1), preset="thorough")
    assert isinstance(thorough, EmPtdm)
    assert isinstance(thorough.memory, DreamingForecaster)
    cells = tiny_memory(2, size=12)
    cells.card = replace(cells.card, layers=LayerSet(("density", "presence")))
    awake = make_policy("em-ptdm", task.grid, 30, memory=cells, preset="thorough")
    assert isinstance(awake, Lensed)
    assert isinstance(awake.inner, EmPtdm)
    assert not awake.inner.settings.dreams
    colour = Grid(12, 12, channels=3)
    blind = make_policy("em-ptdm", colour, 30, memory=tiny_memory(3), preset="thorough")
    assert isinstance(blind, EmPtdm)
    assert not isinstance(blind.memory, DreamingForecaster)
    with pytest.raises(InputError, match=r"dreams=4: memory 'tiny' does not dream"):
        make_policy("em-ptdm", colour, 30, memory=tiny_memory(3), dreams=4)
    with pytest.raises(InputError, match="steps=0"):
        make_policy("em-ptdm", task.grid, 30, memory=tiny_memory(1), dreams=4, dream_steps=0)
