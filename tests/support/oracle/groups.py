"""Groups and composed values: parts of expressions, order and equality of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any

from omnigraph.query.syntax import ast


class Overflow(Exception):
    """A sum of integers is outside the range of its type."""


def total(values: list[Any], scalar: str) -> Any:
    """The sum of a column of one type; None without values."""
    if scalar in ("F32", "F64"):
        return float(sum(map(Fraction, values))) if values else None
    low, high = (0, 2**64 - 1) if scalar == "U64" else (-(2**63), 2**63 - 1)
    added = sum(values)
    if not low <= added <= high:
        raise Overflow
    return added if values else None


def sum_scalar(scalar: str) -> str:
    """The type of the sum of a column."""
    return "F64" if scalar in ("F32", "F64") else "U64" if scalar == "U64" else "I64"


AGGREGATES = ("count", "sum", "avg", "median", "min", "max", "collect")


@dataclass(frozen=True)
class Known:
    """A computed value in place of an aggregate."""

    value: Any
    scalar: str


def inside(expr: Any) -> Iterator[ast.CallExpr]:
    """Every call in an expression, itself included."""
    if isinstance(expr, ast.CallExpr):
        yield expr
    for part in _parts(expr):
        yield from inside(part)


def _parts(expr: Any) -> Iterator[Any]:
    if isinstance(expr, tuple):
        yield from expr
    elif is_dataclass(expr) and not isinstance(expr, type):
        yield from (getattr(expr, field.name) for field in fields(expr) if field.name != "span")


def is_aggregate(expr: Any) -> bool:
    return isinstance(expr, ast.CallExpr) and expr.function in AGGREGATES


def aggregates(expr: Any) -> bool:
    """Whether an item holds an aggregate anywhere."""
    return any(is_aggregate(call) for call in inside(expr))


def keys_of(expr: Any, depends: Callable[[Any], bool]) -> list[Any]:
    """The grouping keys: the largest parts without an aggregate that depend on the row."""
    if is_aggregate(expr):
        return []
    if not aggregates(expr):
        return [expr] if depends(expr) else []
    return [key for part in _expressions(expr) for key in keys_of(part, depends)]


def _expressions(expr: Any) -> list[Any]:
    match expr:
        case ast.CompareExpr(left=a, right=b) | ast.ArithmeticExpr(left=a, right=b):
            return [a, b]
        case ast.LogicExpr(parts=parts) | ast.CallExpr(arguments=parts) | ast.ListExpr(items=parts):
            return list(parts)
        case ast.NotExpr(expr=inner) | ast.IsNullExpr(expr=inner) | ast.NegativeExpr(expr=inner):
            return [inner]
        case ast.ObjectExpr(fields=named):
            return [field.value for field in named]
        case ast.CaseExpr(subject=subject, branches=branches, otherwise=otherwise):
            tested = [part for branch in branches for part in (branch.condition, branch.value)]
            return [part for part in (subject, *tested, otherwise) if part is not None]
        case _:
            return []


def changed(expr: Any, change: Callable[[Any], Any]) -> Any:
    """The expression with parts replaced by `change`."""
    other = change(expr)
    if other is not expr:
        return other
    if isinstance(expr, tuple):
        return tuple(changed(part, change) for part in expr)
    if is_dataclass(expr) and not isinstance(expr, type):
        parts = {field.name: changed(getattr(expr, field.name), change) for field in fields(expr)}
        return replace(expr, **parts)
    return expr


def sort_key(value: Any) -> tuple[Any, ...]:
    """Sort key: null first; a node by id, then type; objects and lists by their parts."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, tuple(map(sort_key, value.values())))
    if isinstance(value, list):
        return (1, tuple(map(sort_key, value)))
    if hasattr(value, "ids"):
        return (1, value.ids)  # a path
    return (1, (value.id, value.type) if hasattr(value, "id") else value)


def hashable(value: Any) -> Any:
    """A hashable form that is equal exactly if the value is equal."""
    if isinstance(value, dict):
        return tuple((name, hashable(part)) for name, part in value.items())
    return tuple(map(hashable, value)) if isinstance(value, list) else value
