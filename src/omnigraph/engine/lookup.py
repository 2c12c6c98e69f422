"""The shortest read there is: some properties of the one node with a key.

No rows of numbers, no arrays, no operations: a plan of this shape is recognised once, and then costs about what
finding the row costs. It answers as the executor would; the tests hold the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.engine.data import TableData
from omnigraph.engine.places import find
from omnigraph.query import ir
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog

_PLAIN = frozenset({"String", "Bool", "I32", "I64", "U32", "U64", "F64"})
"""Types whose values are the same as Arrow and as Python."""


@dataclass(frozen=True)
class Row:
    """At most one row of a result, as Python values."""

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    values: tuple[Any, ...] | None

    def to_table(self) -> pa.Table:
        """The row as an Arrow table."""
        rows = [] if self.values is None else [self.values]
        arrays = [pa.array([row[place] for row in rows], type_) for place, type_ in enumerate(self.types)]
        return pa.Table.from_arrays(arrays, names=list(self.names))


class Lookup:
    """A plan that only looks a key up."""

    def __init__(self, type_name: str, key: ir.Const | ir.ParamRef, columns: tuple[ir.Column, ...]) -> None:
        props = [column.expr for column in columns]
        self.table_key = f"node:{type_name}"
        self._key = key
        self._properties = tuple(prop.name for prop in props if isinstance(prop, ir.Prop))
        self._names = tuple(column.name for column in columns)
        self._types = tuple(arrow_type(prop.type) for prop in props if isinstance(prop, ir.Prop))

    def run(self, data: TableData, params: Mapping[str, Any]) -> Row:
        """The row with the key, if there is one."""
        key = self._key
        value = params[key.name] if isinstance(key, ir.ParamRef) else key.value
        row = find(data, value) if value is not None else None
        if row is None:
            return Row(self._names, self._types, None)
        return Row(self._names, self._types, tuple([data.column(name)[row].as_py() for name in self._properties]))


def find_lookup(plan: ir.QueryIR, catalog: Catalog) -> Lookup | None:
    """The plan as a lookup; None when it is anything else."""
    if len(plan.pipeline) != 1 or plan.order_by or plan.limit == 0 or plan.is_cut or plan.distinct:
        return None
    scan = plan.pipeline[0]
    if not isinstance(scan, ir.NodeScan) or len(scan.filters) != 1:
        return None
    for column in plan.columns:
        prop = column.expr
        if not isinstance(prop, ir.Prop) or prop.type.is_list or prop.type.scalar not in _PLAIN:
            return None
    (test,) = scan.filters
    if not isinstance(test, ir.Compare) or test.op != "=" or not isinstance(test.left, ir.Prop):
        return None
    keyed = catalog.nodes[scan.type_name].key == (test.left.name,) and test.left.type.is_text
    if not keyed or not isinstance(test.right, ir.Const | ir.ParamRef):
        return None
    return Lookup(scan.type_name, test.right, plan.columns)
