"""Repeated `not` blocks, before and after."""

from __future__ import annotations

import pytest

from omnigraph.query.plan import ir
from omnigraph.query.plan.rename import canonical, renamed, variables_in_order
from omnigraph.query.plan.rewrites.drop_repeated_blocks import drop_repeated_blocks
from omnigraph.types import PropertyType


def hop(source: str, target: str, *filters: ir.Condition) -> ir.Expand:
    return ir.Expand(source, target, "Knows", "out", "Person", dst_filters=filters)


def old(var: str, age: int = 9) -> ir.Condition:
    return ir.Compare(">", ir.Prop(var, "age", ir.I64), ir.Const(age, ir.I64))


def without(outer: str, *inner: ir.Op) -> ir.AntiJoin:
    return ir.AntiJoin((outer,), inner)


LISTED = ir.Compare(
    "contains_item",
    ir.Const([1, 2], PropertyType("I64", is_list=True)),
    ir.Prop("a", "age", ir.I64),
)
ONE = without("p", hop("p", "a", old("a")))

# id: (blocks, the numbers of those that are left)
BLOCKS = {
    "equal": ([ONE, ONE], [0]),
    "equal up to names": ([ONE, without("p", hop("p", "b", old("b")))], [0]),
    "another outer variable": ([ONE, without("q", hop("q", "a", old("a")))], [0, 1]),
    "another condition": ([ONE, without("p", hop("p", "b", old("b", 8)))], [0, 1]),
    "swapped variables": (
        [without("p", hop("p", "a"), hop("a", "b")), without("p", hop("p", "b"), hop("b", "a"))],
        [0],
    ),
    "lists": ([without("p", hop("p", "a", LISTED)), without("p", hop("p", "a", LISTED))], [0]),
    "another shape": ([without("p", hop("p", "a"), hop("a", "b")), without("p", hop("p", "a"), hop("p", "b"))], [0, 1]),
    "an optional block stays": (
        [ir.LeftJoin(("p",), (hop("p", "a"),), ("a",)), ir.LeftJoin(("p",), (hop("p", "b"),), ("b",))],
        [0, 1],
    ),
}


@pytest.mark.parametrize(("blocks", "left"), BLOCKS.values(), ids=BLOCKS)
def test_repeated_blocks(blocks, left):
    scan = ir.NodeScan("p", "Person")
    assert drop_repeated_blocks((scan, *blocks)) == (scan, *(blocks[at] for at in left))


def test_names_of_nested_pipelines():
    inner = (hop("p", "a", old("a")), ir.AntiJoin(("a",), (hop("a", "c"),)))
    assert variables_in_order(inner) == ["p", "a", "c"]
    other = renamed(inner, {"a": "x", "c": "y"})
    assert other == (hop("p", "x", old("x")), ir.AntiJoin(("x",), (hop("x", "y"),)))
    assert canonical(inner, ("p",)) == canonical(other, ("p",))
    assert canonical(inner) == canonical(renamed(inner, {"p": "z"}))
    assert canonical(inner, ("p",)) != canonical(renamed(inner, {"p": "z"}), ("z",))
