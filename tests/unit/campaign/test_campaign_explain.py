"""What is kept with a suggestion, in words and as a picture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from engram.campaign import Explanation, draw, history, in_words, status, verify
from engram.campaign.export import in_words as event_in_words
from engram.errors import InputError
from engram.grid import Grid


def test_explanation_is_kept_for_good(create, reopen, learner):
    campaign = create(policy=learner)
    campaign.tell((4, 4), 1.0)
    query = campaign.ask(2, by="anna")[1]
    before = campaign.explain(query.query).to_dict()
    campaign.tell(query.cell, 0.0)
    for i in range(3):
        campaign.tell((0, i), 0.0)
    after = reopen().explain(query.query).to_dict()
    assert {**after, "state": "asked"} == {**before, "state": "asked"}
    assert after["state"] == "told"
    for name in ("exploration", "likelihood", "reward", "exploitation", "alpha", "total"):
        assert name in after["terms"]
    assert after["measured"] == 1
    assert len(after["runners_up"]) == 5
    assert after["expected_outcome"] == pytest.approx(after["terms"]["probability"])
    picture = after["picture"]
    assert np.shape(picture["samples"])[0] == 3
    row, col = query.cell
    top, left = picture["corner"]
    shown = picture["probability"][row - top][col - left]
    assert shown == pytest.approx(after["expected_outcome"], abs=1e-4)


@pytest.mark.parametrize("policy", ["random", "learner"])
def test_words_and_picture(create, learner, policy, tmp_path):
    campaign = create(policy=policy)
    campaign.tell((4, 4), 1.0)
    campaign.ask(1)
    query = campaign.ask(1)[0]
    explanation = campaign.explain(query.query)
    words = in_words(explanation)
    assert f"Cell ({query.cell[0]}, {query.cell[1]}) was number" in words
    assert "Already out then" in words
    draw(explanation, tmp_path / "sub" / "why.png")
    with Image.open(tmp_path / "sub" / "why.png") as image:
        assert image.width > 200
    with pytest.raises(InputError, match=r"ends in \.png"):
        draw(explanation, tmp_path / "why.jpg")


@pytest.mark.parametrize("rule", ["eq12", "frontier", ""])
def test_words_follow_the_rule_that_was_kept_not_the_numbers(create, rule):
    """All terms are 1, so the total looks like Eq. 12; only the rule that was kept tells."""
    campaign = create()
    explanation = campaign.explain(campaign.ask(1)[0].query)
    terms = dict.fromkeys(explanation.terms, 1.0)
    words = in_words(replace(explanation, terms={**terms, "alpha": 0.5}, rule=rule))
    said = "Score 1 at alpha 0.500: exploration 1, exploitation 1"
    assert (said in words) == (rule == "eq12")
    assert ("Score 1. Terms that say more of the cell: exploration 1" in words) == (rule != "eq12")
    assert ("Rule of the score" in words) == bool(rule)


def test_an_explanation_keeps_the_rule_and_the_log_its_terms(create, reopen):
    campaign = create(policy="gp[acquisition=foraging]")
    campaign.tell((4, 4), 0.0)
    query = campaign.ask(1)[0]
    explanation = reopen().explain(query.query)
    assert explanation.rule == campaign.policy().current().rule == "frontier"
    assert "Rule of the score: frontier (no cell was likely enough" in in_words(explanation)
    assert not {"rule", "weights", "tilt"} & set(query.terms)
    kept = {k: v for k, v in explanation.kept.items() if k not in ("rule", "weights", "tilt")}
    old = Explanation.of(1, "asked", {**kept, "later": "more"})
    assert old.to_dict() == {"query": 1, "state": "asked", **kept, "later": "more"}
    assert "Rule of the score" not in in_words(old)
    assert not verify(reopen()).faults


def test_words_say_what_was_mixed_and_what_h_did(create):
    campaign = create()
    explanation = campaign.explain(campaign.ask(1)[0].query)
    made = {"weights": {"memory": 0.75, "process": 0.25}, "tilt": -0.0312}
    words = in_words(replace(explanation, **made))
    assert "weighs memory 0.75, process 0.25; h moved the memory's chance by -0.031." in words
    assert "h moved" not in in_words(replace(explanation, **{**made, "tilt": None}))


def test_unknown_query(create):
    with pytest.raises(InputError, match="no query 7"):
        create().explain(7)


def test_history_has_words_for_every_event(create):
    campaign = create()
    campaign.ask(1, by="anna")
    campaign.tell((0, 0), 1.0)
    campaign.correct((0, 0), outcome=0.0, reason="typo")
    campaign.retract((0, 0))
    campaign.fail(query=1)
    campaign.fail(cell=(2, 2), retry=None)
    campaign.open([(2, 2)])
    campaign.close([(2, 2)], reason="nest")
    campaign.extend(2)
    lines = history(campaign)
    assert [line.seq for line in lines] == list(range(1, 11))
    assert all(line.text for line in lines)
    assert lines[3].text == "(0, 0) outcome 1 -> 0 (typo)"
    assert event_in_words(campaign.events[6]) == "(2, 2) never again"


def test_status_counts(create, clock):
    campaign = create(lease=10.0)
    campaign.ask(2)
    clock.sleep(11)
    campaign.ask(1)
    campaign.fail(query=3)
    campaign.tell((7, 0), 1.0)
    campaign.close([(6, 6)])
    facts = status(campaign).to_dict()
    counts = {k: facts[k] for k in ("told", "asked", "failed", "expired", "found", "closed")}
    assert counts == {"told": 1, "asked": 0, "failed": 1, "expired": 2, "found": 1, "closed": 1}
    assert facts["budget_left"] == 19
    left = facts["remaining"]
    assert left["low"] <= left["expected"] <= left["high"] <= 62
    assert left["level"] == 0.8
    assert 0 <= facts["chance_remaining"] <= 1
    assert facts["prior_fitness"]["verdict"] == "unknown"
    assert not facts["advice"]["stop"]


def test_advice_keeps_to_the_budget(create):
    campaign = create(budget=3)
    campaign.tell((0, 0), 1.0)
    facts = status(campaign).to_dict()
    assert facts["next"]["measurements"] == 2
    assert status(campaign, ahead=0).next.measurements == 0
    campaign.ask(2)
    facts = status(campaign).to_dict()
    assert facts["next"] == {"measurements": 0, "expected_finds": 0.0}
    assert facts["prospect"]["measurements"] == facts["prospect"]["high"] == 0
    assert facts["advice"]["words"].startswith("Nothing more to hand out: the 2 cell(s) out")


def test_advice_passes_over_cells_the_budget_cannot_pay(create):
    cost = np.full((8, 8), 9.0)
    cost[3, 3:5] = 2.0
    campaign = create(grid=Grid(8, 8, cost=cost), budget=5, budget_kind="cost")
    assert status(campaign).next.measurements == 2
    assert {q.cell for q in campaign.ask(2)} == {(3, 3), (3, 4)}


def test_a_crew_without_a_starting_point_is_named(create):
    campaign = create(travel=1.0, rank="per-cost", crews={"north": (0, 0)})
    with pytest.raises(InputError, match=r"by=.nort. is none of the crews north; .*"):
        campaign.ask(1, by="nort")
    assert campaign.ask(1, by="nort", start=(1, 1))
    assert campaign.ask(1, by="north")


def test_crews_are_kept_apart_where_all_cells_are_equal(create):
    cells = np.array([q.cell for q in create(policy="gp", rank="per-cost").ask(3)])
    apart = np.abs(cells[:, None] - cells[None]).max(axis=2)
    assert apart[np.triu_indices(3, 1)].min() >= 3


def test_stop_advice(create):
    campaign = create(budget=60, stop_yield=0.2)
    for i in range(40):
        campaign.tell((i // 8, i % 8), 0.0)
    facts = status(campaign).to_dict()
    advice, rest = facts["advice"], facts["prospect"]
    assert advice["stop"]
    assert rest["measurements"] == 20
    assert rest["high"] < advice["worthwhile"] == 4.0
    assert advice["chance"] < 0.05
    assert "that the 20 measurement(s) left bring 4 finds (a yield of 0.2) is" in advice["words"]


def test_a_blank_start_is_no_reason_to_stop(create):
    """Twelve blank visits to 960 cells: much may be left, and the advice says the same."""
    campaign = create(grid=Grid(24, 40), budget=150, policy="gp")
    for _ in range(4):
        for query in campaign.ask(3):
            campaign.tell(query.cell, 0.0)
    facts = status(campaign).to_dict()
    assert not facts["advice"]["stop"]
    assert facts["advice"]["worthwhile"] == pytest.approx(0.02 * 138)
    assert facts["prospect"]["high"] <= facts["remaining"]["high"]
    assert facts["next"]["expected_finds"] <= facts["prospect"]["expected"]
    assert facts["prospect"]["expected"] <= facts["remaining"]["expected"]


def test_prior_fitness_compares_with_a_spatial_model(create, learner):
    campaign = create(policy=learner)
    for i in range(8):
        campaign.tell((i, i), float(i < 4))
    found = status(campaign).prior_fitness
    assert found.measurements == 8
    assert all(
        isinstance(getattr(found, name), float) for name in ("policy", "spatial", "base_rate")
    )
    assert "a plain spatial model" in found.words
    alone = create("alone", policy="gp")
    alone.tell((0, 0), 1.0)
    assert status(alone).prior_fitness.spatial is None
