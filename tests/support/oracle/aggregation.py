"""Groups and aggregates (`query-language.md` §10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from omnigraph.query.syntax import ast
from support.oracle.groups import (
    Known,
    changed,
    hashable,
    inside,
    is_aggregate,
    keys_of,
    sort_key,
    sum_scalar,
    total,
)
from support.oracle.model import Entity, Row
from support.oracle.ordering import Ordering
from support.oracle.plan import variables_of

AGGREGATES: Mapping[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "avg": lambda values: float(sum(map(Fraction, values)) / len(values)) if values else None,
    "median": lambda values: median(values) if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
    "collect": lambda values: sorted(values, key=sort_key),
}


def median(values: list[Any]) -> float:
    """The middle value, or the mean of the two middle values, rounded once to a float."""
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return float((Fraction(low) + Fraction(high)) / 2)


def adds_exactly(values: list[Any]) -> bool:
    """True if 64-bit floats give the same sum in every order: all are multiples of one step within 2^53 steps."""
    steps = [Fraction(value) * 2**20 for value in values]
    return all(step.denominator == 1 for step in steps) and sum(map(abs, steps)) <= 2**53


class Aggregation(Ordering):
    """Groups and aggregates."""

    def aggregate(
        self, rows: list[Row], exprs: list[ast.Expr], read: ast.Read
    ) -> tuple[list[tuple[Any, ...]], dict[int, float], bool]:
        """The groups in order, the tolerance of their values, and whether the order is determined."""
        lines, doubt, sure = self.groups(rows, exprs, read)
        shown = [tuple(map(self.presented, exprs, line)) for _, line in lines]
        return shown, doubt, bool(read.order) and sure

    def groups(
        self, rows: list[Row], exprs: list[ast.Expr], read: ast.Read
    ) -> tuple[list[tuple[list[Row], tuple[Any, ...]]], dict[int, float], bool]:
        """The groups in order, each with its rows and values, the tolerance of the values, and whether the order is
        sure.
        """
        keys = [key for expr in exprs for key in keys_of(expr, self.depends)]
        groups: dict[Any, list[Row]] = {} if keys else {(): []}
        for row in rows:
            groups.setdefault(tuple(hashable(self.value(key, row)) for key in keys), []).append(row)
        for members in groups.values():  # a sum that overflows is an error even if its group is filtered out
            for expr in (*exprs, *(item.expr for item in read.order)):
                self.of_group(expr, members)
        every = [members for members in groups.values() if self.passes(read.having, members)]
        lines = [(members, tuple(self.of_group(expr, members) for expr in exprs)) for members in every]
        if read.distinct and not all(key in exprs for key in keys):
            lines = list({hashable(list(line)): (members, line) for members, line in reversed(lines)}.values())
            keys = exprs
        for key in reversed(keys):
            lines.sort(key=lambda line: sort_key(self.of_group(key, line[0])))
        for item in reversed(read.order):
            reverse = item.direction == "desc"
            lines.sort(key=lambda line: sort_key(self.of_group(item.expr, line[0])), reverse=reverse)
        doubt = {at: self.doubt(expr, every) for at, expr in enumerate(exprs)}
        sure = not any(self.doubt(item.expr, every) for item in read.order)
        return lines, doubt, sure

    def depends(self, expr: ast.Expr) -> bool:
        """True if an expression depends on the row."""
        return any(name in self.block.types for name in variables_of(expr, self.params))

    def passes(self, having: Sequence[ast.FilterClause], members: list[Row]) -> bool:
        return all(self.of_group(condition.expr, members) is True for condition in having)

    def of_group(self, expr: ast.Expr, members: list[Row]) -> Any:
        """The value of an expression for a group: aggregates over its members, keys from any member."""

        def known(part: Any) -> Any:
            if isinstance(part, ast.WordExpr) and self.meant(part) is not part:
                return changed(self.meant(part), known)
            return self.aggregated(part, members) if is_aggregate(part) else part

        return self.value(changed(expr, known), members[0] if members else {})

    def aggregated(self, call: ast.CallExpr, members: list[Row]) -> Known:
        (inner,) = call.arguments
        values = [
            value for value in (self.value(inner, row) for row in self.tested(call, members)) if value is not None
        ]
        if call.distinct:
            values = list({hashable(value): value for value in values}.values())
        anything = {
            name: Known(None, min(types)) if kind == "value" else Entity(kind, min(types, default=""), "")
            for name, (kind, types) in self.block.types.items()
        }
        some = members[0] if members else anything
        scalar = {"count": "I64", "avg": "F64", "median": "F64"}.get(call.function) or self.scalar(inner, some)
        if call.function == "sum":
            return Known(total(values, scalar), sum_scalar(scalar))
        return Known(AGGREGATES[call.function](values), scalar)

    def tested(self, call: ast.CallExpr, members: list[Row]) -> list[Row]:
        """The rows that the condition of an aggregate selects."""
        return [row for row in members if call.where is None or self.value(call.where, row) is True]

    def doubt(self, expr: ast.Expr, groups: list[list[Row]]) -> float:
        """The tolerance of an item: sums are as exact as their largest term; 0 if exact."""
        most = 0.0
        expr = self.meant(expr)
        for call in inside(expr):
            if call.function not in ("sum", "avg"):
                continue
            for members in groups:
                rows = self.tested(call, members)
                values = [v for v in (self.value(call.arguments[0], row) for row in rows) if v is not None]
                if values and not (call.function == "sum" and type(values[0]) is int) and not adds_exactly(values):
                    most = max(most, 1e-9 * float(max(map(abs, values))) * len(values))
        return most if is_aggregate(expr) else most * 1e3  # an expression over a sum has a larger error
