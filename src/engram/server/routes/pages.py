"""Pages: signing in by a link, and the first one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from engram._templates import rendered
from engram.server.access import check_origin
from engram.server.context import TheContext
from engram.server.problems import ProblemError
from engram.server.routes.people import address_of, set_cookie, sign_in_with
from engram.server.routes.shells import shell

pages = APIRouter(include_in_schema=False)


def sign_in_page(
    token: str = "", account: str = "", *, problem: str = "", status: int = 200
) -> HTMLResponse:
    """The button for a link of an account, or the form to paste a token into."""
    # with no referrer at all, browsers send a form without saying that it comes from here
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
    text = rendered("sign_in.html", token=token, account=account, problem=problem)
    return HTMLResponse(text, status, headers)


@pages.get("/sign-in")
async def by_link(
    request: Request, context: TheContext, token: Annotated[str, Query(max_length=500)] = ""
) -> Response:
    """A link of the server's own owner signs in at once; others after a press of a button, so
    that programs which only look at links do not use them up."""
    if not token:
        return sign_in_page()
    context.slowing.check(address_of(request))
    known = await context.desk.run(context.people.caller, token, ("link", "owner", "api"))
    if known is not None and known.token.kind == "link":
        return sign_in_page(token, known.account.name)
    return await _enter(request, context, token)


@pages.post("/sign-in")
async def by_form(
    request: Request, context: TheContext, token: Annotated[str, Form(max_length=500)] = ""
) -> Response:
    if request.headers.get("origin") is not None:
        check_origin(request)
    return await _enter(request, context, token)


async def _enter(request: Request, context: TheContext, token: str) -> Response:
    try:
        _, session = await sign_in_with(context, request, token)
    except ProblemError as error:
        return sign_in_page(problem=str(error), status=error.code)
    response = RedirectResponse("/", 303, {"Cache-Control": "no-store"})
    set_cookie(context, response, session)
    return response


@pages.get("/")
async def first(request: Request, context: TheContext) -> Response:
    """Where a link leads to."""
    try:
        await context.identities.caller(request)
    except ProblemError:
        return RedirectResponse("/sign-in", 303, {"Cache-Control": "no-store"})
    return HTMLResponse(shell("home"), headers={"Cache-Control": "no-store"})
