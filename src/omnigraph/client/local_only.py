"""Methods and parameters of `Graph` that a remote graph does not have, with what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.bulk_options import BulkOptions
from omnigraph.errors import InputError

LOCAL_METHODS: Mapping[str, str] = {
    "Snapshot.table": "read the type with to_arrow or to_batches, at the commit of the snapshot",
    "Snapshot.entity": "read the row with get, at the commit of the snapshot",
    "resolve": "open the graph in its storage to find candidates; unify the pairs here",
    "sql": "open the graph in its storage to run SQL, or register to_batches('Type') with a DuckDB connection",
    "duckdb": "open the graph in its storage to run SQL, or register to_batches('Type') with a DuckDB connection",
    "show": "show a result: graph.query(…).show(), or open the graph in its storage",
    "to_spark": "open the graph in its storage to read it with Spark, or use to_batches",
    "with_access": "the server enforces the policy of its graph for the actor of the token",
    "with_metadata": "give the call a message; the server records the request id in the commit",
}
"""Method → hint."""
LOCAL_PARAMETERS: Mapping[str, str] = {
    "data": "pass frame.toArrow() for each type, or load Spark DataFrames into the graph in its storage",
    "engine='spark'": "open the graph in its storage to use Spark, or omit engine",
    "spark": "open the graph in its storage to use Spark, or omit spark",
    "out": "name a folder of this machine",
    "actor": "the server takes the actor from the token; connect with the token of that actor",
    "format='duckdb'": "open the graph in its storage to write a DuckDB file, or export to parquet",
    "partitioned": "a server sends whole tables; omit partitioned, or open the graph in its storage",
    "policy": "the server enforces the policy of its graph",
    "blob_sources": "the server copies no files; give the bytes of a Blob as base64 text",
    "approximate": "the server decides by its configuration; a query can permit an index: nearest($x.v, $q, approx)",
    "read_only": "the server decides by the policy what the token may write",
}
"""Parameter → hint."""


def not_remote(method: str) -> InputError:
    """Return the error of a method that only an embedded graph has."""
    return InputError(f"'{method}' is not available over HTTP", code="not_remote", hint=LOCAL_METHODS[method])


def local_parameter(method: str, parameter: str) -> InputError:
    """Return the error of a parameter that only an embedded graph has."""
    return InputError(
        f"'{parameter}' of '{method}' is not available over HTTP", code="not_remote", hint=LOCAL_PARAMETERS[parameter]
    )


def check_engine(method: str, engine: str, spark: Any) -> None:
    """Refuse Spark, and an engine that does not exist."""
    if engine == "spark":
        raise local_parameter(method, "engine='spark'")
    if spark is not None:
        raise local_parameter(method, "spark")
    BulkOptions(engine)
