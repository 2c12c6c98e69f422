"""Evaluation of a read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.query.syntax import ast
from support.oracle.aggregation import Aggregation
from support.oracle.expressions import is_rank
from support.oracle.groups import (
    aggregates,
    inside,
)
from support.oracle.model import Answer, World
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
        self.block = self.plan(read.clauses, {})
        rows = self.match(self.block, {})
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
