from __future__ import annotations

import subprocess
import sys

import engram

HEAVY = ("torch", "scipy", "sklearn", "matplotlib", "PIL", "sqlalchemy", "typer", "rich")


def test_importing_engram_stays_light() -> None:
    code = f"import engram, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_are_what_they_say_however_often_they_are_used() -> None:
    for _ in range(2):
        for name in engram.__all__:
            assert getattr(engram, name) is not None
        assert callable(engram.simulate)
        assert callable(engram.load_memory)


def test_errors_form_one_family() -> None:
    assert issubclass(engram.InputError, engram.EngramError)
    assert issubclass(engram.InputError, ValueError)
    assert issubclass(engram.WeightsError, engram.EngramError)
