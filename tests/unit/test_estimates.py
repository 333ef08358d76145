from __future__ import annotations

import pytest

from engram.estimates import at_once, estimate
from engram.grid import Grid


@pytest.mark.parametrize("policy", ["gp", "em-ptdm"])
def test_a_million_cells_by_windows_take_memory_by_their_measurements(policy: str) -> None:
    large = estimate(policy, Grid(1000, 1000), 20_000)
    assert large.bytes < 2e9
    assert estimate(policy, Grid(1000, 1000), 20_000, whole=True).bytes > 100 * large.bytes
    assert estimate(policy, Grid(1000, 1000), 40_000).bytes < 2 * large.bytes


@pytest.mark.parametrize("policy", ["greedy", "diffatd"])
def test_a_policy_that_looks_at_every_cell_is_said_to(policy: str) -> None:
    here, there = (estimate(policy, Grid(n, n), 200) for n in (100, 1000))
    assert there.answer > 50 * here.answer
    assert there.bytes > estimate("em-ptdm", Grid(1000, 1000), 200).bytes * 5


def test_an_answer_costs_more_of_a_policy_that_imagines() -> None:
    grid = Grid(32, 32)
    plain, process, memory = (estimate(p, grid, 200) for p in ("random", "gp", "em-ptdm"))
    assert plain.answer < process.answer < memory.answer
    assert plain.bytes < process.bytes < memory.bytes


def test_an_estimate_is_one_line_with_its_figures() -> None:
    words = estimate("gp", Grid(32, 32), 200).words
    assert words.startswith("estimate: about ")
    assert "MB of memory" in words
    assert "s an answer" in words
    assert "\n" not in words


def test_options_that_look_at_all_cells_are_named() -> None:
    assert at_once("default", {"windows": True, "dreams": 0, "rule": "foraging"}) == ""
    assert at_once("thorough", {}) == "with preset thorough"
    assert at_once("default", {"windows": False}) == "with windows=off"
    assert at_once("default", {"dreams": 10}) == "with dreams=10"
    assert at_once("default", {"base_rate": True}) == "with base_rate=True"
    assert at_once("default", {"rule": "paper"}) == "with rule=paper"
