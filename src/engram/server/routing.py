"""The class of our routes: bodies are read whole and strictly, and each route says what it may
answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response, params
from fastapi.routing import APIRoute

from engram.server import strict_json
from engram.server.access import NEED, Need, enter
from engram.server.problems import Problem, ProblemError


def may_fail(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems a route may answer with, for the OpenAPI."""
    return {status: {"model": Problem, "description": "Problem"} for status in statuses}


COMMON = may_fail(400, 401, 403, 404, 405, 408, 409, 412, 413, 415, 422, 429, 500, 503)
"""What any route may answer with when it does not do what was asked."""
SHORT = 10_000
"""Bytes of a body that is read on the event loop; a longer one is read in a thread."""


class StrictRequest(Request):
    """A request whose JSON is what JSON may be, and was read before anybody asks for it."""

    parsed: Any = None

    async def json(self) -> Any:
        return self.parsed


class StrictRoute(APIRoute):
    """Says who may enter, then reads the body: strictly, and as a whole."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        need: Need = (self.openapi_extra or {})[NEED]

        async def strictly(request: Request) -> Response:
            await enter(request, need)
            strict = StrictRequest(request.scope, request.receive)
            raw = await strict.body()
            if self.body_field is not None and self._takes_json(strict) and raw:
                if len(raw) <= SHORT:
                    strict.parsed = strict_json.parse(raw)
                else:
                    strict.parsed = await request.app.state.desk.run(strict_json.parse, raw)
            try:
                return await handle(strict)
            finally:
                await strict.close()  # files of a form that is not needed any more

        return strictly

    def _takes_json(self, request: Request) -> bool:
        """Whether the route takes JSON rather than a form; refuses a body of another type."""
        assert self.body_field is not None
        form = isinstance(self.body_field.field_info, params.Form)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        wanted = "multipart/form-data" if form else "application/json"
        if kind != wanted:  # a page of another site could send a form, but not JSON
            raise ProblemError(415, f"the body is {kind or 'of no type'}; send {wanted}")
        return not form


def router(prefix: str = "", tags: list[str] | None = None) -> APIRouter:
    return APIRouter(
        prefix=f"/api/v1{prefix}", route_class=StrictRoute, responses=COMMON, tags=list(tags or ())
    )
