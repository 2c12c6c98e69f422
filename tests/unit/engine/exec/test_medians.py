"""Medians compared with exact rational arithmetic: every number type, groups, weights and nulls."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.exec.binding_table import Binding
from omnigraph.engine.exec.column_aggregates import column_aggregate
from omnigraph.engine.exec.reducers import reduce_numbers
from support.writes import new_graph, node

INTEGERS = [np.int32, np.uint32, np.int64, np.uint64]


def expected(values: list[Any]) -> float | None:
    """Return the median of the values, rounded once to a 64-bit float."""
    if not values:
        return None
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return float((Fraction(low) + Fraction(high)) / 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bits", [3, 30, 55, 64])
@pytest.mark.parametrize("kind", INTEGERS)
def test_medians_of_integers_are_exact(kind, bits, weighted):
    random = Random(f"{kind}{bits}{weighted}")
    info = np.iinfo(kind)
    low, high = max(info.min, -(2 ** (bits - 1))), min(info.max, 2**bits - 1)
    for count in (0, 1, 2, 3, 9, 200):
        drawn = [random.randint(low, high) for _ in range(count)]
        groups = [random.randrange(5) for _ in drawn]
        weights = [random.randrange(4) if weighted else 1 for _ in drawn]
        weight = np.array(weights, np.int64) if weighted else None
        members = [
            [v for v, g, w in zip(drawn, groups, weights, strict=True) if g == k for _ in range(w)] for k in range(6)
        ]
        values = np.array(drawn, kind)
        found = reduce_numbers("median", values, np.array(groups, np.int64), weight, 6)
        assert found.type == pa.float64()
        assert found.to_pylist() == [expected(group) for group in members]
        whole = reduce_numbers("median", values, None, weight, 1)
        assert whole.to_pylist() == [expected([v for v, w in zip(drawn, weights, strict=True) for _ in range(w)])]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_medians_of_floats_are_rounded_once(kind):
    random = np.random.default_rng(5)
    for count in (1, 2, 7, 100, 1001):
        values = (random.standard_normal(count) * 10.0 ** random.integers(-30, 30, count)).astype(kind)
        groups = random.integers(0, 3, count)
        found = reduce_numbers("median", values, groups, None, 3).to_pylist()
        assert found == [expected(values[groups == group].tolist()) for group in range(3)]
        assert reduce_numbers("median", values, None, None, 1).to_pylist() == [expected(values.tolist())]


@pytest.mark.parametrize(
    ("values", "median"),
    [
        ([2**53 + 1, 2**53 + 2], 2.0**53 + 2),
        ([2**63 - 1, 2**63 - 2], 2.0**63),
        ([-(2**63), 2**63 - 1], -0.5),
        ([-3, -2], -2.5),
    ],
)
def test_large_integers_do_not_overflow(values, median):
    assert reduce_numbers("median", np.array(values, np.int64), None, None, 1).to_pylist() == [median]


def test_extreme_floats():
    largest, smallest = np.finfo(np.float64).max, 5e-324
    for values, median in (
        ([largest, largest], largest),
        ([smallest, smallest], smallest),
        ([math.inf, 1.0], math.inf),
    ):
        assert reduce_numbers("median", np.array(values), None, None, 1).to_pylist() == [median]
    (zero,) = reduce_numbers("median", np.array([-0.0]), None, None, 1).to_pylist()
    assert math.copysign(1, zero) == 1


def test_many_groups():
    random = np.random.default_rng(1)
    values, groups = random.integers(0, 1000, 300_000), random.integers(0, 70_000, 300_000)
    found = reduce_numbers("median", values, groups, None, 70_000).to_pylist()
    for group in (0, 17, 69_999):
        assert found[group] == expected(values[groups == group].tolist())


def test_median_of_a_column():
    data = MemoryTable.of(pa.table({"n": pa.array([5, None, 1, 4, None], pa.int64())}))
    assert column_aggregate("median", Binding(data), "n").to_pylist() == [4.0]  # type: ignore[union-attr]
    mask = np.array([True, True, True, False, False])
    assert column_aggregate("median", Binding(data, mask=mask), "n").to_pylist() == [3.0]  # type: ignore[union-attr]
    assert column_aggregate("median", Binding(data, mask=~np.ones(5, bool)), "n").to_pylist() == [None]  # type: ignore[union-attr]


def test_median_in_queries(tmp_path):
    schema = "node P { name: String @key  team: String  n: I64?  u: U64?  x: F32? }"
    values: list[tuple[str, dict[str, Any]]] = [
        ("a", {"n": 1, "x": 0.5, "u": 2**64 - 1}),
        ("a", {"n": 4, "x": 2.0, "u": 2**64 - 2}),
        ("a", {"n": 4, "x": 2.0}),
        ("b", {"u": 7}),
        ("b", {"n": 9, "x": 4.5, "u": 8}),
        ("c", {}),
    ]
    people = [node("P", name=f"p{at}", team=team, **given) for at, (team, given) in enumerate(values)]
    graph = new_graph(tmp_path, schema, *people)

    def read(returned: str) -> list[tuple[Any, ...]]:
        found = graph.query(f"query q() {{ match {{ $p: P }} return {returned} }}")
        return [tuple(row.values()) for row in found.to_pylist()]

    whole = "{ median($p.n) as a, median($p.x) as b, median(distinct $p.n) as c, median($p.n * 2) as d }"
    assert read(whole) == [(4.0, 2.0, 4.0, 8.0)]
    grouped = "{ $p.team, median($p.n) as a, median(distinct $p.n) as b, median($p.u) as c } order { $p.team }"
    assert read(grouped) == [("a", 4.0, 2.5, 2.0**64), ("b", 9.0, 9.0, 7.5), ("c", None, None, None)]
    assert read("{ $p.team, median($p.n) + 1 as m } having { m > 5 }") == [("b", 10.0)]
    assert read("{ $p.team, median($p.n) as m } order { median($p.n) desc, $p.team } limit 1") == [("b", 9.0)]
