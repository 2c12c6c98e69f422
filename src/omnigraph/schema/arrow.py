"""Arrow types of properties and Arrow schemas of tables.

A table has the columns `id` (edges: `id`, `src`, `dst`) and then the properties by ascending name; nullability is as
declared. This module imports pyarrow, so modules that only compile text do not import it.
"""

from __future__ import annotations

import pyarrow as pa

from omnigraph.scalar_types.columns import ARROW_TYPES, kind_of
from omnigraph.schema.catalog import SYSTEM_FIELDS, EdgeType, NodeType
from omnigraph.types import ListType, ObjectType, PropertyType, ResultType


def arrow_type(type_: ResultType) -> pa.DataType:
    """Return the Arrow type that stores values of `type_`."""
    if isinstance(type_, ObjectType):
        return pa.struct([pa.field(name, arrow_type(field)) for name, field in type_.fields])
    if isinstance(type_, ListType):
        return pa.list_(pa.field("item", arrow_type(type_.item)))
    if type_.scalar == "Vector":
        return pa.list_(pa.field("item", pa.float32(), nullable=True), type_.dim)
    scalar = ARROW_TYPES[type_.scalar]
    return pa.list_(pa.field("item", scalar, nullable=True)) if type_.is_list else scalar


def property_type(type_: pa.DataType) -> PropertyType:
    """Return the scalar type whose values an Arrow type stores."""
    kind = kind_of(type_)
    assert kind is not None, f"no scalar is stored as {type_}"
    return PropertyType(kind.name)


def table_schema(type_: NodeType | EdgeType) -> pa.Schema:
    """Return the columns of a type's table, in order."""
    fields = [pa.field(name, pa.utf8(), nullable=False) for name in SYSTEM_FIELDS[type_.kind]]
    fields += [
        pa.field(property_.name, arrow_type(property_.type), nullable=property_.type.nullable)
        for property_ in type_.properties.values()
    ]
    return pa.schema(fields)
