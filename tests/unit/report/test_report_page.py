from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import NoReturn, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from engram._writing import write_files
from engram.errors import InputError
from engram.grid import Grid
from engram.report import animation, draw_search, write_report
from engram.report.summary import entries_of
from engram.scores import OfCells, Terms
from engram.simulation import Trace
from engram.tasks.balls import ball_task
from engram.tasks.base import Task

Make = Callable[..., Trace]


class _Page(HTMLParser):
    """Collects what a browser would fetch, the ids, the headings, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.heads: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "srcset", "data"):
                self.links.append(value or "")
            elif name == "id":
                self.ids.append(value or "")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "h3":
            self.heads.append(data)
        self.text += data


def _page(path: Path) -> _Page:
    return _Page(path.read_text(encoding="utf-8"))


def test_report_is_whole_and_self_contained(report: Path) -> None:
    assert sorted(p.name for p in report.parent.iterdir()) == ["report.html", "search.gif"]
    page = _page(report)
    assert page.links
    assert all(link.startswith(("data:image/", "#")) for link in page.links)
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert not re.search(r"https?://|@import|url\((?!#)", report.read_text())
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    for name in ("em-ptdm", "random", "random search, expected", "Glossary"):
        assert name in page.text
    for head in (
        "Cells visited",
        "Discovery curves",
        "Areas imagined by em-ptdm",
        "Distance to the truth",
        "Score maps of em-ptdm",
        "Exploration weight",
        "Evidence",
        "Updates of the transient memory",
        "Reliability",
    ):
        assert head in page.heads


def test_policies_without_beliefs_lack_those_panels(plain: Make, tmp_path: Path) -> None:
    page = _page(write_report([plain()], tmp_path, title="random"))
    assert page.heads == [
        "The search as it went",
        "Cells visited",
        "Discovery curves",
        "Evidence",
        "Reliability",
    ]


def test_a_bare_trace_is_enough(bare: Make, tmp_path: Path) -> None:
    page = _page(write_report([bare()], tmp_path, title="bare"))
    assert page.heads == ["The search as it went", "Cells visited", "Discovery curves"]


def test_every_text_is_escaped(bare: Make, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> & \"quotes\" 'too' $x_"
    trace = bare()
    trace.policy = "<img src=x onerror=alert(1)> $a_$"
    page = _page(write_report([trace], tmp_path, title=evil, notes=[evil, "plain note"]))
    assert "script" not in page.tags
    assert page.tags.count("img") == 1
    assert page.text.count(evil) == 3  # title, heading, note
    assert trace.policy in page.text
    assert "plain note" in page.text


def test_colour_areas_with_large_cells(
    bare: Make, dressed: Make, village: Task, tmp_path: Path
) -> None:
    traces = [dressed(village), bare(village, budget=30), bare(village, seed=1)]
    page = _page(write_report(traces, tmp_path, title="village"))
    assert "6 x 16 cells of 4 x 2 pixels each, 3 channels, 3 cells closed" in page.text
    assert "Score maps of em-ptdm" in page.heads
    assert "random (seed 1)" in page.text
    draw_search(traces[0], tmp_path / "search.png")


class _Dear(OfCells):
    """A term of a large area that nobody may ask for all cells of."""

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise AssertionError("particles are drawn for the whole area")

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"{name}: particles are drawn for the whole area")


def test_terms_that_are_of_single_cells_are_not_drawn(dressed: Make, tmp_path: Path) -> None:
    trace = dressed()
    for snapshot in trace.snapshots:
        terms = Terms(*(cast(NDArray[np.float64], _Dear()) for _ in range(4)))
        scores = replace(snapshot.view.scores, terms=terms)
        object.__setattr__(snapshot, "view", replace(snapshot.view, scores=scores))
    page = _page(write_report([trace], tmp_path, title="large"))
    assert "Score maps of em-ptdm" in page.heads
    assert "imagined around single cells" in page.text
    assert "doubt" in page.text
    assert "renewed every few" not in page.text


@pytest.mark.parametrize("size", [(1, 32), (32, 2)])
def test_odd_areas(dressed: Make, size: tuple[int, int], tmp_path: Path) -> None:
    target = np.zeros(size, bool)
    target[0, 0] = True
    task = Task("odd", Grid(*size), np.zeros((1, *size), np.float32), target)
    trace = dressed(task, budget=task.grid.n_cells)
    trace.evidence, trace.forecast, trace.updates = [], [], []
    write_report([trace], tmp_path, title="odd")


def test_a_single_cell(dressed: Make, tmp_path: Path) -> None:
    task = Task("dot", Grid(1, 1), np.ones((1, 1, 1), np.float32), np.ones((1, 1), bool))
    write_report([dressed(task, budget=1)], tmp_path, title="dot")


def test_animation_grows_and_stays_small(bare: Make) -> None:
    gif = animation.animate(entries_of([bare(budget=250)]))
    assert len(gif) < 2_000_000
    with Image.open(BytesIO(gif)) as image:
        assert 20 <= image.n_frames <= 60
        assert image.info["loop"] == 0
        greens = []
        for i in (0, image.n_frames // 2, image.n_frames - 1):
            image.seek(i)
            colours = image.convert("RGB").getcolors(1 << 20) or []
            greens.append(sum(n for n, (r, g, b) in colours if g > 1.3 * r and g > 1.3 * b))
    assert greens[0] < greens[1] < greens[2]


def test_animation_drops_frames_when_too_large(bare: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = entries_of([bare()])
    full = animation.animate(entries)
    monkeypatch.setattr(animation, "LIMIT", len(full) // 2)
    assert len(animation.animate(entries)) <= len(full) // 2


def test_same_traces_same_files(searches: list[Trace], report: Path, tmp_path: Path) -> None:
    again = write_report(searches, tmp_path, title="Ball task 3")
    assert again.read_bytes() == report.read_bytes()
    assert (tmp_path / "search.gif").read_bytes() == (report.parent / "search.gif").read_bytes()


def test_draw_search(searches: list[Trace], tmp_path: Path) -> None:
    wide = draw_search(searches[0], tmp_path / "pictures" / "wide.png")
    narrow = draw_search(searches[1], tmp_path / "pictures" / "narrow.png")
    with Image.open(wide) as a, Image.open(narrow) as b:
        assert a.format == b.format == "PNG"
        assert a.width > b.width > b.height
    assert len(list((tmp_path / "pictures").iterdir())) == 2


def test_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()  # the page's name is taken by a folder
    with pytest.raises(InputError, match=r"cannot write .*report\.html"):
        write_files({tmp_path / "report.html": b"page", tmp_path / "search.gif": b"gif"})
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_files_beside_the_page_are_written_with_it_or_nothing_is(
    bare: Make, tmp_path: Path
) -> None:
    (tmp_path / "results.json").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*results\.json"):
        write_report([bare()], tmp_path, title="t", beside={"results.json": "{}"})
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]


def test_a_folder_that_cannot_be_made(bare: Make, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("here")
    with pytest.raises(InputError, match="cannot write"):
        write_report([bare()], blocked, title="t")
    assert blocked.read_text() == "here"


def test_wrong_traces_are_refused(bare: Make, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="traces is empty"):
        write_report([], tmp_path, title="t")
    with pytest.raises(InputError, match="two tasks"):
        write_report([bare(), bare(ball_task(4))], tmp_path, title="t")
    idle = Trace("random", ball_task(3), 10, 0)
    with pytest.raises(InputError, match="no measurements"):
        write_report([idle], tmp_path, title="t")
    assert not list(tmp_path.iterdir())


def test_importing_the_report_loads_nothing_heavy() -> None:
    code = (
        "import sys, engram.report; "
        "sys.exit(any(m in sys.modules for m in ('matplotlib', 'PIL', 'torch', 'scipy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
