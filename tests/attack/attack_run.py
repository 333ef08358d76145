"""The attack: random command lines, files and damaged databases through the command line.

    attack_run.py [--cases N] [--seed S] [--kind K] [--session I] [--verbose]

Every case is one command, run in this process. It has to end with exit code 0 or 2 (``verify``
also with 1, when it names damage), in less than 30 seconds, within a bound of memory, with one
line on standard error when it is refused, without a secret in what it prints, with no file cut
or left half-written; and what it acknowledged has to be in the log at the end. Cases come in
sessions of one folder each; a session is made again from the seed and its number.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from attack_case import Session, Tally, limited, run
from attack_damage import DAMAGES, damage_artifact
from attack_files import file_of
from attack_lines import DATABASE, command_line

from engram.cli import main as entry
from engram.cli._printing import remark

ROOM = 3 * 2**30
"""Bytes of address space that cases may take beyond what the process has at the start."""
CASES = 25
"""Cases of a session."""


def _furnish(folder: Path) -> None:
    """Good files and odd places that command lines may name."""
    (folder / "folder").mkdir()
    (folder / "text.db").write_text("no database\n" * 100)
    os.mkfifo(folder / "pipe.csv")
    (folder / "mask.csv").write_text("1,1,1,1\n1,0,1,1\n1,1,1,1\n1,1,1,1\n")
    (folder / "cost.csv").write_text("1,2,1,1\n1,1,1,1\n1,1,3,1\n1,1,1,1\n")
    (folder / "tells.csv").write_text("row,col,outcome\n3,3,1\n2,2,0\n")
    np.save(folder / "content.npy", np.full((1, 1, 1), 0.5))
    np.save(folder / "area.npy", np.eye(6))


def _lines(session: Session, template: Path, cases: int) -> None:
    create = f"campaign create NAME --size 6,6 --budget 20 --policy random --db {DATABASE} --json"
    for name in ("f", "g", "[/x]"):
        session.case(create.replace("NAME", name).split())
    for _ in range(cases - 3):
        session.case(command_line(session.rng))
        if session.rng.random() < 0.1:
            damage_artifact(session.rng, session.folder)
    session.settle()


def _files(session: Session, template: Path, cases: int) -> None:
    shutil.copy(template, DATABASE)
    for _ in range(cases):
        session.case(*_file_case(session.rng))
        for path in Path().glob("given*"):
            path.unlink()
        shutil.rmtree("new", ignore_errors=True)
    session.settle()


def _file_case(rng: Random) -> tuple[list[str], Callable[[], int] | None]:
    """A command line with a file of the attack's making."""
    db = f"--db {DATABASE}"
    pictures = ("npy", "npz", "png", "tif", "csv")
    rasters = ("npy", "npz", "csv", "json", "png", "tif", "txt")
    lines: dict[str, tuple[str, ...]] = {
        f"campaign tell f --file GIVEN {db} --json": ("npz", "csv", "json"),
        f"campaign tell f --cell 1,1 --outcome 1 --content GIVEN {db} --json": rasters,
        f"campaign create m --mask GIVEN --budget 3 --policy random {db}": rasters,
        f"campaign create c --size 6,6 --cost GIVEN --budget 3 --policy random {db}": rasters,
        "search --image GIVEN --above 0.5 --policy random --budget 2 --out new --json": rasters[
            :-1
        ],
        "search --image area.npy --target GIVEN --policy random --budget 2 --out new": pictures,
        "prior info given.safetensors": ("json",),
        "bench report GIVEN": ("json",),
        "SUITE tumour": ("npz",),
        "SUITE overhead": ("npz",),
        "SUITE species": ("csv",),
    }
    weights = [9, 3, 3, 3, 0.3, 0.3, 1, 1, 1, 1, 1]
    line = rng.choices(list(lines), weights)[0]
    name, data = file_of(rng, *lines[line])
    Path(name).write_bytes(data)
    Path("given.safetensors").write_bytes(b"")
    words = line.replace("GIVEN", name).split()
    return words, (lambda: _load(words[1], Path(name))) if words[0] == "SUITE" else None


def _load(suite: str, path: Path) -> int:
    """Make the first task of a suite from a file, as the benchmark commands do."""
    from engram.bench.suites import get_suite
    from engram.errors import EngramError

    settings: dict[str, Any] = {"species": {"species": "Lynx"}}.get(suite, {"size": 16})
    try:
        get_suite(suite).tasks([str(path)], settings).task(0)
    except EngramError as error:
        remark("error: " + " ".join(str(error).split()))
        return 2
    return 0


LOOKS = (
    "list",
    "history f",
    "history f --json",
    "verify f",
    "status f --json",
    "export f --out out.json",
    "export f --out out.npz",
    "explain f --query 1",
    "peek f -n 1",
    "ask f --json",
    "tell f --cell 5,5 --outcome 1 --json",
    "extend f --add 1",
)


def _damage(session: Session, template: Path, cases: int) -> None:
    precious = session.folder / "precious.safetensors"
    precious.write_bytes(b"precious")
    rng = session.rng
    for _ in range(max(1, cases // 5)):
        for path in Path().glob(f"{DATABASE}*"):
            path.unlink()
        shutil.rmtree("campaigns.artifacts", ignore_errors=True)
        shutil.copy(template, DATABASE)
        changed = rng.choice(DAMAGES)(rng, Path(DATABASE))
        proof = session.case(["campaign", "verify", "f", "--db", DATABASE])
        if changed and proof.code == 0:
            session.fault("damage that verify did not see", ["verify"], proof.out)
        for line in rng.sample(LOOKS, 4):
            session.case(["campaign", *line.split(), "--db", DATABASE])
        for path in Path().glob("out.*"):
            path.unlink()


KINDS: dict[str, Callable[[Session, Path, int], None]] = {
    "command lines": _lines,
    "files": _files,
    "damaged databases": _damage,
}


TURNS = ("command lines", "files", "damaged databases", "command lines")


def _template(folder: Path) -> Path:
    """A small campaign with an event of every kind."""
    path = folder / "template.db"
    steps = (
        "create f --size 6,6 --budget 20 --policy random --lease 2d",
        "ask f -n 3",
        "fail f --query 1 --retry-after 1h --reason bog",
        "tell f --cell 0,0 --outcome 1 --by crew --key one",
        "tell f --cell 0,1 --outcome 0",
        "correct f --cell 0,0 --outcome 0.5",
        "retract f --cell 0,1",
        "close f --cell 5,0",
        "open f --cell 5,0",
        "extend f --add 2",
        "ask f",
    )
    for step in steps:
        done = run(
            lambda s=step: entry.main(["campaign", *s.split(), "--db", str(path)]), io.StringIO()
        )  # type: ignore[misc]
        assert done.code == 0, (step, done.err, done.trace)
    with closing(sqlite3.connect(path)) as connection:  # everything into the one file
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def _warm_up() -> None:
    """Load what commands load, and build the command line once, before memory is bounded."""
    import matplotlib.figure  # noqa: F401
    import PIL.Image  # noqa: F401

    import engram.campaign
    import engram.tasks.raster  # noqa: F401

    entry.command_of("campaign")


def _fast() -> str | None:
    """A folder in memory, where there is one: thousands of commits wait for no disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def attack(
    cases: int,
    seed: int,
    *,
    kinds: Sequence[str] = TURNS,
    session: int | None = None,
    verbose: bool = False,
    log: bool = False,
) -> Tally:
    """Run so many cases (to the end of the last session), or one session of them."""
    tally, home = Tally(log=sys.__stdout__ if log else None), Path.cwd()
    _warm_up()
    with tempfile.TemporaryDirectory(prefix="engram-attack-", dir=_fast()) as root:
        place = Path(root).resolve()
        environment = dict(os.environ)
        os.environ["ENGRAM_HOME"] = str(place / "home")
        os.environ.pop("ENGRAM_DB", None)
        try:
            template = _template(place)
            with limited(resource.RLIMIT_AS, _address_space() + ROOM):
                number = 0 if session is None else session
                while sum(tally.cases.values()) < cases:
                    kind = kinds[number % len(kinds)]
                    folder = place / str(number)
                    folder.mkdir()
                    os.chdir(folder)
                    _furnish(folder)
                    one = Session(kind, f"{seed}:{number}", tally, folder, verbose)
                    KINDS[kind](one, template, min(CASES, cases - sum(tally.cases.values())))
                    os.chdir(place)
                    shutil.rmtree(folder)
                    number += 1
                    if log and number % 20 == 0:
                        sys.__stdout__.write(f"{number} sessions: {tally.summary()}\n")
                        sys.__stdout__.flush()
                    if session is not None:
                        break
        finally:
            os.chdir(home)
            os.environ.clear()
            os.environ.update(environment)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=list(KINDS), help="sessions of this kind alone")
    parser.add_argument("--session", type=int, help="run this session alone")
    parser.add_argument("--verbose", action="store_true", help="show every command")
    given = parser.parse_args()
    kinds = (given.kind,) if given.kind else TURNS
    tally = attack(
        given.cases,
        given.seed,
        kinds=kinds,
        session=given.session,
        verbose=given.verbose,
        log=True,
    )
    sys.stdout.write(f"{tally.summary()}\n")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
