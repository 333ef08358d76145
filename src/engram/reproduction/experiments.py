"""What an experiment is: benchmarks to run, a question, and the paper's figures beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engram.policies.spec import Value
from engram.reproduction.published import Published

NOISE = "noise"
"""Prior of a policy that stands for a memory of random weights, made for the run."""

BALLS_PRIOR = "digits"
SPECIES_PRIOR = "species"
OVERHEAD_PRIOR = "natural"
TUMOUR_PRIOR = "natural"

ALL = ("random", "spread", "gp", "greedy", "diffatd", "em-ptdm")
CHEAP = ("random", "spread", "gp", "em-ptdm")

FEEDERWATCH = ("species/feederwatch_2021.csv.gz",)
OTHER_POINTS = ("species/points_other.csv.gz",)
LANTERNFLIES = ("species/lanternfly_10km.csv.gz",)
TILES = ("overhead/overhead_tiles.npz",)
SLICES = ("extra/brain_tumour_128.npz",)
DIGITS = ("mnist/t10k-images-idx3-ubyte.gz",)


@dataclass(frozen=True)
class Part:
    """One benchmark of an experiment; the last of ``at`` is the budget.

    data    : files it needs, below the folder of data
    length  : tasks of a sequence under one memory; 0 = every task on its own
    lessons : training steps after each task of a sequence
    """

    name: str
    suite: str
    policies: tuple[str, ...]
    at: tuple[int, ...]
    tasks: int
    seeds: int = 1
    prior: str = "universal"
    settings: Mapping[str, Value] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    length: int = 0
    lessons: int = 0

    @property
    def budget(self) -> int:
        return max(self.at)


@dataclass(frozen=True)
class Experiment:
    """What is asked, what is run, what the paper reports, and what to bear in mind.

    views : which tables and figures are made of the rows (see ``tables`` and ``figures``)
    lead  : the policy the question is about; the others are subtracted from it
    pairs : further differences to show, (policy, minus)
    pool  : name under which the tasks of all parts are also taken together
    published : what the paper reports on the same question; ``beside`` the same where it
        belongs to one part alone
    reads : name of another experiment whose rows are used instead of own ones
    bear  : what differs from the paper's setting, in plain words
    """

    name: str
    title: str
    where: str
    question: str
    views: tuple[str, ...]
    lead: str
    parts: tuple[Part, ...] = ()
    quick: tuple[Part, ...] = ()
    published: Published | None = None
    beside: Mapping[str, Published] = field(default_factory=dict)
    pairs: tuple[tuple[str, str], ...] = ()
    pool: str = ""
    reads: str = ""
    bear: str = ""

    def parts_of(self, *, quick: bool) -> tuple[Part, ...]:
        """What is run: a few tasks of some parts, or everything."""
        return self.quick if quick else self.parts

    def reported(self, part: str) -> Published | None:
        """The paper's figures that stand beside those of a part."""
        return self.beside.get(part, self.published)
