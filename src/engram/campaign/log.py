"""A campaign's log in memory, and the one way to append to it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from engram.campaign.answers import Receipt
from engram.campaign.artifacts import campaign_folder
from engram.campaign.events import Body, Event
from engram.campaign.keeper import PolicyKeeper
from engram.campaign.model import ChangedError, StaleError, check_text
from engram.campaign.snapshot import Snapshots
from engram.campaign.state import State
from engram.campaign.storage import Storage, Writer
from engram.campaign.store import CampaignRow
from engram.errors import ConflictError, InputError
from engram.grid import Grid
from engram.policies.base import Policy


@dataclass(frozen=True)
class Entry:
    """What a request wants to append."""

    body: Body
    detail: Any = None


class CampaignLog:
    """What a campaign's events put in force, and the policy that follows from it.

    Opening takes a snapshot where there is one and folds the events behind it. ``note`` is what
    the last request had to say besides its answer, such as a clock that seems wrong.
    """

    def __init__(
        self,
        storage: Storage,
        row: CampaignRow,
        *,
        clock: Callable[[], float] | None = None,
        artifacts: bool = True,
    ) -> None:
        self.storage, self.row, self._clock = storage, row, clock
        self.note = ""
        self._via, self._expected = "", ""
        root = storage.artifact_folder()
        self.folder = campaign_folder(root, row.uid) if artifacts and root else None
        self.keeper = PolicyKeeper(self.folder)
        self._snapshots = None if self.folder is None else Snapshots(self.folder, row.uid)
        self.state = self._opened()
        self._keep()

    def _opened(self) -> State:
        for state in self._snapshots.states(self._created) if self._snapshots else ():
            try:
                state.apply(self.storage.events(self.row, state.seq, state.hash))
                return state
            except StaleError:  # a snapshot of another history: the log decides
                continue
        return State.replay(self.storage.events(self.row))

    def _created(self) -> Event | None:
        return self.storage.event(self.row, 1)

    def _keep(self) -> None:
        if self._snapshots is not None:
            self._snapshots.keep(self.state)

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def grid(self) -> Grid:
        return self.state.grid

    @property
    def events(self) -> list[Event]:
        """The log up to what is in force here, read anew."""
        return self.storage.events(self.row)[: self.state.seq]

    def refresh(self) -> State:
        """Read what others have appended; returns what is in force."""
        self.state.apply(self.storage.events(self.row, self.state.seq, self.state.hash))
        self._keep()
        return self.state

    def now(self) -> float:
        """The time of the campaign: see ``timeline``."""
        clock = self._clock or self.storage.time
        return self.state.time.believed(clock())[0]

    def policy(self) -> Policy:
        """The policy after every measurement in force."""
        return self.keeper.policy(self.state)

    # -- the way into the log ------------------------------------------------------------

    @contextmanager
    def requested(self, *, via: str = "", head: str = "") -> Iterator[None]:
        """For the requests in the block: who sent them, and what the log has to end with.

        via  : recorded beside the name a request is made under, where that is another's
        head : hash of the last event; where the log has gone on since, a request is refused
        """
        check_text(via, "via")
        self._via, self._expected = via, head
        try:
            yield
        finally:
            self._via, self._expected = "", ""

    def _request(
        self,
        kind: str,
        by: str,
        key: str | None,
        request: dict[str, Any],
        prepare: Callable[[State, float], Entry],
    ) -> Receipt:
        done = self._commit(kind, by, request_key(key)[0], request, prepare)
        assert done is not None
        event, repeated = done
        cells = [list(cell) for cell in event.body.places]
        return Receipt(event.seq, kind, event.at, cells, repeated, self.note)

    def _commit(
        self,
        kind: str,
        who: str,
        key: str,
        request: dict[str, Any],
        prepare: Callable[[State, float], Entry | None],
    ) -> tuple[Event, bool] | None:
        """Append one event as the only writer; None when ``prepare`` gives up.

        May run more than once when the connection is lost: the key finds an event that was
        written although its acknowledgement got lost.
        """

        check_text(who, "by")
        check_text(request.get("reason", ""), "reason")

        def work(writer: Writer) -> tuple[Event, bool] | None:
            self.state.apply(writer.events(self.state.seq, self.state.hash))
            known = writer.find(key)
            if known is not None:
                _check_same(known, kind, who, request)
                return known, True
            if self._expected not in ("", self.state.hash):
                raise ChangedError(
                    f"the log has gone on to event {self.state.seq} since this was prepared; look "
                    "at what is new, and send it again"
                )
            at, self.note = self.state.time.believed((self._clock or writer.time)())
            entry = prepare(self.state, at)
            if entry is None:
                return None
            body = entry.body
            if self._via not in ("", who):
                body = replace(body, more={**body.more, "via": self._via})
            event = Event.saying(self.state.seq + 1, at, who, key, body)
            return writer.append(event, self.state.hash, entry.detail), False

        self.note = ""
        done = self.storage.write(self.row, work)
        if done is not None and done[0].seq == self.state.seq + 1:
            self.state.apply([done[0]])
        self._keep()
        return done


def _check_same(known: Event, kind: str, who: str, request: dict[str, Any]) -> None:
    """Refuse a key that stands for something else; cells are handed to who asked for them."""
    same = known.kind == kind and all(known.payload.get(k) == v for k, v in request.items())
    if same and (kind != "ask" or known.who == who):
        return
    by = f" by {known.who!r}" if known.who else ""
    raise ConflictError(
        f"key {known.key!r} was used for another request (event {known.seq}, {known.kind}{by}); "
        "use a new key"
    )


def request_key(given: str | None) -> tuple[str, bool]:
    """The key of a request, and whether the caller chose it."""
    if given is None:
        return uuid.uuid4().hex, False
    if not 0 < len(check_text(given, "key")) <= 200:
        raise InputError(f"key of {len(given)} characters: give 1 to 200")
    return given, True
