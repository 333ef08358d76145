"""Determinism: resumed, rebuilt and replayed campaigns agree; artifacts are only a cache."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from engram import Grid, Observation
from engram.campaign import Campaign, Storage, verify
from engram.campaign.artifacts import BACK, OTHERS, Artifacts
from engram.policies.local import windows
from engram.policies.local.process import LocalProcess
from engram.spatial import SpatialModel


def _outcome(cell):
    return float((cell[0] * 7 + cell[1] * 3) % 5 == 0)


def _work(campaign, steps):
    """Ask and tell with corrections on the way; returns the cells."""
    cells = []
    for i in steps:
        asked = campaign.ask(2 if i % 3 == 0 else 1)
        cells.extend(q.cell for q in asked)
        for query in reversed(asked):
            campaign.tell(query.cell, _outcome(query.cell))
        if i == 4:
            campaign.correct(cells[1], outcome=0.5)
        if i == 6:
            campaign.retract(cells[2])
        if i == 7:
            campaign.extend(3)
        if i == 8:
            campaign.close([next(c for c in ((0, 0), (0, 1), (1, 0)) if c not in cells)])
    return cells


@pytest.mark.parametrize("policy", ["random", "gp", "em-ptdm", "learner"])
def test_interrupted_and_resumed_gives_the_same_suggestions(create, reopen, learner, policy):
    whole = _work(create("whole", policy=policy, budget=25, seed=4), range(10))
    create("parts", policy=policy, budget=25, seed=4)
    parts = []
    for i in range(10):
        parts += _work_at(reopen("parts"), i, parts)
    assert parts == whole
    assert verify(reopen("parts")).ok
    assert verify(reopen("whole")).ok


def _work_at(campaign, step, before):
    """One step of ``_work`` in a process of its own."""
    cells = list(before)
    asked = campaign.ask(2 if step % 3 == 0 else 1)
    cells.extend(q.cell for q in asked)
    for query in reversed(asked):
        campaign.tell(query.cell, _outcome(query.cell))
    if step == 4:
        campaign.correct(cells[1], outcome=0.5)
    if step == 6:
        campaign.retract(cells[2])
    if step == 7:
        campaign.extend(3)
    if step == 8:
        campaign.close([next(c for c in ((0, 0), (0, 1), (1, 0)) if c not in cells)])
    return cells[len(before) :]


def test_opening_does_not_replay_what_artifacts_hold(create, reopen, learner):
    campaign = create(policy=learner, budget=60)
    for i in range(50):
        campaign.tell((i // 8, i % 8), float(i % 3 == 0))
    expected = [p.cell for p in campaign.peek(3)]
    again = reopen()
    assert [p.cell for p in again.peek(3)] == expected
    assert again.keeper.replayed == 0
    again.tell((7, 7), 1.0)
    again.peek(1)
    assert again.keeper.replayed == 1


def test_terms_of_the_process_are_not_learnt_again_by_a_new_process(create, reopen, monkeypatch):
    campaign = create("c", policy="em-ptdm", budget=20)
    for _ in range(7):  # terms are learnt after five
        cell = campaign.ask()[0].cell
        campaign.tell(cell, _outcome(cell))
    expected = [(one.cell, dict(one.terms)) for one in campaign.peek(2)]

    def never(*_: object) -> None:
        raise AssertionError("learnt again")

    monkeypatch.setattr(SpatialModel, "_most_likely", never)
    assert [(one.cell, dict(one.terms)) for one in reopen("c").peek(2)] == expected


def test_a_correction_replays_only_what_lies_behind_it(create, reopen, learner):
    campaign = create(policy=learner, budget=40)
    for i in range(30):
        campaign.tell((i // 8, i % 8), float(i % 3 == 0))
        if i in (9, 19, 29):
            campaign.peek(1)
    again = reopen()
    again.correct((1, 4), outcome=0.25)  # the 13th measurement
    again.peek(1)
    assert again.keeper.replayed == 20
    fresh = Campaign(again.storage, again.row, artifacts=False)
    assert [p.cell for p in fresh.peek(5)] == [p.cell for p in again.peek(5)]


@pytest.mark.parametrize("harm", ["truncate", "flip header", "flip data", "empty", "remove"])
def test_damaged_artifacts_are_rebuilt_from_the_log(create, reopen, learner, harm):
    campaign = create(policy=learner)
    for i in range(12):
        campaign.tell((i // 8, i % 8), float(i % 2))
    expected = [(p.cell, p.terms) for p in campaign.peek(4)]
    files = list(campaign.folder.iterdir())
    assert files
    for path in files:
        blob = bytearray(path.read_bytes())
        if harm == "truncate":
            blob = blob[: len(blob) // 2]
        elif harm == "flip header":
            blob[40] ^= 4
        elif harm == "flip data":
            blob[-3] ^= 1
        elif harm == "empty":
            blob = bytearray()
        path.write_bytes(blob)
        if harm == "remove":
            path.unlink()
    again = reopen()
    assert [(p.cell, p.terms) for p in again.peek(4)] == expected
    assert again.keeper.replayed == 12
    assert reopen().peek(1)
    last = reopen()
    last.peek(1)
    assert last.keeper.replayed == 0  # written again


def _key(number):
    return f"{number:064x}"


def test_every_flipped_bit_of_an_artifact_is_noticed(tmp_path):
    store, key = Artifacts(tmp_path), _key(1)
    arrays = {"a": np.arange(3, dtype=np.float32), "b": np.zeros((0, 2))}
    store.save(key, arrays, "note")
    blob = store.path(key).read_bytes()
    for position in range(len(blob)):
        harmed = bytearray(blob)
        harmed[position] ^= 1 << (position % 8)
        store.path(key).write_bytes(harmed)
        loaded = store.load(key)
        if loaded is not None:  # a flip that does not matter, such as one in padding
            assert loaded[1] == "note"
            assert all(np.array_equal(loaded[0][name], arrays[name]) for name in arrays)


def test_artifacts_are_kept_by_what_they_are_good_for(tmp_path):
    """The newest, some further and further behind it, and few that lead elsewhere."""
    store = Artifacts(tmp_path / "deep" / "folder")
    assert store.newest([_key(1)]) is None
    way = [_key(i) for i in range(400)]
    for i in range(400, 405):
        store.save(_key(i), {"x": np.ones(2)}, "")
    for i in range(300):
        store.save(way[i], {"x": np.ones(2)}, "")
    store.tidy(way)
    on = sorted(int(key, 16) for key in store.keys() if key in way)  # noqa: SIM118
    assert on == [0, *sorted(299 - distance for distance in (0, *BACK) if distance <= 299)]
    assert len(store.keys()) == len(on) + OTHERS
    assert store.newest(way) == 299
    assert store.load(_key(999)) is None


def test_a_cache_that_cannot_be_written_never_fails(tmp_path):
    blocked = Artifacts(tmp_path / "file")
    (tmp_path / "file").write_text("in the way")
    blocked.save(_key(1), {"x": np.ones(2)}, "")
    blocked.tidy([_key(1)])
    assert blocked.keys() == []


def test_a_folder_is_tidied_by_our_names_alone(tmp_path):
    store = Artifacts(tmp_path)
    foreign = [tmp_path / name for name in ("weights.safetensors", "a.partial", "deadbeef")]
    for path in foreign:
        path.write_text("not ours")
    for i in range(20):
        store.save(_key(i), {"x": np.ones(2)}, "")
    store.tidy([])
    assert all(path.exists() for path in foreign)
    for name in ("../outside", "/etc/passwd", "", "K" * 64):
        with pytest.raises(ValueError, match="not the name of an artifact"):
            store.path(name)


def test_verify_sees_changes_of_the_log(create, reopen, db):
    campaign = create()
    campaign.ask(2)
    campaign.tell((0, 0), 1.0)
    assert verify(campaign).ok
    with sqlite3.connect(db) as raw:
        raw.execute("UPDATE engram_events SET payload = replace(payload, '1.0', '0.0') WHERE seq=3")
    report = verify(reopen())
    assert not report.ok
    assert "event 3 (tell) was changed" in report.faults[0]


def test_verify_sees_changed_explanations_and_other_suggestions(create, reopen, db):
    campaign = create()
    campaign.ask(1)
    with sqlite3.connect(db) as raw:
        raw.execute("UPDATE engram_events SET detail = '[]' WHERE seq=2")
    assert "explanation was changed" in verify(reopen()).faults[0]


def test_verify_compares_suggestions(create, reopen, monkeypatch):
    create(seed=1).ask(3)
    from engram.policies.random import RandomSearch

    monkeypatch.setattr(RandomSearch, "scores", _upside_down(RandomSearch.scores))
    report = verify(reopen())
    assert len(report.faults) == 3
    assert "the replay gives" in report.faults[0]


def _upside_down(scores):
    from dataclasses import replace

    def reversed_scores(self):
        found = scores(self)
        return replace(found, total=-found.total)

    return reversed_scores


def test_a_memory_that_changed_is_refused(create, reopen, monkeypatch):
    from engram.campaign.model import Spec
    from engram.policies import POLICIES, PolicySpec

    monkeypatch.setitem(POLICIES, "learner", PolicySpec("learner_policy", "Learner", "", True))
    from engram.campaign.keeper import load_prior
    from engram.errors import InputError
    from engram.grid import Grid

    spec = Spec(Grid(32, 32), 4, "learner", prior="digits", prior_sha256="0" * 64)
    with pytest.raises(InputError, match="has changed since the campaign was created"):
        load_prior(spec)


def test_a_log_of_a_later_version_is_refused(create, reopen, db):
    from engram.errors import InputError

    create()
    with sqlite3.connect(db) as raw:
        raw.execute(
            "UPDATE engram_events SET payload = replace(payload, '\"format\":1', '\"format\":9')"
        )
    with pytest.raises(InputError, match="log format 9"):
        reopen()
    with sqlite3.connect(db) as raw:
        raw.execute(
            "UPDATE engram_events SET payload = replace(payload, '\"format\":9', '\"format\":1')"
        )
        raw.execute(
            "INSERT INTO engram_events "
            "SELECT campaign, 2, 'teleport', at, who, 'k', '{}', NULL, 'h' FROM engram_events"
        )
    with pytest.raises(InputError, match="'teleport', which this version"):
        reopen()
    with sqlite3.connect(db) as raw:
        raw.execute("UPDATE engram_schema SET version = 99")
    with pytest.raises(InputError, match="schema version 99"):
        Storage(db)


@pytest.mark.parametrize("policy", ["gp", "em-ptdm"])
def test_a_large_campaign_is_gone_on_from_what_was_computed(create, reopen, monkeypatch, policy):
    """Patches and windows of 30 measurements, told at once, are computed once for all commands."""
    grid = Grid(70, 70)
    campaign = create(grid=grid, budget=60, policy=policy)
    told = {(i // 7 * 5, i % 7 * 9): float(i % 3 == 0) for i in range(30)}
    campaign.tell_many([Observation.checked(grid, cell, y, y) for cell, y in told.items()])
    first = [pick.cell for pick in campaign.peek(3)]
    made = []
    patch, window = LocalProcess._computed, windows.in_turn
    monkeypatch.setattr(
        LocalProcess, "_computed", lambda self, n: (made.append(n), patch(self, n))[1]
    )

    def seen(see, sights):
        made.extend(sights)
        return window(see, sights)

    with windows.computed_by(seen):
        assert [pick.cell for pick in reopen().peek(3)] == first
    blank = 1 if policy == "em-ptdm" else 0  # the window of which nothing is known
    assert len(made) == blank
