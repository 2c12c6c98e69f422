"""Runs a read: the pipeline over numbers, then columns, groups, order, limit.

Rows are columns of numbers until the end; properties are fetched for the rows that survive. A query sees
one snapshot, its work is bounded (`Limits`), and it can be stopped between operations.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.aggregate import aggregate
from omnigraph.engine.data import DataCache
from omnigraph.engine.evaluate import Evaluator
from omnigraph.engine.frames import Frame
from omnigraph.engine.match import Match
from omnigraph.engine.ranks import id_ranks_of
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
        searcher = Searcher(catalog, values, embed, dict(_types(plan.pipeline)))
        self._searcher = searcher
        self._evaluator = Evaluator(catalog, values, searcher)

    @property
    def profile(self) -> Profile:
        """What happened so far."""
        return self._work.profile

    def run(self) -> pa.Table:
        """The result; column names may repeat."""
        frame = Match(self._work, self._evaluator).rows(self.plan)
        started = time.perf_counter()
        if self.plan.is_aggregate:
            table = aggregate(self.plan, frame, self._evaluator)
        else:
            table = self._project(*self._ordered(frame))
        self.profile.note("result", table.num_rows, started)
        return table

    # -- the result ------------------------------------------------------------------------------

    def _ordered(self, frame: Frame) -> tuple[Frame, Scores | None]:
        """The rows in their final order, and the fused scores they were ordered by, if they were."""
        keys: list[np.ndarray[Any, Any]] = []
        ranked: str | None = None
        fused: Scores | None = None
        for key in self.plan.order_by:
            expr = key.expr
            if isinstance(expr, ir.Nearest | ir.Bm25 | ir.Rrf):
                ranked = (expr.arms[0] if isinstance(expr, ir.Rrf) else expr).prop.var
                frame, rank_keys = self._rank(expr, frame)
                keys += rank_keys
                fused = -rank_keys[0] if isinstance(expr, ir.Rrf) else None
                continue
            if isinstance(expr, ir.ColumnRef):
                expr = self._column_expr(expr)
            codes = self._evaluator.codes(expr, frame)
            keys.append(-codes if key.descending else codes)
        if not self.plan.order_by:
            limit = self.plan.limit
            return (frame if limit is None or limit >= frame.count else frame.take(np.arange(limit))), None
        names = frame.named()
        if ranked is not None:
            # The rows of a ranked entity come in the order of their edges.
            edges = {op.edge_var for op in self.plan.pipeline if isinstance(op, ir.Expand)}
            names.sort(key=lambda name: (name != ranked, name not in edges, name))
        keys += [id_ranks_of(frame.bound[name]) for name in names]
        order = np.lexsort(tuple(reversed(keys)))
        if self.plan.limit is not None:
            order = order[: self.plan.limit]
        return frame.take(order), fused[order] if fused is not None else None

    def _rank(self, rank: ir.Rank, frame: Frame) -> tuple[Frame, list[np.ndarray[Any, Any]]]:
        """Drop the rows a ranking does not take, and give its sort keys."""
        if isinstance(rank, ir.Rrf):
            bound = frame.bound[rank.arms[0].prop.var]
            limit = self.plan.limit if self.plan.limit is not None else frame.count
            rows, score, first, second = self._searcher.fuse(rank, bound, limit)
            return frame.take(rows), [-score, first, second]
        bound = frame.bound[rank.prop.var]
        if isinstance(rank, ir.Nearest):
            assert self.plan.limit is not None, "the type checker asks for a limit"
            frame = frame.take(self._searcher.promising(rank, bound, self.plan.limit))
            distances, _ = self._searcher.distances(rank, frame.bound[rank.prop.var])
            return frame, [distances]
        rows, scores = self._searcher.relevant(rank, bound, self.plan.limit)
        return frame.take(rows), [-scores]

    def _project(self, frame: Frame, fused: Scores | None) -> pa.Table:
        exprs = [self._column_expr(column.expr) for column in self.plan.columns]
        # A fused score depends on every candidate, so it is the one that ordered the rows, or none.
        arrays = [pa.array(fused) if isinstance(e, ir.Rrf) else self._evaluator.value(e, frame) for e in exprs]
        return pa.Table.from_arrays(arrays, names=[column.name for column in self.plan.columns])

    def _column_expr(self, expr: ir.Expr) -> ir.Expr:
        while isinstance(expr, ir.ColumnRef):
            expr = self.plan.columns[expr.index].expr
        return expr


def _types(pipeline: ir.Pipeline) -> Iterator[tuple[str, str]]:
    """Variable → node type."""
    for op in pipeline:
        if isinstance(op, ir.NodeScan):
            yield op.var, op.type_name
        elif isinstance(op, ir.Expand):
            yield op.dst_var, op.dst_type
        elif isinstance(op, ir.AntiJoin):
            yield from _types(op.inner)
