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

``HNetwork`` is the paper's: a U-Net of the widths of appendix N.1 that reads
:math:`x_t, \hat x_0, m \odot y, m` and is exactly zero at birth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engram.memory.denoiser import Denoiser, Estimate, Known, per_sample
from engram.memory.unet import UNet, UNetConfig
from engram.seeding import torch_generator


class HNetwork(nn.Module):
    """The paper's h-network (appendix N.1)."""

    def __init__(
        self,
        channels: int,
        widths: tuple[int, ...] = (32, 64),
        seed: int = 0,
        time_features: int = 32,
    ) -> None:
        super().__init__()
        config = UNetConfig(
            inputs=3 * channels + 1,
            outputs=channels,
            widths=widths,
            blocks=1,
            attention=False,
            time_features=time_features,
        )
        with torch.random.fork_rng(devices=[]):
            torch.random.set_rng_state(torch_generator(seed, "adapt").get_state())
            self.network = UNet(config)

    def forward(self, x_t: Tensor, x0: Tensor, t: Tensor, known: Known, signal: Tensor) -> Tensor:
        """delta (B, C, H, W) for x_t and the frozen estimate x0 (B, C, H, W), t (B,), what was
        measured, and the signal level a(t) (B, 1, 1, 1)."""
        inputs = torch.cat([signal * x_t, x0, known.channels], dim=1)
        out: Tensor = self.network(inputs, t)
        return out


@dataclass(frozen=True)
class Examples:
    """Training pairs (X_0, Y) of Eq. 7, and how much each pixel counts.

    x0     : (N, C, H, W) draws of the area
    known  : the measurements Y that h is told with every draw
    weight : (1 or N, 1, H, W) weights of the loss
    anew   : if given, Y and weight are made anew at every step: called with the draws of a batch
        (B, C, H, W) and a generator, it returns these (or symmetries of them), what is known of
        them, and weights (B, 1, H, W)
    """

    x0: Tensor
    known: Known
    weight: Tensor
    anew: Callable[[Tensor, torch.Generator], tuple[Tensor, Known, Tensor]] | None = None

    def batch(self, index: Tensor, generator: torch.Generator) -> tuple[Tensor, Known, Tensor]:
        """X_0, Y and weight of the examples at ``index`` (B,)."""
        count, x0 = len(self.x0), self.x0[index]
        if self.anew is not None:
            return self.anew(x0, generator)
        weight = self.weight.expand(count, -1, -1, -1)[index]
        return x0, self.known.expand(count).at(index), weight


@dataclass(frozen=True)
class AdaptPlan:
    """One M-step: bounded by its number of gradient steps, so it is the same on every machine."""

    m_steps: int = 40
    batch: int = 16
    learning_rate: float = 1e-3


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
        """Algorithm 2: Eq. 7 on the examples; returns the loss of every step.

        Every step draws examples, t and eps anew and reads the frozen memory there; no gradient
        passes through that memory.
        """
        generator = torch_generator(seed, "adapt", path)
        count, schedule = len(examples.x0), permanent.schedule
        batch = min(plan.batch, count)
        optimiser = torch.optim.Adam(self.body.parameters(), lr=plan.learning_rate)
        losses = []
        for _ in range(plan.m_steps):
            index = torch.randint(0, count, (batch,), generator=generator)
            x0, known, weight = examples.batch(index, generator)
            t = 0.02 + 0.97 * torch.rand(batch, generator=generator)
            eps = torch.randn(x0.shape, generator=generator)
            tt = per_sample(t, x0)
            x_t = schedule.noised(x0, t, eps)
            with torch.no_grad():
                frozen = permanent.estimate(x_t, t, known if self.told else None)
                velocity = (schedule.a(tt) * x_t - frozen.x0) / schedule.s(tt)
            target = schedule.a(tt) * eps - schedule.s(tt) * x0
            error = velocity + self.correction(permanent, x_t, t, frozen.x0, known) - target
            loss = (weight * error.square()).sum() / (weight.sum() * error.shape[1] + 1e-9)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append(float(loss.detach()))
        self.blank = False
        return losses

    def correction(
        self, permanent: Denoiser, x_t: Tensor, t: Tensor, x0: Tensor, known: Known
    ) -> Tensor:
        """delta (B, C, H, W) of the velocity, for the frozen estimate x0 at x_t."""
        t = t.reshape(-1).expand(len(x_t))
        signal = permanent.schedule.a(per_sample(t, x_t))
        out: Tensor = self.body(x_t, x0, t, known.expand(len(x_t)), signal)
        return out

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
        """Lines 5 to 8 of Algorithm 1; differentiable in x_t through both memories."""
        told = known if known is not None else self.known
        if self.transient.blank or told is None:
            return self.permanent.estimate(x_t, t, known)
        base = self.permanent.estimate(x_t, t, told if self.transient.told else None)
        delta = self.transient.correction(self.permanent, x_t, t, base.x0, told)
        tt = per_sample(t, x_t)
        a, s = self.schedule.a(tt), self.schedule.s(tt)
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
