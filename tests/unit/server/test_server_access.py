"""Who may do what: every route with every role, and secrets that are good or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from server_help import Served

from engram.server.access import NEED

ORDER = ("stranger", "viewer", "crew", "planner", "owner")
SERVER = ("stranger", "planner of all", "owner of all")
SHOWN = {"nobody": "nothing", "anybody": "signed in"}
LEAST = {
    "anybody": "stranger",
    "viewer": "viewer",
    "crew": "crew",
    "planner": "planner",
    "owner": "owner",
    "server planner": "planner of all",
    "server owner": "owner of all",
}


def routes(served: Served) -> list[tuple[str, str, str]]:
    """(method, path, need) of every route, as published."""
    paths = served.client.get("/openapi.json").json()["paths"]
    return [
        (method.upper(), path, described[NEED])
        for path, methods in paths.items()
        for method, described in methods.items()
    ]


def route_table(served: Served) -> str:
    """The routes as the server's page shows them."""
    rows = [
        f"| {method} | `{path.removeprefix('/api/v1')}` | {SHOWN.get(need, need)} |"
        for method, path, need in sorted(routes(served), key=lambda r: (r[1], r[0]))
    ]
    return "\n".join(["| method | `/api/v1...` | needs |", "| --- | --- | --- |", *rows])


def test_the_page_lists_every_route(served: Served) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "server.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- routes -->")[2].partition("<!-- end of routes -->")[0]
    assert shown.strip() == route_table(served)


def address(path: str, who: str) -> str:
    for name, value in {
        "name": "pond",
        "account": who if "/accounts/" in path else "bystander",
        "query": "1",
        "token": "9999",
        "layer": "probability",
        "form": "csv",
        "zoom": "0",
        "x": "0",
        "y": "0",
        "photo": "0" * 64,
    }.items():
        path = path.replace("{" + name + "}", value)
    return path


def allowed(who: str, need: str) -> bool:
    if need == "anybody":
        return True
    if who == "owner of all":
        return True
    if need.startswith("server "):
        return who in SERVER and SERVER.index(who) >= SERVER.index(LEAST[need])
    if who == "planner of all":
        who = "planner"
    return ORDER.index(who) >= ORDER.index(need)


def test_every_route_with_every_role(served: Served) -> None:
    """Nobody: 401; without the right: 403; with it: anything else. No route is left out."""
    table = routes(served)
    assert len(table) > 30
    people = [*ORDER, "planner of all", "owner of all"]
    for method, path, need in table:
        if need == "nobody":
            continue
        for token in (None, "wrong"):
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            answer = served.client.request(method, address(path, "owner"), headers=headers)
            assert answer.status_code == 401, (method, path, token)
            assert answer.headers["content-type"] == "application/problem+json"
        for who in people:
            if path.endswith("/events") and allowed(who, need):
                continue  # a stream without an end
            secret = served.tokens[who]
            if path.endswith("/sign-out"):
                secret = served.issue(_account(who))
            headers = {"Authorization": f"Bearer {secret}"}
            answer = served.client.request(
                method, address(path, _account(who)), headers=headers, json={}
            )
            right = allowed(who, need)
            assert (answer.status_code == 403) is not right, (method, path, who, answer.text)
            assert answer.status_code != 401
            assert answer.status_code < 500, (method, path, who, answer.text)


def _account(who: str) -> str:
    return {"owner of all": "owner", "owner": "owner of pond"}.get(who, who)


def test_another_accounts_tokens_are_not_shown(served: Served) -> None:
    assert served.get("crew", "/accounts/viewer/tokens").status_code == 403
    assert served.post("crew", "/accounts/viewer/tokens").status_code == 403
    mine = served.get("crew", "/accounts/crew/tokens").json()["tokens"]
    assert [t["kind"] for t in mine] == ["api"]
    assert not any("hash" in t or "token" in t for t in mine)


def test_campaigns_of_others_are_not_told_apart_from_none(served: Served) -> None:
    theirs, none = served.get("stranger", "/campaigns/pond"), served.get("stranger", "/campaigns/x")
    assert theirs.status_code == none.status_code == 403
    assert theirs.json()["detail"].replace("pond", "x") == none.json()["detail"]
    assert served.get("stranger", "/campaigns").json() == {"campaigns": []}
    assert served.get("owner of all", "/campaigns/x").status_code == 404


def test_revoked_expired_and_disabled(served: Served) -> None:
    people = served.context.people
    made = served.post("crew", "/accounts/crew/tokens", {"label": "phone"}).json()
    headers = {"Authorization": f"Bearer {made['token']}"}
    assert served.client.get("/api/v1/me", headers=headers).status_code == 200
    number = made["facts"]["id"]
    gone = served.client.request(
        "DELETE", f"/api/v1/accounts/crew/tokens/{number}", headers=headers
    )
    assert gone.status_code == 204
    assert served.client.get("/api/v1/me", headers=headers).status_code == 401
    people._clock = lambda: 0.0
    old = {"Authorization": f"Bearer {served.issue('crew')}"}
    people._clock = __import__("time").time
    assert served.client.get("/api/v1/me", headers=old).status_code == 401
    shut = served.client.request(
        "PATCH",
        "/api/v1/accounts/crew",
        json={"disabled": True},
        headers=served.headers("owner of all"),
    )
    assert shut.json()["disabled"] is True
    assert served.get("crew", "/me").status_code == 401


def test_secrets_are_kept_hashed(served: Served, tmp_path: Any) -> None:
    raw = b"".join(path.read_bytes() for path in tmp_path.glob("campaigns.db*"))
    assert b"engram_tokens" in raw
    for secret in served.tokens.values():
        assert secret.encode() not in raw


@pytest.mark.parametrize("kind", ["link", "session"])
def test_links_and_sessions_are_no_bearer_tokens(served: Served, kind: Any) -> None:
    headers = {"Authorization": f"Bearer {served.issue('crew', kind)}"}
    assert served.client.get("/api/v1/me", headers=headers).status_code == 401


def test_crews_act_for_themselves_and_planners_for_all(served: Served) -> None:
    body = {"cell": [0, 0], "outcome": 0.0, "by": "north"}
    refused = served.post("crew", "/campaigns/pond/tell", body)
    assert refused.status_code == 403
    assert "'north'" in refused.json()["detail"]
    assert served.post("planner", "/campaigns/pond/tell", body).status_code == 200
    assert served.post("crew", "/campaigns/pond/tell", {"cell": [0, 1], "outcome": 0.0}).is_success
    lines = served.get("viewer", "/campaigns/pond/history").json()["events"]
    assert [(e["by"], e["via"]) for e in lines[1:]] == [("north", "planner"), ("crew", "")]


def test_who_creates_a_campaign_owns_it(served: Served) -> None:
    body = {"name": "lake", "size": [4, 4], "budget": 4, "policy": "random"}
    assert served.post("crew", "/campaigns", body).status_code == 403
    assert served.post("planner of all", "/campaigns", body).status_code == 201
    assert served.get("planner of all", "/me").json()["campaigns"]["lake"] == "owner"
    assert served.get("planner", "/campaigns/lake").status_code == 403


def test_links_make_nobody_more_than_the_owner_may_give(served: Served) -> None:
    link = served.post("owner", "/campaigns/pond/links", {"account": "owner", "role": "crew"})
    assert link.status_code == 403  # the account of who runs the server
    made = served.post("owner", "/campaigns/pond/links", {"account": "north"})
    assert made.status_code == 201
    assert made.json()["qr"].startswith("<svg")
    secret = made.json()["link"].partition("token=")[2]
    page = served.client.get("/sign-in", params={"token": secret})
    assert page.status_code == 200
    assert "<strong>north</strong>" in page.text
    signed = served.client.post("/sign-in", data={"token": secret}, follow_redirects=False)
    assert signed.status_code == 303
    again = served.client.post("/sign-in", data={"token": secret}, follow_redirects=False)
    assert again.status_code == 401
    assert served.client.get("/api/v1/me").json()["campaigns"] == {"pond": "crew"}
