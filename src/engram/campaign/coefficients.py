"""Coefficients of "what is left"; ``benchmarks/remaining_fit.py`` makes this file."""

from __future__ import annotations

from engram.origins import Made

MADE: Made = {
    "command": "python benchmarks/remaining_fit.py --searches DIR --write",
    "commit": "not recorded; the figures came with 597c317b468268f84a33854497f3e16c43a7c348",
    "memories": {
        "universal": "2cec3ee46d6d8c4383f5567988acecb5bd9b0aeffaf26575ce75bed5fb7bb33d",
        "digits": "cd70d5403e31154c178ce67b794d1cfac5e7bd819e4dfc766e6ec80cd7fdd885",
    },
    "data": (
        "searches of benchmarks/searches.py: auto with universal in 152 scenes, weight 1; "
        "auto with digits in 52 scenes, weight 1; gp in 53 scenes, weight 1; random in "
        "400 scenes, weight 0.35"
    ),
    "note": (
        "the hashes are those of the memories shipped with that commit; the fit did not "
        "write them down"
    ),
}
SHARE = {
    "one": -0.5094,
    "kriged": 0.1859,
    "length": 0.2286,
    "length x (corrected - kriged)": 0.3553,
    "rate": 0.4784,
    "length x (rate - kriged)": -0.7219,
    "length x recent": 0.0894,
    "none": 1.2690,
    "top": -0.6500,
    "length x top": 0.7304,
    "contrast": 0.3308,
    "surprise": -0.0620,
    "groups": 0.1368,
    "size": -0.0326,
    "area": 0.0088,
    "done": 0.1140,
}
CONCENTRATION = {
    "one": 1.4009,
    "length": 0.7437,
    "corrected": -0.1966,
    "length x firm": 0.4048,
    "length x recent": 0.4190,
    "none": 0.6029,
    "top": 0.3417,
    "surprise": -0.1012,
    "groups": 0.3174,
    "size": -0.4203,
    "area": -0.0151,
    "done": -0.0336,
}
