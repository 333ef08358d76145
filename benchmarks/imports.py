"""What starting costs, this version beside another one: imports and the help of the command line.

    python benchmarks/imports.py --before FOLDER [--runs 15] [--out benchmarks/results/imports]

FOLDER is the ``src`` of the other version. Both start in turn, each time in a process of its own;
figures are medians of processor time (user and system, one thread), as other work may run beside.
A start that loads torch fails.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from statistics import median

from campaign_cli import child
from campaign_long import commit_of

from engram._writing import write_file

HERE = Path(__file__).resolve().parent
STARTS = {
    "python alone": "pass",
    "import engram": "import engram",
    "engram --help": "from engram.cli.main import main; main(['--help'])",
    "engram campaign --help": "from engram.cli.main import main; main(['campaign', '--help'])",
    "import engram.campaign": "import engram.campaign",
}
GUARD = "\nimport sys; assert 'torch' not in sys.modules"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "imports")
    args = parser.parse_args()
    sources = {"before": args.before.resolve(), "after": HERE.parent / "src"}
    rows: dict[str, dict[str, list[float]]] = {n: {side: [] for side in sources} for n in STARTS}
    for run in range(args.runs + 1):
        for name, code in STARTS.items():
            for side, source in sources.items():
                seconds = child([sys.executable, "-c", code + GUARD], str(source), HERE)
                if run:  # the first one writes bytecode
                    rows[name][side].append(round(seconds, 4))
    commits = {side: commit_of(str(source)) for side, source in sources.items()}
    lines = ["| start | before (s) | after (s) |", "| --- | --- | --- |"]
    for name, sides in rows.items():
        lines.append(f"| {name} | {' | '.join(f'{median(v):.3f}' for v in sides.values())} |")
    lines += [
        "",
        f"Processor seconds, medians of {args.runs} starts of {commits['before'][:7]} and "
        f"{commits['after'][:7]} in turn, other work beside them (`benchmarks/imports.py`).",
        "",
    ]
    facts = {"commits": commits, "python": platform.python_version(), "machine": platform.machine()}
    write_file(args.out.with_suffix(".json"), json.dumps({**facts, "rows": rows}) + "\n")
    write_file(args.out.with_suffix(".md"), "\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
