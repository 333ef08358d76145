"""A server whose answers are computed in the test's own process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httpx

from engram.server.app import create_app
from engram.server.context import Context
from engram.server.people import Kind
from engram.server.problems import RelayedError
from engram.server.roles import ROLES
from engram.server.settings import Settings
from engram.server.worker import Worker
from engram.server.workers import Answer, Workers


class InlineWorkers(Workers):
    """Jobs done by the worker's own code, without a process."""

    def __init__(self, db: str) -> None:
        super().__init__(db, 1)
        self._worker = Worker(db)
        self._turn = asyncio.Lock()
        self.jobs: list[str] = []
        self.begun = False

    async def do(
        self, what: str, name: str, uid: str, slow: bool = False, blob: bytes = b"", **args: Any
    ) -> Answer:
        return await self._do({"do": what, "name": name, "uid": uid, "args": args}, blob)

    async def apart(self, what: str, args: dict[str, Any], blob: bytes = b"") -> Answer:
        return await self._do({"do": what, "args": args}, blob)

    async def _do(self, job: dict[str, Any], blob: bytes) -> Answer:
        async with self._turn:
            self.jobs.append(job["do"])
            message, out = await asyncio.to_thread(self._worker.answer, job, blob)
        if "error" in message:
            raise RelayedError(message["error"], message.get("kind", "failed"))
        return message["answer"], out

    async def begin(self) -> None:
        self.begun = True

    async def start(self, rows: Any) -> None:
        pass

    async def stop(self) -> None:
        await super().stop()
        self._worker.close()  # so that the database is one whole file, which tests copy


def inline_app(db: str) -> Any:
    return create_app(Settings(db=db), InlineWorkers(db))


class LocalClient:
    """Requests to an application in this process; its event loop runs while one is answered."""

    def __init__(self, app: Any) -> None:
        self._runner = asyncio.Runner()
        self._life = app.router.lifespan_context(app)
        self._runner.run(self._life.__aenter__())
        transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 5000))
        self._http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765")

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self._runner.run(self._http.request(method, path, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)

    def run(self, work: Any) -> Any:
        return self._runner.run(work)

    def close(self) -> None:
        self._runner.run(self._http.aclose())
        self._runner.run(self._life.__aexit__(None, None, None))
        self._runner.close()


@dataclass
class Served:
    """A client and the secrets of everybody."""

    client: LocalClient
    app: Any
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def context(self) -> Context:
        context: Context = self.app.state.context
        return context

    def furnished(self) -> Served:
        """Add a campaign and one account for each role in it."""
        people = self.context.people
        people.ensure_owner()
        self.tokens["owner of all"] = self.issue("owner")
        made = self.post(
            "owner of all",
            "/campaigns",
            {"name": "pond", "size": [12, 12], "budget": 40, "policy": "random"},
        )
        assert made.status_code == 201, made.text
        for role in ROLES:
            name = "owner of pond" if role == "owner" else role
            people.add(name)
            people.grant(name, made.json()["uid"], role)
            self.tokens[role] = self.issue(name)
        people.add("stranger")
        self.tokens["stranger"] = self.issue("stranger")
        people.add("planner of all", "planner")
        self.tokens["planner of all"] = self.issue("planner of all")
        return self

    def issue(self, account: str, kind: Kind = "api", **more: Any) -> str:
        return self.context.people.issue(account, kind, **more)[0]

    def headers(self, who: str | None) -> dict[str, str]:
        return {} if who is None else {"Authorization": f"Bearer {self.tokens[who]}"}

    def get(self, who: str | None, path: str, **more: Any) -> Any:
        return self.client.get(
            f"/api/v1{path}", headers={**self.headers(who), **more.pop("headers", {})}, **more
        )

    def post(self, who: str | None, path: str, body: Any = None, **more: Any) -> Any:
        headers = {**self.headers(who), **more.pop("headers", {})}
        return self.client.post(
            f"/api/v1{path}", json={} if body is None else body, headers=headers, **more
        )
