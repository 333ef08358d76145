"""Does the engine of an area fit in this machine's memory? Asked before anything is built."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from engram.campaign.model import Spec
from engram.errors import InputError
from engram.estimates import Estimate, at_once, estimate


def check_fits(spec: Spec, measurements: int) -> None:
    """Refuse an area whose engine would need more memory than there is."""
    grid, have = spec.grid, memory()
    need = bytes_needed(spec, measurements)
    if need <= have:
        return
    why = needs_all_cells(spec)
    smaller = f"{why} every cell is looked at at once: leave that out, or use " if why else "use "
    raise InputError(
        f"an area of {grid.rows}x{grid.cols} cells ({grid.height}x{grid.width} pixels of "
        f"{grid.channels} channel(s)) with {measurements} measurements needs about "
        f"{need / 1e9:.3g} GB for policy {spec.policy!r}, and {have / 1e9:.3g} GB are there; "
        f"{smaller}larger cells, a smaller area, or another policy ('random' needs the least)"
    )


def bytes_needed(spec: Spec, measurements: int) -> int:
    """What the policy of an area takes after so many measurements, roughly and from above."""
    return int(expected(spec, measurements).bytes)


def expected(spec: Spec, measurements: int) -> Estimate:
    """Memory and seconds of a campaign."""
    return estimate(spec.policy, spec.grid, measurements, whole=bool(needs_all_cells(spec)))


def needs_all_cells(spec: Spec) -> str:
    """What keeps a large area from being computed by windows, in words; empty if nothing does."""
    if spec.layers is not None:
        return "with layers or a belief map"
    return at_once(spec.preset, spec.options)


def memory() -> int:
    """Bytes this process may have: of the machine, its control group, or its own limit."""
    limits = []
    with contextlib.suppress(OSError, ValueError, AttributeError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError, ValueError):
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    with contextlib.suppress(ImportError):
        import resource

        for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
            soft = resource.getrlimit(kind)[0]
            limits.extend([soft] if soft != resource.RLIM_INFINITY else [])
    return min(limits, default=8_000_000_000)
