"""Load, upsert, export and reload on the given Spark, including refused loads; print the results as JSON.

python -m support.bulk_script FOLDER '{"master": …} or {"remote": …}' [executor|driver]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.errors import OmniGraphError
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.pipeline.load import load_source
from omnigraph.pipeline.splits import plan_input
from omnigraph.pipeline.staged_input import FileSource
from omnigraph.spark import SessionOptions, SparkRunner, load, open_session
from support.killing import ONCE, KillingRunner
from support.writes import SHELVES, beside, shelf, write_jsonl

SHELF_COUNT = 400


def main(folder: Path, options: dict[str, Any], kill: str | None) -> None:
    """Run all steps."""
    graph = og.open(folder / "g", sync=False, environ={})
    found: dict[str, Any] = {}
    config = {"spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "2"}
    session = SessionOptions(**options, config=config if "master" in options else {})
    with open_session(session) as spark:
        runner: Any = SparkRunner(spark)
        if kill is not None:
            (folder / "g" / ONCE).write_text(str(os.getpid()) if kill == "driver" else kill)
            runner = KillingRunner(runner)
        source = FileSource(plan_input([str(folder / "in.jsonl")], {}, 2, split_bytes=4000))
        result = load_source(graph._repository, runner, source, LoadRequest("append"))
        found["appended"] = result.tables
        try:
            graph.load(folder / "wrong.jsonl", mode="merge", spark=spark)
        except OmniGraphError as error:
            found["refused"] = error.message.partition(", ")[2]
        graph.load(folder / "more.jsonl", mode="merge", spark=spark)
        found["exported"] = graph.export(folder / "out", format="parquet", partitioned=True, spark=spark)
        with tuning.replaced(segment_rows_min=5, adjacency_disk_edges_min=1, adjacency_divided_edges_min=1):
            found["notes"] = graph.load(folder / "out", mode="overwrite", spark=spark).notes
        entries = [json.loads(path.read_text())["entry"]["what"] for path in folder.glob("g/__cache/*/about.json")]
        found["adjacency"] = sorted(what[-1] for what in entries if what[0] == "adjacency")
        load(spark, graph.uri, nodes={"Shelf": spark.sql("select 'frame' as code")}, environ={})
    found["died"] = kill is not None and not (folder / "g" / ONCE).exists()
    sys.stdout.write(json.dumps(found) + "\n")


def prepare(folder: Path) -> None:
    """The graph and the input files."""
    og.init(folder / "g", SHELVES, sync=False, environ={})
    shelves = [shelf(f"s{n}", cap=n) for n in range(SHELF_COUNT)]
    write_jsonl(folder / "in.jsonl", [*shelves, *(beside(f"s{n}", "s0", id_=f"e{n}") for n in range(SHELF_COUNT))])
    write_jsonl(folder / "wrong.jsonl", [shelf("x"), beside("x", "nobody")])
    write_jsonl(folder / "more.jsonl", [shelf("s1", note="new"), shelf("y")])


EXPECTED = {
    "appended": [["edge:Beside", SHELF_COUNT], ["node:Shelf", SHELF_COUNT]],
    "refused": "line 2: edge Beside: dst 'nobody' not found in Shelf",
    "exported": 2 * SHELF_COUNT + 1,
    "notes": [],
    "adjacency": ["ends", "in", "out"],
}

if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
