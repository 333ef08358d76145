"""Templates: whatever is put into them stays text, and nothing that they need is forgotten."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from engram._templates import rendered

EVIL = "\"><script>alert('x')</script>&"


def test_values_stay_text_in_the_sign_in_page() -> None:
    text = rendered("sign_in.html", token=EVIL, account=EVIL, problem=EVIL)
    assert "<script" not in text
    assert text.count("&lt;script&gt;") == 3
    assert 'value="&#34;&gt;&lt;script' in text


def test_a_value_that_was_forgotten_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'account' is undefined"):
        rendered("sign_in.html", token="t", problem="")
