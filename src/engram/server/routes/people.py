"""Signing in and out, accounts, tokens, links, and who may do what in a campaign."""

from __future__ import annotations

import io
from typing import Annotated, Any

from fastapi import Path, Request, Response

from engram.errors import NotFoundError
from engram.server.access import TheCaller, TheVisit, Visit, check_origin, needs
from engram.server.context import Context, TheContext
from engram.server.people import LIFETIME, Account, Caller
from engram.server.problems import ProblemError
from engram.server.roles import EVERYWHERE, at_least
from engram.server.routing import router
from engram.server.schemas import people as schemas

people = router(tags=["people"])
Name = Annotated[str, Path(min_length=1, max_length=100)]
TokenId = Annotated[int, Path(ge=1, le=2**31 - 1)]


def address_of(request: Request) -> str:
    return "" if request.client is None else request.client.host


async def sign_in_with(context: Context, request: Request, secret: str) -> tuple[Caller, str]:
    """A session for a good link or token; who fails again and again has to wait."""
    address = address_of(request)
    context.slowing.check(address)
    found = await context.desk.run(context.people.sign_in, secret)
    if found is None:
        context.slowing.failed(address)
        raise ProblemError(
            401, "this link is unknown, used up, expired or revoked; ask for a new one"
        )
    context.slowing.succeeded(address)
    return found


def set_cookie(context: Context, response: Response, secret: str) -> None:
    settings = context.settings
    response.set_cookie(
        settings.cookie,
        secret,
        max_age=round(LIFETIME["session"]),
        httponly=True,
        secure=settings.secure,
        samesite="lax",
        path="/",
    )


@people.post("/sign-in", response_model=schemas.Me, **needs("nobody"))
async def sign_in(
    request: Request, context: TheContext, body: schemas.SignIn, response: Response
) -> Any:
    """Begin a session (a cookie) with a link's token or a bearer token."""
    if request.headers.get("origin") is not None:
        check_origin(request)
    caller, session = await sign_in_with(context, request, body.token)
    set_cookie(context, response, session)
    return await _me(caller, context)


@people.post("/sign-out", status_code=204, response_class=Response, **needs("anybody"))
async def sign_out(caller: TheCaller, context: TheContext) -> Response:
    """End this session, or revoke this token."""
    await context.desk.run(context.people.revoke, caller.account.name, caller.token.id)
    context.identities.forget()
    response = Response(status_code=204)
    response.delete_cookie(context.settings.cookie, path="/")
    return response


@people.get("/me", response_model=schemas.Me, **needs("anybody"))
async def me(caller: TheCaller, context: TheContext) -> Any:
    """Who you are here, and what you may do."""
    return await _me(caller, context)


async def _me(caller: Caller, context: Context) -> dict[str, Any]:
    account = caller.account
    roles = {row.name: account.role(row.uid) for row in await context.desk.rows()}
    return {
        "account": account.name,
        "role": account.role(EVERYWHERE),
        "expires": caller.token.expires,
        "campaigns": {name: role for name, role in roles.items() if role is not None},
    }


# -- accounts and tokens ---------------------------------------------------------------------


def _plain(account: Account) -> dict[str, Any]:
    return {
        "name": account.name,
        "created": account.created,
        "disabled": account.disabled,
        "role": account.role(EVERYWHERE),
    }


@people.get("/accounts", response_model=schemas.Accounts, **needs("server owner"))
async def accounts(context: TheContext) -> Any:
    """Everybody who has an account."""
    found = await context.desk.run(context.people.accounts)
    return {"accounts": [_plain(account) for account in found]}


@people.post("/accounts", response_model=schemas.Account, status_code=201, **needs("server owner"))
async def add_account(context: TheContext, body: schemas.AccountBody) -> Any:
    """A new account."""
    return _plain(await context.desk.run(context.people.add, body.name, body.role))


@people.patch("/accounts/{account}", response_model=schemas.Account, **needs("server owner"))
async def change_account(
    caller: TheCaller, context: TheContext, account: Name, body: schemas.AccountChange
) -> Any:
    """Shut an account out, with all its tokens, or let it in again."""
    if account == caller.account.name and body.disabled:
        raise ProblemError(409, "you would shut yourself out; let another owner do it")
    found = await context.desk.run(context.people.disable, account, body.disabled)
    context.identities.forget()
    return _plain(found)


def _own(caller: Caller, account: str) -> None:
    """Tokens are a matter of their owner, or of who runs the server."""
    if account != caller.account.name and not caller.account.runs_the_server:
        raise ProblemError(403, f"account {account!r} is not yours")


@people.get("/accounts/{account}/tokens", response_model=schemas.Tokens, **needs("anybody"))
async def tokens(caller: TheCaller, context: TheContext, account: Name) -> Any:
    """The tokens and sessions of an account that are in force; never the secrets."""
    _own(caller, account)
    found = await context.desk.run(context.people.tokens, account)
    return {"tokens": [token.to_dict() for token in found]}


@people.post(
    "/accounts/{account}/tokens",
    response_model=schemas.NewToken,
    status_code=201,
    **needs("anybody"),
)
async def new_token(
    caller: TheCaller, context: TheContext, account: Name, body: schemas.TokenBody
) -> Any:
    """A new bearer token; it is shown this once."""
    _own(caller, account)
    secret, token = await context.desk.run(
        lambda: context.people.issue(account, "api", label=body.label, lifetime=body.lifetime)
    )
    return {"token": secret, "facts": token.to_dict()}


@people.delete(
    "/accounts/{account}/tokens/{token}",
    status_code=204,
    response_class=Response,
    **needs("anybody"),
)
async def revoke(caller: TheCaller, context: TheContext, account: Name, token: TokenId) -> Response:
    """Make a token or a session worthless."""
    _own(caller, account)
    await context.desk.run(context.people.revoke, account, token)
    context.identities.forget()
    return Response(status_code=204)


# -- people of a campaign --------------------------------------------------------------------

members = router("/campaigns/{name}", ["people"])


@members.get("/people", response_model=schemas.People, **needs("planner"))
async def list_people(visit: TheVisit, context: TheContext) -> Any:
    """Who has a part in the campaign."""
    found = await context.desk.run(context.people.accounts)
    uid = visit.row.uid
    rows = [
        {"account": account.name, "role": account.role(uid), "crew": account.crew(uid)}
        for account in found
        if account.role(uid) is not None and not account.disabled
    ]
    return {"people": rows}


@members.put("/people/{account}", response_model=schemas.Person, **needs("owner"))
async def grant(
    visit: TheVisit, context: TheContext, account: Name, body: schemas.GrantBody
) -> Any:
    """Give an account a role in the campaign."""
    await context.desk.run(context.people.grant, account, visit.row.uid, body.role, body.crew)
    context.identities.forget()
    return {"account": account, "role": body.role, "crew": body.crew or account}


@members.delete("/people/{account}", status_code=204, response_class=Response, **needs("owner"))
async def withdraw(visit: TheVisit, context: TheContext, account: Name) -> Response:
    """Take an account's role in the campaign away."""
    await context.desk.run(context.people.withdraw, account, visit.row.uid)
    context.identities.forget()
    return Response(status_code=204)


@members.post("/links", response_model=schemas.Link, status_code=201, **needs("owner"))
async def new_link(visit: TheVisit, context: TheContext, body: schemas.LinkBody) -> Any:
    """A sign-in link for a crew (or a viewer, or a planner), also as a QR code."""
    await context.desk.run(_prepare, context, visit, body)
    context.identities.forget()
    secret, token = await context.desk.run(
        lambda: context.people.issue(
            body.account, "link", label=visit.row.name[:100], lifetime=body.lifetime
        )
    )
    link = f"{context.settings.base}/sign-in?token={secret}"
    return {
        "account": body.account,
        "link": link,
        "qr": await context.desk.run(qr_code, link),
        "expires": token.expires,
    }


def _prepare(context: Context, visit: Visit, body: schemas.LinkBody) -> None:
    """The account of a link: a new one, or one that has no more than the caller may give."""
    try:
        account = context.people.account(body.account)
    except NotFoundError:
        account = context.people.add(body.account)
    mine = visit.account
    elsewhere = [uid for uid in account.grants if not at_least(mine.role(uid), "owner")]
    if account.name != mine.name and (elsewhere or account.disabled):
        raise ProblemError(
            403, f"account {body.account!r} has a part in what is not yours; let it sign in itself"
        )
    if account.name != mine.name and not at_least(account.role(visit.row.uid), body.role):
        context.people.grant(body.account, visit.row.uid, body.role, body.crew)


def qr_code(link: str) -> str:
    """A link as a drawing that a phone's camera reads."""
    import segno

    out = io.BytesIO()
    segno.make(link, error="m").save(out, kind="svg", scale=4, xmldecl=False, svgns=True)
    return out.getvalue().decode()
