"""Loads on a standalone cluster and through Spark Connect, with failures of executors and drivers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from support.bulk_script import EXPECTED, SHELF_COUNT, prepare
from support.cluster import connect_server, environment, standalone
from support.writes import ids_of, rows_of

_TIMEOUT_S = 400
pytestmark = pytest.mark.long


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    prepare(tmp_path)
    return tmp_path


def start(folder: Path, options: dict[str, str], *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "support.bulk_script", str(folder), json.dumps(options), *more]
    return subprocess.Popen(command, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=_TIMEOUT_S)
    assert process.returncode == 0, err[-3000:]
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def check(folder: Path, found: dict[str, Any]) -> None:
    assert {key: found[key] for key in EXPECTED} == EXPECTED
    graph = og.open(folder / "g", sync=False, environ={})
    rows = rows_of(graph, "Shelf")
    assert set(rows) == {*(f"s{n}" for n in range(SHELF_COUNT)), "y", "frame"}
    assert (rows["s1"]["note"], rows["s1"]["cap"], rows["s2"]["cap"]) == ("new", 1, 2)
    assert len(ids_of(graph, "Beside")) == SHELF_COUNT
    assert graph.verify() == []
    assert list((folder / "g" / "__staging").glob("*")) == []


def test_standalone_cluster(folder: Path) -> None:
    with standalone(folder / "cluster") as master:
        check(folder, finish(start(folder, {"master": master})))


def test_spark_connect(folder: Path) -> None:
    with connect_server(folder / "server") as remote:
        check(folder, finish(start(folder, {"remote": remote})))


def test_dead_executor_is_replaced(folder: Path) -> None:
    with standalone(folder / "cluster") as master:
        found = finish(start(folder, {"master": master}, "executor"))
    assert found["died"], "nobody died"
    check(folder, found)


def test_dead_driver_leaves_graph_unchanged_and_next_driver_cleans_up(folder: Path) -> None:
    graph = og.open(folder / "g", sync=False, environ={})
    before = graph.snapshot().commit_id
    process = start(folder, {"master": "local[2,4]"}, "driver")
    process.communicate(timeout=_TIMEOUT_S)
    assert process.returncode == -signal.SIGKILL
    assert graph.snapshot().commit_id == before
    assert graph.verify() == []
    assert list((folder / "g" / "__staging").glob("*"))
    check(folder, finish(start(folder, {"master": "local[2,4]"})))
