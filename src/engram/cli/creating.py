"""``engram campaign create``: the area, the budget and the terms of a new campaign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli._campaign import (
    By,
    DbOrServer,
    FalseAlarm,
    Json,
    Lease,
    Name,
    cell_of,
    duration,
    emit,
    needs_database,
    numbers,
)
from engram.cli._common import BeliefOption, GoalOption, LayerOption, check_seed, parse_pair
from engram.cli._printing import say
from engram.cli._remote import create_there, is_server
from engram.cli.geo import (
    AreaFile,
    AreaOptions,
    CellSize,
    CostIs,
    Crs,
    NoGo,
    Preview,
    show_place,
)
from engram.errors import InputError

if TYPE_CHECKING:
    from engram.campaign.masks import AreaMask
    from engram.geo.area import Area
    from engram.grid import Grid


def expected_words(grid: Grid, budget: float, terms: dict[str, Any]) -> str:
    """What the campaign will take, in one line."""
    from engram.estimates import at_once, estimate
    from engram.policies.spec import PolicyChoice

    choice = PolicyChoice.parse(terms["policy"], preset=terms["preset"], prior="")
    whole = terms["layers"] is not None or bool(at_once(choice.preset, dict(choice.options)))
    count = min(int(budget), len(grid.open_cells))
    return estimate(choice.name, grid, count, whole=whole).words


def create(
    name: Name,
    budget: Annotated[float, typer.Option(help="Measurements, or cost with --budget-kind cost.")],
    size: Annotated[str | None, typer.Option(help="Height and width in pixels: H,W.")] = None,
    mask: Annotated[
        Path | None,
        typer.Option(help="Raster of the area instead of --size; 0 and nodata are outside."),
    ] = None,
    cell: Annotated[str, typer.Option(help="Height and width of a cell in pixels: h,w.")] = "1,1",
    channels: Annotated[int, typer.Option(help="Values per pixel.")] = 1,
    value_range: Annotated[
        str, typer.Option("--range", help="Lowest and highest content value: LOW,HIGH.")
    ] = "0,1",
    budget_kind: Annotated[str, typer.Option(help="'measurements' or 'cost'.")] = "measurements",
    cost: Annotated[Path | None, typer.Option(help="Cost of each cell (npy, csv, ...).")] = None,
    prior: Annotated[
        str | None, typer.Option(help="Memory by name or file (default: by size).")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="Search policy, like gp or em-ptdm\\[h=off,a=5].")
    ] = None,
    goal: GoalOption = None,
    preset: Annotated[str, typer.Option(help="'default', 'thorough' or 'paper'.")] = "default",
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
    lease: Lease = None,
    rank: Annotated[str, typer.Option(help="Rank by 'score' or 'per-cost'.")] = "score",
    travel: Annotated[float, typer.Option(help="Cost of one cell of way.")] = 0.0,
    crew: Annotated[
        list[str] | None, typer.Option(help="Starting point of a crew: NAME=R,C; repeatable.")
    ] = None,
    stop_yield: Annotated[
        float, typer.Option(help="Finds per measurement worth going on for.")
    ] = 0.02,
    area: AreaFile = None,
    cell_size: CellSize = None,
    crs: Crs = None,
    no_go: NoGo = None,
    cost_is: CostIs = "minutes",
    preview: Preview = None,
    layer: LayerOption = None,
    belief: BeliefOption = None,
    detection: Annotated[
        str | None,
        typer.Option(help="Chance that a visit finds a target that is there: 0.7, or learn."),
    ] = None,
    false_alarm: FalseAlarm = None,
    by: By = "",
    db: DbOrServer = None,
    as_json: Json = False,
) -> None:
    """Create a campaign."""
    needs_database()
    from engram.campaign import create_campaign, outline
    from engram.campaign.start import DEFAULT_POLICY
    from engram.detection import Detection
    from engram.layer_files import read_layers
    from engram.policies.spec import policy_text, typed, with_goal

    options = AreaOptions(area, cell_size, crs, no_go, cost_is, preview)
    grid, masked, found = _searched(size, mask, cell, channels, value_range, cost, options)
    terms: dict[str, Any] = {
        "policy": with_goal(policy or DEFAULT_POLICY, goal),
        "prior": prior,
        "by": by,
        "preset": preset,
        "seed": check_seed(seed),
        "budget_kind": budget_kind,
        "lease": duration(lease, "--lease"),
        "rank": rank,
        "travel": travel,
        "crews": _starts(crew or ()),
        "stop_yield": stop_yield,
        "area": {} if found is None else found.facts,
        "layers": read_layers(grid, layer or (), belief),
        "detection": Detection.read(None if detection is None else typed(detection), false_alarm),
    }
    words = None if masked is None else masked.words
    if is_server(db):
        made = create_there(db, name, grid, budget, words, **terms)
    else:
        campaign = create_campaign(name, grid, budget, db=db, **terms)
        made = outline(campaign, words, None if found is None else found.words(budget))
    emit(
        made.to_dict(),
        as_json,
        f"created {name}: {grid.rows}x{grid.cols} cells, {made.open} of them open, "
        f"budget {made.budget:g}, policy {policy_text(made.policy, made.options)}",
    )
    if masked is not None and not as_json:
        say(f"mask {masked.words}")
    if found is not None:
        show_place(found, name, made.budget, preview, as_json)
    if not as_json:
        say(expected_words(grid, made.budget, terms))


def _searched(
    size: str | None,
    mask: Path | None,
    cell: str,
    channels: int,
    value_range: str,
    cost: Path | None,
    place: AreaOptions,
) -> tuple[Grid, AreaMask | None, Area | None]:
    """The grid to search, and the mask or the place that it was made from."""
    from engram.campaign.files import read_cost
    from engram.campaign.masks import read_mask
    from engram.grid import Grid

    h, w = parse_pair(cell, "--cell")
    if sum(given is not None for given in (size, mask, place.area)) != 1:
        raise InputError(
            "give the area: either --size H,W or --mask FILE, or a real place, --area FILE"
        )
    place.check()
    low, high = numbers(value_range, "--range", 2)
    found = masked = None
    by_raster = cost is not None and cost.suffix.lower() in (".tif", ".tiff")
    if place.area is not None:
        found = place.read(cost if by_raster else None, (h, w), channels, (low, high))
        grid = found.grid
    elif mask is not None:
        masked = read_mask(mask, (h, w))
        rows, cols = masked.closed.shape
        grid = Grid(rows * h, cols * w, channels, (h, w), (low, high), masked.closed)
    else:
        height, width = parse_pair(size or "", "--size")
        grid = Grid(height, width, channels, (h, w), (low, high))
    if cost is not None and not (found is not None and by_raster):
        grid = replace(grid, cost=read_cost(cost, grid.rows, grid.cols))
    return grid, masked, found


def _starts(crews: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Where crews start, by their names."""
    starts = {}
    for item in crews:
        who, mark, place = item.partition("=")
        if not mark or not who:
            raise InputError(f"--crew {item!r}: give NAME=R,C")
        starts[who] = cell_of(place, "--crew")
    return starts
