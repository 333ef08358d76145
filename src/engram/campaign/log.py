"""A campaign's log in memory, and the one way to append to it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from engram.campaign.artifacts import Artifacts
from engram.campaign.checks import check_text
from engram.campaign.engine import Engine
from engram.campaign.model import Event
from engram.campaign.state import State
from engram.campaign.storage import CampaignRow, Storage, Writer
from engram.errors import InputError
from engram.grid import Grid
from engram.policies.base import Policy


@dataclass(frozen=True)
class Receipt:
    """The acknowledgement of a request. ``repeated``: its key was known, nothing was added."""

    seq: int
    kind: str
    at: float
    cells: list[list[int]]
    repeated: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Entry:
    """What a request wants to append."""

    payload: dict[str, Any]
    detail: Any = None


class CampaignLog:
    """Events, what they put in force, and the policy that follows from it."""

    def __init__(
        self,
        storage: Storage,
        row: CampaignRow,
        *,
        clock: Callable[[], float] = time.time,
        artifacts: bool = True,
    ) -> None:
        self.storage, self.row, self._clock = storage, row, clock
        folder = storage.artifact_folder() / row.uid
        self.engine = Engine(Artifacts(folder) if artifacts else None)
        self.events: list[Event] = storage.events(row.id)
        self.state = State.replay(self.events)
        self._keys = {event.key: event for event in self.events}

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def grid(self) -> Grid:
        return self.state.grid

    def refresh(self) -> State:
        """Read what others have appended; returns what is in force."""
        self._take(self.storage.events(self.row.id, self.state.seq))
        return self.state

    def now(self) -> float:
        """The time, never before the last event."""
        return max(self._clock(), self.state.at)

    def policy(self) -> Policy:
        """The policy after every measurement in force."""
        return self.engine.policy(self.state)

    def _take(self, events: Sequence[Event]) -> None:
        self.state.apply(events)
        self.events.extend(events)
        self._keys.update((event.key, event) for event in events)

    # -- the way into the log ------------------------------------------------------------

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
        payload = event.payload
        cells = payload.get("cells") or [i["cell"] for i in payload.get("items", ())]
        if "cell" in payload:
            cells = [payload["cell"]]
        return Receipt(event.seq, kind, event.at, cells, repeated)

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
            self._take(writer.events(self.state.seq))
            known = self._keys.get(key)
            if known is not None:
                if known.kind != kind or any(known.payload.get(k) != v for k, v in request.items()):
                    raise InputError(
                        f"key {key!r} was used for another request (event {known.seq}, "
                        f"{known.kind}); use a new key"
                    )
                return known, True
            at = self.now()
            entry = prepare(self.state, at)
            if entry is None:
                return None
            event = Event(self.state.seq + 1, kind, at, who, key, entry.payload)
            return writer.append(event, self.state.hash, entry.detail), False

        done = self.storage.write(self.row.id, work)
        if done is not None and done[0].seq == self.state.seq + 1:
            self._take([done[0]])
        return done


def request_key(given: str | None) -> tuple[str, bool]:
    """The key of a request, and whether the caller chose it."""
    if given is None:
        return uuid.uuid4().hex, False
    if not 0 < len(check_text(given, "key")) <= 200:
        raise InputError(f"key of {len(given)} characters: give 1 to 200")
    return given, True
