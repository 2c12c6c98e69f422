"""The type of a column of lists: a vector if every list has the same length and a float, else a list of scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.operations.inference.column_type import ColumnType
from omnigraph.scalar_types.registry import ScalarName
from omnigraph.types import PropertyType

_I64 = range(-(2**63), 2**63)


def list_type(lists: Sequence[list[Any]]) -> ColumnType | None:
    """Return the type of lists of JSON values; None if no property can hold them."""
    items = [item for one in lists for item in one]
    kinds = {type(item) for item in items}
    lengths = {len(one) for one in lists}
    if float in kinds and kinds <= {float, int}:
        if len(lengths) == 1:
            return vector_type(lengths.pop())
        return _list_of("F64", lengths)
    if kinds == {int}:
        return _list_of("I64", lengths) if all(item in _I64 for item in items) else None
    scalars: dict[type, ScalarName] = {str: "String", bool: "Bool"}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None:
        return None if items else _list_of("String", lengths)
    return _list_of(scalars[kind], lengths) if kind in scalars else None


def vector_type(dimensions: int) -> ColumnType:
    """Return the type of vectors."""
    return ColumnType(PropertyType("Vector", dim=dimensions), f"{dimensions} floats in every row")


def _list_of(scalar: ScalarName, lengths: set[int]) -> ColumnType:
    low, high = min(lengths), max(lengths)
    return ColumnType(
        PropertyType(scalar, is_list=True), f"lists of {low}..{high} items" if low < high else f"lists of {low} items"
    )
