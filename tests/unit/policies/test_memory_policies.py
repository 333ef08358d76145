"""Greedy, DiffATD and EM-PTDM: determinism, updates, state, options."""

from __future__ import annotations

import numpy as np
import pytest

from engram import Grid, InputError, Task, ball_task, make_policy, simulate
from engram.memory.permanent import PermanentMemory
from engram.observation import Observations
from engram.pacing import UpdateSchedule
from engram.policies.base import Policy
from engram.policies.emptdm import EmPtdm
from engram.policies.imagination import DrawPlan
from engram.policies.papersearch import PaperSearch
from engram.testing import tiny_memory

FEW = DrawPlan(particles=4, steps=2, refresh_steps=1)
PAPER_FEW = DrawPlan(particles=4, guidance="dps", steps=3, trajectory="fresh")
SCHEDULE = UpdateSchedule(kind="uniform", every=6)


@pytest.fixture(scope="module")
def memory() -> PermanentMemory:
    return tiny_memory(1, conditioned=True)


def _small_task() -> Task:
    target = np.zeros((12, 12), bool)
    target[3:7, 4:8] = True
    return Task("square", Grid(12, 12), target[None].astype(np.float32), target)


def _policy(name: str, memory: PermanentMemory, budget: int = 20, seed: int = 0) -> Policy:
    options: dict[str, object] = {"draws": FEW}
    if name == "em-ptdm":
        options["schedule"] = SCHEDULE
    return make_policy(name, _small_task().grid, budget, seed=seed, memory=memory, **options)


@pytest.mark.parametrize("name", ["greedy", "diffatd", "em-ptdm"])
def test_same_seed_same_trace(name: str, memory: PermanentMemory) -> None:
    first = simulate(_policy(name, memory), _small_task(), snapshots=[0, 10, 20])
    second = simulate(_policy(name, memory), _small_task())
    assert first.cells == second.cells
    assert first.evidence == second.evidence
    assert len(set(first.cells)) == 20
    assert [s.t for s in first.snapshots] == [0, 10, 20]
    particles = first.snapshots[-1].view.particles
    assert particles is not None
    assert particles.shape == (4, 1, 12, 12)
    assert len(first.distances()) == 3


def test_measured_cells_are_reproduced(memory: PermanentMemory) -> None:
    policy = _policy("diffatd", memory)
    simulate(policy, _small_task())
    particles = policy.view().particles
    assert particles is not None
    seen = policy.observations.mask > 0
    assert np.allclose(particles[:, 0, seen], policy.observations.values[0][seen], atol=1e-5)


@pytest.mark.parametrize("rollback", [False, True])
@pytest.mark.parametrize("lesson", ["posterior", "measured", "joint", "prequential", "hindsight"])
def test_the_paper_preset_adapts_h_and_notes_it(
    memory: PermanentMemory, lesson: str, rollback: bool
) -> None:
    policy = make_policy(
        "em-ptdm",
        _small_task().grid,
        20,
        memory=memory,
        preset="paper",
        draws=PAPER_FEW,
        schedule=SCHEDULE,
        m_steps=3,
        lesson=lesson,
        rollback=rollback,
    )
    trace = simulate(policy, _small_task())
    assert [u["t"] for u in trace.updates] == [6, 12, 18]
    for update in trace.updates:
        assert update["accepted"] == (update["gain"] >= -1.0 if rollback else True)
    draws = 20 + (14 if rollback else 0)  # from the first update on, with h and without
    back_and_forth, lessons = draws * 3 * 2 * 4 / 16, 3 * 3 * 4 / 16
    assert trace.evaluations == pytest.approx(back_and_forth + lessons)


@pytest.mark.parametrize(("told", "guidance"), [(True, "amortised"), (False, "mmps")])
def test_the_paper_preset_guides_a_memory_that_cannot_be_told(told: bool, guidance: str) -> None:
    memory, task = tiny_memory(conditioned=told), _small_task()
    for name in ("em-ptdm", "diffatd", "greedy"):
        policy = make_policy(name, task.grid, 5, memory=memory, preset="paper")
        assert isinstance(policy, PaperSearch)
        assert policy.settings.draws.guidance == guidance
    policy.suggest()


def test_default_updates_never_accept_a_fall(memory: PermanentMemory) -> None:
    trace = simulate(_policy("em-ptdm", memory, 40), _small_task())
    assert trace.updates
    assert all(u["after"] >= u["before"] for u in trace.updates if u["accepted"])


def test_without_h_nothing_is_learnt(memory: PermanentMemory) -> None:
    policy = make_policy(
        "em-ptdm", _small_task().grid, 15, memory=memory, h=False, draws=FEW, views=1
    )
    assert not simulate(policy, _small_task()).updates


@pytest.mark.parametrize("name", ["em-ptdm", "diffatd"])
def test_a_restored_policy_suggests_the_same(name: str, memory: PermanentMemory) -> None:
    task, policy = _small_task(), _policy(name, memory)
    for _ in range(13):
        policy.observe(task.measure(policy.suggest()[0].cell))
    other = _policy(name, memory)
    other.restore(policy.observations, policy.state())
    assert other.suggest()[0].cell == policy.suggest()[0].cell
    if name == "em-ptdm":
        assert other.suggest()[0].terms == pytest.approx(policy.suggest()[0].terms)


def test_rectangular_areas_and_blocks(memory: PermanentMemory) -> None:
    target = np.zeros((12, 16), bool)
    target[4:8, 6:12] = True
    task = Task("bar", Grid(12, 16, cell=(2, 4)), target[None].astype(np.float32), target)
    policy = make_policy("em-ptdm", task.grid, 10, memory=memory, draws=FEW)
    trace = simulate(policy, task)
    assert len(set(trace.cells)) == 10
    assert policy.view().scores.total.shape == (24,)


@pytest.mark.parametrize(
    ("preset", "options", "message"),
    [
        ("default", {"views": 3}, "views=3"),
        ("default", {"speed": 9}, "speed"),
        ("paper", {"speed": 9}, "speed"),
        ("default", {"frontier": "0.5;explore=1"}, "frontier='0.5;explore=1': give a number"),
        ("default", {"h": 3}, "h=3: give on or off"),
        ("default", {"strength": 0}, "strength=0"),
        ("default", {"explore": -1.0}, "explore=-1.0"),
        ("default", {"strength": np.inf}, "strength=inf"),
        ("default", {"sigma": 0.0}, "sigma=0"),
        ("default", {"frontier": 1.5}, "frontier=1.5"),
        ("default", {"every": 2.5}, "every=2.5: give a whole number"),
        ("paper", {"a": "much"}, "a='much': give a number"),
        ("paper", {"imagined": 1.5}, "imagined=1.5: give a weight between 0 and 1"),
    ],
)
def test_unknown_options_are_named(
    memory: PermanentMemory, preset: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make_policy("em-ptdm", Grid(8, 8), 5, memory=memory, preset=preset, **options)


def test_numbers_of_numpy_are_numbers(memory: PermanentMemory) -> None:
    options = {"explore": np.float64(1), "every": np.int64(3), "frontier": None, "h": False}
    policy = make_policy("em-ptdm", Grid(8, 8), 5, memory=memory, **options)
    assert isinstance(policy, EmPtdm)
    assert policy.settings.every == 3


def test_a_batch_is_one_update(memory: PermanentMemory) -> None:
    task, policy = _small_task(), _policy("em-ptdm", memory, 40)
    policy.suggest()
    policy.observe([task.measure((r, c)) for r in range(2) for c in range(12)])
    assert [update["t"] for update in policy.log.updates] == [24]


def test_a_memory_of_other_channels_is_refused(memory: PermanentMemory) -> None:
    with pytest.raises(InputError, match="channel"):
        make_policy("diffatd", Grid(8, 8), 5, memory=tiny_memory(3))
    with pytest.raises(InputError, match="needs a memory"):
        make_policy("diffatd", Grid(8, 8), 5)


def test_simulate_refuses_the_wrong_policy(memory: PermanentMemory) -> None:
    policy = _policy("greedy", memory)
    with pytest.raises(InputError, match="task's grid"):
        simulate(policy, ball_task(0))


@pytest.mark.parametrize("name", ["diffatd", "greedy"])
def test_a_reward_trained_in_batches_is_restored_as_it_was(
    name: str, memory: PermanentMemory
) -> None:
    """Patches of 2x2 pixels have the network of N.2, whose training counts batches."""
    target = np.zeros((16, 16), bool)
    target[4:9, 4:9] = True
    task = Task("square", Grid(16, 16, cell=(2, 2)), target[None].astype(np.float32), target)

    def made() -> Policy:
        return make_policy(name, task.grid, 30, memory=memory, draws=FEW)

    policy = made()
    for batch in (range(3, 9), range(20, 26)):
        policy.observe([task.measure(task.grid.at(i)) for i in batch])
    other = made()
    other.restore(Observations(task.grid, policy.observations), policy.state())
    for _ in range(3):
        before, after = policy.suggest()[0], other.suggest()[0]
        assert before == after
        for one in (policy, other):
            one.observe(task.measure(before.cell))


def test_particles_are_renewed_after_ten_measurements_however_they_come(
    memory: PermanentMemory,
) -> None:
    task, policy = _small_task(), _policy("em-ptdm", memory, 60)
    policy.observe(task.measure((0, 0)))
    drawn = []
    for row in range(1, 11):
        policy.suggest()
        assert isinstance(policy, EmPtdm)
        drawn.append(policy.believed().beliefs.imagined.particles.at)
        policy.observe([task.measure((row, col)) for col in (3, 8)])
    assert drawn == [0, 0, 0, 0, 0, 11, 11, 11, 11, 11]


def test_evaluations_are_counted_where_the_network_is_called(memory: PermanentMemory) -> None:
    """Eight views a query; four particles of one or two steps every tenth, if somebody looks."""
    trace = simulate(_policy("em-ptdm", memory, 20), _small_task())
    assert trace.evaluations == pytest.approx(20 * 8 / 16)
    seen = simulate(_policy("em-ptdm", memory, 20), _small_task(), snapshots=[15])
    assert seen.evaluations == pytest.approx((20 * 8 + 4 * 2 + 4 * 1) / 16)


@pytest.mark.parametrize("views", [1, 4, 8])
def test_as_many_views_as_are_asked_for(memory: PermanentMemory, views: int) -> None:
    policy = make_policy("em-ptdm", _small_task().grid, 5, memory=memory, views=views)
    trace = simulate(policy, _small_task())
    assert trace.evaluations == pytest.approx(5 * views / 16)


def test_all_views_in_every_period_and_the_quarter_turns_in_between(
    memory: PermanentMemory,
) -> None:
    policy = make_policy("em-ptdm", _small_task().grid, 20, memory=memory, period=8)
    trace = simulate(policy, _small_task())
    assert trace.evaluations == pytest.approx((3 * 8 + 17 * 4) / 16)


def test_where_reports_leave_doubt_all_views_are_looked_at(memory: PermanentMemory) -> None:
    """Each doubtful cell is left out of a quarter of them."""
    task = _small_task()
    policy = make_policy("em-ptdm", task.grid, 5, memory=memory, views=4, detection=0.7)
    policy.observe(task.measure((0, 0)))
    assert policy.log.evaluations == pytest.approx(4 / 16)
    policy.suggest()
    assert policy.log.evaluations == pytest.approx((4 + 8) / 16)


def test_what_is_imagined_does_not_depend_on_who_looks_when(memory: PermanentMemory) -> None:
    """Warm particles go on from those before them; what nobody looked at is drawn in its turn."""
    task = _small_task()
    watched, alone = (
        make_policy("em-ptdm", task.grid, 60, memory=memory, draws=FEW, every=2) for _ in range(2)
    )
    for step in range(9):
        watched.view()
        cell = watched.suggest()[0].cell
        assert alone.suggest()[0].cell == cell
        for policy in (watched, alone):
            policy.observe(task.measure(cell))
        if step == 4:
            alone.state()
    for one, other in zip(_seen(watched), _seen(alone), strict=True):
        assert np.array_equal(one, other)


def _seen(policy: Policy) -> list[object]:
    particles = policy.view().particles
    assert particles is not None
    return [particles, *(policy.current_scores().of(7)[name] for name in ("reward", "likelihood"))]
