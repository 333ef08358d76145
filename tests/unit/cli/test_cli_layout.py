"""Tables on narrow terminals: every figure is there, whole, and in reach of its name."""

from __future__ import annotations

import pytest

from engram.bench.tables import Table
from engram.cli import _printing as printing

WORDS = "procedural scenes: for areas nobody has data about"
RATES: Table = (
    ["policy", *(f"SR at {b} (gap closed)" for b in (150, 200, 250))],
    [[name, *(f"0.8{i}{j} ±0.034 (7{j}%)" for j in range(3))]
     for i, name in enumerate(["random", "em-ptdm[h=off]", "(random, expected)"])],
)  # fmt: skip
COSTS: Table = (
    ["policy", "s/query", "evals/query", "peak MB", "updates", "kept", "calib. error"],
    [["em-ptdm[preset=paper,h=off]", "0.0421", "1234.29", "378", "48.0", "46.6", "0.024"]],
)
TERMS: Table = (
    ["query", "cell", "rank", "total", "chance", "explore", "exploit", "alpha"],
    [["112", "12,7", "1", "0.1235", "-0.0001234", "1.235e-12", "-1.234e-05", "0.9876"]],
)
CARDS: Table = (["name", "size", "parameters", "summary"], [["long", "64x64x1", "0.85 M", WORDS]])


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
@pytest.mark.parametrize(
    "table", [RATES, COSTS, TERMS, CARDS], ids=["rates", "costs", "terms", "cards"]
)
def test_no_figure_is_cut(
    table: Table, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(printing.out, "width", width)
    printing.show_table(table, "a title")
    shown = capsys.readouterr().out
    printed = shown.splitlines()
    assert "…" not in shown
    assert max(map(len, printed)) <= width
    assert shown.count("a title") == 1
    for line in table[1]:
        for cell in line[1:]:
            if cell != WORDS:
                assert any(cell in text for text in printed), f"{cell} is cut"
    assert all(word in shown for name in table[0] for word in name.split())


def test_one_table_where_it_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three budgets stand side by side at 80 columns, and below each other at 60."""
    tables = {}
    for width in (60, 80, 120):
        monkeypatch.setattr(printing.out, "width", width)
        printing.show_table(RATES)
        tables[width] = capsys.readouterr().out.count("policy")
    assert tables == {60: 3, 80: 1, 120: 1}


def test_text_of_the_users_is_not_read_as_markup(capsys: pytest.CaptureFixture[str]) -> None:
    printing.show_table((["name", "found"], [["[bold]x[/bold]", "3"]]))
    assert "[bold]x[/bold]" in capsys.readouterr().out
