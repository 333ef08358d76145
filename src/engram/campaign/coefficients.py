"""Coefficients of "what is left"; ``benchmarks/remaining_fit.py`` makes this file."""

from __future__ import annotations

SHARE = {
    "one": -0.1597,
    "kriged": 0.4270,
    "policy": -0.0276,
    "corrected": -0.0310,
    "length": 0.4989,
    "length x (corrected - kriged)": 0.3440,
    "rate": 0.1647,
    "length x (rate - kriged)": -0.5358,
    "length x recent": 0.3165,
    "top": -0.5230,
    "length x top": 0.4588,
    "contrast": 0.6448,
    "surprise": -0.6263,
}
CONCENTRATION = {
    "one": 1.4028,
    "firm": -0.1043,
    "length": -1.0748,
    "|corrected - kriged|": -0.0776,
    "corrected": -0.2624,
    "length x firm": 0.4732,
    "groups": 0.8178,
    "contrast": -0.1165,
    "top": 0.2614,
    "surprise": -0.7822,
}
