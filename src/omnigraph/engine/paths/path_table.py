"""Paths as rows of a table, to which a path variable is bound. Properties of their nodes and edges are fetched last.

Nodes and edges of several types are in one numbering, so a path is a list of node numbers and a list of edge numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from omnigraph.arrays import concatenate
from omnigraph.engine.adjacency.csr import EMPTY, ranges
from omnigraph.engine.cache.columns import ColumnSource, TransientColumns
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.binding_table import Binding
from omnigraph.engine.exec.left_join import NullExtendedTable
from omnigraph.engine.expr.sort_keys import id_ranks_of, ranks_of
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan import ir
from omnigraph.scalar_types.registry import ScalarName
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.types import ListType, ObjectType, PropertyType, ResultType

Floats = np.ndarray[Any, np.dtype[np.float64]]

_SYSTEM = {"id": "id", "from": "src", "to": "dst"}


class RowSpace:
    """The rows of several tables in one numbering: the rows of the first table, then those of the next."""

    def __init__(self, parts: Sequence[tuple[NodeType | EdgeType, ColumnSource]]) -> None:
        self.types = [type_ for type_, _ in parts]
        self.tables = [table for _, table in parts]
        self.offsets: Numbers = np.cumsum([0, *(table.row_count for table in self.tables)])
        self._start = {type_.name: int(start) for type_, start in zip(self.types, self.offsets, strict=False)}

    def start(self, type_name: str) -> int:
        """Return the number of a type's first row."""
        return self._start[type_name]

    def which(self, numbers: Numbers) -> Numbers:
        """Return the index of each row's table."""
        return np.searchsorted(self.offsets[1:], numbers, side="right")

    def column(self, name: str, type_: ResultType, numbers: Numbers) -> pa.Array:
        """Return a field of each row; null if its type does not have the field."""
        if len(self.tables) == 1 and name != "type":
            return self.tables[0].take(_SYSTEM.get(name, name), numbers)
        which = self.which(numbers)
        if name == "type":
            return pa.array([one.name for one in self.types]).take(pa.array(which))
        values: list[pa.Array] = []
        positions: list[Numbers] = []
        for at, table in enumerate(self.tables):
            rows = np.flatnonzero(which == at)
            positions.append(rows)
            if name in _SYSTEM or name in self.types[at].properties:
                found = table.take(_SYSTEM.get(name, name), numbers[rows] - self.offsets[at])
                values.append(found.cast(arrow_type(type_), safe=False))
            else:
                values.append(pa.nulls(len(rows), arrow_type(type_)))
        order = np.argsort(np.concatenate(positions), kind="stable")
        return concatenate(values).take(pa.array(order))

    def ranks(self, numbers: Numbers) -> Numbers:
        """Return numbers that sort like the ids of the rows, then by type name."""
        if len(self.tables) == 1:
            return id_ranks_of(Binding(self.tables[0], numbers))
        of_name = np.argsort(np.argsort([one.name for one in self.types]))
        return ranks_of(self.column("id", ir.STRING, numbers)) * len(of_name) + of_name[self.which(numbers)]


@dataclass(frozen=True)
class PathBatch:
    """Paths of one length, as matrices of node and edge numbers."""

    nodes: Numbers
    """One row per path, from start to end."""
    edges: Numbers
    owners: Numbers
    """The owner of each path: the position of a source or of a combination of bound variables."""
    stops: Numbers
    """For each path, the end nodes of its hops."""
    weights: Floats | None = None


class _PathColumns(TransientColumns):
    """The columns that every table of paths has."""

    key = ("", "")

    def __init__(self, lengths: Numbers, weights: Floats | None) -> None:
        super().__init__()
        self._lengths = lengths
        self._weights = weights

    @property
    def row_count(self) -> int:
        """The number of paths."""
        return len(self._lengths)

    def column(self, name: str) -> pa.Array:
        """Return the length, the weight or the id of every path."""
        return self.derived(name, lambda: self._column(name))

    def _column(self, name: str) -> pa.Array:
        if name == ir.LENGTH:
            return pa.array(self._lengths)
        if name == ir.WEIGHT:
            return pa.array(self._weights)
        assert name == "id", name
        return self._ids()

    @abstractmethod
    def _ids(self) -> pa.Array: ...


class PathTable(_PathColumns):
    """Paths, numbered in the order they are given."""

    def __init__(
        self, nodes: RowSpace, edges: RowSpace, batches: Sequence[PathBatch], *, weighted: bool = False
    ) -> None:
        weights: Floats | None = None
        if weighted:
            known = [batch.weights for batch in batches if batch.weights is not None]
            weights = np.concatenate(known) if known else np.zeros(0)
        super().__init__(concatenated([np.full(len(batch.edges), batch.edges.shape[1]) for batch in batches]), weights)
        self.nodes = nodes
        self.edges = edges
        self._node_numbers = concatenated([batch.nodes.ravel() for batch in batches])
        self._edge_numbers = concatenated([batch.edges.ravel() for batch in batches])
        self._starts: Numbers = np.cumsum(self._lengths) - self._lengths

    def _column(self, name: str) -> pa.Array:
        return self._listed(name) if name.startswith(ir.PATH_PARTS) else super()._column(name)

    def _ids(self) -> pa.Array:
        """Return ids that consist of the ranks of the edge ids and sort like them."""
        ranks = self.edges.ranks(self._edge_numbers)
        ends = np.concatenate([self._starts, [len(ranks)]]) * 8
        text = [pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(ranks.astype(">i8"))]
        return pa.Array.from_buffers(pa.large_binary(), self.row_count, [None, *text])

    def _listed(self, name: str) -> pa.Array:
        """Return a property of each node or edge, as one list per path."""
        part, scalar, property_ = name.removeprefix("#").split(":", 2)
        type_ = PropertyType(cast(ScalarName, scalar))
        counts, inside = self.part(part, np.arange(self.row_count))
        space = self.nodes if part == "nodes" else self.edges
        values = space.column(property_, type_, inside).cast(arrow_type(type_), safe=False)
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        listed = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)
        return listed.cast(arrow_type(replace(type_, is_list=True)))

    def part(self, part: str, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Return (number of nodes or edges of each path, their numbers, concatenated)."""
        more = 1 if part == "nodes" else 0
        counts = self._lengths[numbers] + more
        every = self._node_numbers if part == "nodes" else self._edge_numbers
        return counts, every[ranges(self._starts[numbers] + numbers * more, counts)]


class MeasuredPaths(_PathColumns):
    """Paths of which only the lengths and the weights are known."""

    def _ids(self) -> pa.Array:
        # There is one path per pair of ends, so a constant id is sufficient.
        return pa.repeat(pa.scalar(b"", pa.large_binary()), self.row_count)


def is_of_paths(bound: Binding) -> bool:
    """Return True if a variable is bound to paths."""
    data = bound.data.base if isinstance(bound.data, NullExtendedTable) else bound.data
    return isinstance(data, _PathColumns)


def path_values(expr: ir.PathPart, bound: Binding) -> pa.Array:
    """Return paths as objects, or their nodes or edges as lists; null for an absent optional path."""
    data, numbers = bound.data, bound.numbers
    missing = np.zeros(len(numbers), bool)
    if isinstance(data, NullExtendedTable):
        missing = numbers == data.absent
        numbers, data = numbers[~missing], data.base
    assert isinstance(data, PathTable)
    if expr.part != "path":
        assert isinstance(expr.type, ListType)
        return _objects(data, expr.part, expr.type, numbers, missing)
    assert isinstance(expr.type, ObjectType)
    columns: list[pa.Array] = []
    for name, type_ in expr.type.fields:
        if isinstance(type_, ListType):
            columns.append(_objects(data, name, type_, numbers, missing))
        else:
            known = data.take(ir.LENGTH if name == "length" else ir.WEIGHT, numbers)
            positions = np.cumsum(~missing) - 1
            columns.append(known.take(pa.array(positions, mask=missing)))
    names = [name for name, _ in expr.type.fields]
    return pa.StructArray.from_arrays(columns, names=names, mask=pa.array(missing))


def _objects(data: PathTable, part: str, type_: ListType, numbers: Numbers, missing: np.ndarray[Any, Any]) -> pa.Array:
    """Return the objects of each row's path as a list; `numbers` are the paths of the rows that are not missing."""
    found, inside = data.part(part, numbers)
    counts = np.zeros(len(missing), np.int64)
    counts[~missing] = found
    item = type_.item
    assert isinstance(item, ObjectType)
    space = data.nodes if part == "nodes" else data.edges
    fields = [space.column(name, field, inside) for name, field in item.fields]
    objects = pa.StructArray.from_arrays(fields, names=[name for name, _ in item.fields])
    ends = np.concatenate([[0], np.cumsum(counts)])
    absent = np.append(missing, False)
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32(), mask=absent), objects)


def concatenated(parts: Sequence[Numbers]) -> Numbers:
    """Return the concatenation of arrays; empty for no arrays."""
    return np.concatenate(parts) if parts else EMPTY
