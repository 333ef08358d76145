r"""Training of a permanent memory: denoising with random and self-chosen measurements.

The loss is the velocity form of denoising score matching,

.. math::  \mathbb E \| v_\theta(x_t, t, m \odot x_0, m) - v \|^2 ,

with a large share of the batch at :math:`t = 1`, where the optimum is
:math:`-\mathbb E[x_0 \mid m \odot x_0]`: the posterior mean in one evaluation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from engram._writing import write_file
from engram.errors import InputError, shown
from engram.memory.denoiser import Known, NetworkDenoiser, noise_to_weight, per_sample
from engram.memory.practice import Episodes, near_finds, scattered_masks
from engram.memory.sources import Source
from engram.memory.unet import UNet
from engram.seeding import torch_generator

Progress = Callable[[int, int, float], None]
"""Called with (step, steps, smoothed loss)."""


MOST_IMAGES = 100_000
"""Images of a training step."""


@dataclass(frozen=True)
class TrainingPlan:
    """How long and how to train.

    episodes, resumed : shares of a batch that are searches under way, and the same areas again
        at other noise levels;  noisy : share with noisy measurements
    unprompted : share of the rest that is told nothing, so that the memory can draw on its own
    emphasis : weight of the last channel in the loss (presence, in a memory of cells)
    focus : additional weight of the pixels next to a find in the estimates at full noise from
        exact measurements (``practice.near_finds``)
    mixed : passes through the network in bfloat16, weights and their updates in float32: 1.6 times
        as fast where the processor has instructions for it, slower where it has not
    """

    steps: int = 8000
    batch: int = 64
    learning_rate: float = 1e-3
    warmup: int = 200
    ema: float = 0.999
    episodes: float = 0.36
    resumed: float = 0.24
    noisy: float = 0.2
    unprompted: float = 0.4
    emphasis: float = 1.0
    focus: float = 0.0
    mixed: bool = False
    checkpoint_every: int = 500
    seed: int = 0

    def rate(self, step: int) -> float:
        """Learning rate: linear warm-up, then half a cosine."""
        if step < self.warmup:
            return self.learning_rate * (step + 1) / self.warmup
        share = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.learning_rate * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * share)))


@dataclass
class Batch:
    """x0 (B, C, H, W), times (B,), masks (B, 1, H, W), measurement noise (B, 1, 1, 1)."""

    x0: Tensor
    t: Tensor
    mask: Tensor
    sigma: Tensor


class Trainer:
    """Owns network, averaged network, optimiser and episodes; every step is replayable."""

    def __init__(self, network: UNet, source: Source, plan: TrainingPlan) -> None:
        if plan.steps < 1 or not 4 <= plan.batch <= MOST_IMAGES:
            raise InputError(
                f"steps={shown(plan.steps)}, batch={shown(plan.batch)}: need at least 1 and 4, and "
                f"at most {MOST_IMAGES:,} images a step"
            )
        if not 0 <= plan.episodes + plan.resumed < 1:
            raise InputError(
                f"episodes={plan.episodes}, resumed={plan.resumed}: together below 1 of a batch"
            )
        if not 0 <= plan.focus < math.inf or not 0 <= plan.unprompted <= 1:
            raise InputError(
                f"focus={plan.focus}, unprompted={plan.unprompted}: give 0 or more, and 0 to 1"
            )
        if round(plan.batch * plan.episodes) + round(plan.batch * plan.resumed) >= plan.batch:
            raise InputError(
                f"batch={plan.batch}: too small for episodes={plan.episodes} and "
                f"resumed={plan.resumed}; nothing of it is left for other masks"
            )
        self.plan, self.source = plan, source
        self.denoiser = NetworkDenoiser(network)
        self.averaged = NetworkDenoiser(deepcopy(network)).requires_grad_(False)
        self.optimiser = torch.optim.AdamW(
            network.parameters(), lr=plan.learning_rate, weight_decay=0.01, betas=(0.9, 0.98)
        )
        self.step_count, self.loss = 0, float("nan")
        weights = torch.ones(source.shape[0])
        weights[-1] = plan.emphasis
        self._weights = (weights / weights.mean())[:, None, None]
        pool = max(1, round(plan.batch * plan.episodes)) if self.conditioned else 0
        generator = torch_generator(plan.seed, "train", 0)
        self.episodes = Episodes(source.draw(max(pool, 1), generator))
        self.pool = pool

    @property
    def conditioned(self) -> bool:
        return self.denoiser.conditioned

    def _batch(self, generator: torch.Generator) -> Batch:
        plan, n = self.plan, self.plan.batch
        resumed = min(self.pool, round(n * plan.resumed)) if self.conditioned else 0
        rest = n - self.pool - resumed
        fresh = self.source.draw(rest, generator)
        h, w = fresh.shape[2:]
        t_rest = torch.rand(rest, generator=generator)
        t_rest[torch.rand(rest, generator=generator) < 0.3] = 1.0
        masks = scattered_masks(rest, h, w, generator)
        empty = torch.rand(rest, generator=generator) < plan.unprompted
        masks[empty] = 0.0
        fresh[empty] = self.source.draw(int(empty.sum()), generator, plain=True)
        if not self.conditioned:
            t, zeros = torch.rand(rest, generator=generator), torch.zeros(rest, 1, 1, 1)
            return Batch(fresh, t, torch.zeros_like(masks), zeros)
        again = torch.randperm(self.pool, generator=generator)[:resumed]
        x0 = torch.cat([self.episodes.images, self.episodes.images[again], fresh])
        mask = torch.cat([self.episodes.masks, self.episodes.masks[again], masks])
        t = torch.cat([torch.ones(self.pool), torch.rand(resumed, generator=generator), t_rest])
        sigma = 0.5 * torch.rand(n, 1, 1, 1, generator=generator)
        sigma = sigma * (torch.rand(n, 1, 1, 1, generator=generator) < plan.noisy)
        return Batch(x0, t, mask, sigma)

    def step(self) -> float:
        """One optimiser step; returns the loss."""
        generator = torch_generator(self.plan.seed, "train", 1, self.step_count)
        batch = self._batch(generator)
        eps = torch.randn(batch.x0.shape, generator=generator)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.plan.mixed):
            target, v = self._velocities(batch, eps, generator)
        loss = ((v - target).square() * self._weights * self._focus(batch)).mean()
        for group in self.optimiser.param_groups:
            group["lr"] = self.plan.rate(self.step_count)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.denoiser.parameters(), 1.0)
        self.optimiser.step()
        self._average()
        if self.conditioned:
            mean = -v[: self.pool].detach()
            mean = mean[:, -1:] if self.source.layers else mean
            self.episodes.advance(mean, lambda n: self.source.draw(n, generator), generator)
        self.step_count += 1
        value = float(loss.detach())
        self.loss = value if math.isnan(self.loss) else 0.98 * self.loss + 0.02 * value
        return value

    def _focus(self, batch: Batch) -> Tensor:
        """(B, 1, H, W) weights of pixels, 1 on average."""
        shown = batch.x0[:, -1:] if self.source.layers else batch.x0
        near = near_finds(shown, batch.mask) * (per_sample(batch.t, batch.x0) == 1)
        near = near * (batch.sigma == 0)  # where x0 itself is what was measured
        weights = 1 + self.plan.focus * near
        return weights / weights.mean()

    def _velocities(
        self, batch: Batch, eps: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        schedule, tt = self.denoiser.schedule, per_sample(batch.t, batch.x0)
        x_t = schedule.noised(batch.x0, batch.t, eps)
        target = schedule.a(tt) * eps - schedule.s(tt) * batch.x0
        noise = torch.randn(batch.x0.shape, generator=generator)
        values = batch.x0 + batch.sigma * noise
        known = Known(values, batch.mask * noise_to_weight(batch.sigma))
        return target, self.denoiser.velocity(x_t, batch.t, known)

    def _average(self) -> None:
        keep = min(self.plan.ema, (1 + self.step_count) / (10 + self.step_count))
        with torch.no_grad():
            for slow, fast in zip(
                self.averaged.parameters(), self.denoiser.parameters(), strict=True
            ):
                slow.lerp_(fast, 1 - keep)

    @torch.no_grad()
    def held_out_loss(self, batches: int = 8) -> float:
        """Loss of the averaged network on held-out images, always with the same draws."""
        total = 0.0
        for i in range(batches):
            generator = torch_generator(self.plan.seed, "train", 2, i)
            x0 = self.source.draw(self.plan.batch, generator, held_out=True)
            h, w = x0.shape[2:]
            mask = scattered_masks(len(x0), h, w, generator)
            t = torch.rand(len(x0), generator=generator)
            t[::3] = 1.0
            batch = Batch(x0, t, mask, torch.zeros(len(x0), 1, 1, 1))
            eps = torch.randn(x0.shape, generator=generator)
            schedule, tt = self.averaged.schedule, per_sample(t, x0)
            target = schedule.a(tt) * eps - schedule.s(tt) * x0
            v = self.averaged.velocity(schedule.noised(x0, t, eps), t, Known(x0, batch.mask))
            total += float((v - target).square().mean())
        return total / batches

    def run(self, progress: Progress | None = None, checkpoint: Path | None = None) -> None:
        """Train to the end of the plan, resuming from ``checkpoint`` when it exists."""
        if checkpoint is not None and checkpoint.exists():
            self.resume(checkpoint)
        while self.step_count < self.plan.steps:
            self.step()
            if progress is not None:
                progress(self.step_count, self.plan.steps, self.loss)
            due = self.step_count % self.plan.checkpoint_every == 0
            if checkpoint is not None and (due or self.step_count == self.plan.steps):
                self.checkpoint(checkpoint)

    def checkpoint(self, path: Path) -> None:
        """Write network, average, optimiser and episodes; atomic by rename."""
        tensors: dict[str, Tensor] = {}
        for prefix, module in (("net", self.denoiser), ("ema", self.averaged)):
            for key, value in module.state_dict().items():
                tensors[f"{prefix}/{key}"] = value.contiguous()
        for index, state in self.optimiser.state_dict()["state"].items():
            for key, value in state.items():
                tensors[f"opt/{index}/{key}"] = torch.as_tensor(value).contiguous()
        for key, value in self.episodes.state().items():
            tensors[f"episodes/{key}"] = value.contiguous()
        meta = {
            "step": self.step_count,
            "loss": self.loss,
            "seed": self.plan.seed,
            "batch": self.plan.batch,
            "network": self.denoiser.network.config.to_dict(),
        }
        write_file(path, save(tensors, metadata={"engram": json.dumps(meta)}))

    def resume(self, path: Path) -> None:
        """Continue exactly where a checkpoint of the same plan stopped."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "pt") as file:
                meta = json.loads((file.metadata() or {}).get("engram", "null"))
            tensors = load_file(path)
        except (OSError, SafetensorError, ValueError) as error:
            raise InputError(
                f"cannot resume from {path}: {error}; delete it to start anew"
            ) from error
        config = self.denoiser.network.config
        expected = {
            "network": config.to_dict(),
            "seed": self.plan.seed,
            "batch": self.plan.batch,
        }
        found = meta if isinstance(meta, dict) else {}
        for name, value in expected.items():
            if found.get(name) != value:
                raise InputError(
                    f"checkpoint {path} is of another training: its {name} is "
                    f"{found.get(name)!r}, not {value!r}; delete it or choose another"
                )

        def part(prefix: str) -> dict[str, Tensor]:
            return {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}

        self.denoiser.load_state_dict(part("net/"))
        self.averaged.load_state_dict(part("ema/"))
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in part("opt/").items():
            index, name = key.split("/")
            state.setdefault(int(index), {})[name] = value
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})
        self.episodes.restore(part("episodes/"))
        self.step_count, self.loss = int(meta["step"]), float(meta["loss"])
