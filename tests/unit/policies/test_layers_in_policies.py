"""Layers in the policies: the engine with them, the order of one alone, and what is explained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engram import Grid, InputError, Layers, Task, make_policy, simulate
from engram.detection import Detection
from engram.memory.permanent import PermanentMemory
from engram.observation import Observations
from engram.policies.base import Policy
from engram.policies.emptdm import EmPtdm
from engram.policies.imagination import DrawPlan
from engram.policies.ranking import Foraging
from engram.policies.spec import PolicyChoice
from engram.testing import tiny_memory

FEW = DrawPlan(particles=4, steps=2, refresh_steps=1)
SIDE = 12
GRID = Grid(SIDE, SIDE)
RNG = np.random.RandomState(5)
VALUES = RNG.randint(0, 40, SIDE * SIDE).astype(float)
NOISE = RNG.randn(SIDE * SIDE)
TARGET = (VALUES >= 34).reshape(SIDE, SIDE)
TASK = Task("high", GRID, TARGET[None].astype(np.float32), TARGET)
BUDGET = 24
HIGH = Layers.of(GRID, {"v": VALUES})
ROWS, COLS = np.indices((SIDE, SIDE))
THREE = np.any([np.hypot(ROWS - r, COLS - c) < 2 for r, c in ((2, 3), (8, 2), (7, 9))], axis=0)
DISCS = Task("discs", GRID, THREE[None].astype(np.float32), THREE)
CORNER = Task("corner", GRID, (ROWS + COLS < 7)[None].astype(np.float32), ROWS + COLS < 7)


@pytest.fixture(scope="module")
def memory() -> PermanentMemory:
    return tiny_memory(1, conditioned=True)


def engine(memory: PermanentMemory, values: dict[str, np.ndarray] | None = None) -> Policy:
    layers = None if values is None else Layers.of(GRID, values)
    return make_policy("em-ptdm", GRID, BUDGET, memory=memory, draws=FEW, layers=layers)


def test_the_engine_follows_a_layer_that_predicts(memory: PermanentMemory) -> None:
    told = engine(memory, {"v": VALUES})
    trace = simulate(told, TASK)
    assert trace.found > 1.5 * simulate(engine(memory), TASK).found
    assert set(trace.stages) == {"memory", "h", "layers", "process", "copies"}
    assert {*told.current().weights} - {"copies"} == {"memory", "layers", "process"}


def test_order_unit_and_sign_of_layers_change_no_suggestion(memory: PermanentMemory) -> None:
    plain = simulate(engine(memory, {"a": VALUES, "b": NOISE}), TASK).cells
    other = engine(memory, {"b": 3 + NOISE * 8, "a": -2 * VALUES})
    assert simulate(other, TASK).cells == plain


def test_order_and_unit_change_nothing_where_visits_miss(memory: PermanentMemory) -> None:
    def cells(values: dict[str, np.ndarray]) -> list[tuple[int, int]]:
        layers = Layers.of(GRID, values)
        policy = make_policy(
            "em-ptdm", GRID, 16, memory=memory, draws=FEW, layers=layers, detection=0.6
        )
        task = replace(TASK, detection=Detection(0.6))
        for _ in range(16):
            cell = policy.suggest()[0].cell
            policy.observe(task.measure(cell, policy.observations.cells.count(cell)))
        return policy.observations.cells

    plain = cells({"a": VALUES, "b": NOISE})
    assert cells({"b": 7 - 0.5 * NOISE, "a": 4 * VALUES}) == plain


def test_no_layers_is_the_engine_of_before(memory: PermanentMemory) -> None:
    without = make_policy("em-ptdm", GRID, BUDGET, memory=memory, draws=FEW)
    empty = make_policy("em-ptdm", GRID, BUDGET, memory=memory, draws=FEW, layers=Layers(GRID))
    first, second = simulate(without, TASK), simulate(empty, TASK)
    assert first.cells == second.cells
    assert first.evidence == second.evidence
    assert isinstance(without, EmPtdm)
    assert without.layered() is None
    assert len(without.memory.transient.initial) == 12
    assert set(without.current().weights) == {"memory", "process"}


def test_doubt_counts_as_far_as_layers_do_not_lead(memory: PermanentMemory) -> None:
    told = engine(memory, {"v": VALUES})
    assert isinstance(told, EmPtdm)
    mixed, usual = told.believed().beliefs.mixed, told.settings.explore
    leads = mixed.weights[told.mixes.index("layers")]
    assert 0 < leads < 1
    rule = told._rule(mixed)
    assert isinstance(rule, Foraging)
    assert rule.explore == pytest.approx((1 - leads) * usual)
    plain = engine(memory)
    assert isinstance(plain, EmPtdm)
    assert plain._rule(plain.believed().beliefs.mixed) is plain.ranker


def test_layers_that_do_not_matter_change_no_suggestion(
    memory: PermanentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Look-ahead, copies, doubt, h and mixture are then those of a search without layers."""
    for name in ("RELEVANT", "_relevance"):
        monkeypatch.setattr(f"engram.logistic.{name}", 0.0 if name == "RELEVANT" else _never)
    seen = set()
    for task, guard in ((CORNER, True), (CORNER, False), (DISCS, True)):
        traces = []
        for layers in (HIGH, None):
            policy = make_policy(
                "em-ptdm", GRID, 40, memory=memory, draws=FEW, layers=layers, guard=guard
            )
            traces.append(simulate(policy, task))
        told, plain = traces
        assert told.cells == plain.cells
        assert told.rules == plain.rules
        np.testing.assert_allclose(told.evidence, plain.evidence, rtol=1e-6)
        seen |= {rule for rule in told.rules if guard}
    assert {"look-ahead", "room", "likely"} <= seen


def _never(alone: float, told: np.ndarray) -> float:
    return 0.0


def test_the_look_ahead_decides_where_outcomes_predict_better_than_layers(
    memory: PermanentMemory,
) -> None:
    for judged in (True, False):
        policy = make_policy(
            "em-ptdm", GRID, 40, memory=memory, draws=FEW, layers=HIGH, judged=judged
        )
        assert isinstance(policy, EmPtdm)
        assert (policy.copies is not None) == judged
        mixed = policy.believed().beliefs.mixed
        for weights, outdone in (
            ((0.1, 0.3, 0.6), judged),
            ((0.3, 0.3, 0.4), False),
            ((0.1, 0.6, 0.3), False),
        ):
            assert policy._outdone(replace(mixed, weights=np.array(weights))) == outdone


def test_layers_that_are_not_judged_are_followed_as_under_rules_4(memory: PermanentMemory) -> None:
    """Cells that the engine of then visited, so that logs of then are replayed."""
    first = [82, 14, 78, 27, 2, 39, 26, 15, 3, 16, 4, 13, 1, 25, 38, 12, 24, 37, 0, 36, 28, 5, 17]
    layers = Layers.of(GRID, {"a": VALUES, "b": NOISE})
    then, now = (
        make_policy("em-ptdm", GRID, 40, memory=memory, draws=FEW, layers=layers, judged=judged)
        for judged in (False, True)
    )
    visited = [[GRID.index(cell) for cell in simulate(one, CORNER).cells] for one in (then, now)]
    assert visited[0][: len(first)] == first
    assert visited[1][: len(first)] != first


def test_layers_that_are_not_judged_lead_by_two_nats(memory: PermanentMemory) -> None:
    told = make_policy("em-ptdm", GRID, BUDGET, memory=memory, draws=FEW, layers=HIGH, judged=False)
    weights = np.exp([0.0, 2.0, 0.0]) / (2 + np.exp(2.0))
    np.testing.assert_allclose([*told.current().weights.values()], weights)
    assert isinstance(told, EmPtdm)
    beliefs = told.believed().beliefs
    assert beliefs.layered is not None
    assert beliefs.layered.relevance == 1
    np.testing.assert_array_equal(beliefs.mixed.doubt, beliefs.layered.doubt)


def test_copies_count_as_far_as_layers_do_not_lead(memory: PermanentMemory) -> None:
    policy = make_policy("em-ptdm", GRID, 40, memory=memory, draws=FEW, layers=HIGH)
    simulate(policy, DISCS)
    assert isinstance(policy, EmPtdm)
    assert policy.copies is not None
    beliefs = policy.believed().beliefs
    copied, leads = beliefs.copied, beliefs.mixed.weights[policy.mixes.index("layers")]
    assert copied is not None
    assert leads > 0.05
    weight = (1 - leads) * policy.copies.weight
    assert copied.weight == pytest.approx(weight)
    assert copied.heard
    expected = weight * copied.copies + (1 - weight) * copied.others
    np.testing.assert_allclose(beliefs.mixed.probability, expected)


def test_a_search_goes_on_from_its_state(memory: PermanentMemory) -> None:
    values = {"v": VALUES, "b": NOISE}
    whole, half = engine(memory, values), engine(memory, values)
    for policy, count in ((whole, 20), (half, 12)):
        for _ in range(count):
            policy.observe(TASK.measure(policy.suggest()[0].cell))
    later = engine(memory, values)
    later.restore(Observations(GRID, half.observations), half.state())
    for _ in range(8):
        later.observe(TASK.measure(later.suggest()[0].cell))
    assert later.observations.cells == whole.observations.cells
    assert later.suggest()[0].terms == whole.suggest()[0].terms


def test_what_a_layer_contributes_is_told_in_log_odds(memory: PermanentMemory) -> None:
    kinds = np.where(TARGET.ravel(), "rich", np.where(NOISE > 0, "poor", "bare"))
    layers = Layers.of(GRID, {"v": -VALUES, "noise": NOISE, "kind": kinds})
    for policy in (
        make_policy("gp", GRID, 40, layers=layers, acquisition="foraging"),
        make_policy("em-ptdm", GRID, 40, memory=memory, draws=FEW, layers=layers),
    ):
        simulate(policy, TASK)
        model = policy.layered()
        assert model is not None
        effects = {effect.name: effect for effect in model.effects()}
        told = effects["kind"] if effects["kind"].matters else effects["v"]
        assert told.low < told.change < told.high
        assert told.matters
        assert not effects["noise"].matters
        assert effects["noise"].low < 0 < effects["noise"].high
        if effects["kind"].matters:
            assert effects["kind"].best == "rich"
        else:
            assert effects["v"].change < 0
        rich, poor = int(np.argmax(VALUES)), int(np.argmin(VALUES))
        names = ("kind", "v")
        high, low = (sum(model.contributions(i)[name] for name in names) for i in (rich, poor))
        assert high > 1 > 0 > low
        assert "of log-odds" in told.words


def test_the_order_of_a_layer_alone() -> None:
    less = Layers.of(GRID, {"v": VALUES}, expected={"v": "less"})
    gone = np.where(VALUES > 30, np.nan, VALUES)
    for layers, options, expected in (
        (Layers.of(GRID, {"v": VALUES}), {}, -np.sort(-VALUES)),
        (less, {}, np.sort(VALUES)),
        (Layers.of(GRID, {"v": gone, "b": NOISE}), {"layer": "v"}, -np.sort(-gone)),
    ):
        policy = make_policy("layer-order", GRID, 30, layers=layers, **options)
        visited = [GRID.index(cell) for cell in simulate(policy, TASK).cells]
        by = layers.get("v").values
        np.testing.assert_array_equal(by[visited], expected[:30])
    belief = make_policy("layer-order", GRID, 3, layers=Layers(GRID, belief=VALUES / 40))
    assert VALUES[GRID.index(belief.suggest()[0].cell)] == VALUES.max()


@pytest.mark.parametrize(
    ("layers", "options", "words"),
    [
        (None, {}, "needs a layer"),
        ({"a": VALUES, "b": NOISE}, {}, "there are the layers a, b; choose one"),
        ({"a": VALUES}, {"layer": "q"}, "no layer 'q'; there are a"),
        ({"a": ["x", "y"] * 72}, {}, "'a' has categories, which have no order"),
    ],
)
def test_an_order_that_is_none(layers, options, words) -> None:  # type: ignore[no-untyped-def]
    known = None if layers is None else Layers.of(GRID, layers)
    with pytest.raises(InputError, match=words):
        make_policy("layer-order", GRID, 5, layers=known, **options)


def test_a_policy_may_be_told_some_of_the_layers() -> None:
    task = TASK.told(Layers.of(GRID, {"v": VALUES, "b": NOISE}))
    for text, names in (
        ("gp", ("b", "v")),
        ("gp[layers=v]", ("v",)),
        ("gp[layers=v+b]", ("b", "v")),
        ("gp[layers=off]", None),
        ("random", None),
    ):
        choice = PolicyChoice.parse(text, preset="default", prior="")
        told = choice.layers_of(task)
        assert (None if told is None else told.names) == names
        choice.build(task, 5, 0).suggest()
    with pytest.raises(InputError, match="no layer 'w'"):
        PolicyChoice.parse("gp[layers=w]", preset="default", prior="").layers_of(task)
    with pytest.raises(InputError, match="has no use for layers"):
        PolicyChoice.parse("random", preset="default", prior="").needs_layers(task)


def test_the_paper_preset_knows_no_layers(memory: PermanentMemory) -> None:
    layers = Layers.of(GRID, {"v": VALUES})
    with pytest.raises(InputError, match="the paper preset knows no layers"):
        make_policy("em-ptdm", GRID, 5, memory=memory, preset="paper", layers=layers)
    with pytest.raises(InputError, match="the layers are of 12x12 cells, the area has 8x8"):
        make_policy("gp", Grid(8, 8), 5, layers=layers)
