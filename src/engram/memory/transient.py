r"""The transient memory: Doob's h-transform as a small network, learnt in the field.

The composite of both memories is (Eq. 6, Algorithm 1)

.. math::  \hat\varepsilon = s^{\theta^*}_t(x_t) + h^\zeta_t(x_t, \hat x_0, y) ,

and the M-step (Eq. 7, Algorithm 2) is denoising score matching on draws
:math:`(X_0, Y)` of the posterior,

.. math::  \min_\zeta \mathbb E
    \| h^\zeta_t(x_t, \hat x_0, Y) + s^{\theta^*}_t(x_t) - \varepsilon \|^2 ,

with forward passes of the frozen memory only. Here h is a correction :math:`\delta` of the
velocity (see ``denoiser``): the same minimiser, weighted by :math:`1 / a(t)^2`, and finite
at full noise, where the composite estimate is the posterior mean in one evaluation.

``HNetwork`` is the paper's: a U-Net of widths [32, 64] that reads
:math:`x_t, \hat x_0, m \odot y, m` and is exactly zero at birth.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engram.memory.denoiser import Denoiser, Estimate, Known, per_sample
from engram.memory.unet import UNet, UNetConfig
from engram.seeding import torch_generator


@dataclass(frozen=True)
class Reading:
    """What the frozen memory says of a batch: everything h may look at.

    x_t (B, C, H, W), t (B,), velocity (B, C, H, W), and what is known.
    """

    x_t: Tensor
    t: Tensor
    velocity: Tensor
    known: Known

    def at(self, index: Tensor) -> Reading:
        """Rows of a reading."""
        known = Known(self.known.values[index], self.known.weight[index])
        return Reading(self.x_t[index], self.t[index], self.velocity[index], known)


class HNetwork(nn.Module):
    """The paper's h-network (appendix N.1)."""

    def __init__(self, channels: int, widths: tuple[int, ...] = (32, 64), seed: int = 0) -> None:
        super().__init__()
        config = UNetConfig(
            inputs=3 * channels + 1, outputs=channels, widths=widths, blocks=1, attention=False
        )
        with torch.random.fork_rng(devices=[]):
            torch.random.set_rng_state(torch_generator(seed, "adapt").get_state())
            self.network = UNet(config)

    def correction(self, reading: Reading, x0: Tensor, signal: Tensor) -> Tensor:
        inputs = torch.cat([signal * reading.x_t, x0, reading.known.channels], dim=1)
        out: Tensor = self.network(inputs, reading.t)
        return out


def read(denoiser: Denoiser, x_t: Tensor, t: Tensor, known: Known, told: bool) -> Reading:
    """Evaluate the frozen memory; ``told`` passes the measurements on to it as well."""
    batch = x_t.shape[0]
    t = t.reshape(-1).expand(batch)
    known = known.expand(batch)
    with torch.no_grad():
        estimate = denoiser.estimate(x_t, t, known if told else None)
    tt = per_sample(t, x_t)
    a, s = denoiser.schedule.a(tt), denoiser.schedule.s(tt).clamp_min(1e-6)
    return Reading(x_t, t, (a * x_t - estimate.x0) / s, known)


@dataclass(frozen=True)
class Examples:
    """Training pairs (X_0, Y): images, what h is told of them, and weights of the loss.

    x0 (N, C, H, W), known of the same batch, weight (N, 1, H, W).
    """

    x0: Tensor
    known: Known
    weight: Tensor


@dataclass(frozen=True)
class AdaptPlan:
    """One M-step: bounded by its number of steps, so it is the same on every machine.

    ``at_full_noise`` is the share of the examples at t = 1 (the one-evaluation mean).
    """

    steps: int = 40
    batch: int = 16
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    at_full_noise: float = 0.0


class TransientMemory:
    """h with its state: adapt, save, restore, roll back.

    ``told`` says whether the frozen memory itself is told the measurements when h reads it
    (a mask-conditioned memory), in training and in use alike.
    """

    def __init__(self, body: HNetwork, *, told: bool) -> None:
        self.body = body
        self.told = told
        self.blank = True

    def adapt(
        self, permanent: Denoiser, examples: Examples, plan: AdaptPlan, *, seed: int, path: int
    ) -> list[float]:
        """Eq. 7 on the examples; returns the loss of every step.

        Frozen readings are made once per example; no gradient passes through the memory.
        """
        generator = torch_generator(seed, "adapt", path)
        count = examples.x0.shape[0]
        t = 0.02 + 0.97 * torch.rand(count, generator=generator)
        t[torch.rand(count, generator=generator) < plan.at_full_noise] = 1.0
        eps = torch.randn(examples.x0.shape, generator=generator)
        schedule = permanent.schedule
        x_t = schedule.noised(examples.x0, t, eps)
        tt = per_sample(t, x_t)
        target = schedule.a(tt) * eps - schedule.s(tt) * examples.x0
        reading = read(permanent, x_t, t, examples.known, self.told)
        optimiser = torch.optim.AdamW(
            self.body.parameters(), lr=plan.learning_rate, weight_decay=plan.weight_decay
        )
        losses = []
        for _ in range(plan.steps):
            index = torch.randint(0, count, (min(plan.batch, count),), generator=generator)
            part = reading.at(index)
            error = part.velocity + self.correction(permanent, part) - target[index]
            weight = examples.weight[index]
            loss = (weight * error.square()).sum() / (weight.sum() * error.shape[1] + 1e-9)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append(float(loss.detach()))
        self.blank = False
        return losses

    def correction(self, permanent: Denoiser, reading: Reading) -> Tensor:
        """delta (B, C, H, W); zero while nothing was learnt."""
        tt = per_sample(reading.t, reading.x_t)
        a, s = permanent.schedule.a(tt), permanent.schedule.s(tt)
        return self.body.correction(reading, a * reading.x_t - s * reading.velocity, a)

    def state(self) -> dict[str, Tensor]:
        """Weights, to be saved as safetensors or kept for a roll-back."""
        out = {k: v.detach().clone().contiguous() for k, v in self.body.state_dict().items()}
        out["blank"] = torch.tensor(float(self.blank))
        return out

    def restore(self, state: dict[str, Tensor]) -> None:
        """Return to a saved state."""
        weights = {k: v for k, v in state.items() if k != "blank"}
        self.body.load_state_dict(weights)
        self.blank = bool(state["blank"])


class CompositeDenoiser:
    """Permanent plus transient memory, read as one denoiser.

    Before any adaptation it is the permanent memory exactly. ``known`` is what h is told
    when a guidance method calls without conditioning (Algorithm 1).
    """

    def __init__(
        self, permanent: Denoiser, transient: TransientMemory, known: Known | None = None
    ) -> None:
        self.permanent, self.transient, self.known = permanent, transient, known
        self.schedule = permanent.schedule

    @property
    def conditioned(self) -> bool:
        return self.permanent.conditioned

    def estimate(self, x_t: Tensor, t: Tensor, known: Known | None = None) -> Estimate:
        told = known if known is not None else self.known
        if self.transient.blank or told is None:
            return self.permanent.estimate(x_t, t, known)
        tt = per_sample(t, x_t)
        a, s = self.schedule.a(tt), self.schedule.s(tt)
        if torch.is_grad_enabled() and x_t.requires_grad:
            return self._differentiable(x_t, t, known, told)
        reading = read(self.permanent, x_t, t, told, self.transient.told)
        v = reading.velocity + self.transient.correction(self.permanent, reading)
        return Estimate(x0=a * x_t - s * v, eps=s * x_t + a * v)

    def _differentiable(self, x_t: Tensor, t: Tensor, known: Known | None, told: Known) -> Estimate:
        """The same with gradients in x_t through the frozen memory (DPS and MMPS need them);
        h counts as constant in x_t."""
        tt = per_sample(t, x_t)
        a, s = self.schedule.a(tt), self.schedule.s(tt)
        base = self.permanent.estimate(x_t, t, known)
        with torch.no_grad():
            reading = read(self.permanent, x_t.detach(), t, told, self.transient.told)
            delta = self.transient.correction(self.permanent, reading)
        return Estimate(x0=base.x0 - s * delta, eps=base.eps + a * delta)


class ShiftedDenoiser:
    """A denoiser whose image estimate is moved by what h has learnt of the area.

    ``shift`` (1, C, H, W) is h's correction of the posterior mean (appendix B.1); it fades
    with the noise, as an estimate that already sees x_t needs less of it.
    """

    def __init__(self, permanent: Denoiser, shift: Tensor) -> None:
        self.permanent, self.shift = permanent, shift
        self.schedule, self.conditioned = permanent.schedule, permanent.conditioned

    def estimate(self, x_t: Tensor, t: Tensor, known: Known | None = None) -> Estimate:
        base = self.permanent.estimate(x_t, t, known)
        tt = per_sample(t, x_t)
        a, s = self.schedule.a(tt), self.schedule.s(tt)
        return Estimate(x0=base.x0 + s * self.shift, eps=base.eps - a * self.shift)
