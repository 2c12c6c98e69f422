"""Comparison of results with an oracle."""

from __future__ import annotations

import math
from typing import Any

from omnigraph.engine.result.result import Result
from support.oracle.model import Answer
from support.random_reads.values import plain


def same(given: Any, expected: Any, doubt: float = 0.0) -> bool:
    """True if two values are equal; computed floats may differ slightly."""
    if isinstance(expected, float) and isinstance(given, float):
        return given == expected or math.isclose(given, expected, rel_tol=1e-9, abs_tol=max(doubt, 1e-12))
    if isinstance(expected, dict) and isinstance(given, dict):
        return list(given) == list(expected) and all(same(given[key], expected[key], doubt) for key in expected)
    if isinstance(expected, list) and isinstance(given, list):
        return len(given) == len(expected) and all(same(a, b, doubt) for a, b in zip(given, expected, strict=True))
    return type(given) is type(expected) and given == expected


def same_row(given: tuple[Any, ...], expected: tuple[Any, ...], doubt: dict[int, float]) -> bool:
    return all(same(a, b, doubt.get(at, 0.0)) for at, (a, b) in enumerate(zip(given, expected, strict=True)))


def disagreement(result: Result, expected: Answer) -> str | None:
    """The first difference between result and oracle; None if there is none."""
    if result.columns != expected.columns:
        return f"columns {result.columns}, expected {expected.columns}"
    given = list(zip(*(plain(column) for column in result.to_arrow().columns), strict=True))
    rows = expected.rows
    count = max(len(rows) - expected.skip, 0)
    count = count if expected.limit is None else min(count, expected.limit)
    if len(given) != count or len(result) != count:
        return f"{len(given)} rows, expected {count}"
    if expected.ordered:
        for at, (one, other) in enumerate(zip(given, rows, strict=True)):
            if not same_row(one, other, expected.doubt):
                return f"row {at} is {one}, expected {other}"
        return None
    left = list(rows)
    for one in given:
        at = next((at for at, other in enumerate(left) if same_row(one, other, expected.doubt)), None)
        if at is None:
            return f"row {one} is not expected, or not as often; left {left[:1]}"
        del left[at]
    return None
