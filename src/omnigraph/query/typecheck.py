"""Does a query fit the schema? The tree in, a checked query out, or every reason why not.

`check_query` is the door: parameters first, then the match block (`matching`) and what the query
returns and orders by, or the statements of a write (`mutations`). Numbers T1…T24 name the rule that was
broken. A mistake is reported once: what rests on it is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from omnigraph.lang.diagnostics import Fault, Reporter
from omnigraph.lang.spans import Source
from omnigraph.names import did_you_mean
from omnigraph.query import ast, ir
from omnigraph.query.expressions import ExpressionChecker, Report
from omnigraph.query.faults import Silenced, type_fault
from omnigraph.query.functions import AGGREGATE
from omnigraph.query.groups import GroupScope, group_column
from omnigraph.query.matching import MatchChecker
from omnigraph.query.mutations import MutationChecker
from omnigraph.query.operators import check_condition
from omnigraph.query.paths import no_value
from omnigraph.query.resolved import ResolvedRead
from omnigraph.query.scopes import Scope
from omnigraph.schema.catalog import Catalog
from omnigraph.types import SCALARS, VECTOR_DIM_MAX, PropertyType


def check_query(catalog: Catalog, query: ast.Query, source: Source) -> ResolvedRead | ir.MutationIR:
    """Return the checked query, or raise `TypeCheckError` with every mistake found."""
    reporter = Reporter(source)

    def report(fault: Fault) -> None:
        reporter.add(fault, subject=f"query '{query.name}'")

    params = _params(query, report)
    known = {name: type_ for name, type_ in params.items() if type_ is not None}
    declared = tuple(ir.ParamDecl(name, type_) for name, type_ in known.items())
    expressions = ExpressionChecker(catalog, params, source, report)
    checked: ResolvedRead | ir.MutationIR
    if isinstance(query.body, ast.Write):
        mutation = MutationChecker(catalog, expressions)
        ops = mutation.check(query, query.body)
        returned = mutation.named.sound_items(query.body, expressions.report)
        columns = _Results(expressions, mutation.named.scope(), distinct=False).columns(returned)
        checked = ir.MutationIR(query.name.text, declared, ops, tuple(columns))
    else:
        read = query.body
        block, scope = MatchChecker(catalog, expressions).check(read.clauses)
        results = _Results(expressions, scope, distinct=read.distinct)
        columns = results.columns(read.items)
        having = results.having(read)
        order = results.order(read)
        if len(order) == len(read.order):
            results.rrf_is_the_order(read.items, order)
        limit, skip = (expressions.attempt(results.row_count, count) for count in (read.limit, read.skip))
        checked = ResolvedRead(
            query.name.text, declared, block, tuple(columns), tuple(order), limit, skip, read.distinct, having
        )
    reporter.raise_if_any()
    return checked


def _params(query: ast.Query, report: Report) -> dict[str, PropertyType | None]:
    """Parameter → type; None for one whose declaration is wrong."""
    params: dict[str, PropertyType | None] = {}
    for param in query.params:
        name = param.name.text
        try:
            if name in params:
                raise type_fault(None, f"parameter '${name}' is declared twice", param.name.span)
            params[name] = None
            if name == ir.NOW:
                raise type_fault(None, f"'${name}' is reserved", param.name.span, "write now() where it is needed")
            params[name] = _param_type(param)
        except Fault as fault:
            report(fault)
    return params


def _param_type(param: ast.Param) -> PropertyType:
    name = param.type_name.text
    if param.dim is not None:
        if not 1 <= param.dim <= VECTOR_DIM_MAX:
            raise type_fault(None, f"a vector has 1 to {VECTOR_DIM_MAX} dimensions", param.span)
        return PropertyType("Vector", dim=param.dim, nullable=param.nullable)
    for scalar in SCALARS:
        if scalar == name and not (param.is_list and name == "Blob"):
            return PropertyType(scalar, is_list=param.is_list, nullable=param.nullable)
    if param.is_list and name in ("Blob", "Vector"):
        raise type_fault(None, f"a list parameter cannot hold {name}", param.type_name.span, "it holds plain scalars")
    hint = did_you_mean(name, SCALARS) or f"the types are {', '.join(SCALARS)}, Vector(n) and lists of scalars"
    raise type_fault(None, f"a parameter cannot be of type '{param.type_name}'", param.type_name.span, hint)


class _Results:
    """Checks `return` and `order`."""

    def __init__(self, expressions: ExpressionChecker, scope: Scope, *, distinct: bool) -> None:
        self.expressions = expressions
        self.distinct = distinct
        self.scope = scope
        self.report = expressions.report
        self.found: list[ir.Column] = []
        self.aliases: dict[str, int | None] = {}
        """Alias → the column it names; None when that item had a mistake."""

    # -- return ----------------------------------------------------------------------------------

    def columns(self, items: Sequence[ast.ReturnItem]) -> list[ir.Column]:
        """The returned columns, in order."""
        sound: list[ast.ReturnItem] = []
        for item in items:
            column = self.expressions.attempt(self.column, item)
            if column is not None:
                self.found.append(column)
                sound.append(item)
            if item.alias:
                self.aliases[item.alias.text] = None if column is None else len(self.found) - 1
        if any(isinstance(column.expr, ir.Aggregate) for column in self.found):
            self.group_keys(sound)
        for item, column in zip(sound, self.found, strict=True):
            if self.grouped and isinstance(column.expr, ir.PathPart):
                self.report(no_value(self.expressions.text(item.expr), item.expr.span))
        return self.found

    @property
    def grouped(self) -> bool:
        """Whether rows are put together."""
        return self.distinct or any(isinstance(column.expr, ir.Aggregate) for column in self.found)

    def having(self, read: ast.Read) -> tuple[ir.Condition, ...]:
        """T29: conditions on what a group returns, by alias or written as it is returned."""
        if not read.having:
            return ()
        if not self.grouped:
            message = "'having' judges groups, and this query has none"
            self.report(type_fault("T29", message, read.having_body, "write the condition into 'match'"))
            return ()
        words: dict[str, ir.Expr | None] = {}
        for alias, index in self.aliases.items():
            if index is None:
                words[alias] = None
            elif isinstance(self.found[index].type, PropertyType):
                words[alias] = group_column(index, self.found[index])
        scope = GroupScope(self.scope, self.found, words)
        found: list[ir.Condition] = []
        for condition in read.having:
            checked = self.expressions.attempt(check_condition, self.expressions, condition.expr, scope)
            if checked is not None:
                found += ir.conjuncts_of(checked)
        return tuple(found)

    def row_count(self, count: int | ast.Var | None) -> int | ir.ParamRef | None:
        """T30: how many rows, as a number or a parameter."""
        if not isinstance(count, ast.Var):
            return count
        if count.name not in self.expressions.params:
            hint = self.expressions.undeclared(count.name, ir.I64)
            raise type_fault("T30", f"'${count.name}' is not a parameter", count.span, hint)
        param = self.expressions.param(count)
        if not param.type.is_integer:
            raise type_fault("T30", f"a number of rows is whole, but ${count.name} is {param.type}", count.span)
        return param

    def column(self, item: ast.ReturnItem) -> ir.Column:
        expr = self.alias(item.expr) if self.is_alias(item.expr) else self.expressions.check(item.expr, self.scope)
        self.expressions.refuse_blob(item.expr, expr)
        name = item.alias.text if item.alias else _column_name(item.expr)
        return ir.Column(name, expr, expr.type)

    def is_alias(self, expr: ast.Expr) -> TypeGuard[ast.Word]:
        """Whether a bare name stands here that is not `null`."""
        return isinstance(expr, ast.Word) and (expr.name != "null" or "null" in self.aliases)

    def alias(self, word: ast.Word) -> ir.Expr:
        if word.name not in self.aliases:
            hint = did_you_mean(word.name, self.aliases)
            hint = hint or self.expressions.unknown_word(word, self.scope).hint
            raise type_fault(None, f"'{word.name}' is not the alias of an earlier item", word.span, hint)
        index = self.aliases[word.name]
        if index is None:
            raise Silenced
        # Where equal rows are one, a column that repeats another is a key like any other.
        return self.found[index].expr if self.distinct else ir.ColumnRef(index, self.found[index].type)

    def group_keys(self, items: Sequence[ast.ReturnItem]) -> None:
        """T9: beside an aggregate only `$x.p` and `$x` can stand."""
        for item, column in zip(items, self.found, strict=True):
            computed = ir.Computed | ir.Compare | ir.Logic | ir.Not | ir.IsNull | ir.Prop
            if isinstance(column.expr, computed) and any(ir.variables_of(column.expr)):
                continue
            if isinstance(item.expr, ast.PropertyOf) or (isinstance(item.expr, ast.Call) and _aggregates(item.expr)):
                continue
            if isinstance(item.expr, ast.Var) and item.expr.name not in self.expressions.params:
                continue
            if isinstance(column.expr, ir.PathPart):
                continue
            self.report(
                type_fault(
                    "T9",
                    f"{self.expressions.text(item.expr)} cannot stand beside an aggregate",
                    item.expr.span,
                    "rows are grouped by the other items, which must be '$x.property' or '$x'",
                )
            )

    def rrf_is_the_order(self, items: Sequence[ast.ReturnItem], order: Sequence[ir.SortKey]) -> None:
        """T21: a fused score exists only for the fusion the rows are ordered by."""
        for item in items:
            if isinstance(item.expr, ast.Call) and item.expr.function == "rrf":
                try:
                    expr = self.expressions.check(item.expr, self.scope)
                except (Fault, Silenced):
                    continue
                if not order or order[0].expr != expr:
                    self.report(
                        type_fault("T21", "'rrf' can be returned only when it is also the order", item.expr.span)
                    )

    # -- order -----------------------------------------------------------------------------------

    def order(self, read: ast.Read) -> list[ir.SortKey]:
        """The sort keys, in order."""
        keys: list[ir.SortKey] = []
        aggregate = self.grouped
        for position, item in enumerate(read.order):
            key = self.expressions.attempt(self.sort_key, item, position, read, aggregate)
            if key is not None:
                keys.append(key)
        return keys

    def sort_key(self, item: ast.SortItem, position: int, read: ast.Read, aggregate: bool) -> ir.SortKey:
        descending = item.direction == "desc"
        if self.is_alias(item.expr):
            expr = self.sort_alias(item.expr, read)
        elif isinstance(item.expr, ast.Literal | ast.ListLiteral | ast.Var | ast.Word):
            raise self.unsupported(item)
        else:
            expr = self.expressions.check(item.expr, self.scope_with_aliases())
        if isinstance(expr, ir.Rank):
            self.rank(item, expr, position, read, aggregate)
            return ir.SortKey(expr, not isinstance(expr, ir.Nearest))
        self.expressions.refuse_blob(item.expr, expr)
        if isinstance(expr, ir.TextMatch | ir.Const | ir.ParamRef) or not isinstance(expr.type, PropertyType):
            raise self.unsupported(item)
        if expr.type.is_list or expr.type.scalar == "Vector":
            raise self.unsupported(item, f"{expr.type} has no order")
        if isinstance(expr, ir.Aggregate) or (aggregate and not isinstance(expr, ir.ColumnRef)):
            expr = self.returned(item, expr)
        return ir.SortKey(expr, descending)

    def scope_with_aliases(self) -> Scope:
        """What a sort key can see: the variables, and in an expression the returned items by their aliases."""
        words = {alias: None if index is None else self.meant(index) for alias, index in self.aliases.items()}
        scope = self.scope
        return Scope(scope.own, scope.since, scope.clause, scope.outer, scope.mentioned, scope.hidden, words)

    def meant(self, index: int) -> ir.Expr:
        """What a column shows; one that repeats another shows what that does."""
        expr = self.found[index].expr
        while isinstance(expr, ir.ColumnRef):
            expr = self.found[expr.index].expr
        return expr

    def returned(self, item: ast.SortItem, expr: ir.Expr) -> ir.ColumnRef:
        """The column that shows an expression, which groups are ordered by."""
        for index, column in enumerate(self.found):
            if column.expr == expr:
                return ir.ColumnRef(index, column.type)
        hint = "groups are ordered by what the query returns: return it, or use an alias"
        if isinstance(expr, ir.Aggregate):
            hint = f"return it under an alias, '{self.expressions.text(item.expr)} as n', and order by that"
        raise self.unsupported(item, hint)

    def sort_alias(self, word: ast.Word, read: ast.Read) -> ir.Expr:
        if word.name not in self.aliases:
            hint = did_you_mean(word.name, self.aliases) or self.expressions.about_word(word, self.scope)
            raise type_fault(None, f"'{word.name}' is not the alias of a returned item", word.span, hint)
        if any(isinstance(sort.expr, ast.Call) and sort.expr.function == "nearest" for sort in read.order):
            raise type_fault(
                "T18",
                f"the alias '{word.name}' cannot be a sort key beside 'nearest'",
                word.span,
                "sort by the property itself: '$x.property'",
            )
        index = self.aliases[word.name]
        if index is None:
            raise Silenced
        expr = self.meant(index)
        if isinstance(expr, ir.Nearest):
            raise type_fault("T18", f"'{word.name}' is the alias of 'nearest'", word.span, "order by nearest(…) itself")
        return expr if isinstance(expr, ir.Rank) else ir.ColumnRef(index, self.found[index].type)

    def rank(self, item: ast.SortItem, rank: ir.Rank, position: int, read: ast.Read, aggregate: bool) -> None:
        name = {ir.Nearest: "nearest", ir.Bm25: "bm25", ir.Rrf: "rrf"}[type(rank)]
        if position:
            raise self.unsupported(item, f"'{name}' must be the first sort key")
        if aggregate:
            raise self.unsupported(item, "groups are ordered by aliases and group keys, not by a ranking")
        if not self.always_limited(read) and name != "bm25":
            code = "T17" if name == "nearest" else "T21"
            raise type_fault(code, f"ordering by '{name}' needs a limit", item.span, "add 'limit 10' behind 'order'")

    def always_limited(self, read: ast.Read) -> bool:
        """Whether there is a limit, and no null can take it away."""
        if not isinstance(read.limit, ast.Var):
            return read.limit is not None
        type_ = self.expressions.params.get(read.limit.name)
        return type_ is None or not type_.nullable

    def unsupported(self, item: ast.SortItem, why: str | None = None) -> Fault:
        hint = why or "order by '$x.property', by an alias, or by nearest, bm25 or rrf as the first key"
        return type_fault(
            None, f"unsupported ordering expression: {self.expressions.text(item.expr)}", item.expr.span, hint
        )


def _aggregates(call: ast.Call) -> bool:
    return call.function in AGGREGATE


def _column_name(expr: ast.Expr) -> str:
    match expr:
        case ast.PropertyOf():
            return f"{expr.var}.{expr.property}"
        case ast.Var() | ast.Word():
            return expr.name
        case ast.Call():
            return expr.function
        case ast.Literal() | ast.ListLiteral():
            return "literal"
        case _:
            return "value"
