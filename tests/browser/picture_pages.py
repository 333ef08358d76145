"""Pictures of every page for the documentation: at a desk, in the dark, on a phone.

python examples/park.py park.db
python tests/browser/picture_pages.py park.db --out docs/images
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
from pathlib import Path
from typing import Any

from browser_help import DESKTOP, PHONE, Person, Server, launched, person
from PIL import Image
from playwright.sync_api import expect, sync_playwright

MODES: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": DESKTOP, "color_scheme": "light"},
    "dark": {"viewport": DESKTOP, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light"},
}
COLOURS = 160


def keep(someone: Person, path: Path) -> None:
    """The page as a small picture."""
    someone.page.wait_for_timeout(700)
    taken = Image.open(io.BytesIO(someone.page.screenshot())).convert("RGB")
    small = taken.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def planner(someone: Person) -> None:
    page = someone.open("/campaigns/park")
    expect(page.locator(".charts svg")).to_have_count(2)
    page.wait_for_selector(".legend:not(.is-off)", state="attached")
    page.locator(".stops button").first.click()
    expect(page.locator("#cell h3").first).to_contain_text("out")
    page.locator(".why-box summary").click()
    page.locator(".why-picture").evaluate("i => i.decode()")
    page.evaluate("document.querySelector('.side').scrollTop = 0; window.scrollTo(0, 0)")


def wizard(someone: Person) -> None:
    page = someone.open("/new")
    page.fill("[name=where]", "52.48, 13.27, 13")
    page.click("#go")
    page.click("#draw")
    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map").bounding_box()
    assert box is not None
    for x, y in ((0.2, 0.25), (0.55, 0.12), (0.8, 0.4), (0.7, 0.8), (0.3, 0.75)):
        page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
    page.click("#finish-drawing")
    expect(page.locator(".preview-words")).to_contain_text("open")
    page.evaluate("window.scrollTo(0, 0)")


def pictures(server: Server, out: Path) -> None:
    with sync_playwright() as playwright:
        browser = launched(playwright)
        for mode, options in MODES.items():
            with person(browser, server, **options) as someone:
                someone.open("/sign-in", ready=False)
                keep(someone, out / f"pages-sign-in-{mode}.png")
                someone.sign_in(server.owner_link())
                expect(someone.page.locator(".cards")).to_be_visible()
                keep(someone, out / f"pages-home-{mode}.png")
                planner(someone)
                keep(someone, out / f"pages-map-{mode}.png")
                someone.page.locator("#cell").scroll_into_view_if_needed()
                someone.page.locator("#cell > summary").evaluate("e => e.scrollIntoView()")
                keep(someone, out / f"pages-cell-{mode}.png")
                wizard(someone)
                keep(someone, out / f"pages-new-{mode}.png")
            where = {"latitude": 52.478, "longitude": 13.245}
            crew = {**options, "geolocation": where, "permissions": ["geolocation"]}
            with person(browser, server, **crew) as someone:
                someone.sign_in(server.crew_link("park", "north"))
                someone.ready()
                expect(someone.page.locator("#offline-ready")).to_contain_text("Works")
                if mode == "dark":  # one report that waits for the network
                    someone.context.set_offline(True)
                    someone.page.click("#found")
                keep(someone, out / f"pages-crew-{mode}.png")
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(given.database, Path(folder) / "campaigns.db")
        server = Server(Path(folder)).start()
        try:
            pictures(server, given.out)
        finally:
            server.kill()


if __name__ == "__main__":
    main()
