"""Fault storms on campaigns, run as a program (``make storm``): what is acknowledged stays.

    campaign_storm.py [--kills N] [--pg-kills N] [--rounds N] [--crashes N] [--postgres URL]

Writers are killed (kill -9) at random moments on both databases, the server is crashed under a
crew, the disk is full, clocks jump, handles go stale and old copies are put back. Prints what was
counted as JSON; exits with 1 when anything that was acknowledged is lost or there twice, or a log
does not verify.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from campaign_crew import acknowledged, crash, faults_of, fork, truth
from postgres_server import NoServerError, Server, started_server

from engram.campaign import StaleError, create_campaign, open_campaign, verify
from engram.errors import EngramError, InputError
from engram.grid import Grid

Found = dict[str, object]
YEAR = 366 * 86400.0


def disk_full(folder: Path, rounds: int) -> Found:
    """A crew whose files may not grow: it stops with an error, and what it was told is there."""
    draw, total, faults = random.Random(1), Counter(rounds=rounds), []
    for i in range(rounds):
        db, name = str(folder / f"full{i}.db"), f"full{i}"
        create_campaign(name, Grid(24, 24), 500, db=db, policy="random", seed=i)
        room = Path(db).stat().st_size + draw.randrange(1_000, 60_000)

        def limited(room: int = room) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

        pid, pipe = fork(db, name, "crew", 60, limited)
        lines = acknowledged(pipe)
        os.waitpid(pid, 0)
        stopped = [line for line in lines if line[0] == "E"]
        kept = [line for line in lines if line[0] != "E"]
        total.update(stopped=bool(stopped), acknowledged=len(kept))
        faults += faults_of(db, name, kept)
        again = open_campaign(name, db=db)
        again.ask(1)
        faults += verify(again).faults
    return {**total, "faults": faults}


def server_crashes(server: Server, crashes: int) -> Found:
    """The server is stopped without any courtesy while a crew works; the crew goes on."""
    name = f"crash-{time.time_ns()}"
    create_campaign(name, Grid(24, 24), 500, db=server.url, policy="random")
    pid, pipe = fork(server.url, name, "crew", 40 * crashes)
    for _ in range(crashes):
        time.sleep(1.0)
        server.crash_and_restart()
    lines = acknowledged(pipe)
    os.waitpid(pid, 0)
    faults = faults_of(server.url, name, lines)
    faults += verify(open_campaign(name, db=server.url)).faults
    return {"crashes": crashes, "acknowledged": len(lines), "faults": faults}


class Clock:
    """A right time and how far it is off."""

    def __init__(self) -> None:
        self.right, self.off = 1.8e9, 0.0

    def __call__(self) -> float:
        return self.right + self.off


def clock_jumps(folder: Path, rounds: int) -> Found:
    """Clocks jump by seconds and by decades; when they are right again, everything comes back."""
    draw, total, faults = random.Random(2), Counter(rounds=rounds), []
    db = str(folder / "clocks.db")
    for i in range(rounds):
        name, clock = f"clock{i}", Clock()
        campaign = create_campaign(
            name, Grid(4, 4), 16, db=db, policy="random", seed=i, lease=600.0, clock=clock
        )
        for _ in range(12):
            clock.right += draw.uniform(1, 60)
            clock.off = draw.choice((0, 0, 0, 30, -30, -3e8, 40 * YEAR, 3 * YEAR, -1.8e9))
            total.update(jumps=clock.off != 0)
            for query in _try(campaign.ask, draw.choice((1, 2))) or ():
                if draw.random() < 0.5:
                    _try(campaign.tell, query.cell, truth(query.cell))
                elif draw.random() < 0.5:
                    _try(campaign.fail, query=query.query, retry=300.0)
        clock.off, clock.right = 0.0, clock.right + 3600.0
        rest = 16 - len(campaign.state.measurements)
        if rest and not _try(campaign.ask, rest):
            faults.append(f"{name}: leases or waits did not end")
        total.update(events=campaign.state.seq)
        again = open_campaign(name, db=db, clock=clock)
        faults += faults_of(db, name, [], once=False) + verify(again).faults
    return {**total, "faults": faults}


def _try(request: Callable[..., Any], *given: Any, **more: Any) -> Any:
    """The answer, or nothing when the request is refused."""
    try:
        return request(*given, **more)
    except InputError:
        return None


def stale_handles(url: str, rounds: int, put_back: Callable[[int], Callable[[], None]]) -> Found:
    """A copy is put back under an open handle, which must be refused and change nothing."""
    draw, total, faults = random.Random(3), Counter(rounds=rounds), []
    for i in range(rounds):
        name = f"stale{i}-{time.time_ns()}"
        handle = create_campaign(name, Grid(8, 8), 60, db=url, policy="random", seed=i)
        for _ in range(draw.randrange(1, 6)):
            handle.tell(handle.ask(1)[0].cell, 1.0)
        restore, before = put_back(handle.row.id), handle.events
        for _ in range(draw.randrange(1, 4)):
            handle.tell(handle.ask(1)[0].cell, 1.0)
        restore()
        if draw.random() < 0.5:
            other = open_campaign(name, db=url)
            for _ in range(draw.randrange(1, 8)):
                other.tell(other.ask(1)[0].cell, 0.0)
            before = other.events
        for request in (handle.ask, handle.extend):
            try:
                request(1)
                faults.append(f"{name}: a stale handle was believed")
            except StaleError:
                total.update(refused=1)
        again = open_campaign(name, db=url)
        faults += [] if again.events == before else [f"{name}: the log changed"]
        again.tell(again.ask(1)[0].cell, 1.0)
        faults += verify(again).faults
    return {**total, "faults": faults}


def _copied(db: str) -> Callable[[int], Callable[[], None]]:
    def put_back(campaign: int) -> Callable[[], None]:
        shutil.copy(db, f"{db}.copy")
        return lambda: shutil.copy(f"{db}.copy", db) and None

    return put_back


def _cut(url: str) -> Callable[[int], Callable[[], None]]:
    """On a server a restored copy shows as events that are gone."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))

    def run(statement: str, campaign: int, seq: int = 0) -> int:
        with engine.begin() as connection:
            return int(
                connection.execute(sa.text(statement), {"c": campaign, "s": seq}).scalar() or 0
            )

    def put_back(campaign: int) -> Callable[[], None]:
        last = run("SELECT max(seq) FROM engram_events WHERE campaign = :c", campaign)
        cut = "DELETE FROM engram_events WHERE campaign = :c AND seq > :s RETURNING 0"
        return lambda: run(cut, campaign, last) and None

    return put_back


def restored_backups(folder: Path, rounds: int) -> Found:
    """Copies made while crews work are whole: a prefix of the log, which verifies and goes on."""
    db, name, total, faults = str(folder / "live.db"), "live", Counter(rounds=rounds), []
    create_campaign(name, Grid(24, 24), 500, db=db, policy="random")
    crews = [fork(db, name, f"crew{i}", 4 * rounds) for i in range(2)]
    for i in range(rounds):
        copy = str(folder / f"backup{i}.db")
        with sqlite3.connect(db) as live, sqlite3.connect(copy) as target:
            live.backup(target)
        backup = open_campaign(name, db=copy)
        events = backup.events
        whole = open_campaign(name, db=db).events
        faults += [] if whole[: len(events)] == events else [f"backup {i} is no prefix"]
        total.update(events=len(events))
        backup.ask(1)
        faults += verify(backup).faults
    lines = [line for _, pipe in crews for line in acknowledged(pipe)]
    for pid, _ in crews:
        os.waitpid(pid, 0)
    faults += faults_of(db, name, lines) + verify(open_campaign(name, db=db)).faults
    return {**total, "acknowledged": len(lines), "faults": faults}


def storm(args: argparse.Namespace, folder: Path) -> dict[str, Found]:
    """Every storm on SQLite, and on PostgreSQL where there is a server."""
    db = str(folder / "storm.db")
    found: dict[str, Found] = {}

    def blow(name: str, work: Callable[[], Found]) -> None:
        began = time.monotonic()
        found[name] = {**work(), "seconds": round(time.monotonic() - began, 1)}
        print(json.dumps({name: found[name]}), file=sys.stderr, flush=True)  # noqa: T201

    blow("kill -9, SQLite", lambda: crash(db, args.kills, "random", 1))
    blow("disk full", lambda: disk_full(folder, args.rounds))
    blow("clock jumps", lambda: clock_jumps(folder, args.rounds))
    blow("stale handles, SQLite", lambda: stale_handles(db, args.rounds, _copied(db)))
    blow("restored backups", lambda: restored_backups(folder, args.rounds))

    def on_server(url: str) -> None:
        blow("kill -9, PostgreSQL", lambda: crash(url, args.pg_kills, "random", time.time_ns()))
        blow("stale handles, PostgreSQL", lambda: stale_handles(url, args.rounds, _cut(url)))

    if args.postgres:
        on_server(args.postgres)
        return found
    try:
        with started_server() as server:
            on_server(server.url)
            blow("server crash", lambda: server_crashes(server, args.crashes))
    except NoServerError as error:
        found["PostgreSQL"] = {"missing": str(error), "faults": []}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--pg-kills", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--crashes", type=int, default=3)
    parser.add_argument("--postgres", help="a server that is there already; it is not crashed")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = storm(args, Path(folder))
        except EngramError as error:
            found = {"storm": {"faults": [f"stopped: {error}"]}}
    lost = sum(len(f["faults"]) for f in found.values())  # type: ignore[arg-type]
    print(json.dumps({"storms": found, "faults": lost}, indent=1))  # noqa: T201
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
