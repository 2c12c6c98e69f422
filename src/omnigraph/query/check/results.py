"""Type checker for `return`, `having`, `order`, `skip` and `limit`."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TypeGuard, assert_never

from omnigraph.lang.diagnostics import Fault
from omnigraph.query.check.errors import Silenced, type_fault
from omnigraph.query.check.expressions import ExpressionChecker
from omnigraph.query.check.groups import (
    Grouping,
    GroupScope,
    ItemScope,
    contains_aggregate,
    refers_to_group,
)
from omnigraph.query.check.object_literals import refuse_constructed
from omnigraph.query.check.operators import check_condition
from omnigraph.query.check.paths import no_value
from omnigraph.query.check.resolved import ResolvedBlock, ResolvedRead
from omnigraph.query.check.scopes import Scope
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast
from omnigraph.suggestions import did_you_mean
from omnigraph.types import PropertyType

_UNORDERED = ast.LiteralExpr | ast.ListExpr | ast.VarExpr | ast.WordExpr
_KEYS = ir.Computed | ir.Compare | ir.Logic | ir.Not | ir.IsNull | ir.Object | ir.ListOf


class Results:
    """Type checker for the parts of a read behind `match`."""

    def __init__(self, expressions: ExpressionChecker, scope: Scope, read: ast.Read) -> None:
        self.expressions = expressions
        self.read = read
        self.scope = scope
        self.report = expressions.report
        self.grouping = Grouping()
        self.valid_items: list[ast.ReturnItem] = []
        """The items without errors, parallel to `found`."""
        self.found: list[ir.ReturnColumn] = []
        self.aliases: dict[str, int | None] = {}
        """Alias → index of its column; None if the item has an error."""

    def check(self, name: str, params: tuple[ir.ParamDecl, ...], block: ResolvedBlock) -> ResolvedRead:
        """Return the checked query; errors are reported."""
        self.columns()
        having = self.having()
        order = self.order()
        if len(order) == len(self.read.order):
            self.check_rankings(order)
        limit, skip = (self.expressions.attempt(self.row_count, count) for count in (self.read.limit, self.read.skip))
        columns, grouped = tuple(self.found), tuple(self.grouping.exprs)
        # Groups whose keys are all returned are distinct already.
        distinct = self.read.distinct and not self.grouping.is_shown(columns)
        return ResolvedRead(name, params, block, columns, tuple(order), limit, skip, distinct, having, grouped)

    # -- return ----------------------------------------------------------------------------------

    def columns(self) -> list[ir.ReturnColumn]:
        """Return the returned columns, in order."""
        on_groups = ItemScope(self.scope, self.grouping)
        for item in self.read.items:
            scope = on_groups if contains_aggregate(item.expr) else self.scope
            column = self.expressions.attempt(self.column, item, scope)
            if column is not None:
                self.found.append(column)
                self.valid_items.append(item)
                self.grouping.over(column.expr)  # keys count in the order of the items
            if item.alias:
                self.aliases[item.alias.text] = None if column is None else len(self.found) - 1
        if self.aggregates:
            self.group_keys()
        if self.grouped:
            self.refuse_paths()
        if not any(refers_to_group(column.expr) for column in self.found):
            self.grouping = Grouping()
        else:
            self.found = [replace(column, expr=self.grouping.over(column.expr)) for column in self.found]
            self.check_distinct()
        return self.found

    @property
    def aggregates(self) -> bool:
        """True if a column is or contains an aggregate."""
        return any(isinstance(c.expr, ir.Aggregate) or refers_to_group(c.expr) for c in self.found)

    @property
    def grouped(self) -> bool:
        """True if rows are grouped."""
        return self.read.distinct or self.aggregates

    def column(self, item: ast.ReturnItem, scope: Scope) -> ir.ReturnColumn:
        """Check one item."""
        expr = self.alias(item.expr) if self.is_alias(item.expr) else self.expressions.check(item.expr, scope)
        self.expressions.refuse_blob(item.expr, expr)
        name = item.alias.text if item.alias else _column_name(item.expr)
        return ir.ReturnColumn(name, expr, expr.type)

    def is_alias(self, expr: ast.Expr) -> TypeGuard[ast.WordExpr]:
        """True if an expression is a bare name other than `null`."""
        return isinstance(expr, ast.WordExpr) and (expr.name != "null" or "null" in self.aliases)

    def alias(self, word: ast.WordExpr) -> ir.Expr:
        """Check a bare name among the items, which repeats an earlier item."""
        if word.name not in self.aliases:
            hint = did_you_mean(word.name, self.aliases)
            hint = hint or self.expressions.unknown_word(word, self.scope).hint
            raise type_fault(None, f"'{word.name}' is not the alias of an earlier item", word.span, hint)
        index = self.aliases[word.name]
        if index is None:
            raise Silenced
        # With `distinct`, a column that repeats another one is also a key.
        expr = self.found[index].expr
        return expr if self.read.distinct or isinstance(expr, ir.ColumnRef) else ir.ColumnRef(index, expr.type)

    def group_keys(self) -> None:
        """T9: the items beside an aggregate are keys: they depend on the row and are not rankings."""
        for item, column in zip(self.valid_items, self.found, strict=True):
            expr, parts = column.expr, [*ir.walk(column.expr)]
            key = isinstance(expr, ir.Prop | ir.Entity) or (isinstance(expr, _KEYS) and any(ir.variables_of(expr)))
            if isinstance(expr, ir.Aggregate) or (key and not any(isinstance(part, ir.Rank) for part in parts)):
                continue
            if any(isinstance(part, ir.Why | ir.PathPart) for part in parts):
                continue  # these are refused by themselves
            self.report(
                type_fault(
                    "T9",
                    f"{self.expressions.text(item.expr)} cannot be returned beside an aggregate",
                    item.expr.span,
                    "rows are grouped by the other items, which must be '$x.property', '$x' or computed from such",
                )
            )

    def refuse_paths(self) -> None:
        """T36: rows cannot be grouped by paths."""
        for item, column in zip(self.valid_items, self.found, strict=True):
            summed = isinstance(column.expr, ir.Aggregate)
            if not summed and any(isinstance(part, ir.PathPart) for part in ir.walk(column.expr)):
                self.report(no_value(self.expressions.text(item.expr), item.expr.span))

    def check_distinct(self) -> None:
        """T38: with `distinct`, groups whose keys are not all returned are compared by their columns, which must be
        plain values.
        """
        if not self.read.distinct or self.grouping.is_shown(self.found):
            return
        for item, column in zip(self.valid_items, self.found, strict=True):
            if not isinstance(column.type, PropertyType):
                text = self.expressions.text(item.expr)
                hint = "return what the rows are grouped by as well, or leave 'distinct' out"
                self.report(type_fault("T38", f"'distinct' cannot compare {text}", item.expr.span, hint))

    def check_rankings(self, order: list[ir.SortKey]) -> None:
        """T15, T21, T39: `approx`, a fused score and `why()` belong to the ranking that orders the rows."""
        rank = order[0].expr if order else None
        for item, column in zip(self.valid_items, self.found, strict=True):
            parts = [*ir.walk(column.expr)]
            if any(isinstance(part, ir.Rrf) and part != rank for part in parts):
                self.report(type_fault("T21", "'rrf' can be returned only when it is also the order", item.expr.span))
            if any(isinstance(part, ir.Nearest) and part.approx for part in parts) and ir.Rrf not in map(type, parts):
                hint = "leave 'approx' out: a returned distance is exact"
                self.report(type_fault("T15", "'approx' belongs to a ranking in 'order'", item.expr.span, hint))
            if any(isinstance(part, ir.Why) for part in parts) and not isinstance(rank, ir.Rank):
                hint = "order by nearest(…), bm25(…) or rrf(…)"
                self.report(type_fault("T39", "'why' explains a ranking, and there is none", item.expr.span, hint))

    # -- groups ----------------------------------------------------------------------------------

    def group_scope(self) -> GroupScope:
        """Return the scope of expressions over groups: aliases, repeated items, keys and aggregates."""
        grouped = bool(self.grouping)
        exprs = self.grouping.exprs if grouped else [column.expr for column in self.found]
        values = [
            column.expr if grouped else ir.group_column(index, column.expr) for index, column in enumerate(self.found)
        ]
        words = {alias: None if index is None else values[index] for alias, index in self.aliases.items()}
        items = [(item.expr, value) for item, value in zip(self.valid_items, values, strict=True)]
        return GroupScope(self.scope, exprs, words, items)

    def having(self) -> tuple[ir.Condition, ...]:
        """T29: conditions over the returned values of a group, named by alias or repeated."""
        if not self.read.having:
            return ()
        if not self.grouped:
            message = "'having' filters groups, and this query has none"
            self.report(type_fault("T29", message, self.read.having_body, "write the condition into 'match'"))
            return ()
        scope = self.group_scope()
        found: list[ir.Condition] = []
        for condition in self.read.having:
            checked = self.expressions.attempt(check_condition, self.expressions, condition.expr, scope)
            if checked is not None:
                found += ir.conjuncts_of(checked)
        return tuple(found)

    # -- order -----------------------------------------------------------------------------------

    def order(self) -> list[ir.SortKey]:
        """Return the sort keys, in order."""
        scope = self.group_scope() if self.grouped else self.scope_with_aliases()
        keys = [
            self.expressions.attempt(self.sort_key, item, position, scope)
            for position, item in enumerate(self.read.order)
        ]
        return [key for key in keys if key is not None]

    def sort_key(self, item: ast.SortItem, position: int, scope: Scope) -> ir.SortKey:
        """Check one sort key."""
        descending = item.direction == "desc"
        if self.is_alias(item.expr):
            expr = self.sort_alias(item.expr)
        elif isinstance(item.expr, _UNORDERED) and not self.is_carried(item.expr):
            raise self.unsupported(item)
        else:
            expr = self.ordering(item, scope)
        if isinstance(expr, ir.Rank):
            self.rank(item, expr, position)
            return ir.SortKey(expr, not isinstance(expr, ir.Nearest))
        self.expressions.refuse_blob(item.expr, expr)
        if isinstance(expr, ir.Constructed):
            raise refuse_constructed(self.expressions, item.expr, expr)
        if isinstance(expr, ir.TextMatch | ir.Const | ir.ParamRef) or not isinstance(expr.type, PropertyType):
            raise self.unsupported(item)
        if expr.type.is_list or expr.type.scalar == "Vector":
            raise self.unsupported(item, f"{expr.type} has no order")
        return ir.SortKey(expr, descending)

    def is_carried(self, expr: ast.Expr) -> bool:
        """True if an expression is a value that an earlier stage carries on."""
        if not isinstance(expr, ast.VarExpr) or expr.name in self.expressions.params:
            return False
        variable = self.scope.find(expr.name)
        return variable is not None and variable.kind == "value"

    def ordering(self, item: ast.SortItem, scope: Scope) -> ir.Expr:
        """Return a sort key that is an expression; for groups, one over their returned values."""
        hint = f"return it under an alias, '{self.expressions.text(item.expr)} as n', and order by that"
        if not self.grouped:
            expr = self.expressions.check(item.expr, scope)
            if isinstance(expr, ir.Aggregate):
                raise self.unsupported(item, hint)
            return expr
        try:
            expr = self.expressions.of_group(item.expr, scope)
        except Fault as fault:
            if fault.code != "T29":
                raise
            if not isinstance(item.expr, ast.CallExpr):
                hint = "groups are ordered by what the query returns: return it, or use an alias"
            raise self.unsupported(item, hint) from None
        column = self.column_numbers.get(expr)
        if column is not None:
            return ir.ColumnRef(column, self.found[column].type)
        if self.read.distinct and self.grouping and not self.grouping.is_shown(self.found):
            raise self.unsupported(item, "'distinct' removes duplicate rows: order by a returned item")
        return expr

    @cached_property
    def column_numbers(self) -> dict[ir.Expr, int]:
        """The first column of each value over the groups."""
        numbers: dict[ir.Expr, int] = {}
        grouped = bool(self.grouping)
        for index, column in enumerate(self.found):
            numbers.setdefault(column.expr if grouped else ir.group_column(index, column.expr), index)
        return numbers

    def scope_with_aliases(self) -> Scope:
        """Return the scope of a sort key: the variables, and the returned items by their aliases."""
        words = {alias: None if index is None else self.column_expr(index) for alias, index in self.aliases.items()}
        return Scope(self.scope.block, self.scope.clause, words)

    def column_expr(self, index: int) -> ir.Expr:
        """Return the expression of a column; a column that repeats another has the expression of that one."""
        expr = self.found[index].expr
        while isinstance(expr, ir.ColumnRef):
            expr = self.found[expr.index].expr
        return expr

    def sort_alias(self, word: ast.WordExpr) -> ir.Expr:
        """Return the sort key of a bare name, which is an alias."""
        if word.name not in self.aliases:
            hint = did_you_mean(word.name, self.aliases) or self.expressions.word_hint(word, self.scope)
            raise type_fault(None, f"'{word.name}' is not the alias of a returned item", word.span, hint)
        if self.orders_by_nearest:
            raise type_fault(
                "T18",
                f"the alias '{word.name}' cannot be a sort key beside 'nearest'",
                word.span,
                "sort by the property itself: '$x.property'",
            )
        index = self.aliases[word.name]
        if index is None:
            raise Silenced
        expr = self.column_expr(index)
        if isinstance(expr, ir.Nearest):
            raise type_fault("T18", f"'{word.name}' is the alias of 'nearest'", word.span, "order by nearest(…) itself")
        return expr if isinstance(expr, ir.Rank | ir.Constructed) else ir.ColumnRef(index, self.found[index].type)

    @cached_property
    def orders_by_nearest(self) -> bool:
        """True if a sort key is a call of `nearest`."""
        return any(isinstance(sort.expr, ast.CallExpr) and sort.expr.function == "nearest" for sort in self.read.order)

    def rank(self, item: ast.SortItem, rank: ir.Rank, position: int) -> None:
        """T17, T21: where a ranking can be a sort key."""
        name = {ir.Nearest: "nearest", ir.Bm25: "bm25", ir.Rrf: "rrf"}[type(rank)]
        if position:
            raise self.unsupported(item, f"'{name}' must be the first sort key")
        if self.grouped:
            raise self.unsupported(item, "groups are ordered by aliases and group keys, not by a ranking")
        if not self.always_limited() and name != "bm25":
            code = "T17" if name == "nearest" else "T21"
            raise type_fault(code, f"ordering by '{name}' needs a limit", item.span, "add 'limit 10' behind 'order'")

    def unsupported(self, item: ast.SortItem, why: str | None = None) -> Fault:
        """Return the error for an expression that rows cannot be ordered by."""
        hint = why or "order by '$x.property', by an alias, or by nearest, bm25 or rrf as the first key"
        return type_fault(
            None, f"unsupported ordering expression: {self.expressions.text(item.expr)}", item.expr.span, hint
        )

    # -- skip and limit --------------------------------------------------------------------------

    def row_count(self, count: int | ast.VarExpr | None) -> int | ir.ParamRef | None:
        """T30: a number of rows, as a literal or a parameter."""
        if not isinstance(count, ast.VarExpr):
            return count
        if count.name not in self.expressions.params:
            hint = self.expressions.undeclared(count.name, ir.I64)
            raise type_fault("T30", f"'${count.name}' is not a parameter", count.span, hint)
        param = self.expressions.param(count)
        if not param.type.is_integer:
            raise type_fault("T30", f"a number of rows is whole, but ${count.name} is {param.type}", count.span)
        return param

    def always_limited(self) -> bool:
        """True if there is a limit that cannot be null."""
        if not isinstance(self.read.limit, ast.VarExpr):
            return self.read.limit is not None
        type_ = self.expressions.params.get(self.read.limit.name)
        return type_ is None or not type_.nullable


def _column_name(expr: ast.Expr) -> str:
    match expr:
        case ast.PropertyExpr():
            return f"{expr.var}.{expr.property}"
        case ast.VarExpr() | ast.WordExpr():
            return expr.name
        case ast.CallExpr():
            return expr.function
        case ast.ObjectExpr():
            return "object"
        case ast.ListExpr() if any(not isinstance(item, ast.LiteralExpr) for item in expr.items):
            return "list"
        case ast.LiteralExpr() | ast.ListExpr():
            return "literal"
        case (
            ast.CaseExpr()
            | ast.CompareExpr()
            | ast.LogicExpr()
            | ast.NotExpr()
            | ast.IsNullExpr()
            | ast.ArithmeticExpr()
            | ast.NegativeExpr()
        ):
            return "value"
        case _:
            assert_never(expr)
