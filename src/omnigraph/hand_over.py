"""Hand-over of queries to Spark: a query whose rows exceed the memory budget runs on Spark if Spark is configured.

The in-process engine compares the estimated size of a match with the budget, and the actual size before an operator
produces its rows. Spark is configured if a session is active in this process, or by the variable `OMNIGRAPH_SPARK`:
`local`, the URL of a master, or the URL of a Spark Connect server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omnigraph.errors import Hint, LimitReached

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.spark.session import SessionOptions

SPARK = "OMNIGRAPH_SPARK"
"""Environment variable: where queries run that exceed the memory budget."""
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def find_spark(environ: Mapping[str, str]) -> SparkSession | SessionOptions | None:
    """Return the active session, or the options that the environment gives; None if Spark is not configured."""
    from omnigraph.spark.session import SessionOptions, find_active  # noqa: PLC0415 (only for large queries)

    active = find_active()
    where = environ.get(SPARK, "").strip()
    if active is not None or not where:
        return active
    if where == "local":
        return SessionOptions()
    return SessionOptions(remote=where) if where.startswith("sc://") else SessionOptions(master=where)


def with_spark_hint(error: LimitReached) -> LimitReached:
    """Return the error of a query that does not fit the memory budget, with the hint to run it on Spark."""
    given = error.hint or ""
    plain = given.cli if isinstance(given, Hint) else given
    error.hint = Hint(
        f"{given}, or run it on Spark: engine='spark' ({SPARK}=local does so for every query that needs it)",
        cli=f"{plain}, or run it with --engine spark",
    )
    return error


def engine_line(estimated: float, limit: int, environ: Mapping[str, str]) -> str:
    """Return the line of a plan that names the engine and the reason; empty if the match fits the memory budget."""
    if estimated <= limit:
        return ""
    reason = f"estimated {_size(estimated)} of {_size(limit)}"
    if find_spark(environ) is None:
        return f"  engine  memory: {reason}, and Spark is not configured\n"
    return f"  engine  spark: {reason}\n"


def _size(number: float) -> str:
    unit = 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:,.1f} {_UNITS[unit]}" if unit else f"{number:,.0f} {_UNITS[0]}"
