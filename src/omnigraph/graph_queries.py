"""Asking a graph, as methods: queries, pages of them, plans, profiles, lint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.engine.exec.context import Limits
from omnigraph.engine.plan.explain import Explained
from omnigraph.engine.plan.prepared_query import Prepared
from omnigraph.engine.result.result import Result
from omnigraph.engine_choice import BulkOptions
from omnigraph.graph_io import Transfer
from omnigraph.notebook.tables import Preformatted
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.paging import read_page
from omnigraph.operations.read import read
from omnigraph.operations.requests import Executor, PageRequest, Params, QueryText, ReadRequest, limits_of
from omnigraph.pipeline.runner import Watch
from omnigraph.query.lint import LintReport, lint
from omnigraph.query.params import bind_params
from omnigraph.query.plan.explain import explain
from omnigraph.storage.files.input_files import read_source
from omnigraph.versioning.write.repository import At


class Asking(Transfer):
    """What reads a graph by its queries, seen from one branch."""

    _context: GraphContext

    def query(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
        engine: str = "memory",
        spark: Any = None,
        watch: Watch | None = None,
        page: int | None = None,
        after: str | None = None,
    ) -> Result:
        """Run one read query, given as text or as the path of a `.gq` file, on one snapshot.

        A text is a whole `.gq` source or a bare `match … return …`, which takes the types of its parameters from their
        values. A mapping in second position is `params`.
        `timeout` is in seconds; `cancel` lets another thread stop the query; `limits` bounds what it may hold.
        With `engine="spark"` it runs as joins on Spark, for graphs larger than this machine: on `spark`, a session or
        `omnigraph.spark.SessionOptions`, else on the active session, else on one of its own.
        With `page` the result holds so many rows, and in `next` the cursor of the page behind it, if there is one:
        given back as `after`, it goes on at the same commit, whatever was written since.
        """
        request = ReadRequest(
            QueryText.of(source, name, params),
            branch or self.branch,
            at,
            limits_of(limits, timeout, cancel),
            PageRequest.of(page, after),
            executor_of(engine, spark),
            spark,
            watch,
        )
        return self._run(request)

    def pages(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        page: int = 100,
        after: str | None = None,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
    ) -> Iterator[Result]:
        """The pages of a query one by one, all at the commit of the first; `timeout` is for each."""
        request = ReadRequest(
            QueryText.of(source, name, params),
            branch or self.branch,
            at,
            limits_of(limits, timeout, cancel),
            PageRequest.of(page, after),
        )
        result = self._run(request)
        yield result
        while result.next is not None:
            # A cursor contains its commit, so later pages name no point in time.
            result = self._run(request._replace(at=None, page=PageRequest(page, result.next)))
            yield result

    def _run(self, request: ReadRequest) -> Result:
        """Run a read by the executor it names."""
        if request.page is not None:
            return read_page(self._context, request)
        snapshot = self._context.repository.snapshot(request.branch, request.at)
        if request.executor == "spark":
            from omnigraph.spark.reads import read_on_spark  # noqa: PLC0415 (PySpark is optional)

            return read_on_spark(self._context, snapshot, request)
        return read(self._context, snapshot, request).result

    def explain(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        at: At = None,
    ) -> Preformatted:
        """How a query will run, as text: its operations, the rows to expect, and what is used to find them."""
        query = QueryText.of(source, name, params)
        snapshot = self.snapshot(branch, at)
        prepared = self._context.plans.get(snapshot, query)
        plan = prepared.plan if isinstance(prepared, Prepared) else prepared
        if query.params is not None:
            bind_params(plan.params, query.params)
        if not isinstance(prepared, Prepared):
            return Preformatted(explain(prepared))
        return Preformatted(Explained(prepared, snapshot, self._context.cache).before())

    def profile(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        at: At = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> Preformatted:
        """Run a query and say what each operation did: rows after it beside those expected, milliseconds, and how."""
        query, limits = QueryText.of(source, name, params), limits_of(None, timeout, cancel)
        request = ReadRequest(query, branch or self.branch, at, limits, executor="pipeline")
        snapshot = self.snapshot(branch, at)
        result, _, execution = read(self._context, snapshot, request, profile=True)
        assert execution is not None, "the pipeline ran"
        explained = Explained(execution.prepared, snapshot, self._context.cache)
        return Preformatted(explained.after(execution.profile, rows=len(result), elapsed_ms=result.elapsed_ms))

    def lint(self, source: str | Path, *, branch: str | None = None) -> LintReport:
        """Check every query of a text or file against the branch's schema."""
        text, source_name = read_source(source)
        where = {"kind": "graph", "uri": self._repository.location.uri}
        return lint(self._context.catalogs.of(self.snapshot(branch)), text, query_path=source_name, schema_source=where)


def executor_of(engine: str, spark: Any) -> Executor:
    """Return the executor that the arguments `engine` and `spark` of a query name."""
    if engine == "memory" and spark is None:
        return "memory"
    return "spark" if BulkOptions(engine, spark).engine == "spark" else "memory"
