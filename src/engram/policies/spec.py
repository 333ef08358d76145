"""Policies as they are written, in every command and in Python: ``em-ptdm[h=off,a=5]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engram.detection import Detection
from engram.errors import InputError
from engram.policies import (
    POLICIES,
    PRESETS,
    make_policy,
    takes_detection,
    takes_layers,
    warn_of_preset,
)
from engram.policies.separate import checked_goal

if TYPE_CHECKING:
    from engram.layers import Layers
    from engram.policies import Policy
    from engram.tasks.base import Task

Value = bool | int | float | str

_WORDS: dict[str, bool] = {
    "on": True,
    "true": True,
    "yes": True,
    "off": False,
    "false": False,
    "no": False,
}


RESERVED = {"name", "grid", "budget", "seed", "memory", "device"}
"""What every policy is given by the search itself."""


def typed(text: str) -> Value:
    """The value a word stands for: on/off, a whole number, a number, or the word itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_options(text: str, where: str) -> dict[str, Value]:
    """``h=off,a=5`` -> {"h": False, "a": 5}."""
    options: dict[str, Value] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key.isidentifier() or not value:
            raise InputError(f"{where}: option {part.strip()!r} is not of the form name=value")
        if key in options:
            raise InputError(f"{where}: option {key!r} is given twice")
        options[key] = typed(value)
    return options


@dataclass(frozen=True)
class PolicyChoice:
    """A policy with its options; ``label`` is the text it was given as."""

    label: str
    name: str
    preset: str
    prior: str
    options: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def parse(cls, text: str, *, preset: str, prior: str) -> PolicyChoice:
        """``name`` or ``name[option=value,...]``.

        The options ``preset`` and ``prior`` replace the given ones for this policy alone; the
        others go to the policy.
        """
        match = re.fullmatch(r"([^\[\]]+)(?:\[([^\[\]]*)\])?", text)
        if match is None:
            raise InputError(f"policy {text!r} is not of the form name or name[option=value,...]")
        name, inside = match.group(1).strip(), match.group(2)
        POLICIES.find(name)
        options = {} if inside is None else parse_options(inside, f"policy {text!r}")
        preset, prior = str(options.pop("preset", preset)), str(options.pop("prior", prior))
        if preset not in PRESETS:
            raise InputError(f"unknown preset {preset!r}; choose one of {', '.join(PRESETS)}")
        taken = sorted(RESERVED & options.keys())
        if taken:
            raise InputError(
                f"policy {text!r}: {taken[0]} is not an option of a policy; it follows from the "
                "task and the command's own options"
            )
        return cls(text, name, preset, prior, tuple(sorted(options.items())))

    @property
    def needs_memory(self) -> bool:
        return POLICIES[self.name].needs_memory

    def warn_of_preset(self) -> None:
        """Say which memories cannot run the preset, before workers do their part in silence."""
        if self.needs_memory:
            from engram.memory.library import read_cards

            for card in read_cards(self.prior).values():
                warn_of_preset(card.name, card.conditioned, self.preset)

    def build(self, task: Task, budget: int, seed: int, device: str | None = None) -> Policy:
        """The policy, ready to search the task; ``device`` as in ``make_policy``."""
        memory = None
        if self.needs_memory:
            from engram.memory.library import load_memories

            memory = load_memories(self.prior)
        options: dict[str, Any] = {**self.told_of(task.detection), **dict(self.options)}
        options.pop("layers", None)
        return make_policy(
            self.name,
            task.grid,
            budget,
            seed=seed,
            memory=memory,
            preset=self.preset,
            device=device,
            layers=self.layers_of(task),
            **options,
        )

    def needs_layers(self, task: Task) -> None:
        """Refuse a policy that would not look at the layers that were given."""
        if task.layers and self.layers_of(task) is None:
            raise InputError(
                f"policy {self.label!r} (preset {self.preset}) has no use for layers; leave them "
                "out, or choose em-ptdm or gp"
            )

    def layers_of(self, task: Task) -> Layers | None:
        """What of a task's layers this policy is told: those it can use, all unless it names some.

        The option ``layers`` is off, or names with ``+`` between them.
        """
        given = dict(self.options).get("layers", True)
        if task.layers is None or given is False:
            return None
        if self.preset == "paper" or not takes_layers(self.name):
            return None
        return task.layers if given is True else task.layers.only(str(given).split("+"))

    def told_of(self, detection: Detection) -> dict[str, Any]:
        """What this policy is told of the visits: nothing where it takes them for the truth.

        Its own options ``detection`` and ``false_alarm`` come before.
        """
        blind = self.preset == "paper" or not takes_detection(self.name)
        if detection.perfect or blind or "detection" in dict(self.options):
            return {}
        return {"detection": detection.written, "false_alarm": detection.false_alarm}


def with_goal(text: str, goal: str | None) -> str:
    """The text of a policy that is after ``goal``: ``gp[nu=1]`` -> ``gp[nu=1,goal=objects]``."""
    if goal is None:
        return text
    chosen = f"goal={checked_goal(goal)}]"
    return f"{text[:-1]},{chosen}" if text.endswith("]") else f"{text}[{chosen}"


def policy_text(name: str, options: Mapping[str, Any]) -> str:
    """The text that :meth:`PolicyChoice.parse` reads: ``em-ptdm[a=5,h=off]``."""
    words = {True: "on", False: "off"}
    inside = ",".join(
        f"{key}={words[value] if isinstance(value, bool) else value}"
        for key, value in sorted(options.items())
    )
    return f"{name}[{inside}]" if inside else name


def parse_policies(text: str, *, preset: str, prior: str) -> tuple[PolicyChoice, ...]:
    """A list separated by commas (those inside brackets belong to the options)."""
    labels = [part.strip() for part in re.split(r",(?![^\[]*\])", text)]
    choices = tuple(PolicyChoice.parse(label, preset=preset, prior=prior) for label in labels)
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"policy {label!r} is given twice")
    return choices
