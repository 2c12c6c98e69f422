"""Evaluation of the conditions of a visibility on stored rows."""

from __future__ import annotations

from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.search.searcher import Searcher
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW
from omnigraph.schema.catalog import Catalog

_NO_TYPES = Catalog({}, {}, {})
_evaluator = Evaluator(_NO_TYPES, {}, Searcher(_NO_TYPES, {}, None, {}), {})


def judge(condition: ir.Condition, data: TableData | MemoryTable, numbers: Numbers | None) -> Mask:
    """Return for some rows (None: all) whether a condition on the row alone is true."""
    bound = Binding(data, numbers)
    return _evaluator.mask(condition, BindingTable(bound.count, {ROW: bound}))
