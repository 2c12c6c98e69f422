"""Expressions over groups: items that compute with aggregates, `having`, and the order of groups.

A group is a list of keys and aggregates. In an item that contains an aggregate, each maximal part without an aggregate
is a key. Expressions computed from them refer to the variable `ir.GROUP`, whose columns are numbered like the list.
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


def refers_to_group(expr: ir.Expr) -> bool:
    """True if an expression refers to a key or an aggregate of a group."""
    return any(ir.column_number(part) is not None for part in ir.walk(expr))


def contains_aggregate(expr: ast.Expr) -> bool:
    """True if an expression contains an aggregate."""
    return any(call.function in AGGREGATE for call in ast.calls_in(expr))


class Grouping:
    """The distinct keys and aggregates of the groups of a query."""

    def __init__(self) -> None:
        self._numbers: dict[ir.Expr, int] = {}

    @property
    def exprs(self) -> list[ir.Expr]:
        """The keys and aggregates in the order of their numbers."""
        return list(self._numbers)

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def column(self, expr: ir.Expr) -> ir.Prop | ir.GroupValue:
        """Return a key or an aggregate as a column of the group, and add it if it is new."""
        return ir.group_column(self._numbers.setdefault(expr, len(self._numbers)), expr)

    def is_shown(self, columns: Sequence[ir.ReturnColumn]) -> bool:
        """True if there are keys or aggregates and every key is a returned column."""
        shown = {ir.column_number(column.expr) for column in columns}
        keys = {index for expr, index in self._numbers.items() if not isinstance(expr, ir.Aggregate)}
        return bool(self._numbers) and keys <= shown

    def over(self, expr: ir.Expr) -> ir.Expr:
        """Return a part of an item as a value of the group: an aggregate, a key, or an expression computed from these.

        An expression that depends on no row stays unchanged, and so do rankings and paths, which cannot be keys.
        """
        if isinstance(expr, ir.Aggregate):
            return self.column(expr)
        parts = [*ir.walk(expr)]
        if any(ir.column_number(part) is not None or isinstance(part, ir.Rank | ir.PathPart) for part in parts):
            return expr
        return self.column(expr) if any(ir.variables_of(expr)) else expr


class _OnRows(Scope):
    """A scope that extends the scope of single rows."""

    def __init__(self, rows: Scope, words: Mapping[str, ir.Expr | None] | None = None) -> None:
        super().__init__(rows.block, rows.clause, words)
        self._rows = rows

    @property
    def rows(self) -> Scope:
        """The scope of single rows."""
        return self._rows

    def unbound(self, name: Name) -> Fault:
        """Return the error of the row scope, whose variables are the visible ones."""
        return self._rows.unbound(name)

    def unknown(self, name: Name, params: Iterable[str]) -> Fault:
        """Return the error of the row scope, whose variables are the visible ones."""
        return self._rows.unknown(name, params)


class ItemScope(_OnRows):
    """The scope of an item that contains an aggregate. A part without an aggregate has the scope of rows."""

    def __init__(self, rows: Scope, grouping: Grouping) -> None:
        super().__init__(rows)
        self._grouping = grouping

    def within(self, expr: ast.Expr) -> Scope:
        """Return this scope for a part that contains an aggregate, else the scope of rows."""
        return self if contains_aggregate(expr) else self._rows

    def of_group(self, expr: ir.Expr, text: str, span: Span) -> ir.Expr:
        """Return an operand as a value of the group."""
        del text, span
        return self._grouping.over(expr)


class GroupScope(_OnRows):
    """The scope of expressions over groups. Variables are visible only to recognise returned expressions."""

    def __init__(
        self,
        rows: Scope,
        exprs: Sequence[ir.Expr],
        words: Mapping[str, ir.Expr | None],
        items: Sequence[tuple[ast.Expr, ir.Expr]],
    ) -> None:
        super().__init__(rows, words)
        self._columns: dict[ir.Expr, ir.Expr] = {}
        for index, expr in enumerate(exprs):
            self._columns.setdefault(expr, ir.group_column(index, expr))
        self._returned: dict[ast.Expr, ir.Expr] = {}
        for item, value in items:
            self._returned.setdefault(item, value)

    def returned(self, expr: ast.Expr) -> ir.Expr | None:
        """Return the value of a returned item that is repeated here."""
        return self._returned.get(expr)

    def of_group(self, expr: ir.Expr, text: str, span: Span) -> ir.Expr:
        """Return the key or aggregate that equals an expression; T29 if there is none."""
        column = self._columns.get(expr)
        if column is not None:
            return column
        of_rows = isinstance(expr, ir.Prop) and expr.var != ir.GROUP
        of_rows = of_rows or (isinstance(expr, ir.Function) and expr.name == "type")
        if of_rows or isinstance(expr, ir.Aggregate | ir.Entity):
            raise type_fault("T29", f"{text} is not returned, so 'having' cannot use it", span, "return it as well")
        return expr
