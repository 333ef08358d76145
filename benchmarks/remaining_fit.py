"""Fit the coefficients of "what is left" and of what is found of it, on procedural scenes.

    python benchmarks/remaining_fit.py --searches DIR [--write]

Runs the searches of ``SETS`` (those already in DIR are read). Of what is left: takes the features
at the moments of each search and maximises the beta-binomial likelihood of the number of target
cells left plus a ridge penalty; areas with rare and with frequent targets count the same in all.
A widening of the distribution comes from cross-validation: held-out scenes are less likely than
fitted ones. Of what is found: the likelihood of the finds that the search went on to make, at
several distances ahead. No ball task and no rare map is used. ``--write`` replaces
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
from scipy.special import digamma
from searches import Search, kept, so_far_at

from engram._threads import set_threads
from engram.bench.provenance import made
from engram.campaign.prospect import chance_of_each, evenness, hand, likeliest, share_of
from engram.campaign.remaining import LIMITS, features, kriging_of, log_beta_binomial

Array = NDArray[np.float64]

MOMENTS = (5, 10, 20, 35, 50, 75, 100, 125, 150, 175, 200, 225, 250, 280)
"""Moments of a search that are looked at."""

AHEAD = (10, 25, 50, 100, 300)
"""Further measurements, as far as the search went, whose finds are looked at."""

SETS = (
    ("auto", "universal", (*range(40), *range(100, 165), 200, 202, *range(300, 304))),
    ("auto", "universal", range(400, 440)),
    ("auto", "digits", (102, 104, 107, 109, 112, 114, 117, 119, 443, 448)),
    ("gp", "", (*range(100, 131), *range(200, 212), *range(300, 310), *range(400, 430))),
)
"""Policy, memory, scenes. The universal memory knows such scenes; the digit memory stands for one
that does not fit."""

CLASSES = (0.02, 0.08, 0.2)
"""Shares of target that part the areas into classes of the same weight."""

SHARE = (
    "one",
    "kriged",
    "rate",
    "none",
    "size",
    "length x (corrected - kriged)",
    "length x (rate - kriged)",
    "length x top",
)
CONCENTRATION = ("one", "length", "corrected", "size")
"""Features of logit pi and log kappa: few, since those that merely describe the scenes of the fit
made other areas worse."""

CHOSEN = "features chosen on ball tasks 0:40 and rare maps 0:24, none of which is in the fit"

RIDGE = 5.0
FOLDS = 4

HEADER = '''"""Coefficients of "what is left"; ``benchmarks/remaining_fit.py`` makes this file."""

from __future__ import annotations

from engram.origins import Made

'''


def origin() -> str:
    """Which command, code, memories and searches make the coefficients, as Python."""
    parts = [
        f"{policy}{f' with {prior}' if prior else ''} in {len(scenes)} scenes"
        for policy, prior, scenes in SETS
    ]
    priors = dict.fromkeys(prior for _, prior, _ in SETS if prior)
    note = f"{CHOSEN}; searches that were in the folder already are of whichever commit made them"
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
    """Rows (search, moment): features x of pi and z of kappa, left, searchable, weight, fold;
    rows (search, moment, distance): targets, measurements, share, hand, finds, weight."""

    def __init__(self, folder: Path) -> None:
        left, ahead = [], []
        searches = [
            (k, kept("scenes", k, policy, prior, folder=folder))
            for policy, prior, scenes in SETS
            for k in scenes
        ]
        classes = [int(np.searchsorted(CLASSES, s.truth.mean())) for _, s in searches]
        sizes = np.bincount(classes, minlength=len(CLASSES) + 1)
        for (k, search), rarity in zip(searches, classes, strict=True):
            weight = len(searches) / len(sizes) / sizes[rarity]
            for t in (t for t in MOMENTS if t in search.chances):
                seen, targets = so_far_at(search, t)
                f = features(seen, kriging_of(seen))
                row = [f[name] for name in (*SHARE, *CONCENTRATION)]
                left.append((*row, targets, seen.searchable.sum(), weight, k % FOLDS))
                ahead += finds_ahead(search, t)
        table, cut = np.array(left, np.float64), len(SHARE)
        self.searches = len(searches)
        self.x, self.z = table[:, :cut], table[:, cut:-4]
        self.left, self.m, self.weight, self.fold = table[:, -4:].T
        self.ahead = np.array(ahead, np.float64)


def finds_ahead(search: Search, t: int) -> list[tuple[float, ...]]:
    """What the search found after t, where there was something to find."""
    seen, targets = so_far_at(search, t)
    counts = sorted({min(n, len(search.cells) - t) for n in AHEAD} - {0})
    if not targets:
        return []
    p, found = likeliest(seen), np.cumsum(search.hits[t:])
    return [(targets, n, share_of(p, n), hand(p), found[n - 1], 1 / len(counts)) for n in counts]


def likelihood(
    d: Data, use: NDArray[np.bool_], theta: Array, wider: float = 0.0
) -> tuple[float, Array]:
    """Weighted log-likelihood of some rows, and its gradient."""
    x, z, left, m = d.x[use], d.z[use], d.left[use], d.m[use]
    share = 1 / (1 + np.exp(-np.clip(x @ theta[: x.shape[1]], *LIMITS[0])))
    kappa = np.exp(np.clip(z @ theta[x.shape[1] :] - wider, *LIMITS[1]))
    a, b = share * kappa, (1 - share) * kappa
    logs = log_beta_binomial(left, m, a, b)
    common = digamma(kappa) - digamma(m + kappa)
    by_a = digamma(left + a) - digamma(a) + common
    by_b = digamma(m - left + b) - digamma(b) + common
    w = d.weight[use]
    by_share = w * (by_a - by_b) * kappa * share * (1 - share)
    by_kappa = w * (by_a * a + by_b * b)
    return float(w @ logs), np.concatenate([x.T @ by_share, z.T @ by_kappa])


def fit(d: Data, use: NDArray[np.bool_]) -> Array:
    """Coefficients (a, b) of the highest penalised likelihood."""

    def loss(theta: Array) -> tuple[float, Array]:
        value, gradient = likelihood(d, use, theta)
        return -value + RIDGE / 2 * float(theta @ theta), -gradient + RIDGE * theta

    start = np.zeros(d.x.shape[1] + d.z.shape[1])
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)


def widening(d: Data) -> tuple[float, float]:
    """What to take off log kappa so that held-out scenes are most likely, and that likelihood."""
    folds = [(d.fold == k, fit(d, d.fold != k)) for k in range(FOLDS)]

    def loss(wider: float) -> float:
        return -sum(likelihood(d, use, theta, wider)[0] for use, theta in folds)

    best = minimize_scalar(loss, bounds=(-1, 2), method="bounded")
    return float(best.x), float(-best.fun / d.weight.sum())


def fit_pace(d: Data) -> tuple[float, Array]:
    """Pace, and the coefficients of evenness, under which the finds ahead are most likely."""
    targets, count, share, inhand, found, weight = d.ahead.T
    n = np.minimum(targets, count)

    def loss(theta: Array) -> float:
        chance = chance_of_each(targets, n, share, float(np.exp(theta[0])))
        kappa = evenness(n, inhand, theta[1:])
        logs = log_beta_binomial(found, n, chance * kappa, (1 - chance) * kappa)
        return -float(weight @ logs)

    best = minimize(loss, np.array([0.5, 0.0, 0.5, 0.0]), method="L-BFGS-B").x
    return float(np.exp(best[0])), best[1:]


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
    pace, even = fit_pace(d)
    text += f"PACE = {pace:.4f}\nEVENNESS = ({', '.join(f'{value:.4f}' for value in even)})\n"
    print(text)
    if args.write:
        home = Path(__file__).parents[1] / "src" / "engram" / "campaign" / "coefficients.py"
        home.write_text(text)


if __name__ == "__main__":
    main()
