"""Tables made of rows that are kept: put together, and evidence with and without h."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from engram.bench.provenance import command_of

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import combine
import evidence


def row(policy: str, prior: str | None, task: int) -> dict[str, Any]:
    return {"policy": policy, "prior": prior, "task": task, "seed": 0}


def run(prior: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    policies = list(dict.fromkeys(r["policy"] for r in rows))
    memories = {name: f"hash of {name}" for name in ("digits", "universal")}
    options = {"prior": prior, "policies": policies, "memories": memories}
    return {"commit": f"of {prior}", "options": options, "seen": {}, "rows": rows}


@pytest.mark.parametrize(
    ("policy", "prior", "named"),
    [
        ("gp", None, "gp"),
        ("em-ptdm", "digits", "em-ptdm"),
        ("em-ptdm[prior=digits]", "digits", "em-ptdm"),
        ("em-ptdm[prior=digits,h=off]", "digits", "em-ptdm[h=off]"),
        ("em-ptdm", "universal", "em-ptdm[prior=universal]"),
        ("em-ptdm[h=off,a=5]", "universal", "em-ptdm[prior=universal,h=off,a=5]"),
    ],
)
def test_a_policy_is_named_by_its_memory_where_that_is_another(
    policy: str, prior: str | None, named: str
) -> None:
    assert combine.named(row(policy, prior, 0), "digits") == named


def test_rows_of_some_policies_keep_their_commit_and_their_memories() -> None:
    rows = [row("gp", None, 0), row("em-ptdm", "universal", 0), row("diffatd", "universal", 0)]
    taken = combine.under(run("universal", rows), "digits", ["gp", "em-ptdm[prior=universal]"])
    assert [r["policy"] for r in taken["rows"]] == ["gp", "em-ptdm[prior=universal]"]
    assert {r["commit"] for r in taken["rows"]} == {"of universal"}
    assert taken["options"]["memories"] == {"universal": "hash of universal"}
    assert taken["options"]["prior"] == "digits"


def test_the_command_of_a_result_file_can_be_given_again() -> None:
    options = {
        "suite": "overhead",
        "data": ["somewhere/tiles.npz"],
        "settings": {"target": "ship"},
        "policies": ["gp", "em-ptdm[h=off,a=5]"],
        "prior": "natural",
        "preset": "default",
        "tasks": [3, 9],
        "seeds": 5,
        "budget": 300,
        "at": [200, 300],
    }
    assert command_of(options) == (
        "engram bench run overhead --data tiles.npz --set target=ship --policies "
        "'gp,em-ptdm[h=off,a=5]' --prior natural --tasks 3:9 --seeds 5 --budget 300 --at 200,300"
    )
    kept = {**options, "data": [{"file": "tiles.npz", "sha256": "ab12"}]}  # as results name them
    assert command_of(kept) == command_of(options)


def searched(task: int, memory: float, h: float, *updates: float) -> dict[str, Any]:
    made = [{"before": -1.0, "after": -1.0 + change, "accepted": True} for change in updates]
    return {"task": task, "evidence_of": {"memory": memory, "h": h}, "updates": made}


def test_evidence_counts_what_h_adds_and_where_updates_lost() -> None:
    searches = {"some": [searched(k, -0.5, h, 0.3, -0.1) for k, h in enumerate((-0.4, -0.3, -0.6))]}
    assert evidence.second(searches)[-1].split(" | ")[4:6] == ["+0.067 ±0.379", "2 / 1"]
    assert evidence.second(searches)[-1].endswith("not told apart |")
    assert evidence.first(searches)[-1] == "| some | 6 | 3 | 6 | +0.1000 |"
    assert evidence.each(searches)[-1] == "| 2 | -0.100 |"


def test_the_kept_page_is_what_the_kept_rows_say() -> None:
    assert (evidence.RESULTS / "evidence.md").read_text(encoding="utf-8") == evidence.page()


def test_kept_tables_have_the_policies_their_command_names() -> None:
    kept = json.loads((combine.RESULTS / "balls-rivals.json").read_text(encoding="utf-8"))
    assert {r["policy"] for r in kept["rows"]} == set(kept["options"]["policies"])
    assert kept["complete"]
