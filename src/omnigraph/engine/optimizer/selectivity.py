"""Selectivity of conditions: the share of rows that pass, from column statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
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
        """Parameter → the value that the plan is made for."""

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

    def column_compared(self, condition: ir.Condition) -> ColumnStatistics | None:
        """Return the column that a condition compares with a parameter; None for other conditions and for keys."""
        if not isinstance(condition, ir.Compare) or not isinstance(condition.right, ir.ParamRef):
            return None
        left = condition.left
        if not isinstance(left, ir.Prop) or self._names_key(left):
            return None
        return self._column(left)

    def is_key(self, condition: ir.Condition) -> bool:
        """Return True if a condition gives the id of the node."""
        if not isinstance(condition, ir.Compare) or condition.op != "=":
            return False
        left, right = condition.left, condition.right
        return isinstance(left, ir.Prop) and isinstance(right, ir.Const | ir.ParamRef) and self._names_key(left)

    def _names_key(self, prop: ir.Prop) -> bool:
        node = self._statistics.catalog.nodes.get(self._types.get(prop.var, ""))
        return node is not None and (prop.name == "id" or node.key == (prop.name,))

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
        query = match.query
        value = query.value if isinstance(query, ir.Const) else None
        if isinstance(query, ir.ParamRef):
            value = self._values.get(query.name)
        words = value.lower().split()[:_WORDS_MAX] if isinstance(value, str) else []
        if not words or match.function == "fuzzy":
            return _TEXT_SHARE * column.filled_share
        found = all if match.every else any
        return column.share_where(lambda text: found(word in text.lower() for word in words), most=_TEXTS_MAX)

    def _null_share(self, value: ir.Expr) -> float:
        column = self._column(value)
        return _NULL_SHARE if column is None else 1 - column.known_share

    def _compared(self, condition: ir.Compare) -> float:
        left, right, op = condition.left, condition.right, condition.op
        if op in _FLIPPED and not isinstance(left, ir.Prop) and isinstance(right, ir.Prop):
            left, right, op = right, left, _FLIPPED[op]  # type: ignore[assignment]
        if op == "contains_item" and isinstance(right, ir.Prop) and isinstance(left, ir.Const | ir.ParamRef):
            return self._one_of(right, left)
        if not isinstance(left, ir.Prop):
            return _SHARES.get(op, _RANGE_SHARE)
        if op == "=" and self._names_key(left) and not isinstance(right, ir.Prop):
            return 1 / max(self._statistics.nodes(self._types[left.var]), 1)
        column = self._column(left)
        if column is None:
            return _SHARES.get(op, _RANGE_SHARE)
        if isinstance(right, ir.Const):
            return share_with_constant(column, op, right.value)
        if isinstance(right, ir.ParamRef):
            value = self._values.get(right.name)
            return _with_parameter(column, op) if value is None else share_with_constant(column, op, value)
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
            return min(sum(column.share_equal(value) for value in values.value or ()), 1.0)
        return min(_LIST_PARAMETER_ITEMS * column.share_equal_any(), column.known_share)


def _with_parameter(column: ColumnStatistics, op: str) -> float:
    if op == "=":
        return column.share_equal_any()
    if op == "!=":
        return max(column.known_share - column.share_equal_any(), 0.0)
    return column.known_share * _SHARES.get(op, _RANGE_SHARE)


def share_with_constant(column: ColumnStatistics, op: str, value: Any) -> float:
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
