"""Scans of nodes: the nodes of a type, or of several types, that satisfy conditions on their properties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from omnigraph.engine.adjacency.csr import EMPTY
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.table_cache import Mask, TableData
from omnigraph.engine.cache.union_table import UnionTable, depends_on_type
from omnigraph.engine.cache.visibility import VisibleTable
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.exec.keyed_scan import rows_by_key
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.expr.streamed_masks import is_streamed
from omnigraph.query.plan import ir
from omnigraph.table_key import TableKey


class NodeScanner:
    """Scans the nodes of one execution."""

    def __init__(self, context: ExecutionContext, evaluator: Evaluator) -> None:
        self._context = context
        self._evaluator = evaluator

    def rows(self, op: ir.NodeScan, bindings: BindingTable) -> BindingTable:
        """Return each row with every node of a type that satisfies the conditions."""
        data = self._context.table(TableKey.node(op.type_name))
        found = self._of_members(op, data) if isinstance(data, UnionTable) else self._found(op, data)
        if not bindings.bound and bindings.count == 1 and bindings.weight is None:
            return found  # stays a mask if it is one: counting needs no row numbers
        numbers = found.bound[op.var].numbers
        self._context.check_size(bindings.count * len(numbers), len(bindings.bound) + 2)
        crossed = bindings.take(np.repeat(np.arange(bindings.count), len(numbers)))
        return crossed.bind(op.var, data, np.tile(numbers, bindings.count))

    def _found(self, op: ir.NodeScan, data: ColumnSource) -> BindingTable:
        """Return the nodes of a type that satisfy all conditions."""
        keyed = rows_by_key(op, data, self._context.catalog, self._evaluator, data.row_count)
        bound, filters = keyed if keyed is not None else (_every(data), op.filters)
        found = BindingTable(bound.count, {op.var: bound})
        if bound.mask is not None and filters and not (isinstance(data, VisibleTable) and data.is_few(bound.count)):
            return self._of_visible(op.var, bound, filters)
        if len(filters) > 1 and isinstance(data, TableData) and data.may_stream:
            # Few rows may be left for the conditions that need a scan.
            filters = tuple(sorted(filters, key=lambda condition: is_streamed(condition, data, data.row_count)))
        for condition in filters:
            found = found.keep(self._evaluator.mask(condition, found))
        return found

    def _of_visible(self, var: str, bound: Binding, filters: tuple[ir.Condition, ...]) -> BindingTable:
        """Return the visible nodes that satisfy all conditions, which are evaluated on complete columns."""
        passing = bound.mask
        every = Binding.every(bound.data)
        for condition in filters:
            mask = self._evaluator.mask(condition, BindingTable(every.count, {var: every}))
            passing = mask if passing is None else passing & mask
        found = Binding(bound.data, mask=passing)
        return BindingTable(found.count, {var: found})

    def _of_members(self, op: ir.NodeScan, data: UnionTable) -> BindingTable:
        """Return the nodes of several types that satisfy all conditions; each type uses its own indexes."""
        own = tuple(condition for condition in op.filters if not depends_on_type(condition))
        every = Binding(data)
        found = BindingTable(every.count, {op.var: every})
        if own:
            scans = (replace(op, type_name=name, filters=own) for name in data.of.members)
            parts = [self._found(*one) for one in zip(scans, data.members, strict=True)]
            numbers = [part.bound[op.var].numbers + start for part, start in zip(parts, data.starts, strict=False)]
            bound = Binding(data, np.concatenate([*numbers, EMPTY]), unique=True)
            found = BindingTable(bound.count, {op.var: bound})
        for condition in op.filters:
            if depends_on_type(condition):
                found = found.keep(self._evaluator.mask(condition, found))
        return found


def passing_mask(evaluator: Evaluator, var: str, bound: Binding, filters: tuple[ir.Condition, ...]) -> Mask | None:
    """Return a mask of the rows of a variable that satisfy all conditions; None without conditions."""
    if not filters:
        return None
    some = BindingTable(bound.count, {var: bound})
    mask = evaluator.mask(filters[0], some)
    for condition in filters[1:]:
        mask = mask & evaluator.mask(condition, some)
    return mask


def _every(data: ColumnSource) -> Binding:
    """Bind all visible rows; those of an instant of a large table by their numbers."""
    rows = data.slice_rows if isinstance(data, VisibleTable) else None
    return Binding(data) if rows is None else Binding(data, rows, unique=True)
