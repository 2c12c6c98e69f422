"""Projection: result columns, computed from a binding table batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa

from omnigraph.arrays import narrow_chunks
from omnigraph.engine import tuning
from omnigraph.engine.cache.union_table import column_of, is_streamed
from omnigraph.engine.exec.binding_table import BindingTable
from omnigraph.engine.exec.cancellation import Watch, watching
from omnigraph.engine.exec.order_by import column_expr
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.query.plan import ir


class Projection:
    """Ordered rows and the result expressions; properties are fetched per batch."""

    def __init__(self, plan: ir.AnyIR, bindings: BindingTable, evaluator: Evaluator, watch: Watch) -> None:
        self._exprs = [column_expr(plan, column.expr) for column in plan.columns]
        self._names = [column.name for column in plan.columns]
        self._bindings = bindings
        self._evaluator = evaluator
        self._watch = watch
        self._properties: dict[str, list[str]] = {}
        """The properties of each variable, which are fetched together."""
        for part in (part for expr in self._exprs for part in ir.walk(expr)):
            if isinstance(part, ir.Prop) and part.var in bindings.bound:
                self._properties.setdefault(part.var, []).append(part.name)
            elif isinstance(part, ir.Entity):
                data = bindings.bound[part.var].data
                self._properties.setdefault(part.var, []).extend(column_of(data, name) for name, _ in part.type.fields)

    def __len__(self) -> int:
        return self._bindings.count

    @cached_property
    def schema(self) -> pa.Schema:
        """The result columns; names may repeat."""
        return self._batch(self._bindings.take(np.zeros(0, np.int64))).schema

    @property
    def _row_bytes(self) -> int:
        """The approximate size of the stored properties of a row."""
        count, size = len(self), 0
        for var, names in self._properties.items():
            data = self._bindings.bound[var].data
            for name in dict.fromkeys(names):
                size += data.mean_bytes(name, count)
        return size

    @property
    def is_large(self) -> bool:
        """True if there are so many rows, or rows of such a size, that they are fetched batch by batch."""
        count = len(self)
        if count > tuning.current.lazy_result_rows:
            return True
        if count > 1 and count * self._row_bytes > tuning.current.lazy_result_bytes:
            return True
        for var, names in self._properties.items():
            bound = self._bindings.bound[var]
            if bound.whole and any(is_streamed(bound.data, name) for name in names):
                return True
        return False

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches of at most `rows`. The time limit of the query applies while they are computed."""
        rows = max(1, min(rows, tuning.current.lazy_result_bytes // 4 // max(self._row_bytes, 1)))
        for start in range(0, len(self), rows):
            with watching(self._watch):
                self._watch.check()
                some = np.arange(start, min(start + rows, len(self)))
                batch = self._batch(self._bindings.take(some))
            yield batch

    def table(self) -> pa.Table:
        """Return all rows."""
        columns = [narrow_chunks(column) for column in self._columns(self._bindings)]
        return pa.Table.from_arrays(columns, names=self._names)

    def _batch(self, bindings: BindingTable) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(self._columns(bindings), names=self._names)

    def _columns(self, bindings: BindingTable) -> list[pa.Array]:
        for var, names in self._properties.items():
            bindings.bound[var].expect(names)
        return [self._evaluator.value(expr, bindings) for expr in self._exprs]
