"""Choice of the executor of bulk work, and its results through `Graph`."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph import engine_choice
from omnigraph.bulk_options import BulkOptions
from omnigraph.engine_choice import choose_runner
from omnigraph.errors import ConstraintViolation, InputError
from support.writes import SHELVES, beside, everything, ids_of, new_graph, shelf, write_jsonl


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, SHELVES, shelf("a"), shelf("b"))


@pytest.fixture
def steps(tune):
    """Make every file a job in this process, and record its steps."""
    tune(memory_load_bytes_max=0, spark_bytes_min=1 << 60)
    return []


def test_small_file_is_loaded_in_memory(graph, tmp_path):
    told = []
    graph.load(write_jsonl(tmp_path / "x.jsonl", [shelf("c")]), mode="append", watch=told.append)
    assert told == []


def test_larger_file_is_loaded_by_a_job(graph, tmp_path, steps):
    path = write_jsonl(tmp_path / "x.jsonl", [shelf("c"), beside("c", "a")])
    result = graph.load(path, mode="append", message="all of it", watch=steps.append)
    assert {progress.step for progress in steps} >= {"read", "check"}
    assert ids_of(graph, "Shelf") == ["a", "b", "c"]
    assert graph.commit(result.commit_id).message == "all of it"


def test_records_are_loaded_in_memory(graph, steps):
    graph.load([shelf("c")], mode="append", watch=steps.append)
    assert steps == []
    with pytest.raises(InputError, match="loads only files"):
        graph.load([shelf("c")], mode="append", engine="spark")


def test_ingest_creates_the_branch_and_reports_it(graph, tmp_path, steps):
    result = graph.ingest(write_jsonl(tmp_path / "x.jsonl", [shelf("c")]), branch="new")
    assert (result.branch_created, result.base_branch) == (True, "main")
    with pytest.raises(ConstraintViolation, match="branch 'other' was created from 'new' and stays there"):
        graph.ingest(write_jsonl(tmp_path / "y.jsonl", [beside("c", "nobody")]), branch="other", from_branch="new")


@pytest.mark.parametrize("engine", ["memory", "auto"])
def test_same_job_id_loads_once(graph, tmp_path, steps, engine):
    path = write_jsonl(tmp_path / "x.jsonl", [shelf("c")])
    first = graph.load(path, mode="append", job_id="night-1", engine=engine)
    before = everything(graph)
    again = graph.load(path, mode="append", job_id="night-1", engine=engine)
    assert again.repeated
    assert replace(again, notes=(), repeated=False) == first
    assert everything(graph) == before


@pytest.mark.parametrize("name", ["aside.jsonl", "aside.parquet"])
def test_rejects_are_written_to_a_file(graph, tmp_path, name):
    graph.load([shelf("c"), shelf("c"), beside("c", "nobody")], mode="append", rejects=tmp_path / name)
    if name.endswith("jsonl"):
        found = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
    else:
        found = pq.read_table(tmp_path / name).to_pylist()
    assert [(row["line"], row["type"], row["rule"]) for row in found] == [
        (2, "Shelf", "unique"),
        (3, "Beside", "endpoint"),
    ]


def test_embed_false_leaves_vectors_null(tmp_path, steps):
    schema = 'node N { id2: String @key  text: String  v: Vector(4)? @embed("text") }'
    graph = og.init(tmp_path / "g", schema, sync=False, environ={"OMNIGRAPH_EMBEDDINGS_MOCK": "1"})
    lines = [{"type": "N", "data": {"id2": str(n), "text": f"t{n % 2}"}} for n in range(4)]
    path = write_jsonl(tmp_path / "x.jsonl", lines)
    assert graph.load(path, mode="merge", embed=False).pending_embeddings == 4
    result = graph.load(path, mode="merge")
    assert (result.embedded_rows, result.pending_embeddings) == (4, 0)
    again = og.init(tmp_path / "again", schema, sync=False, environ={"OMNIGRAPH_EMBEDDINGS_MOCK": "1"})
    again.load(path, mode="merge", engine="memory")
    assert list(again.export()) == list(graph.export())


@pytest.mark.parametrize(
    ("options", "size", "cores", "expected"),
    [
        (BulkOptions(), 1 << 40, 8, "spark"),
        (BulkOptions(), 1 << 40, 2, "inline"),
        (BulkOptions(), 1 << 20, 8, "inline"),
        (BulkOptions("spark"), 1, 1, "spark"),
        (BulkOptions(spark=object()), 1, 1, "spark"),
        (BulkOptions("memory"), 1 << 40, 8, "inline"),
    ],
)
def test_choice_of_runner(monkeypatch, options, size, cores, expected):
    monkeypatch.setattr(engine_choice.os, "cpu_count", lambda: cores)
    assert choose_runner(options, size) == expected


def test_without_pyspark_tasks_run_in_process(monkeypatch):
    monkeypatch.setattr(engine_choice.os, "cpu_count", lambda: 8)
    monkeypatch.setattr(engine_choice, "find_spec", lambda _: None)
    assert choose_runner(BulkOptions(), 1 << 40) == "inline"


def test_unknown_engine_is_rejected():
    with pytest.raises(InputError, match="there is no engine 'fast'"):
        BulkOptions("fast")
    with pytest.raises(InputError, match="does not accept a Spark session"):
        BulkOptions("memory", object())


def test_export_to_a_folder(graph, tmp_path):
    assert graph.export(tmp_path / "out", format="parquet") == 2
    assert pq.read_table(tmp_path / "out" / "Shelf.parquet")["code"].to_pylist() == ["a", "b"]
    assert graph.export(tmp_path / "parts", partitioned=True) == 2
    assert (tmp_path / "parts" / "Shelf.00000.jsonl").exists()
