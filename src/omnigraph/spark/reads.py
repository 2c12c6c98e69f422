"""Runs a read on Spark, with the same plan, snapshot and result as `operations.read`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.engine.exec.cancellation import Watch, watching
from omnigraph.engine.plan.limit_offset import Page
from omnigraph.engine.result.result import Result
from omnigraph.errors import InputError
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.paging import open_page
from omnigraph.operations.read import embedding_at, result_of
from omnigraph.operations.requests import ReadRequest
from omnigraph.query.params import bind_params
from omnigraph.query.plan import ir
from omnigraph.query.valid_time import visibility_at
from omnigraph.query.visibility import Visibility
from omnigraph.spark.arrow_interop import quoted
from omnigraph.spark.dataframe_lowering import run_on_spark
from omnigraph.spark.scans import Scan, job_of
from omnigraph.spark.session import find_active, session_for
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import Repository

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_on_spark(context: GraphContext, request: ReadRequest) -> Result:
    """Run one read query, or one page of it; of its limits, only time and cancellation apply."""
    started = time.perf_counter()
    watch = request.limits.watch()
    if request.page is not None:
        opened = open_page(context, request, watch)
        run = _SparkRead(opened.snapshot, opened.prepared.logical, opened.params, opened.now_ms, opened.page)
        with opened.reading():
            table, more = run.table(context, request, watch)
        return opened.result(table, more=more)
    snapshot = context.snapshot(request.branch, request.at)
    with watching(watch):
        watch.check()
        plan = context.plans.get_read(snapshot, request.query, context.visibility_of(snapshot)).logical
        params = bind_params(plan.params, request.query.params)
    run = _SparkRead(snapshot, plan, params, context.repository.clock() // 1000)
    table, _ = run.table(context, request, watch)
    return result_of(table, plan, snapshot, (time.perf_counter() - started) * 1000)


@dataclass(frozen=True)
class _SparkRead:
    """A read whose snapshot, plan and parameters are known."""

    snapshot: Snapshot
    plan: ir.QueryIR
    params: Mapping[str, Any]
    now_ms: int
    page: Page | None = None

    def table(self, context: GraphContext, request: ReadRequest, watch: Watch) -> tuple[pa.Table, bool]:
        """Return the rows, and whether there are rows after the requested page."""
        seen = context.visibility_of(self.snapshot)
        catalog = context.catalogs.of(self.snapshot, seen)
        visibility = visibility_at(self.plan, catalog, self.params, self.now_ms, seen)
        job = job_of(context.repository, self.snapshot, visibility)
        with session_for(request.spark, context.environ) as session, watching(watch):
            return run_on_spark(
                session,
                self.plan,
                catalog,
                job,
                self.params,
                now_ms=self.now_ms,
                embed=embedding_at(context, self.snapshot),
                page=self.page,
                watch=request.watch,
            )


def table_dataframe(
    repository: Repository,
    snapshot: Snapshot,
    key: str,
    columns: Sequence[str],
    known: Sequence[str],
    *,
    spark: SparkSession | None = None,
    filter: str | None = None,
    visibility: Visibility | None = None,
) -> DataFrame:
    """Return a table of a snapshot as a DataFrame on the given or the active session.

    With a visibility, Spark applies `filter` to what is visible; else the workers apply it while they read.
    """
    session = spark if spark is not None else find_active()
    if session is None:
        raise InputError(
            "a DataFrame needs a Spark session, and none is active",
            hint="open a session first: with omnigraph.spark.open_session() as spark: …",
        )
    check_columns(key, columns, known)
    job = job_of(repository, snapshot, visibility)
    if visibility is None or filter is None:
        return Scan(job, key, {name: name for name in columns}, filter=filter).frame(session)
    frame = Scan(job, key, {name: name for name in known}).frame(session)
    return frame.filter(filter).select(*map(quoted, columns))


def check_columns(key: str, columns: Sequence[str], known: Sequence[str]) -> None:
    """Raise `InputError` if the type lacks a column."""
    for name in columns:
        if name not in known:
            raise InputError(
                f"type '{key.partition(':')[2]}' has no column '{name}'",
                hint=did_you_mean(name, known) or f"it has {listing(known)}",
            )
