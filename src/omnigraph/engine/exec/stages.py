"""Stages: the rows of a complete query as the first rows of the next match.

Nodes and edges stay columns of row numbers; the values of a stage are a table in memory, one row for each of its rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.exec.adaptive import Replanner
from omnigraph.engine.exec.aggregate import grouped_rows
from omnigraph.engine.exec.binding_table import BindingTable
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.exec.order_by import OrderedRows, column_expr
from omnigraph.engine.exec.pipeline import MatchPipeline
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.plan.expected_rows import ExpectedRows
from omnigraph.engine.plan.limit_offset import apply_limit
from omnigraph.engine.plan.liveness import ignores_duplicates, live_after, required_variables
from omnigraph.engine.search.searcher import Searcher
from omnigraph.query.plan import ir


class StageRunner:
    """Runs the stages of one execution."""

    def __init__(
        self,
        context: ExecutionContext,
        evaluator: Evaluator,
        searcher: Searcher,
        replanner: Replanner,
        params: Mapping[str, Any],
    ) -> None:
        self._context = context
        self._evaluator = evaluator
        self._searcher = searcher
        self._replanner = replanner
        self._params = params

    def run(self, stage: ir.Stage, expected: ExpectedRows | None) -> BindingTable:
        """Return the rows of a stage: the variables that it keeps, and its values."""
        query = apply_limit(stage.query, self._params)
        # A pipeline of its own: the numbers of shared blocks are unique within a stage.
        match = MatchPipeline(self._context, self._evaluator, self._replanner, self.run)
        find = self._groups if query.is_aggregate else self._rows
        kept, values = find(stage, query, match, expected)
        if query.skip:
            rows = np.arange(min(query.skip, kept.count), kept.count)
            kept, values = kept.take(rows, unique=True), [array.take(pa.array(rows)) for array in values]
        # Texts and lists count as as many columns of numbers as have their size.
        wide = sum(array.nbytes for array in values) // (8 * max(kept.count, 1))
        self._context.check_size(kept.count, len(kept.bound) + wide + 1)
        if not values:
            return kept
        table = MemoryTable(dict(zip(stage.value_names, values, strict=True)), kept.count)
        return kept.bind(stage.var, table, np.arange(kept.count), unique=True)

    def _groups(
        self, stage: ir.Stage, query: ir.QueryIR, match: MatchPipeline, expected: ExpectedRows | None
    ) -> tuple[BindingTable, list[pa.Array]]:
        live = live_after(query.pipeline, required_variables(query.group_exprs))
        rows = match.rows(query.pipeline, live, distinct=ignores_duplicates(query), expected=expected)
        started = time.perf_counter()
        groups = grouped_rows(query, rows, self._evaluator)
        values = [one_array(array) for array in groups.columns(query, stage.values)]
        self._context.profile.note(f"group{stage.var}", groups.count, started)
        kept = groups.heads.only(stage.kept) if stage.kept else BindingTable()
        return BindingTable(groups.count, kept.bound), values

    def _rows(
        self, stage: ir.Stage, query: ir.QueryIR, match: MatchPipeline, expected: ExpectedRows | None
    ) -> tuple[BindingTable, list[pa.Array]]:
        ordered = OrderedRows(query, self._context, self._evaluator, self._searcher, match, expected, stage=stage.var)
        rows = ordered.rows()
        self._context.check_size(rows.count, len(rows.bound))
        exprs = (column_expr(query, query.columns[number].expr) for number in stage.values)
        values = [one_array(self._evaluator.value(expr, rows)) for expr in exprs]
        return rows.only(stage.kept), values
