"""The card of a memory: what it was trained on, how, and how to recognise its file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from engram._files import read_json
from engram.errors import InputError, WeightsError, shown
from engram.memory.layers import LayerSet

FORMAT = "engram-memory-1"
LARGEST = 2**16
"""Most channels, rows or columns of a memory."""


@dataclass(frozen=True)
class Card:
    """Everything a user should know of a permanent memory before trusting it.

    seen   : in plain words, what of the areas it may be tested on took part in its training, and
        what did not; empty where nobody wrote it down
    kind   : of memory, which decides how its file is loaded (``memory.kinds``)
    layers : what its channels are, for a memory of cells (``memory.layers``); empty for a
        memory of pixels, whose channels are the content itself
    symmetric : how its symmetric network was made (``memory.distilling``), with the hash of that
        file; empty without one
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
    layers: LayerSet = field(default_factory=LayerSet)
    seen: str = ""
    kind: str = "unet"
    symmetric: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", LayerSet(self.layers))

    @property
    def area_channels(self) -> int:
        """Channels of an area it can search: those it imagines, or of what its layers show."""
        return self.layers.channels if self.layers else self.channels

    @property
    def conditioned(self) -> bool:
        """Whether its network takes measurements as input, which the default preset needs."""
        return bool(self.network.get("conditioned"))

    def to_dict(self) -> dict[str, Any]:
        plain = {**asdict(self), "range": list(self.range), "layers": list(self.layers)}
        if not self.symmetric:
            del plain["symmetric"]
        return plain

    def fits(self, channels: int) -> None:
        """Refuse an area that a memory of this card cannot imagine."""
        if channels != self.channels:
            raise InputError(
                f"memory {self.name!r} imagines {self.channels} channel(s), the area has "
                f"{channels}; choose another memory (engram prior list) or convert the area"
            )

    def check_file(self, path: Path, *, symmetric: bool = False) -> bytes:
        """The content of the memory's file, or of its symmetric network; refused when it is not
        the one of this card."""
        wanted = self.symmetric.get("sha256") if symmetric else self.sha256
        try:
            blob = path.read_bytes()
        except OSError as error:
            raise WeightsError(f"cannot read memory {path}: {error}") from error
        if sha256(blob).hexdigest() != wanted:
            raise WeightsError(
                f"memory {path} is damaged or does not belong to its card (the hash differs); "
                "fetch or train it again"
            )
        return blob

    @classmethod
    def read(cls, path: Path) -> Card:
        """The card of a file."""
        try:
            data = read_json(path)
        except InputError as error:
            raise WeightsError(f"cannot read card {path}: {error}") from error
        if not isinstance(data, dict):
            raise WeightsError(f"{path} is not a memory card")
        return cls.from_dict(data, str(path))

    @classmethod
    def from_dict(cls, data: dict[str, Any], origin: str) -> Card:
        if data.get("format") != FORMAT:
            raise WeightsError(
                f"{origin} is not an engram memory card (format {shown(data.get('format'))}, "
                f"expected {FORMAT!r})"
            )
        try:
            low, high = data["range"]
            layers = LayerSet.checked(data.get("layers", ()))
            card = cls(**{**data, "range": (low, high), "layers": layers})
            card._check()
        except (TypeError, KeyError, ValueError) as error:
            raise WeightsError(f"{origin} is not a valid memory card: {error}") from error
        return card

    def _check(self) -> None:
        """Every field is what it is said to be; files may have been changed by hand."""
        hints = get_type_hints(Card)
        for name in (one.name for one in fields(self)):
            value, kind = getattr(self, name), get_origin(hints[name]) or hints[name]
            if kind is float:
                kind = (int, float)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise TypeError(f"{name}={shown(value)} is not of its kind")
        for name in ("channels", "height", "width"):
            if not 1 <= getattr(self, name) <= LARGEST:
                raise ValueError(f"{name}={shown(getattr(self, name))}: not in 1 to {LARGEST}")
        for name in ("parameters", "seed", "steps"):
            if not 0 <= getattr(self, name) < 2**63:
                raise ValueError(f"{name}={shown(getattr(self, name))}: not in 0 to 2^63")
        if self.symmetric and not isinstance(self.symmetric.get("sha256"), str):
            raise ValueError(f"symmetric={shown(self.symmetric)}: without the hash of its file")
        numbers = (*self.range, self.loss)
        plain = all(isinstance(v, int | float) and abs(v) < 1e300 for v in numbers)
        if not plain or not self.range[0] < self.range[1]:
            raise ValueError(f"range={shown(self.range)}, loss={shown(self.loss)}: not numbers")
