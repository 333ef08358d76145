"""The permanent memory: a frozen denoiser with a card; loading, saving, sampling."""

from __future__ import annotations

import hashlib
import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from engram._writing import write_files
from engram.errors import InputError, WeightsError
from engram.memory.card import Card
from engram.memory.denoiser import Denoiser, Estimate, Known, NetworkDenoiser, Schedule
from engram.memory.device import checked_device
from engram.memory.unet import UNet, UNetConfig


def fresh_network(config: UNetConfig, seed: int) -> UNet:
    """A network whose initial weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return UNet(config)


def grown_network(parent: UNet, config: UNetConfig, seed: int) -> UNet:
    """A network that begins with what ``parent`` knows; it may have more channels.

    The parent's channels become the last ones: a memory of one channel goes on as the
    presence layer of a memory of cells, and the new channels start without influence. So do
    attention at the finest resolution and agreement, which it may have although the parent has
    neither.
    """
    old, network = parent.config, fresh_network(config, seed)
    free = {name: getattr(config, name) for name in ("inputs", "outputs", "fine", "agreement")}
    same = replace(old, **free) == config and config.agreement >= old.agreement
    if not same or config.outputs < old.outputs or not (old.conditioned and config.conditioned):
        raise InputError(
            f"a network of {config.to_dict()} cannot start from one of {old.to_dict()}: both have "
            "to take measurements and to have the same widths, blocks and patch"
        )
    state, folded = dict(parent.state_dict()), config.patch**2
    shift = config.outputs - old.outputs
    x_t = [shift + c for c in range(old.outputs)]
    values = [config.outputs + c for c in x_t]
    agreeing = [config.inputs + c for c in range(old.entering - old.inputs)]
    inputs = _folded([*x_t, *values, 2 * config.outputs, *agreeing], folded)
    stem = torch.zeros_like(network.stem.weight)
    stem[:, inputs] = state["stem.weight"]
    outputs = _folded(x_t, folded)
    for name in ("tail.head.weight", "tail.head.bias"):
        grown = torch.zeros_like(network.get_parameter(name))
        grown[outputs] = state[name]
        state[name] = grown
    fine = {k: v for k, v in network.state_dict().items() if k.startswith("fine.")}
    network.load_state_dict({**fine, **state, "stem.weight": stem})
    return network


def _folded(channels: list[int], folded: int) -> list[int]:
    """Positions of channels after ``pixel_unshuffle``."""
    return [c * folded + k for c in channels for k in range(folded)]


_UNFIT = (SafetensorError, RuntimeError, KeyError, TypeError, ValueError)
"""What goes wrong where weights and card do not belong together."""


def _denoiser_of(card: Card, blob: bytes) -> NetworkDenoiser:
    """The denoiser that a card describes, with the weights of a file."""
    config = UNetConfig.from_dict(card.network)
    state = {k: v.float() for k, v in load(blob).items()}
    with torch.device("meta"):  # takes no room, whatever the card says
        wanted = sum(v.numel() for v in NetworkDenoiser(UNet(config)).state_dict().values())
    there = sum(v.numel() for v in state.values())
    if there != wanted:
        raise ValueError(f"{there:,} weights, {wanted:,} in the card's network")
    if not all(bool(v.isfinite().all()) for v in state.values()):
        raise ValueError("some weights are not finite numbers")
    network = fresh_network(config, 0)
    denoiser = NetworkDenoiser(network)
    denoiser.load_state_dict(state)
    if network.config.outputs != card.channels:
        raise ValueError(f"{network.config.outputs} channels, {card.channels} on the card")
    return denoiser


def _kind(denoiser: Denoiser) -> str:
    """The class of a denoiser's network, or its own."""
    return type(getattr(denoiser, "network", denoiser)).__name__


def symmetric_path(path: Path) -> Path:
    """The file of the symmetric network of a memory's file."""
    return path.with_suffix(".symmetric.safetensors")


class PermanentMemory:
    """A frozen denoiser and what is known of it. Implements ``Memory``.

    device    : where the denoiser's network is
    symmetric : a network whose estimate at full noise is the denoiser's mean over the symmetries
        of a square (``memory.distilling``), or None: then the card speaks of none either
    """

    device = "cpu"
    _symmetric: NetworkDenoiser | None = None

    def __init__(
        self,
        denoiser: Denoiser,
        card: Card,
        device: str = "cpu",
        symmetric: NetworkDenoiser | None = None,
    ) -> None:
        if isinstance(denoiser, torch.nn.Module):
            denoiser.eval().requires_grad_(False)
        self.denoiser = denoiser
        self.card = card if symmetric is not None else replace(card, symmetric={})
        self.device = device
        self._symmetric = None if symmetric is None else symmetric.eval().requires_grad_(False)

    def on(self, device: str) -> PermanentMemory:
        """The same memory with its network on a device; refused where there is none of the kind.

        What it is asked is brought there and the answer back, so that everything else (noise,
        measurements, h) stays where it is and is the same on every device.
        """
        device = checked_device(device)
        if device == self.device:
            return self
        if not isinstance(self.denoiser, torch.nn.Module):
            raise InputError(
                f"device={device!r}: memory {self.card.name!r} of kind {self.card.kind!r} is no "
                "torch module and stays on the cpu"
            )
        there = deepcopy(self._symmetric)
        return PermanentMemory(
            deepcopy(self.denoiser).to(device),
            self.card,
            device,
            None if there is None else there.to(device),
        )

    @property
    def symmetric(self) -> PermanentMemory | None:
        """The symmetric network, read as a memory with the same card."""
        if self._symmetric is None:
            return None
        return PermanentMemory(self._symmetric, self.card, self.device)

    def with_symmetric(self, network: NetworkDenoiser, about: dict[str, Any]) -> PermanentMemory:
        """The same memory with a symmetric network; ``about`` says how that was made."""
        card = replace(self.card, symmetric={**about, "sha256": _hash(_blob(network, self.card))})
        return PermanentMemory(self.denoiser, card, self.device, network)

    @property
    def network(self) -> UNet:
        """The network of a memory of kind ``unet``, to learn from; others are refused."""
        if not isinstance(self.denoiser, NetworkDenoiser):
            raise InputError(
                f"memory {self.card.name!r} is of kind {self.card.kind!r}; only a memory of kind "
                "'unet' can be trained further"
            )
        return self.denoiser.network

    @property
    def schedule(self) -> Schedule:
        return self.denoiser.schedule

    @property
    def conditioned(self) -> bool:
        return self.denoiser.conditioned

    @property
    def channels(self) -> int:
        return self.card.channels

    def estimate(self, x_t: Tensor, t: Tensor, known: Known | None = None) -> Estimate:
        if self.device == "cpu":
            return self.denoiser.estimate(x_t, t, known)
        told = None if known is None else known.to(self.device)
        found = self.denoiser.estimate(x_t.to(self.device), t.to(self.device), told)
        return Estimate(x0=found.x0.to(x_t.device), eps=found.eps.to(x_t.device))

    def save(self, path: Path, *, half: bool = True) -> Card:
        """Write ``path`` (.safetensors) and its card (.json); returns the card with its hash.

        Weights are stored in half precision, which halves the file and is exact enough
        (they are read back as float32). What could not be read back is refused: a file holds
        the weights of a :class:`UNet` as its card describes it, and no other network.
        """
        module = self.denoiser if isinstance(self.denoiser, torch.nn.Module) else torch.nn.Module()
        blob = _blob(module, self.card, half=half)
        card = replace(self.card, sha256=_hash(blob))
        try:
            _denoiser_of(card, blob)
        except _UNFIT as error:
            raise InputError(
                f"memory {card.name!r} cannot be saved: the weights of its "
                f"{_kind(self.denoiser)} do not fit the network on its card; a file holds a UNet "
                "of engram's, so keep the weights of another network yourself"
            ) from error
        files: dict[Path, bytes | str] = {path: blob}
        if self._symmetric is not None:
            files[symmetric_path(path)] = _blob(self._symmetric, card)
        files[path.with_suffix(".json")] = json.dumps(card.to_dict(), indent=2) + "\n"
        write_files(files)
        self.card = card
        return card

    @classmethod
    def load(cls, path: Path) -> PermanentMemory:
        """Read a memory; a corrupt, foreign or mismatched file is refused."""
        card = Card.read(path.with_suffix(".json"))
        denoiser = _read(card, path, card.check_file(path))
        if not card.symmetric:
            return cls(denoiser, card)
        beside = symmetric_path(path)
        blob = card.check_file(beside, symmetric=True)
        return cls(denoiser, card, symmetric=_read(card, beside, blob))


def _blob(network: torch.nn.Module, card: Card, *, half: bool = True) -> bytes:
    """The file of a network's weights."""
    dtype = torch.float16 if half else torch.float32
    state = {k: v.to(dtype).contiguous() for k, v in network.state_dict().items()}
    return save(state, metadata={"engram": json.dumps({"name": card.name})})


def _hash(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def _read(card: Card, path: Path, blob: bytes) -> NetworkDenoiser:
    """The denoiser of a card with the weights of a file of its own."""
    try:
        return _denoiser_of(card, blob)
    except _UNFIT as error:
        raise WeightsError(
            f"memory {path} does not hold the weights of its card: {str(error).splitlines()[0]}"
        ) from error
