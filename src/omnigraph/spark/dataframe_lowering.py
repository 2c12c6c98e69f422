"""Lowers a read query to joins of DataFrames, for graphs larger than one machine.

A row of the match is a row of a DataFrame: the ids of its variables, and the properties that later operators need.
Scans and expressions run in the Python workers (`scans`, `arrow_udfs`). Spark itself runs joins by id, distinct,
groups, order and limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.engine.plan.limit_offset import Page, apply_limit
from omnigraph.engine.search.searcher import EmbedQuery, Searcher
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import Watch
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog
from omnigraph.spark.bindings import Bindings
from omnigraph.spark.lowering_context import LoweringContext
from omnigraph.spark.match_lowering import MatchLowering
from omnigraph.spark.rank_lowering import RankLowering
from omnigraph.spark.rank_values import rank_values, separate_ranks
from omnigraph.spark.result_lowering import ResultLowering

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_on_spark(
    spark: SparkSession,
    plan: ir.QueryIR,
    catalog: Catalog,
    job: Job,
    params: Mapping[str, Any],
    *,
    now_ms: int,
    embed: EmbedQuery | None = None,
    page: Page | None = None,
    watch: Watch | None = None,
) -> tuple[pa.Table, bool]:
    """Run a read on the snapshot that `job` pins; the result equals that of `engine.exec.executor`.

    Also return whether there are rows after the requested page.
    """
    plan = apply_limit(plan, params, page)
    values = {**params, ir.NOW: now_ms}
    separated = separate_ranks(plan)
    context = LoweringContext(spark, separated.plan, catalog, job, values, watch)
    if separated.ranks:
        searcher = Searcher(catalog, values, embed, context.types)
        context.ranks = rank_values(spark, separated.ranks, context.types, catalog, job, searcher, context.actions)
        for ranking in separated.rankings.values():
            context.need(ranking.var, ranking.columns)
        context.rankings = {
            stage: RankLowering(context, ranking, searcher) for stage, ranking in separated.rankings.items()
        }
    rows = MatchLowering(context).rows(separated.plan.pipeline, Bindings())
    return ResultLowering(context, separated.plan, page=page).table(rows)
