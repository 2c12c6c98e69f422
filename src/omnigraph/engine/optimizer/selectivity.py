"""Selectivity of conditions: the share of rows that pass, from column statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, assert_never

from omnigraph.engine.statistics.column_statistics import ColumnStatistics
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.plan import ir

_SHARES = {"=": 0.1, "!=": 0.9, "contains_item": 0.1, "contains_text": 0.1, "starts_with": 0.1, "matches": 0.1}
_RANGE_SHARE = 1 / 3
_NULL_SHARE = 0.1
_TEXT_SHARE = 0.05
"""The assumed share of texts that contain words that are not known."""
_TEXTS_MAX = 128
"""Texts of a sample in which words are sought."""
_WORDS_MAX = 5
_LIST_PARAMETER_ITEMS = 10
"""The assumed number of items of a list that is not known."""
_ITEMS_MAX = 64
"""Items of a list whose shares are added up; the sum is scaled to all items."""
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Selectivity:
    """Selectivities of the conditions of one plan."""

    def __init__(
        self,
        statistics: GraphStatistics,
        types: Mapping[str, str],
        edge_types: Mapping[str, str] | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self._statistics = statistics
        self._types = types
        """Variable → node type."""
        self._edge_types = edge_types or {}
        """Edge variable → edge type."""
        self._values = values or {}
        """Parameter → the value that the plan is made for, in stored form. Null is estimated like an unknown value."""

    def type_of(self, var: str) -> str:
        """Return the node type of a variable."""
        return self._types[var]

    def share(self, conditions: Iterable[ir.Condition]) -> float:
        """Return the share of rows that pass all conditions, which are assumed to be independent."""
        share = 1.0
        for condition in conditions:
            share *= self.of(condition)
        return share

    def of(self, condition: ir.Condition) -> float:
        """Return the share of rows that pass a condition."""
        match condition:
            case ir.TextMatch():
                return self._matched(condition)
            case ir.Compare():
                return self._compared(condition)
            case ir.Not(ir.IsNull(value)):
                return 1 - self._null_share(value)
            case ir.Not():
                return 1 - self.of(condition.part)
            case ir.Logic():
                shares = [self.of(part) for part in condition.parts]
                return math.prod(shares) if condition.op == "and" else 1 - math.prod(1 - share for share in shares)
            case ir.IsNull():
                return self._null_share(condition.value)
            case ir.Prop():
                column = self._column(condition)
                return 0.5 if column is None or not column.sample else column.share_equal(True)
            case ir.ParamRef() | ir.Const() | ir.Arithmetic() | ir.Negative() | ir.Function():
                return 0.5
            case _:
                assert_never(condition)

    def by_value(self, condition: ir.Condition) -> tuple[ir.ParamRef, Callable[[Any], float]] | None:
        """Return the parameter that determines the share of rows that pass a condition, and the share as a function of
        its value; None for other conditions and for keys.
        """
        match condition:
            case ir.TextMatch(query=ir.ParamRef() as parameter) if condition.function != "fuzzy":
                column = self._covered(condition.prop)
                return None if column is None else (parameter, partial(_share_with_words, column, condition.every))
            case ir.Compare(op="contains_item", left=ir.ParamRef() as parameter, right=ir.Prop() as prop):
                column = self._column(prop)
                return None if column is None else (parameter, partial(_share_with_items, column))
            case ir.Compare(left=ir.Prop() as prop, right=ir.ParamRef() as parameter):
                column = None if self.is_key(condition) else self._column(prop)
                return None if column is None else (parameter, partial(_share_with_constant, column, condition.op))
            case _:
                return None

    def is_key(self, condition: ir.Condition) -> bool:
        """Return True if a condition gives the id of the node."""
        if not isinstance(condition, ir.Compare) or condition.op != "=":
            return False
        left, right = condition.left, condition.right
        return isinstance(left, ir.Prop) and isinstance(right, ir.Const | ir.ParamRef) and self._names_key(left)

    def _names_key(self, prop: ir.Prop) -> bool:
        node = self._statistics.catalog.nodes.get(self._types.get(prop.var, ""))
        return node is not None and (prop.name in ("id", node.id_column))

    def _column(self, expr: ir.Expr) -> ColumnStatistics | None:
        if not isinstance(expr, ir.Prop) or expr.type.is_list:
            return None
        if expr.var in self._edge_types:
            return self._statistics.edge_column(self._edge_types[expr.var], expr.name)
        type_name = self._types.get(expr.var)
        return None if type_name is None else self._statistics.node_column(type_name, expr.name)

    def coverage(self, prop: ir.Prop) -> float:
        """Return the share of rows with a text or vector in a searched property; 1 if it is not known."""
        column = self._covered(prop)
        return 1.0 if column is None else column.filled_share

    def _covered(self, prop: ir.Prop) -> ColumnStatistics | None:
        type_name = self._types.get(prop.var)
        return None if type_name is None or prop.type.is_list else self._statistics.coverage(type_name, prop.name)

    def _matched(self, match: ir.TextMatch) -> float:
        """Return the share of rows whose text matches a search: from the words in the sample, if they are known."""
        column = self._covered(match.prop)
        if column is None:
            return _TEXT_SHARE
        known = self._known_share(match)
        if known is not None:
            return known
        if match.function == "fuzzy" or not isinstance(match.query, ir.Const):
            return _TEXT_SHARE * column.filled_share
        return _share_with_words(column, match.every, match.query.value)

    def _known_share(self, condition: ir.Condition) -> float | None:
        """Return the share of rows that pass a condition with a parameter whose value is known; None for others."""
        found = self.by_value(condition) if self._values else None
        if found is None:
            return None
        parameter, share = found
        value = self._values.get(parameter.name)
        return None if value is None else share(value)

    def _null_share(self, value: ir.Expr) -> float:
        column = self._column(value)
        return _NULL_SHARE if column is None else 1 - column.known_share

    def _compared(self, condition: ir.Compare) -> float:
        left, right, op = condition.left, condition.right, condition.op
        if op in _FLIPPED and not isinstance(left, ir.Prop) and isinstance(right, ir.Prop):
            left, right, op = right, left, _FLIPPED[op]  # type: ignore[assignment]
        if op == "contains_item" and isinstance(right, ir.Prop) and isinstance(left, ir.Const | ir.ParamRef):
            known = self._known_share(condition)
            return self._one_of(right, left) if known is None else known
        if not isinstance(left, ir.Prop):
            return _SHARES.get(op, _RANGE_SHARE)
        if op == "=" and self._names_key(left) and not isinstance(right, ir.Prop):
            return 1 / max(self._statistics.nodes(self._types[left.var]), 1)
        column = self._column(left)
        if column is None:
            return _SHARES.get(op, _RANGE_SHARE)
        if isinstance(right, ir.Const):
            return _share_with_constant(column, op, right.value)
        if isinstance(right, ir.ParamRef):
            known = self._known_share(condition)
            return _with_parameter(column, op) if known is None else known
        other = self._column(right)
        if other is None:
            return _SHARES.get(op, _RANGE_SHARE)
        equal = min(column.known_share, other.known_share) / max(column.distinct, other.distinct)
        return equal if op == "=" else 1 - equal if op == "!=" else _RANGE_SHARE

    def _one_of(self, prop: ir.Prop, values: ir.Const | ir.ParamRef) -> float:
        column = self._column(prop)
        if column is None:
            return _SHARES["contains_item"]
        if isinstance(values, ir.Const):
            return _share_with_items(column, values.value or ())
        return min(_LIST_PARAMETER_ITEMS * column.share_equal_any(), column.known_share)


def is_equality(condition: ir.Condition) -> bool:
    """Return True if a condition names the values of a property."""
    if not isinstance(condition, ir.Compare):
        return False
    match condition.op, condition.left, condition.right:
        case ("=", ir.Prop(), ir.Const() | ir.ParamRef()) | (
            "=" | "contains_item",
            ir.Const() | ir.ParamRef(),
            ir.Prop(),
        ):
            return True
        case _:
            return False


def _with_parameter(column: ColumnStatistics, op: str) -> float:
    if op == "=":
        return column.share_equal_any()
    if op == "!=":
        return max(column.known_share - column.share_equal_any(), 0.0)
    return column.known_share * _SHARES.get(op, _RANGE_SHARE)


def _share_with_words(column: ColumnStatistics, every: bool, text: str | None) -> float:
    """Return the share of rows whose text matches a search for some words."""
    words = (text or "").lower().split()[:_WORDS_MAX]
    if not words:
        return _TEXT_SHARE * column.filled_share
    found = all if every else any
    return column.share_where(lambda text: found(word in text.lower() for word in words), most=_TEXTS_MAX)


def _share_with_items(column: ColumnStatistics, items: Sequence[Any]) -> float:
    """Return the share of rows whose value is one of some items in stored form."""
    some = items[:: -(-len(items) // _ITEMS_MAX)] if items else ()
    each = sum(map(column.share_equal, some)) / max(len(some), 1)
    return min(each * len(items), column.known_share)


def _share_with_constant(column: ColumnStatistics, op: str, value: Any) -> float:
    """Return the share of rows whose value passes a comparison with a constant in stored form."""
    match op:
        case "=":
            return column.share_equal(value)
        case "!=":
            return max(column.known_share - column.share_equal(value), 0.0)
        case "<" | "<=":
            return column.share_below(value, inclusive=op == "<=")
        case ">" | ">=":
            return max(column.known_share - column.share_below(value, inclusive=op == ">"), 0.0)
        case "starts_with" | "ends_with" | "contains_text" if isinstance(value, str):
            return column.share_where(_TEXT_TESTS[op](value))
        case _:
            return column.known_share * _SHARES.get(op, _RANGE_SHARE)


_TEXT_TESTS = {
    "starts_with": lambda part: lambda text: isinstance(text, str) and text.startswith(part),
    "ends_with": lambda part: lambda text: isinstance(text, str) and text.endswith(part),
    "contains_text": lambda part: lambda text: isinstance(text, str) and part in text,
}
