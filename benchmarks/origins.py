"""Write the table of constants that were chosen by hand, for the page that quotes it.

python benchmarks/origins.py && python benchmarks/include_results.py
"""

from __future__ import annotations

from pathlib import Path

from engram._writing import write_file
from engram.origins import chosen_table

if __name__ == "__main__":
    write_file(Path(__file__).parent / "results" / "origins.md", chosen_table())
