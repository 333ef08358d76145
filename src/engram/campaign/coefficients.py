"""Coefficients of "what is left"; ``benchmarks/remaining_fit.py`` makes this file."""

from __future__ import annotations

from engram.origins import Made

MADE: Made = {
    "command": "python benchmarks/remaining_fit.py --searches searches --write",
    "commit": "d040bc27ccd63776737cd921d603bdd0f5932f5b",
    "memories": {
        "universal": "2cec3ee46d6d8c4383f5567988acecb5bd9b0aeffaf26575ce75bed5fb7bb33d",
        "digits": "cd70d5403e31154c178ce67b794d1cfac5e7bd819e4dfc766e6ec80cd7fdd885",
    },
    "data": (
        "searches of benchmarks/searches.py: auto with universal in 111 scenes; auto with"
        " universal in 40 scenes; auto with digits in 10 scenes; gp in 83 scenes"
    ),
    "note": (
        "features chosen on ball tasks 0:40 and rare maps 0:24, none of which is in the "
        "fit; searches that were in the folder already are of whichever commit made them"
    ),
}
SHARE = {
    "one": -0.8185,
    "kriged": 0.3410,
    "rate": 0.4785,
    "none": 2.2682,
    "size": -0.4065,
    "length x (corrected - kriged)": 0.5171,
    "length x (rate - kriged)": -0.1461,
    "length x top": 1.2489,
}
CONCENTRATION = {
    "one": 1.4157,
    "length": 2.7608,
    "corrected": -0.0982,
    "size": -0.4252,
}
PACE = 2.8732
EVENNESS = (-0.1620, 0.3923, 0.3096)
