"""``engram serve`` as a process of its own, which may be killed and started again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from types import TracebackType

from engram.server.settings import free_port

START = 60.0


class ServerProcess:
    """A server on a port of its own; the port stays the same when it is started again."""

    def __init__(self, db: str, *more: str, port: int = 0) -> None:
        self.db, self._more = db, more
        self.port = port or free_port("127.0.0.1")
        self.link = ""
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return self.link.partition("token=")[2]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> ServerProcess:
        """Start, and wait until it answers."""
        command = [sys.executable, "-m", "engram", "serve", "--db", self.db]
        self._process = subprocess.Popen(
            [*command, "--port", str(self.port), *self._more],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if not os.environ.get("ENGRAM_TEST_LOUD") else None,
            text=True,
        )
        assert self._process.stdout is not None
        self.link = self._process.stdout.readline().strip()
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{self.url}/openapi.json", timeout=5).close()
                return self
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.05)
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        """As a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def stop(self) -> int:
        """As Ctrl-C does; gives the exit code."""
        assert self._process is not None
        self._process.terminate()
        code = self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def __enter__(self) -> ServerProcess:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
