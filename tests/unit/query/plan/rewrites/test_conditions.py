"""Rewrites of conditions in isolation: a pipeline before and after."""

from __future__ import annotations

import pytest

from omnigraph.query.plan.ir import (
    AntiJoin,
    Compare,
    Const,
    Expand,
    Filter,
    IsNull,
    Logic,
    NodeScan,
    Not,
    ParamRef,
    Prop,
)
from omnigraph.query.plan.rewrites.compare_single_items import compare_single_items
from omnigraph.query.plan.rewrites.constants_on_the_right import constants_on_the_right
from omnigraph.query.plan.rewrites.drop_repeated_conditions import drop_repeated_conditions
from omnigraph.query.plan.rewrites.negations_as_conditions import negations_as_conditions
from omnigraph.query.plan.rewrites.positive_comparisons import positive_comparisons
from omnigraph.query.plan.rewrites.sides_by_name import sides_by_name
from omnigraph.types import PropertyType

I64 = PropertyType("I64")
F64 = PropertyType("F64")
ITEMS = PropertyType("I64", is_list=True)
X = Prop("a", "x", I64)
Y = Prop("a", "y", I64)
MAYBE = Prop("a", "z", I64.with_nullable(True))
REAL = Prop("a", "f", F64)
ONE = Const(1, I64)
HALF = Const(0.5, F64)
P = ParamRef("p", I64)
SCAN = NodeScan("a", "A")
TO_B = Expand("a", "b", "E", "out", "B")


def less(left, right):
    return Compare("<", left, right)


# id: (rule, before, after), both conditions of one filter
CONDITIONS = {
    "a constant moves to the right": (constants_on_the_right, less(ONE, X), Compare(">", X, ONE)),
    "a parameter moves to the right": (constants_on_the_right, Compare("=", P, X), Compare("=", X, P)),
    "a constant on the right stays": (constants_on_the_right, less(X, ONE), less(X, ONE)),
    "two properties stay": (constants_on_the_right, less(X, Y), less(X, Y)),
    "two constants stay": (constants_on_the_right, less(ONE, P), less(ONE, P)),
    "other operators stay": (
        constants_on_the_right,
        Compare("contains_item", Const([1], ITEMS), X),
        Compare("contains_item", Const([1], ITEMS), X),
    ),
    "a constant moves inside other conditions": (
        constants_on_the_right,
        Logic("or", (Not(less(ONE, X)), less(X, ONE))),
        Logic("or", (Not(Compare(">", X, ONE)), less(X, ONE))),
    ),
    "properties by name": (sides_by_name, less(Y, X), Compare(">", X, Y)),
    "properties by variable": (sides_by_name, less(Prop("b", "x", I64), Y), Compare(">", Y, Prop("b", "x", I64))),
    "properties in order stay": (sides_by_name, less(X, Y), less(X, Y)),
    "a constant is not a property": (sides_by_name, less(Y, ONE), less(Y, ONE)),
    "one item is compared": (
        compare_single_items,
        Compare("contains_item", Const([1], ITEMS), X),
        Compare("=", X, ONE),
    ),
    "several items stay": (
        compare_single_items,
        Compare("contains_item", Const([1, 2], ITEMS), X),
        Compare("contains_item", Const([1, 2], ITEMS), X),
    ),
    "no item stays": (
        compare_single_items,
        Compare("contains_item", Const([], ITEMS), X),
        Compare("contains_item", Const([], ITEMS), X),
    ),
    "a list property stays": (
        compare_single_items,
        Compare("contains_item", Prop("a", "l", ITEMS), ONE),
        Compare("contains_item", Prop("a", "l", ITEMS), ONE),
    ),
    "not equal": (positive_comparisons, Not(Compare("=", X, ONE)), Compare("!=", X, ONE)),
    "not less": (positive_comparisons, Not(less(X, ONE)), Compare(">=", X, ONE)),
    "not less, nullable": (positive_comparisons, Not(less(MAYBE, ONE)), Compare(">=", MAYBE, ONE)),
    "not less of floats stays": (positive_comparisons, Not(less(REAL, HALF)), Not(less(REAL, HALF))),
    "not null stays": (positive_comparisons, Not(IsNull(MAYBE)), Not(IsNull(MAYBE))),
    "a double negation": (positive_comparisons, Not(Not(less(X, ONE))), less(X, ONE)),
}


@pytest.mark.parametrize(("rule", "before", "after"), CONDITIONS.values(), ids=CONDITIONS)
def test_condition(rule, before, after):
    assert rule((SCAN, Filter(before), TO_B)) == (SCAN, Filter(after), TO_B)
    assert rule((SCAN, Filter(after))) == (SCAN, Filter(after))


def test_repeated_conditions_are_dropped():
    one, other = Filter(less(X, ONE)), Filter(Compare("contains_item", Const([1, 2], ITEMS), X))
    assert drop_repeated_conditions((SCAN, one, other, TO_B, one, other)) == (SCAN, one, other, TO_B)
    scans = (NodeScan("b", "B"), NodeScan("b", "B"))
    assert drop_repeated_conditions(scans) == scans


# id: (inner operations, the operation that replaces the anti-join; None: it stays)
NEGATIONS = {
    "one condition": ((Filter(less(X, ONE)),), Filter(Not(less(X, ONE)))),
    "several conditions": (
        (Filter(less(X, ONE)), Filter(less(X, Y))),
        Filter(Not(Logic("and", (less(X, ONE), less(X, Y))))),
    ),
    "a nullable operand": ((Filter(less(MAYBE, ONE)),), None),
    "a parameter can be null": ((Filter(less(X, P)),), None),
    "a hop": ((TO_B, Filter(less(X, ONE))), None),
    "nothing": ((), None),
}


@pytest.mark.parametrize(("inner", "expected"), NEGATIONS.values(), ids=NEGATIONS)
def test_negation(inner, expected):
    negation = AntiJoin(("a",), inner)
    assert negations_as_conditions((SCAN, negation)) == (SCAN, negation if expected is None else expected)
