"""Who calls, and whether he may: every route names the least role it needs.

A request signs in by ``Authorization: Bearer TOKEN`` or by the cookie of a session. Browsers send
cookies by themselves, so what changes something under a cookie has to come from a page of ours:
its Origin is this server's.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from engram.campaign.store import CampaignRow
from engram.errors import NotFoundError
from engram.server.people import Account, Caller, People, hashed
from engram.server.problems import ProblemError
from engram.server.roles import EVERYWHERE, Role, at_least

Need = Literal[
    "nobody", "anybody", "viewer", "crew", "planner", "owner", "server planner", "server owner"
]
"""What a route asks of its caller: nothing, to be signed in, a role in the campaign, or one in
all campaigns."""

REMEMBERED = 5.0
"""Seconds for which a token that was looked up is taken to be as it was."""
SAFE = ("GET", "HEAD", "OPTIONS")
NEED = "x-engram-need"
"""Where the OpenAPI description of a route says what it asks."""


@dataclass(frozen=True)
class Visit:
    """A caller at a campaign he may enter."""

    caller: Caller
    row: CampaignRow
    role: Role

    @property
    def account(self) -> Account:
        return self.caller.account

    def name_for(self, wanted: str | None) -> str:
        """Under whose name something is recorded: crews act for themselves alone."""
        own = self.account.crew(self.row.uid)
        if wanted is None or wanted == own:
            return own
        if not at_least(self.role, "planner"):
            raise ProblemError(
                403, f"as {self.role} you ask and tell for yourself ({own!r}), not for {wanted!r}"
            )
        return wanted


class Identities:
    """Callers by their secrets, remembered for a few seconds."""

    def __init__(self, people: People, cookie: str) -> None:
        self.people, self.cookie = people, cookie
        self._known: OrderedDict[str, tuple[float, Caller]] = OrderedDict()

    def forget(self) -> None:
        """Something about the people has changed: look everybody up again."""
        self._known.clear()

    async def caller(self, request: Request) -> Caller:
        """Who sends a request; 401 for nobody."""
        header = request.headers.get("authorization")
        session = request.cookies.get(self.cookie)
        if header is not None:
            scheme, _, secret = header.partition(" ")
            found = None
            if scheme.lower() == "bearer":
                found = await self._look_up(secret.strip(), bearer=True)
        elif session is not None:
            found = await self._look_up(session, bearer=False)
            if found is not None and request.method not in SAFE:
                check_origin(request)
        else:
            raise _unknown("sign in, or send Authorization: Bearer TOKEN")
        if found is None:
            raise _unknown("this token is unknown, expired or revoked; sign in again")
        return found

    async def _look_up(self, secret: str, *, bearer: bool) -> Caller | None:
        key = f"{bearer} {hashed(secret)}"
        known = self._known.get(key)
        now = time.monotonic()
        if known is not None and now - known[0] < REMEMBERED:
            return known[1] if known[1].token.expires > time.time() else None
        found = await run_in_threadpool(
            self.people.caller, secret, ("api", "owner") if bearer else ("session",)
        )
        self._known.pop(key, None)
        if found is not None:
            self._known[key] = (now, found)
            while len(self._known) > 10_000:
                self._known.popitem(last=False)
        return found


def _unknown(detail: str) -> ProblemError:
    return ProblemError(401, detail, {"WWW-Authenticate": 'Bearer realm="engram"'})


def check_origin(request: Request) -> None:
    """Refuse what another site's page makes a browser send."""
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    if origin is not None:
        ours = urlsplit(origin).netloc.lower() == host.lower()
    else:
        ours = request.headers.get("sec-fetch-site") == "same-origin"
    if not ours:
        raise ProblemError(
            403, "this request comes from another site; sign in here, or use a bearer token"
        )


def needs(need: Need) -> dict[str, Any]:
    """Arguments of a route that asks this of its callers."""
    return {"openapi_extra": {NEED: need}}


async def enter(request: Request, need: Need) -> None:
    """Let a request in, or not; who sends it is kept with it."""
    if need == "nobody":
        return
    state = request.app.state
    caller = await state.identities.caller(request)
    request.state.caller = caller
    if need == "anybody":
        return
    wanted = _role_of(need)
    everywhere = caller.account.role(EVERYWHERE)
    if need.startswith("server "):
        _check(everywhere, wanted, "of this server")
        return
    name = request.path_params["name"]
    try:
        row = await state.desk.row(name)
    except NotFoundError:
        if everywhere is None:  # whether there is one is not said
            _check(None, wanted, f"of campaign {name!r}")
        raise
    role = caller.account.role(row.uid)
    _check(role, wanted, f"of campaign {name!r}")
    assert role is not None
    request.state.visit = Visit(caller, row, role)


def _role_of(need: Need) -> Role:
    roles: dict[Need, Role] = {
        "viewer": "viewer",
        "crew": "crew",
        "planner": "planner",
        "owner": "owner",
        "server planner": "planner",
        "server owner": "owner",
    }
    return roles[need]


def _check(have: Role | None, wanted: Role, where: str) -> None:
    if not at_least(have, wanted):
        what = "you have no part in it" if have is None else f"you are {have}"
        raise ProblemError(403, f"this needs the role {wanted} {where}; {what}: ask its owner")


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


async def _visit(request: Request) -> Visit:
    visit: Visit = request.state.visit
    return visit


TheCaller = Annotated[Caller, Depends(_caller)]
TheVisit = Annotated[Visit, Depends(_visit)]
