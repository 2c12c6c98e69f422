"""Tuples of columns as texts, by which rules compare rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.scalar_types.columns import as_numbers
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.types import PropertyType


def wanted_values(column: pa.ChunkedArray) -> pa.Array:
    """Return the distinct values of a column, with both zeros if it contains one.

    0.0 and -0.0 are equal but stored as given.
    """
    values = one_array(pc.unique(column.drop_null()))
    if not pa.types.is_floating(values.type) or not pc.any(pc.equal(values, 0.0)).as_py():
        return values
    return pa.concat_arrays([values, pa.array([0.0, -0.0], values.type)])


def tuples_of(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return `id`, `position` and `key` of each row without nulls in the columns; equal tuples have equal keys."""
    complete = None
    for column in columns:
        valid = pc.is_valid(rows[column])
        complete = valid if complete is None else pc.and_(complete, valid)
    positions = pc.indices_nonzero(complete)
    rows = rows.filter(complete)
    parts = [_key_texts(rows[column]) for column in columns]
    if len(parts) == 1:
        return pa.table({"id": rows["id"], "position": positions, "key": parts[0]})
    # Each part is prefixed with its length, so that different tuples have different keys.
    framed: list[Any] = []
    for part in parts:
        framed += [pc.cast(pc.binary_length(part), pa.utf8()), part]
    key = pc.binary_join_element_wise(*framed, ":") if rows.num_rows else pa.array([], pa.utf8())
    return pa.table({"id": rows["id"], "position": positions, "key": key})


def _key_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = column.type
    if pa.types.is_string(type_):
        return column
    if pa.types.is_floating(type_):
        # Adding 0.0 maps -0.0 to 0.0.
        return pc.cast(pc.add(column, pa.scalar(0.0, type_)), pa.utf8())
    return pc.cast(as_numbers(column), pa.utf8())


def column_type(type_: NodeType | EdgeType, column: str) -> PropertyType:
    """Return the type of a column of a constraint, which can be an end of an edge."""
    return PropertyType("String") if column in ("src", "dst") else type_.properties[column].type


def selective_column(type_: NodeType | EdgeType, columns: Sequence[str]) -> str:
    """Return the column by which committed rows are looked up: a text is usually more selective than another value."""
    return next((column for column in columns if column_type(type_, column).is_text), columns[0])
