"""The PathSteps operator: the edges of a path as pairs of consecutive nodes."""

from __future__ import annotations

import numpy as np

from omnigraph.engine.adjacency.union_expand import renumber
from omnigraph.engine.exec.binding_table import BindingTable
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.paths.path_table import PathTable
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import union_name
from omnigraph.table_key import TableKey


def path_steps(context: ExecutionContext, op: ir.PathSteps, bindings: BindingTable) -> BindingTable:
    """Extend each row by the steps of its path; a bound end keeps the steps that have its node."""
    bound = bindings.bound[op.path_var]
    paths = bound.data
    assert isinstance(paths, PathTable), "the nodes of a path with steps are known"
    counts, nodes = paths.part("nodes", bound.numbers)
    context.check_size((len(nodes) - len(counts)) * (2 if op.both_ways else 1), len(bindings.bound) + 2)
    space = union_name(type_.name for type_ in paths.nodes.types)
    if space != op.type_name:
        nodes = renumber(context, nodes, space, op.type_name)
    ends = np.cumsum(counts)
    inner = np.ones(len(nodes), bool)
    inner[ends - 1] = False  # the last node of a path begins no step
    before = np.flatnonzero(inner)
    positions = np.repeat(np.arange(bindings.count), counts - 1)
    near, far = nodes[before], nodes[before + 1]
    if op.both_ways:
        positions = np.repeat(positions, 2)
        near, far = np.column_stack([near, far]).ravel(), np.column_stack([far, near]).ravel()
    steps = {op.src_var: near, op.dst_var: far}
    kept = np.ones(len(positions), bool)
    for var in op.bound_vars[1:]:
        kept &= bindings.bound[var].numbers[positions] == steps[var]
    chosen = np.flatnonzero(kept)
    result = bindings.take(positions[chosen])
    table = context.table(TableKey.node(op.type_name))
    for var in op.new_vars:
        result = result.bind(var, table, steps[var][chosen])
    return result
