"""Constraints of types, as the catalog and the schema document hold them."""

from __future__ import annotations

from typing import Any

from omnigraph.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """Key of a node type: the identifying columns, in the order in which the id lists them."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unique:
    """Uniqueness constraint: no two rows have the same values in these columns."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """Declaration of an index over these columns."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive numeric bounds of a column; None means unbounded."""

    column: str
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Check:
    """Pattern constraint: the text must contain a match of the pattern."""

    column: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Valid:
    """Valid time: a row holds from the value of `start`, inclusive, to that of `end`, exclusive; null is open."""

    start: str
    end: str


Constraint = Key | Unique | Index | Range | Check | Valid


def constraint_to_json(constraint: Constraint) -> dict[str, Any]:
    """Return the JSON form: `{"Key": […]}`, `{"Range": {property, min, max}}` and so on."""
    match constraint:
        case Range(column, low, high):
            return {"Range": {"property": column, "min": low, "max": high}}
        case Check(column, pattern):
            return {"Check": {"property": column, "pattern": pattern}}
        case Valid(start, end):
            return {"Valid": {"from": start, "to": end}}
        case _:
            return {type(constraint).__name__: list(constraint.columns)}


def constraint_columns(constraint: Constraint) -> tuple[str, ...]:
    """Return the columns of a constraint."""
    match constraint:
        case Range() | Check():
            return (constraint.column,)
        case Valid(start, end):
            return (start, end)
        case _:
            return constraint.columns


def constraint_order(constraint: Constraint) -> tuple[Any, ...]:
    """Return the sort key of the canonical order of constraints: key, unique, index, range, check, valid, then
    columns.
    """
    rank = (Key, Unique, Index, Range, Check, Valid).index(type(constraint))
    return rank, constraint_columns(constraint), repr(constraint)
