"""Runs a read: the pipeline over numbers, then columns, groups, order, limit.

Rows are columns of numbers until the end; properties are fetched for the rows that survive. A query sees
one snapshot, its work is bounded (`Limits`), and it can be stopped between operations.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from omnigraph.engine.aggregate import aggregate
from omnigraph.engine.data import DataCache
from omnigraph.engine.evaluate import Evaluator
from omnigraph.engine.frames import Frame
from omnigraph.engine.match import Match
from omnigraph.engine.ordered import Ordered, column_expr
from omnigraph.engine.search import EmbedQuery, Searcher
from omnigraph.engine.text import Scores
from omnigraph.engine.work import Limits, Profile, Work
from omnigraph.query import ir
from omnigraph.schema.catalog import Catalog
from omnigraph.versioning.snapshot import Snapshot


class Execution:
    """One run of one plan on one snapshot."""

    def __init__(
        self,
        plan: ir.QueryIR,
        catalog: Catalog,
        snapshot: Snapshot,
        params: Mapping[str, Any],
        cache: DataCache,
        *,
        now_ms: int,
        embed: EmbedQuery | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.plan = plan
        self._work = Work(catalog, snapshot, cache, limits or Limits())
        values = {**params, ir.NOW: now_ms}
        types = dict(_types(plan.pipeline))
        self._searcher = Searcher(catalog, values, embed, types)
        self._evaluator = Evaluator(catalog, values, self._searcher, types)

    @property
    def profile(self) -> Profile:
        """What happened so far."""
        return self._work.profile

    def run(self) -> pa.Table:
        """The result; column names may repeat."""
        if self.plan.is_aggregate:
            frame = Match(self._work, self._evaluator).rows(self.plan)
            started = time.perf_counter()
            table = aggregate(self.plan, frame, self._evaluator)
        else:
            rows = Ordered(self.plan, self._work, self._evaluator, self._searcher).rows()
            started = time.perf_counter()
            table = self._project(*rows)
        self.profile.note("result", table.num_rows, started)
        return table

    def _project(self, frame: Frame, fused: Scores | None) -> pa.Table:
        exprs = [column_expr(self.plan, column.expr) for column in self.plan.columns]
        # A fused score depends on every candidate, so it is the one that ordered the rows, or none.
        arrays = [pa.array(fused) if isinstance(e, ir.Rrf) else self._evaluator.value(e, frame) for e in exprs]
        return pa.Table.from_arrays(arrays, names=[column.name for column in self.plan.columns])


def _types(pipeline: ir.Pipeline) -> Iterator[tuple[str, str]]:
    """Variable → node type."""
    for op in pipeline:
        if isinstance(op, ir.NodeScan):
            yield op.var, op.type_name
        elif isinstance(op, ir.Expand):
            yield op.dst_var, op.dst_type
        elif isinstance(op, ir.AntiJoin):
            yield from _types(op.inner)
