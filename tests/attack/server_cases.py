"""Schemathesis against the published OpenAPI: thousands of requests, and what must hold of each.

    python tests/attack/server_cases.py --cases 5000 [--seed 0] [--out FILE]

Bodies, parameters and headers are drawn from the schema, right ones and wrong ones, for every
route. No answer may be a 5xx, have a status or a type that is not published, or a body outside the
schema; a wrong body may not be taken; without its token, every request is answered with 401; and
at the end the log has to verify.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.generation.meta import ParameterLocation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "server"))

from server_help import LocalClient, Served, inline_app

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
BASE = "http://127.0.0.1:8765"
KNOWN = {"name": "pond", "account": "crew", "layer": "probability", "query": 1, "token": 999}
"""Path parameters that lead somewhere; most cases get them, the others keep what was drawn."""


@dataclass
class Found:
    """What was asked and answered."""

    cases: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class Attack:
    """A server in this process, and requests to it."""

    def __init__(self, folder: Path) -> None:
        app = inline_app(str(folder / "campaigns.db"))
        self._client = LocalClient(app)
        self.served = Served(self._client, app).furnished()
        self.served.context.live.closing = True  # streams end after their first message
        for col in range(3):
            self.served.post("crew", "/campaigns/pond/tell", {"cell": [0, col], "outcome": col % 2})
        self.served.post("crew", "/campaigns/pond/ask", {"n": 2})
        self.schema = schemathesis.openapi.from_dict(self._client.get("/openapi.json").json())
        self.found = Found()

    def send(self, case: schemathesis.Case, known: bool) -> None:
        """One request, with a token that is good, and what its answer has to be."""
        parameters = case.path_parameters
        if known and isinstance(parameters, dict):
            parameters.update({n: v for n, v in KNOWN.items() if n in parameters})
        secret = self.served.tokens["owner of all"]
        raw = requests.Request(**case.as_transport_kwargs(base_url=BASE)).prepare()
        headers = {n: v for n, v in raw.headers.items() if n.lower() != "content-length"}
        headers["Authorization"] = f"Bearer {secret}"
        answer = self._request(case, raw, headers)
        if answer is None:
            return
        if answer.status_code == 401 and "/sign-in" not in case.path:
            self.served.tokens["owner of all"] = self.served.issue("owner")
            return  # it signed itself out
        self.found.cases += 1
        self.found.statuses[answer.status_code] += 1
        try:
            case.validate_response(answer, checks=CHECKS + [negative_data_rejection] * _wrong(case))
        except (Exception, BaseExceptionGroup) as error:
            self.found.faults.append(f"{case.method} {case.path}: {str(error)[:600]}")
        if self.found.cases % 5 == 0 and "/sign-in" not in case.path:
            headers["Authorization"] = "Bearer nobody"
            nobody = self._request(case, raw, headers)
            if nobody is not None and nobody.status_code not in (401, 400, 404, 405, 413):
                self.found.faults.append(f"{case.method} {case.path}: nobody is let in")

    def _request(self, case: Any, raw: Any, headers: dict[str, Any]) -> Any:
        try:
            return self._client.request(
                str(raw.method), str(raw.url), content=raw.body or b"", headers=headers
            )
        except (UnicodeEncodeError, ValueError) as error:  # no client can send such a header
            if "header" not in str(error).lower() and "ascii" not in str(error).lower():
                raise
            return None

    def close(self) -> None:
        self._client.close()


def _wrong(case: schemathesis.Case) -> bool:
    """Whether body or query are wrong for sure: token and path may have been put right by us.

    A query of parameters that nobody declared is none: HTTP lets servers pass them over.
    """
    parts = {} if case.meta is None else case.meta.components
    wrong = {where for where, part in parts.items() if part.mode is GenerationMode.NEGATIVE}
    declared = {parameter.name for parameter in case.operation.query}
    if not declared & set(case.query or {}):
        wrong.discard(ParameterLocation.QUERY)
    return bool(wrong & {ParameterLocation.BODY, ParameterLocation.QUERY})


def attack(cases: int, folder: Path, number: int = 0) -> Found:
    """Send about as many requests, spread evenly over the routes."""
    run = Attack(folder)
    operations = [found.ok() for found in run.schema.get_all_operations()]
    each = max(1, -(-cases // (2 * len(operations))))
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try:
                strategy = operation.as_strategy(generation_mode=mode)
            except Exception:  # nothing about this route can be wrong
                continue

            @seed(number)
            @settings(
                max_examples=each,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                derandomize=False,
                suppress_health_check=list(HealthCheck),
            )
            @given(case=strategy, known=st.sampled_from([True, True, True, False]))
            def send(case: schemathesis.Case, known: bool) -> None:
                run.send(case, known)

            try:
                send()
            except Exception as error:
                if "Unsatisfiable" not in type(error).__name__:
                    raise
    log = run.served.post("viewer", "/campaigns/pond/verify")
    if not log.json().get("ok"):
        run.found.faults.append(f"verify: {log.text[:300]}")
    run.close()
    return run.found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="engram-cases-") as folder:
        found = attack(args.cases, Path(folder), args.seed)
    rows = [f"| {status} | {count} |" for status, count in sorted(found.statuses.items())]
    text = "\n".join(
        [
            f"Schemathesis {schemathesis.SCHEMATHESIS_VERSION}: {found.cases} cases, "
            f"{len(found.faults)} faults.",
            "",
            "| status | answers |",
            "| ---: | ---: |",
            *rows,
            "",
        ]
    )
    sys.stdout.write(text + "\n".join(found.faults[:20]) + "\n")
    if args.out is not None:
        args.out.write_text(text, encoding="utf-8")
    if found.faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
