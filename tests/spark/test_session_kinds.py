"""The same results on a local session, on a cluster, and through Spark Connect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from omnigraph.spark import SessionOptions
from support.spark import FAST, connect_server, run_elsewhere, standalone_cluster
from support.spark_places import exercise

EXPECTED = {
    "loaded": [["edge:Knows", 20], ["node:Person", 20]],
    "told": True,
    "parallelism": 2,
    "commits": 3,
    "people": 30,
    "again": 35,
    "chosen": ["p25", "p26", "p27", "p28", "p29"],
    "refused": "p2",
    "largest_degree": 2,
    "exported": 30,
    "problems": 0,
}


def check(found: dict[str, Any]) -> None:
    assert len(found.pop("query")) == 3
    assert found == EXPECTED


def test_local_session(spark: Any, tmp_path: Path) -> None:
    check(json.loads(json.dumps(exercise(spark, tmp_path))))


def test_cluster(tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as options:
        check(json.loads(run_elsewhere(options, tmp_path)))


def test_spark_connect_server(tmp_path: Path) -> None:
    with connect_server(tmp_path) as options:
        check(json.loads(run_elsewhere(options, tmp_path)))


def test_stopped_session_is_an_error_and_not_that_of_a_published_load(tmp_path: Path) -> None:
    options = SessionOptions(master="local[2,4]", config=FAST)
    found = json.loads(run_elsewhere(options, tmp_path, "support.lost_jvm"))
    assert found["stopped"] == "spark_job_failed"
    assert found["nodes"] == 40
    assert [note.partition(" (")[0] for note in found["notes"]] == [
        f"the workers did not build the neighbours of 'edge:{name}'" for name in "KL"
    ]
