"""Visits that may miss a target, on the pages: created so, told so, visited again."""

from __future__ import annotations

from browser_help import PHONE, Server, person
from playwright.sync_api import Browser, expect
from test_browser_story import show_cell


def test_a_cell_that_may_hold_more_is_visited_again(browser: Browser, server: Server) -> None:
    with person(browser, server) as planner:
        planner.sign_in(server.owner_link())
        page = planner.open("/new")
        page.check("[name=kind][value=plain]")
        page.fill("[name=name]", "fog")
        page.select_option("[name=policy]", "gp")
        page.click("#may-miss > summary")
        page.fill("[name=detection]", "0.6")
        page.click("#wizard-form [type=submit]")
        page.wait_for_url("**/campaigns/fog")
        planner.ready()
        assert server.call("/campaigns/fog")["detection"]["chance"] == 0.6

        show_cell(page, [3, 4])
        page.click("details.act:has(#tell-form) > summary")
        page.fill("#tell-form [name=outcome]", "0")
        page.fill("#tell-form [name=detection]", "0.9")
        page.click("#tell-form [type=submit]")
        expect(page.locator("#cell .story li")).to_have_count(1)
        expect(page.locator("#tell-form")).to_have_count(1)  # it may be told again
        server.call("/campaigns/fog/tell", {"cell": [3, 4], "outcome": 0})
        show_cell(page, [3, 4])
        expect(page.locator("#cell h3").first).to_contain_text("may be visited again")
        expect(page.locator("#cell .visits li")).to_have_count(2)
        expect(page.locator("#cell .visits li").first).to_contain_text("90 %")
        expect(page.locator(".missed")).to_contain_text("1 visited cell(s) may still hold")


def test_a_crew_says_how_far_its_visit_can_be_trusted(browser: Browser, server: Server) -> None:
    terms = {"name": "mist", "size": [8, 8], "budget": 20, "policy": "gp", "detection": 0.6}
    server.call("/campaigns", terms)
    server.call("/campaigns/mist/ask", {"n": 2, "by": "ida"})
    with person(browser, server, viewport=PHONE) as crew:
        crew.sign_in(server.crew_link("mist", "ida"))
        page = crew.page
        crew.ready()
        page.click(".report summary")
        page.fill(".report [name=detection]", "7")
        page.click("#nothing")
        expect(page.locator("#todo li")).to_have_count(2)  # no chance is above 1: nothing is kept
        page.fill(".report [name=detection]", "0.95")
        page.click("#nothing")
        expect(page.locator("#todo li")).to_have_count(1)
        expect(page.locator("#unsent-count")).to_have_text("All sent")
    (tell,) = server.events("mist", "tell")
    assert tell["payload"]["items"][0]["detection"]["chance"] == 0.95
