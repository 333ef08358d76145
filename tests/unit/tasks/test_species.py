from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from engram import InputError
from engram.tasks.occurrences import Occurrences
from engram.tasks.regions import Region, Regions, lattice_of, log_counts
from engram.tasks.species import species_tasks
from engram.tasks.species_plan import SpeciesPlan
from engram.tasks.tables import read_occurrences

SMALL = SpeciesPlan(box=(40.0, 50.0, -100.0, -90.0), min_records=20)


def write(path: Path, header: str, rows: list[tuple[object, ...]]) -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.fixture
def points(tmp_path: Path) -> Path:
    """Two species in clusters, in the middle of a wide box."""
    rng = np.random.RandomState(0)
    rows: list[tuple[object, ...]] = []
    for name, count in (("Poecile atricapillus", 300), ("Lynx rufus", 40)):
        hubs = rng.uniform([42, -98], [48, -92], (12, 2))
        places = hubs[rng.randint(12, size=count)] + rng.normal(0, 0.1, (count, 2))
        rows += [(name, f"{a:.5f}", f"{b:.5f}", 2000 + i % 10) for i, (a, b) in enumerate(places)]
    return write(tmp_path / "points.csv", "species,latitude,longitude,year", rows)


def lattice_rows(step: float = 0.5) -> list[tuple[float, float]]:
    return [
        (round(lat, 3), round(lon, 3))
        for lat in np.arange(38, 52, step)
        for lon in np.arange(-102, -88, step)
    ]


def test_tasks_hold_what_the_table_says(points: Path) -> None:
    tasks = species_tasks(points, "Poecile atricapillus", plan=SMALL)
    table = read_occurrences(points).of_species("Poecile atricapillus")
    for k in range(4):
        task = tasks.task(k)
        assert task.content.shape == (1, 64, 64)
        assert (task.grid.rows, task.grid.cols) == (32, 32)
        region = Region(**task.facts["region"])
        inside = (
            (table.latitude >= region.south)
            & (table.latitude < region.south + 5)
            & (table.longitude >= region.west)
            & (table.longitude < region.west + 5)
        )
        assert task.facts["records"] == inside.sum() >= 20
        for lat, lon in zip(table.latitude[inside], table.longitude[inside], strict=True):
            row = int((region.south + 5 - lat) / 5 * 64)
            col = int((lon - region.west) / 5 * 64)
            assert task.content[0, row, col] > 0
            assert task.outcomes[(row // 2) * 32 + col // 2] == 1.0
        assert set(np.unique(task.outcomes)) == {0.0, 1.0}


def test_the_share_outcome_counts_pixels(points: Path) -> None:
    plan = SpeciesPlan(box=SMALL.box, min_records=20, outcome="share")
    share = species_tasks(points, "Poecile atricapillus", plan=plan).task(0)
    presence = species_tasks(points, "Poecile atricapillus", plan=SMALL).task(0)
    assert share.targets == presence.targets
    assert share.outcomes.sum() * 4 == (share.content > 0).sum()


def test_task_k_is_frozen(points: Path, tmp_path: Path) -> None:
    tasks = species_tasks(points, "Poecile atricapillus", plan=SMALL)
    digest = hashlib.sha256(tasks.task(5).content.astype("<f4").round(4).tobytes()).hexdigest()
    assert digest[:16] == "ffe1389347d5be1b"
    header, *rows = points.read_text().splitlines()
    mixed = tmp_path / "mixed.csv"
    mixed.write_text("\n".join([header, *reversed(rows)]))
    again = species_tasks(mixed, "Poecile atricapillus", plan=SMALL)
    np.testing.assert_array_equal(tasks.task(5).content, again.task(5).content)
    other = species_tasks(points, "Poecile atricapillus", plan=SMALL, seed=1)
    assert other.task(5).facts["region"] != tasks.task(5).facts["region"]


def test_a_rare_species_is_found_around_its_records(tmp_path: Path) -> None:
    rows = [(f"{44 + 0.9 * (i % 5)}", f"{-95 - 0.9 * (i // 5)}") for i in range(25)]
    path = write(tmp_path / "rare.csv", "latitude,longitude", rows)
    plan = SpeciesPlan(min_records=25, layout="points")  # a hundredth of a thousandth of the box
    tasks = species_tasks(path, plan=plan)
    assert [tasks.task(k).facts["records"] for k in range(3)] == [25, 25, 25]


def test_no_region_says_how_many_the_best_had(points: Path) -> None:
    with pytest.raises(InputError, match=r"with 60 records: of the 40 in points") as caught:
        species_tasks(points, "Lynx rufus", plan=SpeciesPlan(box=SMALL.box, min_records=60))
    assert "latitude 4" in str(caught.value)
    with pytest.raises(InputError, match=r"of the 40 in .* had 0\."):
        species_tasks(points, "Lynx rufus", plan=SpeciesPlan(box=(0, 1, 0, 1)))
    full = SpeciesPlan(box=SMALL.box, min_records=20, max_share=0.001)
    with pytest.raises(InputError, match=r"more than 0\.1% of the blocks"):
        species_tasks(points, "Poecile atricapillus", plan=full)


def test_the_species_must_be_said_when_there_are_several(points: Path) -> None:
    with pytest.raises(InputError, match="2 species; choose with --species: Poecile"):
        species_tasks(points)


def test_year_filter_and_options_reach_the_result_file(points: Path) -> None:
    tasks = species_tasks(points, "Poecile", years=(2000, 2004), plan=SMALL)
    assert "150 records" in tasks.description
    assert tasks.options["years"] == (2000, 2004)
    assert tasks.options["layout"] == "points"
    assert tasks.options["cap"] == 3.0


def test_gridded_counts_by_nearest_centre(tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = []
    for year, month in ((2010, 5), (2010, 6)):
        rows += [
            ("Bird" if lon < -95 else "Other bird", lat, lon, year, month, 100 if month == 5 else 3)
            for lat, lon in lattice_rows()
        ]
    header = "species,latitude,longitude,year,month,count"
    path = write(tmp_path / "cells.csv", header, rows)
    plan = SpeciesPlan(box=(42, 48, -96, -94), min_records=1)
    tasks = species_tasks(path, "Bird", plan=plan)
    assert tasks.options["layout"] == "cells"
    assert tasks.options["period"] == "month"
    levels = {}
    for k in range(12):
        task = tasks.task(k)
        region, size = Region(**task.facts["region"]), 64
        _, longitude = region.pixel_centres(size)
        edge = -95.25  # between the last cell with the bird and the first without it
        sure = np.abs(longitude - edge).reshape(size, size) > 0.01
        expected = (longitude < edge).reshape(size, size)
        np.testing.assert_array_equal((task.content[0] > 0)[sure], expected[sure])
        levels[task.facts["period"]] = float(task.content.max())
    assert set(levels) == {"2010-05", "2010-06"}
    assert levels["2010-05"] == pytest.approx(np.log(101) / np.log(256))
    assert levels["2010-06"] == pytest.approx(np.log(4) / np.log(256))


def test_true_absences_close_what_nobody_visited(tmp_path: Path) -> None:
    rows = [
        (lat, lon, int(lat > 45))
        for lat, lon in lattice_rows(0.16)
        if lon > -96  # nobody went further west
    ]
    path = write(tmp_path / "survey.csv", "latitude,longitude,present", rows)
    plan = SpeciesPlan(box=(44, 46, -95, -94), min_records=10, size=16, block=1)
    task = species_tasks(path, plan=plan).task(0)
    region = Region(**task.facts["region"])
    centres = region.west + (np.arange(16) + 0.5) * 5 / 16
    assert task.grid.closed[:, centres < -96.2].all()
    assert not task.grid.closed[:, centres > -95.8].any()
    assert 0 < task.targets < len(task.grid.open_cells)
    far = SpeciesPlan(box=(44, 46, -98, -97.9), min_records=10, size=16, block=1)
    with pytest.raises(InputError, match="visits in less than 50%"):
        species_tasks(path, plan=far)


def table_of(places: np.ndarray) -> Occurrences:
    n = len(places)
    text, number = np.full(n, ""), np.full(n, np.nan)
    return Occurrences(
        text, text, places[:, 0], places[:, 1], number, number, number, np.ones(n),
        np.ones(n, bool), frozenset({"latitude", "longitude"}), "made",
    )  # fmt: skip


def test_a_lattice_is_told_from_points() -> None:
    rng = np.random.RandomState(3)
    assert lattice_of(table_of(np.array(lattice_rows(1.0)))) is not None
    assert lattice_of(table_of(rng.uniform([30, -120], [50, -80], (500, 2)))) is None
    repeated = rng.uniform([30, -120], [50, -80], (80, 2))[rng.randint(80, size=900)]
    assert lattice_of(table_of(repeated)) is None
    assert lattice_of(table_of(np.array(lattice_rows(1.0))), "points") is None
    with pytest.raises(InputError, match="layout 'hex'"):
        lattice_of(table_of(repeated), "hex")


def test_every_record_of_a_region_is_in_its_map() -> None:
    rng = np.random.RandomState(4)
    regions = Regions(table_of(rng.uniform([40, -100], [46, -94], (5000, 2))))
    for _ in range(20):
        region = Region.around(rng.uniform(38, 48), rng.uniform(-102, -92), 5)
        assert regions.map(region, 0, 64).counts.sum() == regions.records(region)


def test_periods_need_their_columns() -> None:
    with pytest.raises(InputError, match="no column for month, year"):
        Regions(table_of(np.zeros((3, 2))), period="month")


def test_the_content_scale_is_fixed_and_in_range() -> None:
    content = log_counts(np.array([0.0, 1.0, 3.0, 1000.0]), 3)
    np.testing.assert_allclose(content, [0, 0.5, 1, 1])


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"outcome": "mass"}, "outcome 'mass'"),
        ({"period": "week"}, "period 'week'"),
        ({"degrees": 0}, "degrees=0"),
        ({"min_records": 0}, "min_records=0"),
        ({"max_share": 2}, "max_share=2"),
        ({"cap": 0.5}, "cap=0.5"),
        ({"block": 3}, "cannot be cut into cells"),
        ({"whole": 15}, "whole=15: give 16 to 4096 cells"),
        ({"box": (1, 0, 0, 1)}, "south < north"),
    ],
)
def test_plans_that_make_no_sense(options: dict[str, object], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        SpeciesPlan(**options)  # type: ignore[arg-type]


def _records(tmp_path: Path) -> Path:
    """A species at some of the places where another one is recorded, and that one at more."""
    rng = np.random.RandomState(2)
    hubs = rng.uniform([42, -98], [48, -92], (150, 2))
    lines = ["species,latitude,longitude"]
    for i, (lat, lon) in enumerate(hubs):
        names = ["Puma concolor"] * (1 + i % 3) + (["Lynx rufus"] if i % 2 else [])
        lines += [f"{name},{lat:.5f},{lon:.5f}" for name in names]
    path = tmp_path / "two.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


TWO = SpeciesPlan(size=32, min_records=15, box=(44.0, 46.0, -96.0, -94.0))


def test_records_of_other_species_are_a_layer(tmp_path: Path) -> None:
    path = _records(tmp_path)
    tasks = species_tasks(path, "Lynx rufus", effort_layer=True, plan=TWO)
    plain = species_tasks(path, "Lynx rufus", plan=TWO)
    task = tasks.task(0)
    assert task.layers is not None
    effort = task.layers.get("effort").values
    assert plain.task(0).layers is None
    np.testing.assert_array_equal(task.outcomes, plain.task(0).outcomes)
    assert (effort[task.outcomes > 0] > 0).all()  # the other one is recorded at each of them
    assert 0 < (effort > 0).mean() < 0.5
    assert set(np.unique(effort)) <= set(range(30))
    assert "effort_layer" in tasks.options
    assert "effort_layer" not in plain.options
    alone = tmp_path / "one.csv"
    alone.write_text("species,latitude,longitude\n" + "Lynx rufus,45.0,-95.0\n" * 30)
    with pytest.raises(InputError, match="no records of other species"):
        species_tasks(alone, "Lynx rufus", effort_layer=True, plan=TWO)


def test_cells_without_a_record_of_any_species_were_never_visited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engram.tasks.species.MIN_VISITED", 0.05)
    tasks = species_tasks(
        _records(tmp_path), "Lynx rufus", visits=True, effort_layer=True, plan=TWO
    )
    task = tasks.task(0)
    assert task.layers is not None
    there = (task.layers.get("effort").values > 0) | (task.outcomes > 0)
    np.testing.assert_array_equal(task.grid.closed.ravel(), ~there)
    assert 0 < task.outcomes[task.grid.open_cells].mean() < 1


def test_the_box_as_a_whole_holds_every_record_in_it(points: Path) -> None:
    plan = SpeciesPlan(box=(43.0, 47.0, -98.0, -90.0), min_records=20, whole=80)
    tasks = species_tasks(points, "Poecile atricapillus", plan=plan)
    assert len(tasks) == 1
    task = tasks.task(0)
    assert (task.grid.rows, task.grid.cols) == (40, 80)
    assert task.content.shape == (1, 80, 160)
    table = read_occurrences(points).of_species("Poecile atricapillus")
    lat, lon = table.latitude, table.longitude
    inside = (lat > 43) & (lat <= 47) & (lon >= -98) & (lon < -90)
    assert 20 < inside.sum() < len(table)
    assert task.facts["records"] == inside.sum()
    cells = {
        int((47 - a) * 10) * 80 + int((b + 98) * 10)
        for a, b in zip(lat[inside], lon[inside], strict=True)
    }
    assert set(np.flatnonzero(task.outcomes).tolist()) == cells
    by_year = species_tasks(points, "Poecile atricapillus", plan=plan, period="year", min_records=5)
    assert len(by_year) == 10
    assert by_year.task(3).facts["period"] == "2003"
    assert by_year.task(3).targets < task.targets
    assert "whole" not in species_tasks(points, "Poecile atricapillus", plan=SMALL).options


def test_the_box_as_a_whole_with_visits_and_effort(tmp_path: Path) -> None:
    plan = SpeciesPlan(box=(42.0, 48.0, -98.0, -92.0), min_records=20, whole=40)
    task = species_tasks(
        _records(tmp_path), "Lynx rufus", visits=True, effort_layer=True, plan=plan
    ).task(0)
    assert task.layers is not None
    there = (task.layers.get("effort").values > 0) | (task.outcomes > 0)
    np.testing.assert_array_equal(task.grid.closed.ravel(), ~there)


def test_a_box_without_enough_records_is_refused(points: Path) -> None:
    plan = SpeciesPlan(box=(40.0, 50.0, -100.0, -90.0), min_records=1000, whole=20)
    with pytest.raises(InputError, match=r"whole=20: .* holds 300 records .* it takes 1000"):
        species_tasks(points, "Poecile atricapillus", plan=plan)
