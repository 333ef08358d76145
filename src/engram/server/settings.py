"""How a server runs."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from engram._threads import cores

PORT = 8765
LOCAL = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Settings:
    """db : database of the campaigns; names : further names the server is called by;
    url : address as people see it, where a proxy stands before it; workers : processes that
    compute answers, one thread each."""

    db: str | None = None
    host: str = "127.0.0.1"
    port: int = PORT
    names: tuple[str, ...] = ()
    url: str = ""
    workers: int = 0

    @property
    def is_local(self) -> bool:
        return self.host in LOCAL

    @property
    def base(self) -> str:
        """The address that links begin with."""
        if self.url:
            return self.url.rstrip("/")
        host = socket.gethostname() if _is_any(self.host) else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def secure(self) -> bool:
        return self.base.startswith("https://")

    @property
    def cookie(self) -> str:
        """Name of the session's cookie: cookies do not know of ports, so it names the port."""
        return f"engram_session_{self.port}"

    def computing(self) -> int:
        """Processes that compute; one core is left for what answers at once."""
        return self.workers or max(1, min(cores() - 1, 4))

    def knows_host(self, header: str) -> bool:
        """Whether a Host header names this server.

        Addresses do: a page of another site can make its own name point here, not a number.
        """
        name = _host_of(header)
        if name is None:
            return False
        known = {*LOCAL, self.host, *self.names, _host_of(self.base.split("://", 1)[1])}
        if not self.is_local:
            known.add(socket.gethostname())
        return name.lower() in {n.lower() for n in known if n} or _is_address(name)


def _host_of(header: str) -> str | None:
    """The name in ``name:port``; None where there is none."""
    if not header or any(c in header for c in "/@\\ ,?#"):
        return None
    if header.startswith("["):
        name, bracket, port = header[1:].partition("]")
        port = port.removeprefix(":") if bracket else "?"
    else:
        name, _, port = header.partition(":")
    return name if name and (not port or port.isdigit()) else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_any(host: str) -> bool:
    return host in ("0.0.0.0", "::", "")


def free_port(host: str) -> int:
    """A port that nobody listens on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
