"""Conversion between stored Arrow types and the types that Spark accepts from Python workers.

Spark has no unsigned integers, no fixed-size lists and no `date64`. Each stored type maps to a Spark type that
represents its values exactly and in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa

from omnigraph.engine.ingest.table_columns import find_type
from omnigraph.scalar_types.columns import ARROW_TYPES
from omnigraph.scalar_types.registry import KINDS
from omnigraph.schema.catalog import Catalog

_SPARK_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.utf8(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "decimal(20,0)": pa.decimal128(20, 0),
    "timestamp": pa.timestamp("us", "UTC"),
}
"""Spark SQL name → Arrow type of its columns."""
_NAMES: Mapping[pa.DataType, str] = {arrow: name for name, arrow in _SPARK_TYPES.items()}
_WIRE: Mapping[pa.DataType, pa.DataType] = {
    ARROW_TYPES[kind.name]: _SPARK_TYPES[kind.spark] for kind in KINDS.values() if kind.name != "Vector"
}


def wire_type(stored: pa.DataType) -> pa.DataType:
    """Return the Arrow type that represents a stored type in Spark."""
    if pa.types.is_struct(stored):
        return pa.struct([pa.field(field.name, wire_type(field.type)) for field in stored])
    if pa.types.is_list(stored) or pa.types.is_fixed_size_list(stored):
        return pa.list_(pa.field("element", wire_type(stored.value_type)))
    return _WIRE.get(stored, stored)


def wire_schema(stored: pa.Schema) -> pa.Schema:
    """Return the schema that represents a stored schema in Spark."""
    return pa.schema([pa.field(field.name, wire_type(field.type), field.nullable) for field in stored])


def spark_name(stored: pa.DataType) -> str:
    """Return the Spark SQL name of the type that represents a stored type."""
    wire = wire_type(stored)
    if pa.types.is_struct(wire):
        return f"struct<{', '.join(f'{quoted(field.name)}: {spark_name(field.type)}' for field in wire)}>"
    return f"array<{spark_name(wire.value_type)}>" if pa.types.is_list(wire) else _NAMES[wire]


def spark_ddl(stored: pa.Schema) -> str:
    """Return the DDL of a DataFrame with these columns."""
    return ", ".join(f"{quoted(field.name)} {spark_name(field.type)}" for field in stored)


def quoted(name: str) -> str:
    """Quote a column name for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def to_wire(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Convert a stored column to its Spark representation."""
    wire = wire_type(column.type)
    if wire == column.type:
        return column
    if _is_nested(wire):
        return _convert_nested(column, wire, lambda part, _: to_wire(part))
    # Arrow casts date64 only to timestamps of the same unit.
    return column.cast(_in_milliseconds(wire)).cast(wire) if _has_instants(wire) else column.cast(wire)


def from_wire(column: pa.Array | pa.ChunkedArray, stored: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Convert a column from its Spark representation to its stored type."""
    if column.type == stored:
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([from_wire(chunk, stored) for chunk in column.chunks], stored)
    if pa.types.is_fixed_size_list(stored) and column.null_count == len(column):
        # Lists that are all null arrive without values, which the cast would require.
        return pa.nulls(len(column), stored)
    if _is_nested(stored):
        return _convert_nested(column, stored, from_wire)
    if _has_instants(column.type) and _item(stored) == pa.date64():
        # The cast of a timestamp to date64 would drop the time of day, so cast through int64.
        column = column.cast(_in_milliseconds(column.type)).cast(_with_item(column.type, pa.int64()))
    return column.cast(stored)


def restore_unsigned(batches: Iterable[pa.RecordBatch], type_name: str, catalog: Catalog) -> Iterator[pa.RecordBatch]:
    """Convert decimals of U64 properties back to unsigned integers, as a load expects them."""
    type_ = find_type(type_name, catalog)
    for batch in batches:
        columns = [
            column.cast(_with_item(column.type, pa.uint64()))
            if name in type_.properties
            and type_.properties[name].type.kind.spark == "decimal(20,0)"
            and _item(column.type) == _SPARK_TYPES["decimal(20,0)"]
            else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        yield pa.record_batch(columns, names=batch.schema.names)


def _is_nested(type_: pa.DataType) -> bool:
    """True for structs, and for lists of structs or lists."""
    if pa.types.is_list(type_):
        return bool(pa.types.is_nested(type_.value_type))
    return bool(pa.types.is_struct(type_))


def _convert_nested(
    column: pa.Array | pa.ChunkedArray, type_: pa.DataType, change: Callable[[pa.Array, pa.DataType], pa.Array]
) -> pa.Array | pa.ChunkedArray:
    """Convert a struct or list to another type by converting its children."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_convert_nested(chunk, type_, change) for chunk in column.chunks], type_)
    whole = pa.concat_arrays([column])  # copies a slice, whose children have other offsets
    missing = whole.is_null()
    if pa.types.is_struct(type_):
        parts = [change(part, field.type) for part, field in zip(whole.flatten(), type_, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=[*type_], mask=missing)
    return pa.ListArray.from_arrays(whole.offsets, change(whole.values, type_.value_type), type=type_, mask=missing)


def _item(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_list(type_) else type_


def _with_item(type_: pa.DataType, item: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", item)) if pa.types.is_list(type_) else item


def _has_instants(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(_item(type_)))


def _in_milliseconds(type_: pa.DataType) -> pa.DataType:
    return _with_item(type_, pa.timestamp("ms", "UTC"))
