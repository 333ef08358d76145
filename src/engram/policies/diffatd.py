"""DiffATD: the permanent memory alone, ranked by the paper's scores."""

from __future__ import annotations

from engram.grid import Grid
from engram.memory.denoiser import Memory
from engram.policies.options import with_options
from engram.policies.papersearch import PaperSearch, paper_settings


def diffatd(
    grid: Grid,
    budget: int,
    seed: int = 0,
    *,
    memory: Memory,
    preset: str = "default",
    **options: object,
) -> PaperSearch:
    """Frozen memory, no transient one."""
    settings = with_options(paper_settings(preset, memory), **options)
    return PaperSearch(grid, budget, seed, memory=memory, name="diffatd", settings=settings)
