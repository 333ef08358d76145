"""Requests that lie, are too much, or come from elsewhere: refused, and nothing is written."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from server_help import Served

from engram.server import guard
from engram.server.settings import Settings
from engram.server.slowing import Slowing

POND = "/api/v1/campaigns/pond"
JSON = {"Content-Type": "application/json"}


@lru_cache
def bomb(name: str = "cells.npy") -> bytes:
    """A zip that unfolds to far more than it is."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "<f8", "fortran_order": False, "shape": (50_000_000, 2)}
        )
        archive.writestr(name, header.getvalue() + bytes(100_000_000))
        archive.writestr("outcomes.npy", header.getvalue())
    return out.getvalue()


BODIES: list[bytes] = [
    b'{"cell": [0, 0], "outcome": NaN}',
    b'{"cell": [0, 0], "outcome": Infinity}',
    b'{"cell": [0, 0], "outcome": 1e999}',
    b'{"cell": [0, 0], "outcome": -1e999}',
    b'{"cell": [0, 0], "outcome": ' + b"9" * 5000 + b"}",
    b'{"cell": [0, 0], "outcome": "1"}',
    b'{"cell": [0, 0], "outcome": true}',
    b'{"cell": [0, 0], "outcome": 2}',
    b'{"cell": [0, 0], "outcome": 0.5, "noise": -1}',
    b'{"cell": [0, 0.5], "outcome": 1}',
    b'{"cell": ["0", "0"], "outcome": 1}',
    b'{"cell": [0], "outcome": 1}',
    b'{"cell": [-1, 0], "outcome": 1}',
    b'{"cell": [99999999999999999999, 0], "outcome": 1}',
    b'{"cell": {"row": 0}, "outcome": 1}',
    b'{"cell": [0, 0], "outcome": 1, "outcome": 0}',
    b'{"cell": [0, 0], "outcome": 1, "admin": true}',
    b'{"cell": [0, 0], "outcome": 1, "key": ""}',
    b'{"cell": [0, 0], "outcome": 1, "key": "a\\u0000b"}',
    b'{"cell": [0, 0], "outcome": 1, "key": "\\ud800"}',
    b'{"cell": [0, 0], "outcome": 1, "value": [[[1]]]}',
    b'{"cell": [0, 0], "outcome": 1, "value": [1, 2, 3]}',
    b"[" * 100_000 + b"]" * 100_000,
    b'{"a":' * 50 + b"1" + b"}" * 50,
    b"[]",
    b"null",
    b"",
    b'{"cell": [0, 0], "outcome": 1',
    b'{"cell": [0, 0], "outcome": 1}\xff',
    b"\xff\xfe{\x00}\x00",
]


@pytest.mark.parametrize("body", BODIES, ids=lambda b: b[:48].decode("latin-1"))
def test_bodies_that_cannot_be(served: Served, body: bytes) -> None:
    headers = {**served.headers("crew"), **JSON}
    answer = served.client.post(f"{POND}/tell", content=body, headers=headers)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.json()["detail"]) < 500
    assert served.get("viewer", "/campaigns/pond").json()["seq"] == 1


def upload(served: Served, name: str, data: bytes, path: str = "tell-file") -> Any:
    return served.client.post(
        f"{POND}/{path}", files={"file": (name, data)}, headers=served.headers("crew")
    )


def test_uploads_that_lie(served: Served) -> None:
    table = b"row,col,outcome\n0,0,1\n"
    for name, data in {
        "x.npz": table,
        "x.csv": bomb(),
        "x.json": table,
        "x.exe": table,
        "": table,
        "x.csv/../../../etc/passwd": table,
        "..\\..\\x": table,
        "bomb.npz": bomb(),
        "one.npz": bomb("other.npy"),
        "deep.json": b"[" * 100_000,
        "nan.json": b'[{"cell": [0, 0], "outcome": NaN}]',
        "zip.csv": b"PK\x03\x04" + bytes(100),
        "empty.csv": b"",
        "half.csv": b"row,col,outcome\n0,0,1\n0,0\n",
    }.items():
        answer = upload(served, name, data)
        assert answer.status_code in (400, 422), (name, answer.text)
        assert "<script>" not in answer.headers.get("content-type", "")
    assert served.get("viewer", "/campaigns/pond").json()["seq"] == 1


def test_bodies_that_are_too_long_or_of_another_type(served: Served) -> None:
    headers = served.headers("crew")
    long = served.client.post(
        f"{POND}/tell", content=b" " * (guard.BODY + 1), headers={**headers, **JSON}
    )
    assert long.status_code == 413

    async def chunks() -> Any:
        for _ in range(12):
            yield b" " * 100_000

    unsaid = served.client.post(f"{POND}/tell", content=chunks(), headers={**headers, **JSON})
    assert unsaid.status_code == 413
    form = served.client.post(f"{POND}/tell", data={"cell": "0"}, headers=headers)
    assert form.status_code == 415
    plain = served.client.post(
        f"{POND}/tell", content=b"{}", headers={**headers, "Content-Type": "text/plain"}
    )
    assert plain.status_code == 415
    assert upload(served, "x.csv", b"0" * (guard.UPLOAD + 1)).status_code == 413


def test_a_body_that_does_not_come(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.05)

    async def slowly() -> Any:
        yield b"{"
        await asyncio.sleep(1)
        yield b"}"

    headers = {**served.headers("crew"), **JSON}
    assert served.client.post(f"{POND}/tell", content=slowly(), headers=headers).status_code == 408


def test_a_stranger_sends_no_bodies(served: Served) -> None:
    """Who may not enter is told so before anything is read."""
    answer = served.client.post(f"{POND}/tell", content=b"[" * 1000, headers=JSON)
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "evil.example:8765", "", "localhost@evil.example",
     "a b", "localhost/../x"],
)  # fmt: skip
def test_hosts_that_are_not_ours(served: Served, host: str) -> None:
    answer = served.client.get("/api/v1/me", headers={**served.headers("crew"), "Host": host})
    assert answer.status_code == 400


def test_hosts_that_are_ours() -> None:
    settings = Settings(names=("search.example",), url="https://maps.example/")
    for host in ("127.0.0.1:8765", "localhost", "[::1]:8765", "search.example", "MAPS.example",
                 "192.168.1.7:80"):  # fmt: skip
        assert settings.knows_host(host)
    assert not settings.knows_host("search.example.evil")
    assert not settings.knows_host("localhost:x")


def test_another_sites_page_changes_nothing(served: Served) -> None:
    cookie = served.context.settings.cookie
    headers = {"Cookie": f"{cookie}={served.issue('crew', 'session')}", **JSON}
    body = json.dumps({"cell": [0, 0], "outcome": 1}).encode()
    for more in (
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1.evil.example:8765"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        refused = served.client.post(f"{POND}/tell", content=body, headers={**headers, **more})
        assert refused.status_code == 403, more
    assert served.client.get("/api/v1/me", headers=headers).status_code == 200
    ours = {**headers, "Origin": "http://127.0.0.1:8765"}
    assert served.client.post(f"{POND}/tell", content=body, headers=ours).status_code == 200


@pytest.mark.parametrize("text", ["<svg onload=alert(1)>", "<script>alert(1)</script>", '"><img>'])
def test_names_and_reasons_are_text_wherever_they_are_shown(served: Served, text: str) -> None:
    made = served.post(
        "owner of all",
        "/campaigns",
        {"name": text, "size": [4, 4], "budget": 4, "policy": "random"},
    )
    assert made.status_code == 201
    linked = served.client.post(
        made.headers["location"] + "/links",
        json={"account": text},
        headers=served.headers("owner of all"),
    )
    page = served.client.get("/sign-in", params={"token": linked.json()["link"].split("token=")[1]})
    assert text not in page.text
    assert text not in linked.json()["qr"]
    for answer in (page, made, linked):
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert made.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "path", ["/api/v1/campaigns/..%2f..%2fetc%2fpasswd", "/api/v1/campaigns/%00",
             "/api/v1/campaigns/" + "x" * 5000, "/static/../../pyproject.toml", "/..%2f..%2fetc"],
)  # fmt: skip
def test_paths_lead_nowhere(served: Served, path: str) -> None:
    answer = served.client.get(path, headers=served.headers("owner of all"))
    assert answer.status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"prior": "/etc/passwd"},
        {"prior": "../../x.safetensors"},
        {"policy": "em-ptdm[prior=/tmp/x.safetensors]"},
        {"policy": "os.system"},
        {"size": [100_000_000, 100_000_000]},
        {"size": [0, 4]},
        {"cell": [3, 3]},
        {"closed": [[9, 9]]},
        {"cost": [[1.0]]},
        {"budget": 17},
        {"crews": {"a": [9, 9]}},
        {"range": [1.0, 1.0]},
        {"name": "a\nb"},
        {"name": " "},
    ],
    ids=str,
)
def test_campaigns_that_cannot_be(served: Served, body: dict[str, Any]) -> None:
    base = {"name": "x", "size": [4, 4], "budget": 4, "policy": "random"}
    answer = served.post("owner of all", "/campaigns", {**base, **body})
    assert answer.status_code == 422, answer.text
    assert len(served.get("owner of all", "/campaigns").json()["campaigns"]) == 1


def test_failed_sign_ins_are_slowed(served: Served) -> None:
    tries = [served.post(None, "/sign-in", {"token": "x"}).status_code for _ in range(8)]
    assert tries[:5] == [401] * 5
    assert tries[5:] == [429] * 3
    wait = served.post(None, "/sign-in", {"token": served.tokens["crew"]})
    assert wait.status_code == 429
    assert int(wait.headers["retry-after"]) >= 1


def test_waits_grow_and_end() -> None:
    now = [0.0]
    slowing = Slowing(lambda: now[0])
    for _ in range(9):
        slowing.failed("a")
    with pytest.raises(Exception, match="try again in 16 s"):
        slowing.check("a")
    slowing.check("b")
    now[0] = 17.0
    slowing.check("a")
