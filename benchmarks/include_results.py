"""Put result files into the pages that quote them.

A page quotes a file between two marks:

    <!-- include benchmarks/results/NAME.md -->
    ...
    <!-- end of benchmarks/results/NAME.md -->

What a page says of a difference is computed from its interval, paired over the rows kept in
``benchmarks/results/NAME.json``:

    <!-- says NAME: POLICY - OTHER -->above at 150, 200 (+0.071 ±0.024, ...)<!-- said -->

``says NAME: POLICY - FILE: OTHER`` takes the other's rows of ``FILE.json``, such as those of an
older engine, on the tasks of both.

    python benchmarks/include_results.py            # bring README and docs up to date
    python benchmarks/include_results.py --check    # exit 1 where a page differs
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from engram.bench.runner import read_results
from engram.bench.tables import paired, plus_minus
from engram.bench.units import Row
from engram.reproduction.verdicts import verdict

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    "README.md",
    "docs/architecture.md",
    "docs/engine.md",
    "docs/memories.md",
    "docs/campaigns.md",
    "docs/map.md",
    "docs/layers.md",
    "docs/detection.md",
    "docs/scale.md",
)
CLAIM = re.compile(
    r"<!-- says ([\w-]+): (\S+) - (?:([\w-]+): )?(\S+) -->.*?<!-- said -->", re.DOTALL
)
SAME = ("suite", "settings", "budget", "at")
"""Options of files whose rows are compared."""
MARKED = re.compile(r"<!-- include (\S+) -->\n.*?<!-- end of \1 -->", re.DOTALL)


def included(text: str) -> str:
    """The page with every quoted file as it is now."""

    def quote(match: re.Match[str]) -> str:
        name = match.group(1)
        content = (ROOT / name).read_text(encoding="utf-8").strip()
        return f"<!-- include {name} -->\n{content}\n<!-- end of {name} -->"

    return CLAIM.sub(_claimed, MARKED.sub(quote, text))


def _claimed(match: re.Match[str]) -> str:
    name, policy, elsewhere, other = match.groups()
    words = said(name, policy, other, elsewhere)
    place = f"{elsewhere}: {other}" if elsewhere else other
    return f"<!-- says {name}: {policy} - {place} -->{words}<!-- said -->"


def said(name: str, policy: str, other: str, elsewhere: str | None = None) -> str:
    """Where a policy is above, below or not told apart from another, by kept rows."""
    results = _kept(name)
    rows, at = results["rows"], results["options"]["at"]
    if elsewhere:
        there = _kept(elsewhere)
        for key in SAME:
            if there["options"][key] != results["options"][key]:
                raise SystemExit(f"{name} and {elsewhere} are not of the same {key}")
        own = [row for row in rows if row["policy"] == policy]
        rows = [row for row in there["rows"] if row["policy"] == other]
        other = f"{other} of {elsewhere}"
        rows = own + [{**row, "policy": other} for row in rows]
    return in_words(rows, at, policy, other)


def _kept(name: str) -> dict[str, Any]:
    return read_results(ROOT / "benchmarks" / "results" / f"{name}.json")


def in_words(rows: list[Row], at: list[int], policy: str, other: str) -> str:
    """The same of some rows, at some budgets."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for budget in at:
        pair = paired(rows, policy, other, budget)
        if pair["mean"] is None:
            raise SystemExit(f"there are no tasks that both {policy} and {other} searched")
        kind = verdict(pair).removesuffix(" from").removesuffix(" against")
        groups.setdefault(kind, []).append((budget, plus_minus(pair, "+")))
    return "; ".join(
        f"{kind} at {', '.join(str(b) for b, _ in found)} ({', '.join(d for _, d in found)})"
        for kind, found in groups.items()
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, exit 1 if it would")
    check = parser.parse_args().check
    stale = 0
    for name in PAGES:
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        fresh = included(text)
        if fresh != text:
            stale += 1
            print(f"{name} {'differs from its result files' if check else 'brought up to date'}")
            if not check:
                page.write_text(fresh, encoding="utf-8")
    return int(check and stale > 0)


if __name__ == "__main__":
    sys.exit(main())
