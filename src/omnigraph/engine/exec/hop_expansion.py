"""Hops: the neighbours of bound nodes along the edges of a type or of several types, and edges with a variable."""

from __future__ import annotations

from functools import partial

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.adjacency.bfs import bounded_hops
from omnigraph.engine.adjacency.check_pairs import connected_rows
from omnigraph.engine.adjacency.csr import Csr, Room
from omnigraph.engine.adjacency.period_adjacency import PeriodAdjacency
from omnigraph.engine.adjacency.union_expand import expand_union
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData
from omnigraph.engine.cache.visibility import VisibleTable
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.exec.keyed_scan import rows_by_key
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.exec.node_scan import passing_mask
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.query.plan import ir
from omnigraph.table_key import TableKey

_STORED = (TableData, VisibleTable)


class HopExpansion:
    """Expands the hops of one execution."""

    def __init__(self, context: ExecutionContext, evaluator: Evaluator) -> None:
        self._context = context
        self._evaluator = evaluator

    def rows(self, op: ir.Expand, bindings: BindingTable, room: Room) -> BindingTable:
        """Return each row with every node, and edge, that the hop leads to."""
        far = self._context.table(TableKey.node(op.dst_type))
        if op.src_type is None:
            return self._walk(op, bindings, self._context.hops(op.edge_type, op.also), far, room)
        found = expand_union(self._context, op, bindings, partial(self._walk, room=room))
        keep = passing_mask(self._evaluator, op.dst_var, found.bound[op.dst_var], op.dst_filters)
        return found if keep is None else found.keep(keep)

    def _walk(
        self, op: ir.Expand, bindings: BindingTable, adjacency: Adjacency, far: ColumnSource, room: Room
    ) -> BindingTable:
        bound = bindings.bound[op.src_var]
        sources = bound.numbers
        if op.max_hops < op.min_hops:
            return self.nothing(op, bindings, far)
        if op.edge_var is not None:
            if op.dst_bound and bindings.count >= tuning.current.checked_rows_min:
                # Few pairs are connected: the edges of the others are not read.
                pairs = partial(self._context.check_size, columns=2)
                bindings = bindings.keep(connected_rows(op, adjacency, bindings, pairs))
            return self._expand_edges(op, bindings, far, room)
        if op.dst_bound:
            return bindings.keep(connected_rows(op, adjacency, bindings, partial(self._context.check_size, columns=2)))
        neighbours = adjacency.for_scan(op.direction) if bound.whole else adjacency.neighbours(op.direction)
        if (op.min_hops, op.max_hops) == (1, 1):
            if bound.whole and isinstance(neighbours, Csr):
                room(len(neighbours.targets))
                positions, targets = interruptible(neighbours.all_pairs, len(neighbours.targets))
            else:
                positions, targets = neighbours.expand(sources, room)
        else:
            positions, targets = bounded_hops(op, adjacency).reach_rows(sources, room)
        return self._arrive(op, bindings, far, positions, targets)

    def _arrive(
        self, op: ir.Expand, bindings: BindingTable, far: ColumnSource, positions: Numbers, targets: Numbers
    ) -> BindingTable:
        """Bind the far node. Its conditions are evaluated before other columns are copied."""
        keep = self._arriving(op, far, targets)
        if keep is not None:
            positions, targets = positions[keep], targets[keep]
        return bindings.take(positions).bind(op.dst_var, far, targets)

    def _arriving(self, op: ir.Expand, far: ColumnSource, targets: Numbers) -> Mask | None:
        """Return a mask of the far nodes that satisfy their conditions; None for all."""
        if op.dst_filters and isinstance(far, _STORED):
            scan = ir.NodeScan(op.dst_var, op.dst_type, op.dst_filters)
            keyed = rows_by_key(scan, far, self._context.catalog, self._evaluator, len(targets))
            if keyed is not None:
                # The nodes with the keys are few; they are compared by their numbers.
                found, others = keyed
                passing = passing_mask(self._evaluator, op.dst_var, found, others)
                numbers = found.numbers if passing is None else found.numbers[passing]
                return targets == numbers[0] if len(numbers) == 1 else np.isin(targets, numbers)
        return passing_mask(self._evaluator, op.dst_var, Binding(far, targets), op.dst_filters)

    def _expand_edges(self, op: ir.Expand, bindings: BindingTable, far: ColumnSource, room: Room) -> BindingTable:
        assert op.edge_var is not None
        positions, rows, targets = self._edges_at(op, bindings, room)
        self._context.check_size(len(positions))
        if op.dst_bound:
            hit = targets == bindings.bound[op.dst_var].numbers[positions]
            positions, rows, targets = positions[hit], rows[hit], targets[hit]
        keep = passing_mask(self._evaluator, op.dst_var, Binding(far, targets), op.dst_filters)
        if keep is not None:
            positions, rows, targets = positions[keep], rows[keep], targets[keep]
        result = bindings.take(positions).bind(op.edge_var, self._edge_table(op), rows)
        return result if op.dst_bound else result.bind(op.dst_var, far, targets)

    def edges_alone(self, op: ir.Expand, bindings: BindingTable, live: frozenset[str]) -> BindingTable | None:
        """Return the edges of all nodes if their ends are not used; else None."""
        if (
            op.edge_var is None
            or op.direction == "both"
            or op.dst_bound
            or op.dst_filters
            or bindings.weight is not None
        ):
            return None
        if op.src_type is not None or isinstance(self._context.adjacency(op.edge_type), PeriodAdjacency):
            return None
        if len(bindings.bound) != 1 or not bindings.bound[op.src_var].whole or not live <= {op.edge_var}:
            return None
        every = Binding(self._edge_table(op))
        mask = passing_mask(self._evaluator, op.edge_var, every, op.edge_filters)
        found = BindingTable(every.count, {op.edge_var: every})
        return found if mask is None else found.keep(mask)

    def _edge_table(self, op: ir.Expand) -> ColumnSource:
        """Return the edge table of a hop with an edge variable, which has one edge type."""
        return self._context.table(self._context.catalog.edges[op.edge_type].table_key)

    def _edges_at(self, op: ir.Expand, bindings: BindingTable, room: Room) -> tuple[Numbers, Numbers, Numbers]:
        """Return the edges of each row that satisfy their conditions: (row, edge, far end)."""
        adjacency, edges = self._context.adjacency(op.edge_type), self._edge_table(op)
        bound = bindings.bound[op.src_var]
        assert op.edge_var is not None
        one_each = not isinstance(adjacency, PeriodAdjacency)
        if op.direction != "both" and op.edge_filters and bound.whole and one_each:
            # Every node is a source: select the edges first; each edge has its source.
            every = Binding(edges)
            mask = passing_mask(self._evaluator, op.edge_var, every, op.edge_filters)
            assert mask is not None
            chosen = np.flatnonzero(mask) if every.whole else every.numbers[mask]
            src, dst = adjacency.ends()
            near, far = (src, dst) if op.direction == "out" else (dst, src)
            return near[chosen].astype(np.int64), chosen, far[chosen].astype(np.int64)
        at_nodes = adjacency.edge_rows(op.direction)
        positions, rows, targets = at_nodes.expand(bound.numbers, room)
        keep = passing_mask(self._evaluator, op.edge_var, Binding(edges, rows), op.edge_filters)
        return (positions, rows, targets) if keep is None else (positions[keep], rows[keep], targets[keep])

    def nothing(self, op: ir.Expand, bindings: BindingTable, far: ColumnSource) -> BindingTable:
        """Return no rows, with the variables of the hop."""
        empty = np.zeros(0, np.int64)
        result = bindings.take(empty) if bindings.count else bindings
        if not op.dst_bound:
            result = result.bind(op.dst_var, far, empty)
        return result.bind(op.edge_var, self._edge_table(op), empty) if op.edge_var else result
