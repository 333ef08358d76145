"""The pages: what they are made of, and which hosts they may ask."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from server_help import Served

from engram.server.routes.shells import FOLDER, version

SCRIPTS = sorted((FOLDER / "js").glob("*.js"))
PAGES = ["/new", "/campaigns/pond", "/crew/pond"]
MOST_SCRIPT = 400_000


def session(served: Served, who: str) -> dict[str, str]:
    """The cookie of somebody who signed in."""
    found = served.client.post("/api/v1/sign-in", json={"token": served.tokens[who]})
    assert found.status_code == 200, found.text
    return {"Cookie": found.headers["set-cookie"].partition(";")[0]}


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("path", PAGES)
def test_pages_have_no_script_of_their_own_and_ask_this_server_alone(
    served: Served, path: str
) -> None:
    answer = served.client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "http" not in policy
    tags = Tags()
    tags.feed(answer.text)
    for tag, attributes in tags.found:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        assert tag != "style"
        if tag == "script":
            assert attributes["src"]
        for name in ("src", "href"):
            assert (attributes.get(name) or "/static/").startswith("/static/")
            if name in attributes:
                assert served.client.get(str(attributes[name])).status_code == 200


def test_the_first_page_is_for_those_who_signed_in(served: Served) -> None:
    assert served.client.get("/").headers["location"] == "/sign-in"
    home = served.client.get("/", headers=session(served, "viewer"))
    assert "/static/js/home.js" in home.text


def test_tiles_of_an_owner_open_the_policy_to_their_host_for_members(served: Served) -> None:
    tiles = {"tiles": "https://{s}.tiles.example/{z}/{x}/{y}.png", "credit": "us"}
    answer = served.client.request(
        "PUT", "/api/v1/campaigns/pond/page", json=tiles, headers=served.headers("owner")
    )
    assert answer.status_code == 200

    def hosts(headers: Any) -> str:
        page = served.client.get("/campaigns/pond", headers=headers)
        found = re.search("img-src ([^;]*);", page.headers["content-security-policy"])
        assert found is not None
        return found[1]

    assert "https://*.tiles.example" in hosts(session(served, "viewer"))
    assert "tiles.example" not in hosts(session(served, "stranger"))
    assert "tiles.example" not in hosts({})


def test_scripts_stay_light() -> None:
    ours = sum(path.stat().st_size for path in SCRIPTS)
    theirs = sum(path.stat().st_size for path in (FOLDER / "vendor").rglob("*.js"))
    assert ours + theirs < MOST_SCRIPT


def test_third_party_files_have_licence_and_version_beside_them() -> None:
    for folder in (FOLDER / "vendor").iterdir():
        assert (folder / "LICENSE").is_file()
        assert re.search(r"\d+\.\d+", (folder / "VERSION").read_text())


def test_every_word_of_the_pages_is_in_the_table() -> None:
    words = (FOLDER / "js" / "strings.js").read_text()
    known = set(re.findall(r"^  (\w+):", words, re.MULTILINE))
    for path in SCRIPTS:
        text = path.read_text()
        used = set(re.findall(r"""\bt\(\s*"(\w+)"[,)\s]""", text))
        assert used <= known, path.name
        for begin in re.findall(r"\bt\(\s*`(\w+)\$\{", text):
            assert any(name.startswith(begin) for name in known), (path.name, begin)


def test_scripts_make_no_code_of_text() -> None:
    forbidden = re.compile(
        r"innerHTML\s*=|insertAdjacentHTML|document\.write|\beval\(|https?://(?!www\.w3\.org|…)"
    )
    for path in SCRIPTS:
        assert not forbidden.search(path.read_text()), path.name


def test_the_service_worker_names_the_version_of_the_files(served: Served) -> None:
    answer = served.client.get("/crew/sw.js")
    assert answer.text.startswith(f'const VERSION = "{version()}";')
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "no-cache"


def imports_of(name: str) -> set[str]:
    """A module and all that it imports."""
    found, new = set[str](), {name}
    while new:
        one = new.pop()
        found.add(one)
        text = (FOLDER / "js" / f"{one}.js").read_text()
        new |= set(re.findall(r'from "\./(\w+)\.js"', text)) - found
    return found


def test_the_service_worker_keeps_all_that_the_crews_page_is_made_of(served: Served) -> None:
    script = (FOLDER / "js" / "service_worker.js").read_text()
    listed = re.search(r"MODULES = \[(.*?)\]", script, re.DOTALL)
    assert listed is not None
    assert set(re.findall(r'"(\w+)"', listed[1])) == imports_of("crew")
    tags = Tags()
    tags.feed(served.client.get("/crew/pond").text)
    named = {str(a[key]) for _, a in tags.found for key in ("src", "href") if key in a}
    for path in named - {"/static/js/crew.js"}:
        assert f'"{path}"' in script
    for path in re.findall(r'"(/static/[^"]*)"', script):
        assert served.client.get(path).status_code == 200


def test_files_are_asked_for_again_but_not_sent_again(served: Served) -> None:
    first = served.client.get("/static/js/dom.js")
    assert first.headers["cache-control"] == "no-cache"
    again = served.client.get("/static/js/dom.js", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    assert served.client.get("/static/../app.py").status_code == 404
    assert served.client.get("/static/%2e%2e/app.py").status_code == 404
