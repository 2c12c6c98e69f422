"""Evaluation of a read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from omnigraph.lang.spans import Name
from omnigraph.query.syntax import ast
from support.oracle.aggregation import Aggregation
from support.oracle.expressions import is_rank
from support.oracle.groups import (
    Known,
    aggregates,
    changed,
    inside,
    is_aggregate,
)
from support.oracle.model import Answer, Row, World
from support.oracle.paths import Unsure
from support.oracle.unions import Types
from support.oracle.values import read_param


def column_name(item: ast.ReturnItem) -> str:
    if item.alias:
        return item.alias.text
    match item.expr:
        case ast.PropertyExpr(var=var, property=prop):
            return f"{var.text}.{prop.text}"
        case ast.VarExpr(name=name) | ast.WordExpr(name=name):
            return name
        case ast.CallExpr(function=function):
            return function
        case ast.ObjectExpr():
            return "object"
        case ast.ListExpr(items=items) if not all(isinstance(item, ast.LiteralExpr) for item in items):
            return "list"
        case ast.LiteralExpr() | ast.ListExpr():
            return "literal"
        case _:
            return "value"


def answer(query: ast.QueryDefinition, world: World, params: Mapping[str, Any], now_ms: int) -> Answer:
    """The result of a read that compiles; `params` are JSON values."""
    assert isinstance(query.body, ast.Read)
    values = {param.name.text: read_param(params.get(param.name.text), param) for param in query.params}
    declared = {param.name.text: param.type_name.text for param in query.params}
    return Reading(world, values, declared, now_ms).read(query.body)


class Reading(Aggregation):
    """One read over one graph."""

    def read(self, read: ast.Read) -> Answer:
        rows: list[Row] = [{}]
        types: dict[str, tuple[str, Types]] = {}
        for stage in read.stages:
            rows, types = self.stage(stage, rows, types)
        self.block = self.plan(read.clauses, types)
        rows = [found for row in rows for found in self.match(self.block, row)]
        self.items = read.items
        columns = [column_name(item) for item in read.items]
        limit = self.params[read.limit.name] if isinstance(read.limit, ast.VarExpr) else read.limit
        skip = (self.params[read.skip.name] if isinstance(read.skip, ast.VarExpr) else read.skip) or 0
        exprs = [self.meant(item.expr) for item in read.items]
        if read.distinct or any(aggregates(expr) for expr in exprs):
            out, doubt, ordered = self.aggregate(rows, exprs, read)
        else:
            ordered = bool(read.order)
            rows = self.sort(rows, read, None if limit is None else skip + limit)
            out = [tuple(self.presented(expr, self.value(expr, row)) for expr in exprs) for row in rows]
            ranks = [any(is_rank(call) or call.function == "why" for call in inside(expr)) for expr in exprs]
            doubt = {at: 1e-6 for at, ranked in enumerate(ranks) if ranked}
        if ordered:
            out = out[skip : None if limit is None else skip + limit]
        return Answer(columns, out, ordered, limit, 0 if ordered else skip, doubt)

    def stage(
        self, read: ast.Read, rows: list[Row], types: dict[str, tuple[str, Types]]
    ) -> tuple[list[Row], dict[str, tuple[str, Types]]]:
        """The rows of a stage and the types of its variables; `Unsure` if they depend on the order of a float sum."""
        self.block = self.plan(read.clauses, types)
        rows = [found for row in rows for found in self.match(self.block, row)]
        items = [item if item.alias or not self.is_value(item.expr) else named(item) for item in read.items]
        names = {item.alias.text for item in items if item.alias}
        read = replace(read, having=as_words(read.having, names), order=as_words(read.order, names))
        self.items = tuple(items)
        exprs = [item.expr for item in items]
        limit = self.params[read.limit.name] if isinstance(read.limit, ast.VarExpr) else read.limit
        skip = (self.params[read.skip.name] if isinstance(read.skip, ast.VarExpr) else read.skip) or 0
        grouped = read.distinct or any(aggregates(expr) for expr in exprs)
        if grouped:
            lines, doubt, sure = self.groups(rows, exprs, read)
            if any(doubt.values()) or not sure:
                raise Unsure
            found = [(members, self.values_of(items, members, line)) for members, line in lines]
        else:
            if any(is_rank(call) for expr in exprs for call in inside(expr)):
                raise Unsure
            rows = self.sort(rows, read, None if limit is None else skip + limit)
            found = [([row], self.values_of(items, [row], [self.value(e, row) for e in exprs])) for row in rows]
        kept = [item.expr.name for item in items if not item.alias and isinstance(item.expr, ast.VarExpr)]
        out = [{**{name: members[0][name] for name in kept}, **values} for members, values in found]
        known = {name: self.block.types[name] for name in kept}
        for item in items:
            if item.alias:
                scalars = {row[item.alias.text].scalar for row in out} or {"I64"}
                known[item.alias.text] = ("value", frozenset(scalars))
        return out[skip : None if limit is None else skip + limit], known

    def is_value(self, expr: ast.Expr) -> bool:
        return isinstance(expr, ast.VarExpr) and self.block.types[expr.name][0] == "value"

    def values_of(self, items: Sequence[ast.ReturnItem], members: list[Row], line: Sequence[Any]) -> dict[str, Known]:
        """Name → value and type of each value of a row."""

        def typed(part: Any) -> Any:
            return self.aggregated(part, members) if is_aggregate(part) else part

        row = members[0] if members else {}
        return {
            item.alias.text: Known(value, self.scalar(changed(item.expr, typed), row))
            for item, value in zip(items, line, strict=True)
            if item.alias
        }


def named(item: ast.ReturnItem) -> ast.ReturnItem:
    """A value of an earlier stage keeps its name."""
    assert isinstance(item.expr, ast.VarExpr)
    return replace(item, alias=Name(item.expr.name))


def as_words(tree: Any, names: Collection[str]) -> Any:
    """Conditions and sort keys with the names of the values of their own stage as aliases."""

    def word(part: Any) -> Any:
        return ast.WordExpr(part.name) if isinstance(part, ast.VarExpr) and part.name in names else part

    return tuple(changed(part, word) for part in tree)
