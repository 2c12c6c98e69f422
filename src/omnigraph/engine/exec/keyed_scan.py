"""Scans with a condition that gives the keys of the nodes: the rows are looked up."""

from __future__ import annotations

import numpy as np

from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.entities import rows_of_key
from omnigraph.engine.cache.id_index import find_listed, find_visible, id_of_key, ids_of_keys
from omnigraph.engine.cache.table_cache import TableData
from omnigraph.engine.cache.visibility import VisibleTable
from omnigraph.engine.exec.binding_table import Binding
from omnigraph.engine.exec.cancellation import add_note
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.plan.point_lookup import id_lists, id_tests
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog

KeyedRows = tuple[Binding, tuple[ir.Condition, ...]]
"""The rows with the keys, and the conditions that are left."""


def rows_by_key(
    op: ir.NodeScan, data: ColumnSource, catalog: Catalog, evaluator: Evaluator, rows: int
) -> KeyedRows | None:
    """Return the rows of a scan by one key or by several; None if no condition gives keys.

    A list of keys is not looked up if the comparison of `rows` rows is faster.
    """
    for position, prop, key in id_tests(op, catalog):
        id_ = id_of_key(evaluator.constant(key), prop.type)
        if id_ is not None:
            add_note("found by its key")
            assert isinstance(data, TableData | VisibleTable), "a union has no key"
            row = find_visible(data, id_)
            numbers = np.array([] if row is None else [row], np.int64)
            return Binding(data, numbers), _without(op, position)
    if not isinstance(data, TableData | VisibleTable):
        return None
    return _by_list(op, data, catalog, evaluator, rows) or _by_entity(op, data, catalog, evaluator)


def _by_list(
    op: ir.NodeScan, data: TableData | VisibleTable, catalog: Catalog, evaluator: Evaluator, rows: int
) -> KeyedRows | None:
    """Return the rows of a scan by a list of keys."""
    for position, prop, items in id_lists(op, catalog):
        ids = ids_of_keys(evaluator.constant(items), prop.type)
        numbers = None if ids is None else find_listed(data, ids, rows)
        if numbers is not None:
            add_note("found by their keys")
            return Binding(data, numbers, unique=True), _without(op, position)
    return None


def _by_entity(
    op: ir.NodeScan, data: TableData | VisibleTable, catalog: Catalog, evaluator: Evaluator
) -> KeyedRows | None:
    """Return the rows of a scan by the key of a type with periods."""
    node = catalog.nodes.get(op.type_name)
    if node is None or not node.has_periods:
        return None
    for position, test in enumerate(op.filters):
        if not isinstance(test, ir.Compare) or test.op != "=" or not isinstance(test.left, ir.Prop):
            continue
        if test.left.name == node.end_column and isinstance(test.right, ir.Const | ir.ParamRef):
            key = evaluator.constant(test.right)
            if isinstance(key, str):
                add_note("found by its key")
                return Binding(data, rows_of_key(data, node.end_column, key), unique=True), _without(op, position)
    return None


def _without(op: ir.NodeScan, position: int) -> tuple[ir.Condition, ...]:
    return op.filters[:position] + op.filters[position + 1 :]
