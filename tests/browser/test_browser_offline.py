"""Without a network: nothing is lost, nothing counts twice, conflicts are shown."""

from __future__ import annotations

import os
import time

from browser_help import PHONE, Server, person
from playwright.sync_api import Browser, expect

REPORTS = int(os.environ.get("ENGRAM_OFFLINE_REPORTS", "16"))
"""How many reports are queued; 100 for the whole torture."""
FASTER = max(2, REPORTS // 10)
"""Cells that another crew tells meanwhile."""


def test_reports_survive_closed_pages_and_a_killed_server(browser: Browser, server: Server) -> None:
    server.call(
        "/campaigns", {"name": "dunes", "size": [16, 16], "budget": 200, "policy": "random"}
    )
    handed = server.call("/campaigns/dunes/ask", {"n": REPORTS, "by": "carl"})["queries"]
    assert len(handed) == REPORTS
    with person(browser, server, viewport=PHONE) as crew:
        crew.sign_in(server.crew_link("dunes", "carl"))
        crew.ready()
        expect(crew.page.locator("#offline-ready")).to_have_text("Works without a network")
        crew.context.set_offline(True)
        expect(crew.page.locator("#network")).to_have_text("Offline")
        for n in range(REPORTS):
            if n and n % (REPORTS // 4) == 0:  # the phone is put away and taken out again
                crew.another_page()
                crew.open("/crew/dunes")
                expect(crew.page.locator("#unsent li")).to_have_count(n)
            crew.page.click("#found" if n % 3 == 0 else "#nothing")
            expect(crew.page.locator("#unsent li")).to_have_count(n + 1)  # it is on the disk
        expect(crew.page.locator("#unsent-count")).to_have_text(f"{REPORTS} not sent")

        taken = [query["cell"] for query in handed[:FASTER]]
        for cell in taken:
            server.call("/campaigns/dunes/tell", {"cell": cell, "outcome": 1, "by": "dora"})

        crew.context.set_offline(False)
        for _ in range(3):  # the power fails while reports arrive
            before = len(server.events("dunes", "tell"))
            for _ in range(200):
                if len(server.events("dunes", "tell")) > before:
                    break
                time.sleep(0.01)
            server.kill()
            time.sleep(0.5)
            server.start()
        crew.another_page()
        crew.open("/crew/dunes")
        expect(crew.page.locator("#unsent-count")).to_have_text(
            f"{FASTER} not sent", timeout=120_000
        )

        tells = server.events("dunes", "tell")
        cells = [tuple(item["cell"]) for event in tells for item in event["payload"]["items"]]
        assert len(cells) == len(set(cells)) == REPORTS
        assert {tuple(query["cell"]) for query in handed} == set(cells)
        assert sum(event["by"] == "dora" for event in tells) == FASTER
        assert sum(event["by"] == "carl" for event in tells) == REPORTS - FASTER

        conflicts = crew.page.locator(".trouble[data-state=conflict]")
        expect(conflicts).to_have_count(FASTER)
        expect(conflicts.first).to_contain_text("Told by dora")
        for _ in range(FASTER):
            conflicts.first.get_by_role("button", name="Discard mine").click()
            conflicts.first.get_by_role("button", name="Really discard?").click()
        expect(crew.page.locator("#unsent-count")).to_have_text("All sent")
