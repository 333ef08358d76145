"""Put result files into the pages that quote them.

A page quotes a file between two marks:

    <!-- include benchmarks/results/NAME.md -->
    ...
    <!-- end of benchmarks/results/NAME.md -->

    python benchmarks/include_results.py            # bring README and docs up to date
    python benchmarks/include_results.py --check    # exit 1 where a page differs
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/engine.md", "docs/memories.md", "docs/campaigns.md")
MARKED = re.compile(r"<!-- include (\S+) -->\n.*?<!-- end of \1 -->", re.DOTALL)


def included(text: str) -> str:
    """The page with every quoted file as it is now."""

    def quote(match: re.Match[str]) -> str:
        name = match.group(1)
        content = (ROOT / name).read_text(encoding="utf-8").strip()
        return f"<!-- include {name} -->\n{content}\n<!-- end of {name} -->"

    return MARKED.sub(quote, text)


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
