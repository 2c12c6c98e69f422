"""Comparison of results with an oracle."""

from __future__ import annotations

import math
from typing import Any


def same(given: Any, expected: Any, doubt: float = 0.0) -> bool:
    """True if two values are equal; computed floats may differ slightly."""
    if isinstance(expected, float) and isinstance(given, float):
        return given == expected or math.isclose(given, expected, rel_tol=1e-9, abs_tol=max(doubt, 1e-12))
    if isinstance(expected, dict) and isinstance(given, dict):
        return list(given) == list(expected) and all(same(given[key], expected[key], doubt) for key in expected)
    if isinstance(expected, list) and isinstance(given, list):
        return len(given) == len(expected) and all(same(a, b, doubt) for a, b in zip(given, expected, strict=True))
    return type(given) is type(expected) and given == expected
