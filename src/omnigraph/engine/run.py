"""Runs a read: the pipeline over numbers, then columns, groups, order, limit.

Rows are columns of numbers until the end; properties are fetched for the rows that survive. A query sees
one snapshot, its work is bounded (`Limits`), and it can be stopped between operations.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from omnigraph.engine.aggregate import aggregate
from omnigraph.engine.data import DataCache
from omnigraph.engine.evaluate import Evaluator
from omnigraph.engine.frames import Frame
from omnigraph.engine.match import Match
from omnigraph.engine.ordered import Ordered, column_expr
from omnigraph.engine.prepared import Prepared
from omnigraph.engine.search import EmbedQuery, Searcher
from omnigraph.engine.text import Scores
from omnigraph.engine.work import Limits, Profile, Work
from omnigraph.query import ir
from omnigraph.versioning.snapshot import Snapshot

_NO_LIMITS = Limits()


class Execution:
    """One run of one plan on one snapshot."""

    def __init__(
        self,
        prepared: Prepared,
        snapshot: Snapshot,
        params: Mapping[str, Any],
        cache: DataCache,
        *,
        now_ms: int,
        embed: EmbedQuery | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.plan = prepared.plan
        self._live = prepared.live
        catalog, types = prepared.catalog, prepared.types
        self._work = Work(catalog, snapshot, cache, limits or _NO_LIMITS)
        values = {**params, ir.NOW: now_ms}
        self._searcher = Searcher(catalog, values, embed, types)
        self._evaluator = Evaluator(catalog, values, self._searcher, types)

    @property
    def profile(self) -> Profile:
        """What happened so far."""
        return self._work.profile

    def run(self) -> pa.Table:
        """The result; column names may repeat."""
        if self._live is not None:
            frame = Match(self._work, self._evaluator).rows(self.plan.pipeline, self._live)
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
