"""What a policy imagines: particles and mean of the area given its measurements.

Shared by every policy with a memory. It turns observations into evidence, draws particles
afresh or refreshes those of the last query, and counts network evaluations in forward passes
of 16 particles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.grid import Grid
from engram.memory.denoiser import Denoiser, Known
from engram.observation import Observations
from engram.posterior import GUIDANCES, Draw, Evidence, Sampler, pinned


@dataclass(frozen=True)
class DrawPlan:
    """How particles are made.

    warm : refresh the particles of the last query (re-noised to ``depth``, ``refresh_steps``
        denoising steps) instead of drawing ``steps`` steps from pure noise.
    """

    particles: int = 16
    guidance: str = "amortised"
    steps: int = 8
    eta: float = 1.0
    warm: bool = True
    refresh_steps: int = 2
    depth: float = 0.7


def evidence_of(observations: Observations) -> Evidence:
    """Observations in model units, (1, C, H, W)."""
    grid = observations.grid
    low, high = grid.range
    values = torch.from_numpy(grid.to_model(observations.values))[None]
    mask = torch.from_numpy(observations.mask)[None, None]
    sigma = torch.from_numpy(observations.noise * (2 / (high - low)))[None, None]
    return Evidence(values * mask, mask, sigma)


class Imagination:
    """Particles of one search, kept between queries."""

    def __init__(self, grid: Grid, plan: DrawPlan, seed: int) -> None:
        self.grid, self.plan, self.seed = grid, plan, seed
        guidance = GUIDANCES[plan.guidance]()
        first = 1.0 if plan.guidance == "amortised" else 0.99
        self.sampler = Sampler(guidance, plan.steps, plan.eta, first)
        self.particles: Tensor | None = None
        self.evaluations = 0.0

    def imagine(self, denoiser: Denoiser, observations: Observations) -> Tensor:
        """Particles (P, C, H, W) in model units for the present measurements."""
        evidence, query = evidence_of(observations), len(observations)
        if self.plan.warm and self.particles is not None:
            drawn = self.sampler.refresh(
                denoiser,
                evidence,
                self.particles,
                depth=self.plan.depth,
                steps=self.plan.refresh_steps,
                seed=self.seed,
                path=(query,),
            )
        else:
            drawn = self.draw(denoiser, evidence, query)
        self.particles = drawn.particles
        self.evaluations += drawn.evaluations * self.plan.particles / 16
        return self.particles

    def draw(self, denoiser: Denoiser, evidence: Evidence, query: int) -> Draw:
        """Fresh particles; does not touch the kept ones."""
        return self.sampler.draw(
            denoiser, evidence, self.plan.particles, seed=self.seed, path=(query,)
        )

    @torch.no_grad()
    def mean(self, denoiser: Denoiser, evidence: Evidence) -> Tensor:
        """Posterior mean (1, C, H, W) by one evaluation at full noise (amortised only)."""
        blank = torch.zeros_like(evidence.values)
        x0 = denoiser.estimate(blank, torch.ones(1), evidence.known).x0
        self.evaluations += 1 / 16
        return pinned(x0, evidence)

    def cells(self, particles: Tensor) -> NDArray[np.float32]:
        """Particles (P, C, H, W) -> contents of all cells (P, n_cells, C, h, w)."""
        split = self.grid.cells_of(particles.numpy())  # (P, C, n, h, w)
        return np.moveaxis(split, 1, 2)

    def in_range(self, images: Tensor) -> NDArray[np.float32]:
        """Model units -> the grid's range, clipped to it."""
        low, high = self.grid.range
        return np.clip(self.grid.from_model(images.numpy()), low, high)


def known_of(observations: Observations) -> Known:
    """Observations as conditioning input."""
    return evidence_of(observations).known
