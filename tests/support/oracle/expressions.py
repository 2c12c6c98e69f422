"""Evaluation of expressions, one row at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from omnigraph.query.syntax import ast
from support.oracle import functions as oracle_functions
from support.oracle.groups import (
    Known,
)
from support.oracle.model import Row, node_key
from support.oracle.paths import Route
from support.oracle.plan import Planning
from support.oracle.text import bm25, cosine_distance, levenshtein, tokens
from support.oracle.unions import (
    Key,
    Pairs,
)
from support.oracle.values import all_of, any_of, compare, read_date, read_datetime, round_f32, within


def case_values(case: ast.CaseExpr) -> list[ast.Expr]:
    """The values of a `case` that are not the word `null`."""
    values = [*(branch.value for branch in case.branches), case.otherwise]
    return [value for value in values if value is not None and not isinstance(value, ast.WordExpr)]


def distances(source: Key, pairs: Pairs) -> dict[Key, int]:
    """Node → its distance in pairs from `source`."""
    found = {source: 0}
    edge = [source]
    while edge:
        edge = sorted({target for at, target in pairs if at in edge and target not in found})
        found |= {node: max(found.values()) + 1 for node in edge}
    return found


def is_rank(expr: ast.Expr) -> bool:
    return isinstance(expr, ast.CallExpr) and expr.function in ("nearest", "bm25", "rrf")


def ranked_variable(call: ast.CallExpr) -> str:
    """The variable that a rank orders."""
    first = call.arguments[0]
    if isinstance(first, ast.ArithmeticExpr):
        first = first.left
    if isinstance(first, ast.CallExpr):
        return ranked_variable(first)
    assert isinstance(first, ast.PropertyExpr)
    return first.var.text


class Expressions(Planning):
    """Values of expressions."""

    def holds(self, expr: ast.Expr, row: Row) -> bool:
        """True if a condition is true; unknown counts as false."""
        return self.value(expr, row) is True

    def compared(self, expr: ast.CompareExpr, row: Row) -> bool | None:
        """A comparison; None (unknown) if an operand is null."""
        left, right = self.value(expr.left, row), self.value(expr.right, row)
        if expr.op in ("in", "not in") and isinstance(expr.right, ast.ListExpr):
            equal = [self.compared(ast.CompareExpr("=", expr.left, item), row) for item in expr.right.items]
            found = any_of(equal) if left is not None else None
            return found if expr.op == "in" or found is None else not found
        if left is None or right is None:
            return None
        if self.is_f32(expr.left, row):
            right = [round_f32(item) for item in right] if isinstance(right, list) else round_f32(right)
        if self.is_f32(expr.right, row):
            left = [round_f32(item) for item in left] if isinstance(left, list) else round_f32(left)
        return compare(expr.op, left, right)

    def is_f32(self, expr: ast.Expr, row: Row) -> bool:
        if isinstance(expr, ast.CaseExpr):
            return all(self.is_f32(value, row) for value in case_values(expr))
        if isinstance(expr, ast.CallExpr) and expr.function in ("head", "last", "item", "slice", "concat", "coalesce"):
            known = expr.arguments if expr.function in ("concat", "coalesce") else expr.arguments[:1]
            return all(self.is_f32(value, row) for value in known)
        if isinstance(expr, ast.VarExpr) and isinstance(row.get(expr.name), Known) and expr.name not in self.params:
            return self.scalar(expr, row) == "F32"
        if not isinstance(expr, ast.PropertyExpr):
            return False
        entity = row[expr.var.text] or self.missing[expr.var.text]
        types = self.catalog.nodes if entity.kind == "node" else self.catalog.edges
        of = types.get(entity.type)  # An interface without implementations has no members.
        return of is not None and of.properties[expr.property.text].type.scalar == "F32"

    def value(self, expr: ast.Expr, row: Row) -> Any:
        """The value of an expression in a row; a node is its `Entity`."""
        match expr:
            case ast.LiteralExpr(kind="date", value=str() as text):
                return read_date(text)
            case ast.LiteralExpr(kind="datetime", value=str() as text):
                return read_datetime(text)
            case ast.LiteralExpr(kind="uuid", value=str() as text):
                return text.lower()
            case ast.LiteralExpr(value=value):
                return value
            case ast.ListExpr(items=items):
                return self.of_one_type(items, [self.value(item, row) for item in items], row)
            case ast.ObjectExpr(fields=named):
                return {field.name.text: self.value(field.value, row) for field in named}
            case Known(value=value):
                return value
            case ast.CallExpr(function="rrf"):
                return self.fused[node_key(row[ranked_variable(expr)])]
            case ast.CallExpr(function="why"):
                return self.reasons[node_key(row[self.ranked])]
            case ast.VarExpr(name=name):
                found = self.params[name] if name in self.params else row[name]
                return found.value if isinstance(found, Known) else found
            case ast.PropertyExpr(var=var, property=prop):
                entity = row[var.text]
                return None if entity is None else self.world.props(entity).get(prop.text)
            case ast.CallExpr(function="now"):
                return self.now_ms
            case ast.CallExpr(function="coalesce"):
                values = [self.value(argument, row) for argument in expr.arguments]
                first = next((value for value in values if value is not None), None)
                floats = self.scalar(expr, row) in ("F32", "F64")
                return float(first) if floats and first is not None else first
            case ast.CallExpr(function="nodes" | "edges" | "weight"):
                route = self.value(expr.arguments[0], row)
                if route is None or expr.function == "weight":
                    return route and route.weight
                found = self.paths.nodes(route) if expr.function == "nodes" else self.paths.edges(route)
                if len(expr.arguments) == 2:
                    assert isinstance(expr.arguments[1], ast.WordExpr)
                    return [one[expr.arguments[1].name] for one in found]
                return found
            case ast.CallExpr(function=name) if name in oracle_functions.NAMES:
                given = expr.arguments[:-1] if name in oracle_functions.WITH_UNIT else expr.arguments
                values = [self.value(argument, row) for argument in given]
                if name == "length" and isinstance(values[0], Route):
                    return len(values[0])
                if len(given) < len(expr.arguments):
                    values.append(expr.arguments[-1].name)
                return oracle_functions.result(name, values, [self.scalar(argument, row) for argument in given])
            case ast.CaseExpr(subject=subject, branches=branches, otherwise=otherwise):
                taken = otherwise
                for branch in branches:
                    test = branch.condition if subject is None else ast.CompareExpr("=", subject, branch.condition)
                    if self.value(test, row) is True:
                        taken = branch.value
                        break
                chosen = None if taken is None else self.value(taken, row)
                floats = self.scalar(expr, row) in ("F32", "F64")
                return float(chosen) if floats and type(chosen) is int else chosen
            case ast.CallExpr(function="id" | "type", arguments=(ast.VarExpr(name=name),)):
                entity = row[name]
                return None if entity is None else entity.id if expr.function == "id" else entity.type
            case ast.CallExpr():
                return self.function(expr, row)
            case ast.WordExpr(name=name):
                named = self.meant(expr)
                assert named is not expr or name == "null", name
                return self.value(named, row) if named is not expr else None
            case ast.CompareExpr():
                return self.compared(expr, row)
            case ast.LogicExpr(op=op, parts=parts):
                values = [self.value(part, row) for part in parts]
                return any_of(values) if op == "or" else all_of(values)
            case ast.NotExpr(expr=inner):
                known = self.value(inner, row)
                return None if known is None else not known
            case ast.IsNullExpr(expr=inner, negated=negated):
                return (self.value(inner, row) is None) != negated
            case ast.ArithmeticExpr(op=op, left=left, right=right):
                return self.arithmetic(op, left, right, row)
            case ast.NegativeExpr(expr=inner):
                number = self.value(inner, row)
                return None if number is None else within(-number, "I64")
            case _:
                raise AssertionError(expr)

    def of_one_type(self, items: Sequence[ast.Expr], values: list[Any], row: Row) -> list[Any]:
        """The values of a list: if one is a float, all numbers become floats, also field by field in objects."""
        objects = [(item, at) for at, item in enumerate(items) if isinstance(item, ast.ObjectExpr)]
        for place, named in enumerate(objects[0][0].fields if objects else ()):
            column = [item.fields[place].value for item, _ in objects]
            given = [values[at][named.name.text] for _, at in objects]
            for (_, at), value in zip(objects, self.of_one_type(column, given, row), strict=True):
                values[at][named.name.text] = value
        floats = any(self.scalar(item, row) in ("F32", "F64") for item in items)
        return [float(value) if floats and type(value) is int else value for value in values]

    def arithmetic(self, op: str, left: ast.Expr, right: ast.Expr, row: Row) -> Any:
        """The result of an operation; None if an operand is null or the result is undefined."""
        a, b = self.value(left, row), self.value(right, row)
        if a is None or b is None or (op in "/%" and b == 0):
            return None
        if isinstance(a, str):
            return a + b
        if op == "/" or isinstance(a, float) or isinstance(b, float):
            x, y = float(a), float(b)
            try:
                result = {"+": x + y, "-": x - y, "*": x * y}[op] if op != "/" else x / y
            except OverflowError:
                return None
            return result if math.isfinite(result) else None
        whole = {"+": a + b, "-": a - b, "*": a * b}
        number = whole[op] if op in whole else int(math.copysign(1, a)) * (abs(a) % abs(b))
        return within(number, self.scalar(ast.ArithmeticExpr(op, left, right), row))

    def scalar(self, expr: ast.Expr, row: Row) -> str:
        """The integer type of an expression: U64 only if no operand is signed."""
        match expr:
            case ast.PropertyExpr(var=var, property=prop):
                entity = row[var.text] or self.missing[var.text]
                types = self.catalog.nodes if entity.kind == "node" else self.catalog.edges
                of = types.get(entity.type)  # an interface without implementations has no rows
                return of.properties[prop.text].type.scalar if of is not None else "I64"
            case ast.VarExpr(name=name):
                carried = row.get(name) if name not in self.declared else None
                return carried.scalar if isinstance(carried, Known) else self.declared.get(name, "I64")
            case ast.LiteralExpr(kind="date") | ast.CallExpr(function="date"):
                return "Date"
            case ast.LiteralExpr(kind="datetime") | ast.CallExpr(function="now"):
                return "DateTime"
            case ast.LiteralExpr(kind="uuid"):
                return "Uuid"
            case ast.LiteralExpr(kind="string"):
                return "String"
            case ast.LiteralExpr(value=bool()):
                return "Bool"
            case ast.CallExpr(function=name) if name in oracle_functions.NAMES:
                return oracle_functions.scalar_of(expr, lambda argument: self.scalar(argument, row))
            case ast.CaseExpr():
                kinds = [self.scalar(value, row) for value in case_values(expr)]
                return oracle_functions.common(kinds)
            case ast.LiteralExpr(value=int() as number):
                return "U32" if 0 <= number < 2**63 else "U64" if number >= 0 else "I64"
            case ast.LiteralExpr(kind="decimal") | ast.CallExpr(function="weight" | "nearest" | "bm25" | "rrf"):
                return "F64"
            case Known(scalar=scalar):
                return scalar
            case ast.NegativeExpr(expr=inner):
                return "F64" if self.scalar(inner, row) in ("F32", "F64") else "I64"
            case ast.CallExpr(function="coalesce", arguments=arguments):
                kinds = {self.scalar(argument, row) for argument in arguments}
                floats = kinds & {"F32", "F64"}
                return "F64" if floats else "U64" if kinds <= {"U32", "U64"} and "U64" in kinds else "I64"
            case ast.ArithmeticExpr(left=left, right=right):
                kinds = {self.scalar(left, row), self.scalar(right, row)}
                if expr.op == "/" or kinds & {"F32", "F64"}:
                    return "F64"
                return "U64" if "U64" in kinds and kinds <= {"U32", "U64"} else "I64"
            case _:
                return "I64"

    def function(self, call: ast.CallExpr, row: Row) -> Any:
        of, query = call.arguments[0], self.value(call.arguments[1], row)
        assert isinstance(of, ast.PropertyExpr)
        stored = self.value(of, row)
        match call.function:
            case "search" | "match_text":
                wanted = set(tokens(query))
                if len(call.arguments) == 3:
                    return bool(wanted) and wanted <= set(tokens(stored))
                return not wanted.isdisjoint(tokens(stored))
            case "fuzzy":
                most = self.value(call.arguments[2], row) if len(call.arguments) == 3 else 2
                return any(levenshtein(a, b) <= most for a in set(tokens(stored)) for b in set(tokens(query)))
            case "bm25":
                return bm25(self.corpus(of), (row[of.var.text].type, row[of.var.text].id), query)
            case "nearest":
                return None if stored is None or query is None else cosine_distance(stored, query)
            case _:
                raise AssertionError(call.function)

    def corpus(self, of: ast.PropertyExpr) -> dict[Key, list[str]]:
        """Node → tokens of every non-null text of the types of the variable."""
        types, prop = self.block.types[of.var.text][1], of.property.text
        if (types, prop) not in self.world.corpora:
            stored = {(t, id): props.get(prop) for t in types for id, props in self.world.nodes[t].items()}
            found = {node: tokens(text) for node, text in stored.items() if text is not None}
            self.world.corpora[types, prop] = found
        return self.world.corpora[types, prop]

    def meant(self, expr: ast.Expr) -> ast.Expr:
        """A bare word refers to the returned item with that alias."""
        if isinstance(expr, ast.WordExpr):
            named = [item.expr for item in self.items if item.alias and item.alias.text == expr.name]
            return self.meant(named[0]) if named else expr
        return expr
