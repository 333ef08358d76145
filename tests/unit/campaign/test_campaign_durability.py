"""Stale handles, wrong clocks, damaged logs, snapshots, and requests that cannot be met."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from engram.campaign import (
    Campaign,
    StaleError,
    Storage,
    StorageError,
    create_campaign,
    open_campaign,
    status,
    verify,
)
from engram.campaign import snapshot as snapshots
from engram.campaign.status import overview
from engram.campaign.timeline import BOUND, DAY
from engram.errors import EngramError, InputError
from engram.grid import Grid

YEAR = 366 * DAY


def _facts(campaign):
    """Everything a state says, for comparison."""
    state = campaign.state
    return {
        "measured": [
            (i, m.seq, m.who, m.at, m.query, m.observation.cell, m.observation.outcome,
             m.observation.noise, m.observation.content.tolist())
            for i, m in state.measurements.items()
        ],
        "queries": [(q.to_dict(state.at), q.lease) for q in state.queries.values()],
        "out": [q.query for q in state.out(state.at)],
        "by_cell": [[q.query for q in state.queries_of(c)] for c in map(state.grid.at, range(64))],
        "closed": (state.closed, state.base_closed.tolist(), state.grid.closed.tolist()),
        "rest": (state.waiting, state.budget, state.seq, state.hash, state.at, state.stirred,
                 state.last_query, state.time.leaps),
    }  # fmt: skip


# -- a database that was put back or replaced ---------------------------------------------


def test_a_handle_that_knows_more_than_the_database_is_refused(create, reopen, db, tmp_path):
    campaign = create()
    for i in range(3):
        campaign.tell((0, i), 1.0)
    shutil.copy(db, tmp_path / "copy.db")
    for i in range(3):
        campaign.tell((1, i), 1.0)
    shutil.copy(tmp_path / "copy.db", db)
    with pytest.raises(StaleError, match=r"read up to event 7, .* ends at event 4.*put back"):
        campaign.tell((2, 0), 1.0)
    with pytest.raises(StaleError, match="ends at event 4"):
        campaign.refresh()
    again = reopen()
    assert [o.cell for o in again.state.observations] == [(0, 0), (0, 1), (0, 2)]
    assert again.tell((2, 0), 1.0).seq == 5
    assert verify(again).ok


def test_a_log_that_went_on_after_it_was_put_back(create, reopen, db, tmp_path):
    campaign = create()
    shutil.copy(db, tmp_path / "copy.db")
    campaign.tell((1, 0), 1.0)
    shutil.copy(tmp_path / "copy.db", db)
    other = reopen()
    other.tell((5, 5), 0.0)
    other.tell((5, 6), 0.0)
    with pytest.raises(StaleError, match="event 2 in the database is not the one"):
        campaign.tell((2, 0), 1.0)
    assert verify(reopen()).ok


def test_a_replaced_database_gets_nothing(create, reopen, db, tmp_path, clock):
    campaign = create("ours")
    other = str(tmp_path / "other.db")
    create_campaign("theirs", Grid(8, 8), 20, db=other, policy="random", clock=clock)
    shutil.copy(other, db)
    for request in (lambda: campaign.tell((0, 0), 1.0), lambda: campaign.ask(1), campaign.refresh):
        with pytest.raises(StaleError, match="'ours' is not in this database any more"):
            request()
    assert reopen("theirs").state.seq == 1


# -- time -----------------------------------------------------------------------------------


def test_one_wrong_clock_does_not_stop_time(create, clock):
    """Seventy years ahead for one request: leases end and waits return as before."""
    campaign = create(grid=Grid(2, 2), budget=4, lease=100.0)
    early = campaign.ask(1)[0]
    failed = campaign.ask(1)[0]
    campaign.fail(query=failed.query, retry=50)
    now = clock.now
    clock.now = now + 70 * YEAR
    receipt = campaign.tell(early.cell, 1.0)
    assert receipt.at == now + BOUND
    assert "check the clock" in receipt.note
    wrong = campaign.ask(1)[0]
    clock.now = now + 60
    assert campaign.now() == now + 60
    assert failed.cell in [p.cell for p in campaign.peek(2)]
    assert campaign.state.queries[wrong.query].state_at(campaign.now()) == "asked"
    receipt = campaign.fail(cell=wrong.cell, retry=10)
    assert receipt.at == now + 60
    assert "a clock was wrong" in receipt.note
    clock.sleep(10)
    assert len(campaign.peek(3)) == 3
    assert verify(campaign).ok


def test_leases_of_a_wrong_clock_end(create, clock):
    campaign = create(grid=Grid(1, 2), budget=2, lease=100.0)
    now = clock.now
    clock.now = now + 3 * YEAR
    campaign.ask(2)
    clock.now = now + 50
    with pytest.raises(InputError, match="2 out"):
        campaign.ask(1)
    clock.now = now + 100
    assert len(campaign.ask(2)) == 2
    clock.sleep(99)
    with pytest.raises(InputError):
        campaign.ask(1)
    clock.sleep(1)
    assert len(campaign.ask(1)) == 1
    assert verify(campaign).ok


def test_clocks_wrong_by_different_years(create, clock):
    """Going back a part of a leap leaves the rest of it a leap."""
    campaign = create(lease=100.0)
    now = clock.now
    for years in (40, 3, 5, 1):
        clock.now = now + years * YEAR
        campaign.ask(1)
    clock.now = now + 200
    assert campaign.now() == now + 200
    assert len(campaign.peek(20)) == 20
    assert verify(campaign).ok


def test_a_clock_behind_the_log_is_passed_over(create, clock):
    """A dead clock (1970) gives no cell away that is out."""
    campaign = create(grid=Grid(1, 2), budget=2, lease=100.0)
    campaign.ask(1)
    clock.now, before = 0.0, clock.now
    assert campaign.now() == before
    assert campaign.ask(1)[0].at == before
    with pytest.raises(InputError):
        campaign.ask(1)


def test_a_long_pause_is_no_fault(create, clock):
    campaign = create(lease=100.0)
    campaign.ask(1)
    clock.sleep(2 * YEAR)
    receipt = campaign.tell((0, 0), 1.0)
    assert (receipt.at, receipt.note) == (clock.now, "")
    query = campaign.ask(1)[0]
    clock.sleep(99)
    assert query.state_at(campaign.now()) == "asked"
    clock.sleep(1)
    assert query.state_at(campaign.now()) == "expired"


# -- keys, files, access ----------------------------------------------------------------------


def test_a_key_hands_cells_to_who_asked_for_them(create):
    campaign = create(lease=50.0)
    campaign.ask(1, by="north", key="k")
    for other in ({"by": "south"}, {"by": "north", "lease": 60.0}, {}):
        with pytest.raises(InputError, match=r"another request \(event 2, ask by 'north'\)"):
            campaign.ask(1, key="k", **other)
    assert [q.query for q in campaign.ask(1, by="north", key="k")] == [1]
    assert [q.query for q in campaign.ask(1, by="north", lease=50.0, key="k")] == [1]


@pytest.mark.parametrize("uid", ["../../elsewhere", "/tmp/elsewhere-{}", "."])
def test_a_crafted_uid_reaches_no_other_folder(create, reopen, db, tmp_path, uid):
    create().tell((0, 0), 1.0)
    uid = uid.format(tmp_path.name)
    target = (tmp_path / "campaigns.artifacts" / uid).resolve()
    target.mkdir(parents=True, exist_ok=True)
    foreign = [target / f"{i:064x}.safetensors" for i in range(40)]
    for path in foreign:
        path.write_text("somebody's weights")
    with sqlite3.connect(db) as raw:
        raw.execute("UPDATE engram_campaigns SET uid = ?", (uid,))
    campaign = reopen()
    for i in range(1, 12):
        campaign.tell((1, i % 8) if i < 8 else (2, i % 8), 1.0)
        campaign.peek(1)
    assert all(path.read_text() == "somebody's weights" for path in foreign)
    assert campaign.folder.parent == tmp_path / "campaigns.artifacts"
    assert list(campaign.folder.glob("*.safetensors"))
    shutil.rmtree(target)


def test_new_databases_are_for_their_owner_alone(create, db):
    create().tell((0, 0), 1.0)
    assert stat.S_IMODE(Path(db).stat().st_mode) == 0o600


# -- status and ask share a folder ------------------------------------------------------------


def test_status_takes_no_artifact_away_from_ask(create, reopen, learner, monkeypatch):
    monkeypatch.setattr("engram.campaign.engine.SAVE_EVERY", 3)
    campaign = create(policy=learner, budget=60)
    for i in range(36):
        campaign.tell((i // 8, i % 8), float(i % 7 == 0))
    reopen().ask(1)
    status(reopen())
    again = reopen()
    again.ask(1)
    assert again.engine.replayed == 0


def test_the_spatial_model_forecasts_as_policy_gp_does():
    from engram.campaign import companion
    from engram.policies import make_policy

    rng = np.random.default_rng(3)
    grid = Grid(16, 32, cell=(1, 2))
    order = [grid.at(int(i)) for i in rng.permutation(grid.n_cells)]
    from engram.observation import Observation

    def seen(cell):
        outcome = float((cell[0] // 4 + cell[1] // 4) % 3 == 0)
        return Observation.checked(grid, cell, np.zeros((1, 2)), outcome)

    groups = [[seen(c)] for c in order[:20]] + [[seen(c) for c in order[20:30]]]
    groups += [[seen(c)] for c in order[30:110]]
    policy = make_policy("gp", grid, 200, acquisition="probability")
    process = companion._Process(grid, [], None)
    mine = []
    for group in groups:
        policy.observe(group)
        mine += process.observe(group)
    difference = np.abs(np.array(mine) - policy.log.evidence)
    assert difference[: companion.NEAREST].max() < 1e-6
    assert difference.max() < 0.25
    assert difference.mean() < 0.01


def test_forecasts_are_kept_and_go_on_from_there(create, reopen, monkeypatch):
    from engram.campaign import companion

    campaign = create(budget=64)
    for i in range(30):
        campaign.tell((i // 8, i % 8), float(i % 3 == 0))
    first = status(campaign).prior_fitness
    learnt = []
    fit = companion.SpatialModel.fit
    monkeypatch.setattr(companion.SpatialModel, "fit", lambda *a: (learnt.append(1), fit(*a))[1])
    assert status(reopen()).prior_fitness == first
    assert learnt == []
    campaign.tell((7, 7), 1.0)
    after = status(reopen()).prior_fitness
    shutil.rmtree(campaign.folder)
    assert status(reopen()).prior_fitness == after != first


# -- snapshots ----------------------------------------------------------------------------------


@pytest.fixture
def eventful(create, clock, monkeypatch):
    """A campaign with every kind of event and a snapshot every five of them."""
    monkeypatch.setattr(snapshots, "EVERY", 5)
    campaign = create(grid=Grid(8, 8, closed=np.eye(8, dtype=bool)), lease=500.0, budget=40, seed=3)
    for i in range(14):
        asked = campaign.ask(2, by=f"crew {i % 3}", lease=None if i % 2 else 60.0 + i)
        campaign.tell(asked[0].cell, (i % 4) / 3, noise=0.01 * i, by="anna")
        if i % 5 == 1:
            campaign.fail(query=asked[1].query, retry=None if i % 2 else 70.0)
            campaign.correct(asked[0].cell, outcome=0.25)
        if i == 4:
            clock.sleep(30 * DAY)
        if i == 6:
            campaign.retract(asked[0].cell)
            campaign.open([(3, 3)])
            campaign.extend(2)
        clock.sleep(45)
    return campaign


def test_a_snapshot_is_what_the_log_says(eventful, reopen, monkeypatch):
    files = list((eventful.folder / "snapshots").iterdir())
    assert len(files) == snapshots.KEEP
    folded = []
    apply = type(eventful.state).apply
    monkeypatch.setattr(
        type(eventful.state),
        "apply",
        lambda self, events: (
            kept := list(events), folded.extend(e.seq for e in kept), apply(self, kept)
        )[-1],
    )  # fmt: skip
    again = reopen()
    assert 0 < len(folded) < 5 or folded == []
    monkeypatch.undo()
    whole = Campaign(again.storage, again.row, clock=again._clock, artifacts=False)
    assert _facts(again) == _facts(whole) == _facts(eventful)
    assert [p.cell for p in again.peek(3)] == [p.cell for p in whole.peek(3)]
    assert verify(again).ok
    asked = again.ask(1, key="after")
    assert [q.query for q in reopen().ask(1, key="after")] == [q.query for q in asked]


@pytest.mark.parametrize("harm", ["flip", "empty", "other campaign", "other history", "older"])
def test_a_snapshot_that_does_not_belong_is_passed_over(eventful, reopen, db, harm, monkeypatch):
    expected = _facts(eventful)
    folder = eventful.folder / "snapshots"
    path = max(folder.iterdir())
    if harm == "flip":
        blob = bytearray(path.read_bytes())
        blob[-5] ^= 1
        path.write_bytes(blob)
    elif harm == "empty":
        path.write_bytes(b"")
    elif harm == "other campaign":
        with sqlite3.connect(db) as raw:
            raw.execute("UPDATE engram_campaigns SET uid = ?", ("0" * 32,))
        shutil.copytree(folder, folder.parents[1] / ("0" * 32) / "snapshots")
    elif harm == "other history":
        name = f"{999:012}-{'a' * 64}.safetensors"
        path.rename(folder / name)
    else:
        monkeypatch.setattr(snapshots, "FORMAT", "engram-snapshot-0 0.0.0")
    assert _facts(reopen()) == expected


def test_a_restored_copy_does_not_use_later_snapshots(eventful, reopen, db, tmp_path):
    shutil.copy(db, tmp_path / "copy.db")
    before = _facts(reopen())
    for i in range(6):
        eventful.ask(1)
        eventful.tell((0, i + 1), 0.0) if i > 4 else None
    shutil.copy(tmp_path / "copy.db", db)
    assert _facts(reopen()) == before


def test_verify_names_a_snapshot_that_says_something_else(eventful, reopen):
    campaign = reopen()
    campaign.state.budget += 1
    assert "a snapshot was changed" in verify(campaign).faults[0]


def test_the_log_is_folded_in_linear_time():
    """What a tell costs does not grow with the queries before it."""
    from engram.campaign.events import Ask, Create, Event, HandedOut, Measured, Tell
    from engram.campaign.model import Spec
    from engram.campaign.state import State

    grid = Grid(200, 200)
    spec = Spec(grid, 30_000, "random")

    def fold(pairs):
        events = [Event.saying(1, 0.0, "", "k", Create(spec))]
        for i in range(pairs):
            cell = grid.at(i)
            handed = (HandedOut(i + 1, cell, {"total": 0.5}),)
            ask = Ask(1, "score", None, None, 2 * i + 1, 0.0, handed, "")
            tell = Tell((Measured(cell, 0.0, [0.0], 0.0),), [i + 1])
            events.append(Event.saying(2 * i + 2, 0.0, "", "k", ask))
            events.append(Event.saying(2 * i + 3, 0.0, "", "k", tell))
        steps = 0

        def counting(*_):
            nonlocal steps
            steps += 1
            return counting

        before = sys.gettrace()
        sys.settrace(counting)
        try:
            State.replay(events)
        finally:
            sys.settrace(before)
        return steps

    assert fold(800) < 10 * fold(100)  # lines run; quadratic would be near 64 times


# -- sums and requests ---------------------------------------------------------------------------


def test_budgets_that_overflow_are_refused(create, reopen):
    for terms in ({"budget": 1e308}, {"budget": 2, "travel": 1e308}, {"budget": 2, "lease": 1e300}):
        with pytest.raises(InputError, match=r"1e\+12|hundred years"):
            create("x", budget_kind="cost", **terms)
    with pytest.raises(InputError, match="cost of all cells"):
        create("x", grid=Grid(2, 2, cost=np.full((2, 2), 1e12)), budget=1, budget_kind="cost")
    campaign = create(budget=5e11, budget_kind="cost")
    with pytest.raises(InputError, match=r"a budget of 1\.4e\+12"):
        campaign.extend(9e11)
    for wrong in (
        lambda: campaign.ask(1, lease=1e300),
        lambda: campaign.fail(cell=(0, 0), retry=1e300),
    ):
        with pytest.raises(InputError, match="hundred years"):
            wrong()
    assert reopen().state.seq == 1


def test_one_bad_campaign_does_not_hide_the_others(create, db):
    for name in ("good", "bad", "worse", "late"):
        create(name).tell((0, 0), 1.0)
    with sqlite3.connect(db) as raw:

        def harm(name, text):
            raw.execute(
                "UPDATE engram_events SET payload = ? WHERE seq = 2 AND campaign = "
                "(SELECT id FROM engram_campaigns WHERE name = ?)",
                (text, name),
            )

        harm("bad", '{"items": [{"cell": [0, 99]}], "queries": [null]}')
        harm("worse", "{not json")
        raw.execute("UPDATE engram_campaigns SET created = 'x' WHERE name = 'late'")
    lines = {line.name: line for line in overview(db)}
    assert lines["good"].told == lines["late"].told == 1
    assert "event 2 (tell) is damaged" in lines["bad"].problem
    assert "is not JSON" in lines["worse"].problem


def test_a_campaign_whose_budget_overflowed_before_opens(create, reopen, db):
    """Earlier versions took any finite budget, and their sum became infinite."""
    import json

    from engram.campaign.model import LARGEST, canonical

    campaign = create(budget=5, budget_kind="cost")
    campaign.extend(7)
    with sqlite3.connect(db) as raw:
        for seq, name in ((1, "budget"), (2, "by")):
            row = raw.execute("SELECT payload FROM engram_events WHERE seq = ?", (seq,))
            payload = {**json.loads(row.fetchone()[0]), name: 1e308}
            raw.execute(
                "UPDATE engram_events SET payload = ? WHERE seq = ?", (canonical(payload), seq)
            )
    again = reopen()
    assert again.state.budget == LARGEST
    assert again.ask(1)
    assert np.isfinite(overview(db)[0].budget_left)


def test_what_cannot_be_met_is_refused_before_any_work(create, monkeypatch):
    campaign = create(budget=9)
    campaign.tell((0, 0), 1.0)
    monkeypatch.setattr(campaign, "policy", lambda: pytest.fail("the policy was asked"))
    for request in (campaign.ask, campaign.peek):
        with pytest.raises(InputError, match="enough for 8"):
            request(9)
        with pytest.raises(InputError, match="n=1000000000"):
            request(10**9)
    small = create("small", grid=Grid(2, 2), budget=4)
    small.close([(0, 0)])
    with pytest.raises(InputError, match="only 3 cell"):
        small.ask(4)
    cost = np.arange(1.0, 65.0).reshape(8, 8)
    dear = create("dear", grid=Grid(8, 8, cost=cost), budget=6.5, budget_kind="cost")
    monkeypatch.setattr(dear, "policy", lambda: pytest.fail("the policy was asked"))
    with pytest.raises(InputError, match="enough for 3"):
        dear.ask(4)


def test_areas_that_do_not_fit_in_memory_are_refused(create, db, monkeypatch):
    monkeypatch.setattr("engram.campaign.fits.memory", lambda: 8_000_000_000)
    for policy in ("gp", "auto"):
        with pytest.raises(InputError, match="GB for policy"):
            create(grid=Grid(4000, 4000), budget=100, policy=policy)
    with pytest.raises(InputError, match="that can be searched"):
        Grid(1_000_000, 1_000_000)
    assert not Path(db).exists()
    create(grid=Grid(64, 64), budget=100, policy="gp")


# -- damage ---------------------------------------------------------------------------------------


def test_flipped_bytes_are_named(create, db, tmp_path, clock):
    """Whatever byte of the database is changed: verified as before, or an error that names it."""
    campaign = create(lease=60.0)
    for query in campaign.ask(3, by="é"):
        campaign.tell(query.cell, 0.5, key=f"k{query.query}")
    blob = Path(db).read_bytes()
    draw, harmed, named = random.Random(5), tmp_path / "harmed.db", 0
    for _ in range(60):
        copy = bytearray(blob)
        copy[draw.randrange(len(copy))] ^= 1 << draw.randrange(8)
        for beside in tmp_path.glob("harmed.db-*"):
            beside.unlink()
        harmed.write_bytes(copy)
        with contextlib.suppress(EngramError):
            overview(str(harmed))
        named += _verdict(lambda: open_campaign("pond", db=str(harmed), clock=clock)) != ""
    assert named >= 5


def test_tables_described_by_no_text_are_named(create, db):
    """SQLite repeats the damaged words in its error, which is then no text either."""
    create()
    blob = Path(db).read_bytes()
    blob = blob.replace(b"tableengram_events", b"tableengr\xe7m_events")
    Path(db).write_bytes(blob.replace(b"CREATE TABLE engram_events", b"CREATE TABLX engram_events"))
    with pytest.raises(StorageError, match="what describes its tables is not text"):
        Storage(db)


def _verdict(opening):
    """What is wrong with a campaign, or nothing."""
    try:
        return "; ".join(verify(opening()).faults)
    except EngramError as error:
        return str(error)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("seq", "'two'"), ("at", "'soon'"), ("at", "9e999"),
        ("payload", "'[]'"), ("payload", "'{\"items\": 3, \"queries\": []}'"),
        ("payload", "replace(payload, '1.0', 'NaN')"), ("who", "x'ff'"), ("key", "5"),
        ("hash", "x'00'"), ("kind", "'create'"), ("kind", "'tel'"), ("payload", "x'ff'"),
    ],
)  # fmt: skip
def test_damaged_events_are_named(create, reopen, db, column, value):
    create().tell((0, 0), 1.0)
    raw = sqlite3.connect(db)
    raw.execute(f"UPDATE engram_events SET {column} = {value} WHERE seq = 2")
    raw.commit()
    raw.close()
    assert "event" in _verdict(reopen)


def test_a_database_nobody_may_write_is_read(create, db, tmp_path):
    """As a user who may read the file but write neither it nor its folder."""
    import os

    if os.geteuid() != 0:
        pytest.skip("needs another user to be")
    campaign = create()
    campaign.ask(1)
    campaign.tell((0, 0), 1.0)
    os.chmod(db, 0o644)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != Path("/"):
            os.chmod(folder, folder.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setuid(65534)
            again = open_campaign("pond", db=db)
            told = len(again.state.measurements) == 1 and verify(again).ok
            try:
                again.tell((0, 1), 1.0)
            except EngramError as error:
                told = told and "readonly" in str(error) and len(Storage(db).campaigns()) == 1
                code = 0 if told else 3
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
