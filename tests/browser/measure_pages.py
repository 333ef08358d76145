"""How fast the pages are, measured in the browser: a map of 100,000 cells that is moved and zoomed,
the first paint of every page, the weight of their scripts.

    python tests/browser/measure_pages.py --out benchmarks/results/pages.md
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from browser_help import Person, Server, launched, person
from playwright.sync_api import Browser, sync_playwright

from engram.server.routes.shells import FOLDER

SIZE = [250, 400]
ROUNDS = 6
WATCH = """() => {
  window.stalls = [];
  window.frames = [];
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) window.stalls.push(one.duration);
  }).observe({ type: "longtask" });
  let last = performance.now();
  const frame = (now) => {
    window.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""
PAINT = """() => performance.getEntriesByName("first-contentful-paint")[0].startTime"""
TASK = {
    "plain": {"size": SIZE},
    "earth": {
        "area": {
            "cell_size": "100m",
            "geojson": {
                "type": "Polygon",
                "coordinates": [
                    [[13.0, 52.0], [13.46, 52.0], [13.46, 52.28], [13.0, 52.28], [13.0, 52.0]]
                ],
            },
        }
    },
}


def moved(someone: Person) -> dict[str, float]:
    """Drag and zoom the map again and again; the longest task of the page and gap of frames."""
    page = someone.page
    box = page.locator("#map").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.evaluate(WATCH)
    for step in range(ROUNDS):
        page.mouse.move(x, y)
        page.mouse.wheel(0, -240 if step % 3 else 480)
        page.wait_for_timeout(400)
        page.mouse.down()
        for k in range(12):
            page.mouse.move(x + 15 * k * (-1) ** step, y + 8 * k)
        page.mouse.up()
        page.wait_for_timeout(300)
    found: dict[str, Any] = page.evaluate("({ stalls: window.stalls, frames: window.frames })")
    return {
        "longest task": max(found["stalls"], default=0.0),
        "tasks over 50 ms": float(len(found["stalls"])),
        "frames": float(len(found["frames"])),
        "median gap": sorted(found["frames"])[len(found["frames"]) // 2],
        "longest gap": max(found["frames"]),
    }


def opened(browser: Browser, server: Server, path: str) -> str:
    """A page by somebody whose browser has nothing of it yet."""
    with person(browser, server) as someone:
        someone.sign_in(server.owner_link())
        someone.page.route("**/*", lambda route: route.continue_())  # nothing from a cache
        someone.open(path, ready=path != "/?")
        ready = someone.page.evaluate("performance.now()")
        paint = someone.page.evaluate(PAINT)
    return f"| {path.strip('?')} | {paint:.0f} | {ready:.0f} |"


def measured(server: Server) -> list[str]:
    lines = ["| page | first paint, ms | everything there, ms |", "| --- | --- | --- |"]
    with sync_playwright() as playwright:
        browser = launched(playwright)
        for path in ("/?", "/new", "/campaigns/plain", "/crew/plain"):
            lines.append(opened(browser, server, path))
        for name in TASK:
            facts = server.call(f"/campaigns/{name}")["area"]
            with person(browser, server) as someone:
                someone.sign_in(server.owner_link())
                someone.open(f"/campaigns/{name}")
                someone.page.wait_for_selector(".legend:not(.is-off)")
                someone.page.wait_for_timeout(3000)
                found = moved(someone)
            cells = facts["rows"] * facts["cols"]
            lines += [
                "",
                f"Map of {cells:,} cells ({name}), dragged and zoomed {ROUNDS} times:",
                "",
            ]
            lines += [f"* {what}: {value:.0f}" for what, value in found.items()]
        browser.close()
    return lines


def weight() -> str:
    """Bytes of all scripts."""
    total = sum(path.stat().st_size for path in FOLDER.rglob("*.js"))
    return f"All scripts together: {total / 1000:.0f} kB."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder)).start()
        try:
            for name, area in TASK.items():
                terms = {"name": name, "budget": 500, "policy": "random", **area}
                server.call("/campaigns", terms)
                server.call(f"/campaigns/{name}/ask", {"n": 20, "by": "anna"})
            lines = [*measured(server), "", weight()]
        finally:
            server.kill()
    load = os.getloadavg()[0]
    about = (
        f"Measured in chromium at {commit}, {platform.machine()}, load {load:.1f}; milliseconds."
    )
    text = "\n".join(["# Pages in the browser", "", about, "", *lines, ""])
    sys.stdout.write(text)
    if out is not None:
        out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
