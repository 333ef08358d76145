"""The contract of storage as tests, and a store in memory that passes them.

Whoever writes a ``LogStore`` lets pytest run them on it::

    class TestMine(LogStoreContract):
        def store(self):
            return MyStore("somewhere")
"""

from __future__ import annotations

import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engram.campaign.model import StaleError
from engram.campaign.store import CampaignRow, LogReader, LogStore, LogWriter, Record, Result, gone
from engram.errors import ConflictError, EngramError

WAIT = 60.0
"""Seconds after which a thread of a test is given up."""


def line(seq: int, key: str, detail: str | None = None) -> Record:
    """A line with whatever a store might be tempted to change."""
    text = '{"a":"\\u00e9 %s \'\\"","b":[1.5,null,1e-300]}'
    return Record(seq, "note", 5.25 + seq / 3, "ann\u00e9", key, text, f"{seq:064x}", detail)


@contextmanager
def refused(kind: type[EngramError]) -> Iterator[None]:
    """The block has to raise this kind of error."""
    try:
        yield
    except kind:
        return
    raise AssertionError(f"nothing was refused; {kind.__name__} was expected")


class LogStoreContract(ABC):
    """What every ``LogStore`` promises, as tests; ``store`` is all a subclass has to say."""

    @abstractmethod
    def store(self) -> LogStore:
        """A handle on the store under test: all handles of one test see the same logs."""

    def _begun(self) -> tuple[LogStore, CampaignRow]:
        store, uid = self.store(), uuid.uuid4().hex
        return store, store.create(f"contract {uid}", uid, line(1, "first"))

    def test_lines_come_back_as_they_were_given(self) -> None:
        store, row = self._begun()
        two, three = line(2, "k2", '[{"x":1.5}]'), line(3, "k3")

        def both(log: LogWriter) -> None:
            log.append(two)
            log.append(three)

        store.write(row, both)
        bare = [line(1, "first"), line(2, "k2"), three]
        other = self.store()
        assert other.read(row, lambda log: log.records()) == bare
        assert other.read(row, lambda log: log.records(2)) == bare[1:]
        assert other.read(row, lambda log: log.records(2, 1)) == bare[1:2]
        assert other.read(row, lambda log: log.records(4)) == []
        assert other.read(row, lambda log: log.last()) == three
        assert other.read(row, lambda log: log.by_key("k2")) == bare[1]
        assert other.read(row, lambda log: log.by_key("k9")) is None
        assert other.read(row, lambda log: log.detail(2)) == two.detail
        assert other.read(row, lambda log: log.detail(3)) is None

    def test_campaigns_are_found_by_name(self) -> None:
        store, row = self._begun()
        _, later = self._begun()
        assert self.store().campaign(row.name) == row
        assert store.campaign(row.name + "x") is None
        listed = self.store().campaigns()
        assert listed.index(row) < listed.index(later)
        assert row.created == line(1, "first").at
        with refused(ConflictError):
            store.create(row.name, uuid.uuid4().hex, line(1, "first"))
        assert store.campaign(row.name) == row

    def test_logs_do_not_mix(self) -> None:
        store, one = self._begun()
        _, two = self._begun()
        store.write(one, lambda log: log.append(line(2, "k")))
        assert store.read(two, lambda log: log.last()) == line(1, "first")
        assert store.read(two, lambda log: log.by_key("k")) is None

    def test_a_block_that_fails_leaves_nothing(self) -> None:
        store, row = self._begun()

        def work(log: LogWriter) -> None:
            log.append(line(2, "k2"))
            assert log.by_key("k2") == log.last() == line(2, "k2")
            raise ConflictError("changed my mind")

        with refused(ConflictError):
            store.write(row, work)
        assert len(self.store().read(row, lambda log: log.records())) == 1
        store.write(row, lambda log: log.append(line(2, "k2")))

    def test_keys_and_numbers_occur_once(self) -> None:
        store, row = self._begun()
        for wrong in (line(2, "first"), line(1, "other")):
            with refused(ConflictError):
                store.write(row, lambda log, wrong=wrong: log.append(wrong))  # type: ignore[misc]
        assert store.read(row, lambda log: log.records()) == [line(1, "first")]

    def test_a_campaign_is_its_uid(self) -> None:
        store, row = self._begun()
        other = CampaignRow(row.id, uuid.uuid4().hex, row.name, row.created)
        with refused(StaleError):
            store.read(other, lambda log: log.records())
        with refused(StaleError):
            store.write(other, lambda log: log.append(line(2, "k2")))
        assert len(store.read(row, lambda log: log.records())) == 1

    def test_readers_do_not_wait_for_a_writer(self) -> None:
        store, row = self._begun()
        inside, done = threading.Event(), threading.Event()

        def slow(log: LogWriter) -> None:
            log.append(line(2, "k2"))
            inside.set()
            assert done.wait(WAIT)

        thread = threading.Thread(target=store.write, args=(row, slow))
        thread.start()
        try:
            assert inside.wait(WAIT)
            seen = self.store().read(row, lambda log: log.records())
        finally:
            done.set()
            thread.join()
        assert len(seen) == 1, "an unfinished block was seen"
        assert len(self.store().read(row, lambda log: log.records())) == 2

    def test_writers_wait_for_each_other(self) -> None:
        store, row = self._begun()

        def add(number: int) -> None:
            def work(log: LogWriter) -> None:
                last = log.last()
                assert last is not None
                log.append(line(last.seq + 1, f"k{number}"))

            self.store().write(row, work)

        threads = [threading.Thread(target=add, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        records = store.read(row, lambda log: log.records())
        assert [record.seq for record in records] == list(range(1, 8))

    def test_time_goes_on(self) -> None:
        store, row = self._begun()
        before = store.time()
        inside = store.write(row, lambda log: log.time())
        assert before <= inside <= store.time()

    def test_what_is_shown_of_it_is_text(self) -> None:
        assert self.store().place
        folder = self.store().artifact_folder()
        assert folder is None or isinstance(folder, Path)


class MemoryStore:
    """Logs in memory, for tests and trials: they end with the process."""

    place = "memory"

    def __init__(self) -> None:
        self._rows: dict[str, CampaignRow] = {}
        self._logs: dict[int, list[Record]] = {}
        self._lock = threading.RLock()

    def artifact_folder(self) -> None:
        """Nothing is cached."""

    def time(self) -> float:
        return time.time()

    def campaigns(self) -> list[CampaignRow]:
        return list(self._rows.values())

    def campaign(self, name: str) -> CampaignRow | None:
        return self._rows.get(name)

    def create(self, name: str, uid: str, first: Record) -> CampaignRow:
        with self._lock:
            if name in self._rows:
                raise ConflictError(
                    f"a campaign named {name!r} exists already; choose another name"
                )
            row = CampaignRow(len(self._rows) + 1, uid, name, first.at)
            self._rows[name], self._logs[row.id] = row, [first]
            return row

    def read(self, row: CampaignRow, work: Callable[[LogReader], Result]) -> Result:
        return work(self._log(row))

    def write(self, row: CampaignRow, work: Callable[[LogWriter], Result]) -> Result:
        with self._lock:
            log = self._log(row)
            result = work(log)
            self._logs[row.id] = log.lines
            return result

    def _log(self, row: CampaignRow) -> MemoryLog:
        held = self._rows.get(row.name)
        if held is None or held.uid != row.uid:
            raise StaleError(gone(row))
        return MemoryLog(list(self._logs[row.id]))


class MemoryLog:
    """A copy of one log, which replaces it when a block of a writer ends well."""

    def __init__(self, lines: list[Record]) -> None:
        self.lines = lines

    def time(self) -> float:
        return time.time()

    def records(self, first: int = 1, limit: int | None = None) -> list[Record]:
        found = [_bare(record) for record in self.lines if record.seq >= first]
        return found[:limit]

    def last(self) -> Record | None:
        return _bare(self.lines[-1])

    def by_key(self, key: str) -> Record | None:
        return next((_bare(record) for record in self.lines if record.key == key), None)

    def detail(self, seq: int) -> str | None:
        return next((record.detail for record in self.lines if record.seq == seq), None)

    def append(self, record: Record) -> None:
        if any(record.seq == other.seq or record.key == other.key for other in self.lines):
            raise ConflictError(f"line {record.seq} or key {record.key!r} is there already")
        self.lines.append(record)


def _bare(record: Record) -> Record:
    return record._replace(detail=None)
