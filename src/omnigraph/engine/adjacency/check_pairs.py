"""Whether hops connect pairs of nodes: each check starts at the cheaper side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.adjacency import REVERSED, Adjacency
from omnigraph.engine.adjacency.bfs import bounded_hops
from omnigraph.engine.adjacency.csr import Room
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.binding_table import BindingTable
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.query.plan import ir

_STEEPER = 4
"""The other side is searched if it has more than so many times the nodes."""


def connected_rows(op: ir.Expand, adjacency: Adjacency, bindings: BindingTable, room: Room) -> Mask:
    """Return for each row whether the hop leads from its source to its bound target."""
    near, far = bindings.bound[op.src_var], bindings.bound[op.dst_var]
    sources, targets = near.numbers, far.numbers
    if (op.min_hops, op.max_hops) != (1, 1):
        return _reached(op, adjacency, sources, targets, room)
    # Both sides have the same edges, so the side with more nodes has fewer edges at each.
    steep = far.data.row_count > _STEEPER * near.data.row_count
    if steep and op.direction != "both" and bindings.count >= tuning.current.checked_rows_min:
        return adjacency.neighbours(REVERSED[op.direction]).connected(targets, sources)
    return adjacency.neighbours(op.direction).connected(sources, targets)


def _reached(op: ir.Expand, adjacency: Adjacency, sources: Numbers, targets: Numbers, room: Room) -> Mask:
    """Traverse from each distinct node of the side that has fewer of them."""
    starts, of_start = interruptible(lambda: np.unique(sources, return_inverse=True), len(sources))
    ends, of_end = interruptible(lambda: np.unique(targets, return_inverse=True), len(targets))
    if len(ends) < len(starts):
        op = replace(op, direction=REVERSED[op.direction], backward=not op.backward)
        starts, of_start, targets = ends, of_end, sources
    found, nodes = bounded_hops(op, adjacency).reach(starts, room)
    width = int(max(nodes.max(initial=0), targets.max(initial=0))) + 1
    if len(starts) <= 1:
        marks = np.zeros(width, bool)
        marks[nodes] = True
        reached: Mask = marks[targets]
        return reached
    pairs, asked = found * width + nodes, of_start * width + targets
    return interruptible(lambda: np.isin(asked, pairs), len(pairs))
