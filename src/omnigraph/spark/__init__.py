"""Spark: the only package that imports PySpark.

    java                which Java to start, and how
    cds_archive         class data sharing archive, which halves the start time
    session             the one place that builds a session
    warm_up             first start on a machine, which writes the archive
    cancellable_action  actions with progress and cancellation
    runner              runs the tasks of `pipeline` on a session
    dataframe_input     DataFrames as the input of a load
    arrow_interop       stored types ↔ Spark types
    scans               tables as DataFrames, read by the workers
    arrow_udfs          query expressions, evaluated by the workers
    bindings            the rows of a match as a DataFrame
    lowering_context    what the operators of a query share
    visible_batches     what rules for rows show of the batches that workers read
    node_tables         the entities of a variable as a DataFrame
    worker_steps        conditions and values that the workers compute
    hops                expansion as pairs of nodes
    path_search         searches of paths as loops of joins
    path_columns        lengths, weights, nodes and edges of paths
    match_lowering      the operators of a match as joins
    rank_values         distances and scores, computed by the workers
    rank_lowering       order by a search, and the fusion of rankings
    aggregates          aggregates as Spark expressions
    result_lowering     columns, groups, order and limit
    dataframe_lowering  a read query as joins of DataFrames
    algorithms          whole-graph algorithms on DataFrames
    reads               `Graph.query` and `Graph.to_spark` on Spark
    data_source         the data source `omnigraph`

All modules work on a session in this process, on a cluster, and through Spark Connect. PySpark is imported on first
use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.spark.data_source import OmniGraphDataSource
    from omnigraph.spark.dataframe_input import load
    from omnigraph.spark.runner import SparkRunner
    from omnigraph.spark.session import SessionOptions, open_session

__all__ = ["OmniGraphDataSource", "SessionOptions", "SparkRunner", "load", "open_session"]

_HOMES = {
    "OmniGraphDataSource": "omnigraph.spark.data_source",
    "SessionOptions": "omnigraph.spark.session",
    "SparkRunner": "omnigraph.spark.runner",
    "load": "omnigraph.spark.dataframe_input",
    "open_session": "omnigraph.spark.session",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'omnigraph.spark' has no attribute '{name}'")
    from importlib import import_module  # noqa: PLC0415

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
