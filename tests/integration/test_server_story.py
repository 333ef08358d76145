"""The story over HTTP, with a real server: people, a lost answer, a killed server, live events."""

from __future__ import annotations

import contextlib
import http.cookiejar
import json
import queue
import re
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from server_process import ServerProcess

from engram import Client
from engram.campaign import open_campaign, verify
from engram.cli.main import main
from engram.client import RefusedError, RemoteCampaign
from engram.errors import ConflictError, UnavailableError


def browser() -> urllib.request.OpenerDirector:
    jar = http.cookiejar.CookieJar()
    return urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))


def crew_client(server: ServerProcess, owner: Client, uid: str, name: str) -> Client:
    """Sign a crew in by its link, as a phone does, and give its script a token."""
    made = owner.json("POST", f"/campaigns/{uid}/links", {"account": name})
    phone = browser()
    page = phone.open(made["link"]).read().decode()
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token is not None
    phone.open(f"{server.url}/sign-in", f"token={token[1]}".encode()).read()
    request = urllib.request.Request(
        f"{server.url}/api/v1/accounts/{name}/tokens",
        b"{}",
        {"Content-Type": "application/json", "Origin": server.url},
    )
    return Client(server.url, json.load(phone.open(request))["token"])


def listen(reader: RemoteCampaign, news: queue.Queue[dict[str, Any]]) -> None:
    """Put what happens into a queue until the server is away for good."""
    with contextlib.suppress(UnavailableError):
        for event in reader.events(after=1):
            news.put(event)


def test_the_whole_story(
    url: str, unique: Callable[[str], str], tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    name = unique("pond")
    north, south = unique("north"), unique("south")
    with ServerProcess(url) as server:
        assert server.link.startswith(f"{server.url}/")
        desk = browser()
        desk.open(server.link).read()  # the owner's link signs in at once
        assert desk.open(f"{server.url}/api/v1/me").status == 200
        with pytest.raises(urllib.error.HTTPError, match="401"):
            browser().open(server.link)  # and only once
        owner = Client(server.link)
        pond = owner.create(name, size=(10, 10), budget=30, policy="gp")
        crews = {crew: crew_client(server, owner, pond.uid, crew) for crew in (north, south)}
        news: queue.Queue[dict[str, Any]] = queue.Queue()
        reader = Client(server.url, server.token, patience=20.0).campaign(name)
        threading.Thread(target=listen, args=(reader, news), daemon=True).start()

        out = {crew: client.campaign(name).ask(2) for crew, client in crews.items()}
        cells = [q.cell for queries in out.values() for q in queries]
        assert len(set(cells)) == 4
        first = out[north][0]
        mine = crews[north].campaign(name)
        told = mine.tell(first.cell, 1.0, key="n-1")
        assert mine.tell(first.cell, 1.0, key="n-1").repeated  # the answer was lost on its way
        with pytest.raises(ConflictError, match="measured already"):
            crews[south].campaign(name).tell(first.cell, 0.0)
        with pytest.raises(RefusedError, match="needs the role planner"):
            mine.correct(first.cell, outcome=0.0)
        pond.correct(first.cell, outcome=0.5, reason="half of it")

        server.kill()
        late: list[Any] = []
        asking = threading.Thread(
            target=lambda: late.append(mine.tell(out[north][1].cell, 0.0, key="n-2"))
        )
        asking.start()  # nobody is there; the client waits
        server.start()
        asking.join(60)
        assert late[0].seq == told.seq + 2

        monkeypatch.setenv("ENGRAM_TOKEN", server.token)
        there = ["--server", server.url]
        cell = f"{out[south][0].cell[0]},{out[south][0].cell[1]}"
        assert main(["campaign", "tell", name, "--cell", cell, "--outcome", "0", *there]) == 0
        assert main(["campaign", "ask", name, "-n", "2", "--by", south, "--json", *there]) == 0
        assert main(["campaign", "status", name, *there]) == 0
        assert main(["campaign", "explain", name, "--query", "1", *there]) == 0
        assert main(["campaign", "export", name, "-o", str(tmp_path / "x.csv"), *there]) == 0
        assert main(["campaign", "tell", name, "--cell", cell, "--outcome", "0", *there]) == 2
        said = capsys.readouterr()
        assert "measured already; correct it instead" in said.err
        assert "candidates ranked by" in said.out
        shell = open_campaign(name, db=url)  # meanwhile, on the machine of the database
        free = next(
            (r, c)
            for r in range(10)
            for c in range(10)
            if shell.state.available(shell.now())[r * 10 + c]
        )
        shell.tell(free, 0.0, by="shell")
        assert main(["campaign", "verify", name, *there]) == 0

        last = pond.facts()["seq"]
        seen = []
        while not seen or seen[-1]["seq"] < last:
            seen.append(news.get(timeout=30))
        assert [event["seq"] for event in seen] == list(range(2, last + 1))
        assert [e["text"] for e in seen] == [e["text"] for e in pond.history(after=1)]
        assert len((tmp_path / "x.csv").read_text().splitlines()) == 4
        assert {e["by"]: e["via"] for e in seen if e["by"] == south} == {south: "owner"}
        assert server.stop() == -15  # it closed everything first
    shell.refresh()
    assert verify(shell).ok


def test_two_servers_on_one_database(postgres_url: str, unique: Callable[[str], str]) -> None:
    name = unique("lake")
    with ServerProcess(postgres_url) as first, ServerProcess(postgres_url) as second:
        here = Client(first.link).create(name, size=(8, 8), budget=20, policy="random")
        there = Client(second.link).campaign(name)
        news = there.events()
        cells: list[Any] = []
        threads = [
            threading.Thread(target=lambda c=c: cells.extend(q.cell for q in c.ask(4)))  # type: ignore[misc]
            for c in (here, there, Client(first.link).campaign(name))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(cells) == len(set(cells)) == 12
        listening = threading.Thread(target=lambda: cells.append(next(news)), daemon=True)
        listening.start()
        for cell in cells[:3]:
            here.tell(cell, 1.0)
            listening.join(0.7)
        listening.join(10)
        assert cells[-1]["kind"] == "tell"
        assert there.verify()["ok"]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1"])
def test_other_hosts_need_accounts(tmp_path: Path, host: str, capsys: Any) -> None:
    assert main(["serve", "--db", str(tmp_path / "c.db"), "--host", host]) == 2
    assert "engram account add NAME --role owner" in capsys.readouterr().err
