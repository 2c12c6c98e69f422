"""Work on a Spark session that was stopped, and a load whose JVM dies after the publish; prints what follows.

python -m support.lost_jvm FOLDER OPTIONS
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.errors import SparkError
from omnigraph.spark import SessionOptions, SparkRunner, open_session
from support.writes import edge, new_graph, node, write_jsonl

SCHEMA = "node P { name: String @key }\nedge K: P -> P\nedge L: P -> P"
PEOPLE = "query q() { match { $p: P } return { $p.name } }"


def main(folder: Path, options: SessionOptions) -> dict[str, Any]:
    """Return the code of the error of the stopped session, the notes of the load and the number of loaded nodes."""
    return {"stopped": stopped(options), **loaded(folder, options)}


def stopped(options: SessionOptions) -> str:
    """Run a task on a stopped session."""
    with open_session(options) as spark:
        runner = SparkRunner(spark)
    try:
        list(runner.run("ends", max, 1, [2]))
    except SparkError as error:
        return str(error.code)
    return "none"


def loaded(folder: Path, options: SessionOptions) -> dict[str, Any]:
    """Load two edge types; kill the JVM when the workers build the first one."""

    def watch(progress: Any) -> None:
        from pyspark import SparkContext  # noqa: PLC0415

        if progress.step == "ends":
            os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)

    graph = new_graph(folder, SCHEMA)
    names = [f"n{at}" for at in range(40)]
    records = [*(node("P", name=name) for name in names), *(edge(kind, "n0", name) for kind in "KL" for name in names)]
    path = write_jsonl(folder / "in.jsonl", records)
    with tuning.replaced(segment_rows_min=5, adjacency_disk_edges_min=1, adjacency_divided_edges_min=1):
        result = graph.load(path, mode="append", engine="spark", spark=options, watch=watch)
    return {"notes": result.notes, "nodes": len(og.open(graph.uri, environ={}).query(PEOPLE).to_rows())}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=SessionOptions))))
