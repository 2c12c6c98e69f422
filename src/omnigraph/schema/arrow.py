"""The Arrow form of types and tables.

A table is `id` (edges: `id`, `src`, `dst`) and then the properties by ascending name; nullability is as
declared. This module alone imports pyarrow at the top: whoever only compiles text does not load it.
"""

from __future__ import annotations

import pyarrow as pa

from omnigraph.schema.catalog import SYSTEM_FIELDS, EdgeType, NodeType
from omnigraph.types import ListType, ObjectType, PropertyType, ResultType, ScalarName

_SCALARS: dict[ScalarName, pa.DataType] = {
    "String": pa.utf8(),
    "Blob": pa.large_binary(),
    "Bool": pa.bool_(),
    "I32": pa.int32(),
    "I64": pa.int64(),
    "U32": pa.uint32(),
    "U64": pa.uint64(),
    "F32": pa.float32(),
    "F64": pa.float64(),
    "Date": pa.date32(),
    "DateTime": pa.date64(),
}

_SCALAR_TYPES = {stored: PropertyType(scalar) for scalar, stored in _SCALARS.items()}


def arrow_type(type_: ResultType) -> pa.DataType:
    """The Arrow type that stores values of `type_`."""
    if isinstance(type_, ObjectType):
        return pa.struct([pa.field(name, arrow_type(field)) for name, field in type_.fields])
    if isinstance(type_, ListType):
        return pa.list_(pa.field("item", arrow_type(type_.item)))
    if type_.scalar == "Vector":
        return pa.list_(pa.field("item", pa.float32(), nullable=True), type_.dim)
    scalar = _SCALARS[type_.scalar]
    return pa.list_(pa.field("item", scalar, nullable=True)) if type_.is_list else scalar


def property_type(type_: pa.DataType) -> PropertyType:
    """The scalar type whose values `type_` stores."""
    return _SCALAR_TYPES[type_]


def table_schema(type_: NodeType | EdgeType) -> pa.Schema:
    """The columns of a type's table, in order."""
    fields = [pa.field(name, pa.utf8(), nullable=False) for name in SYSTEM_FIELDS[type_.kind]]
    fields += [
        pa.field(property_.name, arrow_type(property_.type), nullable=property_.type.nullable)
        for property_ in type_.properties.values()
    ]
    return pa.schema(fields)
