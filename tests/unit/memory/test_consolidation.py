"""Consolidation, collages and symmetries."""

from __future__ import annotations

import pytest
import torch

from engram import InputError
from engram.memory.collage import _filled, collages
from engram.memory.consolidation import ConsolidationPlan, _Lessons, consolidate, dream
from engram.symmetry import TURNS, turned, turned_back, views_back, views_of
from engram.testing import tiny_memory


def test_the_new_memory_knows_its_parent_and_the_old_one_stays() -> None:
    memory = tiny_memory(1, conditioned=True)
    shape = (6, 1, memory.card.height, memory.card.width)
    before = {k: v.clone() for k, v in memory.denoiser.state_dict().items()}
    plan = ConsolidationPlan(steps=6, batch=8, rehearsed=4)
    new = consolidate(memory, [torch.ones(shape)], plan, name="wiser")
    assert new.card.name == "wiser"
    assert new.card.parent == memory.card.sha256
    assert new.card.history[-1]["samples"] == 6
    for key, value in memory.denoiser.state_dict().items():
        assert torch.equal(value, before[key])
    changed = [k for k, v in new.denoiser.state_dict().items() if not torch.equal(v, before[k])]
    assert changed


def test_bright_lessons_make_brighter_dreams() -> None:
    memory = tiny_memory(1, conditioned=True)
    shape = (4, 1, memory.card.height, memory.card.width)
    plan = ConsolidationPlan(steps=60, batch=16, rehearsed=4, rehearsal=0.0, learning_rate=2e-3)
    new = consolidate(memory, [torch.ones(shape)], plan)
    assert dream(new, 4, seed=1, steps=4).mean() > dream(memory, 4, seed=1, steps=4).mean() + 0.2


def test_rehearsal_is_the_share_of_dreams() -> None:
    lessons, dreams = torch.ones(3, 1, 4, 4), -torch.ones(5, 1, 4, 4)
    for rehearsal in (0.0, 0.3, 1.0):
        source = _Lessons(lessons, dreams, ConsolidationPlan(rehearsal=rehearsal), ())
        images = source.draw(400, torch.Generator().manual_seed(0))
        assert images.shape == (400, 1, 4, 4)
        dreamt = (images == -1).flatten(1).all(dim=1).double().mean()
        assert float(dreamt) == pytest.approx(rehearsal, abs=0.07)


@pytest.mark.parametrize("shape", [(2, 3, 16, 16), (2, 1, 4, 4)])
def test_samples_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="posterior samples"):
        consolidate(tiny_memory(1, conditioned=True), [torch.zeros(shape)])
    with pytest.raises(InputError, match="at least one search"):
        consolidate(tiny_memory(1, conditioned=True), [])


def test_collages_stay_in_range_and_follow_the_seed() -> None:
    images = torch.rand(5, 1, 16, 16) * 2 - 1
    first = collages(images, 7, torch.Generator().manual_seed(3))
    assert first.shape == (7, 1, 16, 16)
    assert first.min() >= -1
    assert first.max() <= 1.001
    assert torch.equal(first, collages(images, 7, torch.Generator().manual_seed(3)))


def test_solid_copies_have_no_hole() -> None:
    image = torch.full((1, 1, 18, 24), -1.0)
    image[..., 5:12, 8:15] = 1.0
    ring = image.clone()
    ring[..., 7:10, 10:13] = -1.0
    assert torch.equal(_filled(ring), image)
    assert torch.equal(_filled(image), image)


def test_eight_different_turns_that_can_be_undone() -> None:
    image = torch.arange(12.0).reshape(1, 3, 4)
    seen = {tuple(turned(image, k).flatten().tolist()) for k in range(TURNS)}
    assert len(seen) == TURNS
    for k in range(TURNS):
        assert torch.equal(turned_back(turned(image, k), k), image)


def test_all_views_at_once_are_those_one_by_one() -> None:
    turns = (0, 3, 5, 6)
    image = torch.arange(50.0).reshape(1, 2, 5, 5)
    seen = views_of(image, turns)
    assert torch.equal(seen, torch.cat([turned(image, k) for k in turns]))
    assert torch.equal(views_back(seen, turns), image.expand(4, -1, -1, -1))
    assert torch.equal(views_of(seen, turns)[2], turned(seen[2], 5))


def test_lessons_come_from_searches_with_everything_measured() -> None:
    from engram import Grid, InputError, Task, make_policy
    from engram.experience import lessons_of, posterior_samples

    target = torch.zeros(8, 8, dtype=torch.bool)
    target[2:4, 3:6] = True
    task = Task("box", Grid(8, 8), target.numpy().astype("float32")[None], target.numpy())
    seen: list[tuple[int, float]] = []
    memory = tiny_memory(1)
    lessons = lessons_of(memory, [task, task], 10, progress=lambda n, sr: seen.append((n, sr)))
    assert [n for n, _ in seen] == [1, 2]
    assert all(lesson.shape[1:] == (1, 8, 8) for lesson in lessons)
    policy = make_policy("em-ptdm", task.grid, 64, memory=memory)
    policy.observe([task.measure(task.grid.at(i)) for i in range(64)])
    truth = torch.from_numpy(task.content) * 2 - 1
    assert torch.allclose(posterior_samples(policy).mean(dim=0), truth, atol=0.05)
    with pytest.raises(InputError, match="imagines nothing"):
        posterior_samples(make_policy("gp", task.grid, 5))
