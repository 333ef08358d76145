"""Species tasks (appendix I): where in a square of about five degrees does a species live?

A region is a square in degrees around a random centre of the paper's box that holds enough
records. It is cut into 64x64 pixels; the content of a pixel is its number of records on a log
scale, and a query covers a block of 2x2 pixels. The outcome of a block is 1 when it holds any
record (``presence``) or the share of its pixels that do (``share``).

With ``whole`` the area is the box itself, at so many cells along its longer side, with all records
in it: one task for every period.

A visit that found nothing is a true absence: where a table has them, blocks without any visit
are closed, because nobody knows what a measurement there would bring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram._files import Paths, as_paths
from engram.errors import InputError
from engram.layers import Layer
from engram.tasks.base import Task
from engram.tasks.occurrences import Occurrences
from engram.tasks.regions import CountMap, Lattice, Region, Regions, lattice_of, log_counts
from engram.tasks.sets import TaskSet, task_rng
from engram.tasks.species_plan import SpeciesPlan
from engram.tasks.tables import read_occurrences

TRIES = 3000
UNFIT = 500
"""Maps with enough records that may turn out useless before the search is given up."""
MIN_SURVEYED = 0.5
"""Share of the blocks that must have been visited when a table has true absences."""
MIN_VISITED = 0.2
"""The same where records of any species are the visits: observers go to few places."""


class RegionSearch:
    """Draws regions that fit a plan from the records of one species.

    ``lattice`` is that of the whole table: a cell where other species alone were seen is
    empty, not missing. ``others`` are the records of other species, or None where nobody asks.
    """

    def __init__(
        self,
        records: Occurrences,
        plan: SpeciesPlan,
        lattice: Lattice | None,
        others: Occurrences | None = None,
    ) -> None:
        self.regions = regions = Regions(records, lattice, plan.period)
        self.others = None if others is None else Regions(others, lattice, regions.period)
        self.least = MIN_VISITED if plan.visits else MIN_SURVEYED
        self.max_share = plan.max_share or (0.5 if regions.cells else 0.75)
        self.cap = plan.cap or regions.cap
        self.plan = replace(
            plan,
            layout="cells" if regions.cells else "points",
            period=regions.period,
            max_share=self.max_share,
            cap=self.cap,
        )
        self.grid = plan.grid()

    def draw(
        self, rng: np.random.RandomState, anywhere: int = TRIES, around: int = TRIES
    ) -> tuple[Region, int, CountMap]:
        """Region, number of its period and map.

        Centres and periods are drawn until they fit: uniformly in the box, ``anywhere`` times,
        and for a species so rare that this does not find a region ``around`` times near its
        records.
        """
        best, full, blind = 0.0, 0, 0
        for attempt in range(anywhere + around):
            period = int(rng.randint(len(self.regions.periods)))
            centre = self._centre(rng, near_records=attempt >= anywhere)
            region = Region.around(*centre, self.plan.degrees)
            records = self.regions.records(region, period)
            best = max(best, records)
            if records < self.plan.min_records:
                continue
            found = self._map(region, period)
            target, closed = self.blocks(found)
            unknown = self.plan.effort_layer and not self.effort(region, period).any()
            if unknown or closed.mean() > 1 - self.least:
                blind += 1
            elif not 0 < target[~closed].mean() <= self.max_share:
                full += 1
            else:
                return region, period, found
            if full + blind == UNFIT:
                break
        raise InputError(self._refusal(best, full, blind))

    def whole(self, period: int) -> tuple[Region, int, CountMap]:
        """The box itself in one period."""
        region = self.plan.around
        found = self._map(region, period)
        target, closed = self.blocks(found)
        share = float(target[~closed].mean()) if not closed.all() else 0.0
        if not 0 < share <= self.max_share or found.counts.sum() < self.plan.min_records:
            raise InputError(
                f"whole={self.plan.whole}: the box {self.plan.box} holds "
                f"{found.counts.sum():g} records in {self.regions.periods[period]}, target in "
                f"{share:.1%} of the blocks; it takes {self.plan.min_records} and at most "
                f"{self.max_share:.1%}: change --box, --min-records, --max-share or whole"
            )
        return region, period, found

    def _map(self, region: Region, period: int) -> CountMap:
        """The map of a region, cut to the grid."""
        found = self._cut(self.regions, region, period)
        if not self.plan.visits:
            return found
        return replace(found, surveyed=self._visited(found, region, period))

    def _cut(self, regions: Regions, region: Region, period: int) -> CountMap:
        height, width = self.grid.height, self.grid.width
        found = regions.map(region, period, max(height, width))
        looked = None if found.surveyed is None else found.surveyed[:height, :width]
        return CountMap(found.counts[:height, :width], looked)

    def effort(self, region: Region, period: int) -> NDArray[np.float64]:
        """(height, width) records of other species in a region."""
        name = self.regions.periods[period]
        if self.others is None or name not in self.others.periods:
            return np.zeros((self.grid.height, self.grid.width))
        return self._cut(self.others, region, self.others.periods.index(name)).counts

    def _visited(self, found: CountMap, region: Region, period: int) -> NDArray[np.bool_]:
        """(height, width) where anybody was: a record of any species, or a survey."""
        there = (found.counts > 0) | (self.effort(region, period) > 0)
        return np.asarray(there if found.surveyed is None else there | found.surveyed)

    def _centre(self, rng: np.random.RandomState, near_records: bool) -> tuple[float, float]:
        """A place in the box: anywhere, or not farther from a record than a region reaches."""
        south, north, west, east = self.plan.box
        if not near_records:
            return rng.uniform(south, north), rng.uniform(west, east)
        latitude, longitude = self.regions.place(int(rng.randint(len(self.regions))))
        reach = self.plan.degrees / 2
        return (
            min(max(latitude + rng.uniform(-reach, reach), south), north),
            min(max(longitude + rng.uniform(-reach, reach), west), east),
        )

    def blocks(self, found: CountMap) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(rows, cols) each: blocks with any record, blocks nobody visited."""
        shape = self.grid.rows, self.grid.cols
        looked = np.ones_like(found.counts) if found.surveyed is None else found.surveyed
        target, visited = (
            np.asarray(self.grid.cells_of(np.asarray(image, np.float32)).any(axis=(1, 2)))
            for image in (found.counts, looked)
        )
        return target.reshape(shape), np.logical_not(visited).reshape(shape)

    def _refusal(self, best: float, full: int, blind: int) -> str:
        plan, records = self.plan, self.regions.origin
        if full + blind == 0:
            return (
                f"no region of {plan.degrees:g} degrees with {plan.min_records} records: of the "
                f"{self.regions.total:g} in {records} ({self.regions.extent}), the best region "
                f"with its centre in the box {plan.box} had {best:g}. Lower --min-records, widen "
                "--degrees or choose another --box"
            )
        return (
            f"no usable region of {plan.degrees:g} degrees in {records}: of {full + blind} with "
            f"{plan.min_records} records, {full} had target in more than {self.max_share:.1%} of "
            f"the blocks (or in none) and {blind} had visits in less than {self.least:.0%} of "
            "them; change --degrees, --box or --max-share"
        )


def species_tasks(
    paths: Paths,
    species: str | Sequence[str] | None = None,
    *,
    plan: SpeciesPlan | None = None,
    **settings: Any,
) -> TaskSet:
    """Tasks without end from occurrence tables (several are pooled).

    ``species`` and ``settings`` replace fields of the plan.
    """
    plan, files = replace(plan or SpeciesPlan(), **settings), as_paths(paths)
    if species is not None:
        plan = replace(plan, species=(species,) if isinstance(species, str) else tuple(species))
    records = read_occurrences(files, plan.column or None).filtered(
        years=plan.years, max_uncertainty=plan.max_uncertainty
    )
    chosen, label = chosen_species(records, plan.species or None)
    others = _others(records, plan) if plan.effort_layer or plan.visits else None
    search = RegionSearch(chosen, plan, lattice_of(records, plan.layout), others)
    slug = label.lower().replace(" ", "-")

    def make(k: int) -> Task:
        if plan.whole is None:
            region, period, found = search.draw(task_rng("species", plan.seed, k))
            count = search.regions.records(region, period)
        else:
            region, period, found = search.whole(k)
            count = float(found.counts.sum())
        facts = {
            "species": label,
            "region": asdict(region),
            "period": search.regions.periods[period],
            "records": count,
        }
        task = _task(f"{slug}-{k}", search, found, facts)
        if not plan.effort_layer:
            return task
        counts = np.asarray(search.effort(region, period), np.float32)
        effort = task.grid.cells_of(counts).sum(axis=(1, 2))
        return task.told([Layer("effort", np.asarray(effort, np.float64))])

    make(0)  # a table without any usable region is refused here, not in the middle of a run
    where = f"squares of {plan.degrees:g} degrees, {plan.size}x{plan.size} pixels"
    if plan.whole is not None:
        where = f"the whole box {plan.box}, {search.grid.rows}x{search.grid.cols} cells"
    return TaskSet(
        name=f"species:{label}",
        description=f"{label}: {len(chosen)} records of {records.origin} in {where}",
        make=make,
        size=None if plan.whole is None else len(search.regions.periods),
        files=tuple(files),
        options={
            name: value
            for name, value in {**asdict(search.plan), "species": label}.items()
            if value is not False and (name, value) != ("whole", None)
        },
    )


def _others(records: Occurrences, plan: SpeciesPlan) -> Occurrences | None:
    """Records of all species but those that are sought."""
    keep = np.zeros(len(records), bool)
    if plan.species:
        keep = ~np.any([records.matching(name) for name in plan.species], axis=0)
    if plan.effort_layer and not keep.any():
        raise InputError(
            f"{records.origin} has no records of other species, so there is no layer of observers' "
            "effort; leave --effort-layer out"
        )
    return records.take(keep) if keep.any() else None


def chosen_species(
    records: Occurrences, species: str | Sequence[str] | None
) -> tuple[Occurrences, str]:
    """Records of the species asked for, and what to call them."""
    if species is not None:
        names = [species] if isinstance(species, str) else list(species)
        return records.of_species(names), " + ".join(name.strip() for name in names)
    present = records.most_common()
    if len(present) > 1:
        shown = ", ".join(present[:12]) + (", ..." if len(present) > 12 else "")
        raise InputError(
            f"{records.origin} holds {len(present)} species; choose with --species: {shown}"
        )
    return records, present[0] if present else "species"


def _task(name: str, search: RegionSearch, found: CountMap, facts: dict[str, Any]) -> Task:
    target, closed = search.blocks(found)
    if search.plan.outcome == "presence":
        pixels = search.grid.pixels(target)
    else:
        pixels = found.counts > 0
    content = log_counts(found.counts, search.cap)
    return Task(name, replace(search.grid, closed=closed), content[None], pixels, facts=facts)
