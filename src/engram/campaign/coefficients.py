"""Coefficients of "what is left"; ``benchmarks/remaining_fit.py`` makes this file."""

from __future__ import annotations

SHARE = {
    "one": -0.5051,
    "kriged": 0.3606,
    "length": 0.1437,
    "length x (corrected - kriged)": 0.1860,
    "rate": 0.2823,
    "length x (rate - kriged)": -0.4420,
    "length x recent": 0.1357,
    "none": 1.4068,
    "top": -0.6121,
    "length x top": 0.7205,
    "contrast": 0.3527,
    "surprise": -0.0163,
    "groups": 0.1699,
    "size": -0.0929,
    "area": 0.0250,
    "done": 0.3093,
}
CONCENTRATION = {
    "one": 1.4409,
    "length": 0.7493,
    "corrected": -0.1848,
    "length x firm": 0.3831,
    "length x recent": 0.3946,
    "none": 0.2778,
    "top": 0.5460,
    "surprise": -0.4708,
    "groups": 0.3638,
    "size": -0.4382,
    "area": -0.0149,
    "done": -0.4971,
}
