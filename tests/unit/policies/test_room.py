"""Room for another target of the kind that was outlined: its formula by plain loops, and what the
engine makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from engram import Grid, Observation, load_memory, make_policy
from engram.policies.outlines import views
from engram.policies.room import STRAY, Room
from engram.policies.templates import Template, templates

Mask = NDArray[np.bool_]

L = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 1]], bool)
SIZE = 14


def outlined() -> tuple[Mask, Mask]:
    """Found and blank of an area in which one L and all around it was measured."""
    found, seen = np.zeros((SIZE, SIZE), bool), np.zeros((SIZE, SIZE), bool)
    found[1:5, 1:4] = L
    seen[0:6, 0:5] = True
    return found, seen & ~found


def room_of(found: Mask, blank: Mask, straight: float = 1.0) -> Room:
    p = np.where(found, 1.0, np.where(blank, 0.0, 0.2))
    return Room(templates(p, found, blank), straight, found, blank, np.ones_like(found))


def by_loops(
    known: list[Template], found: Mask, blank: Mask, straight: float
) -> NDArray[np.float64]:
    """The formulas of the module, copy by copy."""
    room = np.zeros(found.shape)
    for one in known:
        trust = np.exp(one.weight - known[0].weight)
        for g in range(8):
            q = (1 - straight) / 8 + (straight if g == 0 else 0)
            t, k = (np.asarray(views(a)[g]) for a in (one.target, one.counts))
            for y in range(-t.shape[0], found.shape[0]):
                for x in range(-t.shape[1], found.shape[1]):
                    inside = [
                        (i, j)
                        for i, j in np.argwhere(k)
                        if 0 <= y + i < found.shape[0] and 0 <= x + j < found.shape[1]
                    ]
                    body = [(i, j) for i, j in inside if t[i, j] > 0.5]
                    if any(found[y + i, x + j] for i, j in body):
                        continue
                    w = trust * q * (len(body) / (k & (t > 0.5)).sum()) ** 2
                    for i, j in inside:
                        if blank[y + i, x + j]:
                            w *= min(1.0, (1 - t[i, j]) / (1 - STRAY))
                    for i, j in inside:
                        room[y + i, x + j] += w * t[i, j]
    room[found | blank] = 0
    return room / room.max()


@pytest.mark.parametrize("straight", [1.0, 0.3])
def test_room_is_its_formula(straight: float) -> None:
    found, blank = outlined()
    for cell in ((9, 9), (11, 3), (4, 10)):
        blank[cell] = True
    found[9, 12] = True
    room = room_of(found, blank, straight)
    assert len(room.known) == 1
    expected = by_loops(list(room.known), found, blank, straight)
    np.testing.assert_allclose(room.share, expected, atol=1e-4)


def test_several_templates_count_as_far_as_they_are_known() -> None:
    found, blank = outlined()
    found[10:13, 10:12] = True  # a second kind, no blank around it
    room = room_of(found, blank)
    assert len(room.known) == 2
    assert room.known[1].weight < room.known[0].weight
    expected = by_loops(list(room.known), found, blank, 1.0)
    np.testing.assert_allclose(room.share, expected, atol=1e-4)


def test_where_no_copy_fits_there_is_no_room() -> None:
    """Blanks every second cell leave gaps in which no L fits; elsewhere one does."""
    found, blank = outlined()
    blank[8::2, 8::2] = True
    blank[9::2, 9::2] = True
    share = room_of(found, blank).share
    assert share[9:13, 10:13].max() < 0.05
    assert share[8:12, 2:5].max() > 0.5
    assert share.max() == 1.0
    assert not share[found | blank].any()


def test_a_cut_copy_is_worth_less() -> None:
    """Nothing but the first was measured: the border has less room than the middle, and a corner
    has least."""
    share = room_of(*outlined()).share
    assert share[13, 8] < 0.8 * share[9, 8]
    assert share[13, 13] < share[13, 8]


def test_closed_cells_are_outside() -> None:
    """The right half is closed: what lies beside it has less room, and it has none itself."""
    found, blank = outlined()
    half = np.ones_like(found)
    half[:, 9:] = False
    room = room_of(found, blank)
    share = Room(room.known, 1.0, found, blank, half).share
    assert not share[:, 9:].any()
    assert share[9, 8] < 0.8 * share[9, 5]
    assert room.share[9, 8] > 0.9 * room.share[9, 5]


def test_where_everything_was_measured_no_cell_is_preferred() -> None:
    found, blank = outlined()
    blank |= ~found
    np.testing.assert_array_equal(room_of(found, blank).share, 1.0)


def told(grid: Grid) -> list[Observation]:
    """Three outlined Ls, all the same way round, and a row of blanks."""
    truth = np.zeros((grid.rows, grid.cols), bool)
    seen = np.zeros_like(truth)
    for row, col in ((1, 1), (1, 7), (7, 1)):
        truth[row : row + 4, col : col + 3] = L
        seen[row - 1 : row + 5, col - 1 : col + 4] = True
    seen[13, 1::3] = True
    return [
        Observation.checked(grid, (int(r), int(c)), content=y, outcome=y)
        for r, c in np.argwhere(seen)
        for y in [float(truth[r, c])]
    ]


def test_the_engine_looks_where_another_copy_has_room() -> None:
    grid, memory = Grid(24, 24), load_memory("universal")
    answers = []
    for room in (True, False):
        policy = make_policy(
            "em-ptdm", grid, budget=200, memory=memory, seed=0, room=room, frontier=1.0
        )
        policy.observe(told(grid))
        answers.append(policy.believed())
    ours, plain = answers
    assert (ours.rule, plain.rule) == ("room", "frontier")
    copied, mixed = ours.beliefs.copied, ours.beliefs.mixed
    assert copied.proven == 0.5  # nothing was predicted yet, and there is no head start
    assert copied.weight > 0.7
    share, w = copied.room.share.ravel(), 0.5
    rate = (18 + 5) / (len(told(grid)) + 10)  # finds a measurement
    expected = mixed.probability + 2.5 * rate * mixed.doubt * (1 - w + w * share)
    np.testing.assert_allclose(ours.scores.total, expected, rtol=1e-9)
    np.testing.assert_array_equal(mixed.doubt, plain.beliefs.mixed.doubt)


def test_without_an_outline_doubt_counts_everywhere() -> None:
    grid = Grid(24, 24)
    policy = make_policy(
        "em-ptdm", grid, budget=200, memory=load_memory("universal"), seed=0, frontier=1.0
    )
    policy.observe([Observation.checked(grid, (4, 4), content=1.0, outcome=1.0)])
    assert policy.believed().rule == "frontier"
