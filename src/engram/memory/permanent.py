"""The permanent memory: a frozen denoiser with a card; loading, saving, sampling."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor

from engram.errors import InputError, WeightsError
from engram.memory.card import Card
from engram.memory.denoiser import Estimate, Known, NetworkDenoiser, Schedule
from engram.memory.unet import UNet, UNetConfig


def fresh_network(config: UNetConfig, seed: int) -> UNet:
    """A network whose initial weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return UNet(config)


class PermanentMemory:
    """A frozen denoiser and what is known of it. Implements ``Denoiser``."""

    def __init__(self, denoiser: NetworkDenoiser, card: Card) -> None:
        self.denoiser = denoiser.eval().requires_grad_(False)
        self.card = card

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
        return self.denoiser.estimate(x_t, t, known)

    def fits(self, channels: int) -> None:
        """Refuse an area this memory cannot imagine."""
        if channels != self.channels:
            raise InputError(
                f"memory {self.card.name!r} imagines {self.channels} channel(s), the area has "
                f"{channels}; choose another memory (engram prior list) or convert the area"
            )

    def save(self, path: Path, *, half: bool = True) -> Card:
        """Write ``path`` (.safetensors) and its card (.json); returns the card with its hash.

        Weights are stored in half precision, which halves the file and is exact enough
        (they are read back as float32).
        """
        dtype = torch.float16 if half else torch.float32
        state = {k: v.to(dtype).contiguous() for k, v in self.denoiser.state_dict().items()}
        blob = save(state, metadata={"engram": json.dumps({"name": self.card.name})})
        card = replace(self.card, sha256=hashlib.sha256(blob).hexdigest())
        path.parent.mkdir(parents=True, exist_ok=True)
        for target, data in (
            (path, blob),
            (path.with_suffix(".json"), (json.dumps(card.to_dict(), indent=2) + "\n").encode()),
        ):
            temporary = target.with_name(target.name + ".partial")
            temporary.write_bytes(data)
            temporary.replace(target)
        self.card = card
        return card

    @classmethod
    def load(cls, path: Path) -> PermanentMemory:
        """Read a memory; a corrupt, foreign or mismatched file is refused."""
        card_path = path.with_suffix(".json")
        try:
            blob = path.read_bytes()
            card_data = json.loads(card_path.read_text())
        except OSError as error:
            raise WeightsError(f"cannot read memory {path}: {error}") from error
        except ValueError as error:
            raise WeightsError(f"card {card_path} is not valid JSON: {error}") from error
        if not isinstance(card_data, dict):
            raise WeightsError(f"card {card_path} is not a memory card")
        card = Card.from_dict(card_data, str(card_path))
        if hashlib.sha256(blob).hexdigest() != card.sha256:
            raise WeightsError(
                f"memory {path} is damaged or does not belong to its card (the hash differs); "
                "fetch or train it again"
            )
        try:
            state = {k: v.float() for k, v in load(blob).items()}
            network = fresh_network(UNetConfig.from_dict(card.network), 0)
            denoiser = NetworkDenoiser(network)
            denoiser.load_state_dict(state)
            if network.config.outputs != card.channels:
                raise ValueError(f"{network.config.outputs} channels, {card.channels} on the card")
        except (SafetensorError, RuntimeError, KeyError, TypeError, ValueError) as error:
            raise WeightsError(
                f"memory {path} does not hold the weights of its card: {str(error).splitlines()[0]}"
            ) from error
        return cls(denoiser, card)

    @staticmethod
    def is_memory(path: Path) -> bool:
        """True when the file names itself an engram memory."""
        try:
            with safe_open(path, "pt") as file:
                return "engram" in (file.metadata() or {})
        except (OSError, SafetensorError):
            return False
