"""The reward model r_eta: content of a cell -> how likely it is target (Eq. 11, N.2)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from engram.errors import InputError
from engram.seeding import torch_generator


class RewardModel(Protocol):
    """Learns from (content, outcome) pairs and scores imagined contents."""

    def update(self, contents: NDArray[np.float32], outcomes: NDArray[np.float64]) -> None:
        """Learn from all measurements so far: contents (n, C, h, w) in model units."""
        ...

    def predict(self, contents: NDArray[np.float32]) -> NDArray[np.float64]:
        """(n, C, h, w) -> (n,) in [0, 1]."""
        ...

    def state(self) -> dict[str, Tensor]:
        """What it has learnt."""
        ...

    def restore(self, state: dict[str, Tensor]) -> None:
        """Return to a saved state."""
        ...


class NoReward:
    """Every content is worth the same: what a search is without a reward model."""

    def update(self, contents: NDArray[np.float32], outcomes: NDArray[np.float64]) -> None:
        """Nothing is learnt."""

    def predict(self, contents: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.ones(len(contents))

    def state(self) -> dict[str, Tensor]:
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Nothing was learnt."""


class AffineReward:
    r"""Outcome as a clipped affine function of the content, by ridge regression.

    For cells of one pixel. An affine reward commutes with expectation,
    :math:`\mathbb E[r(x)] = r(\mathbb E[x])`, so the posterior mean of one evaluation gives
    the probability of target without any sample. Until both outcomes were seen it assumes
    that bright content (1 in model units) is target; ``prior`` (channels,) weighs the channels
    for that, equally by default.
    """

    def __init__(
        self,
        channels: int = 1,
        strength: float = 0.5,
        prior: NDArray[np.float64] | None = None,
    ) -> None:
        weights = np.full(channels, 1 / channels) if prior is None else prior
        self._start = np.append(0.5 * weights, 0.5)
        self.weights, self.bias, self.strength = self._start[:-1], 0.5, strength

    def update(self, contents: NDArray[np.float32], outcomes: NDArray[np.float64]) -> None:
        x = contents.reshape(len(contents), contents.shape[1], -1).mean(axis=2).astype(float)
        design = np.column_stack([x, np.ones(len(x))])
        gram = design.T @ design + self.strength * np.eye(design.shape[1])
        solution = np.linalg.solve(gram, design.T @ outcomes + self.strength * self._start)
        self.weights, self.bias = solution[:-1], float(solution[-1])

    def predict(self, contents: NDArray[np.float32]) -> NDArray[np.float64]:
        x = contents.reshape(len(contents), contents.shape[1], -1).mean(axis=2)
        return np.asarray(np.clip(x @ self.weights + self.bias, 0.0, 1.0), np.float64)

    def state(self) -> dict[str, Tensor]:
        return {"weights": torch.from_numpy(np.append(self.weights, self.bias))}

    def restore(self, state: dict[str, Tensor]) -> None:
        values = state["weights"].numpy()
        self.weights, self.bias = values[:-1].copy(), float(values[-1])


def presence_prior(layers: Sequence[str]) -> NDArray[np.float64] | None:
    """(channels,) weights that begin with the last layer of a memory of cells, its presence."""
    return np.eye(len(layers))[-1] if layers else None


class _RewardNetwork(nn.Module):
    """Appendix N.2: one 3x3 convolution, a 2x2 pooling, five fully connected layers."""

    def __init__(self, channels: int, height: int, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 1, 3, padding=1)
        self.pool = min(height, width) >= 2
        size = (height // 2) * (width // 2) if self.pool else height * width
        widths = [size, 4, 32, 16, 8, 2]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))

    def forward(self, x: Tensor) -> Tensor:
        x = F.leaky_relu(self.conv(x))
        if self.pool:
            x = F.max_pool2d(x, 2)
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = F.leaky_relu(layer(x))
        out: Tensor = self.layers[-1](x)
        return out


class ConvReward:
    """The reward network of appendix N.2, trained a few epochs after each measurement."""

    def __init__(
        self,
        content_shape: tuple[int, int, int],
        *,
        seed: int,
        epochs: int = 3,
        learning_rate: float = 0.01,
    ) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.random.set_rng_state(torch_generator(seed, "reward").get_state())
            self.network = _RewardNetwork(*content_shape)
        self.epochs = epochs
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=learning_rate)

    def update(self, contents: NDArray[np.float32], outcomes: NDArray[np.float64]) -> None:
        x = torch.from_numpy(contents)
        y = torch.from_numpy(outcomes.astype(np.float32))
        labels = torch.stack([1 - y, y], dim=1)
        for _ in range(self.epochs):
            loss = F.cross_entropy(self.network(x), labels)
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()

    @torch.no_grad()
    def predict(self, contents: NDArray[np.float32]) -> NDArray[np.float64]:
        logits = self.network(torch.from_numpy(np.ascontiguousarray(contents, np.float32)))
        return np.asarray(logits.softmax(dim=1)[:, 1].numpy(), np.float64)

    def state(self) -> dict[str, Tensor]:
        """Weights, and what the optimiser remembers of every weight."""
        out = {f"network/{k}": v.clone() for k, v in self.network.state_dict().items()}
        for number, kept in self.optimiser.state_dict()["state"].items():
            out |= {f"optimiser/{number}/{k}": v.clone() for k, v in kept.items()}
        return out

    def restore(self, state: dict[str, Tensor]) -> None:
        weights = {k[8:]: v for k, v in state.items() if k.startswith("network/")}
        self.network.load_state_dict(weights)
        kept: dict[int, dict[str, Tensor]] = {}
        for key, value in state.items():
            if key.startswith("optimiser/"):
                _, number, name = key.split("/")
                scalar = name == "step"
                kept.setdefault(int(number), {})[name] = (
                    value.reshape(()) if scalar else value
                ).clone()
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": kept, "param_groups": groups})


REWARDS = ("network", "affine", "none")


def make_reward(
    kind: str,
    content_shape: tuple[int, int, int],
    *,
    seed: int,
    prior: NDArray[np.float64] | None = None,
) -> RewardModel:
    """A reward model by kind: the network of N.2, the affine one (cells of one pixel; N.2's
    network otherwise), or none. ``prior`` (channels,) is where the affine one begins."""
    if kind not in REWARDS:
        raise InputError(f"reward={kind!r}: choose one of {', '.join(REWARDS)}")
    channels, h, w = content_shape
    if kind == "none":
        return NoReward()
    if kind == "network" or h * w > 1:
        return ConvReward(content_shape, seed=seed)
    return AffineReward(channels, prior=prior)
