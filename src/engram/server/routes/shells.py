"""The pages: files that are the same for everybody, and fetch what they show from the API."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from engram.errors import EngramError
from engram.server.context import Context, TheContext
from engram.server.guard import POLICY
from engram.server.problems import ProblemError

FOLDER = Path(__file__).resolve().parent.parent / "static"
ALWAYS_ASK = {"Cache-Control": "no-cache"}

shells = APIRouter(include_in_schema=False)


class Files(StaticFiles):
    """The files of the pages; browsers ask whether theirs are still right."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(ALWAYS_ASK)
        return response


def files() -> StaticFiles:
    return Files(directory=FOLDER)


@cache
def shell(name: str) -> str:
    """The page of this name, as it is in the folder."""
    return (FOLDER / "pages" / f"{name}.html").read_text(encoding="utf-8")


@cache
def version() -> str:
    """A hash of all files of the pages: phones that have others fetch them anew."""
    parts = hashlib.sha256()
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file():
            parts.update(str(path.relative_to(FOLDER)).encode() + b"\0" + path.read_bytes())
    return parts.hexdigest()[:16]


def _page(name: str, **headers: str) -> HTMLResponse:
    return HTMLResponse(shell(name), headers={**ALWAYS_ASK, **headers})


@shells.get("/new")
async def wizard() -> Response:
    return _page("new")


@shells.get("/campaigns/{name}")
async def campaign(request: Request, context: TheContext, name: str) -> Response:
    """The planner's page; pictures may come from the host of the tiles that its owner chose."""
    host = await _host_of_tiles(request, context, name)
    if not host:
        return _page("campaign")
    policy = POLICY.replace("img-src 'self'", f"img-src 'self' {host}")
    return _page("campaign", **{"Content-Security-Policy": policy})


async def _host_of_tiles(request: Request, context: Context, name: str) -> str:
    """Where tiles come from, for those who have a part in the campaign; empty for nowhere."""
    try:
        caller = await context.identities.caller(request)
        row = await context.desk.row(name)
    except (ProblemError, EngramError):
        return ""
    if caller.account.role(row.uid) is None:
        return ""
    settings: dict[str, Any] = await context.desk.run(context.page_settings.get, row.uid)
    parts = urlsplit(settings.get("tiles", ""))
    return f"https://{parts.netloc.replace('{s}', '*')}" if parts.netloc else ""


@shells.get("/crew/sw.js")
async def service_worker() -> Response:
    """What keeps the crew's page working without a network; a new version begins a new cache."""
    script = (FOLDER / "js" / "service_worker.js").read_text(encoding="utf-8")
    first = f'const VERSION = "{version()}";\n'
    return Response(first + script, media_type="text/javascript", headers=ALWAYS_ASK)


@shells.get("/crew/{name}")
async def crew(name: str) -> Response:
    """The crew's page."""
    return _page("crew")
