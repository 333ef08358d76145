"""Ways over cells, tours of crews, and how the log keeps them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely
from places import LAT, LON, box, geotiff, polygon, ring

from engram.campaign import Campaign, create_campaign, open_campaign, verify
from engram.errors import ConflictError, InputError
from engram.geo.area import AreaPlan, read_area
from engram.geo.crews import Crews
from engram.geo.place import Place
from engram.geo.tours import tours_of
from engram.geo.travel import Ways
from engram.grid import Grid

SPEED = 3 / 3.6


def made(tmp_path: Path, policy: str = "spread", **plan: object) -> Campaign:
    area = read_area(AreaPlan(polygon(tmp_path / "park.geojson", ring()), 250.0, **plan))  # type: ignore[arg-type]
    return create_campaign(
        "park", area.grid, 40, db=str(tmp_path / "c.db"), policy=policy, area=area.facts
    )


def crews(count: int = 3, n: int = 12, hours: float = 6.0) -> Crews:
    return Crews(count, n, (LAT, LON - 0.01), hours, SPEED, 10.0)


def river(tmp_path: Path) -> Path:
    """Five minutes a cell; a river from north to south with a bridge of one cell in the south."""
    minutes = np.full((60, 60), 5.0, np.float32)
    minutes[:, 30:32] = -1
    minutes[34, 30:32] = 5
    return geotiff(tmp_path / "cost.tif", minutes, (373_750, 5_823_000), 250, nodata=-1)


def test_the_way_goes_over_the_bridge(tmp_path: Path) -> None:
    area = read_area(AreaPlan(polygon(tmp_path / "p.geojson", ring()), 250.0, cost=river(tmp_path)))
    place = Place(area.grid)
    ways = Ways.of(area.grid, area.facts, SPEED)
    west, east = np.array([380_375.0, 5_817_125.0]), np.array([383_125.0, 5_817_125.0])
    bridge = shapely.box(381_250, 5_814_250, 381_750, 5_814_500)
    line = shapely.LineString(ways.line(west, east))
    assert line.intersects(bridge)
    for index in area.facts["blocked"]:
        assert not line.intersects(place.outlines([index])[0].buffer(-1))
    there = ways.seconds(np.stack([west, east]))
    straight = np.hypot(*(east - west)) / SPEED
    assert there[0, 1] == there[1, 0] > 2 * straight
    cells = line.length / 250
    assert there[0, 1] == pytest.approx(cells * 300, rel=0.01)


def test_a_river_without_a_bridge_has_no_way() -> None:
    blocked = np.zeros((6, 7), bool)
    blocked[:, 3] = True
    grid = Grid(6, 7, transform=(100, 0, 0, 0, -100, 600), crs="EPSG:32633")
    spots = np.array([[50.0, 50.0], [250.0, 550.0], [650.0, 50.0]])
    over = Ways(Place(grid), 1.0, np.full((6, 7), 2.0), blocked).seconds(spots)
    assert np.isinf(over[0, 2])
    assert over[0, 1] == pytest.approx(120 * (3 + 2 * np.sqrt(2)))
    plain = Ways(Place(grid), 1.0, None, np.zeros((6, 7), bool)).seconds(spots)
    assert plain[0, 2] == pytest.approx(600)


def test_without_a_raster_a_way_is_straight_and_goes_round_zones() -> None:
    blocked = np.zeros((9, 9), bool)
    blocked[:8, 4] = True
    grid = Grid(9, 9, transform=(100, 0, 0, 0, -100, 900), crs="EPSG:32633")
    ways = Ways(Place(grid), 1.0, None, blocked)
    spots = np.array([[50.0, 850.0], [150.0, 250.0], [850.0, 850.0]])
    seconds = ways.seconds(spots)
    assert seconds[0, 1] == pytest.approx(np.hypot(100, 600))
    assert seconds[0, 2] > 1600
    assert shapely.LineString(ways.line(spots[0], spots[2])).bounds[1] == 50


def test_crews_get_tours_that_the_log_keeps_and_verify_knows(tmp_path: Path) -> None:
    zone = polygon(tmp_path / "zone.geojson", box(LON, LAT, LON + 0.004, LAT + 0.004))
    campaign = made(tmp_path, no_go=(zone,))
    queries = campaign.ask(12, by="base", key="k", outing=crews())
    tours = tours_of(campaign)
    assert len(queries) == 12
    assert [q for t in tours for q in t.queries] == [q.query for q in queries]
    for tour in tours:
        line = shapely.LineString(tour.line)
        assert tour.minutes <= 360
        assert line.length == pytest.approx(tour.metres, abs=1)
        walking = tour.metres / SPEED / 60
        assert tour.minutes == pytest.approx(walking + 10 * len(tour.queries), rel=0.1)
        assert tour.line[0] == tour.line[-1]
    again = campaign.ask(12, by="base", key="k", outing=crews())
    assert [q.query for q in again] == [q.query for q in queries]
    with pytest.raises(ConflictError, match="another request"):
        campaign.ask(12, by="base", key="k", outing=crews(hours=5))
    assert len(campaign.ask(2)) == 2
    report = verify(open_campaign("park", db=str(tmp_path / "c.db")))
    assert (report.ok, report.suggestions) == (True, 14), report.faults


def test_short_hours_give_few_cells_or_none(tmp_path: Path) -> None:
    campaign = made(tmp_path)
    few = campaign.ask(12, outing=crews(count=1, hours=1.0))
    assert 1 <= len(few) < 6
    with pytest.raises(
        InputError, match=r"no cell can be visited .* \(the nearest is [\d,]+ min away"
    ):
        campaign.ask(3, outing=Crews(1, 3, (LAT + 1, LON), 2.0, SPEED, 10.0))
    for wrong in ({"count": 0}, {"hours": 0.0}, {"hours": float("nan")}):
        with pytest.raises(InputError, match=f"--{next(iter(wrong)).replace('count', 'crews')}"):
            crews(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is no place on this map"):
        campaign.ask(3, outing=Crews(1, 3, (float("inf"), LON), 2.0, SPEED, 10.0))


def test_tours_cost_no_more_than_the_budget(tmp_path: Path) -> None:
    area = read_area(AreaPlan(polygon(tmp_path / "p.geojson", ring()), 250.0, cost=river(tmp_path)))
    campaign = create_campaign(
        "dear", area.grid, 23, db=str(tmp_path / "c.db"), policy="random", area=area.facts,
        budget_kind="cost",
    )  # fmt: skip
    assert len(campaign.ask(4, outing=crews(n=4))) == 4
    assert campaign.state.budget_left(campaign.now()) == pytest.approx(3)
