"""Greedy-Adaptive: the cell with the highest exploitation score (Eq. 11)."""

from __future__ import annotations

from engram.grid import Grid
from engram.memory.denoiser import Memory
from engram.policies.options import with_options
from engram.policies.papersearch import PaperSearch, paper_settings


def greedy_adaptive(
    grid: Grid,
    budget: int,
    seed: int = 0,
    *,
    memory: Memory,
    preset: str = "default",
    **options: object,
) -> PaperSearch:
    """Exploitation alone; the reward model learns after each measurement."""
    settings = with_options(paper_settings(preset, memory), exploit_only=True, **options)
    return PaperSearch(grid, budget, seed, memory=memory, name="greedy", settings=settings)
