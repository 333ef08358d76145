"""Errors as problem+json (RFC 9457), in the words of the command line."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from engram.campaign.model import ChangedError
from engram.errors import REPLIES, EngramError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE = "application/problem+json"
CHANGED = "changed"
"""The kind of an error about a request that was prepared for another head (If-Match)."""

STATUSES: dict[str, int] = {kind: reply.status for kind, reply in REPLIES.items()}
_log = logging.getLogger("engram.server")


class Problem(BaseModel):
    """What went wrong."""

    type: str = Field(description="Kind of the error: a path that names it.")
    title: str = Field(description="The status in words.")
    status: int
    detail: str = Field(description="What was wrong, with the value, and what to do.")


class ProblemError(EngramError):
    """An error with a status of its own, which the campaign layer does not have."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.code, self.headers = status, dict(headers or {})


class RelayedError(EngramError):
    """An error of the campaign layer that was raised in another process."""

    def __init__(self, detail: str, kind: str) -> None:
        super().__init__(detail)
        self.relayed = kind


class ProblemAnswer(JSONResponse):
    """An answer that is a problem."""

    media_type = MEDIA_TYPE


def problem(
    status: int, detail: str, kind: str = "", headers: Mapping[str, str] | None = None
) -> ProblemAnswer:
    """A problem as an answer."""
    name = (kind or HTTPStatus(status).phrase).lower().replace(" ", "-")
    body = Problem(
        type=f"/problems/{name}", title=HTTPStatus(status).phrase, status=status, detail=detail
    )
    return ProblemAnswer(body.model_dump(), status, dict(headers or {}))


def problem_of(error: EngramError) -> ProblemAnswer:
    """An error of ours as an answer."""
    if isinstance(error, ProblemError):
        return problem(error.code, str(error), headers=error.headers)
    kind = error.relayed if isinstance(error, RelayedError) else error.kind
    if kind == CHANGED or isinstance(error, ChangedError):
        return problem(412, str(error), CHANGED)
    return problem(STATUSES.get(kind, 500), str(error), kind)


def add_handlers(app: FastAPI) -> None:
    """Whatever goes wrong in a route is answered as a problem."""

    async def ours(request: Request, error: Exception) -> ProblemAnswer:
        assert isinstance(error, EngramError)
        return problem_of(error)

    async def invalid(request: Request, error: Exception) -> ProblemAnswer:
        assert isinstance(error, RequestValidationError)
        return problem(422, _in_words(error), "input")

    async def http(request: Request, error: Exception) -> ProblemAnswer:
        assert isinstance(error, HTTPException)
        detail = error.detail if isinstance(error.detail, str) else shown(error.detail)
        return problem(error.status_code, detail, headers=error.headers)

    async def unforeseen(request: Request, error: Exception) -> ProblemAnswer:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return problem(500, "the server failed; its log says how", "failed")

    app.add_exception_handler(EngramError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, unforeseen)


def _in_words(error: RequestValidationError) -> str:
    """The first fault, with field and value."""
    faults: list[Any] = list(error.errors())
    first = faults[0]
    place = [str(part) for part in first["loc"] if part not in ("body", "query", "path", "header")]
    field = ".".join(place) or str(first["loc"][0])
    value = f" {shown(first['input'])}" if first["type"] != "missing" else ""
    more = f" ({len(faults) - 1} more faults)" if len(faults) > 1 else ""
    return f"field {field}{value}: {first['msg']}{more}"
