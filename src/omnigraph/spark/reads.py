"""Runs a read on Spark: the same plan, the same snapshot and the same answer as `operations.read`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.engine.exec.cancellation import watching
from omnigraph.engine.exec.context import Limits
from omnigraph.engine.result.result import Result
from omnigraph.errors import InputError
from omnigraph.operations.catalog_cache import Catalogs
from omnigraph.operations.read import Plans, get_read, result_of
from omnigraph.pipeline.runner import Watch
from omnigraph.query.params import bind_params
from omnigraph.spark.dataframe_lowering import run_on_spark
from omnigraph.spark.scans import Scan, job_of
from omnigraph.spark.session import SessionOptions, find_active, session_for
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import Repository

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_on_spark(
    repository: Repository,
    snapshot: Snapshot,
    catalogs: Catalogs,
    plans: Plans,
    source: str,
    name: str | None,
    params: dict[str, Any] | None,
    *,
    spark: SparkSession | SessionOptions | None,
    environ: Mapping[str, str],
    watch: Watch | None = None,
    limits: Limits | None = None,
    source_name: str = "<query>",
) -> Result:
    """Run one read query of `source` on a snapshot; of `limits` only time and cancellation matter here."""
    started = time.perf_counter()
    query_watch = (limits or Limits()).watch()
    with watching(query_watch):
        query_watch.check()
        plan = get_read(snapshot, catalogs, plans, source, name, source_name, params).plan
        bound = bind_params(plan.params, params)
    with session_for(spark, environ) as session, watching(query_watch):
        table = run_on_spark(
            session,
            plan,
            catalogs.of(snapshot),
            job_of(repository, snapshot),
            bound.values,
            now_ms=repository.clock() // 1000,
            watch=watch,
        )
    return result_of(table, plan, snapshot, (time.perf_counter() - started) * 1000)


def table_frame(
    repository: Repository,
    snapshot: Snapshot,
    key: str,
    columns: Sequence[str],
    known: Sequence[str],
    *,
    spark: SparkSession | None = None,
    filter: str | None = None,
) -> DataFrame:
    """A table of a snapshot as a frame, which lives as long as the session it is on: the one given, or the active."""
    session = spark if spark is not None else find_active()
    if session is None:
        raise InputError(
            "a frame needs a Spark session, and none is active",
            hint="open one around the work: with omnigraph.spark.open_session() as spark: …",
        )
    check_columns(key, columns, known)
    return Scan(job_of(repository, snapshot), key, {name: name for name in columns}, filter=filter).frame(session)


def check_columns(key: str, columns: Sequence[str], known: Sequence[str]) -> None:
    """Every column is one the type has."""
    for name in columns:
        if name not in known:
            raise InputError(
                f"type '{key.partition(':')[2]}' has no column '{name}'",
                hint=did_you_mean(name, known) or f"it has {listing(known)}",
            )
