"""A server under load: listeners with live updates, crews that ask and tell, and kill -9.

    python benchmarks/server_load.py [--db sqlite|postgres] [--seconds 300] [--listeners 200]
        [--crews 50] [--campaigns 5] [--policy gp] [--pace 3] [--kills 0] [--out FILE]

Crews ask for a cell, "measure" it and tell, over HTTP/1.1 written by hand, so that the generator
takes little of the machine it shares with the server. An answer that does not come is asked for
again with the same key. At the end the log is read: every acknowledged tell has to be there once,
every listener has to have seen every event in order. With --kills the server is killed that many
times and started again each time, and the load lasts until that is done.

The generator stands for 250 other machines, so it runs at the lowest priority (nice 19): server,
computing processes and database go first. What it says of seconds includes its own waiting.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "integration"), str(ROOT / "benchmarks")]

from postgres_server import started_server  # noqa: E402
from server_http import BrokenError, Http  # noqa: E402
from server_process import ServerProcess  # noqa: E402

from engram import Client  # noqa: E402
from engram.bench.provenance import commit, machine  # noqa: E402
from engram.campaign import open_campaign  # noqa: E402

SIDE = 32
BETWEEN = (0.5, 5.0)
"""Seconds from when the server is back to when it is killed again."""
COMING = 5.0
"""Seconds in which the listeners come, one after the other."""
NICE = 19


@dataclass
class Tally:
    """What the clients saw."""

    seconds: dict[str, list[float]] = field(
        default_factory=lambda: {"tell": [], "ask": [], "status": []}
    )
    acknowledged: dict[str, str] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    resumed: int = 0
    kills: int = 0


@dataclass
class Load:
    """One run."""

    server: ServerProcess
    tokens: dict[str, str]
    uids: list[str]
    until: float
    pace: float
    tally: Tally = field(default_factory=Tally)
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    last: dict[str, int] = field(default_factory=dict)
    began: float = 0.0
    lasted: float = 0.0
    cores: str = ""
    starter: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    """A thread of the usual priority, which processes it starts inherit (on Linux)."""

    async def crew(self, number: int) -> None:
        """Ask, measure, tell, again and again."""
        uid = self.uids[number % len(self.uids)]
        http = Http(self.server.port, self.tokens[f"crew-{number}"])
        chance = random.Random(number)
        await asyncio.sleep(chance.random() * self.pace)
        while time.monotonic() < self.until:
            path = f"/campaigns/{uid}"
            key = uuid.uuid4().hex
            status, answer, took = await http.asked("POST", f"{path}/ask", {"n": 1, "key": key})
            if status != 200:
                self.note(status, answer)
                if status == 409:  # the budget is spent
                    return
                continue
            self.tally.seconds["ask"].append(took)
            cell, key = answer["queries"][0]["cell"], uuid.uuid4().hex
            found = (cell[0] - 12) ** 2 + (cell[1] - 20) ** 2 < 40
            body = {"cell": cell, "outcome": float(found), "key": key}
            status, answer, took = await http.asked("POST", f"{path}/tell", body)
            if status == 200:
                self.tally.seconds["tell"].append(took)
                self.tally.acknowledged[key] = uid
            else:
                self.note(status, answer)
            await asyncio.sleep(self.pace * (0.5 + chance.random()))
        http.close()

    def note(self, status: int, answer: Any) -> None:
        self.tally.errors[f"{status} {answer['detail'][:80]}"] += 1

    async def watcher(self, number: int) -> None:
        """Look at the status every few seconds."""
        uid = self.uids[number % len(self.uids)]
        http = Http(self.server.port, self.tokens["viewer"])
        while time.monotonic() < self.until:
            status, answer, took = await http.asked("GET", f"/campaigns/{uid}/status")
            if status == 200:
                self.tally.seconds["status"].append(took)
            else:
                self.note(status, answer)
            await asyncio.sleep(5.0)
        http.close()

    async def listener(self, number: int) -> None:
        """Follow the log of a campaign to its end; every event once and in order."""
        uid = self.uids[number % len(self.uids)]
        http = Http(self.server.port, self.tokens["viewer"])
        place = 0
        await asyncio.sleep(random.random() * COMING)
        while not (self.quiet.is_set() and place >= self.last.get(uid, 0)):
            try:
                headers = f"Last-Event-ID: {place}\r\n"
                status, _ = await http.begin("GET", f"/campaigns/{uid}/events", None, headers)
                if status != 200:
                    raise BrokenError
                async with asyncio.timeout(None) as limit:
                    async for line in http.lines():
                        if line.startswith(b"id: "):
                            seq = int(line[4:])
                            if seq != place + 1:
                                self.tally.faults.append(f"listener {number}: {seq} after {place}")
                            place = seq
                        if self.quiet.is_set():
                            if place >= self.last[uid]:
                                break
                            limit.reschedule(asyncio.get_running_loop().time() + 20)
            except (OSError, BrokenError, ValueError, asyncio.IncompleteReadError):
                self.tally.resumed += 1
                await asyncio.sleep(0.2 + random.random() / 2)
            except TimeoutError:
                self.tally.faults.append(f"listener {number} stopped at {place}")
                break
            http.close()
        http.close()

    async def killer(self, kills: int) -> None:
        """Kill the server again and again, some time after it has come back."""
        enough, self.until = self.until, float("inf")
        for _ in range(kills):
            await asyncio.sleep(random.uniform(*BETWEEN))
            self.server.kill()
            self.tally.kills += 1
            await asyncio.get_running_loop().run_in_executor(self.starter, self.server.start)
        self.until = max(enough, time.monotonic() + BETWEEN[1])

    def stand_back(self) -> None:
        """Let everybody else on the machine go first; servers are still started as they were."""
        self.starter.submit(int).result()  # its thread is there before this one stands back
        os.nice(NICE)

    async def run(self, crews: int, listeners: int, kills: int) -> dict[str, Any]:
        self.began = time.monotonic()
        ticks = cores_so_far()
        listening = [asyncio.create_task(self.listener(i)) for i in range(listeners)]
        working = [asyncio.create_task(self.killer(kills))] if kills else []
        working += [asyncio.create_task(self.crew(i)) for i in range(crews)]
        working += [asyncio.create_task(self.watcher(i)) for i in range(len(self.uids))]
        peak = asyncio.create_task(self.facts())
        await asyncio.gather(*working)
        self.lasted = time.monotonic() - self.began
        self.cores = shares(ticks, cores_so_far())
        owner = Http(self.server.port, self.server.token)
        for uid in self.uids:
            _, answer, _ = await owner.asked("GET", f"/campaigns/{uid}")
            self.last[uid] = answer["seq"]
        self.quiet.set()
        for uid in self.uids:  # one more event wakes those who wait for news
            await owner.asked("POST", f"/campaigns/{uid}/extend", {"amount": 1})
        for uid in self.uids:
            _, answer, _ = await owner.asked("GET", f"/campaigns/{uid}")
            self.last[uid] = answer["seq"]
        await asyncio.wait_for(asyncio.gather(*listening), 120)
        peak.cancel()
        return self.seen

    seen: dict[str, Any] = field(default_factory=dict)
    stall: dict[str, float] = field(default_factory=dict)

    async def facts(self) -> None:
        """What the server says of itself: the largest of everything."""
        http = Http(self.server.port, self.server.token)
        while True:
            with contextlib.suppress(Exception):
                _, answer, _ = await http.asked("GET", "/server")
                loop = answer["loop"]
                if loop["wall_ms"] > self.seen.get("loop wall ms", -1.0):
                    self.stall = {name: loop[f"{name}_ms"] for name in ("queued", "stolen")}
                    self.stall["after"] = time.monotonic() - self.began
                now = {
                    "server MB": answer["memory"]["server"] / 1e6,
                    "workers MB": answer["memory"]["workers"] / 1e6,
                    "loop wall ms": loop["wall_ms"],
                    "without stolen ms": loop["ours_ms"],
                    "loop worked ms": loop["worked_ms"],
                }
                self.seen = {n: max(v, self.seen.get(n, 0.0)) for n, v in now.items()}
            await asyncio.sleep(2.0)


def shares(before: list[int], after: list[int]) -> str:
    """What the cores did between two readings of /proc/stat, in words."""
    user, nice, system, idle, wait, irq, soft, stolen = (
        b - a for a, b in zip(before[:8], after[:8], strict=True)
    )
    whole = max(1, user + nice + system + idle + wait + irq + soft + stolen)
    parts = {
        "at the usual priority": user,
        "at a lower one": nice,
        "the system": system + irq + soft,
        "idle": idle + wait,
        "taken by other virtual machines": stolen,
    }
    return ", ".join(f"{name} {100 * part / whole:.0f} %" for name, part in parts.items())


def cores_so_far() -> list[int]:
    """Ticks of all cores since the start of the machine, by what they did; zeros if not known."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    except OSError:
        return [0] * 8
    return [int(part) for part in first.split()[1:]]


@contextlib.contextmanager
def database(kind: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="engram-load-") as folder:
        if kind == "sqlite":
            yield str(Path(folder) / "campaigns.db")
        else:
            with started_server() as server:
                yield server.url


def prepare(server: ServerProcess, args: argparse.Namespace) -> tuple[dict[str, str], list[str]]:
    """Campaigns, and an account with a token for every crew."""
    owner = Client(server.link)
    made = [
        owner.create(f"c{i}", size=(SIDE, SIDE), budget=SIDE * SIDE - 5, policy=args.policy, seed=i)
        for i in range(args.campaigns)
    ]
    names = ["viewer", *(f"crew-{i}" for i in range(args.crews))]
    tokens = {}
    for number, name in enumerate(names):
        owner.json("POST", "/accounts", {"name": name, "role": "viewer"})
        if name != "viewer":
            uid = made[(number - 1) % len(made)].uid
            owner.json("PUT", f"/campaigns/{uid}/people/{name}", {"role": "crew"})
        tokens[name] = owner.json("POST", f"/accounts/{name}/tokens", {})["token"]
    return tokens, [campaign.uid for campaign in made]


def check(db: str, tally: Tally, uids: list[str], campaigns: int) -> dict[str, int]:
    """Read the logs: acknowledged tells that are missing, and cells told twice."""
    keys: Counter[str] = Counter()
    doubled = events = 0
    for i in range(campaigns):
        campaign = open_campaign(f"c{i}", db=db)
        told = [e for e in campaign.events if e.kind == "tell"]
        events += campaign.state.seq
        keys.update(e.key for e in told)
        cells = Counter(tuple(item["cell"]) for e in told for item in e.payload["items"])
        doubled += sum(count > 1 for count in cells.values())
    lost = sum(key not in keys for key in tally.acknowledged)
    return {
        "events": events,
        "told": sum(keys.values()),
        "acknowledged": len(tally.acknowledged),
        "lost": lost,
        "doubled": doubled,
    }


def row(name: str, values: list[float]) -> str:
    ms = 1000 * np.array(values or [float("nan")])
    figures = [np.percentile(ms, p) for p in (50, 95, 99)]
    return (
        f"| {name} | {len(values)} | {' | '.join(f'{v:.0f}' for v in figures)} | {ms.max():.0f} |"
    )


def report(args: argparse.Namespace, found: dict[str, int], load: Load) -> str:
    tally = load.tally
    lines = [
        f"{args.crews} crews, {args.listeners} listeners, {args.campaigns} campaigns of "
        f"{SIDE}x{SIDE} cells (policy {args.policy}), {load.lasted:.0f} s on {args.db}, "
        f"a crew's cycle every {args.pace:g} s; kill -9 of the server: {tally.kills} times.",
        "",
        "| request | answered | p50 ms | p95 ms | p99 ms | longest ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(row(name, values) for name, values in tally.seconds.items()),
        "",
        "| " + " | ".join(found) + " | errors | faults of listeners | resumed |",
        "| " + " | ".join(["---:"] * (len(found) + 3)) + " |",
        "| "
        + " | ".join(str(v) for v in found.values())
        + f" | {sum(tally.errors.values())} | {len(tally.faults)} | {tally.resumed} |",
        "",
        "| " + " | ".join(load.seen) + " |",
        "| " + " | ".join(["---:"] * len(load.seen)) + " |",
        "| " + " | ".join(f"{v:.0f}" for v in load.seen.values()) + " |",
        "",
        f"The longest stall by the wall was seen {load.stall['after']:.0f} s into the load; in it "
        f"the loop was ready for {load.stall['queued']:.0f} ms and had no processor, and another "
        f"virtual machine had a core for {load.stall['stolen']:.0f} ms.",
        "",
        f"The load generator ran at nice {NICE}, for it stands for other machines; server and "
        "database had the usual priority, computing processes the lower one they give themselves. "
        f"The cores meanwhile: {load.cores}.",
        "",
        *([f"{args.beside}", ""] if args.beside else []),
        f"<!-- {json.dumps({'commit': commit(), **machine()})} -->",
    ]
    if tally.errors:
        lines += ["", *(f"* {count} x {words}" for words, count in tally.errors.most_common(5))]
    return "\n".join([*lines, *tally.faults[:5], ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--listeners", type=int, default=200)
    parser.add_argument("--crews", type=int, default=50)
    parser.add_argument("--campaigns", type=int, default=5)
    parser.add_argument("--policy", default="gp")
    parser.add_argument("--pace", type=float, default=3.0)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--beside", default="", help="What else ran on the machine, in words.")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with database(args.db) as db, ServerProcess(db) as server:
        tokens, uids = prepare(server, args)
        load = Load(server, tokens, uids, time.monotonic() + args.seconds, args.pace)
        load.stand_back()
        asyncio.run(load.run(args.crews, args.listeners, args.kills))
        server.stop()
        found = check(db, load.tally, uids, args.campaigns)
    text = report(args, found, load)
    print(text)
    if args.out is not None:
        args.out.write_text(text, encoding="utf-8")
    if found["lost"] or found["doubled"] or load.tally.faults or load.tally.errors:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
