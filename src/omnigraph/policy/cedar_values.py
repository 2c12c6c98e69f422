"""Values of Cedar expressions whose row is unknown: constants, symbols, properties of the row, and conditions on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from cedarpy import pst

from omnigraph.policy.rows.row_conditions import RowCondition, all_of, negated
from omnigraph.query.plan import ir
from omnigraph.types import PropertyType

_DAY_MS = 86_400_000
_DATE = PropertyType("Date")
_SYMBOL_TYPES: Mapping[str, PropertyType] = {
    "String": ir.STRING,
    "Long": ir.I64,
    "Bool": ir.BOOL,
    "Datetime": ir.DATETIME,
    "Set<String>": PropertyType("String", is_list=True),
    "Set<Long>": PropertyType("I64", is_list=True),
}
FLIPPED: Mapping[str, ir.CompareOp] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class PolicyRefused(ValueError):
    """A policy uses a part of Cedar that cannot be translated."""


@dataclass(frozen=True)
class CedarTime:
    """A datetime: milliseconds since 1970-01-01 UTC."""

    milliseconds: int


@dataclass(frozen=True)
class EntityRef:
    """An entity by its type and id."""

    type: str
    id: str


@dataclass(frozen=True)
class Known:
    """A constant: a Boolean, integer, text, datetime, entity, or a set of these."""

    value: Any


@dataclass(frozen=True)
class Symbol:
    """A constant of an unknown value."""

    name: str
    type: str


@dataclass(frozen=True)
class Variable:
    """A variable as a whole."""

    name: str


@dataclass(frozen=True)
class Truth:
    """A condition: where it is true, and where it is false. Elsewhere a missing attribute is read."""

    true: RowCondition
    false: RowCondition


CedarValue = Known | Symbol | Variable | Truth | ir.Prop


def fixed_truth(value: bool) -> Truth:
    """Return a condition that is the same for every row."""
    return Truth(value, not value)


def opaque_truth(name: str) -> Truth:
    """Return a condition with an unknown value."""
    symbol = ir.ParamRef(name, ir.BOOL)
    return Truth(symbol, ir.Not(symbol))


def known_value(value: Any) -> Known:
    """Return a constant; a list is a set."""
    return Known(frozenset(value) if isinstance(value, tuple | list) else value)


def is_missing(value: CedarValue) -> bool:
    """Return True for an attribute that the actor lacks."""
    return isinstance(value, Symbol) and value.type.startswith("missing")


def is_present(prop: ir.Prop) -> RowCondition:
    """Return the rows that have a value."""
    return ir.Not(ir.IsNull(prop)) if prop.type.nullable else True


def presence(prop: ir.Prop) -> Truth:
    """Return the condition that a row has a value."""
    return Truth(ir.Not(ir.IsNull(prop)), ir.IsNull(prop)) if prop.type.nullable else fixed_truth(True)


def name_of(value: CedarValue) -> str:
    """Return the name of a value for messages."""
    match value:
        case Symbol() | Variable():
            return value.name
        case Known():
            shown = sorted(value.value, key=repr) if isinstance(value.value, frozenset) else value.value
            return repr(shown)
        case ir.Prop():
            return f"resource.{value.name}"
        case Truth():
            return "condition"
        case _:
            assert_never(value)


def kind_of(value: CedarValue) -> str:
    """Return the type of a value, as far as it is known."""
    return value.type if isinstance(value, Symbol) else name_of(value)


def entity_of(scope: Any) -> EntityRef:
    """Return the entity of a scope; raises `PolicyRefused` for a template."""
    if isinstance(scope, pst.Slot):
        raise PolicyRefused("a template")
    return EntityRef(str(scope.type), scope.id)


def entities_of(value: CedarValue) -> list[EntityRef]:
    """Return the entities of a value; raises `PolicyRefused` for other values."""
    found = value.value if isinstance(value, Known) else None
    listed = sorted(found, key=repr) if isinstance(found, frozenset) else [found]
    entities = [one for one in listed if isinstance(one, EntityRef)]
    if len(entities) < len(listed):
        raise PolicyRefused("a comparison of an entity with a value")
    return entities


def constant_of(value: Known | Symbol, type_: PropertyType) -> ir.Const | ir.ParamRef:
    """Return a constant that a property of this type is compared with."""
    if isinstance(value, Symbol):
        return ir.ParamRef(value.name, _SYMBOL_TYPES[value.type])
    found = value.value
    match found:
        case bool():
            return ir.Const(found, ir.BOOL)
        case int():
            return ir.Const(found, ir.I64)
        case str():
            return ir.Const(found, ir.STRING)
        case CedarTime() if type_.scalar == "DateTime":
            return ir.Const(found.milliseconds, ir.DATETIME)
        case _:
            raise PolicyRefused("a comparison of a property with an entity or a set")


def compare_known(op: ir.CompareOp, left: Any, right: Any) -> bool:
    """Compare two constants."""
    if isinstance(left, CedarTime) and isinstance(right, CedarTime):
        left, right = left.milliseconds, right.milliseconds
    if op in ("=", "!="):
        same = type(left) is type(right) and left == right
        return same == (op == "=")
    compare: Mapping[str, Callable[[Any, Any], bool]] = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    return bool(compare[op](left, right))


def compare_truths(op: ir.CompareOp, left: CedarValue, right: CedarValue) -> Truth:
    """Compare two conditions."""
    if isinstance(left, Known):
        left, right = right, left
    if not isinstance(left, Truth) or not isinstance(right, Known):
        raise PolicyRefused("a comparison of conditions")
    return left if right.value == (op == "=") else Truth(left.false, left.true)


def compare_columns(op: ir.CompareOp, left: ir.Prop, right: ir.Prop) -> Truth:
    """Compare two properties of the row."""
    if left.type.is_list or right.type.is_list:
        raise PolicyRefused("a comparison of whole sets")
    dates = {left.type.scalar, right.type.scalar} & {"Date", "DateTime"}
    if len(dates) > 1:
        raise PolicyRefused("a comparison of a Date with a DateTime of the row")
    compared = ir.Compare(op, left, right)
    return Truth(compared, negated(compared))


def compare_date(op: ir.CompareOp, prop: ir.Prop, milliseconds: int) -> Truth:
    """Compare a Date, which is midnight UTC in Cedar, with a datetime."""
    day, rest = divmod(milliseconds, _DAY_MS)
    if rest and op in ("=", "!="):
        present = is_present(prop)
        return Truth(False, present) if op == "=" else Truth(present, False)
    if rest:
        op = "<=" if op in ("<", "<=") else ">"
    compared = ir.Compare(op, prop, ir.Const(day, _DATE))
    return Truth(compared, negated(compared))


def has_item(prop: ir.Prop, item: Known | Symbol) -> Truth:
    """Return where a list of the row contains a constant."""
    value = _item_constant(prop, item)
    if value is None:
        return Truth(False, is_present(prop))
    compared = ir.Compare("contains_item", prop, value)
    return Truth(compared, ir.Not(compared))


def _item_constant(prop: ir.Prop, item: Known | Symbol) -> ir.Const | ir.ParamRef | None:
    """Return a constant as an item of a property; None if no value of the property equals it."""
    if isinstance(item, Known) and isinstance(item.value, CedarTime) and prop.type.scalar == "Date":
        day, rest = divmod(item.value.milliseconds, _DAY_MS)
        return None if rest else ir.Const(day, _DATE)
    return constant_of(item, PropertyType(prop.type.scalar))


def is_in(prop: ir.Prop, items: Known | Symbol) -> Truth:
    """Return where a property is an item of a constant set."""
    if isinstance(items, Symbol):
        found = opaque_truth(f"{items.name}.contains({prop.name})")
        present = is_present(prop)
        return Truth(all_of([present, found.true]), all_of([present, found.false]))
    constants = [_item_constant(prop, Known(value)) for value in sorted(items.value, key=repr)]
    values = [constant.value for constant in constants if isinstance(constant, ir.Const)]
    if not values:
        return Truth(False, is_present(prop))
    scalar = next(constant.type.scalar for constant in constants if isinstance(constant, ir.Const))
    if len(values) == 1:
        compared = ir.Compare("=", prop, ir.Const(values[0], PropertyType(scalar)))
        return Truth(compared, negated(compared))
    listed = ir.Const(sorted(values), PropertyType(scalar, is_list=True))
    compared = ir.Compare("contains_item", listed, prop)
    return Truth(compared, ir.Not(compared))


def text_test(prop: ir.Prop, parts: list[str | None]) -> ir.Condition | bool:
    """Return the comparison of a text with a pattern; True if every text matches."""

    def test(op: ir.CompareOp, text: str) -> ir.Compare:
        return ir.Compare(op, prop, ir.Const(text, ir.STRING))

    match parts:
        case []:
            return test("=", "")
        case [None]:
            return True
        case [str(text)]:
            return test("=", text)
        case [str(text), None]:
            return test("starts_with", text)
        case [None, str(text)]:
            return test("ends_with", text)
        case [None, str(text), None]:
            return test("contains_text", text)
        case _:
            return test("matches", "(?s)\\A" + "".join(".*" if p is None else _escaped(p) for p in parts) + "\\z")


def _escaped(text: str) -> str:
    """Return a text as a regular expression (RE2) that matches exactly it."""
    return "".join(
        char if char.isalnum() or char == "_" or ord(char) > 127 else f"\\x{{{ord(char):x}}}" for char in text
    )


def matches_parts(parts: list[str | None], text: str) -> bool:
    """Return True if a text matches the parts of a pattern; None matches any text."""
    pattern = "".join(".*" if part is None else re.escape(part) for part in parts)
    return re.fullmatch(pattern, text, re.DOTALL) is not None
