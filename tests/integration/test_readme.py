"""The example of the README runs as printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_python_example_finds_most_of_the_disc() -> None:
    code = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert code is not None
    run = subprocess.run(
        [sys.executable, "-c", code.group(1)], capture_output=True, text=True, check=True
    )
    found = re.match(r"(\d+) target cells found", run.stdout)
    assert found is not None
    assert int(found.group(1)) > 60
