"""Plans the rest of a running match again, with the actual number of rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from omnigraph.engine.exec.adaptive import MeasuredHop, Replanned
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.plan.prepared_query import PreparedQuery
from omnigraph.query.plan import ir

if TYPE_CHECKING:
    from omnigraph.engine.optimizer.optimize import RestOptimizer


class QueryReplanner:
    """Plans pipelines of one execution again."""

    def __init__(self, prepared: PreparedQuery, context: ExecutionContext, values: Mapping[str, Any]) -> None:
        self._prepared = prepared
        self._context = context
        self._values = values

    @cached_property
    def _optimizer(self) -> RestOptimizer:
        from omnigraph.engine.optimizer.optimize import RestOptimizer  # noqa: PLC0415 (only to plan again)
        from omnigraph.engine.statistics.graph_statistics import GraphStatistics  # noqa: PLC0415

        context = self._context
        visibility = None if context.guard is None else context.guard.visibility.of_policy
        statistics = GraphStatistics(context.catalog, context.snapshot, context.cache, visibility)
        return RestOptimizer(self._prepared.plan, statistics, self._values)

    def replan(
        self,
        rest: ir.Pipeline,
        bound: Collection[str],
        rows: int,
        live: frozenset[str] | None,
        *,
        measured: MeasuredHop | None = None,
        joins: bool = True,
    ) -> Replanned | None:
        """Return operators for `rows` rows that bind some variables; None if their order is fixed."""
        return self._optimizer.rest(rest, frozenset(bound), rows, live, measured, joins=joins)

    def seeded(
        self, block: ir.Pipeline, seeds: Mapping[str, int], live: frozenset[str] | None
    ) -> tuple[str, Replanned] | None:
        """Return operators of a block for given nodes of one of some variables, and the variable; None if that does not
        pay.
        """
        return self._optimizer.seeded(block, seeds, live)
