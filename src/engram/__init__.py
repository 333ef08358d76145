"""engram: find targets in an area nobody has data about, with few measurements."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engram._version import __version__
from engram.errors import EngramError, InputError, WeightsError
from engram.grid import Grid

if TYPE_CHECKING:
    from engram.memory.library import load_memory
    from engram.observation import Observation, Observations
    from engram.policies import make_policy
    from engram.simulate import Trace, simulate
    from engram.tasks.balls import ball_task
    from engram.tasks.base import Task

_LAZY = {
    "Observation": "engram.observation",
    "Observations": "engram.observation",
    "Task": "engram.tasks.base",
    "Trace": "engram.simulate",
    "ball_task": "engram.tasks.balls",
    "load_memory": "engram.memory.library",
    "make_policy": "engram.policies",
    "simulate": "engram.simulate",
}

__all__ = [
    "EngramError",
    "Grid",
    "InputError",
    "Observation",
    "Observations",
    "Task",
    "Trace",
    "WeightsError",
    "__version__",
    "ball_task",
    "load_memory",
    "make_policy",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when first used, so that ``import engram`` stays light."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'engram' has no attribute {name!r}")
