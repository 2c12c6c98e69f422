"""Groups and aggregates: nulls, types, empty groups, extreme numbers and the order of groups."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import InputError
from omnigraph.graph import Graph
from support.writes import edge, new_graph, node

SCHEMA = """
node P { name: String @key  kind: enum(a, b)?  flag: Bool?  i: I32?  big: I64?  wide: U64?  half: F32?  x: F64?
         day: Date?  at: DateTime? }
edge Knows: P -> P { n: I64? }
"""


@pytest.fixture
def graph(tmp_path):
    return new_graph(
        tmp_path,
        SCHEMA,
        node("P", name="1", kind="a", flag=True, i=1, big=2**53 + 1, wide=2**64 - 1, half=0.1, x=0.5, day="2020-01-01"),
        node("P", name="2", kind="a", flag=False, i=-4, big=-(2**63), wide=0, half=0.2, x=-0.5, day="2019-01-01"),
        node("P", name="3", kind="b", i=3, big=2**63 - 1),
        node("P", name="4", flag=True, at="2020-01-01T10:00Z"),
        node("P", name="5", flag=True, at="2020-01-01T11:00Z", day="2020-01-01"),
        edge("Knows", "1", "2", n=5),
        edge("Knows", "1", "2", n=7),
        edge("Knows", "3", "2"),
    )


def table(graph: Graph, give: str, match: str = "$p: P", then: str = "") -> pa.Table:
    return graph.query(f"query q() {{ match {{ {match} }} return {{ {give} }} {then} }}").to_arrow()


def rows(graph: Graph, give: str, match: str = "$p: P", then: str = "") -> list[tuple[Any, ...]]:
    query = f"query q() {{ match {{ {match} }} return {{ {give} }} {then} }}"
    return [tuple(row.values()) for row in graph.query(query).to_rows()]


TYPES = {
    "count($p)": pa.int64(),
    "count($p.name)": pa.int64(),
    "sum($p.i)": pa.int64(),
    "sum($p.i + 1)": pa.int64(),
    "sum($p.wide)": pa.uint64(),
    "sum(distinct $p.wide)": pa.uint64(),
    "sum($p.half)": pa.float64(),
    "avg($p.half)": pa.float64(),
    "min($p.i)": pa.int32(),
    "max($p.big)": pa.int64(),
    "max($p.wide)": pa.uint64(),
    "min($p.half)": pa.float32(),
    "min($p.x)": pa.float64(),
    "max($p.name)": pa.utf8(),
    "min($p.kind)": pa.utf8(),
    "max($p.flag)": pa.bool_(),
    "min($p.day)": pa.date32(),
    "max(distinct $p.at)": pa.date64(),
}


@pytest.mark.parametrize(("call", "type_"), TYPES.items(), ids=TYPES)
@pytest.mark.parametrize("match", ["$p: P", '$p: P { name: "none" }'])
def test_column_types_do_not_depend_on_the_rows(graph, call, type_, match):
    found = table(graph, call, match)
    assert found.schema.types == [type_]
    assert found.column_names == [call.split("(")[0]]
    assert found.num_rows == 1


def test_nulls_do_not_count(graph):
    found = table(graph, "count($p) as all, count($p.i) as i, count($p.at) as at, count(1) as one").to_pylist()
    assert found == [{"all": 5, "i": 3, "at": 2, "one": 5}]
    found = table(graph, "sum($p.i) as s, avg($p.i) as a, min($p.i) as low, max($p.i) as high").to_pylist()
    assert found == [{"s": 0, "a": 0.0, "low": -4, "high": 3}]


def test_aggregate_of_nulls_is_null_and_of_no_rows_is_one_row(graph):
    every = "count($p.x) as c, sum($p.x) as s, avg($p.x) as a, min($p.x) as low, max($p.name) as n"
    assert table(graph, every, '$p: P { name: "4" }').to_pylist() == [
        {"c": 0, "s": None, "a": None, "low": None, "n": "4"}
    ]
    assert table(graph, every, '$p: P { name: "none" }').to_pylist() == [
        {"c": 0, "s": None, "a": None, "low": None, "n": None}
    ]
    assert rows(graph, f"$p.kind, {every}", '$p: P { name: "none" }') == []


def test_extreme_numbers(graph):
    found = table(
        graph, "max($p.big) as big, min($p.big) as small, max($p.wide) as wide, sum($p.wide) as s"
    ).to_pylist()
    assert found == [{"big": 2**63 - 1, "small": -(2**63), "wide": 2**64 - 1, "s": 2**64 - 1}]
    assert table(graph, "sum($p.big) as s").to_pylist() == [{"s": 2**53}], "integer sums are exact"
    ((mean,),) = rows(graph, "avg($p.half)")
    assert mean == pytest.approx((0.10000000149011612 + 0.20000000298023224) / 2, rel=1e-15)


def test_integer_sum_is_exact_in_any_order(tmp_path):
    large = 2**63 - 1
    records = [
        *(node("P", name=f"a{at}", i=1, big=large, wide=0) for at in range(3)),
        *(node("P", name=f"b{at}", i=2, big=-large, wide=2**63) for at in range(2)),
        node("P", name="c", i=3, big=-large + 5, wide=1),
    ]  # the totals of the first rows are out of range
    graph = new_graph(tmp_path, SCHEMA, *records)
    found = table(graph, "sum($p.big) as s, sum(distinct $p.big) as d").to_pylist()
    assert found == [{"s": large + 5 - large, "d": -large + 5}]
    overflowing = ("sum($p.big)", "$p: P { i: 1 }"), ("sum($p.wide)", "$p: P"), ("$p.i, sum($p.big)", "$p: P $p.i > 1")
    for give, match in overflowing:
        with pytest.raises(InputError, match="'sum' overflows") as caught:
            rows(graph, give, match)
        assert caught.value.code == "overflow"
    assert rows(graph, "sum($p.wide * 1.0)", "$p: P") == [(2.0**64 + 1,)]
    assert rows(graph, "sum($p.wide)", "$p: P { i: 3 }") == [(1,)]


def test_min_and_max_of_every_ordered_type(graph):
    give = (
        "min($p.flag) as a, max($p.flag) as b, min($p.day) as c, max($p.day) as d, min($p.at) as e, max($p.kind) as f"
    )
    expected = (False, True, "2019-01-01", "2020-01-01", "2020-01-01T10:00:00.000Z", "b")
    assert rows(graph, give) == [expected]
    assert rows(graph, give.replace("(", "(distinct ")) == [expected]
    assert rows(graph, give, '$p: P { name: "none" }') == [(None,) * 6]
    found = rows(graph, "$p.kind, min($p.day) as d, max($p.flag) as f", then="order { $p.kind }")
    assert found == [(None, "2020-01-01", True), ("a", "2019-01-01", True), ("b", None, None)]


def test_null_is_a_separate_group(graph):
    then = "order { n desc }"
    assert rows(graph, "$p.kind, count($p) as n", then=then) == [(None, 2), ("a", 2), ("b", 1)]
    assert rows(graph, "$p.flag, count($p) as n", then=then) == [(True, 3), (None, 1), (False, 1)]
    assert rows(graph, "$p.day, count($p) as n", then=then) == [(None, 2), ("2020-01-01", 2), ("2019-01-01", 1)]
    assert len(rows(graph, "$p.at, count($p) as n")) == 3, "datetimes of one day are different"
    assert rows(graph, "$p.kind, $p.flag, count($p) as n", then="order { n, $p.flag desc }") == [
        ("a", True, 1),
        ("a", False, 1),
        ("b", None, 1),
        (None, True, 2),
    ]


def test_nodes_are_grouped_by_id(graph):
    found = rows(graph, "$q, count($p) as n", "$p $e:knows $q", "order { n }")
    assert [(q["id"], n) for q, n in found] == [("2", 3)]
    found = rows(graph, "$p, count($q) as n, sum($e.n) as s", "$p $e:knows $q", "order { n desc }")
    assert [(p["name"], n, s) for p, n, s in found] == [("1", 2, 12), ("3", 1, None)]
    assert rows(graph, "$e.n, count($p) as n", "$p $e:knows $q", "order { $e.n }") == [(None, 1), (5, 1), (7, 1)]


def test_order_of_groups(graph):
    assert rows(graph, "count($p) as n, $p.kind", then="order { n desc, $p.kind desc }") == [
        (2, "a"),
        (2, None),
        (1, "b"),
    ]
    # Ties are ordered by the group keys in the order they are returned, nulls first.
    assert rows(graph, "$p.flag, $p.kind, count($p) as n", then="order { n }") == [
        (None, "b", 1),
        (False, "a", 1),
        (True, "a", 1),
        (True, None, 2),
    ]
    assert rows(graph, "max($p.i) as top, $p.kind", then="order { top }") == [(None, None), (1, "a"), (3, "b")]
    assert rows(graph, "max($p.i) as top, $p.kind", then="order { top desc } limit 2") == [(3, "b"), (1, "a")]
    found = [p["id"] for p, _ in rows(graph, "$p, count($p) as n", then="order { n desc }")]
    assert found == ["1", "2", "3", "4", "5"]


def test_limit_applies_to_groups(graph):
    assert rows(graph, "$p.kind, count($p)", then="limit 0") == []
    assert len(rows(graph, "$p.kind, count($p)", then="limit 2")) == 2
    assert rows(graph, "count($p)", then="limit 0") == []


def test_repeated_key_and_repeated_aggregate(graph):
    found = table(graph, "$p.kind, $p.kind, count($p), count($p)", then="order { $p.kind }")
    assert found.column_names == ["p.kind", "p.kind", "count", "count"]
    assert [column.to_pylist() for column in found.columns] == [[None, "a", "b"]] * 2 + [[2, 2, 1]] * 2
