"""Make docs/reproduction.md from the small result files in benchmarks/results/paper.

    python benchmarks/reproduction.py [--take DIR]

``--take`` first takes the result files and figures of a run of ``engram bench paper --out DIR``.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from engram.bench.journal import write_atomic
from engram.bench.paper.page import page
from engram.bench.paper.run import read_digests

HERE = Path(__file__).resolve().parent
KEPT = HERE / "results" / "paper"
DOCS = HERE.parent / "docs"
IMAGES = DOCS / "images" / "reproduction"


def take(run: Path) -> None:
    """Replace what is kept by the digests and figures of a run."""
    for source, pattern, kept in (("digests", "*.json", KEPT), ("figures", "*.png", IMAGES)):
        found = sorted((run / source).glob(pattern))
        if not found:
            raise SystemExit(f"no {pattern} in {run / source}; run engram bench paper first")
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for path in found:
            shutil.copy(path, kept / path.name)


def links(digests: dict[str, dict[str, object]]) -> dict[str, list[str]]:
    """Figures by experiment: a file belongs to the longest name it starts with."""
    found: dict[str, list[str]] = {name: [] for name in digests}
    for path in sorted(IMAGES.glob("*.png")):
        owners = [n for n in digests if path.stem == n or path.stem.startswith(f"{n}-")]
        if owners:
            found[max(owners, key=len)].append(path.relative_to(DOCS).as_posix())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--take", type=Path, metavar="DIR", help="a run of engram bench paper")
    args = parser.parse_args()
    if args.take is not None:
        take(args.take)
    digests = read_digests(KEPT)
    if not digests:
        raise SystemExit(f"no result files in {KEPT}; give --take DIR")
    write_atomic(DOCS / "reproduction.md", page(digests, links(digests)))


if __name__ == "__main__":
    main()
