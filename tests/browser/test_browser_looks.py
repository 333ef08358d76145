"""Every page at every size, light and dark: nobody is shut out, nothing is cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser_help import DESKTOP, PHONE, Person, Server, person
from playwright.sync_api import Browser, expect

AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
HUGE = {"width": 3840, "height": 2160}


@pytest.fixture(scope="module")
def bog(server: Server) -> str:
    """A campaign with a bit of everything."""
    terms = {"name": "bog", "size": [10, 12], "budget": 60, "policy": "random", "closed": [[0, 0]]}
    server.call("/campaigns", terms)
    for cell, outcome in (([3, 4], 1), ([5, 6], 0)):
        server.call("/campaigns/bog/tell", {"cell": cell, "outcome": outcome, "note": "wet"})
    server.call("/campaigns/bog/ask", {"n": 3, "by": "owner"})
    server.call("/campaigns/bog/fail", {"cell": [9, 9]})
    return "bog"


def serious(someone: Person) -> list[str]:
    """What axe finds that keeps people out."""
    someone.page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = someone.page.evaluate("axe.run(document)")
    return [
        f"{fault['id']}: {node['html'][:120]}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


def fits(someone: Person) -> bool:
    """Whether nothing sticks out at the side."""
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    return bool(someone.page.evaluate(wide))


@pytest.mark.parametrize(
    ("size", "scheme"), [(DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark"), (HUGE, "light")]
)
def test_pages_shut_nobody_out(
    browser: Browser, server: Server, bog: str, size: dict[str, int], scheme: Any
) -> None:
    with person(browser, server, viewport=size, color_scheme=scheme) as someone:
        someone.open("/sign-in", ready=False)
        assert serious(someone) == []
        someone.sign_in(server.owner_link())
        expect(someone.page.locator(".cards")).to_be_visible()
        assert serious(someone) == []
        assert fits(someone)
        for path in ("/new", f"/campaigns/{bog}", f"/crew/{bog}"):
            page = someone.open(path)
            if path.startswith("/campaigns"):
                expect(page.locator(".charts svg")).to_have_count(2)
                page.fill("#find-cell [name=row]", "3")
                page.fill("#find-cell [name=col]", "4")
                page.click("#find-cell [type=submit]")
                expect(page.locator("#cell h3").first).to_contain_text("measured")
                for panel in ("area", "log", "people"):
                    page.click(f"#{panel} > summary")
            assert serious(someone) == [], path
            assert fits(someone), path
