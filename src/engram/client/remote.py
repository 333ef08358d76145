"""A campaign of a server, with the methods of ``engram.campaign.Campaign``."""

from __future__ import annotations

import http.client
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from engram.errors import InputError, UnavailableError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from engram.client.connection import Client

Cell = tuple[int, int]


@dataclass(frozen=True)
class Query:
    """A cell that was handed out."""

    query: int
    cell: Cell
    by: str
    at: float
    until: float | None
    terms: dict[str, float]
    state: str = "asked"


@dataclass(frozen=True)
class Suggestion:
    """A cell that would be handed out."""

    cell: Cell
    rank: int
    terms: dict[str, float]


@dataclass(frozen=True)
class Receipt:
    """The acknowledgement of a request; ``facts`` is all the server said."""

    seq: int
    kind: str
    at: float
    cells: list[list[int]]
    repeated: bool
    note: str
    head: str
    facts: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Receipt:
        names = [name for name in cls.__dataclass_fields__ if name != "facts"]
        return cls(**{name: facts[name] for name in names}, facts=facts)


def as_json(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Terms as JSON takes them; what is None is left out."""
    return {name: _listed(value) for name, value in terms.items() if value is not None}


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _listed(one) for name, one in value.items()}
    return [_listed(one) for one in value] if isinstance(value, list | tuple) else value


class RemoteCampaign:
    """A campaign of a server; its methods are those of ``engram.campaign.Campaign``."""

    def __init__(self, client: Client, name: str, uid: str) -> None:
        self.client, self.name, self.uid = client, name, uid
        self.note = ""

    def _path(self, what: str, **query: Any) -> str:
        given = {name: value for name, value in query.items() if value is not None}
        behind = f"?{urlencode(given)}" if given else ""
        return f"/campaigns/{self.uid}{what}{behind}"

    def _post(self, what: str, head: str | None = None, **body: Any) -> Any:
        condition = {} if head is None else {"If-Match": f'"{head}"'}
        return self.client.json("POST", self._path(f"/{what}"), as_json(body), condition)

    def _write(self, what: str, key: str | None, **body: Any) -> Receipt:
        return Receipt.of(self._post(what, key=key or uuid.uuid4().hex, **body))

    # -- asking and telling --------------------------------------------------------------

    def ask(
        self,
        n: int = 1,
        *,
        by: str | None = None,
        lease: float | None = None,
        rank: str | None = None,
        start: Cell | None = None,
        outing: Mapping[str, Any] | None = None,
        key: str | None = None,
        head: str | None = None,
    ) -> list[Query]:
        """Hand out n different cells and reserve their budget.

        outing : crews that go on tours: crews, start (latitude, longitude), hours; see ``tours``
        """
        terms = {"n": n, "by": by, "lease": lease, "rank": rank, "start": start, "outing": outing}
        said = self._post("ask", head, **terms, key=key or uuid.uuid4().hex)
        self.note = said["note"]
        names = ("query", "by", "at", "until", "terms", "state")
        return [
            Query(cell=(q["cell"][0], q["cell"][1]), **{name: q[name] for name in names})
            for q in said["queries"]
        ]

    def peek(
        self,
        n: int = 10,
        *,
        by: str | None = None,
        rank: str | None = None,
        start: Cell | None = None,
    ) -> list[Suggestion]:
        """The cells that would be handed out; nothing is reserved."""
        place = None if start is None else f"{start[0]},{start[1]}"
        path = self._path("/peek", n=n, by=by or None, rank=rank, start=place)
        found = []
        for pick in self.client.json("GET", path)["suggestions"]:
            terms = dict(pick["terms"])
            rank_of = int(terms.pop("rank"))
            found.append(Suggestion((pick["cell"][0], pick["cell"][1]), rank_of, terms))
        return found

    def tell(
        self,
        cell: Cell,
        outcome: float,
        value: Sequence[float] | None = None,
        *,
        noise: float = 0.0,
        detection: float | None = None,
        false_alarm: float | None = None,
        note: str = "",
        photo: str | None = None,
        by: str | None = None,
        key: str | None = None,
        head: str | None = None,
    ) -> Receipt:
        """Record one measurement; ``value`` is its content, per channel or channel and pixel.

        detection, false_alarm : how far this visit can be trusted (default: the campaign's)
        """
        values = None if value is None else [float(v) for v in value]
        facts = {"outcome": outcome, "value": values, "noise": noise, "note": note, "photo": photo}
        facts |= {"detection": detection, "false_alarm": false_alarm}
        return self._write("tell", key, cell=list(cell), **facts, by=by, head=head)

    def tell_many(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        by: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Record several measurements (cell, outcome, value, noise, detection, note, ...), all or
        none."""
        return self._write("tell-many", key, items=[as_json(item) for item in items], by=by)

    def tell_file(
        self, path: Path, *, by: str | None = None, key: str | None = None, **terms: Any
    ) -> Receipt:
        """Record the measurements of a file, all of them or none.

        terms : crs, combine, fix; detection, false_alarm and half_life (seconds) of old visits
        """
        fields = {"by": by, "key": key or uuid.uuid4().hex, **terms}
        body, kind = _form(path, {n: v for n, v in fields.items() if v not in (None, "")})
        raw = self.client.raw("POST", self._path("/tell-file"), body, {"Content-Type": kind})
        return Receipt.of(json.loads(raw))

    def add_photo(self, path: Path) -> str:
        """Send a photo; its name is given to ``tell``."""
        body, kind = _form(path, {})
        raw = self.client.raw("POST", self._path("/photos"), body, {"Content-Type": kind})
        return str(json.loads(raw)["photo"])

    # -- everything else that is written -------------------------------------------------

    def fail(
        self,
        *,
        query: int | None = None,
        cell: Cell | None = None,
        retry: float | None = 86400.0,
        reason: str = "",
        by: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """A cell could not be measured: try again after ``retry`` seconds, or never (None)."""
        body: dict[str, Any] = {"query": query, "cell": cell, "reason": reason, "by": by}
        full = {**as_json(body), "retry": retry, "key": key or uuid.uuid4().hex}
        return Receipt.of(self.client.json("POST", self._path("/fail"), full))

    def correct(
        self,
        cell: Cell,
        *,
        outcome: float | None = None,
        value: Sequence[float] | None = None,
        noise: float | None = None,
        reason: str = "",
        by: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Replace values of a measurement; the old ones stay in the log."""
        values = None if value is None else [float(v) for v in value]
        facts = {"outcome": outcome, "value": values, "noise": noise, "reason": reason}
        return self._write("correct", key, cell=list(cell), **facts, by=by)

    def retract(
        self, cell: Cell, *, reason: str = "", by: str | None = None, key: str | None = None
    ) -> Receipt:
        """Withdraw a measurement; it stays in the log."""
        return self._write("retract", key, cell=list(cell), reason=reason, by=by)

    def close(
        self,
        cells: Iterable[Cell],
        *,
        reason: str = "",
        by: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Nobody may measure these cells from now on."""
        return self._write("close", key, cells=[list(c) for c in cells], reason=reason, by=by)

    def open(
        self,
        cells: Iterable[Cell],
        *,
        reason: str = "",
        by: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """These cells may be measured (again)."""
        return self._write("open", key, cells=[list(c) for c in cells], reason=reason, by=by)

    def extend(self, amount: float, *, by: str | None = None, key: str | None = None) -> Receipt:
        """Add to the budget."""
        return self._write("extend", key, amount=amount, by=by)

    # -- looking -------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """What the campaign was created with, and what you may do in it."""
        found: dict[str, Any] = self.client.json("GET", self._path(""))
        return found

    def cells(self, at: int | None = None) -> dict[str, Any]:
        """What is in force, or was after event ``at``."""
        found: dict[str, Any] = self.client.json("GET", self._path("/cells", at=at))
        return found

    def status(self, *, level: float = 0.8, ahead: int = 10) -> dict[str, Any]:
        """Counts, what is left, whether the prior helps, and whether to stop."""
        path = self._path("/status", level=level, next=ahead)
        found: dict[str, Any] = self.client.json("GET", path)
        return found

    def explain(self, query: int) -> dict[str, Any]:
        """Why a query's cell was suggested, as it was kept then."""
        found: dict[str, Any] = self.client.json("GET", self._path(f"/queries/{query}"))
        return found

    def picture(self, query: int) -> bytes:
        """The maps around a suggested cell as PNG."""
        return self.client.raw("GET", self._path(f"/queries/{query}/picture.png"))

    def tours(self) -> list[dict[str, Any]]:
        """Tours of crews with a cell that is still out."""
        found: list[dict[str, Any]] = self.client.json("GET", self._path("/tours"))["tours"]
        return found

    def history(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """Every event of the log behind a number."""
        while True:
            page = self.client.json("GET", self._path("/history", after=after, limit=1000))
            yield from page["events"]
            if not page["more"]:
                return
            after = page["events"][-1]["seq"]

    def verify(self) -> dict[str, Any]:
        """Replay the whole log."""
        found: dict[str, Any] = self.client.json("POST", self._path("/verify"))
        return found

    def export(self, form: str) -> bytes:
        """The log (``json``), the measurements (``csv``, ``npz``), or a file for maps."""
        return self.client.raw("GET", self._path(f"/export.{quote(form)}"))

    def beliefs(
        self, at: int | None = None, layers: Sequence[str] = ()
    ) -> dict[str, NDArray[np.float64]]:
        """Maps (rows, cols) of what is believed, or was after event ``at``."""
        import numpy as np

        path = self._path("/beliefs", at=at, layers=",".join(layers) or None)
        said = self.client.json("GET", path)
        return {name: np.array(table, np.float64) for name, table in said["layers"].items()}

    def events(self, after: int | None = None) -> Iterator[dict[str, Any]]:
        """What happens, as it happens; when the server goes away, from there on when it is back.

        after : number of the last event that is known; None for what is new from now on
        """
        place, away = after, 0.0
        while True:
            try:
                headers = {} if place is None else {"Last-Event-ID": str(place)}
                with self.client.stream(self._path("/events"), headers) as answer:
                    for kind, number, data in _messages(answer):
                        away = 0.0
                        if kind == "reset" or (kind == "hello" and place is None):
                            place = int(data["seq"])
                        if kind == "log":
                            place = number
                            yield data
            except (OSError, http.client.HTTPException, UnavailableError) as error:
                away = away or time.monotonic()
                if time.monotonic() - away > self.client.patience:
                    raise UnavailableError(f"server {self.client.url}: it is away") from error
            time.sleep(0.2)


def _messages(answer: http.client.HTTPResponse) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """(kind, number, data) of server-sent events until the stream ends."""
    kind, number, text = "", 0, ""
    for raw in answer:
        name, _, value = raw.decode().rstrip("\r\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "id":
            number = int(value)
        elif name == "data":
            text = value
        elif not name and text:
            yield kind, number, json.loads(text)
            kind, text = "", ""


def _form(path: Path, fields: Mapping[str, Any]) -> tuple[bytes, str]:
    """A file and fields as a form, and its type."""
    mark = uuid.uuid4().hex
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    parts = [
        f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    name = quote(path.name)
    head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = b"".join([*parts, head.encode(), data, f"\r\n--{mark}--\r\n".encode()])
    return body, f"multipart/form-data; boundary={mark}"
