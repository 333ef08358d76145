"""Do the tests notice? Small deliberate faults, each of which a named test has to catch.

    python tests/mutants/mutants.py [--only WORD] [--out FILE.md]

``faults.toml`` is the list: a name, a file of the package, a text that occurs in it exactly
once, what stands there instead, and the test that has to fail. Every fault is put into a copy
of the source, alone, and its test is run against that copy. First all named tests have to pass
on the copy as it is. A fault whose text is not found exactly once is an error that names it, so
the list is kept up with the code. The last line is ``killed K of N``.

Python and the heavy libraries are started once: each test runs in a fork of a process that has
imported them, but nothing of the package.
"""

from __future__ import annotations

import argparse
import compileall
import gc
import os
import platform
import py_compile
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
SOURCE = TESTS.parent / "src"
LIST = Path(__file__).with_name("faults.toml")
PATIENCE = 60
"""Seconds of processor time after which a test that does not end counts as failed."""
PASSED, FAILED, NEVER_ENDED = 0, 1, -signal.SIGXCPU
HEAVY = (
    "hypothesis",
    "pytest",
    "safetensors.torch",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.special",
    "sklearn.gaussian_process",
    "torch",
)
"""What most tests need and no fault touches."""


@dataclass(frozen=True)
class Fault:
    """One deliberate fault; ``file`` is relative to the package, ``test`` to the tests."""

    name: str
    file: str
    old: str
    new: str
    test: str

    def applied(self, text: str) -> str:
        """The file's text with the fault in it."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(
                f"fault {self.name!r}: its text occurs {found} times in {self.file}, not once; "
                f"bring {LIST.name} up to date with the code"
            )
        return text.replace(self.old, self.new)


def read_faults(path: Path = LIST) -> list[Fault]:
    """The list, in its order."""
    return [Fault(**entry) for entry in tomllib.loads(path.read_text())["fault"]]


@dataclass(frozen=True)
class Verdict:
    """What became of a fault: exit code of pytest, seconds of processor time, what it printed."""

    fault: Fault
    code: int
    seconds: float
    output: str

    @property
    def killed(self) -> bool:
        """The test ran and failed; a fault that stops the test from being found is none."""
        return self.code in (FAILED, NEVER_ENDED)

    @property
    def word(self) -> str:
        words = {PASSED: "SURVIVED", FAILED: "killed", NEVER_ENDED: "killed (never ended)"}
        return words.get(self.code, f"BROKEN (pytest exit code {self.code})")


class Workshop:
    """A copy of the package in a temporary folder, in which faults are made and undone."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src"
        shutil.copytree(SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__", "*.egg*"))
        mode = py_compile.PycInvalidationMode.CHECKED_HASH  # a changed file is read anew
        compileall.compile_dir(self.source, quiet=1, invalidation_mode=mode)

    def judge(self, fault: Fault) -> Verdict:
        """Put the fault into the copy, run its test, and take it out again."""
        path = self.source / "engram" / fault.file
        sound = path.read_text()
        path.write_text(fault.applied(sound))
        try:
            before = processor_time()
            code, output = self.run([fault.test])
            return Verdict(fault, code, processor_time() - before, output)
        finally:
            path.write_text(sound)

    def run(self, tests: Sequence[str]) -> tuple[int, str]:
        """Exit code and output of pytest on these tests, against the copy, in a fork."""
        with tempfile.TemporaryFile("w+") as heard:
            child = os.fork()
            if child == 0:
                self._pytest(tests, heard.fileno())
            _, status = os.waitpid(child, 0)
            heard.seek(0)
            return os.waitstatus_to_exitcode(status), heard.read()

    def _pytest(self, tests: Sequence[str], output: int) -> None:
        """In the child: never returns."""
        code = 70
        try:
            os.dup2(output, 1)
            os.dup2(output, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE * len(tests), resource.RLIM_INFINITY))
            sys.path.insert(0, str(self.source))
            os.environ["PYTHONPATH"] = str(self.source)
            os.chdir(TESTS.parent)
            import pytest

            plain = ["-q", "-x", "--assert=plain", "--tb=short", "-p", "no:cacheprovider"]
            code = int(pytest.main([*plain, *(f"tests/{test}" for test in tests)]))
            import engram

            if not str(engram.__file__).startswith(str(self.source)):
                code = 71  # the copy was not what was tested
        finally:
            sys.stdout.flush()
            os._exit(code)


def warm_up() -> None:
    """Import the heavy libraries; one thread, no bytecode written."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    sys.dont_write_bytecode = True
    for name in HEAVY:
        import_module(name)
    import torch

    torch.set_num_threads(1)
    gc.freeze()


def processor_time() -> float:
    """Seconds that this process and those that it waited for have computed."""
    return sum(os.times()[:4])


def spent(began: float) -> str:
    """Time since a moment: by the clock, and what the processor had to do for it."""
    return f"{time.perf_counter() - began:.0f} s ({processor_time():.0f} s of processor time)"


def page(verdicts: Sequence[Verdict], spent: str) -> str:
    """The result as Markdown."""
    sys.path.insert(0, str(SOURCE))
    from engram.bench.provenance import commit

    killed = sum(v.killed for v in verdicts)
    lines = [
        "| fault | file | test that has to fail | result | processor s |",
        "| --- | --- | --- | --- | --- |",
    ]
    for v in verdicts:
        test = v.fault.test.replace("::", "`, `")
        lines.append(
            f"| {v.fault.name} | `{v.fault.file}` | `{test}` | {v.word} | {v.seconds:.1f} |"
        )
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    lines += [
        "",
        f"`make mutants` at {commit()}, {when}, {spent}, Python {platform.python_version()}.",
        "",
        f"killed {killed} of {len(verdicts)}",
    ]
    return "\n".join(lines) + "\n"


def judged(faults: Sequence[Fault]) -> list[Verdict]:
    """A verdict on every fault, told as it comes; the named tests have to pass without any."""
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder))
        code, output = workshop.run(list(dict.fromkeys(fault.test for fault in faults)))
        if code != PASSED:
            raise ValueError(f"{output}\nnamed tests do not pass on the source as it is")
        verdicts = []
        for fault in faults:
            verdict = workshop.judge(fault)
            verdicts.append(verdict)
            print(
                f"{verdict.word:9} {verdict.seconds:5.1f} s  {fault.file}: {fault.name}", flush=True
            )
            if not verdict.killed:
                print(verdict.output)
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description="apply every fault; its test has to fail")
    parser.add_argument("--only", default="", help="faults whose name, file or test has this word")
    parser.add_argument("--out", type=Path, help="where the result is kept, as Markdown")
    given = parser.parse_args()
    faults = [f for f in read_faults() if given.only in f"{f.name} {f.file} {f.test}"]
    began = time.perf_counter()
    try:
        for fault in faults:
            fault.applied((SOURCE / "engram" / fault.file).read_text())
        verdicts = judged(faults)
    except ValueError as error:
        print(error)
        return 2
    if given.out:
        given.out.write_text(page(verdicts, spent(began)))
    killed = sum(verdict.killed for verdict in verdicts)
    print(spent(began))
    print(f"killed {killed} of {len(verdicts)}")
    return 0 if killed == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
