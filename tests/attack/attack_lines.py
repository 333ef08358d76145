"""Random command lines of ``engram campaign``: mostly plausible, with something wrong in them.

The options are read from the command line itself, so a new one is attacked from its first day.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import click

from engram.cli.main import command_of

SECRET = "s3cr3t-hunter2"
"""Stands in every URL; it may never be printed."""

DATABASE = "campaigns.db"
NAMES = ("f", "f", "f", "g", "[/x]")
TEXTS = (
    "",
    " ",
    "-",
    "[/x]",
    "[bold]a",
    ":100:",
    "\x1b[31mred\x1b[0m",
    "a\nb",
    "\u202egnol",
    "é☃",
    "x" * 5000,
    "\udcff",
    "'; DROP TABLE events;--",
    "../../x",
    "%s{0}{x}",
)
WHOLE = ("0", "-1", "1.5", "nan", "", "x", "1e3", "9" * 400, "9" * 5000, "1_0", "٣", "1000000000")
REAL = ("nan", "inf", "-inf", "-1", "1e308", "1e309", "1e-320", "", "x", "9" * 400, "0", "٣")
PAIRS = ("1", "a,b", "0,0,0", "-1,0", "0,-1", "999,0", "1,", "٣,1", "9" * 5000 + ",1", "1,1e3", "")
TIMES = ("-1h", "5", "1x", "9" * 310 + "d", "1e5h", "", "٣h", "0s", "999999999w")
PATHS = (
    "absent.csv",
    "absent.npz",
    ".",
    "..",
    "",
    "/nonexistent/x.csv",
    "/dev/null",
    "/dev/full",
    "folder",
    "x" * 300 + ".csv",
    DATABASE,
    "text.db",
    "pipe.csv",
)
DATABASES = (
    "text.db",
    "folder",
    "absent.db",
    "/nonexistent/x.db",
    "~nosuchuser/x.db",
    "",
    ":memory:",
    "sqlite://",
    f"sqlite:///x.db?password={SECRET}",
    f"mysql://u:{SECRET}@h/d",
    f"postgresql+nosuch://u:{SECRET}@h/d",
    f"postgresql://u:{SECRET}@h:port/d",
    f"postgresql://u:{SECRET}@127.0.0.1/d?nosuch=1",
    f"postgresql://127.0.0.1/d?password={SECRET}&sslpassword={SECRET}&nosuch=1",
    f"postgresql:u:{SECRET}@h/d",
    f"host=h password={SECRET}",
    f"://{SECRET}",
)

Maker = Callable[[Random], str]


def _either(good: Maker, bad: tuple[str, ...], share: float = 0.07) -> Maker:
    """A plausible value, or now and then one of the others."""
    return lambda rng: rng.choice(bad) if rng.random() < share else good(rng)


def _one(*texts: str) -> Maker:
    return lambda rng: rng.choice(texts)


def _cell(rng: Random) -> str:
    return f"{rng.randrange(6)},{rng.randrange(6)}"


VALUES: dict[str, Maker] = {
    "name": _either(_one(*NAMES), TEXTS, 0.1),
    "db": _either(_one(DATABASE), DATABASES, 0.06),
    "by": _either(_one("crew", "north"), TEXTS),
    "key": _either(lambda rng: f"k{rng.randrange(12)}", TEXTS),
    "reason": _either(_one("bog", "fog"), TEXTS, 0.4),
    "cell": _either(_cell, PAIRS, 0.07),
    "cells": _either(_cell, PAIRS, 0.07),
    "start": _either(_cell, PAIRS),
    "outcome": _either(_one("0", "1", "0.5"), REAL),
    "value": _either(_one("0", "0.5", "1", "0.1,0.2,0.3"), (*REAL, "1,2", "1e39", "1j")),
    "noise": _either(_one("0", "0.1"), REAL),
    "n": _either(_one("1", "2", "3"), WHOLE),
    "query": _either(_one("1", "2", "3", "4"), WHOLE),
    "ahead": _either(_one("1", "5"), WHOLE),
    "amount": _either(_one("1", "2"), REAL),
    "level": _either(_one("0.8", "0.95"), REAL),
    "lease": _either(_one("1h", "2d", "0.001s"), TIMES),
    "retry_after": _either(_one("0", "1h", "2d"), TIMES),
    "rank": _either(_one("score", "per-cost"), TEXTS),
    "size": _either(_one("4,4", "6,6", "3,5"), (*PAIRS, "1000000,1000000", "4x4", "0,0")),
    "cell_size": _one("1,1", "2,2"),
    "budget": _either(_one("5", "9"), REAL),
    "budget_kind": _either(_one("measurements", "cost"), TEXTS),
    "value_range": _either(
        _one("0,1", "-5,5"), ("0,1e39", "0,1e-320", "1,0", "nan,1", "0", "1,1.0000001", "a,b")
    ),
    "channels": _either(_one("1", "1", "3"), WHOLE),
    "policy": _either(_one("random", "random", "spread", "gp"), (*TEXTS, "gp[seed=1]")),
    "preset": _either(_one("default"), TEXTS),
    "prior": _either(_one("digits"), (*TEXTS, "absent.safetensors", "digits+digits", "a+b")),
    "seed": _either(_one("0", "7"), WHOLE),
    "travel": _either(_one("0", "0.1"), REAL),
    "stop_yield": _either(_one("0.02"), REAL),
    "crew": _either(_one("crew=0,0"), ("crew", "=0,0", "crew=9,9", "crew=a", "[/x]=0,0")),
    "mask": _either(_one("mask.csv"), PATHS, 0.4),
    "cost": _either(_one("cost.csv"), PATHS, 0.4),
    "file": _either(_one("tells.csv"), PATHS, 0.4),
    "content": _either(_one("content.npy"), PATHS, 0.4),
    "out": _either(_one("out.csv", "out.json", "out.npz", "new/out.csv"), PATHS, 0.3),
    "png": _either(_one("out.png"), PATHS, 0.3),
}
"""What is given for a parameter, by its name; where there is none, by its type."""

ALWAYS = {"db": 0.97, "policy": 1.0, "size": 0.8, "as_json": 0.7, "cell": 0.75, "outcome": 0.8}
"""How often an option that may be left out is given (others: one time in five)."""

WEIGHTS = {"tell": 6, "ask": 5, "create": 3, "status": 2, "explain": 1, "verify": 1}


def campaign_commands() -> dict[str, click.Command]:
    """Name -> command of ``engram campaign``."""
    return dict(command_of("campaign").commands["campaign"].commands)


COMMANDS = campaign_commands()


def command_line(rng: Random) -> list[str]:
    """One command line of ``engram campaign``."""
    names = sorted(COMMANDS)
    name = rng.choices(names, [WEIGHTS.get(n, 2) for n in names])[0]
    words = ["campaign", name]
    for parameter in COMMANDS[name].params:
        words += _given(rng, name, parameter)
    if rng.random() < 0.02:
        words.insert(rng.randrange(len(words) + 1), rng.choice((*TEXTS, "--nosuch", "--help")))
    return words


def _given(rng: Random, command: str, parameter: click.Parameter) -> list[str]:
    usual = 0.97 if parameter.required else ALWAYS.get(parameter.name or "", 0.2)
    if rng.random() > usual:
        return []
    if getattr(parameter, "is_flag", False):
        return [parameter.opts[0]] if parameter.opts[0] != "--help" else []
    key = "cell_size" if (command, parameter.name) == ("create", "cell") else parameter.name
    value = VALUES.get(key or "", _either(_one("1"), TEXTS))(rng)
    if isinstance(parameter, click.Argument) or not hasattr(parameter, "is_flag"):
        return [value]
    return [parameter.opts[0], value]
