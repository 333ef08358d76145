"""Suites: families of numbered tasks that policies are compared on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from engram._files import as_paths, sha256_of
from engram.bench import families
from engram.detection import Detection
from engram.errors import InputError, shown
from engram.grid import whole
from engram.plugins import Registry
from engram.policies.spec import Value
from engram.tasks.sets import TaskSet
from engram.tasks.settings import Setting, of_maker, of_plan, read_plan
from engram.tasks.species_plan import SpeciesPlan

Settings = Mapping[str, Value]

VISITS = {"detection": Setting(kind=float), "false_alarm": Setting(kind=float)}
"""Settings of every suite: what a visit may miss, and report though it is not there."""

FORMS = {int: "a whole number", float: "a number", bool: "on or off", str: "a text"}


@dataclass(frozen=True)
class Suite:
    """How the tasks of a suite are made.

    make    : (data files, **settings) -> TaskSet; the same files and settings give the same
              tasks on every machine
    data    : the form of the files it needs, in words; empty = it takes none
    example : a name of such a file, for messages
    budgets : those of the paper
    plan    : a dataclass whose fields are the settings, for a maker of (data files, plan); None =
              they are the maker's keyword arguments (``engram.tasks.settings``)
    """

    name: str
    summary: str
    make: Callable[..., TaskSet]
    budgets: tuple[int, ...]
    data: str = ""
    example: str = ""
    plan: type | None = None

    @cached_property
    def settings(self) -> dict[str, Setting]:
        """Name -> setting, as declared."""
        own = of_maker(self.make) if self.plan is None else of_plan(self.plan)
        return {**own, **VISITS}

    def checked(self, settings: Settings) -> tuple[tuple[str, Value], ...]:
        """The settings, sorted, each of its type."""
        for name in settings:
            if name not in self.settings:
                raise InputError(
                    f"suite {self.name!r} has no setting {name!r}; its settings are "
                    f"{', '.join(self.settings)}"
                )
        return tuple(
            (name, _typed(name, settings[name], self.settings[name].kind))
            for name in sorted(settings)
        )

    def tasks(self, data: Sequence[str | Path] = (), settings: Settings | None = None) -> TaskSet:
        """The tasks of these files and settings; read once per process."""
        if data and not self.data:
            raise InputError(
                f"suite {self.name!r} makes its own tasks and takes no data file; leave --data out"
            )
        if self.data and not data:
            raise InputError(
                f"suite {self.name!r} needs {self.data}; give --data FILE, for instance "
                f"--data {self.example}"
            )
        files = tuple(as_paths(list(data))) if data else ()
        stamps = tuple(path.stat().st_mtime_ns for path in files)
        return _made(self.name, files, stamps, self.checked(settings or {}))


@lru_cache(maxsize=4)
def _made(
    name: str,
    files: tuple[Path, ...],
    stamps: tuple[int, ...],
    settings: tuple[tuple[str, Value], ...],
) -> TaskSet:
    """A set of tasks; ``stamps`` are the times of the files, so that a changed one is read."""
    suite, given = SUITES[name], dict(settings)
    seen = Detection.read(*(given.pop(setting, None) for setting in VISITS))
    if suite.plan is None:
        made = suite.make(files, **given)
    else:
        made = suite.make(files, read_plan(suite.plan, given))
    return made if seen.perfect else missing(made, seen)


def missing(tasks: TaskSet, detection: Detection) -> TaskSet:
    """The same tasks where a visit may miss a target, or report one that is not there."""
    if detection.learnt:
        raise InputError("detection='learn' is for policies: give a task the chance it has")
    return replace(
        tasks,
        make=lambda k: replace(tasks.make(k), detection=detection),
        options={**tasks.options, **detection.to_dict()},
    )


def data_card(tasks: TaskSet, given: Sequence[str | Path]) -> list[dict[str, str]]:
    """Names and hashes of the data: of each path given, and of files found beside them.

    The hash of a folder is that of the files in it that the tasks are made from.
    """
    left, card = list(tasks.files), []
    for path in as_paths(list(given)) if given else ():
        inside = [file for file in left if path == file or path in file.parents]
        left = [file for file in left if file not in inside]
        card.append({"file": path.resolve().name, "sha256": sha256_of(inside)})
    return card + [{"file": file.name, "sha256": sha256_of([file])} for file in left]


def _typed(name: str, value: Value, kind: type) -> Value:
    if kind is bool or isinstance(value, bool):
        if kind is bool and isinstance(value, bool):
            return value
    elif kind is str:
        return str(value)
    elif not isinstance(value, str) and abs(value) < 2**63:
        number = whole(value)
        if kind is float:
            return float(value)
        if number is not None:
            return number
    raise InputError(f"{name}={shown(value)}: give {FORMS[kind]}")


OURS: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            "balls",
            "five to ten balls in a 32x32 area (appendix M.1)",
            families.balls,
            (150, 200, 250),
        ),
        Suite(
            "shapes",
            "five to eight copies of a shape that no training scene holds, in a 32x32 area",
            families.shapes,
            (150, 200, 250),
        ),
        Suite(
            "species",
            "where a species lives in a square of five degrees (appendix I)",
            families.species,
            (150, 200, 250),
            "tables of records (CSV, CSV.gz or Parquet with latitude, longitude and species)",
            "records.csv.gz",
            SpeciesPlan,
        ),
        Suite(
            "overhead",
            "vehicles, planes or ships in a 128x128 colour image (appendix N)",
            families.overhead,
            (250, 300, 350),
            "images with masks (.npz with images and masks, a folder with images/ and masks/, or "
            "a DOTA folder with images/ and labelTxt/)",
            "tiles.npz",
        ),
        Suite(
            "tumour",
            "the tumour in a 128x128 slice of a scan",
            families.tumour,
            (250, 300, 350),
            "slices with masks (.npz with images and masks)",
            "slices.npz",
        ),
        Suite(
            "digits",
            "the strokes of a handwritten digit, 28x28 (appendix Q)",
            families.digits,
            (150, 200, 250),
            "an idx file of digits (MNIST's format, plain or gzipped)",
            "train-images-idx3-ubyte.gz",
        ),
        Suite(
            "windows",
            "windows of one mapped area, with what was known of it beforehand",
            families.windows,
            (150, 200, 250),
            "an .npz file with an array of what is sought and arrays of what is known",
            "area.npz",
        ),
    )
}


def _suite(name: str, given: Any) -> Suite:
    if not isinstance(given, Suite) or given.name != name:
        raise InputError(
            f"a suite is an engram.bench.suites.Suite of that name, not {shown(given)}"
        )
    return given


SUITES: Registry[Suite] = Registry("suite", "engram.suites", _suite, OURS)


def get_suite(name: str) -> Suite:
    """A suite by name."""
    return SUITES.find(name)
