"""Creating and opening campaigns."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engram._version import __version__
from engram.campaign.campaign import Campaign
from engram.campaign.events import Create, Event
from engram.campaign.fits import check_fits
from engram.campaign.keeper import PolicyKeeper
from engram.campaign.model import RULES, Spec, check_bounds, check_text
from engram.campaign.state import State
from engram.campaign.storage import Storage
from engram.campaign.store import LogStore
from engram.detection import Detection
from engram.errors import InputError, shown
from engram.grid import Grid
from engram.policies.spec import PolicyChoice

DEFAULT_POLICY = "em-ptdm"
"""The policy of campaigns that name none."""


def create_campaign(
    name: str,
    grid: Grid,
    budget: float,
    *,
    db: str | LogStore | None = None,
    policy: str | None = None,
    prior: str | None = None,
    by: str = "",
    clock: Callable[[], float] | None = None,
    **terms: Any,
) -> Campaign:
    """Create a campaign; ``terms`` are further fields of ``Spec`` (seed, lease, crews, ...).

    ``policy`` may carry options, as in ``em-ptdm[h=off,a=5]``.
    """
    check_text(by, "by")
    if not check_text(name, "name").strip() or len(name) > 200 or not name.isprintable():
        raise InputError(f"campaign name {shown(name)}: give 1 to 200 printable characters")
    spec = _checked_spec(grid, budget, policy or DEFAULT_POLICY, prior, terms)
    event = Event.saying(1, 0.0, by, uuid.uuid4().hex, Create(spec))
    state = State(event)
    check_fits(spec, state.policy_budget())
    PolicyKeeper().fresh(state)
    storage = Storage(db, create=True)
    event = replace(event, at=(clock or storage.time)())
    return Campaign(storage, storage.create_campaign(name, event), clock=clock)


def open_campaign(
    name: str, *, db: str | LogStore | None = None, clock: Callable[[], float] | None = None
) -> Campaign:
    """An existing campaign."""
    storage = Storage(db)
    return Campaign(storage, storage.campaign(name), clock=clock)


def _checked_spec(
    grid: Grid, budget: float, policy: str, prior: str | None, terms: dict[str, Any]
) -> Spec:
    preset, given = terms.pop("preset", "default"), terms.pop("options", {})
    choice = PolicyChoice.parse(policy, preset=preset, prior=prior or "")
    prior, options = choice.prior or None, dict(choice.options)
    for name in sorted(given.keys() & options.keys()):
        raise InputError(f"policy {policy!r}: option {name!r} is given twice")
    if {"detection", "false_alarm"} & options.keys():
        raise InputError(
            f"policy {policy!r}: what visits of a campaign may miss is said when it is created "
            "(--detection, --false-alarm); leave it out of the policy's options"
        )
    seen = (terms.pop(word, None) for word in ("detection", "false_alarm"))
    terms["detection"] = Detection.read(*seen)
    if "layers" in options:
        raise InputError(
            f"policy {policy!r}: a campaign's layers are those it is created with; leave the "
            "option layers out"
        )
    terms |= {"preset": choice.preset, "options": {**given, **options}}
    memory: dict[str, Any] = {}
    if prior is not None or choice.needs_memory:
        from engram.memory.library import candidates, default_memory, fingerprint, memory_path

        prior = prior or default_memory(grid.rows, grid.cols)
        names = candidates(prior)
        known = [n if memory_path(n).stem == n else str(memory_path(n).resolve()) for n in names]
        whole = terms.get("rules", RULES) >= 6
        memory = {"prior": "+".join(known), "prior_sha256": fingerprint(prior, symmetric=whole)}
    terms.setdefault("rules", RULES)
    spec = Spec(grid, budget, choice.name, version=__version__, **memory, **terms)
    check_bounds(spec)
    return spec
