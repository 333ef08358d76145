"""Make docs/reproduction.md from the small result files in benchmarks/results/paper.

    python benchmarks/reproduction.py [--take DIR ...]

``--take`` first takes the result files and figures of runs of ``engram bench paper --out DIR``;
what is kept of experiments that were not run stays. The page says which commit made what. Rates
and differences are computed again from the rows kept; a page that they do not give is not made.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from engram._writing import write_file
from engram.reproduction.kept import differing
from engram.reproduction.page import page
from engram.reproduction.run import read_digests

HERE = Path(__file__).resolve().parent
KEPT = HERE / "results" / "paper"
DOCS = HERE.parent / "docs"
IMAGES = DOCS / "images" / "reproduction"


def take(run: Path) -> None:
    """Replace what is kept of the experiments of a run by its digests and figures."""
    fresh = read_digests(run / "digests")
    if not fresh:
        raise SystemExit(f"no result files in {run / 'digests'}; run engram bench paper first")
    for folder in (KEPT, IMAGES):
        folder.mkdir(parents=True, exist_ok=True)
    for name, stale in links({**read_digests(KEPT), **fresh}).items():
        if name in fresh:
            shutil.copy(run / "digests" / f"{name}.json", KEPT)
            for link in stale:
                (DOCS / link).unlink()
    for path in (run / "figures").glob("*.png"):
        shutil.copy(path, IMAGES)


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
    parser.add_argument(
        "--take", type=Path, nargs="+", default=[], metavar="DIR", help="runs of engram bench paper"
    )
    for run in parser.parse_args().take:
        take(run)
    digests = read_digests(KEPT)
    if not digests:
        raise SystemExit(f"no result files in {KEPT}; give --take DIR")
    for name, digest in digests.items():
        for part, kept in digest["parts"].items():
            faults = differing(kept)
            if faults:
                raise SystemExit(f"{name} {part}: the rows kept do not give {'; '.join(faults)}")
    write_file(DOCS / "reproduction.md", page(digests, links(digests)))


if __name__ == "__main__":
    main()
