"""From finished searches to lessons for the permanent memory (appendix F)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from engram.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from engram.memory.permanent import PermanentMemory
    from engram.policies import Policy
    from engram.tasks.base import Task

Progress = Callable[[int, float], None]
"""Called with (tasks searched, success rate of the last one)."""


def posterior_samples(policy: Policy) -> Tensor:
    """Fresh samples (P, C, H, W) of the area given everything a policy has measured.

    Drawn from both memories together, h included; in model units, as the policy's memory sees
    the area.
    """
    inside: Any = getattr(policy, "inner", policy)
    if not hasattr(inside, "imagination"):
        raise InputError(f"policy {policy.name!r} imagines nothing that could be learnt from")
    measured = inside.imagination.measurements(inside.observations)
    samples: Tensor = inside.imagination.draw(inside.composite(), measured, policy.t)
    return samples


def lessons_of(
    memory: PermanentMemory,
    tasks: Iterable[Task],
    budget: int,
    *,
    policy: str = "em-ptdm",
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Tensor]:
    """Search tasks with a memory; the posterior samples of each, ready for ``consolidate``."""
    from engram.policies import make_policy
    from engram.simulation import simulate

    lessons = []
    for number, task in enumerate(tasks, 1):
        searching = make_policy(policy, task.grid, budget, seed=seed, memory=memory)
        trace = simulate(searching, task)
        lessons.append(posterior_samples(searching))
        if progress is not None:
            progress(number, trace.success_rate())
    return lessons
