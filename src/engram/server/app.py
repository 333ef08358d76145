"""The application: routes, guard, and what starts and ends with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi

from engram._version import __version__
from engram.server.context import Context
from engram.server.guard import Guard
from engram.server.problems import MEDIA_TYPE, add_handlers
from engram.server.routes.campaigns import campaigns, one
from engram.server.routes.pages import pages
from engram.server.routes.people import members, people
from engram.server.routes.places import areas, places
from engram.server.routes.server import server
from engram.server.routes.shells import files, shells
from engram.server.routes.views import views
from engram.server.routes.work import work
from engram.server.settings import Settings
from engram.server.workers import Workers

TITLE = "engram"
ROUTERS = (campaigns, one, work, views, places, areas, members, people, server)


def create_app(settings: Settings, workers: Workers | None = None) -> FastAPI:
    """The server as an ASGI application."""
    context = Context(settings, workers)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        await _try_out(app)
        await context.workers.begin()
        tasks = [asyncio.create_task(context.watch.run())]
        tasks.append(asyncio.create_task(context.warm()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await context.close()

    app = FastAPI(
        title=TITLE,
        version=__version__,
        description=__doc__,
        lifespan=life,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.context = context
    app.state.desk, app.state.identities = context.desk, context.identities
    add_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    app.include_router(pages)
    app.include_router(shells)
    app.mount("/static", files())
    _publish(app)
    app.add_middleware(Guard, settings=settings)
    return app


async def _try_out(app: FastAPI) -> None:
    """One request to nobody: routes are put together when the first comes, which takes a while."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        pass

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/api/v1/me",
        "raw_path": b"/api/v1/me",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost")],
        "client": None,
        "server": None,
    }
    await app(scope, receive, send)


def _publish(app: FastAPI) -> None:
    """The OpenAPI description, where people look for it; it says nothing that is secret."""
    text: list[bytes] = []

    async def openapi() -> Response:
        if not text:  # it takes a while to make
            text.append(await app.state.desk.run(lambda: json.dumps(_described(app)).encode()))
        return Response(text[0], media_type="application/json")

    for path in ("/openapi.json", "/api/v1/openapi.json"):
        app.add_api_route(path, openapi, include_in_schema=False)


def _described(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(
        title=TITLE,
        version=__version__,
        description="Campaigns over HTTP. Errors are problem+json.",
        routes=app.routes,
    )
    components = schema["components"]
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": app.state.context.settings.cookie},
    }
    for methods in schema["paths"].values():
        for described in methods.values():
            if described.get("x-engram-need") != "nobody":
                described["security"] = [{"token": []}, {"session": []}]
            for status, answer in described["responses"].items():
                if not status.startswith("2") and "content" in answer:
                    answer["content"] = {MEDIA_TYPE: answer["content"]["application/json"]}
    for name in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(name, None)
    return schema
