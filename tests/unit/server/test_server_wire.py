"""Clients that misbehave on the wire: slow, endless, or speaking half of HTTP."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from server_help import inline_app
from test_server_hostile import bomb

from engram.server import guard, run
from engram.server.loop_watch import resident
from engram.server.settings import Settings, free_port

WAIT = 0.4
KIND = "Content-Type: application/json\r\n"


@pytest.fixture
def wire(
    furnished: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[int, str]]:
    """A port, and the token of a crew."""
    monkeypatch.setattr(run, "HEADER_SECONDS", WAIT)
    monkeypatch.setattr(guard, "BODY_SECONDS", WAIT)
    path, tokens = furnished
    port = free_port("127.0.0.1")
    server = uvicorn.Server(run.configured(inline_app(str(path)), Settings(port=port)))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield port, tokens["crew"]
    server.should_exit = True
    thread.join(20)


def answer(port: int, raw: bytes, seconds: float = 5.0) -> bytes:
    """What comes back until the server ends the line."""
    parts = []
    with (
        socket.create_connection(("127.0.0.1", port), timeout=seconds) as line,
        contextlib.suppress(ConnectionError, TimeoutError),
    ):
        with contextlib.suppress(ConnectionError):  # it may be refused before all is sent
            line.sendall(raw)
        while part := line.recv(65536):
            parts.append(part)
    return b"".join(parts)


def request(port: int, token: str, body: bytes, more: str = "", kind: str = "") -> bytes:
    head = (
        f"POST /api/v1/campaigns/pond/tell{kind} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Bearer {token}\r\nConnection: close\r\n{more}\r\n"
    )
    return head.encode() + body


def looking(port: int, token: str) -> bytes:
    """A request that only looks."""
    return request(port, token, b"").replace(b"POST", b"GET").replace(b"/tell HTTP", b" HTTP")


def test_waiting_has_an_end(wire: tuple[int, str]) -> None:
    port, token = wire
    began = time.monotonic()
    assert answer(port, b"GET / HTTP/1.1\r\nHost: x") == b""  # headers that do not come
    with socket.create_connection(("127.0.0.1", port), timeout=10) as silent:
        assert silent.recv(10) == b""
    whole = f"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as second:
        second.sendall(whole.encode())
        assert b"200 OK" in second.recv(65536)
        second.sendall(whole.encode()[:30])  # the next one stops on its way
        while second.recv(65536):
            pass
    slow = answer(
        port, request(port, token, b"{", "Content-Length: 50\r\nContent-Type: application/json\r\n")
    )
    assert b" 408 " in slow
    assert time.monotonic() - began < 20


def test_idle_clients_stop_nobody(wire: tuple[int, str]) -> None:
    port, token = wire
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
    assert b"200 OK" in answer(port, looking(port, token))
    for line in idle:
        line.close()


def test_forty_hostile_requests_leave_memory_and_log_alone(wire: tuple[int, str]) -> None:
    port, token = wire
    mark, chunked = "multipart/form-data; boundary=x", "Transfer-Encoding: chunked\r\n"

    def form(name: str, data: bytes) -> bytes:
        head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = head.encode() + data + b"\r\n--x--\r\n"
        more = f"Content-Type: {mark}\r\nContent-Length: {len(body)}\r\n"
        return request(port, token, body, more, "-file")

    def json(body: bytes, length: int | None = None) -> bytes:
        size = len(body) if length is None else length
        return request(port, token, body, f"{KIND}Content-Length: {size}\r\n")

    hostile = [
        b"X" * 10_000_000,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 10_000_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100_000 + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/x\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n",
        request(port, token, b"0\r\n\r\n", f"{KIND}{chunked}Content-Length: 9\r\n"),
        request(port, token, b"ffffffffffffffff\r\n", f"{KIND}{chunked}"),
        request(port, token, b"5\r\n{}\r\n0\r\n\r\n", f"{KIND}{chunked}"),
        request(port, token, b"", f"{KIND}Content-Length: -5\r\n"),
        request(port, token, b"", f"{KIND}Content-Length: 1e9\r\n"),
        json(b"{}", 10**15),
        json(b"[" * 900_000),
        json(b" " * 2_000_000),
        json(b'{"cell":' + b"[" * 400_000 + b"]" * 400_000 + b"}"),
        json(b'{"cell": [0, 0], "outcome": ' + b"1" * 900_000 + b"}"),
        *(json(body) for body in (b"\x00" * 1000, b'{"a":1e99999}', b"NaN", b'"\\ud800"', b"\xff")),
        *(form(f"b{i}.npz", bomb()) for i in range(6)),
        *(
            form(name, bomb())
            for name in ("x.csv", "x.json", "x.gpx", "../../x.npz", "x.npz\x00.csv")
        ),
        *(
            form(name, b"<svg onload=alert(1)>")
            for name in ("a.csv", "b.json", "c.geojson", "d.svg")
        ),
        form("x.csv", b"0" * 25_000_000),
        form("x.csv", b"row,col,outcome\n" + b"0,0,1\n0,0,0\n" * 100_000),
        form("x.csv", b"row,col,outcome\n" + b"9" * 1_000_000 + b",0,1\n"),
    ]
    assert len(hostile) >= 40
    before = resident()
    for raw in hostile:
        said = answer(port, raw)
        status = int(said.split()[1]) if said.startswith(b"HTTP/") else 400
        assert 400 <= status < 500, (raw[:80], said[:300])
    assert resident() - before < 250_000_000
    assert b'"seq":1,' in answer(port, looking(port, token))


def test_methods_that_are_not_there(wire: tuple[int, str]) -> None:
    port, token = wire
    for method in ("TRACE", "DELETE", "PROPFIND"):
        said = answer(port, request(port, token, b"").replace(b"POST", method.encode(), 1))
        assert b" 405 " in said
        assert b"application/problem+json" in said
