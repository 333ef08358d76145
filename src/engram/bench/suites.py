"""Suites: families of numbered tasks that policies are compared on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from engram.errors import InputError

if TYPE_CHECKING:
    from engram.tasks.base import Task


@dataclass(frozen=True)
class Suite:
    """Where the tasks of a suite come from; imported when first used.

    ``module.attribute`` is a function (number, **settings) -> Task; the same number and
    settings give the same task on every machine. ``budgets`` are those of the paper.
    """

    name: str
    summary: str
    module: str
    attribute: str
    budgets: tuple[int, ...]

    def task(self, number: int, settings: Mapping[str, Any]) -> Task:
        """Task ``number`` of this suite."""
        make = getattr(import_module(self.module), self.attribute)
        try:
            signature(make).bind(number, **settings)
        except TypeError as error:
            raise InputError(
                f"suite {self.name!r} does not take the settings {dict(settings)}: {error}"
            ) from error
        task: Task = make(number, **settings)
        return task


SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            "balls",
            "five to ten balls in a 32x32 area (appendix M.1)",
            "engram.tasks.balls",
            "ball_task",
            (150, 200, 250),
        ),
    )
}


def get_suite(name: str) -> Suite:
    """A suite by name."""
    if name not in SUITES:
        raise InputError(f"unknown suite {name!r}; choose one of {', '.join(SUITES)}")
    return SUITES[name]
