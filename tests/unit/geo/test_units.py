from __future__ import annotations

import pytest

from engram.errors import InputError
from engram.geo.units import length, shown_length, shown_side, speed


def test_lengths_and_speeds() -> None:
    assert [length(t, "--l") for t in ("250m", "0.5 km", "100ft", "1mi", ".5KM")] == pytest.approx(
        [250, 500, 30.48, 1609.344, 500]
    )
    assert [speed(t, "--s") for t in ("3.6km/h", "2m/s", "1mph", "1kn")] == pytest.approx(
        [1, 2, 0.44704, 0.514444], rel=1e-5
    )


@pytest.mark.parametrize("text", ["250", "0m", "-3m", "m", "250 furlong", "1e3m", "nanm", "5" * 99])
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--cell-size"):
        length(text, "--cell-size")
    with pytest.raises(InputError, match=r"250.*has no unit.*250m"):
        length("250", "--cell-size")


def test_words() -> None:
    assert [shown_length(v) for v in (0, 3.21, 340.2, 2400, 1.25e6)] == [
        "0 m", "3.2 m", "340 m", "2.4 km", "1,250 km",
    ]  # fmt: skip
    assert [shown_side(v) for v in (250.0, 1000.0, 1500.0, 304.8)] == [
        "250 m", "1 km", "1.5 km", "304.8 m",
    ]  # fmt: skip
