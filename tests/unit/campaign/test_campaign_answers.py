"""Answers are typed, and their JSON is what scripts know."""

from __future__ import annotations

import json

from engram.campaign import NextCell, history, outline, overview, status, verify
from engram.cli.main import main

STATUS = (
    "name policy prior told asked failed expired queries budget budget_kind budget_left found "
    "closed remaining chance_remaining events remaining_by_policy prospect next advice "
    "prior_fitness"
)
RECEIPT = "seq kind at cells repeated note"
EXPLANATION = (
    "query state candidates cell cost expected_content expected_outcome found measured out picture "
    "policy prior rank ranked_by rule runners_up terms tilt weights"
)
TERMS = ["exploration", "likelihood", "reward", "exploitation", "alpha", "total", "probability"]


def names(answer):
    return " ".join(answer.to_dict())


def test_the_json_of_every_answer_has_the_names_scripts_know(create, db):
    campaign = create(budget=6)
    query = campaign.ask(1, by="anna")[0]
    told = campaign.tell((7, 7) if query.cell == (0, 0) else (0, 0), 1.0)
    assert names(told) == f"told {RECEIPT}"
    assert told.to_dict()["told"] == 1
    assert names(campaign.fail(query=1)) == RECEIPT
    extended = campaign.extend(2)
    assert names(extended) == f"{RECEIPT} budget"
    assert extended.budget == campaign.state.budget == 8
    assert names(outline(campaign)) == (
        "name cells open mask budget budget_kind policy options prior seed database"
    )
    assert names(history(campaign)[0]) == "seq at kind by key text payload"
    line = "name policy told found asked budget_left events created"
    assert names(overview(db)[0]) == line
    assert names(campaign.explain(1)) == EXPLANATION
    handed, looked = NextCell.handed_out(query), NextCell.looked_at(campaign.peek(1)[0])
    assert names(handed).startswith("query cell ")
    assert names(handed).endswith(" by until")
    assert names(looked).startswith("cell ")
    for cell in (handed, looked):
        assert {*TERMS, "rank", "worth"} <= set(cell.to_dict())
    assert names(verify(campaign)) == "ok events asks suggestions older faults"


def test_the_status_is_typed_and_rounds_where_it_is_printed(create):
    campaign = create(policy="gp", budget=12)
    for i in range(5):
        campaign.tell((i, i), float(i < 2))
    found = status(campaign)
    facts = found.to_dict()
    assert " ".join(facts) == STATUS
    assert (facts["told"], facts["found"], facts["budget"], facts["budget_left"]) == (5, 2, 12, 7)
    assert list(facts["remaining"]) == ["expected", "low", "high", "level"]
    assert facts["chance_remaining"] == found.remaining.chance
    assert facts["prospect"]["expected"] == round(found.prospect.expected, 3)
    assert facts["next"] == {
        "measurements": found.next.measurements,
        "expected_finds": round(found.next.expected, 3),
    }
    advice = "stop worthwhile chance looked_at words yield"
    assert " ".join(facts["advice"]) == advice
    assert facts["advice"]["yield"] == round(found.next.expected / found.next.measurements, 4)
    fitness = "measurements policy spatial base_rate verdict words"
    assert " ".join(facts["prior_fitness"]) == fitness
    while found.budget_left:
        campaign.tell(campaign.peek(1)[0].cell, 0.0)
        found = status(campaign)
    assert found.to_dict()["advice"] == {"stop": True, "words": "The budget is spent."}


def test_the_command_line_prints_what_the_campaign_answers(create, db, capsys):
    campaign = create()
    campaign.ask(2)
    campaign.tell((1, 1), 0.5)

    def printed(*words):
        assert main(["campaign", *words, "--db", db, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert printed("status", "pond") == status(campaign).to_dict()
    assert printed("explain", "pond", "--query", "2") == campaign.explain(2).to_dict()
    assert printed("history", "pond") == [line.to_dict() for line in history(campaign)]
    assert printed("list") == [line.to_dict() for line in overview(db)]
