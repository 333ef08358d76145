"""Pages: signing in by a link, and the first one."""

from __future__ import annotations

from html import escape
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from engram.server.access import check_origin
from engram.server.context import TheContext
from engram.server.problems import ProblemError
from engram.server.routes.people import address_of, set_cookie, sign_in_with
from engram.server.routes.shells import shell

pages = APIRouter(include_in_schema=False)

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>engram</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/static/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/css/base.css"></head>
<body><main class="sign-in"><h1>engram</h1>{body}</main></body></html>
"""


def page(body: str, status: int = 200) -> HTMLResponse:
    """A page; whatever is in ``body`` was escaped by who made it."""
    # with no referrer at all, browsers send a form without saying that it comes from here
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
    return HTMLResponse(_PAGE.format(body=body), status, headers)


@pages.get("/sign-in")
async def by_link(
    request: Request, context: TheContext, token: Annotated[str, Query(max_length=500)] = ""
) -> Response:
    """A link of the server's own owner signs in at once; others after a press of a button, so
    that programs which only look at links do not use them up."""
    if not token:
        return page(_form(""))
    context.slowing.check(address_of(request))
    known = await context.desk.run(context.people.caller, token, ("link", "owner", "api"))
    if known is not None and known.token.kind == "link":
        return page(_form(token, known.account.name))
    return await _enter(request, context, token)


def _form(token: str, account: str = "") -> str:
    field = f'<input type="hidden" name="token" value="{escape(token)}">'
    who = f"<p>Sign in as <strong>{escape(account)}</strong></p>"
    if not token:
        field = '<label>Token <input name="token" autocomplete="off" required></label>'
        who = "<p>Open the link you were given, or paste a token.</p>"
    return f'<form method="post" action="/sign-in">{who}{field}<button>Sign in</button></form>'


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
        status = error.code
        return page(f"<p>{escape(str(error))}.</p>{_form('')}", status)
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
