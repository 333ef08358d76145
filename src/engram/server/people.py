"""Accounts, grants and tokens in the database of the campaigns.

A secret has 256 random bits, is shown once and kept as its SHA-256. Each is of a kind: ``api``
(Authorization: Bearer), ``link`` (signs in once, then is used up), ``session`` (a cookie), or
``owner``, the one a server prints when it starts: it signs in once, and scripts on the machine
may use it as a bearer token until it expires.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from engram.campaign.model import check_text
from engram.campaign.sql_store import SqlStore
from engram.errors import ConflictError, InputError, NotFoundError, shown
from engram.server import tables
from engram.server.roles import EVERYWHERE, ROLES, Role, at_least, highest

Kind = Literal["api", "link", "session", "owner"]
Result = TypeVar("Result")

DAY = 86400.0
LIFETIME: dict[Kind, float] = {"api": 90 * DAY, "link": 7 * DAY, "session": 30 * DAY, "owner": DAY}
"""Seconds after which a token expires, unless another time is asked for."""
LONGEST = 400 * DAY

OWNER = "owner"
"""The account of whoever starts a server on his own machine."""


@dataclass(frozen=True)
class Account:
    """Somebody, or a script. ``grants``: campaign uid (or ``*``) -> (role, crew)."""

    id: int
    name: str
    created: float
    disabled: bool
    grants: dict[str, tuple[Role, str]] = field(default_factory=dict)

    def role(self, campaign: str) -> Role | None:
        """The role in a campaign."""
        found = [self.grants[key][0] for key in (campaign, EVERYWHERE) if key in self.grants]
        return highest(*found)

    def crew(self, campaign: str) -> str:
        """The name to ask and tell under."""
        named = self.grants.get(campaign, self.grants.get(EVERYWHERE, ("viewer", "")))[1]
        return named or self.name

    @property
    def runs_the_server(self) -> bool:
        return at_least(self.role(EVERYWHERE), "owner")


@dataclass(frozen=True)
class Token:
    """What is kept of a secret."""

    id: int
    kind: str
    label: str
    created: float
    expires: float
    used: bool
    revoked: bool

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass(frozen=True)
class Caller:
    """Who sends a request, and with which token."""

    account: Account
    token: Token


def hashed(secret: str) -> str:
    """What is kept of a secret; it has enough randomness of its own to need no salt."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def check_name(name: str) -> str:
    """The name of an account: short, printable, not blank."""
    if not check_text(name, "name").strip() or len(name) > 100 or not name.isprintable():
        raise InputError(f"account name {shown(name)}: give 1 to 100 printable characters")
    return name


def check_role(role: str) -> Role:
    if role not in ROLES:
        raise InputError(f"role {shown(role)}: choose one of {', '.join(ROLES)}")
    return ROLES[ROLES.index(role)]


class People:
    """Everybody who may use the campaigns of one database."""

    def __init__(self, store: SqlStore, clock: Callable[[], float] = time.time) -> None:
        self.store, self._clock = store, clock
        self._write(tables.ensure)

    def _write(self, work: Callable[[Connection], Result]) -> Result:
        return self.store.change(work)

    # -- accounts ------------------------------------------------------------------------

    def add(self, name: str, role: Role | None = None) -> Account:
        """A new account, with a role in all campaigns if one is named."""
        check_name(name)

        def work(connection: Connection) -> int:
            table = tables.accounts
            values = {"name": name, "created": self._clock(), "disabled": False}
            key = connection.execute(table.insert().values(values)).inserted_primary_key
            assert key is not None
            if role is not None:
                _grant(connection, int(key[0]), EVERYWHERE, role, "")
            return int(key[0])

        try:
            self._write(work)
        except IntegrityError as error:
            raise ConflictError(
                f"an account named {name!r} exists already; choose another name"
            ) from error
        return self.account(name)

    def ensure_owner(self, name: str = OWNER) -> Account:
        """The account of this name, as owner of everything; created where it is missing."""
        if name not in {account.name for account in self.accounts()}:
            return self.add(name, "owner")
        self.grant(name, EVERYWHERE, "owner")
        return self.account(name)

    def accounts(self) -> list[Account]:
        """All accounts, in the order of their creation."""
        return self.store.look(lambda connection: _accounts(connection, sa.true()))

    def account(self, name: str) -> Account:
        wanted = tables.accounts.c.name == name
        found = self.store.look(lambda connection: _accounts(connection, wanted))
        if not found:
            raise NotFoundError(f"there is no account named {shown(name)}")
        return found[0]

    def disable(self, name: str, disabled: bool = True) -> Account:
        """Shut an account out, with every token it has, or let it in again."""
        account = self.account(name)

        def work(connection: Connection) -> None:
            table = tables.accounts
            connection.execute(
                table.update().where(table.c.id == account.id).values(disabled=disabled)
            )

        self._write(work)
        return self.account(name)

    # -- what they may do ----------------------------------------------------------------

    def grant(self, name: str, campaign: str, role: Role, crew: str = "") -> None:
        """Give an account a role in a campaign (uid), or in all (``*``)."""
        account = self.account(name)
        if len(check_text(crew, "crew")) > 200:
            raise InputError(f"crew {shown(crew)}: give up to 200 characters")
        self._write(lambda connection: _grant(connection, account.id, campaign, role, crew))

    def withdraw(self, name: str, campaign: str) -> None:
        """Take the role in a campaign away."""
        account = self.account(name)
        c = tables.grants.c

        def work(connection: Connection) -> int:
            gone = tables.grants.delete().where(c.account == account.id, c.campaign == campaign)
            return connection.execute(gone).rowcount

        if not self._write(work):
            raise NotFoundError(f"account {shown(name)} has no role there of its own")

    # -- secrets -------------------------------------------------------------------------

    def issue(
        self, name: str, kind: Kind, *, label: str = "", lifetime: float | None = None
    ) -> tuple[str, Token]:
        """A new secret of an account, which is shown now or never, and what is kept of it."""
        account = self.account(name)
        lasts = LIFETIME[kind] if lifetime is None else lifetime
        if not 0 < lasts <= LONGEST:
            raise InputError(f"lifetime={lasts:g}: give up to {LONGEST:g} seconds, above 0")
        if len(check_text(label, "label")) > 100:
            raise InputError(f"label {shown(label)}: give up to 100 characters")
        secret, now = secrets.token_urlsafe(32), self._clock()
        values = {
            "account": account.id,
            "kind": kind,
            "hash": hashed(secret),
            "label": label,
            "created": now,
            "expires": now + lasts,
            "used": False,
            "revoked": False,
        }

        def work(connection: Connection) -> int:
            table, c = tables.tokens, tables.tokens.c
            connection.execute(table.delete().where(c.expires < now - LONGEST))
            key = connection.execute(table.insert().values(values)).inserted_primary_key
            assert key is not None
            return int(key[0])

        number = self._write(work)
        return secret, Token(number, kind, label, now, now + lasts, False, False)

    def caller(self, secret: str, kinds: tuple[Kind, ...]) -> Caller | None:
        """Who a secret belongs to, if it is one of these kinds and good now."""
        c = tables.tokens.c

        def work(connection: Connection) -> Caller | None:
            wanted = sa.select(tables.tokens).where(c.hash == hashed(secret))
            row = connection.execute(wanted).one_or_none()
            if row is None or row.kind not in kinds or not _good(row, self._clock()):
                return None
            account = _accounts(connection, tables.accounts.c.id == row.account)[0]
            return None if account.disabled else Caller(account, _token(row))

        return self.store.look(work)

    def sign_in(self, secret: str) -> tuple[Caller, str] | None:
        """Use up a link, or take a bearer token, for a new session; gives its secret as well."""
        caller = self.caller(secret, ("link", "owner", "api"))
        if caller is None or not (caller.token.kind == "api" or self._use_up(caller.token)):
            return None
        session, token = self.issue(caller.account.name, "session", label=caller.token.label)
        return Caller(caller.account, token), session

    def _use_up(self, token: Token) -> bool:
        """True for the first who signs in by a link."""
        table, c = tables.tokens, tables.tokens.c

        def work(connection: Connection) -> bool:
            first = table.update().where(c.id == token.id, c.used.is_(False)).values(used=True)
            return connection.execute(first).rowcount == 1

        return self._write(work)

    def tokens(self, name: str) -> list[Token]:
        """The tokens of an account that are not over."""
        account, c = self.account(name), tables.tokens.c
        wanted = sa.select(tables.tokens).where(c.account == account.id).order_by(c.id)
        rows = self.store.look(lambda connection: connection.execute(wanted).all())
        now = self._clock()
        return [_token(row) for row in rows if not row.revoked and row.expires > now]

    def revoke(self, name: str, token: int) -> None:
        """Make a token of an account worthless from now on."""
        account = self.account(name)
        table, c = tables.tokens, tables.tokens.c

        def work(connection: Connection) -> int:
            mine = table.update().where(c.id == token, c.account == account.id)
            return connection.execute(mine.values(revoked=True)).rowcount

        if not self._write(work):
            raise NotFoundError(f"account {shown(name)} has no token {token}")


def _accounts(connection: Connection, wanted: Any) -> list[Account]:
    rows = connection.execute(
        sa.select(tables.accounts).where(wanted).order_by(tables.accounts.c.id)
    ).all()
    given = connection.execute(
        sa.select(tables.grants).where(tables.grants.c.account.in_([row.id for row in rows]))
    ).all()
    return [
        Account(
            row.id,
            row.name,
            row.created,
            bool(row.disabled),
            {g.campaign: (check_role(g.role), g.crew) for g in given if g.account == row.id},
        )
        for row in rows
    ]


def _grant(connection: Connection, account: int, campaign: str, role: Role, crew: str) -> None:
    table, c = tables.grants, tables.grants.c
    connection.execute(table.delete().where(c.account == account, c.campaign == campaign))
    connection.execute(
        table.insert().values(account=account, campaign=campaign, role=role, crew=crew)
    )


def _good(row: Any, now: float) -> bool:
    """A token in force: links that were used sign nobody in, and are no bearer tokens."""
    return not row.revoked and row.expires > now and not (row.kind == "link" and row.used)


def _token(row: Any) -> Token:
    return Token(
        row.id, row.kind, row.label, row.created, row.expires, bool(row.used), bool(row.revoked)
    )
