"""What `having` can see: the columns of a group, by alias or written as they are returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnigraph.lang.spans import Span
from omnigraph.query import ir
from omnigraph.query.faults import type_fault
from omnigraph.query.scopes import Scope
from omnigraph.types import PropertyType


class GroupScope(Scope):
    """A scope whose expressions speak of groups; variables are known only to recognise what is returned."""

    def __init__(self, rows: Scope, columns: Sequence[ir.Column], words: Mapping[str, ir.Expr | None]) -> None:
        super().__init__(rows.own, rows.since, rows.clause, rows.outer, rows.mentioned, rows.hidden, words)
        self.columns = columns

    def of_group(self, expr: ir.Expr, text: str, span: Span) -> ir.Expr:
        """The returned column an aggregate or a property is; T29 when it is none."""
        returned = isinstance(expr, ir.Aggregate | ir.Prop) or (isinstance(expr, ir.Function) and expr.name == "type")
        if not returned or (isinstance(expr, ir.Prop) and expr.var == ir.GROUP):
            return expr
        for index, column in enumerate(self.columns):
            if column.expr == expr:
                return group_column(index, column)
        raise type_fault("T29", f"{text} is not returned, so 'having' cannot judge it", span, "return it as well")


def group_column(index: int, column: ir.Column) -> ir.Prop:
    """A returned column as a value of the group; a whole node is none."""
    assert isinstance(column.type, PropertyType)
    return ir.Prop(ir.GROUP, str(index), column.type)
