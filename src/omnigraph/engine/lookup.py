"""The shortest reads there are: properties of the one node with a key, or of the nodes one hop from it.

No rows of a match, no operations: a plan of this shape is recognised once, and then costs about what finding the rows
costs. It answers as the executor would; the tests hold the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.adjacency import Adjacency
from omnigraph.engine.data import DataCache, TableData
from omnigraph.engine.frames import Bound
from omnigraph.engine.places import find
from omnigraph.query import ir
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog
from omnigraph.versioning.snapshot import Snapshot

_PLAIN = frozenset({"String", "Bool", "I32", "I64", "U32", "U64", "F64"})
"""Types whose values are the same as Arrow and as Python."""
_ROWS_MAX = 1000
"""More rows are better shown by the executor, which fetches them when they are asked for."""


@dataclass(frozen=True)
class PlainRows:
    """A few rows of a result, as Python values."""

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    columns: tuple[list[Any], ...]

    def to_table(self) -> pa.Table:
        """The rows as an Arrow table."""
        arrays = [pa.array(values, type_) for values, type_ in zip(self.columns, self.types, strict=True)]
        return pa.Table.from_arrays(arrays, names=list(self.names))

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts."""
        names = self.names
        return [dict(zip(names, row, strict=True)) for row in zip(*self.columns, strict=True)]


class Lookup:
    """A plan that looks a key up, and shows that node or its neighbours."""

    def __init__(self, plan: ir.QueryIR, scan: ir.NodeScan, key: ir.Const | ir.ParamRef, hop: ir.Expand | None) -> None:
        props = [column.expr for column in plan.columns if isinstance(column.expr, ir.Prop)]
        self._table_key = f"node:{scan.type_name}"
        self._key = key
        self._hop = hop
        self._limit = plan.limit
        self._properties = tuple((prop.name, hop is not None and prop.var == hop.dst_var) for prop in props)
        self._names = tuple(column.name for column in plan.columns)
        self._types = tuple(arrow_type(prop.type) for prop in props)
        self._nothing: tuple[list[Any], ...] = tuple([] for _ in props)

    def run(
        self, snapshot: Snapshot, catalog: Catalog, cache: DataCache, params: Mapping[str, Any]
    ) -> PlainRows | None:
        """The rows; None when they are too many for this."""
        key = self._key
        value = params[key.name] if isinstance(key, ir.ParamRef) else key.value
        data = cache.table(snapshot.table(self._table_key))
        row = find(data, value) if value is not None else None
        if row is None:
            return PlainRows(self._names, self._types, self._nothing)
        if self._hop is None:
            columns = tuple([[data.column(name)[row].as_py()] for name, _ in self._properties])
            return PlainRows(self._names, self._types, columns)
        hop = self._hop
        edge = catalog.edges[hop.edge_type]
        tables = {self._table_key: data}

        def table(key: str) -> TableData:
            if key not in tables:
                tables[key] = cache.table(snapshot.table(key))
            return tables[key]

        nodes = table(f"node:{edge.from_type}"), table(f"node:{edge.to_type}")
        adjacency = Adjacency.of(table(edge.table_key), *nodes, cache)
        ends = adjacency.neighbours(hop.direction).far(np.array([row]))
        if len(ends) > _ROWS_MAX:
            return None
        far = Bound(table(f"node:{hop.dst_type}"), ends[: self._limit])
        columns = tuple(
            [
                _values(far, name) if at_far else [data.column(name)[row].as_py()] * far.count
                for name, at_far in self._properties
            ]
        )
        return PlainRows(self._names, self._types, columns)


def _values(bound: Bound, name: str) -> list[Any]:
    plain = bound.plain(name)
    values: list[Any] = plain.tolist() if plain is not None else bound.column(name).to_pylist()
    return values


def find_lookup(plan: ir.QueryIR, catalog: Catalog) -> Lookup | None:
    """The plan as a lookup; None when it is anything else."""
    if not 1 <= len(plan.pipeline) <= 2 or plan.order_by or plan.limit == 0 or plan.is_cut or plan.distinct:
        return None
    scan, hop = plan.pipeline[0], plan.pipeline[1] if len(plan.pipeline) == 2 else None
    if not isinstance(scan, ir.NodeScan) or len(scan.filters) != 1:
        return None
    if hop is not None and not (isinstance(hop, ir.Expand) and _is_plain_hop(hop, scan.var)):
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
    return Lookup(plan, scan, test.right, hop if isinstance(hop, ir.Expand) else None)


def _is_plain_hop(hop: ir.Expand, start: str) -> bool:
    """Whether it leads from the start to its neighbours, whatever they are."""
    single = (hop.min_hops, hop.max_hops) == (1, 1) and hop.edge_var is None and not hop.dst_bound
    return single and not hop.dst_filters and not hop.edge_filters and hop.src_var == start != hop.dst_var
