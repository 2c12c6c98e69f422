"""What is said of groups: items that compute with aggregates, `having`, and the order of groups.

A group is known by its keys and its aggregates, in a list. In an item that holds an aggregate, every largest part
without one is a key. What is computed from them stands on `ir.GROUP`, whose columns are numbered as the list is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Name, Span
from omnigraph.query.check.errors import type_fault
from omnigraph.query.check.scopes import Scope
from omnigraph.query.functions import AGGREGATE
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast


def speaks_of_groups(expr: ir.Expr) -> bool:
    """Whether an expression stands on a group."""
    return any(ir.column_number(part) is not None for part in ir.walk(expr))


def holds_aggregate(expr: ast.Expr) -> bool:
    """Whether an aggregate stands anywhere in an expression."""
    return any(call.function in AGGREGATE for call in ast.calls_in(expr))


class Grouping:
    """The keys and aggregates of the groups of a query, each once."""

    def __init__(self) -> None:
        self.exprs: list[ir.Expr] = []

    def column(self, expr: ir.Expr) -> ir.Prop | ir.GroupValue:
        """A key or an aggregate as a value of the group."""
        if expr not in self.exprs:
            self.exprs.append(expr)
        return ir.group_column(self.exprs.index(expr), expr)

    def is_shown(self, columns: Sequence[ir.ReturnColumn]) -> bool:
        """Whether there are keys and aggregates, and every key is a column by itself."""
        shown = {ir.column_number(column.expr) for column in columns}
        keys = {index for index, expr in enumerate(self.exprs) if not isinstance(expr, ir.Aggregate)}
        return bool(self.exprs) and keys <= shown

    def over(self, expr: ir.Expr) -> ir.Expr:
        """A part of an item as a value of the group: an aggregate, a key, or what is computed from such.

        What depends on no row stays as it is, and so do rankings and paths, which are no keys.
        """
        if isinstance(expr, ir.Aggregate):
            return self.column(expr)
        parts = [*ir.walk(expr)]
        if any(ir.column_number(part) is not None or isinstance(part, ir.Rank | ir.PathPart) for part in parts):
            return expr
        return self.column(expr) if any(ir.variables_of(expr)) else expr


class _OnRows(Scope):
    """A scope that sees what rows do, and more."""

    def __init__(self, rows: Scope, words: Mapping[str, ir.Expr | None] | None = None) -> None:
        super().__init__(rows.block, rows.clause, words)
        self._rows = rows

    @property
    def rows(self) -> Scope:
        """See `Scope`."""
        return self._rows

    def unbound(self, name: Name) -> Fault:
        """See `Scope`."""
        return self._rows.unbound(name)

    def unknown(self, name: Name, params: Iterable[str]) -> Fault:
        """See `Scope`."""
        return self._rows.unknown(name, params)


class ItemScope(_OnRows):
    """What an item that holds an aggregate sees: aggregates, and rows where it asks for no aggregate any more."""

    def __init__(self, rows: Scope, grouping: Grouping) -> None:
        super().__init__(rows)
        self._grouping = grouping

    def within(self, expr: ast.Expr) -> Scope:
        """See `Scope`."""
        return self if holds_aggregate(expr) else self._rows

    def of_group(self, expr: ir.Expr, text: str, span: Span) -> ir.Expr:
        """A part that something is computed from: an aggregate, or as large as it can be without one."""
        del text, span
        return self._grouping.over(expr)


class GroupScope(_OnRows):
    """A scope whose expressions speak of groups; variables are known only to recognise what is returned."""

    def __init__(
        self,
        rows: Scope,
        exprs: Sequence[ir.Expr],
        words: Mapping[str, ir.Expr | None],
        items: Sequence[tuple[ast.Expr, ir.Expr]],
    ) -> None:
        super().__init__(rows, words)
        self._exprs = exprs
        self._items = items

    def returned(self, expr: ast.Expr) -> ir.Expr | None:
        """The value of an item that is written again."""
        return next((value for item, value in self._items if item == expr), None)

    def of_group(self, expr: ir.Expr, text: str, span: Span) -> ir.Expr:
        """The key or aggregate an expression is; T29 when it is none."""
        for index, known in enumerate(self._exprs):
            if known == expr:
                return ir.group_column(index, known)
        of_rows = isinstance(expr, ir.Prop) and expr.var != ir.GROUP
        of_rows = of_rows or (isinstance(expr, ir.Function) and expr.name == "type")
        if of_rows or isinstance(expr, ir.Aggregate | ir.Entity):
            raise type_fault("T29", f"{text} is not returned, so 'having' cannot judge it", span, "return it as well")
        return expr
