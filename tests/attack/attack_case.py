"""One case of the attack: a command run in this process, and what must hold of it."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import TextIO

import numpy as np
from attack_lines import DATABASE, SECRET

from engram.cli import main as entry

SECONDS = 30
"""A case that takes longer hangs."""
WRITES = ("create", "ask", "tell", "fail", "correct", "retract", "close", "open", "extend")


class HangError(BaseException):
    """A case took too long."""


class FullStream(io.StringIO):
    """Standard output on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@dataclass
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str
    seconds: float
    trace: str = ""
    hung: bool = False


@dataclass
class Tally:
    """Counts over all cases, and the faults that were found."""

    cases: Counter[str] = field(default_factory=Counter)
    codes: Counter[int] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    acknowledged: int = 0
    worst: float = 0.0
    starved: int = 0
    log: TextIO | None = None

    def fault(self, kind: str, where: str, detail: str) -> None:
        self.faults[kind] += 1
        if len(self.examples) < 40:
            self.examples.append(f"[{kind}] {where}\n{detail}\n")
            if self.log is not None:
                self.log.write(f"{self.examples[-1]}\n")
                self.log.flush()

    def summary(self) -> str:
        parts = ", ".join(f"{n} {kind}" for kind, n in sorted(self.cases.items()))
        named = ("tracebacks", "hangs", "lost", "half-written", "leaks")
        found = ", ".join(f"{self.faults[kind]} {kind}" for kind in named)
        other = sum(n for kind, n in self.faults.items() if kind not in named)
        return (
            f"{sum(self.cases.values())} cases ({parts}), {found}, {other} other faults; "
            f"{self.codes[0]} done, {self.codes[2]} refused, {self.codes[1]} found damaged; "
            f"{self.acknowledged} acknowledged and found again; {self.starved} refused for want "
            f"of memory; slowest {self.worst:.1f} s, peak {_peak_mb():.0f} MB"
        )


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextlib.contextmanager
def limited(kind: int, amount: int) -> Iterator[None]:
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (amount, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise HangError


def run(work: Callable[[], int], out: TextIO, *, disk: int | None = None) -> Outcome:
    """Run one command with its output kept, its time bounded and, with ``disk``, a full disk."""
    err = io.StringIO()
    began, code, trace, hung = time.monotonic(), -1, "", False
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.redirect_stdout(out))
            stack.enter_context(contextlib.redirect_stderr(err))
            if disk is not None:
                stack.enter_context(limited(resource.RLIMIT_FSIZE, disk))
            code = work()
    except HangError:
        hung = True
    except BaseException:
        trace = traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    kept = "" if isinstance(out, FullStream) else out.getvalue()  # type: ignore[attr-defined]
    return Outcome(code, kept, err.getvalue(), time.monotonic() - began, trace, hung)


class Session:
    """One folder, one database, some dozens of commands, and what they acknowledged."""

    def __init__(self, kind: str, seed: str, tally: Tally, folder: Path, verbose: bool) -> None:
        self.kind, self.rng, self.tally = kind, Random(seed), tally
        self.seed, self.folder, self.verbose = seed, folder, verbose
        self.acknowledged: list[tuple[str, int, str]] = []
        self.intact = True

    # -- cases ---------------------------------------------------------------------------

    def case(self, words: list[str], work: Callable[[], int] | None = None) -> Outcome:
        """Run one command, check what must always hold, and keep what it acknowledged."""
        rng, tally = self.rng, self.tally
        full = rng.random() < 0.02 and work is None
        disk = rng.choice((0, 3000, 20_000)) if rng.random() < 0.03 else None
        before = _contents(self.folder)
        stream = FullStream() if full else io.StringIO()
        outcome = run(work or (lambda: entry.main(words)), stream, disk=disk)
        if self.verbose:
            shown = [w if len(w) < 60 else f"{w[:40]}...({len(w)})" for w in words]
            sys.__stdout__.write(f"{outcome.code} {outcome.seconds:.2f} {shown} {outcome.err}\n")
        tally.cases[self.kind] += 1
        tally.codes[outcome.code] += 1
        tally.worst = max(tally.worst, outcome.seconds)
        self._judge(words, outcome)
        self._judge_files(words, outcome, before)
        self._keep(words, outcome, full)
        return outcome

    def fault(self, kind: str, words: list[str], detail: str) -> None:
        text = json.dumps([word if len(word) < 200 else f"{word[:100]}..." for word in words])
        self.tally.fault(kind, f"session {self.seed}: {text}", detail[-3000:])

    def _judge(self, words: list[str], o: Outcome) -> None:
        if o.hung:
            return self.fault("hangs", words, f"{o.seconds:.1f} s")
        if o.trace:
            return self.fault("tracebacks", words, o.trace)
        if SECRET in o.out or SECRET in o.err:
            self.fault("leaks", words, o.err + o.out)
        allowed = (0, 1, 2) if words[:2] == ["campaign", "verify"] else (0, 2)
        if o.code not in allowed:
            self.fault("exit codes", words, f"{o.code}: {o.err}")
        if o.code == 2 and not _is_one_line(o.err) and words != ["campaign"]:
            self.fault("messages", words, repr(o.err))
        if o.code == 1 and "disagrees" not in o.out and '"faults"' not in o.out:
            self.fault("damage without a name", words, o.out + o.err)
        if not o.code and ("Warning" in o.err or "Traceback" in o.err):
            self.fault("noise on standard error", words, o.err)
        if "--json" in words and o.code == 0 and o.out and "--help" not in words:
            try:
                json.loads(o.out)
            except ValueError as error:
                self.fault("JSON", words, f"{error}: {o.out[:500]}")
        if "not enough memory" in o.err or "does not fit into memory" in o.err:
            self.tally.starved += 1
        return None

    def _judge_files(self, words: list[str], o: Outcome, before: dict[str, bytes]) -> None:
        after = _contents(self.folder)
        left = [name for name in after if name.endswith(".partial")]
        changed = {n for n in before.keys() | after.keys() if before.get(n) != after.get(n)}
        if left or (o.code != 0 and changed and "only the answer" not in o.err):
            self.fault("half-written", words, f"{left or sorted(changed)}: {o.err}")
        for name in sorted(changed & after.keys()):
            if o.code == 0 and not _is_whole(name, after[name]):
                self.fault("half-written", words, f"{name}: {after[name][:100]!r}")
        if before.keys() - after.keys():
            self.fault("half-written", words, f"gone: {sorted(before.keys() - after.keys())}")

    def _keep(self, words: list[str], o: Outcome, full: bool) -> None:
        """Remember the events that a command said it recorded in the session's database."""
        here = f"{DATABASE}" in words[words.index("--db") + 1 :][:1] if "--db" in words else False
        if len(words) < 3 or words[1] not in WRITES or not here or full or o.code != 0:
            return
        with contextlib.suppress(ValueError):
            data = json.loads(o.out)
            if isinstance(data, dict) and "seq" in data:
                self.acknowledged.append((words[2], data["seq"], words[1]))
            elif isinstance(data, list):
                self.acknowledged += [(words[2], row["query"], "query") for row in data]

    # -- the end -------------------------------------------------------------------------

    def settle(self) -> None:
        """What was acknowledged is in the log, and the log agrees with its replay."""
        names = dict.fromkeys(name for name, _, _ in self.acknowledged)
        for name in names:
            told = run(lambda n=name: entry.main(_view("history", n)), io.StringIO())  # type: ignore[misc]
            try:
                events = {event["seq"]: event for event in json.loads(told.out)}
            except ValueError:
                self.fault("lost", ["history", name], told.err + told.trace)
                continue
            queries = {
                query["query"]
                for event in events.values()
                if event["kind"] == "ask"
                for query in event["payload"]["queries"]
            }
            for who, number, kind in self.acknowledged:
                there = number in queries if kind == "query" else number in events
                if who == name and not there:
                    self.fault("lost", [kind, name], f"{kind} {number} of {sorted(events)}")
            proved = run(lambda n=name: entry.main(_view("verify", n)), io.StringIO())  # type: ignore[misc]
            if proved.code != 0:
                self.fault("lost", ["verify", name], proved.out + proved.err + proved.trace)
        self.tally.acknowledged += len(self.acknowledged)


def _view(command: str, name: str) -> list[str]:
    return ["campaign", command, "--db", DATABASE, "--json", "--", name]


def _is_one_line(text: str) -> bool:
    """One printable line that says it is an error, perhaps after warnings of ours."""
    lines = text.split("\n")
    ours = all(line.startswith("warning: ") for line in lines[:-2])
    good = len(lines) >= 2 and not lines[-1] and lines[-2].startswith("error: ") and ours
    return good and lines[-2].isprintable()


def _contents(folder: Path) -> dict[str, bytes]:
    """Name -> content of the files that commands may not touch, or have to write whole."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        database = ".db" in path.name or ".artifacts" in name or name.startswith("home")
        if path.is_file() and not path.is_symlink() and not (database and "partial" not in name):
            found[name] = path.read_bytes()
    return found


def _is_whole(name: str, data: bytes) -> bool:
    """A file of ours that another program can read."""
    try:
        if name.endswith(".json"):
            json.loads(data)
        elif name.endswith(".npz"):
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                return all(arrays[key] is not None for key in arrays.files)
        elif name.endswith(".png"):
            return data.endswith(b"IEND\xaeB`\x82")
        elif name.endswith(".csv"):
            return data.startswith(b"row,col,outcome,noise,value") and data.endswith(b"\n")
        elif name.endswith(".html"):
            return b"</html>" in data[-20:]
    except ValueError:
        return False
    return True
