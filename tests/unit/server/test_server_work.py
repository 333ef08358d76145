"""Asking, telling and looking over HTTP: what the campaign layer does, and its words."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
from PIL import Image
from server_help import Served

from engram.campaign import open_campaign, verify

POND = "/campaigns/pond"


def told(served: Served, *cells: tuple[int, int], who: str = "crew") -> list[Any]:
    return [
        served.post(who, f"{POND}/tell", {"cell": list(c), "outcome": float(i % 2)})
        for i, c in enumerate(cells)
    ]


def test_a_lost_answer_is_repeated_by_its_key(served: Served) -> None:
    body = {"cell": [3, 4], "outcome": 1, "key": "visit-1"}
    first = served.post("crew", f"{POND}/tell", body)
    again = served.post("crew", f"{POND}/tell", body)
    assert first.status_code == again.status_code == 200
    assert (first.json()["repeated"], again.json()["repeated"]) == (False, True)
    assert first.json()["seq"] == again.json()["seq"]
    header = served.post(
        "crew",
        f"{POND}/tell",
        {"cell": [3, 4], "outcome": 1},
        headers={"Idempotency-Key": "visit-1"},
    )
    assert header.json()["repeated"] is True
    other = served.post("crew", f"{POND}/tell", {**body, "outcome": 0})
    assert other.status_code == 409
    assert "'visit-1' was used for another request" in other.json()["detail"]
    both = served.post("crew", f"{POND}/tell", body, headers={"Idempotency-Key": "x"})
    assert both.status_code == 422


def test_asks_are_shared_out_and_explained(served: Served) -> None:
    mine = served.post("crew", f"{POND}/ask", {"n": 2, "key": "k", "lease": 3600}).json()
    assert [q["by"] for q in mine["queries"]] == ["crew", "crew"]
    assert all(q["until"] > q["at"] for q in mine["queries"])
    again = served.post("crew", f"{POND}/ask", {"n": 2, "key": "k", "lease": 3600}).json()
    assert again["queries"] == mine["queries"]
    theirs = served.post("planner", f"{POND}/ask", {"n": 2, "by": "north"}).json()
    cells = [tuple(q["cell"]) for q in (*mine["queries"], *theirs["queries"])]
    assert len(set(cells)) == 4
    number = mine["queries"][0]["query"]
    why = served.get("viewer", f"{POND}/queries/{number}")
    assert why.json()["cell"] == mine["queries"][0]["cell"]
    assert "candidates ranked by" in why.json()["words"]
    drawn = served.get("viewer", f"{POND}/queries/{number}/picture.png")
    assert Image.open(io.BytesIO(drawn.content)).format == "PNG"
    assert served.get("viewer", f"{POND}/queries/99").status_code == 404


def test_what_cannot_be_is_refused_in_the_words_of_the_command_line(served: Served) -> None:
    told(served, (0, 0))
    second = served.post("crew", f"{POND}/tell", {"cell": [0, 0], "outcome": 1})
    assert second.status_code == 409
    assert second.json()["detail"] == "cell (0, 0) was measured already; correct it instead"
    assert second.json()["type"] == "/problems/conflict"
    outside = served.post("crew", f"{POND}/tell", {"cell": [50, 0], "outcome": 1})
    assert outside.status_code == 422
    assert "outside the grid of 12 rows" in outside.json()["detail"]
    many = served.post("crew", f"{POND}/ask", {"n": 100})
    assert many.status_code == 409
    assert many.json()["type"] == "/problems/exhausted"


def test_measurements_are_corrected_withdrawn_and_failed(served: Served) -> None:
    told(served, (0, 0), (0, 1))
    asked = served.post("crew", f"{POND}/ask").json()["queries"][0]
    failed = served.post("crew", f"{POND}/fail", {"query": asked["query"], "retry": None})
    assert failed.json()["cells"] == [asked["cell"]]
    fixed = served.post("planner", f"{POND}/correct", {"cell": [0, 0], "outcome": 1.0})
    assert fixed.status_code == 200
    assert served.post("planner", f"{POND}/retract", {"cell": [0, 1]}).status_code == 200
    assert served.post("planner", f"{POND}/close", {"cells": [[5, 5], [5, 6]]}).status_code == 200
    assert served.post("planner", f"{POND}/open", {"cells": [[5, 6]]}).status_code == 200
    assert served.post("planner", f"{POND}/extend", {"amount": 5}).json()["budget"] == 45
    cells = served.get("viewer", f"{POND}/cells").json()
    assert [(m["cell"], m["outcome"]) for m in cells["measured"]] == [([0, 0], 1.0)]
    row, col = asked["cell"]
    assert cells["closed"] == sorted([5 * 12 + 5, row * 12 + col])


def test_many_at_once_are_all_or_none(served: Served) -> None:
    items = [{"cell": [1, c], "outcome": 0.0} for c in range(5)]
    bad = served.post(
        "crew", f"{POND}/tell-many", {"items": [*items, {"cell": [99, 0], "outcome": 0}]}
    )
    assert bad.status_code == 422
    assert bad.json()["detail"].startswith("item 6: ")
    assert served.get("viewer", f"{POND}").json()["seq"] == 1
    assert served.post("crew", f"{POND}/tell-many", {"items": items}).json()["cells"] == [
        item["cell"] for item in items
    ]
    table = "row,col,outcome\n2,0,1\n2,1,0\n"
    sent = served.client.post(
        f"/api/v1{POND}/tell-file",
        files={"file": ("../../x/notes.csv", table)},
        data={"key": "file-1"},
        headers=served.headers("crew"),
    )
    assert sent.json()["cells"] == [[2, 0], [2, 1]], sent.text


def test_conditions(served: Served) -> None:
    first = served.get("viewer", f"{POND}/status")
    etag = first.headers["etag"]
    assert etag == f'"{served.get("viewer", POND).json()["head"]}"'
    for path in ("", "/status", "/cells", "/history", "/beliefs", "/beliefs/total.png", "/peek"):
        same = served.get("viewer", f"{POND}{path}", headers={"If-None-Match": etag})
        assert same.status_code == 304, path
        assert same.content == b""
    body = {"cell": [7, 7], "outcome": 0}
    assert served.post("crew", f"{POND}/tell", body, headers={"If-Match": etag}).is_success
    late = {"cell": [7, 8], "outcome": 0}
    refused = served.post("crew", f"{POND}/tell", late, headers={"If-Match": etag})
    assert refused.status_code == 412
    ask = served.post("crew", f"{POND}/ask", {}, headers={"If-Match": etag})
    assert ask.status_code == 412
    assert (
        served.get("viewer", f"{POND}/status", headers={"If-None-Match": etag}).status_code == 200
    )
    assert served.get("viewer", POND).json()["seq"] == 2


def test_a_lease_that_ends_changes_the_etag(served: Served) -> None:
    served.post("crew", f"{POND}/ask", {"lease": 0.001})
    cells = served.get("viewer", f"{POND}/cells")
    assert cells.json()["out"] == []
    assert cells.headers["etag"] == f'"{cells.json()["head"]}.1"'
    body = {"cell": [7, 7], "outcome": 0}
    match = {"If-Match": cells.headers["etag"]}
    assert served.post("crew", f"{POND}/tell", body, headers=match).is_success


def test_one_computation_serves_all_who_want_the_same(served: Served) -> None:
    import asyncio

    async def ask_twenty() -> list[Any]:
        http = served.client._http
        return await asyncio.gather(
            *(
                http.get(f"/api/v1{POND}/status", headers=served.headers("viewer"))
                for _ in range(20)
            )
        )

    answers = served.client.run(ask_twenty())
    assert {a.status_code for a in answers} == {200}
    assert served.context.workers.jobs.count("status") == 1  # type: ignore[attr-defined]
    served.get("crew", f"{POND}/status")
    assert served.context.workers.jobs.count("status") == 1  # type: ignore[attr-defined]
    told(served, (0, 0))
    served.get("crew", f"{POND}/status")
    assert served.context.workers.jobs.count("status") == 2  # type: ignore[attr-defined]


def test_beliefs_as_numbers_and_pictures_now_and_then(served: Served) -> None:
    made = {"name": "lake", "size": [12, 12], "budget": 20, "policy": "gp"}
    assert served.post("owner of all", "/campaigns", made).status_code == 201
    lake, who = "/campaigns/lake", "owner of all"
    before = served.get(who, f"{lake}/beliefs?layers=probability,doubt").json()
    for i, cell in enumerate([[2, 2], [2, 3], [9, 9]]):
        served.post(who, f"{lake}/tell", {"cell": cell, "outcome": float(i < 2)})
    now = served.get(who, f"{lake}/beliefs").json()
    assert (now["rows"], now["cols"], now["seq"]) == (12, 12, 4)
    chance = np.array(now["layers"]["probability"])
    assert chance[2, 4] > chance[9, 8]
    assert {"total", "exploration", "exploitation", "doubt"} <= now["layers"].keys()
    past = served.get(who, f"{lake}/beliefs?at=1&layers=probability,doubt").json()
    assert past["layers"] == before["layers"]
    assert served.get(who, f"{lake}/cells?at=2").json()["measured"][0]["cell"] == [2, 2]
    assert served.get(who, f"{lake}/beliefs?at=9").status_code == 404
    drawn = served.get(who, f"{lake}/beliefs/probability.png?low=0&high=1")
    image = np.asarray(Image.open(io.BytesIO(drawn.content)))
    assert image.shape == (12, 12, 4)
    assert image[2, 4, 1] > image[9, 8, 1]  # viridis grows greener
    tile = served.get(who, f"{lake}/beliefs/probability/3/0/0.png")
    pixels = np.asarray(Image.open(io.BytesIO(tile.content)))
    assert pixels.shape == (256, 256, 4)
    assert (pixels[:96, :96, 3] == 255).all()
    assert (pixels[96:, :, 3] == 0).all()
    assert served.get(who, f"{lake}/beliefs/probability/3/9/9.png").status_code == 404
    assert served.get(who, f"{lake}/beliefs/hope.png").status_code == 404


def test_history_comes_in_pages_and_exports_can_be_told_again(served: Served) -> None:
    told(served, (0, 0), (0, 1), (0, 2))
    page = served.get("viewer", f"{POND}/history?after=1&limit=2").json()
    assert [e["seq"] for e in page["events"]] == [2, 3]
    assert page["more"] is True
    assert served.get("viewer", f"{POND}/history?after=3").json()["more"] is False
    table = served.get("viewer", f"{POND}/export.csv")
    assert table.headers["content-disposition"] == 'attachment; filename="campaign.csv"'
    assert len(table.text.splitlines()) == 4
    log = json.loads(served.get("viewer", f"{POND}/export.json").content)
    assert len(log["events"]) == 4
    assert served.get("viewer", f"{POND}/export.exe").status_code == 422
    assert served.post("viewer", f"{POND}/verify").json()["ok"] is True


def test_the_command_line_and_http_share_a_campaign(served: Served) -> None:
    db = served.context.settings.db
    shell = open_campaign("pond", db=db)
    shell.tell((8, 8), 1.0, by="shell")
    assert served.post("crew", f"{POND}/tell", {"cell": [8, 8], "outcome": 0}).status_code == 409
    served.post("crew", f"{POND}/ask", {"n": 2})
    told(served, (8, 9))
    assert shell.refresh().seq == 4
    assert verify(shell).ok
