"""Spark: the only package that imports PySpark.

    java       which Java to start, and how
    classes    a class-data archive that halves the start
    session    the one place that builds a session
    actions    one action, watched and cancellable
    runner     runs the tasks of `pipeline` on a session
    frames     frames as the input of a load
    columns    stored types as Spark has them
    scans      tables as frames, read by the workers
    evaluation expressions of a query, evaluated by the workers
    walks      hops as pairs of ids
    totals     aggregates, as Spark computes them
    plans      a read query as joins of frames
    analytics  whole-graph algorithms as frames
    reads      `Graph.query` and `Graph.to_spark` on Spark
    source     the data source `omnigraph`

Everything works alike on a session in this process, on a cluster, and through Spark Connect. Nothing of PySpark is
imported before it is used.
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
