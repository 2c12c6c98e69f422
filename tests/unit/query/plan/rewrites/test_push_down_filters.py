"""The rewrite in isolation: a pipeline before and after."""

from __future__ import annotations

import pytest

from omnigraph.query.plan.ir import (
    AntiJoin,
    Compare,
    Const,
    Expand,
    Filter,
    NodeScan,
    ParamRef,
    Prop,
    TextMatch,
    variables_of,
)
from omnigraph.query.plan.rewrites.push_down_filters import push_down_filters
from omnigraph.types import PropertyType

I64 = PropertyType("I64")
TEXT = PropertyType("String")


def equal(left, right):
    return Compare("=", left, right)


def prop(path):
    var, name = path.split(".")
    return Prop(var, name, I64)


A1 = equal(prop("a.x"), Const(1, I64))
A2 = equal(ParamRef("p", I64), prop("a.y"))
AA = equal(prop("a.x"), prop("a.y"))
B1 = equal(prop("b.x"), Const(1, I64))
W1 = equal(prop("w.x"), Const(1, I64))
AB = equal(prop("a.x"), prop("b.x"))
BC = equal(prop("b.x"), prop("c.x"))
WB = equal(prop("w.x"), prop("b.x"))
NONE = equal(Const(1, I64), ParamRef("p", I64))
TA = TextMatch("search", Prop("a", "t", TEXT), Const("q", TEXT))

SCAN_A = NodeScan("a", "A")
SCAN_C = NodeScan("c", "C")
TO_B = Expand("a", "b", "E", "out", "B")
TO_B_BY_W = Expand("a", "b", "E", "out", "B", edge_var="w")
CHECK_B = Expand("a", "b", "E", "out", "B", dst_bound=True, edge_var="w")

# id: (before, after)
CASES = {
    "nothing": ((), ()),
    "no filters": ((SCAN_A, TO_B), (SCAN_A, TO_B)),
    "into a scan": ((SCAN_A, Filter(A1)), (NodeScan("a", "A", (A1,)),)),
    "into a scan, past an expansion": ((SCAN_A, TO_B, Filter(A1)), (NodeScan("a", "A", (A1,)), TO_B)),
    "several, in their order": (
        (SCAN_A, Filter(A2), Filter(TA), Filter(A1)),
        (NodeScan("a", "A", (A2, TA, A1)),),
    ),
    "behind those already there": (
        (NodeScan("a", "A", (A1,)), Filter(A2)),
        (NodeScan("a", "A", (A1, A2)),),
    ),
    "one variable twice": ((SCAN_A, Filter(AA)), (NodeScan("a", "A", (AA,)),)),
    "a text predicate": ((SCAN_A, Filter(TA)), (NodeScan("a", "A", (TA,)),)),
    "into an expansion": (
        (SCAN_A, TO_B, Filter(B1)),
        (SCAN_A, Expand("a", "b", "E", "out", "B", dst_filters=(B1,))),
    ),
    "into the edge of an expansion": (
        (SCAN_A, TO_B_BY_W, Filter(W1), Filter(B1)),
        (SCAN_A, Expand("a", "b", "E", "out", "B", edge_var="w", dst_filters=(B1,), edge_filters=(W1,))),
    ),
    "into the edge of a check": (
        (SCAN_A, NodeScan("b", "B"), CHECK_B, Filter(W1), Filter(B1)),
        (
            SCAN_A,
            NodeScan("b", "B", (B1,)),
            Expand("a", "b", "E", "out", "B", dst_bound=True, edge_var="w", edge_filters=(W1,)),
        ),
    ),
    "two variables stay, behind the last of them": (
        (SCAN_A, TO_B, SCAN_C, Filter(AB)),
        (SCAN_A, TO_B, Filter(AB), SCAN_C),
    ),
    "two variables of one expansion stay": (
        (SCAN_A, TO_B_BY_W, Filter(WB)),
        (SCAN_A, TO_B_BY_W, Filter(WB)),
    ),
    "several behind one operation keep their order": (
        (SCAN_A, TO_B, SCAN_C, Filter(BC), Filter(AB), Filter(BC)),
        (SCAN_A, TO_B, Filter(AB), SCAN_C, Filter(BC), Filter(BC)),
    ),
    "no variable comes first": ((SCAN_A, Filter(NONE)), (Filter(NONE), SCAN_A)),
    "an outer variable comes first": ((TO_B, Filter(A1)), (Filter(A1), TO_B)),
    "an outer and an own variable stay behind the own": (
        (TO_B, SCAN_C, Filter(AB)),
        (TO_B, Filter(AB), SCAN_C),
    ),
    "never into or past an anti-join": (
        (SCAN_A, AntiJoin(("a",), (TO_B, Filter(AB))), Filter(A1)),
        (NodeScan("a", "A", (A1,)), AntiJoin(("a",), (TO_B, Filter(AB)))),
    ),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_push_down(before, after):
    assert push_down_filters(before) == after


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_the_rewrite_is_idempotent(before, after):
    assert push_down_filters(after) == after


@pytest.mark.parametrize(
    ("condition", "variables"),
    [
        (A1, ["a"]),
        (A2, ["a"]),
        (AB, ["a", "b"]),
        (AA, ["a", "a"]),
        (NONE, []),
        (TA, ["a"]),
        (equal(TA, AB), ["a", "a", "b"]),
    ],
)
def test_variables_of(condition, variables):
    assert list(variables_of(condition)) == variables
