"""Conditions on columns that do not fit the cache, evaluated in one scan that holds one batch.

A comparison with a constant is evaluated by Lance while it decodes the column, and only row numbers leave the scan.
Other conditions are evaluated on each batch. A condition on several variables, or a function, is
evaluated for a batch of rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.cancellation import add_note
from omnigraph.engine.expr.predicates import Op, flipped, make_test
from omnigraph.query.plan import ir
from omnigraph.storage.lance.tables import sql_text

if TYPE_CHECKING:
    from omnigraph.engine.expr.evaluator import Evaluator

_BY_ROW = (
    ir.Const, ir.ParamRef, ir.Prop, ir.Compare, ir.Logic, ir.Not, ir.IsNull, ir.Arithmetic, ir.Negative, ir.Function,
)  # fmt: skip
"""Expressions whose value in a row depends on the properties of that row alone."""
_ORDERED = ("=", "!=", "<", "<=", ">", ">=")
_TEXT_TESTS = {"contains_text": "contains", "starts_with": "starts_with", "ends_with": "ends_with"}
_BATCH_BYTES = 64 * 1024**2
_LARGE_BYTES = 512
"""A batch of values of this size is read faster by row numbers than by a scan of their column."""
_PATTERN_MAX = 10_000
"""A longer text is compared by the evaluator: it would be a part of the text of a filter."""


def is_streamed(condition: ir.Condition, data: TableData, count: int) -> bool:
    """Return True if a condition on `count` rows of one variable is evaluated by a scan of its columns."""
    if not data.may_stream or data.is_few(count):
        return False
    parts = [*ir.walk(condition)]
    names = {part.name for part in parts if isinstance(part, ir.Prop)}
    if not all(isinstance(part, _BY_ROW) for part in parts) or not all(map(data.has_column, names)):
        return False
    size, memory = _row_bytes(data, names), data.cache.memory
    at_once = _BATCH_BYTES if memory is None else min(_BATCH_BYTES, memory.query_bytes)
    return size > 0 and not (size >= _LARGE_BYTES and size * count <= at_once)


def _row_bytes(data: TableData, names: Iterable[str]) -> int:
    """Return the mean bytes of a row in those columns that do not fit the cache; at least 1 if there are any."""
    streamed = [name for name in names if data.has_column(name) and data.streams(name)]
    return sum(max(data.column_bytes(name) // max(data.row_count, 1), 1) for name in streamed)


def streamed_mask(evaluator: Evaluator, condition: ir.Condition, var: str, data: TableData) -> Mask:
    """Return a mask of the rows of a table where a condition on its columns is true."""
    passing = np.zeros(data.row_count, bool)
    sql = _sql(condition, evaluator)
    if sql is not None:
        add_note("rows selected while they are read")
        for _, rows in data.matches([], sql):
            passing[rows] = True
        return passing
    for batch, rows in _scanned(condition, var, data):
        passing[rows] = evaluator.mask(condition, batch)
    return passing


def _scanned(expr: ir.Expr, var: str, data: TableData) -> Iterator[tuple[BindingTable, Numbers]]:
    """Yield all rows of a table in order, batch by batch, with the columns of an expression and their numbers."""
    add_note("evaluated batch by batch")
    names = list(dict.fromkeys(part.name for part in ir.walk(expr) if isinstance(part, ir.Prop)))
    for batch, rows in data.matches(names, None):
        table = MemoryTable(dict(zip(names, batch.columns, strict=False)), batch.num_rows)
        yield BindingTable(batch.num_rows, {var: Binding(table)}), rows


def batches_of(expr: ir.Expr, bindings: BindingTable) -> Iterator[BindingTable] | None:
    """Return the rows in batches if they are too large to evaluate an expression for all of them at once; else None.

    Columns that do not fit the cache are read for one batch at a time: by a scan if all rows of a table are bound.
    """
    tables = {var: bound.data for var, bound in bindings.bound.items() if isinstance(bound.data, TableData)}
    streaming = {var for var, data in tables.items() if data.may_stream}
    if not streaming:
        return None
    parts = [*ir.walk(expr)]
    used = {(part.var, part.name) for part in parts if isinstance(part, ir.Prop)}
    size = sum(_row_bytes(tables[var], [name]) for var, name in used if var in streaming)
    if size * bindings.count <= _BATCH_BYTES or not all(isinstance(part, _BY_ROW) for part in parts):
        return None
    var = next(iter(used))[0]
    if bindings.bound[var].whole and all(one == var and tables[var].has_column(name) for one, name in used):
        return (batch for batch, _ in _scanned(expr, var, tables[var]))
    at_once = max(1, _BATCH_BYTES // size)
    starts = range(0, bindings.count, at_once)
    return (bindings.take(np.arange(start, min(start + at_once, bindings.count)), unique=True) for start in starts)


def _sql(condition: ir.Condition, evaluator: Evaluator) -> str | None:
    """Return a condition as an SQL filter with the same true rows; None if it has no such form."""
    if isinstance(condition, ir.Logic):
        parts = [_sql(part, evaluator) for part in condition.parts]
        return f" {condition.op} ".join(f"({part})" for part in parts) if None not in parts else None
    if not isinstance(condition, ir.Compare):
        return None
    left, right, op = condition.left, condition.right, condition.op
    if op in _ORDERED and isinstance(left, ir.Const | ir.ParamRef):
        left, right, op = right, left, flipped(cast(Op, op))
    if not isinstance(left, ir.Prop) or left.type.is_list or not isinstance(right, ir.Const | ir.ParamRef):
        return None
    value = evaluator.constant(right)
    if value is None:
        return "false"
    if isinstance(value, str) and len(value) > _PATTERN_MAX:
        return None
    if op in _TEXT_TESTS:
        return f"{_TEXT_TESTS[op]}(`{left.name}`, {sql_text(value)})"
    return make_test(left.name, left.type, cast(Op, op), value).sql() if op in _ORDERED else None
