"""The first start of Spark on a machine, for its own sake: later ones find the archive of its classes.

`python -m omnigraph.spark.warm_up` is a step of a set-up, where half a minute more does not matter. Without it,
whoever starts Spark first waits twice as long as everybody after.
"""

from __future__ import annotations

import sys
from typing import Any

from omnigraph.errors import SparkError
from omnigraph.spark.runner import SparkRunner
from omnigraph.spark.session import open_session


def _same(job: None, piece: int) -> int:  # noqa: ARG001 (what a task is given)
    return piece


def main() -> None:
    """Run one task, and wait until the JVM has written down what it learned."""
    try:
        with open_session() as spark:
            list(SparkRunner(spark).run("start", _same, None, [0]))
    except SparkError as error:
        sys.exit(f"{error}\nhint: {error.hint}" if error.hint else str(error))
    from pyspark import SparkContext  # noqa: PLC0415

    gateway: Any = SparkContext._gateway
    # The JVM ends when nobody can write to it any more.
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main()
