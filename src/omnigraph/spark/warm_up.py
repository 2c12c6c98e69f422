"""First start of Spark on a machine: writes the class archive that speeds up later starts.

`python -m omnigraph.spark.warm_up` is a step of the setup, which takes half a minute. Without it, the first command
that starts Spark takes twice as long as later ones.
"""

from __future__ import annotations

import sys
from typing import Any

from omnigraph.errors import SparkError
from omnigraph.spark.runner import SparkRunner
from omnigraph.spark.session import open_session


def _same(job: None, item: int) -> int:  # noqa: ARG001 (the signature of tasks)
    return item


def main() -> None:
    """Run one task, and wait until the JVM has written the archive."""
    try:
        with open_session() as spark:
            list(SparkRunner(spark).run("start", _same, None, [0]))
    except SparkError as error:
        sys.exit(f"{error}\nhint: {error.hint}" if error.hint else str(error))
    from pyspark import SparkContext  # noqa: PLC0415

    gateway: Any = SparkContext._gateway
    # The JVM exits when its stdin is closed.
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main()
