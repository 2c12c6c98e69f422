"""Runs a read on Spark, with the same plan, snapshot and result as `operations.read`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.engine.exec.cancellation import watching
from omnigraph.engine.result.result import Result
from omnigraph.errors import InputError
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.read import result_of
from omnigraph.operations.requests import ReadRequest
from omnigraph.query.params import bind_params
from omnigraph.spark.dataframe_lowering import run_on_spark
from omnigraph.spark.scans import Scan, job_of
from omnigraph.spark.session import find_active, session_for
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import Repository

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_on_spark(context: GraphContext, snapshot: Snapshot, request: ReadRequest) -> Result:
    """Run one read query on a snapshot; of its limits, only time and cancellation apply."""
    started = time.perf_counter()
    watch = request.limits.watch()
    with watching(watch):
        watch.check()
        plan = context.plans.get_read(snapshot, request.query).logical
        bound = bind_params(plan.params, request.query.params)
    with session_for(request.spark, context.environ) as session, watching(watch):
        table = run_on_spark(
            session,
            plan,
            context.catalogs.of(snapshot),
            job_of(context.repository, snapshot),
            bound.values,
            now_ms=context.repository.clock() // 1000,
            watch=request.watch,
        )
    return result_of(table, plan, snapshot, (time.perf_counter() - started) * 1000)


def table_dataframe(
    repository: Repository,
    snapshot: Snapshot,
    key: str,
    columns: Sequence[str],
    known: Sequence[str],
    *,
    spark: SparkSession | None = None,
    filter: str | None = None,
) -> DataFrame:
    """Return a table of a snapshot as a DataFrame on the given or the active session."""
    session = spark if spark is not None else find_active()
    if session is None:
        raise InputError(
            "a DataFrame needs a Spark session, and none is active",
            hint="open a session first: with omnigraph.spark.open_session() as spark: …",
        )
    check_columns(key, columns, known)
    return Scan(job_of(repository, snapshot), key, {name: name for name in columns}, filter=filter).frame(session)


def check_columns(key: str, columns: Sequence[str], known: Sequence[str]) -> None:
    """Raise `InputError` if the type lacks a column."""
    for name in columns:
        if name not in known:
            raise InputError(
                f"type '{key.partition(':')[2]}' has no column '{name}'",
                hint=did_you_mean(name, known) or f"it has {listing(known)}",
            )
