"""Who may do what: four roles, each of which may do all that those before it may."""

from __future__ import annotations

from typing import Literal, get_args

Role = Literal["viewer", "crew", "planner", "owner"]
"""viewer: look; crew: ask and tell for itself; planner: for everybody, and correct, close,
extend; owner: say who may do what."""

ROLES: tuple[Role, ...] = get_args(Role)

EVERYWHERE = "*"
"""In place of a campaign: a role in all of them, and for owners, of the server."""


def at_least(have: Role | None, wanted: Role) -> bool:
    """Whether a role (None: no part in it) includes another."""
    return have is not None and ROLES.index(have) >= ROLES.index(wanted)


def highest(*roles: Role | None) -> Role | None:
    """The one of these that includes the others."""
    return max((r for r in roles if r is not None), key=ROLES.index, default=None)
