"""engram: find targets in an area nobody has data about, with few measurements.

Importing it loads nothing: every name below is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engram._version import __version__

if TYPE_CHECKING:
    from engram.client import Client
    from engram.errors import EngramError, InputError, PresetWarning, WeightsError
    from engram.grid import Grid
    from engram.layers import Layers
    from engram.memory.library import load_memory
    from engram.observation import Observation, Observations
    from engram.plugins import register_memory, register_policy, register_suite
    from engram.policies import make_policy
    from engram.simulation import Trace, simulate
    from engram.tasks.balls import ball_task
    from engram.tasks.base import Task

_HOMES = {
    "client": ("Client",),
    "errors": ("EngramError", "InputError", "PresetWarning", "WeightsError"),
    "grid": ("Grid",),
    "layers": ("Layers",),
    "memory.library": ("load_memory",),
    "observation": ("Observation", "Observations"),
    "plugins": ("register_memory", "register_policy", "register_suite"),
    "policies": ("make_policy",),
    "simulation": ("Trace", "simulate"),
    "tasks.balls": ("ball_task",),
    "tasks.base": ("Task",),
}


def __getattr__(name: str) -> Any:
    """A public name, loaded from its home."""
    for home, names in _HOMES.items():
        if name in names:
            found = globals()[name] = getattr(import_module(f"engram.{home}"), name)
            return found
    raise AttributeError(f"module 'engram' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


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
