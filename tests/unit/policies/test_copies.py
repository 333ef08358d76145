"""Copies of what was outlined: their formulas by plain loops, and what a search gains by them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from engram import Grid, Observation, load_memory, make_policy
from engram.observation import Observations
from engram.policies.copies import ALONE, CopyForecaster, Stamps, by_copies, spoken
from engram.policies.outlines import views
from engram.policies.templates import CLEAR, Part, folded, templates
from engram.policies.templates import outlined as templates_of

Mask = NDArray[np.bool_]

L = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 1]], bool)


def area(*copies: tuple[int, int, Mask], size: int = 18) -> Mask:
    """(size, size) where these shapes lie, by their corners."""
    truth = np.zeros((size, size), bool)
    for row, col, shape in copies:
        truth[row : row + shape.shape[0], col : col + shape.shape[1]] |= shape
    return truth


def outlined(row: int, col: int, shape: Mask, size: int = 18) -> Mask:
    """Cells of a shape and all around it."""
    seen = np.zeros((size, size), bool)
    seen[row - 1 : row + shape.shape[0] + 1, col - 1 : col + shape.shape[1] + 1] = True
    return seen


def seen_of(truth: Mask, seen: Mask, p: float = 0.2) -> tuple[NDArray[np.float64], Mask, Mask]:
    return np.where(seen, truth, p), truth & seen, ~truth & seen


def test_an_outlined_object_is_a_template() -> None:
    truth = area((3, 4, L))
    p, found, blank = seen_of(truth, outlined(3, 4, L))
    (one,) = templates(p, found, blank)
    np.testing.assert_array_equal(one.target > 0.5, np.pad(L, 1))
    assert one.target.max() == 1 - CLEAR
    assert (
        one.place(Part.whole(found)).sum() == one.counts.sum() == 24
    )  # the L and the cells that touch it
    assert one.weight == 0  # the best
    (alone,) = templates_of(p, found, blank, Part.whole(p))
    assert alone.weight == pytest.approx(np.log(6))  # nothing in or around it is open


def test_few_finds_and_huge_objects_are_no_templates() -> None:
    truth = area((3, 4, L))
    seen = np.zeros_like(truth)
    seen[3:6, 4] = True
    assert templates(*seen_of(truth, seen)) == []
    wall = area((1, 1, np.ones((16, 1), bool)))
    assert templates(*seen_of(wall, np.ones_like(wall))) == []


def test_the_better_a_template_is_known_the_more_it_counts() -> None:
    truth = area((3, 4, L), (10, 10, L))
    seen = outlined(3, 4, L) | (truth & outlined(10, 10, L))  # no blank around the second
    best, second = templates(*seen_of(truth, seen))
    whole = Part.whole(truth)
    assert best.place(whole)[3, 4]
    assert second.place(whole)[10, 10]
    assert best.weight > second.weight


def test_templates_that_look_the_same_are_one_that_weighs_as_much() -> None:
    """What copies of three equal templates say together is what those of one say."""
    truth = area((2, 2, L), (2, 9, L), (9, 12, L), (11, 4, L))
    seen = outlined(2, 2, L) | outlined(2, 9, L)
    seen[13, 4:6] = True
    p, found, blank = seen_of(truth, seen)
    known = templates(p, found, blank)
    (one,) = folded(known)
    assert len(known) == 2
    assert one.weight == pytest.approx(np.log(2))
    part = Part.whole(p)
    each = [
        spoken(Stamps(some, part.shape).fit(found, blank, part), 0.5) for some in (known, [one])
    ]
    for ours, theirs in zip(*each, strict=True):
        open_cells = ~(found | blank)
        np.testing.assert_allclose(ours[open_cells], theirs[open_cells], atol=1e-3)
    other = np.asarray(views(L)[1], bool)
    truth = area((2, 2, L), (2, 9, other))
    apart = templates(*seen_of(truth, outlined(2, 2, L) | outlined(2, 9, other)))
    assert len(folded(apart)) == len(apart) == 2


def test_three_hits_say_where_the_next_copy_lies() -> None:
    truth = area((2, 2, L), (9, 9, L))
    seen = outlined(2, 2, L)
    seen[11:13, 9], seen[12, 10] = True, True  # the corner of the second L
    p, speak, _ = by_copies(*seen_of(truth, seen))
    rest = truth & ~seen
    assert p[rest].min() > 0.6
    assert speak[rest].all()
    assert p[13, 9] < 0.1
    assert p[11, 10] < 0.1
    far = ~outlined(9, 9, np.ones((9, 9), bool)) & ~seen
    assert not speak[far & ~outlined(2, 2, L)][-3:].any()
    np.testing.assert_array_equal(p[~speak & ~seen], 0.2)


def test_without_a_second_hit_nothing_changes() -> None:
    truth = area((2, 2, L))
    p, speak, _ = by_copies(*seen_of(truth, outlined(2, 2, L)))
    assert not speak.any()
    np.testing.assert_array_equal(p[~outlined(2, 2, L)], 0.2)


def test_a_template_says_nothing_of_itself() -> None:
    truth, seen = area((2, 2, L)), outlined(2, 2, L)
    seen[5, 4] = False  # the end of its foot is open
    _, speak, _ = by_copies(*seen_of(truth, seen))
    assert not speak.any()


def test_a_template_at_the_border_says_nothing_of_what_lies_beyond() -> None:
    """An L at the upper edge: whether it goes on beyond is not known, so of what lies above a copy
    nothing is said."""
    truth, shape = area((0, 3, L)), np.zeros((18, 18), bool)
    seen = shape.copy()
    seen[0:5, 2:7] = True
    (one,) = templates(*seen_of(truth, seen))
    assert not one.counts[0].any()
    assert one.place(Part.whole(truth)).sum() == one.counts.sum()


def by_loops(truth: Mask, seen: Mask, base: float) -> NDArray[np.float64]:
    """The formulas of the module for one template, the first L, wholly known, copies turned or
    not with equal chance: one group of finds elsewhere."""
    found, blank = truth & seen, ~truth & seen
    own = outlined(2, 2, L)
    cells = [(r, c) for r, c in np.argwhere(found | blank) if not own[r, c]]
    target = np.where(np.pad(L, 1), 1 - CLEAR, CLEAR)
    counts = np.zeros_like(target, bool)
    for r, c in np.argwhere(np.pad(L, 1)):
        counts[r - 1 : r + 2, c - 1 : c + 2] = True
    factor: dict[tuple[int, int, int], float] = {}
    turns = list(zip(views(target), views(counts), strict=True))
    for g, (t, k) in enumerate(turns):
        for y in range(-t.shape[0], truth.shape[0]):
            for x in range(-t.shape[1], truth.shape[1]):
                total, covers = 0.0, 0
                for r, c in cells:
                    i, j = r - y, c - x
                    if 0 <= i < t.shape[0] and 0 <= j < t.shape[1] and k[i, j]:
                        chance = t[i, j] if found[r, c] else 1 - t[i, j]
                        total += np.log(chance / (ALONE if found[r, c] else 1 - ALONE))
                        covers += int(found[r, c] and t[i, j] > 0.5)
                if covers:
                    factor[g, y, x] = total

    def covered(g: int, y: int, x: int) -> list[tuple[int, int]]:
        t = turns[g][0]
        return [
            (r, c)
            for r, c in np.argwhere(found & ~own)
            if 0 <= r - y < t.shape[0] and 0 <= c - x < t.shape[1] and t[r - y, c - x] > 0.5
        ]

    group = len([1 for r, c in cells if found[r, c]])
    whole = {s: b for s, b in factor.items() if len(covered(*s)) > group / 2}
    straight = np.log(sum(np.exp(b) for s, b in whole.items() if s[0] == 0))
    turned = np.log(sum(np.exp(b) for b in whole.values()) / 8)
    same = 1 / (1 + np.exp(-np.clip(straight - turned, -3, 3)))
    weight = {
        s: np.exp(b) * ((1 - same) / 8 + (same if s[0] == 0 else 0)) for s, b in factor.items()
    }
    claims: dict[tuple[int, int], float] = {}
    for s, w in weight.items():
        for f in covered(*s):
            claims[f] = claims.get(f, 0.0) + w
    hits, speaks = np.zeros(truth.shape), np.zeros(truth.shape)
    for (g, y, x), w in weight.items():
        exists = w * np.mean([1 / (1 + claims[f]) for f in covered(g, y, x)])
        t, k = turns[g]
        for i, j in np.argwhere(k):
            if 0 <= y + i < truth.shape[0] and 0 <= x + j < truth.shape[1]:
                hits[y + i, x + j] += exists * t[i, j]
                speaks[y + i, x + j] += exists
    scale = np.maximum(speaks, 1.0)
    return np.asarray(hits / scale + (1 - speaks / scale) * base)


def test_the_e_step_is_its_formula() -> None:
    truth = area((2, 2, L), (9, 9, np.asarray(views(L)[3], bool)))
    seen = outlined(2, 2, L)
    seen[9:11, 9:11] = True
    seen[12, 12] = True
    p, speak, _ = by_copies(*seen_of(truth, seen))
    assert speak.any()
    np.testing.assert_allclose(p[speak], by_loops(truth, seen, 0.2)[speak], atol=2e-5)


def test_whether_copies_are_turned_is_learnt_from_those_found() -> None:
    said = []
    for turn in (0, 3):
        shape = np.asarray(views(L)[turn], bool)
        truth = area((2, 2, L), (2, 9, shape), (11, 2, L), size=20)
        seen = outlined(2, 2, L, 20) | outlined(2, 9, shape, 20)
        seen[14, 2:4] = True  # two cells of a third that say nothing of its way
        p, *_ = by_copies(*seen_of(truth, seen))
        said.append(p[13, 2] + p[12, 2] - p[15, 2] - p[15, 3])  # as the first lies, or otherwise
    assert said[0] > 0.3
    assert said[0] > said[1] + 0.2


F = np.array([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0]], bool)


def test_partial_outlines_complete_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two copies seen in different parts: each fills what the other lacks, and both together tell
    more of a third."""
    truth = area((2, 2, F), (2, 10, F), (11, 6, F))
    upper, lower = outlined(2, 2, F), outlined(2, 10, F)
    upper[5:], lower[:3] = False, False  # rows 0 to 2 of the first, 1 to 4 of the second
    seen = upper | lower
    seen[13:16, 6], seen[13, 7:9], seen[13:17, 5], seen[16, 6] = True, True, True, True
    p, *_ = by_copies(*seen_of(truth, seen))
    assert p[5:7, 2].min() > 0.35  # the foot of the first
    assert p[2, 10:14].min() > 0.35  # the head of the second
    monkeypatch.setattr("engram.policies.copies.PASSES", 1)
    once, *_ = by_copies(*seen_of(truth, seen))
    assert p[11, 6:10].min() > once[11, 6:10].min() + 0.01


def measured(grid: Grid, truth: Mask, cells: list[tuple[int, int]]) -> Observations:
    observations = Observations(grid)
    for cell in cells:
        y = float(truth[cell])
        observations.add(Observation.checked(grid, cell, content=y, outcome=y))
    return observations


def test_copies_count_as_far_as_they_predict() -> None:
    grid, truth = Grid(18, 18), area((2, 2, L), (9, 9, L))
    seen = outlined(2, 2, L)
    seen[11:13, 9], seen[12, 10] = True, True
    observations = measured(grid, truth, [(int(r), int(c)) for r, c in np.argwhere(seen)])
    forecaster = CopyForecaster(grid)
    before = forecaster.belief(np.full(grid.n_cells, 0.2), observations)
    assert before.weight == pytest.approx(1 / (1 + np.exp(-1.0)))
    cell = grid.index((12, 11))
    assert before.probability[cell] == pytest.approx(
        before.weight * before.copies[cell] + (1 - before.weight) * 0.2
    )
    hit, miss = (Observation.checked(grid, (12, 11), content=y, outcome=y) for y in (1.0, 0.0))
    forecaster.learn(before, [hit])
    gain = np.log(before.copies[cell] / 0.2)
    assert forecaster.weight == pytest.approx(1 / (1 + np.exp(-1.0 - gain)))
    again = CopyForecaster(grid)
    again.restore(observations, forecaster.state())
    assert again.weight == forecaster.weight
    forecaster.learn(before, [miss, miss])
    assert forecaster.weight < 0.2


def test_the_engine_uses_copies_and_learns_what_they_are_worth() -> None:
    grid, truth = Grid(18, 18), area((2, 2, L), (9, 9, L))
    seen = outlined(2, 2, L)
    seen[11:13, 9], seen[12, 10] = True, True
    told = list(measured(grid, truth, [(int(r), int(c)) for r, c in np.argwhere(seen)]))
    memory = load_memory("universal")
    policies = [
        make_policy("em-ptdm", grid, budget=120, memory=memory, seed=0, copies=copies)
        for copies in (True, False)
    ]
    for policy in policies:
        policy.observe(told)
    ours, theirs = (policy.suggest()[0] for policy in policies)
    assert "copies" in ours.weights
    assert sum(ours.weights.values()) == pytest.approx(1.0)
    assert "copies" not in theirs.weights
    rest = np.flatnonzero((truth & ~seen).ravel())
    with_them, without = (policy.current_scores().probability[rest] for policy in policies)
    assert with_them.min() > without.min() + 0.1
    before = policies[0].state()["copies"]
    policies[0].observe([Observation.checked(grid, (12, 11), content=1.0, outcome=1.0)])
    after = policies[0].state()["copies"]
    assert len(after) == len(before) + 1
    assert float(after[-1]) > 0
