"""Crew files as they are."""

from __future__ import annotations

import pytest

from engram.campaign import history, verify
from engram.errors import ConflictError, InputError

CREW = """\
Row;COL;Found;Count;Crew;Date;Notes;Weather
0;1;yes;;anna;2026-05-01;two nests;rain
2;3;No;0;ben;2026-05-02;;
4;4;;3;ben;;;
5;5;0,5;;;;;
"""


def test_a_crew_file_as_it_is(create, tmp_path):
    campaign = create()
    path = tmp_path / "crew.csv"
    path.write_text(CREW)
    told = campaign.tell_file(path, by="base", key="k")
    outcomes = {
        m.observation.cell: m.observation.outcome for m in campaign.state.measurements.values()
    }
    assert outcomes == {(0, 1): 1.0, (2, 3): 0.0, (4, 4): 1.0, (5, 5): 0.5}
    assert (told.skipped, told.note) == (0, "kept in the log as they are: Weather")
    items = history(campaign)[-1].payload["items"]
    assert items[0]["facts"] == {
        "by": "anna", "date": "2026-05-01", "note": "two nests", "Weather": "rain",
    }  # fmt: skip
    assert items[2]["facts"] == {"count": "3", "by": "ben"}
    assert "facts" not in items[3]
    assert campaign.tell_file(path, by="base", key="k").repeated
    again = campaign.tell_file(path, by="base")
    assert (again.cells, again.skipped, again.seq) == ([], 4, told.seq)
    assert again.to_dict()["skipped"] == 4
    path.write_text(CREW.replace("yes", "no") + "1;1;no;;;;;\n")
    with pytest.raises(
        ConflictError, match=r"crew.csv, line 2: cell \(0, 1\) was measured already"
    ):
        campaign.tell_file(path, by="base")
    with pytest.raises(ConflictError, match="key 'k' was used for another request"):
        campaign.tell_file(path, by="base", key="k")
    path.write_text(CREW + "1;1;no;;;;;\n1;1;no;;;;;\n")
    assert campaign.tell_file(path).to_dict()["told"] == 1
    assert verify(campaign).ok


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_any_mark_between_columns(create, tmp_path, mark):
    campaign = create()
    path = tmp_path / ("crew.tsv" if mark == "\t" else "crew.txt")
    path.write_text(f"\ufeff row {mark}Column{mark}PRESENT\n\n1{mark}2{mark} TRUE\n", "utf-8")
    campaign.tell_file(path)
    assert campaign.state.observations[0].outcome == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row,col,count\n1,1,-1\n", "line 2: field count: '-1' is below 0"),
        ("row,col,count\n1,1,few\n", "line 2: field count: 'few' is not a number"),
        ("lat,outcome\n1,1\n", "line 1: column 'longitude' is missing"),
        ("lat,lon,outcome\n52.5,13.4,1\n", "this campaign has no place on Earth"),
        ("row,col,outcome\n1,1,1\n1,1,0\n", r"line 3: cell \(1, 1\) is given twice"),
    ],
)
def test_faults_of_crew_files(create, tmp_path, text, message):
    path = tmp_path / "crew.csv"
    path.write_text(text)
    with pytest.raises((InputError, ConflictError), match=message):
        create().tell_file(path)
