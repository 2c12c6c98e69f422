"""Patterns without what they repeat, before and after."""

from __future__ import annotations

import pytest

from omnigraph.engine.optimizer.drop_implied_branches import drop_implied_branches
from omnigraph.engine.optimizer.drop_repeated_hops import drop_repeated_hops
from omnigraph.engine.optimizer.pattern import Pattern, pattern_of
from omnigraph.query.plan import ir


def old(var: str, most: int = 9) -> ir.Condition:
    return ir.Compare(">", prop(var), ir.Const(most, ir.I64))


def prop(var: str) -> ir.Prop:
    return ir.Prop(var, "age", ir.I64)


def hop(source: str, target: str, *filters: ir.Condition, **more) -> ir.Expand:
    return ir.Expand(source, target, "Knows", "out", "Person", dst_filters=filters, **more)


SCAN = ir.NodeScan("p", "Person")
ELSEWHERE = (
    ir.NodeScan("q", "Person"),
    hop("q", "c"),
    hop("c", "q", dst_bound=True),
    ir.NodeScan("e", "Person"),
)


def pattern(*ops: ir.Op) -> Pattern:
    found = pattern_of(ops, {"x": "Person"})
    assert found is not None
    return found


# id: (operators, the hops that are left)
HOPS = {
    "the same hop": ((SCAN, hop("p", "q"), hop("p", "q", dst_bound=True)), 1),
    "the same hop from its other end": (
        (SCAN, hop("p", "q"), ir.Expand("q", "p", "Knows", "in", "Person", dst_bound=True)),
        1,
    ),
    "the other direction": ((SCAN, hop("p", "q"), hop("q", "p", dst_bound=True)), 2),
    "other bounds": ((SCAN, hop("p", "q"), hop("p", "q", dst_bound=True, max_hops=2)), 2),
    "edges are counted": ((SCAN, hop("p", "q"), hop("p", "q", dst_bound=True, edge_var="k")), 2),
}


@pytest.mark.parametrize(("ops", "left"), HOPS.values(), ids=HOPS)
def test_repeated_hops(ops, left):
    assert len(drop_repeated_hops(pattern(*ops)).hops) == left


# id: (operators, live variables, the variables that are left)
BRANCHES = {
    "an equal hop": ((SCAN, hop("p", "a"), hop("p", "b")), "p", "bp"),
    "a hop with fewer conditions": ((SCAN, hop("p", "a", old("a")), hop("p", "b")), "p", "ap"),
    "a hop with other conditions": ((SCAN, hop("p", "a", old("a")), hop("p", "b", old("b", 3))), "p", "abp"),
    "a hop with an equal condition": ((SCAN, hop("p", "a", old("a")), hop("p", "b", old("b"))), "p", "bp"),
    "a branch of two hops": (
        (SCAN, hop("p", "a"), hop("a", "c", old("c")), hop("p", "b"), hop("b", "d", old("d"))),
        "p",
        "bdp",
    ),
    "a prefix of a branch": ((SCAN, hop("p", "a"), hop("a", "c"), hop("p", "b")), "p", "acp"),
    "three equal hops": ((SCAN, hop("p", "a"), hop("p", "b"), hop("p", "c")), "p", "cp"),
    "the used of two": ((SCAN, hop("p", "a"), hop("p", "b")), "pa", "ap"),
    "both are used": ((SCAN, hop("p", "a"), hop("p", "b")), "pab", "abp"),
    "used by a condition": (
        (SCAN, hop("p", "a"), hop("p", "b"), ir.Filter(ir.Compare("<", prop("a"), prop("b")))),
        "p",
        "abp",
    ),
    "used by a block": (
        (SCAN, hop("p", "a"), hop("p", "b"), *(ir.AntiJoin((end,), (hop(end, "z"),)) for end in "ab")),
        "p",
        "abp",
    ),
    "with an edge": ((SCAN, hop("p", "a", edge_var="k"), hop("p", "b", edge_var="l")), "p", "abp"),
    "the other direction": ((SCAN, hop("p", "a"), ir.Expand("p", "b", "Knows", "in", "Person")), "p", "abp"),
    "a cycle": ((SCAN, hop("p", "a"), hop("p", "b"), hop("a", "b", dst_bound=True)), "p", "abp"),
    "a cycle elsewhere": (
        (SCAN, hop("p", "a"), hop("p", "b"), *ELSEWHERE),
        "p",
        "abcepq",
    ),
    "outer variables stay": ((hop("x", "a"), hop("x", "b")), "", "bx"),
}


@pytest.mark.parametrize(("ops", "live", "left"), BRANCHES.values(), ids=BRANCHES)
def test_implied_branches(ops, live, left):
    found = drop_implied_branches(pattern(*ops), frozenset(live))
    assert "".join(vertex.var for vertex in found.vertices) == left
    assert len(found.hops) >= len(left) - 1 - ("e" in left) - ("q" in left)
    for one in found.hops:
        assert {one.op.src_var, one.op.dst_var} == {found.vertices[end].var for end in one.ends}
