"""Fit the coefficients of "what is left" on searches in procedural scenes.

    python benchmarks/remaining_fit.py --searches DIR [--write]

Runs the searches of ``SETS`` (those already in DIR are read), takes the features at each of
their moments, and maximises the beta-binomial likelihood of the number of target cells left
plus a ridge penalty. A widening of the distribution comes from cross-validation: held-out
scenes are less likely than fitted ones. No ball task is used. ``--write`` replaces
``src/engram/campaign/coefficients.py``; without it the coefficients are printed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from textwrap import wrap

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import betaln, digamma, gammaln
from searches import evidence_at, kept

from engram._threads import set_threads
from engram.bench.provenance import made
from engram.campaign.remaining import LIMITS, features, kriging_of

Array = NDArray[np.float64]

SETS = (
    ("auto", "universal", (*range(55), *range(100, 183), *range(200, 206), *range(300, 308)), 1.0),
    ("auto", "digits", range(100, 152), 1.0),
    ("gp", "", (*range(100, 131), *range(200, 212), *range(300, 310)), 1.0),
    ("random", "", range(400), 0.35),
)
"""Policy, memory, scenes, weight. The universal memory knows such scenes; the digit memory
stands for one that does not fit."""

SHARE = {
    "one": 0.0,
    "kriged": 0.2,
    "length": 0.0,
    "length x (corrected - kriged)": 0.0,
    "rate": 0.0,
    "length x (rate - kriged)": 0.0,
    "length x recent": 0.0,
    "none": 0.0,
    "top": 0.0,
    "length x top": 0.0,
    "contrast": 0.0,
    "surprise": 0.0,
    "groups": 0.0,
    "size": 0.0,
    "area": 0.0,
    "done": 0.0,
}
CONCENTRATION = {
    "one": 0.0,
    "length": 0.0,
    "corrected": 0.0,
    "length x firm": 0.0,
    "length x recent": 0.0,
    "none": 0.0,
    "top": 0.0,
    "surprise": 0.0,
    "groups": 0.0,
    "size": 0.0,
    "area": 0.0,
    "done": 0.0,
}
"""Features of logit pi and log kappa, and what the penalty pulls their coefficients to."""

RIDGE = 5.0
FOLDS = 4

HEADER = '''"""Coefficients of "what is left"; ``benchmarks/remaining_fit.py`` makes this file."""

from __future__ import annotations

from engram.origins import Made

'''


def origin() -> str:
    """Which command, code, memories and searches make the coefficients, as Python."""
    parts = [
        f"{policy}{f' with {prior}' if prior else ''} in {len(scenes)} scenes, weight {weight:g}"
        for policy, prior, scenes, weight in SETS
    ]
    priors = dict.fromkeys(prior for _, prior, _, _ in SETS if prior)
    note = "searches that were in the folder already are of whichever commit made them"
    facts = made(priors, f"searches of benchmarks/searches.py: {'; '.join(parts)}", note)
    lines = [f"    {_literal(key)}: {_literal(value)}," for key, value in facts.items()]
    return "MADE: Made = {\n" + "\n".join(lines) + "\n}\n"


def _literal(value: object) -> str:
    """As Python in lines of at most 80 characters of text."""
    if isinstance(value, dict):
        lines = [f"        {_literal(key)}: {_literal(item)}," for key, item in value.items()]
        return "{\n" + "\n".join(lines) + "\n    }"
    words = wrap(str(value), 80, drop_whitespace=False, break_on_hyphens=False) or [""]
    if len(words) == 1:
        return json.dumps(words[0])
    return "(\n" + "\n".join(f"        {json.dumps(word)}" for word in words) + "\n    )"


class Data:
    """Rows (search, moment): features x of pi and z of kappa, left, searchable, weight, fold."""

    def __init__(self, folder: Path) -> None:
        rows = []
        for policy, prior, scenes, weight in SETS:
            for k in scenes:
                search = kept("scenes", k, policy, prior, folder=folder)
                for t in search.chances:
                    seen, left = evidence_at(search, t)
                    f = features(seen, kriging_of(seen))
                    x, z = ([f[name] for name in table] for table in (SHARE, CONCENTRATION))
                    rows.append((*x, *z, left, seen.searchable.sum(), weight, k % FOLDS))
        table, cut = np.array(rows, np.float64), len(SHARE)
        self.x, self.z = table[:, :cut], table[:, cut:-4]
        self.left, self.m, self.weight, self.fold = table[:, -4:].T


def likelihood(
    d: Data, use: NDArray[np.bool_], theta: Array, wider: float = 0.0
) -> tuple[float, Array]:
    """Weighted log-likelihood of some rows, and its gradient."""
    x, z, left, m = d.x[use], d.z[use], d.left[use], d.m[use]
    share = 1 / (1 + np.exp(-np.clip(x @ theta[: x.shape[1]], *LIMITS[0])))
    kappa = np.exp(np.clip(z @ theta[x.shape[1] :] - wider, *LIMITS[1]))
    a, b = share * kappa, (1 - share) * kappa
    ways = gammaln(m + 1) - gammaln(left + 1) - gammaln(m - left + 1)
    logs = ways + betaln(left + a, m - left + b) - betaln(a, b)
    common = digamma(kappa) - digamma(m + kappa)
    by_a = digamma(left + a) - digamma(a) + common
    by_b = digamma(m - left + b) - digamma(b) + common
    w = d.weight[use]
    by_share = w * (by_a - by_b) * kappa * share * (1 - share)
    by_kappa = w * (by_a * a + by_b * b)
    return float(w @ logs), np.concatenate([x.T @ by_share, z.T @ by_kappa])


def fit(d: Data, use: NDArray[np.bool_]) -> Array:
    """Coefficients (a, b) of the highest penalised likelihood."""
    centre = np.array([*SHARE.values(), *CONCENTRATION.values()])

    def loss(theta: Array) -> tuple[float, Array]:
        value, gradient = likelihood(d, use, theta)
        off = theta - centre
        return -value + RIDGE / 2 * float(off @ off), -gradient + RIDGE * off

    return np.asarray(minimize(loss, centre, jac=True, method="L-BFGS-B").x)


def widening(d: Data) -> tuple[float, float]:
    """What to take off log kappa so that held-out scenes are most likely, and that likelihood."""
    folds = [(d.fold == k, fit(d, d.fold != k)) for k in range(FOLDS)]

    def loss(wider: float) -> float:
        return -sum(likelihood(d, use, theta, wider)[0] for use, theta in folds)

    best = minimize_scalar(loss, bounds=(-1, 2), method="bounded")
    return float(best.x), float(-best.fun / d.weight.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    set_threads(1)
    d = Data(args.searches)
    theta = fit(d, np.ones(len(d.left), bool))
    wider, held_out = widening(d)
    theta[len(SHARE)] -= wider
    print(f"{len(d.left)} rows; wider by {wider:.3f}; held-out log-likelihood {held_out:.3f}")
    text = HEADER + origin()
    for name, table, values in (
        ("SHARE", SHARE, theta[: len(SHARE)]),
        ("CONCENTRATION", CONCENTRATION, theta[len(SHARE) :]),
    ):
        lines = [f'    "{key}": {value:.4f},' for key, value in zip(table, values, strict=True)]
        text += f"{name} = {{\n" + "\n".join(lines) + "\n}\n"
    print(text)
    if args.write:
        home = Path(__file__).parents[1] / "src" / "engram" / "campaign" / "coefficients.py"
        home.write_text(text)


if __name__ == "__main__":
    main()
