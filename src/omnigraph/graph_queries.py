"""`GraphQueries`: the part of `Graph` that runs, explains and checks queries, and runs graph algorithms."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.engine.exec.context import NO_LIMITS, MatchTooLarge, bytes_limit
from omnigraph.engine.plan.prepared_query import PreparedQuery
from omnigraph.operations.read import read
from omnigraph.operations.requests import ExceedsBudget, Executor, PageRequest, QueryText, ReadRequest
from omnigraph.query.params import bind_params, valid_params

if TYPE_CHECKING:
    from omnigraph.bulk_options import BulkOptions
    from omnigraph.engine.result.result import Result
    from omnigraph.notebook.tables import PlanText
    from omnigraph.operations.analysis.request import Analysis, AnalysisRequest
    from omnigraph.operations.graph_context import GraphContext
    from omnigraph.query.lint import LintReport
    from omnigraph.query.plan import ir
    from omnigraph.query.visibility import Visibility
    from omnigraph.versioning.model.snapshot import Snapshot
    from omnigraph.versioning.write.transaction import WriteOptions


class GraphQueries:
    """Queries and algorithms on one opened graph."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context

    def read(self, request: ReadRequest) -> Result:
        """Run a read by the executor that the request names."""
        if request.executor == "spark":
            from omnigraph.spark.reads import read_on_spark

            return read_on_spark(self._context, request)
        if request.executor == "auto" and self._context.has_row_rules:
            # The estimates that hand a query over come from all rows.
            request = request._replace(executor="memory")
        if request.executor != "auto":
            return self._in_process(request)
        started = time.monotonic()
        try:
            return self._in_process(request)
        except (ExceedsBudget, MatchTooLarge) as reason:
            return self._hand_over(request, reason, started)

    def _hand_over(self, request: ReadRequest, reason: ExceedsBudget | MatchTooLarge, started: float) -> Result:
        """Run a read on Spark that exceeds the memory budget; in process if Spark is not configured."""
        from omnigraph.hand_over import find_spark, with_spark_hint

        spark = find_spark(self._context.environ)
        if spark is not None:
            limits = request.limits
            if limits.timeout_s is not None:
                limits = replace(limits, timeout_s=max(limits.timeout_s - (time.monotonic() - started), 0.0))
            return self.read(request._replace(executor="spark", spark=spark, limits=limits))
        if isinstance(reason, MatchTooLarge):
            raise with_spark_hint(reason)
        try:
            # The estimate can be too high; the executor tests the actual sizes.
            return self._in_process(request._replace(executor="memory"))
        except MatchTooLarge as error:
            raise with_spark_hint(error) from None

    def _in_process(self, request: ReadRequest) -> Result:
        context = self._context
        if request.page is not None:
            from omnigraph.operations.paging import read_page

            return read_page(context, request)
        snapshot = context.snapshot(request.branch, request.at)
        return read(context, snapshot, request).result

    def pages(self, request: ReadRequest) -> Iterator[Result]:
        """Yield the requested page and all later ones."""
        result = self.read(request)
        yield result
        while result.next is not None:
            assert request.page is not None, "only a page has a next one"
            # A cursor contains its commit, so later pages name no point in time.
            request = request._replace(at=None, page=PageRequest(request.page.rows, result.next))
            result = self.read(request)
            yield result

    def explain(self, snapshot: Snapshot, query: QueryText) -> PlanText:
        """Return the plan of a query with estimated row counts; parameters are checked if there are any."""
        visibility = self._context.visibility_of(snapshot)
        prepared = self._context.plans.get(snapshot, query, visibility)
        if query.params is not None:
            plan = prepared.plan if isinstance(prepared, PreparedQuery) else prepared
            bind_params(plan.params, query.params)
        return self._explained(snapshot, prepared, visibility)

    def explain_known(self, snapshot: Snapshot, plan_hash: str) -> PlanText | None:
        """Return the plan of a query that ran before, by its hash; None if no such plan is in memory.

        A caller whom rules limit finds the plans of callers who see the same.
        """
        visibility = self._context.visibility_of(snapshot)
        prepared = self._context.plans.find(plan_hash, visibility)
        return None if prepared is None else self._explained(snapshot, prepared, visibility)

    def _explained(
        self,
        snapshot: Snapshot,
        prepared: PreparedQuery | ir.MutationIR,
        visibility: Visibility | None,
    ) -> PlanText:
        from omnigraph.engine.plan.explain import PlanExplainer
        from omnigraph.hand_over import engine_line
        from omnigraph.notebook.tables import PlanText
        from omnigraph.query.plan.explain import explain
        from omnigraph.query.plan.plan_hash import plan_hash
        from omnigraph.query.plan.plan_tree import plan_tree

        plan = prepared.plan if isinstance(prepared, PreparedQuery) else prepared
        if not isinstance(prepared, PreparedQuery):
            return PlanText(explain(prepared), plan_hash(plan), plan_tree(plan))
        if visibility is not None:
            # Estimates come from all rows.
            return PlanText(explain(plan), prepared.plan_hash, plan_tree(plan))
        explained = PlanExplainer(prepared, snapshot, self._context.cache)
        limit = bytes_limit(NO_LIMITS, self._context.cache)
        engine = engine_line(prepared.estimated_bytes, limit, self._context.environ)
        text, tree = explained.before()
        tree["notes"] += [line.strip() for line in engine.splitlines()]
        return PlanText(text + engine, prepared.plan_hash, tree)

    def profile(self, request: ReadRequest) -> PlanText:
        """Run a read by the pipeline and return its plan with actual row counts and times."""
        from omnigraph.engine import kernels
        from omnigraph.engine.plan.explain import PlanExplainer
        from omnigraph.notebook.tables import PlanText

        snapshot = self._context.snapshot(request.branch, request.at)
        before_s = kernels.fallback_s()
        result, _, execution = read(self._context, snapshot, request, profile=True)
        assert execution is not None, "the pipeline ran"
        prepared, given = execution.prepared, request.query.params or {}
        values = valid_params(prepared.plan.params, given)
        explained = PlanExplainer(prepared, snapshot, self._context.cache, values)
        text, tree = explained.after(
            execution.profile,
            rows=len(result),
            elapsed_ms=result.elapsed_ms,
            estimates=self._context.visibility_of(snapshot) is None,
        )
        if kernels.fallback_s() > before_s and not kernels.can_compile():
            text += f"\nnote: {kernels.NOT_INSTALLED}"
        return PlanText(text, prepared.plan_hash, tree)

    def analyze(self, request: AnalysisRequest, snapshot: Snapshot, bulk: BulkOptions) -> Analysis:
        """Run an algorithm on a snapshot."""
        from omnigraph.engine_choice import solving
        from omnigraph.operations.analysis.analyze import analyze

        with solving(self._context.repository, bulk, self._context.environ) as solve:
            return analyze(self._context, snapshot, request, solve)

    def analyze_and_write(
        self, request: AnalysisRequest, into: str | Mapping[str, str], options: WriteOptions, bulk: BulkOptions
    ) -> Analysis:
        """Run an algorithm on the head of a branch and write its values to properties as one commit."""
        from omnigraph.engine_choice import solving
        from omnigraph.operations.analysis.write_values import analyze_and_write

        with solving(self._context.repository, bulk, self._context.environ) as solve:
            return analyze_and_write(self._context, request, into, options, solve)

    def lint(self, snapshot: Snapshot, source: str | Path, language: str = "gq") -> LintReport:
        """Check every query of a text or file against the schema of a snapshot, or check a schema."""
        from omnigraph.query.editor import check_language, lint_text
        from omnigraph.storage.files.input_files import read_source

        text, source_name = read_source(source)
        where = {"kind": "graph", "uri": self._context.repository.location.uri}
        chosen, catalog = check_language(language), self._context.catalog(snapshot)
        return lint_text(text, chosen, catalog, query_path=source_name, schema_source=where)


def executor_of(engine: str, spark: Any) -> Executor:
    """Return the executor that the arguments `engine` and `spark` of a query name; a given session selects Spark."""
    if engine == "auto" and spark is None:
        return "auto"
    from omnigraph.bulk_options import BulkOptions

    chosen = BulkOptions(engine, spark)
    return "spark" if chosen.engine == "spark" or spark is not None else "memory"
