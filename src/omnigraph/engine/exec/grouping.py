"""The groups of a query: `having`, expressions over keys and aggregates, `collect`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.exec.reducers import reduce_values
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.expr.key_codes import combine_codes, first_rows
from omnigraph.engine.expr.sort_keys import ranks_of
from omnigraph.query.plan import ir
from omnigraph.schema.arrow import arrow_type


class Groups:
    """Groups of rows, with the aggregates computed so far. Keys are read from the first row of each group."""

    def __init__(
        self,
        exprs: Sequence[ir.Expr],
        keys: Sequence[int],
        bindings: BindingTable,
        group_of_row: Numbers | None,
        count: int,
        evaluator: Evaluator,
    ) -> None:
        self._exprs = exprs
        self.keys = keys
        """The indexes of the key expressions; the other expressions are aggregates."""
        self._bindings = bindings
        self._evaluator = evaluator
        self._kept: Numbers | None = None
        self.group_of_row = group_of_row
        """The group of each row; None if all rows are one group."""
        self.count = count
        self.heads = bindings
        """The first row of each group; all rows if there are no keys."""
        self.computed: dict[int, pa.Array] = {}

    # -- selection -------------------------------------------------------------------------------

    def keep(self, rows: Numbers) -> None:
        """Keep only these groups, in this order."""
        self._kept = rows if self._kept is None else self._kept[rows]
        group_of_row = pa.array(rows)
        self.computed = {index: array.take(group_of_row) for index, array in self.computed.items()}
        if self.group_of_row is not None:
            self.heads = self.heads.take(rows, unique=True)
        self.count = len(rows)

    def satisfying(self, conditions: Sequence[ir.Condition]) -> Numbers:
        """Return the groups that satisfy all conditions."""
        bindings = self._on(conditions, None)
        mask = np.ones(self.count, bool)
        for condition in conditions:
            mask &= self._evaluator.mask(condition, bindings)
        return np.flatnonzero(mask)

    def first_distinct(self, exprs: Sequence[ir.Expr]) -> Numbers:
        """Return the first of the groups with equal values of some expressions."""
        return np.sort(first_rows(*combine_codes(self.codes(expr, None) for expr in exprs)))

    # -- values ----------------------------------------------------------------------------------

    def columns(self, plan: ir.QueryIR, wanted: Sequence[int] | None = None) -> list[pa.Array]:
        """Return the result columns, or some of them."""
        indexes = range(len(plan.columns)) if wanted is None else wanted
        if not plan.grouped:
            return [self._column(index, None) for index in indexes]
        exprs = [plan.columns[index].expr for index in indexes]
        bindings = self._on(exprs, None)
        return [self._evaluator.value(expr, bindings) for expr in exprs]

    def codes(self, key: int | ir.Expr, rows: Numbers | None) -> np.ndarray[Any, Any]:
        """Return sort codes of a key, an aggregate or an expression over them, for all groups or for some."""
        if not isinstance(key, int):
            return sortable(self._evaluator.value(key, self._on([key], rows)))
        if key not in self.keys:
            return sortable(self._column(key, rows))
        return self._evaluator.codes(
            self._exprs[key], self.heads if rows is None else self.heads.take(rows, unique=True)
        )

    def _column(self, index: int, rows: Numbers | None) -> pa.Array:
        """Return a key or an aggregate of all groups, or of some."""
        expr = self._exprs[index]
        if not isinstance(expr, ir.Aggregate):
            return self._evaluator.value(expr, self.heads if rows is None else self.heads.take(rows, unique=True))
        if index not in self.computed:
            self.computed[index] = self._collected(expr)
        array = self.computed[index]
        return array if rows is None else array.take(pa.array(rows))

    def _collected(self, call: ir.Aggregate) -> pa.Array:
        """Return the collected values of the remaining groups."""
        bindings, group_of_row = self._bindings, self.group_of_row
        if self._kept is not None and group_of_row is not None:
            number = np.full(int(group_of_row.max(initial=-1)) + 1, -1, np.int64)
            number[self._kept] = np.arange(len(self._kept))
            rows = np.flatnonzero(number[group_of_row] >= 0)
            bindings, group_of_row = bindings.take(rows), number[group_of_row[rows]]
        if call.where is not None:
            call, bindings, group_of_row = selected_rows(call, call.where, bindings, group_of_row, self._evaluator)
        return over_values(call, bindings, group_of_row, self.count, self._evaluator)

    def _on(self, exprs: Iterable[ir.Expr], rows: Numbers | None) -> BindingTable:
        """Return the groups, or some of them, as rows of `GROUP` with the columns that some expressions read."""
        numbers = {ir.column_number(part) for expr in exprs for part in ir.walk(expr)} - {None}
        arrays = {str(number): self._column(number, rows) for number in numbers if number is not None}
        count = self.count if rows is None else len(rows)
        return BindingTable(count, {ir.GROUP: Binding(MemoryTable(arrays, count))})


def selected_rows(
    call: ir.Aggregate,
    where: ir.Condition,
    bindings: BindingTable,
    groups: Numbers | None,
    evaluator: Evaluator,
) -> tuple[ir.Aggregate, BindingTable, Numbers | None]:
    """Return the aggregate without its condition, and the rows that satisfy the condition, with their groups."""
    rows = np.flatnonzero(evaluator.mask(where, bindings))
    kept = bindings.take(rows, unique=True)
    return replace(call, where=None), kept, None if groups is None else groups[rows]


def over_values(
    call: ir.Aggregate, bindings: BindingTable, groups: Numbers | None, count: int, evaluator: Evaluator
) -> pa.Array:
    """Return an aggregate over the sorted values of each group; nulls do not count."""
    codes = evaluator.codes(call.argument, bindings).astype(np.int64)
    groups = np.zeros(bindings.count, np.int64) if groups is None else groups
    rows = np.flatnonzero(codes >= 0)
    keys = (codes[rows], groups[rows])
    rows = rows[interruptible(lambda: np.lexsort(keys), len(rows))]
    if call.distinct:
        rows = rows[_first_of_runs(groups[rows], codes[rows])]
    elif bindings.weight is not None:
        rows = np.repeat(rows, bindings.weight[rows])
    sizes = np.bincount(groups[rows], minlength=count)[:count]
    if call.function == "count":
        return pa.array(sizes.astype(np.int64))
    if call.function in ("min", "max"):
        ends = np.cumsum(sizes)
        some = sizes > 0
        chosen = rows[(ends - sizes if call.function == "min" else ends - 1)[some]]
        extremes = evaluator.value(call.argument, bindings.take(chosen))
        return extremes.take(pa.array(np.cumsum(some) - 1, mask=~some)).cast(arrow_type(call.type))
    values = evaluator.value(call.argument, bindings.take(rows))
    if call.function == "collect":
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        item = arrow_type(call.type).value_type
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.cast(item)).cast(arrow_type(call.type))
    return reduce_values(call, values, groups[rows], None, count)


def _first_of_runs(groups: Numbers, codes: Numbers) -> np.ndarray[Any, Any]:
    """Return a mask of the rows that differ from the previous row."""
    first = np.ones(len(groups), bool)
    first[1:] = (groups[1:] != groups[:-1]) | (codes[1:] != codes[:-1])
    return first


def sortable(values: pa.Array) -> np.ndarray[Any, Any]:
    """Return numbers that sort like the values."""
    if not values.null_count and (pa.types.is_int64(values.type) or pa.types.is_float64(values.type)):
        plain: np.ndarray[Any, Any] = values.to_numpy()
        return plain
    return ranks_of(values)
