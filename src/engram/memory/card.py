"""The card of a memory: what it was trained on, how, and how to recognise its file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from engram.errors import InputError, WeightsError
from engram.memory.layers import checked_layers

FORMAT = "engram-memory-1"


@dataclass(frozen=True)
class Card:
    """Everything a user should know of a permanent memory before trusting it.

    seen   : in plain words, what of the areas it may be tested on took part in its training, and
        what did not; empty where nobody wrote it down
    layers : what its channels are, for a memory of cells (``memory.layers``); empty for a
        memory of pixels, whose channels are the content itself
    """

    name: str
    summary: str
    data: str
    licence: str
    channels: int
    height: int
    width: int
    range: tuple[float, float]
    network: dict[str, Any]
    parameters: int
    seed: int
    steps: int
    loss: float
    sha256: str = ""
    parent: str = ""
    recipe: str = ""
    format: str = FORMAT
    history: list[dict[str, Any]] = field(default_factory=list)
    layers: tuple[str, ...] = ()
    seen: str = ""

    @property
    def conditioned(self) -> bool:
        """Whether its network takes measurements as input, which the default preset needs."""
        return bool(self.network.get("conditioned"))

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "range": list(self.range), "layers": list(self.layers)}

    @classmethod
    def from_dict(cls, data: dict[str, Any], origin: str) -> Card:
        if data.get("format") != FORMAT:
            raise WeightsError(
                f"{origin} is not an engram memory card (format {data.get('format')!r}, "
                f"expected {FORMAT!r})"
            )
        try:
            layers = checked_layers(data.get("layers", ()))
            return cls(**{**data, "range": tuple(data["range"]), "layers": layers})
        except (TypeError, KeyError, InputError) as error:
            raise WeightsError(f"{origin} is not a valid memory card: {error}") from error
