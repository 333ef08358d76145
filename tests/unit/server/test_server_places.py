"""What the pages need: one cell's story, photos, areas before they are campaigns, curves."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from PIL import Image
from server_help import Served

POND = "/campaigns/pond"


def picture(size: tuple[int, int] = (3000, 2000), form: str = "JPEG") -> bytes:
    out = io.BytesIO()
    image = Image.new("RGB", size, (30, 90, 40))
    place = Image.Exif()
    place[0x010E] = "secret garden"
    image.save(out, form, exif=place)
    return out.getvalue()


def send(served: Served, who: str, data: bytes, name: str = "p.jpg") -> Any:
    return served.client.post(
        f"/api/v1{POND}/photos", files={"file": (name, data)}, headers=served.headers(who)
    )


def test_a_photo_is_kept_with_its_measurement(served: Served) -> None:
    sent = send(served, "crew", picture())
    assert sent.status_code == 201, sent.text
    facts = sent.json()
    assert (facts["width"], facts["height"]) == (1600, 1067)
    body = {"cell": [2, 3], "outcome": 1, "note": "under the <b>oak</b>", "photo": facts["photo"]}
    assert served.post("crew", f"{POND}/tell", {**body, "photo": "0" * 64}).status_code == 404
    assert served.post("crew", f"{POND}/tell", body).status_code == 200
    story = served.get("viewer", f"{POND}/cells/2/3").json()
    assert story["state"] == "measured"
    assert [e["facts"] for e in story["events"]] == [{"note": body["note"], "photo": body["photo"]}]
    kept = served.get("viewer", f"{POND}/photos/{facts['photo']}.jpg")
    assert kept.headers["content-type"] == "image/jpeg"
    assert b"secret garden" not in kept.content
    assert Image.open(io.BytesIO(kept.content)).size == (1600, 1067)
    assert send(served, "crew", picture()).json()["photo"] == facts["photo"]
    assert send(served, "viewer", picture()).status_code == 403


@pytest.mark.parametrize(
    "data",
    [b"", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", b"GIF89a" + bytes(50),
     b"%PDF-1.4", picture((9, 9))[:200], picture((20_000, 20_000), "PNG")],
    ids=["empty", "svg", "gif", "pdf", "cut", "bomb"],
)  # fmt: skip
def test_what_is_no_photo_is_refused(served: Served, data: bytes) -> None:
    answer = send(served, "crew", data, "x.jpg")
    assert answer.status_code == 422, answer.text


def test_the_story_of_a_cell(served: Served) -> None:
    asked = served.post("crew", f"{POND}/ask").json()["queries"][0]
    row, col = asked["cell"]
    here = f"{POND}/cells/{row}/{col}"
    assert served.get("viewer", here).json()["state"] == "out"
    served.post("crew", f"{POND}/tell", {"cell": [row, col], "outcome": 0, "note": "mud"})
    served.post("planner", f"{POND}/correct", {"cell": [row, col], "outcome": 1, "reason": "typo"})
    story = served.get("viewer", here).json()
    assert [e["kind"] for e in story["events"]] == ["ask", "tell", "correct"]
    assert story["queries"][0]["state"] == "told"
    served.post("planner", f"{POND}/close", {"cells": [[11, 11]]})
    assert served.get("viewer", f"{POND}/cells/11/11").json()["state"] == "closed"
    assert served.get("viewer", f"{POND}/cells/12/0").status_code == 422


def test_an_uploaded_mask_is_shown_and_made_a_campaign(served: Served) -> None:
    mask = np.zeros((8, 6), np.uint8)
    mask[2:, :4] = 255
    out = io.BytesIO()
    Image.fromarray(mask).save(out, "PNG")
    files = {"file": ("area.png", out.getvalue())}
    headers = served.headers("planner of all")
    seen = served.client.post(
        "/api/v1/areas/preview", files=files, data={"cell": "2,2"}, headers=headers
    )
    assert seen.status_code == 200, seen.text
    assert (seen.json()["area"]["rows"], seen.json()["open"]) == (4, 6)
    assert seen.json()["closed"] == [0, 1, 2, 5, 8, 11]
    assert seen.json()["lattice"] is None
    terms = json.dumps({"name": "bay", "budget": 3, "policy": "random", "cell": [2, 2]})
    made = served.client.post(
        "/api/v1/areas/campaigns", files=files, data={"terms": terms}, headers=headers
    )
    assert made.status_code == 201, made.text
    assert served.get("planner of all", "/campaigns/bay/cells").json()["closed"] == [
        0, 1, 2, 5, 8, 11
    ]  # fmt: skip
    assert served.get("planner of all", "/campaigns/bay/place").json()["lattice"] is None
    bad = served.client.post(
        "/api/v1/areas/campaigns", files=files, data={"terms": '{"name": 3}'}, headers=headers
    )
    assert bad.status_code == 422


def test_a_drawn_place_is_shown_and_made_a_campaign(served: Served) -> None:
    for part in ("pyproj", "shapely", "rasterio", "pyogrio"):
        pytest.importorskip(part)
    ring = [[13.0, 52.0], [13.02, 52.0], [13.02, 52.01], [13.0, 52.01], [13.0, 52.0]]
    drawn = {"geojson": {"type": "Polygon", "coordinates": [ring]}, "cell_size": "200m"}
    seen = served.post("planner of all", "/areas/drawn", drawn)
    assert seen.status_code == 200, seen.text
    net = seen.json()["lattice"]
    assert 51.99 < min(map(min, net["lat"])) < max(map(max, net["lat"])) < 52.02
    assert 12.99 < min(map(min, net["lon"])) < max(map(max, net["lon"])) < 13.03
    made = served.post(
        "planner of all",
        "/campaigns",
        {"name": "park", "budget": 5, "policy": "random", "area": drawn},
    )
    assert made.status_code == 201, made.text
    assert made.json()["area"]["crs"]
    there = served.get("planner of all", "/campaigns/park/place").json()
    assert there["lattice"] == net
    assert there["outline"]["type"] in ("Polygon", "MultiPolygon")
    outing = {"crews": 2, "start": [52.005, 13.01], "hours": 2, "minutes_per_visit": 5}
    asked = served.post("planner of all", "/campaigns/park/ask", {"n": 4, "outing": outing})
    assert asked.status_code == 200, asked.text
    ways = asked.json()["tours"]
    assert sorted(q for tour in ways for q in tour["queries"]) == [1, 2, 3, 4]
    assert all(abs(lat - 52.005) < 0.01 for tour in ways for lat, _ in tour["line"])
    assert served.get("planner of all", "/campaigns/park/tours").json()["tours"] == ways
    gpx = served.get("planner of all", "/campaigns/park/export.gpx")
    assert gpx.status_code == 200
    assert b"<gpx" in gpx.content
    nowhere = served.post("planner of all", "/areas/drawn", {**drawn, "geojson": {"type": "Point"}})
    assert nowhere.status_code == 422


def test_curves_say_what_was_found_and_left(served: Served) -> None:
    for i in range(6):
        served.post("crew", f"{POND}/tell", {"cell": [i, i], "outcome": float(i % 2)})
    served.post("planner", f"{POND}/correct", {"cell": [0, 0], "outcome": 1})
    curves = served.get("viewer", f"{POND}/curves").json()
    assert [(p["told"], p["found"]) for p in curves["finds"]] == [
        (0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3), (6, 4)
    ]  # fmt: skip
    now = served.get("viewer", f"{POND}/status").json()["remaining"]
    last = curves["left"][-1]
    assert (last["expected"], last["low"], last["high"]) == (
        now["expected"], now["low"], now["high"]
    )  # fmt: skip
    assert all(p["low"] <= p["expected"] <= p["high"] for p in curves["left"])


def test_the_owner_chooses_the_map_behind(served: Served) -> None:
    tiles = {"tiles": "https://tiles.example/{z}/{x}/{y}.png", "credit": "Example"}

    def put(who: str, body: dict[str, str]) -> Any:
        headers = served.headers(who)
        return served.client.request("PUT", f"/api/v1{POND}/page", json=body, headers=headers)

    assert put("planner", tiles).status_code == 403
    assert put("owner", tiles).status_code == 200
    kept = served.get("viewer", f"{POND}/page").json()
    assert kept == {**tiles, "picture": "", "corners": None}
    assert put("owner", {"picture": "0" * 64}).status_code == 404
    assert put("owner", {"picture": "../x"}).status_code == 422
    for bad in ("javascript:alert(1)", "http://x/{z}/{x}/{y}", "https://x/{z}; script-src *{x}{y}"):
        assert put("owner", {"tiles": bad}).status_code == 422
