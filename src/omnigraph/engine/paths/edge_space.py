"""The graph that a path search runs on: nodes and edges of several types in one numbering.

Edges are distinct, because parallel edges make different paths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.csr import IncidentRows, Neighbours
from omnigraph.engine.adjacency.multi_edge import UnionAdjacency
from omnigraph.engine.adjacency.union_expand import renumber
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.cache.visibility import StoredTable
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.paths.path_table import Floats, RowSpace
from omnigraph.errors import InputError
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import union_name
from omnigraph.table_key import TableKey

_STEP = 2.0**20
"""Weights that are multiples of 1 / _STEP add up exactly up to `exact_weight_sum_max`."""


class PathGraph:
    """The nodes and edges of one operator, each in one numbering."""

    def __init__(self, context: ExecutionContext, op: ir.FindPaths) -> None:
        self._context = context
        edges = [context.catalog.edges[name] for name in op.edge_types]
        ends = {end for edge in edges for end in (edge.from_type, edge.to_type)}
        given = {
            member
            for name in (op.src_type, *(step.dst_type for step in op.steps))
            for member in context.catalog.members(name)
        }
        self._name = union_name(ends | given)
        nodes = [context.catalog.nodes[name] for name in context.catalog.members(self._name)]
        self.nodes = RowSpace([(node, context.table(node.table_key)) for node in nodes])
        self.edges = RowSpace([(edge, context.table(edge.table_key)) for edge in edges])
        self.count = int(self.nodes.offsets[-1])
        """The number of nodes."""

    def to_numbers(self, type_name: str, numbers: Numbers) -> Numbers:
        """Convert row numbers of a variable of a type to numbers of this graph."""
        return numbers if type_name == self._name else renumber(self._context, numbers, type_name, self._name)

    def to_rows(self, type_name: str, numbers: Numbers) -> Numbers:
        """Convert numbers of this graph to row numbers of a variable of a type."""
        return numbers if type_name == self._name else renumber(self._context, numbers, self._name, type_name)

    def incident_edges(self, step: ir.PathStep, direction: ir.Direction) -> IncidentEdges:
        """Return the edges that a step may follow in a direction."""
        return IncidentEdges(lambda: self._typed_edges(step, direction))

    def _typed_edges(self, step: ir.PathStep, direction: ir.Direction) -> list[_TypedEdges]:
        ways: list[_TypedEdges] = []
        for name in step.edge_types:
            edge = self._context.catalog.edges[name]
            both = direction == "both" and edge.from_type != edge.to_type
            for way in ("out", "in") if both else (direction,):
                near, far = (edge.to_type, edge.from_type) if way == "in" else (edge.from_type, edge.to_type)
                start = self.nodes.start(near)
                end = start + self._context.table(TableKey.node(near)).row_count
                rows = self._context.adjacency(name).edge_rows(way)
                ways.append(
                    _TypedEdges(
                        rows, self.edges.start(name), start, end, self.nodes.start(far), self.count == end - start
                    )
                )
        return ways

    def neighbours(self, step: ir.PathStep, direction: ir.Direction) -> Neighbours:
        """Return the adjacency of the edges that a step may follow."""
        if len(self.nodes.types) == 1:
            first, *also = step.edge_types
            return self._context.hops(first, tuple(also)).neighbours(direction)
        edges = [self._context.catalog.edges[name] for name in step.edge_types]
        starts = [(self.nodes.start(edge.from_type), self.nodes.start(edge.to_type)) for edge in edges]
        space = self._context.table(TableKey.node(self._name))
        return UnionAdjacency([self._context.adjacency(edge.name) for edge in edges], starts, space).neighbours(
            direction
        )


@dataclass(frozen=True)
class _TypedEdges:
    """The edges of one type in one direction."""

    rows: IncidentRows
    edge: int
    """The number of the first edge of the type."""
    near: int
    near_end: int
    """The range of the numbers of the near nodes: `near` to `near_end`."""
    far: int
    """The number of the first far node."""
    alone: bool
    """True if the graph has no other nodes."""

    def local(self, nodes: Numbers) -> tuple[Numbers | None, Numbers]:
        """Return (positions of the nodes that are near nodes of the type, their row numbers); None if all are."""
        if self.alone:
            return None, nodes
        at = np.flatnonzero((nodes >= self.near) & (nodes < self.near_end))
        return at, nodes[at] - self.near


class IncidentEdges:
    """The incident edges of each node, built on first use."""

    def __init__(self, make: Callable[[], list[_TypedEdges]]) -> None:
        self._make = make

    @cached_property
    def _typed_edges(self) -> list[_TypedEdges]:
        return self._make()

    def expand(self, nodes: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return the edges of each node: (position in `nodes`, edge, far node)."""
        found: list[tuple[Numbers, Numbers, Numbers]] = []
        for way in self._typed_edges:
            at, local = way.local(nodes)
            positions, edges, far = way.rows.expand(local)
            found.append((positions if at is None else at[positions], edges + way.edge, far + way.far))
        if len(found) == 1:
            return found[0]
        positions, edges, far = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return positions, edges, far

    def degrees(self, nodes: Numbers) -> Numbers:
        """Return the number of edges of each node."""
        degrees = np.zeros(len(nodes), np.int64)
        for way in self._typed_edges:
            at, local = way.local(nodes)
            degrees[slice(None) if at is None else at] += way.rows.degrees(local)
        return degrees

    def count(self, nodes: Numbers) -> int:
        """Return the total number of edges of the nodes."""
        return sum(int(way.rows.degrees(way.local(nodes)[1]).sum()) for way in self._typed_edges)


@dataclass(frozen=True)
class Weights:
    """The weights of edges. Edges without a value have NaN and are not followed."""

    values: Floats
    largest: float
    even: bool
    """True if all weights are multiples of 1 / _STEP."""

    @classmethod
    def of(cls, context: ExecutionContext, space: RowSpace, by: str) -> Weights:
        """Return the weights of all edges of a space."""
        found = [_weights(context.type_table(type_.table_key), by, type_.name) for type_ in space.types]
        if len(found) == 1:
            return found[0]
        values = np.concatenate([weights.values for weights in found])
        return cls(values, max(weights.largest for weights in found), all(weights.even for weights in found))

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return int(self.values.nbytes)

    def add_exactly(self, edges: int) -> bool:
        """Return True if the sum of this many weights does not depend on the order of addition."""
        return self.even and self.largest * edges <= tuning.current.exact_weight_sum_max


def _weights(edges: StoredTable, by: str, type_name: str) -> Weights:
    return edges.derived(f"weights:{edges.column_key(by)}", lambda: _read_weights(edges, by, type_name))


def _read_weights(edges: StoredTable, by: str, type_name: str) -> Weights:
    column = edges.column(by)
    known = column.is_valid().to_numpy(zero_copy_only=False)
    values: Floats = pc.fill_null(column, 0).to_numpy(zero_copy_only=False).astype(np.float64)
    seen = edges.visible
    if seen is not None:
        known = known & seen
        values = np.where(seen, values, 0.0)
    bad = np.flatnonzero(values < 0)
    if len(bad):
        raise negative_weight(min(edges.take("id", bad).to_pylist()), type_name, by)
    steps = values * _STEP
    even = bool((steps == np.floor(steps)).all())
    values[~known] = np.nan
    return Weights(values, float(np.nanmax(values)) if known.any() else 0.0, even)


def negative_weight(id_: str, type_name: str, by: str) -> InputError:
    """Return the error of an edge with a negative weight."""
    return InputError(
        f"edge '{id_}' of {type_name} has a negative weight '{by}'",
        code="negative_weight",
        hint="correct the edge, or use another property as weight",
    )
