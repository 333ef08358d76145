"""Doors for other people's policies, suites and memories: registered here, or by entry points.

A package offers its parts under the entry points ``engram.policies``, ``engram.suites`` and
``engram.memories`` (docs/plugins.md); they are known by name wherever ours are, and loaded when
first used. What cannot be loaded is named when somebody asks for it, and harms nothing else.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TypeVar

from engram.errors import EngramError, InputError, PlugInWarning, shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from engram.bench.suites import Suite

Part = TypeVar("Part")
Offers = dict[str, list["EntryPoint"]]


class Registry(MutableMapping[str, Part]):
    """Parts of one kind by name: our own, those registered in this process, those offered.

    noun  : what a part is called in messages
    group : of the entry points that offer such parts
    part  : (name, what an entry point or a user gives) -> part; refuses what is none
    own   : the package's own parts
    older : names of former days that still stand for one of them, though no list shows them
    """

    def __init__(
        self,
        noun: str,
        group: str,
        part: Callable[[str, Any], Part],
        own: Mapping[str, Part],
        older: Mapping[str, str] | None = None,
    ) -> None:
        self.noun, self.group, self._part = noun, group, part
        self._own, self._older = dict(own), dict(older or {})
        self._searched: tuple[str, ...] | None = None
        self._offers: Offers = {}
        self._loaded: dict[str, Part] = {}

    def __getitem__(self, name: str) -> Part:
        name = self._older.get(name, name)
        if name in self._own:
            return self._own[name]
        offers = self._offered()
        if name not in offers:
            raise KeyError(name)
        if name not in self._loaded:
            self._loaded[name] = self._load(name, offers[name])
        return self._loaded[name]

    def __setitem__(self, name: str, part: Part) -> None:
        self._own[name] = part

    def __delitem__(self, name: str) -> None:
        del self._own[name]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._older or name in self._offered()

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from sorted(name for name in self._offered() if name not in self._own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def find(self, name: str) -> Part:
        """The part of a name; an unknown one is refused with those there are."""
        if name not in self:
            raise InputError(f"unknown {self.noun} {shown(name)}; choose one of {', '.join(self)}")
        return self[name]

    def register(self, name: str, given: Any) -> Part:
        """Make a part known under a name that nothing has yet, in this process."""
        if not isinstance(name, str) or not name or set(name) & set("[],; \t\n"):
            raise InputError(
                f"{self.noun} name {shown(name)}: give a word without blanks, commas and brackets"
            )
        if name in self:
            raise InputError(f"there is a {self.noun} {name!r} already; choose another name")
        self[name] = self._part(name, given)
        return self[name]

    def _offered(self) -> Offers:
        """Entry points by name; looked for again when the places to look in have changed."""
        places = tuple(sys.path)
        if places != self._searched:
            self._offers, self._loaded = {}, {}
            for entry in _entry_points(self.group):
                if entry.name in self._own or entry.name in self._older:
                    warnings.warn(
                        f"{self.noun} {entry.name!r} of package {_package(entry)} is passed over: "
                        "there is one of that name already",
                        PlugInWarning,
                        stacklevel=4,
                    )
                else:
                    self._offers.setdefault(entry.name, []).append(entry)
            self._searched = places
        return self._offers

    def _load(self, name: str, offers: list[EntryPoint]) -> Part:
        packages = " and ".join(_package(entry) for entry in offers)
        if len(offers) > 1:
            raise InputError(
                f"{self.noun} {name!r} is offered by packages {packages}; uninstall all but one"
            )
        try:
            return self._part(name, offers[0].load())
        except Exception as error:
            raise InputError(
                f"{self.noun} {name!r} of package {packages} cannot be loaded: {in_a_line(error)}; "
                "mend or uninstall that package"
            ) from error


def in_a_line(error: Exception) -> str:
    """What went wrong in somebody else's code."""
    text = " ".join(str(error).split())
    kind = "" if isinstance(error, EngramError) else f"{type(error).__name__}: "
    return f"{kind}{text}"[:300] if text else type(error).__name__


def _package(entry: EntryPoint) -> str:
    """Name of the package that offers an entry point."""
    return repr(entry.dist.name if entry.dist is not None else entry.value)


def _entry_points(group: str) -> list[EntryPoint]:
    """The entry points of a group; a package whose list cannot be read is named and left out."""
    from importlib.metadata import distributions, entry_points

    try:
        return list(entry_points(group=group))
    except Exception:  # one of the packages; which one?
        found: list[EntryPoint] = []
        for package in distributions():
            try:
                found += package.entry_points.select(group=group)
            except Exception as error:
                place = getattr(package, "_path", package)
                warnings.warn(
                    f"plug-ins of {place} are left out: its entry points cannot be read "
                    f"({in_a_line(error)}); mend or uninstall that package",
                    PlugInWarning,
                    stacklevel=5,
                )
        return found


def register_policy(name: str, policy: Any) -> None:
    """Make a policy known by name in this process.

    ``policy`` is a :class:`engram.policies.Policy` class or a function that makes one, called
    with (grid, budget, seed, **options); one with a parameter ``memory`` is given ``memory`` and
    ``preset`` too.
    """
    from engram.policies import POLICIES

    POLICIES.register(name, policy)


def register_suite(suite: Suite) -> None:
    """Make a suite known by its name in this process."""
    from engram.bench.suites import SUITES

    SUITES.register(suite.name, suite)


def register_memory(kind: str, loader: Callable[..., Any]) -> None:
    """Make a kind of memory known in this process.

    ``loader`` is called with (path, card) for files whose card names that kind, and returns a
    denoiser: an object with ``estimate``, ``schedule`` and ``conditioned``.
    """
    from engram.memory.kinds import KINDS

    KINDS.register(kind, loader)
