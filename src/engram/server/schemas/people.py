"""Accounts, roles, tokens and links: what is sent and answered."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engram.server.roles import Role
from engram.server.schemas.base import Given, Taken


class SignIn(Taken):
    token: str = Field(min_length=1, max_length=500)


class AccountBody(Taken):
    name: str = Field(min_length=1, max_length=100)
    role: Role | None = Field(None, description="A role in all campaigns.")


class AccountChange(Taken):
    disabled: bool


class GrantBody(Taken):
    role: Role
    crew: str = Field("", max_length=200, description="Name to ask and tell under.")


class TokenBody(Taken):
    label: str = Field("", max_length=100)
    lifetime: float | None = Field(None, gt=0, le=400 * 86400, description="Seconds.")


class LinkBody(Taken):
    """A sign-in link; an account that does not exist yet is made."""

    account: str = Field(min_length=1, max_length=100)
    role: Literal["viewer", "crew", "planner"] = "crew"
    crew: str = Field("", max_length=200)
    lifetime: float | None = Field(None, gt=0, le=400 * 86400, description="Seconds.")


class TokenFacts(Given):
    id: int
    kind: Literal["api", "link", "session", "owner"]
    label: str
    created: float
    expires: float
    used: bool
    revoked: bool


class NewToken(Given):
    token: str = Field(description="The secret; it is shown this once.")
    facts: TokenFacts


class Tokens(Given):
    tokens: list[TokenFacts]


class Link(Given):
    """A sign-in link: good once."""

    account: str
    link: str = Field(description="Open it in a browser; it is shown this once.")
    qr: str = Field(description="The link as a QR code: an SVG drawing.")
    expires: float


class Person(Given):
    account: str
    role: Role
    crew: str


class People(Given):
    people: list[Person]


class Account(Given):
    name: str
    created: float
    disabled: bool
    role: Role | None = Field(description="The role in all campaigns.")


class Accounts(Given):
    accounts: list[Account]


class Me(Given):
    """Who you are here."""

    account: str
    role: Role | None = Field(description="Your role in all campaigns.")
    expires: float
    campaigns: dict[str, Role] = Field(description="Your role by name of the campaign.")
