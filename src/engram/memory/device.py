"""Where the network of a memory runs: cpu, cuda or mps."""

from __future__ import annotations

from engram.errors import InputError

DEVICES = ("cpu", "cuda", "mps")


def checked_device(name: str) -> str:
    """A device that is there, ``cuda:1`` being the second of its kind; others are refused."""
    import torch

    kind, _, number = name.partition(":")
    if kind not in DEVICES or (number and not number.isdecimal()):
        raise InputError(f"device={name!r}: choose one of {', '.join(DEVICES)}")
    if kind == "cpu":
        return "cpu"
    there = torch.cuda.device_count() if kind == "cuda" else int(torch.backends.mps.is_available())
    if int(number or 0) >= there:
        raise InputError(
            f"device={name!r}: this machine has {there} of that kind that torch can use; choose cpu"
        )
    return name
