"""Execution of a read: pipeline, grouping, order, limit, projection.

Rows are columns of row numbers until the end; properties are fetched for the remaining rows only. A query reads one
snapshot, is bounded by `Limits`, and can be cancelled between operations.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.exec.aggregate import aggregate
from omnigraph.engine.exec.cancellation import watching
from omnigraph.engine.exec.context import ExecutionContext, Profile
from omnigraph.engine.exec.order_by import OrderedRows
from omnigraph.engine.exec.pipeline import MatchPipeline
from omnigraph.engine.exec.projection import Projection
from omnigraph.engine.exec.row_audit import audit_bindings
from omnigraph.engine.exec.stages import StageRunner
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.optimizer.replan import QueryReplanner
from omnigraph.engine.plan.limit_offset import Page, apply_limit
from omnigraph.engine.plan.prepared_query import PreparedQuery
from omnigraph.engine.search.searcher import EmbedQuery, Searcher
from omnigraph.query.plan import ir


class Execution:
    """One run of one plan on one snapshot."""

    def __init__(
        self,
        prepared: PreparedQuery,
        context: ExecutionContext,
        params: Mapping[str, Any],
        *,
        now_ms: int,
        embed: EmbedQuery | None = None,
        page: Page | None = None,
    ) -> None:
        self.prepared = prepared
        self.plan = apply_limit(prepared.plan, params, page)
        self.more = False
        """True if there are rows after the requested page."""
        self._page = page
        self._live = prepared.live
        catalog, types = prepared.catalog, prepared.types
        self._context = context
        values = {**params, ir.NOW: now_ms}
        self._searcher = Searcher(catalog, values, embed, types)
        self._evaluator = Evaluator(catalog, values, self._searcher, types, bytes_max=context.bytes_max)
        replanner = QueryReplanner(prepared, context, params)
        stages = StageRunner(context, self._evaluator, self._searcher, replanner, params)
        self._match = MatchPipeline(context, self._evaluator, replanner, stages.run)

    @property
    def profile(self) -> Profile:
        """The operators executed so far."""
        return self._context.profile

    def run(self, *, profiling: bool = False) -> pa.Table | Projection:
        """Return the result; a large one is fetched in batches. Column names may repeat.

        With `profiling` the notes of the operators are collected.
        """
        self._context.watch.profiling = profiling
        with watching(self._context.watch):
            self._context.check()
            if self._live is not None:
                prepared = self.prepared
                bindings = self._match.rows(
                    self.plan.pipeline, self._live, distinct=prepared.distinct, expected=prepared.expected
                )
                audit_bindings(self._context, bindings)
                started = time.perf_counter()
                table = aggregate(self.plan, bindings, self._evaluator)
                first, count = self._shown(table.num_rows)
                table = table.slice(first, count) if count < table.num_rows else table
                self.profile.note("group", table.num_rows, started)
                return table
            ordered = OrderedRows(
                self.plan, self._context, self._evaluator, self._searcher, self._match, self.prepared.expected
            )
            bindings = ordered.rows()
            # No operator has counted the rows of a scan alone.
            self._context.check_size(bindings.count, len(bindings.bound))
            first, count = self._shown(bindings.count)
            if count < bindings.count:
                bindings = bindings.take(np.arange(first, first + count))
            audit_bindings(self._context, bindings)
            rows = Projection(self.plan, bindings, self._evaluator, self._context.watch)
            if rows.is_large:
                return rows
            started = time.perf_counter()
            table = rows.table()
            self.profile.note("return", table.num_rows, started)
            return table

    def _shown(self, found: int) -> tuple[int, int]:
        """Return the first of the rows that belongs to the result, and the number of rows of the result."""
        first = min(self.plan.skip, found)
        count = found - first
        if self._page is not None and count > self._page.rows:
            self.more, count = True, self._page.rows
        return first, count
