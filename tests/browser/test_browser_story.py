"""The whole story, with a real browser: a planner at a desk or on a phone, a crew in the field."""

from __future__ import annotations

from typing import Any

import pytest
from browser_help import DESKTOP, PHONE, Person, Server, person
from playwright.sync_api import Browser, Page, expect


def draw(page: Page, corners: list[tuple[float, float]], button: str = "#draw") -> None:
    """Draw on the map; corners are shares of its width and height."""
    page.click(button)
    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map").bounding_box()
    assert box is not None
    for x, y in corners:
        page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
    page.click("#finish-drawing")


def create_drawn(planner: Person, name: str) -> None:
    page = planner.open("/new")
    page.fill("[name=where]", "52.00, 13.00, 14")
    page.click("#go")
    page.fill("[name=cell-size]", "150m")
    draw(page, [(0.2, 0.2), (0.8, 0.25), (0.7, 0.8), (0.25, 0.75)])
    expect(page.locator(".preview-words")).to_contain_text("cells of 150 m")
    page.fill("[name=name]", name)
    page.select_option("[name=policy]", "random")
    page.click("#wizard-form [type=submit]")
    planner.comes_to(f"/campaigns/{name}")


def hand_out(page: Page, crew: str) -> None:
    page.fill("[name=crew] >> nth=0", crew)
    page.get_by_role("button", name="Add a crew").click()
    page.fill("[name=crew] >> nth=1", "zoe")
    page.click("#ask-form [type=submit]")
    expect(page.locator(".out h3")).to_have_text([f"{crew}: 3", "zoe: 3"])


def invite(page: Page, crew: str) -> str:
    page.click("#people > summary")
    page.fill("[name=account]", crew)
    page.click("#link-form [type=submit]")
    expect(page.locator(".qr")).to_be_visible()
    return page.input_value("#made-link")


def measured_are(page: Page, told: str, found: str) -> None:
    expect(page.locator(".counts dd").nth(0)).to_have_text(told)
    expect(page.locator(".counts dd").nth(1)).to_have_text(found)


def tell_in_the_field(crew: Person, link: str, photo: dict[str, Any]) -> None:
    """One report online, two without a network, and all of them sent in the end."""
    crew.sign_in(link)
    page = crew.page
    crew.ready()
    expect(page.locator("#todo li")).to_have_count(3)
    expect(page.locator(".now .way")).to_contain_text("km")
    expect(page.locator("#offline-ready")).to_have_text("Works without a network")
    page.click(".report summary")
    page.fill("[name=value]", "0.7")
    page.fill("[name=note]", "by the old oak")
    page.set_input_files("[name=photo]", photo)
    page.click("#found")
    expect(page.locator("#todo li")).to_have_count(2)
    expect(page.locator("#unsent-count")).to_have_text("All sent")
    crew.context.set_offline(True)
    expect(page.locator("#network")).to_have_text("Offline")
    page.click("#nothing")
    expect(page.locator("#unsent li")).to_have_count(1)
    page.reload()
    crew.ready()
    expect(page.locator("#todo li")).to_have_count(1)
    page.click("#found")
    expect(page.locator("#unsent li")).to_have_count(2)
    expect(page.locator("#unsent-count")).to_have_text("2 not sent")
    crew.context.set_offline(False)
    expect(page.locator("#unsent-count")).to_have_text("All sent")


def show_cell(page: Page, cell: list[int]) -> None:
    page.fill("#find-cell [name=row]", str(cell[0]))
    page.fill("#find-cell [name=col]", str(cell[1]))
    page.click("#find-cell [type=submit]")
    expect(page.locator("#cell h3").first).to_contain_text(f"Row {cell[0]}, column {cell[1]}")


def width_of(page: Page, picture: str) -> int:
    """Pixels of a picture, once it is there."""
    found = page.locator(picture).evaluate("i => i.decode().then(() => i.naturalWidth)")
    return int(found)


def picture() -> dict[str, Any]:
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (2400, 1200), (40, 120, 60)).save(out, "PNG")
    return {"name": "oak.png", "mimeType": "image/png", "buffer": out.getvalue()}


@pytest.mark.parametrize(
    ("name", "crew_name", "size"), [("heath", "anna", DESKTOP), ("moor", "mia", PHONE)]
)
def test_a_planner_and_a_crew_work_together(
    browser: Browser, server: Server, name: str, crew_name: str, size: dict[str, int]
) -> None:
    phone = {
        "viewport": PHONE,
        "geolocation": {"latitude": 52.05, "longitude": 13.0},
        "permissions": ["geolocation"],
    }
    with (
        person(browser, server, viewport=size) as planner,
        person(browser, server, **phone) as crew,
    ):
        planner.sign_in(server.owner_link())
        create_drawn(planner, name)
        page = planner.page
        hand_out(page, crew_name)
        measured_are(page, "0", "0")
        tell_in_the_field(crew, invite(page, crew_name), picture())

        measured_are(page, "3", "2")  # live, without a reload
        tells = server.events(name, "tell")
        assert len(tells) == 3
        assert {event["by"] for event in tells} == {crew_name}
        assert len({event["key"] for event in tells}) == 3

        cell = tells[0]["payload"]["items"][0]["cell"]
        show_cell(page, cell)
        expect(page.locator("#cell q")).to_have_text("by the old oak")
        assert (
            page.locator("#cell .photo").evaluate("i => i.decode().then(() => i.naturalWidth)")
            == 1600
        )
        page.get_by_text("Correct", exact=True).first.click()
        page.fill("#correct-form [name=outcome]", "0")
        page.fill("#correct-form [name=reason]", "a fox")
        page.click("#correct-form [type=submit]")
        measured_are(page, "3", "1")
        expect(page.locator("#said")).to_contain_text("corrected")  # the card is new by then

        page.locator(".why-box summary").click()
        expect(page.locator(".why")).to_contain_text("candidates ranked by")
        assert (
            page.locator(".why-picture").evaluate("i => i.decode().then(() => i.naturalWidth)") > 0
        )

        page.locator("#time").fill("2")
        measured_are(page, "0", "0")
        expect(page.locator(".time-words")).to_contain_text("Past: after event 2")
        page.click("#to-now")
        measured_are(page, "3", "1")

        page.click("#area > summary")
        before = len(server.call(f"/campaigns/{name}/cells")["closed"])
        draw(page, [(0.45, 0.45), (0.75, 0.45), (0.75, 0.7), (0.45, 0.7)])
        page.click("#close-drawn")
        expect(page.locator("#draw")).to_be_visible()
        assert len(server.call(f"/campaigns/{name}/cells")["closed"]) > before
        page.fill("[name=amount]", "7")
        page.click("#extend-form [type=submit]")
        expect(page.locator(".counts dd").nth(3)).to_contain_text("/ 57")


def test_a_plain_grid_by_keyboard_alone(browser: Browser, server: Server) -> None:
    with person(browser, server) as planner:
        planner.sign_in(server.owner_link())
        page = planner.page
        press = page.keyboard.press

        def tab_to(selector: str) -> None:
            for _ in range(80):
                if page.evaluate("s => document.activeElement.matches(s)", selector):
                    return
                press("Tab")
            raise AssertionError(f"Tab does not lead to {selector}")

        tab_to("a[href='/new']")
        press("Enter")
        page.wait_for_url("**/new")
        planner.ready()
        tab_to("[name=kind]")
        press("ArrowDown")
        press("ArrowDown")
        expect(page.locator(".preview-words")).to_have_text("256 cells, 256 open")
        tab_to("[name=rows]")
        page.keyboard.type("8")
        expect(page.locator(".preview-words")).to_have_text("128 cells, 128 open")
        tab_to("[name=name]")
        page.keyboard.type("keys")
        tab_to("[name=policy]")
        page.keyboard.type("Random")
        tab_to("#wizard-form [type=submit]")
        press("Enter")
        page.wait_for_url("**/campaigns/keys")
        planner.ready()

        tab_to("#map")
        for key in ("ArrowRight", "ArrowDown", "ArrowDown", "Enter"):
            press(key)
        expect(page.locator("#cell h3").first).to_have_text("Row 6, column 9 · open")
        expect(page.locator("#said")).to_contain_text("Row 6, column 9: open")
        tab_to(".acts .act:first-child summary")
        press("Enter")
        tab_to("#tell-form [name=outcome]")
        press("Enter")
        measured_are(page, "1", "1")

        tab_to("#area > summary")
        press("Enter")
        tab_to("#draw")
        press("Enter")  # the map has the focus now: set corners around the cell that is marked
        for steps in (["ArrowUp"] * 5 + ["ArrowLeft"] * 5, ["ArrowRight"] * 4, ["ArrowDown"] * 3):
            for key in steps:
                press(key)
            press(" ")
        press("Enter")
        tab_to("#close-drawn")
        press("Enter")
        expect(page.locator("#draw")).to_be_visible()
        assert len(server.call("/campaigns/keys/cells")["closed"]) >= 3
