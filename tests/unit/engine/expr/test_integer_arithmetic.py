"""Integer arithmetic equals that of exact integers, and has no result outside the range of its type."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from omnigraph.engine.expr.scalar_functions import arithmetic
from omnigraph.schema.arrow import arrow_type
from omnigraph.types import INTEGER_RANGES, PropertyType

EXACT = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": lambda a, b: None if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1),
}
ROOT = 3_037_000_499
"""The largest integer whose square has 64 bits with a sign."""


def edges(scalar: str) -> list[int | None]:
    low, high = INTEGER_RANGES[scalar]
    near = [0, 2**31, 2**32, ROOT, 2**53, 2**62, low // 3, high // 3, low, high]
    values = sorted({at + step for at in (*near, *(-at for at in near)) for step in (-2, -1, 0, 1, 2)})
    return [None, *(value for value in values if low <= value <= high)]


@pytest.mark.parametrize("op", EXACT)
@pytest.mark.parametrize("left", ["I32", "U32", "I64", "U64"])
@pytest.mark.parametrize("right", ["I64", "U64"])
@pytest.mark.parametrize("result", ["I64", "U64", "I32"])
def test_results_are_exact_or_null(op, left, right, result):
    low, high = INTEGER_RANGES[result]
    pairs = list(itertools.product(edges(left), edges(right)))
    columns = [
        pa.array(side, arrow_type(PropertyType(kind)))
        for side, kind in zip(zip(*pairs, strict=True), (left, right), strict=True)
    ]
    expected = []
    for a, b in pairs:
        found = None if a is None or b is None else EXACT[op](a, b)
        expected.append(found if found is not None and low <= found <= high else None)
    assert any(value is not None for value in expected)
    assert arithmetic(op, *columns, PropertyType(result)).to_pylist() == expected
