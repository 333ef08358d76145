"""Visits that may miss a target, and what is known beforehand, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from server_help import Served

from engram.campaign import open_campaign, verify

FEN = "/campaigns/fen"
SIDE = 6


def fen(served: Served, **terms: Any) -> Any:
    body = {"name": "fen", "size": [SIDE, SIDE], "budget": 20, "policy": "gp", **terms}
    return served.post("owner of all", "/campaigns", body)


def tell(served: Served, cell: tuple[int, int], outcome: float, **more: Any) -> Any:
    body = {"cell": list(cell), "outcome": outcome, **more}
    return served.post("owner of all", f"{FEN}/tell", body)


def opened(served: Served) -> Any:
    return open_campaign("fen", db=served.context.settings.db)


def test_a_campaign_whose_visits_may_miss_says_so(served: Served) -> None:
    made = fen(served, detection=0.7, false_alarm=0.05)
    assert made.status_code == 201, made.text
    assert made.json()["detection"] == {"chance": 0.7, "false_alarm": 0.05}
    seen = opened(served).state.spec.detection
    assert (seen.chance, seen.false_alarm, seen.learnt) == (0.7, 0.05, False)


def test_a_chance_may_be_learnt(served: Served) -> None:
    assert fen(served, detection="learn").json()["detection"]["chance"] == "learn"
    assert opened(served).state.spec.detection.learnt


def test_without_a_word_visits_see_everything(served: Served) -> None:
    assert fen(served).json()["detection"] == {"chance": 1.0, "false_alarm": 0.0}
    tell(served, (0, 0), 0.0)
    again = tell(served, (0, 0), 0.0)
    assert again.status_code == 409
    status = served.get("owner of all", f"{FEN}/status").json()
    assert "detection" not in status
    assert "layers" not in status


def test_a_cell_is_visited_again_and_its_story_has_every_visit(served: Served) -> None:
    fen(served, detection=0.6)
    tell(served, (2, 3), 0.0, note="fog")
    story = served.get("owner of all", f"{FEN}/cells/2/3").json()
    assert story["state"] == "visited"
    second = tell(served, (2, 3), 0.0, detection=0.9, note="clear")
    assert second.status_code == 200, second.text
    story = served.get("owner of all", f"{FEN}/cells/2/3").json()
    assert [v["outcome"] for v in story["visits"]] == [0.0, 0.0]
    assert [v["detection"] for v in story["visits"]] == [None, 0.9]
    assert [e["facts"]["note"] for e in story["events"]] == ["fog", "clear"]
    (cell,) = served.get("owner of all", f"{FEN}/cells").json()["measured"]
    assert (cell["visits"], cell["settled"]) == (2, False)
    assert tell(served, (2, 3), 1.0).status_code == 200
    story = served.get("owner of all", f"{FEN}/cells/2/3").json()
    assert (story["state"], len(story["visits"])) == ("measured", 3)
    assert tell(served, (2, 3), 0.0).status_code == 409  # a find settles it
    assert verify(opened(served)).ok


def test_status_counts_what_may_have_been_missed(served: Served) -> None:
    fen(served, detection=0.5)
    for col in range(4):
        tell(served, (0, col), 0.0)
    missed = served.get("owner of all", f"{FEN}/status").json()["detection"]
    assert missed["visited_and_open"] == 4
    assert missed["chance"] == 0.5
    assert missed["expected_missed"] > 0
    assert "4 visited cell(s) may still hold" in missed["words"]


def test_a_goal_goes_with_the_policy(served: Served) -> None:
    made = fen(served, policy="gp[goal=objects]")
    assert made.status_code == 201, made.text
    assert made.json()["options"] == {"goal": "objects"}
    for cell in ((0, 0), (0, 1), (4, 4)):
        tell(served, cell, 1.0)
    targets = served.get("owner of all", f"{FEN}/status").json()["targets"]
    assert (targets["goal"], targets["touched"]) == ("objects", 2)
    assert targets["untouched"]["low"] <= targets["untouched"]["expected"]
    assert targets["untouched"]["high"] <= targets["wide"]["high"]
    assert targets["prospect"]["expected"] <= targets["untouched"]["expected"]
    assert 0 <= targets["untouched"]["chance"] <= 1
    refused = served.post(
        "owner of all",
        "/campaigns",
        {"name": "x", "size": [SIDE, SIDE], "budget": 5, "policy": "gp[goal=ships]"},
    )
    assert refused.status_code == 422
    assert "goal='ships'" in refused.text


def test_several_visits_of_a_cell_at_once(served: Served) -> None:
    fen(served, detection=0.6)
    items = [{"cell": [1, 1], "outcome": 0}, {"cell": [1, 1], "outcome": 0, "detection": 0.8}]
    done = served.post("owner of all", f"{FEN}/tell-many", {"items": items})
    assert done.status_code == 200, done.text
    assert len(opened(served).state.visits) == 2


def test_a_file_of_old_visits_counts_less(served: Served) -> None:
    fen(served, detection=0.9)
    table = "row,col,outcome,date\n0,0,0,2001-05-01\n0,1,0,2025-05-01\n"
    done = served.client.post(
        f"/api/v1{FEN}/tell-file",
        headers=served.headers("owner of all"),
        files={"file": ("old.csv", table)},
        data={"half_life": str(5 * 365.25 * 86400), "detection": "0.8"},
    )
    assert done.status_code == 200, done.text
    old, new = (o.detection for o in opened(served).state.observations)
    assert old is not None
    assert new is not None
    assert old.chance - old.false_alarm < new.chance - new.false_alarm <= 0.8


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"detection": 0.3, "false_alarm": 0.4}, "false alarm=0.4 is not below detection=0.3"),
        ({"detection": 0}, "detection"),
        ({"detection": 1.5}, "detection"),
        ({"detection": "often"}, "detection"),
        ({"false_alarm": 1}, "false_alarm"),
        ({"detection": 0.5, "policy": "greedy"}, "takes every visit for the truth"),
    ],
)
def test_chances_that_cannot_be_are_refused(
    served: Served, terms: dict[str, Any], words: str
) -> None:
    refused = fen(served, **terms)
    assert refused.status_code == 422
    assert words in refused.json()["detail"]
    assert served.get("owner of all", FEN).status_code == 404


def test_a_visit_that_cannot_be_trusted_at_all_is_refused(served: Served) -> None:
    fen(served)
    refused = tell(served, (0, 0), 0.0, detection=0.2, false_alarm=0.3)
    assert refused.status_code == 422
    assert "false alarm=0.3 is not below detection=0.2" in refused.json()["detail"]
    assert opened(served).state.seq == 1


def layer(values: Any, name: str = "rock", **more: Any) -> dict[str, Any]:
    return {"name": name, "values": values, **more}


GRADIENT = [[float(r + c) for c in range(SIDE)] for r in range(SIDE)]


def test_layers_and_a_belief_come_with_a_campaign(served: Served) -> None:
    kinds = [["clay" if c < 3 else "sand" for c in range(SIDE)] for _ in range(SIDE)]
    kinds[0][0] = None
    made = fen(
        served,
        layers=[layer(GRADIENT, expected="more"), layer(kinds, "soil")],
        belief=[[0.1] * SIDE] * SIDE,
    )
    assert made.status_code == 201, made.text
    assert (made.json()["layers"], made.json()["belief"]) == (["rock", "soil"], True)
    spec = opened(served).state.spec
    assert spec.layers is not None
    assert spec.layers.get("rock").expected == "more"
    np.testing.assert_array_equal(spec.layers.get("rock").values, np.ravel(GRADIENT))
    assert spec.layers.get("soil").categories == ("clay", "sand")
    assert spec.layers.get("soil").missing.tolist() == [True, *[False] * (SIDE * SIDE - 1)]
    tell(served, (5, 5), 1.0)
    asked = served.post("owner of all", f"{FEN}/ask", {"n": 1}).json()["queries"][0]
    why = served.get("owner of all", f"{FEN}/queries/{asked['query']}").json()
    assert set(why["layers"]) >= {"rock", "soil"}
    status = served.get("owner of all", f"{FEN}/status").json()
    assert any("rock" in effect["words"] for effect in status["layers"])
    assert verify(opened(served)).ok


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"layers": [layer([[1.0, 2.0]])]}, "rock"),
        ({"layers": [layer([[1.0, 2.0], [3.0]])]}, "rows are not of one length"),
        ({"layers": [layer([["a", 1.0] * 3] * SIDE)]}, "not both"),
        ({"layers": [layer([[2.0] * SIDE] * SIDE)]}, "tells no cell from another"),
        ({"layers": [layer([[None] * SIDE] * SIDE)]}, "rock"),
        ({"layers": [layer(GRADIENT), layer(GRADIENT)]}, "given twice"),
        ({"belief": [[0.5, 1.5]]}, "belief"),
        ({"belief": [[2.0] * SIDE] * SIDE}, "belief"),
        ({"layers": [layer(GRADIENT)], "policy": "random"}, "layer"),
    ],
)
def test_layers_that_cannot_be_are_refused(
    served: Served, terms: dict[str, Any], words: str
) -> None:
    refused = fen(served, **terms)
    assert refused.status_code == 422, refused.text
    assert words in refused.json()["detail"]
    assert served.get("owner of all", FEN).status_code == 404


def test_an_uploaded_area_takes_them_as_well(served: Served) -> None:
    terms = {"name": "fen", "budget": 9, "policy": "gp", "detection": 0.7}
    mask = "\n".join(",".join("1" * 3) for _ in range(3))
    rows = [[float(r * 3 + c) for c in range(3)] for r in range(3)]
    done = served.client.post(
        "/api/v1/areas/campaigns",
        headers=served.headers("owner of all"),
        files={"file": ("area.csv", mask)},
        data={"terms": json.dumps({**terms, "layers": [layer(rows)]})},
    )
    assert done.status_code == 201, done.text
    assert done.json()["layers"] == ["rock"]
    assert done.json()["detection"]["chance"] == 0.7
