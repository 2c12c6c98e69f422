"""Sessions for tests: one JVM for the whole run, and it starts fast."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from omnigraph.spark import SessionOptions, open_session

FAST = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "2",
    # Small jobs end before a better compiler pays.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


@contextmanager
def local_session() -> Iterator[Any]:
    """A session in this process, with two cores and the retries of a cluster."""
    with open_session(SessionOptions(master="local[2,4]", config=FAST)) as spark:
        yield spark
