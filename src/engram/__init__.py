"""engram: find targets in an area nobody has data about, with few measurements.

These imports are light: torch and everything else that is heavy is loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engram._version import __version__
from engram.errors import EngramError, InputError, PresetWarning, WeightsError
from engram.grid import Grid
from engram.layers import Layers
from engram.memory.library import load_memory
from engram.observation import Observation, Observations
from engram.plugins import register_memory, register_policy, register_suite
from engram.policies import make_policy
from engram.simulate import Trace, simulate
from engram.tasks.balls import ball_task
from engram.tasks.base import Task

if TYPE_CHECKING:
    from engram.client import Client


def __getattr__(name: str) -> Any:
    """What is loaded when it is first named."""
    if name == "Client":
        from engram.client import Client

        return Client
    raise AttributeError(f"module 'engram' has no attribute {name!r}")


__all__ = [
    "Client",
    "EngramError",
    "Grid",
    "InputError",
    "Layers",
    "Observation",
    "Observations",
    "PresetWarning",
    "Task",
    "Trace",
    "WeightsError",
    "__version__",
    "ball_task",
    "load_memory",
    "make_policy",
    "register_memory",
    "register_policy",
    "register_suite",
    "simulate",
]
