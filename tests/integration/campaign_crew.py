"""Crews for fault tests, run as a program: many at once, or one that is killed again and again.

It imports everything once and forks, so that a crew starts in milliseconds.

    campaign_crew.py URL NAME CREWS ROUNDS

Prints one JSON object. ``campaign_storm.py`` has the other faults.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable

from engram.campaign import create_campaign, open_campaign, verify
from engram.errors import EngramError, InputError
from engram.grid import Grid

CAMPAIGN_KILLS = 10
"""Kills of one campaign before a new one is begun."""


def truth(cell: tuple[int, int]) -> float:
    """What there is to be found."""
    return float((cell[0] // 3 + cell[1] // 3) % 4 == 0)


def work(url: str, name: str, crew: str, rounds: int, report) -> None:
    """Ask and tell; ``report`` each acknowledgement as soon as it is there."""
    campaign = open_campaign(name, db=url)
    draw = random.Random(crew)
    for i in range(rounds):
        try:
            asked = campaign.ask(draw.choice((1, 2)), by=crew, key=f"{crew}-ask-{i}")
        except InputError:
            return  # the budget is spent
        for query in asked:
            report(f"A {query.query} {query.cell[0]} {query.cell[1]}")
        draw.shuffle(asked)
        for query in asked:
            key = f"{crew}-{query.query}"
            receipt = campaign.tell(query.cell, truth(query.cell), by=crew, key=key)
            report(f"T {query.query} {query.cell[0]} {query.cell[1]}")
            if draw.random() < 0.3:  # an acknowledgement that got lost is asked for again
                again = campaign.tell(query.cell, truth(query.cell), by=crew, key=key)
                assert again.seq == receipt.seq


def fork(
    url: str, name: str, crew: str, rounds: int, prepare: Callable[[], None] = lambda: None
) -> tuple[int, int]:
    """Start a crew; returns its process and the pipe of its acknowledgements.

    ``prepare`` is run in the crew's process first.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    os.close(read)
    code = 1
    try:
        prepare()
        work(url, name, crew, rounds, lambda line: os.write(write, f"{line}\n".encode()))
        code = 0
    except EngramError as error:
        os.write(write, f"E {error}\n".encode())
    finally:
        os._exit(code)


def first_lines(pipe: int, count: int) -> bytes:
    """What a crew wrote, as soon as it is so many lines or its end."""
    blob = b""
    while blob.count(b"\n") < count and (chunk := os.read(pipe, 4096)):
        blob += chunk
    return blob


def acknowledged(pipe: int, blob: bytes = b"") -> list[list[str]]:
    """Whole lines a crew wrote before it ended, those read before included."""
    while chunk := os.read(pipe, 65536):
        blob += chunk
    os.close(pipe)
    return [line.split() for line in blob.decode().split("\n")[:-1]]


def faults_of(url: str, name: str, lines: list[list[str]], *, once: bool = True) -> list[str]:
    """Acknowledged asks and tells that are missing from the log, or there twice.

    ``once``: no lease ends and nothing fails, so no cell may be handed out a second time.
    """
    campaign = open_campaign(name, db=url)
    cells = [
        tuple(i["cell"]) for e in campaign.events if e.kind == "tell" for i in e.payload["items"]
    ]
    asked = [(q.query, q.cell) for q in campaign.state.queries.values()]
    faults = [f"told twice: {cell}" for cell, n in Counter(cells).items() if n > 1]
    handed = Counter(cell for _, cell in asked)
    faults += [f"handed out twice: {cell}" for cell, n in handed.items() if n > 1 and once]
    for line in lines:
        if line[0] == "E":
            faults.append(" ".join(line))
            continue
        query, cell = int(line[1]), (int(line[2]), int(line[3]))
        if line[0] == "T" and cell not in cells:
            faults.append(f"acknowledged tell lost: {cell}")
        if line[0] == "A" and (query, cell) not in asked:
            faults.append(f"acknowledged ask lost: {query}")
    return faults


def crowd(url: str, name: str, crews: int, rounds: int) -> dict[str, object]:
    """All crews at once on one campaign."""
    started = [fork(url, name, f"crew{i}", rounds) for i in range(crews)]
    lines = [line for _, pipe in started for line in acknowledged(pipe)]
    codes = [os.waitpid(pid, 0)[1] for pid, _ in started]
    campaign = open_campaign(name, db=url)
    report = verify(campaign)
    return {
        "codes": codes,
        "asked": sum(line[0] == "A" for line in lines),
        "told": sum(line[0] == "T" for line in lines),
        "in_log": len(campaign.state.measurements),
        "queries": len(campaign.state.queries),
        "faults": faults_of(url, name, lines) + report.faults,
    }


def crash(url: str, kills: int, policy: str, seed: int) -> dict[str, object]:
    """Kill a crew at random moments of its work; after every kill the log must hold and go on.

    A moment is a random time after a random number of acknowledgements, so that a kill takes
    no longer than the work before it. A crew that had ended by then is not counted.
    """
    draw = random.Random(seed)
    total: Counter[str] = Counter(kills=0, ended=0, asks=0, tells=0, verified=0)
    faults: list[str] = []
    name, lines = "", []
    while total["kills"] < kills:
        crew = total["kills"] + total["ended"]
        if crew % CAMPAIGN_KILLS == 0:
            name, lines = f"crash-{policy}-{seed}-{crew}", []
            create_campaign(name, Grid(24, 24), 500, db=url, policy=policy, seed=crew)
        pid, pipe = fork(url, name, f"crew{crew}", 20)
        begun = first_lines(pipe, draw.randrange(8))
        time.sleep(draw.uniform(0, 0.05))
        os.kill(pid, signal.SIGKILL)
        new = acknowledged(pipe, begun)
        killed = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        total.update(["kills" if killed else "ended"])
        total.update(asks=sum(n[0] == "A" for n in new), tells=sum(n[0] == "T" for n in new))
        lines += new
        faults += faults_of(url, name, lines)
        campaign = open_campaign(name, db=url)
        campaign.ask(1, by="after")
        campaign.fail(query=max(campaign.state.queries), retry=None)
        if crew % CAMPAIGN_KILLS == CAMPAIGN_KILLS - 1 or total["kills"] == kills:
            faults += verify(open_campaign(name, db=url)).faults
            total.update(verified=1)
    return {**total, "faults": faults}


def main(arguments: list[str]) -> None:
    url, name, crews, rounds = arguments
    found = crowd(url, name, int(crews), int(rounds))
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
