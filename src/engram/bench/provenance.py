"""Which code and which machine made a result."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import engram
from engram._threads import cores
from engram.errors import InputError
from engram.memory.library import read_card
from engram.origins import Made

PACKAGE = Path(engram.__file__).resolve().parent


def command_of(options: Mapping[str, Any]) -> str:
    """The ``engram bench run`` that makes the searches of a result file, from its options.

    Data are named by their files alone; what tasks are told beforehand is not part of it.
    """
    first, end = options["tasks"]
    words = ["engram", "bench", "run", str(options["suite"])]
    for known in options.get("data", ()):
        name = known["file"] if isinstance(known, Mapping) else str(known)
        words += ["--data", Path(name).name]
    for key, value in options.get("settings", {}).items():
        words += ["--set", f"{key}={value}"]
    words += ["--policies", ",".join(options["policies"]), "--prior", str(options["prior"])]
    words += ["--tasks", f"{first}:{end}"]
    if options["seeds"] != 1:
        words += ["--seeds", str(options["seeds"])]
    if options["preset"] != "default":
        words += ["--preset", str(options["preset"])]
    words += ["--budget", str(options["budget"]), "--at", ",".join(map(str, options["at"]))]
    return shlex.join(words)


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(PACKAGE), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def source_digest() -> str:
    """Twelve hex digits that change with any source of the package, the hyperprior included."""
    return _digest(PACKAGE, [*PACKAGE.rglob("*.py"), *PACKAGE.glob("policies/hyperprior/*.json")])


def plug_in_digest(module: str) -> str | None:
    """Digest of the source of a module from outside the package; None for one of our own.

    A module of another package counts with all of that package's source files: what it does
    may be written in any of them.
    """
    top = module.partition(".")[0]
    if top == engram.__name__:
        return None
    origin = _origin(top)
    if origin.name == "__init__.py":
        return _digest(origin.parent, origin.parent.rglob("*.py"))
    return _digest(origin.parent, [origin])


def _origin(module: str) -> Path:
    """The file of a module, imported or not."""
    loaded = sys.modules.get(module)
    path = getattr(loaded, "__file__", None)
    if loaded is None:
        found = find_spec(module)
        path = None if found is None else found.origin
    if path is None or not Path(path).is_file():
        raise InputError(
            f"the source of module {module!r} cannot be found, so its results could not be told "
            "from those of another version; keep it in a file that can be imported"
        )
    return Path(path)


def _digest(folder: Path, files: Iterable[Path]) -> str:
    """Twelve hex digits of the names and contents of files below a folder."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def commit() -> str:
    """The commit the package is checked out at, else its version.

    Source files that differ from the commit add ``+`` and their digest, so that results of
    edited code are never taken for those of the commit.
    """
    tracked = _git("ls-files", "--error-unmatch", "__init__.py")
    head = _git("rev-parse", "HEAD") if tracked is not None else None
    if head is None:
        return engram.__version__
    changed = _git("status", "--porcelain", "--", "*.py", "policies/hyperprior/*.json")
    return f"{head}+{source_digest()}" if changed else head


def made(memories: Iterable[str], data: str, note: str = "") -> Made:
    """Origin of the figures that the running script fits; no folder of this machine is in it."""
    script, *rest = (argument.rsplit(os.sep, 1)[-1] for argument in sys.argv)
    return {
        "command": shlex.join(["python", f"benchmarks/{script}", *rest]),
        "commit": commit(),
        "memories": {name: read_card(name).sha256 for name in memories},
        "data": data,
        "note": note,
    }


def machine() -> dict[str, Any]:
    """Processor, cores, memory, system and the libraries that decide speed and numbers."""
    out: dict[str, Any] = {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": cores(),
        "memory_gb": _memory_gb(),
        "python": platform.python_version(),
    }
    for name in ("torch", "numpy", "scipy", "scikit-learn"):
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            out[name] = None
    return out


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None
