"""Operand types of comparisons: every pair of types compared with a direct implementation of the table."""

from __future__ import annotations

from itertools import product

import pytest

from omnigraph.errors import TypeCheckError
from omnigraph.query.compile import compile_query
from omnigraph.query.plan.ir import Filter, NodeScan, QueryIR
from omnigraph.schema.check import compile_schema

NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")
SCALARS = ("String", "enum(a, b)", "Bool", *NUMBERS, "Date", "DateTime")
LISTS = ("[String]", "[Bool]", "[I32]", "[F64]", "[Date]", "[DateTime]")
OTHERS = ("Blob", "Vector(2)", "Vector(3)")
TYPES = (*SCALARS, *LISTS, *OTHERS)
PROPERTY = {type_: f"p{number}" for number, type_ in enumerate(TYPES)}

CATALOG = compile_schema(f"node Thing {{ {' '.join(f'{PROPERTY[type_]}: {type_}?' for type_ in TYPES)} }}")


def family(type_: str) -> str:
    if type_ in NUMBERS:
        return "number"
    return "String" if type_.startswith("enum") else type_


def comparable(a: str, b: str) -> bool:
    return a in SCALARS and b in SCALARS and family(a) == family(b)


def meaning(op: str, a: str, b: str) -> str | None:
    """Return the meaning of `a op b` by the table; None if it is refused."""
    if op not in ("contains", "starts_with"):
        return op if comparable(a, b) else None
    if family(a) == family(b) == "String":
        return "contains_text" if op == "contains" else "starts_with"
    if op == "contains" and a in LISTS and comparable(a.strip("[]"), b):
        return "contains_item"
    return None


def compiled(left: str, op: str, right: str) -> str | None:
    text = f"query q() {{ match {{ $x: Thing  $y: Thing  {left} {op} {right} }} return {{ 1 }} }}"
    try:
        plan = compile_query(CATALOG, text)
    except TypeCheckError as error:
        if [found.code for found in error.diagnostics] != ["T7"]:
            raise
        return None
    assert isinstance(plan, QueryIR)
    conditions = [step.condition for step in plan.pipeline if isinstance(step, Filter)]
    conditions += [condition for step in plan.pipeline if isinstance(step, NodeScan) for condition in step.filters]
    (condition,) = conditions
    return condition.op


@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">=", "contains", "starts_with"])
def test_every_pair_of_types(op):
    found = {(a, b): compiled(f"$x.{PROPERTY[a]}", op, f"$y.{PROPERTY[b]}") for a, b in product(TYPES, TYPES)}
    assert found == {(a, b): meaning(op, a, b) for a, b in product(TYPES, TYPES)}


@pytest.mark.parametrize("op", ["=", "<", "contains", "starts_with"])
@pytest.mark.parametrize("type_", TYPES)
def test_a_node_is_never_an_operand(op, type_):
    assert compiled("$x.p0", op, "$y") is None
    if op not in ("contains", "starts_with"):  # `$x contains $y` would be a hop
        assert compiled("$x", op, f"$y.{PROPERTY[type_]}") is None
    assert compiled(f"$x.{PROPERTY[type_]}", op, "$y") is None


# id: (left, operator, right, the comparison in the plan)
VALUES = {
    "literal-first": ('"abc"', "contains", "$x.p0", "contains_text"),
    "two-literals": ("1", "=", "2.5", "="),
    "wide-integer": ("$x.p6", "<", "18446744073709551615", "<"),
    "fraction-against-integer": ("$x.p3", "=", "2.7", "="),
    "same-variable": ("$x.p0", "=", "$x.p0", "="),
    "two-variables": ("$x.p0", "!=", "$y.p0", "!="),
    "enum-non-member": ("$x.p1", "=", '"zzz"', "="),
    "list-literal": ("[1, 2]", "contains", "$x.p3", "contains_item"),
    "empty-list": ("[]", "contains", "$x.p0", "contains_item"),
    "empty-list-of-text": ("[]", "contains", "1", None),
    "now": ("$x.p10", "<", "now()", "<"),
    "now-first": ("now()", ">=", "$x.p10", "<="),
    "now-in-list": ("$x.p16", "contains", "now()", "contains_item"),
    "now-against-date": ("$x.p9", "<", "now()", None),
    "two-nows": ("now()", "=", "now()", "="),
    "text-predicate-as-value": ('search($x.p0, "a")', "=", "true", "="),
    "two-text-predicates": ('search($x.p0, "a")', "!=", 'fuzzy($x.p0, "a")', "!="),
    "text-predicate-against-text": ('search($x.p0, "a")', "=", '"true"', None),
}


@pytest.mark.parametrize(("left", "op", "right", "expected"), VALUES.values(), ids=VALUES)
def test_values(left, op, right, expected):
    assert compiled(left, op, right) == expected
