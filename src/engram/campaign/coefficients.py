"""Coefficients of "what is left"; ``benchmarks/remaining_fit.py`` makes this file."""

from __future__ import annotations

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
