"""What a policy imagines: particles and mean of the area given its measurements.

Shared by every policy with a memory. It puts observations into model units and makes the particles
of a search, each from those before it where they are warm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.errors import InputError
from engram.grid import Grid
from engram.memory.denoiser import Denoiser
from engram.observation import Observations
from engram.posterior import GUIDANCES, Measured, Sampler, pinned, reproduced
from engram.seeding import particle_noise
from engram.symmetry import TURNS, turned, turned_back

TRAJECTORIES = ("fresh", "warm", "shared")
END = 0.05
"""Time at which a shared trajectory ends, after the whole budget."""


@dataclass(frozen=True)
class DrawPlan:
    """How particles are made.

    trajectory : ``fresh`` draws ``steps`` steps from pure noise for every query; ``warm``
        re-noises the particles of the last query to ``depth`` and denoises them in
        ``refresh_steps`` steps; ``shared`` is one reverse process for the whole search
        (Algorithm 1 read literally): each query takes one step of it, from pure noise at the
        first measurement to ``END`` at the last, and its particles are the estimates of x0
    symmetries : particle i sees the area under symmetry i of a square (square areas alone)
    """

    particles: int = 16
    guidance: str = "amortised"
    steps: int = 8
    eta: float = 1.0
    trajectory: str = "warm"
    refresh_steps: int = 2
    depth: float = 0.7
    symmetries: bool = False

    def __post_init__(self) -> None:
        if self.trajectory not in TRAJECTORIES:
            raise InputError(
                f"trajectory={self.trajectory!r}: choose one of {', '.join(TRAJECTORIES)}"
            )
        if self.guidance not in GUIDANCES:
            raise InputError(f"guidance={self.guidance!r}: choose one of {', '.join(GUIDANCES)}")
        if self.particles < 2:
            raise InputError(f"particles={self.particles}: give at least 2")
        for name in ("steps", "refresh_steps"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)}: give at least 1")
        if not 0 < self.depth <= 1:
            raise InputError(f"depth={self.depth}: give a time above 0, up to 1")


def measurements_of(observations: Observations) -> Measured:
    """Observations in model units, (1, C, H, W)."""
    grid = observations.grid
    low, high = grid.range
    values = torch.from_numpy(grid.to_model(observations.values))[None]
    mask = torch.from_numpy(observations.mask)[None, None]
    sigma = torch.from_numpy(observations.told_noise * (2 / (high - low)))[None, None]
    return Measured(values * mask, mask, sigma)


@torch.no_grad()
def mean_of(denoiser: Denoiser, measured: Measured) -> Tensor:
    """Posterior mean (B, C, H, W) by one evaluation at full noise (amortised only)."""
    blank = torch.zeros_like(measured.values)
    x0 = denoiser.estimate(blank, torch.ones(1), measured.known).x0
    return pinned(x0, measured)


@dataclass(frozen=True, eq=False)
class Particles:
    """Samples of the area.

    images : (P, C, H, W) in model units
    at     : how many measurements they know of: for the same measurements they are the same
    path   : (P, C, H, W) where a shared trajectory stands
    """

    images: Tensor
    at: int
    path: Tensor | None = None

    def state(self) -> dict[str, Tensor]:
        out = {"particles": self.images.clone(), "at": torch.tensor(self.at)}
        return out if self.path is None else {**out, "path": self.path.clone()}

    @classmethod
    def kept(cls, state: dict[str, Tensor]) -> Particles | None:
        """Those of a saved state, if there are any."""
        if "particles" not in state:
            return None
        return cls(state["particles"], int(state["at"]), state.get("path"))


class Imagination:
    """How the particles of one search are made; ``kept`` are the last that were asked for."""

    def __init__(self, grid: Grid, plan: DrawPlan, seed: int, budget: int) -> None:
        self.grid, self.plan, self.seed, self.budget = grid, plan, seed, budget
        guidance = GUIDANCES[plan.guidance]()
        first = 1.0 if plan.guidance == "amortised" else 0.99
        self.sampler = Sampler(guidance, plan.steps, plan.eta, first)
        self.kept: Particles | None = None

    @property
    def particles(self) -> Tensor | None:
        """(P, C, H, W) in model units, or None before the first."""
        return None if self.kept is None else self.kept.images

    def measurements(self, observations: Observations) -> Measured:
        """What the particles are told: (1, C, H, W), or as each of them sees it."""
        plain = measurements_of(observations)
        if not self._turning:
            return plain
        parts = (plain.values, plain.mask, plain.sigma)
        return Measured(*(torch.cat([turned(p, k) for k in self._turns]) for p in parts))

    @property
    def _turning(self) -> bool:
        return self.plan.symmetries and self.grid.height == self.grid.width

    @property
    def _turns(self) -> list[int]:
        return [i % TURNS for i in range(self.plan.particles)]

    def _seen(self, images: Tensor) -> Tensor:
        """Images (P, C, H, W) of the area, as each particle sees it."""
        if not self._turning:
            return images
        return torch.stack([turned(x, k) for x, k in zip(images, self._turns, strict=True)])

    def _unseen(self, images: Tensor) -> Tensor:
        """Inverse of ``_seen``."""
        if not self._turning:
            return images
        return torch.stack([turned_back(x, k) for x, k in zip(images, self._turns, strict=True)])

    def imagine(self, denoiser: Denoiser, observations: Observations) -> Tensor:
        """Particles (P, C, H, W) for the present measurements; they are kept."""
        if self.kept is None or self.kept.at != len(observations):
            self.kept = self.after(self.kept, denoiser, observations)
        return self.kept.images

    def after(
        self, before: Particles | None, denoiser: Denoiser, observations: Observations
    ) -> Particles:
        """Particles for the present measurements, those ``before`` being the last."""
        query, measured = len(observations), self.measurements(observations)
        if self.plan.trajectory == "shared":
            return self._advanced(before, denoiser, measured, query)
        if before is None or not self.chained:
            return Particles(self.draw(denoiser, measured, query), query)
        renewed = self.sampler.refresh(
            denoiser,
            measured,
            self._seen(before.images),
            depth=self.plan.depth,
            steps=self.plan.refresh_steps,
            seed=self.seed,
            path=(query,),
        )
        return Particles(self._unseen(renewed), query)

    @property
    def chained(self) -> bool:
        """Whether particles depend on those before them."""
        return self.plan.trajectory != "fresh"

    def _advanced(
        self, before: Particles | None, denoiser: Denoiser, measured: Measured, query: int
    ) -> Particles:
        """One step of the shared trajectory; its estimate of x0 for every particle."""
        shape = (2, *measured.values.shape[1:])
        noise = particle_noise(self.seed, "particles", (query,), self.plan.particles, shape)
        x = noise[:, 0] if before is None or before.path is None else before.path
        now, then = self._time(query), self._time(query + 1)
        estimate, path = self.sampler.step(denoiser, measured, x, now, then, noise[:, 1])
        return Particles(self._unseen(reproduced(estimate.x0, measured)), query, path)

    def _time(self, query: int) -> Tensor:
        share = min(query / self.budget, 1.0)
        return torch.tensor(self.sampler.first + share * (END - self.sampler.first))

    def draw(self, denoiser: Denoiser, measured: Measured, query: int) -> Tensor:
        """Fresh particles for ``measured``; does not touch the kept ones."""
        drawn = self.sampler.draw(
            denoiser, measured, self.plan.particles, seed=self.seed, path=(query,)
        )
        return self._unseen(drawn)

    def cells(self, particles: Tensor) -> NDArray[np.float32]:
        """Particles (P, C, H, W) -> contents of all cells (P, n_cells, C, h, w)."""
        split = self.grid.cells_of(particles.numpy())  # (P, C, n, h, w)
        return np.moveaxis(split, 1, 2)

    def in_range(self, images: Tensor) -> NDArray[np.float32]:
        """Model units -> the grid's range, clipped to it."""
        low, high = self.grid.range
        return np.clip(self.grid.from_model(images.numpy()), low, high)

    def state(self) -> dict[str, Tensor]:
        """What restores the kept particles."""
        return {} if self.kept is None else self.kept.state()

    def restore(self, state: dict[str, Tensor]) -> None:
        """Return to a saved state."""
        self.kept = Particles.kept(state)
