"""``engram serve`` and ``engram account``: the campaigns over HTTP, and who may use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli._campaign import Db, Json, duration, emit, needs_database, show_rows
from engram.cli._printing import say
from engram.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from engram.server.people import People

account = typer.Typer(no_args_is_help=True, help="Who may use the campaigns of a server.")


def serve(
    db: Db = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8765,
    name: Annotated[
        list[str] | None, typer.Option(help="Name the server is called by; repeatable.")
    ] = None,
    url: Annotated[
        str, typer.Option(help="Address as people see it, where a proxy stands before it.")
    ] = "",
    workers: Annotated[
        int, typer.Option(help="Processes that compute answers; 0 = one less than cores.")
    ] = 0,
) -> None:
    """Serve the campaigns of a database over HTTP; prints a link that signs its owner in."""
    if not 0 <= port < 65536:
        raise InputError(f"--port {port}: give a number from 0 to 65535")
    if not 0 <= workers <= 64:
        raise InputError(f"--workers {workers}: give a number from 0 to 64")
    needs_database()
    _needs_server()
    from engram._threads import set_threads
    from engram.server.run import serve as run
    from engram.server.settings import Settings, free_port

    set_threads(1)
    where = Settings(db, host, port or free_port(host), tuple(name or ()), url, workers)
    run(where, say)


def _needs_server() -> None:
    from importlib.util import find_spec

    missing = [n for n in ("fastapi", "uvicorn", "multipart", "segno") if find_spec(n) is None]
    if missing:
        raise UnavailableError(
            f"the server needs {', '.join(missing)}: pip install 'engram[server]'"
        )


def _people(db: str | None) -> People:
    needs_database()
    from engram.campaign.sql_store import SqlStore
    from engram.server.people import People

    return People(SqlStore(db, create=True))


AccountName = Annotated[str, typer.Argument(help="Name of the account.", show_default=False)]
RoleOption = Annotated[str | None, typer.Option(help="viewer, crew, planner or owner.")]


@account.command()
def add(
    name: AccountName,
    role: Annotated[str | None, typer.Option(help="A role in all campaigns.")] = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Add an account and show a token for it, once."""
    from engram.server.people import check_role

    people = _people(db)
    made = people.add(name, None if role is None else check_role(role))
    secret, token = people.issue(made.name, "api")
    facts = {"account": made.name, "role": role, "token": secret, "expires": token.expires}
    emit(facts, as_json, f"added {name}; its token, shown this once: {secret}")


@account.command()
def token(
    name: AccountName,
    lifetime: Annotated[str, typer.Option(help="How long it is good for: 12h, 90d.")] = "90d",
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Make a new token of an account and show it, once."""
    secret, kept = _people(db).issue(
        name, "api", label=label, lifetime=duration(lifetime, "--lifetime")
    )
    facts = {"account": name, "token": secret, "id": kept.id, "expires": kept.expires}
    emit(facts, as_json, f"token {kept.id} of {name}, shown this once: {secret}")


@account.command()
def grant(
    name: AccountName,
    campaign: Annotated[str, typer.Argument(help="Name of the campaign, or * for all.")],
    role: Annotated[str, typer.Argument(help="viewer, crew, planner or owner.")],
    crew: Annotated[str, typer.Option(help="Name to ask and tell under.")] = "",
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Give an account a role in a campaign."""
    people = _people(db)
    from engram.campaign import Storage
    from engram.server.people import check_role

    uid = campaign if campaign == "*" else Storage(people.store).campaign(campaign).uid
    people.grant(name, uid, check_role(role), crew)
    emit({"account": name, "campaign": campaign, "role": role}, as_json, f"{name}: {role} now")


@account.command()
def revoke(
    name: AccountName,
    number: Annotated[int | None, typer.Option("--token", help="Number of a token.")] = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Revoke one token of an account, or all of them."""
    people = _people(db)
    numbers = [t.id for t in people.tokens(name)] if number is None else [number]
    for one in numbers:
        people.revoke(name, one)
    emit({"account": name, "revoked": numbers}, as_json, f"{name}: {len(numbers)} revoked")


@account.command("list")
def list_(db: Db = None, as_json: Json = False) -> None:
    """Show all accounts with their roles in all campaigns and their tokens."""
    people = _people(db)
    rows = [
        {
            "name": a.name,
            "role": a.role("*") or "",
            "campaigns": len([uid for uid in a.grants if uid != "*"]),
            "tokens": ", ".join(str(t.id) for t in people.tokens(a.name)),
            "disabled": a.disabled,
        }
        for a in people.accounts()
    ]
    show_rows(rows, as_json, ["name", "role", "campaigns", "tokens", "disabled"], "accounts")
