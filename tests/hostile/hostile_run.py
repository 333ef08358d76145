"""Hostile files through the command line: no traceback, no other file opened, no call to a server.

    hostile_run.py [--out LIST.md] [--every N]

Every file is given to the commands that would read it. Refused means exit code 2 and one line on
standard error. The kernel tells which files of the folder were opened (inotify), by whatever
library; a server that waits tells whether it was called.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import json
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from hostile_files import TRAP, URL, Case, cases, polygon, tif

from engram.cli import main as entry

SECONDS = 60
"""A file that takes longer hangs."""
IN_OPEN, IN_ISDIR = 0x20, 0x40000000


class Watch:
    """What is opened in a folder, as the kernel says."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._file = libc.inotify_init1(os.O_NONBLOCK)
        if self._file < 0 or libc.inotify_add_watch(self._file, os.fsencode(folder), IN_OPEN) < 0:
            raise OSError(ctypes.get_errno(), "inotify")

    def opened(self) -> set[str]:
        """Names of files that were opened since the last look."""
        names = set()
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._file, 2**16):
                at = 0
                while at < len(data):
                    _, mask, _, length = struct.unpack_from("iIII", data, at)
                    name = data[at + 16 : at + 16 + length].rstrip(b"\0").decode()
                    if name and not mask & IN_ISDIR:
                        names.add(name)
                    at += 16 + length
        return names

    def close(self) -> None:
        os.close(self._file)


@dataclass
class Verdict:
    """What became of a file."""

    about: str
    code: int
    words: str
    fault: str = ""


def commands(case: Case, folder: Path, database: Path) -> list[list[str]]:
    """The command lines that read a file."""
    given = str(folder / case.name)
    if case.name.startswith("tell"):
        return [["campaign", "tell", "park", "--file", given, "--db", str(database)]]
    park = str(database.parent / "park.geojson")
    if case.name.startswith("cost"):
        return [["area", "show", park, "--cell-size", "500m", "--cost", given]]
    show = [["area", "show", given, "--cell-size", "500m"]]
    if not given.endswith((".tif", ".tiff")):
        show.append(["area", "show", park, "--cell-size", "500m", "--no-go", given])
    return show


def judged(case: Case, root: Path, database: Path, server: socket.socket) -> Verdict:
    """Run the commands that read one file and look at what they did."""
    folder, trap = root / "given", root / "trap"
    folder.mkdir()
    address = f"http://127.0.0.1:{server.getsockname()[1]}"
    filled = case.data.replace(TRAP.encode(), str(trap).encode())
    (folder / case.name).write_bytes(filled.replace(URL.encode(), address.encode()))
    for name, data in case.beside.items():
        (folder / name).write_bytes(data.replace(TRAP.encode(), str(trap).encode()))
    watches = [Watch(folder), Watch(trap)]
    verdict = Verdict(case.about, 0, "")
    try:
        for words in commands(case, folder, database):
            _judge(words, verdict)
        other = watches[0].opened() - {case.name, *case.parts} | watches[1].opened()
        if other:
            verdict.fault = f"opened {', '.join(sorted(other))}"
        with contextlib.suppress(BlockingIOError):
            server.accept()[0].close()
            verdict.fault = "called a server"
    finally:
        for watch in watches:
            watch.close()
        shutil.rmtree(folder)
    verdict.words = verdict.words.replace(str(folder) + "/", "").replace(str(root), "...")
    return verdict


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError


def _judge(words: list[str], verdict: Verdict) -> None:
    out, err = io.StringIO(), io.StringIO()
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = entry.main(words)
    except BaseException as error:
        kind = "hangs" if isinstance(error, TimeoutError) else "traceback"
        verdict.code, verdict.fault = -1, f"{kind}: {traceback.format_exc()}"
        return
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    said = err.getvalue() if code else out.getvalue().splitlines()[0]
    lines = err.getvalue().splitlines()
    one_line = len(lines) == 1 and lines[0].startswith("error: ") and lines[0].isprintable()
    if code not in (0, 2) or (code == 2 and not one_line):
        verdict.fault = f"exit code {code}: {err.getvalue()!r}"
    if code >= verdict.code:
        verdict.code, verdict.words = code, said.strip()


def attack(every: int = 1, only: Sequence[int] | None = None) -> list[Verdict]:
    """Run every n-th file (all by default), or some by number."""
    chosen = cases()[::every] if only is None else [cases()[i] for i in only]
    home = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="engram-hostile-") as place:
        root = Path(place).resolve()
        os.environ["ENGRAM_HOME"] = str(root / "home")
        try:
            database = _furnished(root)
            with socket.create_server(("127.0.0.1", 0)) as server:
                server.setblocking(False)
                return [judged(case, root, database, server) for case in chosen]
        finally:
            os.environ.clear()
            os.environ.update(home)


def _furnished(root: Path) -> Path:
    """A good area, a campaign of it, and a trap full of bait."""
    (root / "park.geojson").write_text(json.dumps(polygon()))
    trap = root / "trap"
    trap.mkdir()
    for name in ("secret.txt", "secret.dtd", "secret.prj", "secret.geojson", "secret.tif"):
        (trap / name).write_bytes(tif() if name.endswith("tif") else b"bait")
    database = root / "c.db"
    line = f"campaign create park --area {root}/park.geojson --cell-size 500m --budget 20 --policy"
    with contextlib.redirect_stdout(io.StringIO()):
        assert entry.main([*line.split(), "random", "--db", str(database)]) == 0
    return database


def listed(verdicts: list[Verdict]) -> str:
    """The list of files and what was said of each."""
    faults = sum(bool(v.fault) for v in verdicts)
    lines = [
        f"{len(verdicts)} files: {sum(v.code == 2 for v in verdicts)} refused, "
        f"{sum(v.code == 0 for v in verdicts)} read, {faults} faults (tracebacks, hangs, other "
        "files opened, servers called).",
        "",
        "| file | end | what was said |",
        "| --- | --- | --- |",
    ]
    for v in verdicts:
        end = v.fault.split("\n")[0] if v.fault else ("refused" if v.code == 2 else "read")
        words = (v.words if len(v.words) < 160 else f"{v.words[:157]}...").replace("|", "\\|")
        lines.append(f"| {v.about.replace('|', '')} | {end} | {words} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, help="write the list to this file")
    parser.add_argument("--every", type=int, default=1, help="run every n-th file")
    given = parser.parse_args()
    verdicts: Any = attack(given.every)
    if given.out is not None:
        given.out.write_text(listed(verdicts), encoding="utf-8")
    for verdict in verdicts:
        if verdict.fault:
            sys.stdout.write(f"{verdict.about}: {verdict.fault}\n")
    sys.stdout.write(listed(verdicts).split("\n")[0] + "\n")
    return int(any(v.fault for v in verdicts))


if __name__ == "__main__":
    sys.exit(main())
