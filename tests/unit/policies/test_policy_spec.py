from __future__ import annotations

from copy import deepcopy

import pytest

from engram import InputError, ball_task
from engram.policies.spec import PolicyChoice, parse_policies, typed


def _parse(text: str) -> tuple[PolicyChoice, ...]:
    return parse_policies(text, preset="default", prior="universal")


@pytest.mark.parametrize(
    ("text", "value"),
    [("off", False), ("ON", True), ("5", 5), ("0.2", 0.2), ("1e-3", 1e-3), ("mmps", "mmps")],
)
def test_words_become_values(text: str, value: object) -> None:
    found = typed(text)
    assert found == value
    assert type(found) is type(value)


def test_commas_inside_brackets_belong_to_the_options() -> None:
    plain, ablated, other = _parse("em-ptdm, em-ptdm[h=off,a=5],random")
    assert (plain.label, plain.options) == ("em-ptdm", ())
    assert ablated.label == "em-ptdm[h=off,a=5]"
    assert ablated.name == "em-ptdm"
    assert dict(ablated.options) == {"h": False, "a": 5}
    assert other.name == "random"
    assert not other.needs_memory
    assert plain.needs_memory


def test_preset_and_prior_can_differ_by_policy() -> None:
    paper, digits = _parse("em-ptdm[preset=paper],em-ptdm[prior=digits]")
    assert (paper.preset, paper.prior, paper.options) == ("paper", "universal", ())
    assert (digits.preset, digits.prior, digits.options) == ("default", "digits", ())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nope", "unknown policy 'nope'"),
        ("", "is not of the form"),
        ("random,", "is not of the form"),
        ("random[", "is not of the form"),
        ("random[]", "is not of the form name=value"),
        ("random[a]", "is not of the form name=value"),
        ("random[a=1,a=2]", "given twice"),
        ("random,random", "given twice"),
        ("random[preset=best]", "unknown preset 'best'"),
    ],
)
def test_faults_are_named(text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        _parse(text)


def test_options_a_policy_does_not_know_are_refused() -> None:
    (choice,) = _parse("random[colour=red]")
    with pytest.raises(InputError, match="colour"):
        choice.build(ball_task(0), 5, 0)


def test_a_choice_travels_by_value_and_builds() -> None:
    (choice,) = _parse("random")
    policy = deepcopy(choice).build(ball_task(0), 5, 3)
    assert (policy.name, policy.budget, policy.seed) == ("random", 5, 3)
