"""Bulk loads on Spark, also with workers that die."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.engine.cache import disk_cache, user_folder
from omnigraph.engine.search.inverted_index import WORDS
from omnigraph.engine.statistics.column_statistics import ColumnStatistics
from omnigraph.engine.statistics.degree_statistics import DegreeStatistics
from omnigraph.engine.statistics.table_statistics import known_statistics
from omnigraph.errors import ConstraintViolation, InputError, RecordError
from omnigraph.graph import Graph
from omnigraph.graph_handle import cache_of, context_of
from omnigraph.operations.derived import build_after_load
from omnigraph.operations.load.load_result import LoadResult, Reject
from omnigraph.pipeline.adjacency_task import build_adjacency
from omnigraph.pipeline.segment_task import build_segments
from omnigraph.spark import SparkRunner, load
from support.bulk import MODES, GraphPair, Inputs
from support.killing import ONCE, KillingRunner
from support.writes import (
    SHELVES,
    beside,
    edge,
    ends_of,
    ids_of,
    new_graph,
    node,
    reopened,
    rows_of,
    shelf,
    write_jsonl,
)


@pytest.fixture
def runner(spark):
    return SparkRunner(spark)


@pytest.mark.parametrize("seed", [3, 8])
def test_same_as_memory(tmp_path, runner, seed):
    pair = GraphPair.below(tmp_path, runner=runner)
    pair.split_bytes = 700
    chooser, inputs = random.Random(seed), Inputs(seed, tmp_path / "photos")
    for number in range(3):
        inputs.wrong, inputs.tidy = chooser.choice([0, 0, 0.05]), True
        inputs.look_at(pair.memory)
        pair.load(inputs.files(tmp_path, f"input-{number}"), chooser.choice(MODES), set_aside=number == 1)
    assert pair.bulk.verify() == []
    assert not list((tmp_path / "bulk" / "__staging").glob("*"))


def test_export_loads_into_equal_graph(tmp_path, spark):
    graph = new_graph(tmp_path, SHELVES, shelf("a"))
    told = []
    path = write_jsonl(tmp_path / "x.jsonl", [shelf("b"), shelf("a", note="new"), beside("a", "b")])
    result = graph.load(path, mode="merge", engine="spark", spark=spark, job_id="j", watch=told.append)
    assert result.tables == (("edge:Beside", 1), ("node:Shelf", 2))
    assert {progress.step for progress in told} >= {"read", "check", "finalize"}
    assert "start Spark" not in {progress.step for progress in told}
    again = graph.load(path, mode="merge", engine="spark", job_id="j", watch=told.append)
    assert again.commit_id == result.commit_id
    assert "start Spark" not in {progress.step for progress in told}, "a repeated load starts no session"
    assert graph.export(tmp_path / "out", format="parquet", partitioned=True, spark=spark) == 3
    graph.load(tmp_path / "out", mode="overwrite", spark=spark)
    assert rows_of(graph, "Shelf") == {
        "a": {"code": "a", "note": "new", "cap": None},
        "b": {"code": "b", "note": None, "cap": None},
    }


def test_statistics_are_stored(tmp_path, spark):
    graph = new_graph(tmp_path, SHELVES)
    rows = [(f"s{number:04}", number % 7) for number in range(300)]
    few = {"statistics_load_rows_min": 100, "statistics_stored_rows_min": 100}
    with tuning.replaced(**few):
        graph.load({"Shelf": spark.createDataFrame(rows, "code string, cap int")}, mode="append")
        load(
            spark,
            graph.uri,
            edges={"Beside": spark.createDataFrame([rows[0][:1] * 2] * 150, "`from` string, `to` string")},
            mode="append",
        )
    later = og.open(graph.uri, environ={})
    context, snapshot = later._context, later.snapshot()
    tables = {key: context.cache.table(snapshot.table(key)) for key in snapshot.tables}
    stored = {key: known_statistics(context.cache, table) for key, table in tables.items()}
    assert {key: found.rows for key, found in stored.items()} == {"node:Shelf": 300, "edge:Beside": 150}
    shelves, besides = stored["node:Shelf"], stored["edge:Beside"]
    assert shelves.find(tables["node:Shelf"].column_key("cap"), ColumnStatistics).distinct == 7
    assert besides.find("degrees:source", DegreeStatistics).largest == 150


def test_error_across_records_names_the_line(tmp_path, spark):
    graph = new_graph(tmp_path, SHELVES)
    lines = ["", "// a remark", *map(json.dumps, [shelf("a"), beside("a", "nobody")])]
    with pytest.raises(ConstraintViolation, match=r"line 4: edge Beside: dst 'nobody' not found in Shelf"):
        graph.load(write_jsonl(tmp_path / "x.jsonl", lines), mode="append", spark=spark)
    assert ids_of(graph, "Shelf") == []


def test_dead_worker_is_replaced_without_duplicates(tmp_path, runner):
    pair = GraphPair.below(tmp_path, SHELVES, KillingRunner(runner))
    pair.split_bytes = 200
    mark = Path(pair.bulk.uri) / ONCE
    mark.touch()
    pair.load([write_jsonl(tmp_path / "x.jsonl", [shelf(f"s{n}") for n in range(40)])], "append")
    assert not mark.exists(), "nobody died"
    table = pair.bulk.snapshot().table("node:Shelf")
    files = {file.name for file in Path(pair.bulk.uri).glob("nodes/*/data/*.lance")}
    assert files == {file.path for fragment in table.dataset.get_fragments() for file in fragment.metadata.files}


# -- frames ------------------------------------------------------------------------------------------


def test_dataframes_are_loaded_on_their_session(tmp_path, spark):
    graph = new_graph(tmp_path, SHELVES, shelf("s0", note="old"))
    shelves = spark.range(0, 1000, 1, 3).selectExpr("concat('s', id) as code", "cast(id % 7 as int) as cap")
    besides = spark.range(0, 999).selectExpr("concat('s', id) as `from`", "concat('s', id + 1) as `to`")
    result = graph.load({"Shelf": shelves, "Beside": besides}, mode="merge", message="from frames")
    assert result.tables == (("edge:Beside", 999), ("node:Shelf", 1000))
    assert rows_of(graph, "Shelf")["s0"] == {"code": "s0", "note": "old", "cap": 0}
    graph.load({"Shelf": shelves.limit(1)}, mode="merge", missing="null")
    assert rows_of(graph, "Shelf")["s0"] == {"code": "s0", "note": None, "cap": 0}
    assert graph.verify() == []


def test_invalid_row_of_a_dataframe_is_reported(tmp_path, spark):
    graph = new_graph(tmp_path, SHELVES)
    frame = spark.range(0, 10, 1, 2).selectExpr("if(id = 7, null, concat('s', id)) as code")
    with pytest.raises(RecordError, match=r"^line 8: Shelf.code is required"):
        graph.load({"Shelf": frame}, mode="append")
    rejects: list[Reject] = []
    graph.load({"Shelf": frame}, mode="append", rejects=rejects)
    assert [(reject.line, reject.rule) for reject in rejects] == [(8, "required")]
    with pytest.raises(InputError, match="cannot be mixed"):
        graph.load({"Shelf": frame, "Beside": []}, mode="append")


def test_dataframes_load_into_graph_by_address(tmp_path, spark):
    graph = new_graph(tmp_path, SHELVES, shelf("a"))
    nodes = {"Shelf": spark.sql("select 'b' as code")}
    edges = {"Beside": (spark.sql("select 'a' as one, 'b' as other"), "one", "other")}
    result = load(spark, graph.uri, nodes=nodes, edges=edges, branch="nightly", from_branch="main", environ={})
    assert (result.branch, result.branch_created) == ("nightly", True)
    assert ends_of(graph, "Beside", branch="nightly") == [("a", "b")]
    with pytest.raises(InputError, match="there is no DataFrame"):
        load(spark, graph.uri, environ={})


def test_workers_resolve_blob_references(tmp_path, spark):
    graph = new_graph(tmp_path, "node Photo { name: String @key  data: Blob? }")
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "a").write_bytes(b"\x00a")
    frame = spark.createDataFrame([("one", f"file://{photos}/a"), ("two", None)], "name string, data string")
    load(spark, graph.uri, nodes={"Photo": frame}, blob_sources=[photos], environ={})
    assert graph.to_arrow("Photo", columns=["name", "data"]).to_pylist() == [
        {"name": "one", "data": b"\x00a"},
        {"name": "two", "data": None},
    ]
    outside = spark.createDataFrame([("x", "file:///etc/hostname")], "name string, data string")
    with pytest.raises(RecordError, match=r"'file:///etc/hostname' cannot be followed: it is outside the allowed"):
        load(spark, graph.uri, nodes={"Photo": outside}, blob_sources=[photos], environ={})


def test_workers_build_search_structures(tmp_path, spark, tune):
    tune(segment_rows_min=5, postings_disk_rows_min=1, id_segments_rows_min=20, segment_part_rows_min=10)
    schema = "node Doc { name: String @key  text: String? @index }"
    docs = [node("Doc", name=f"d{at}", text=f"river {'stone ' * (at % 5)}") for at in range(60)]
    for part in range(4):
        write_jsonl(tmp_path / f"{part}.jsonl", docs[part * 15 : part * 15 + 15])
    graph, plain = new_graph(tmp_path / "a", schema), new_graph(tmp_path / "b", schema, *docs)
    told, paths = [], [str(tmp_path / f"{part}.jsonl") for part in range(4)]
    result = graph.load(paths, mode="append", spark=spark, watch=told.append)
    assert result.notes == ()
    assert "index" in {progress.step for progress in told}
    entries = [
        json.loads(path.read_text())["entry"]["what"] for path in (tmp_path / "a").glob("*/__cache/*/about.json")
    ]
    for kind in ("ids", "postings"):
        assert {what[-1] for what in entries if what[0] == kind} == {"0", "1"}
    ranked = 'query q() { match { $d: Doc } return { $d.name } order { bm25($d.text, "stone") } limit 7 }'
    assert graph.query(ranked).to_rows() == plain.query(ranked).to_rows()


class Elsewhere(SparkRunner):
    """Workers that report other machines."""

    on_this_machine = False


def test_workers_build_search_structures_of_a_bucket(tmp_path, s3, spark, tune):
    """Workers of this machine write them to its cache folder; another machine extends what was uploaded."""
    tune(
        segment_rows_min=5,
        postings_disk_rows_min=1,
        id_segments_rows_min=20,
        segment_part_rows_min=10,
        adjacency_disk_edges_min=10,
        adjacency_divided_edges_min=10,
        remote_cache_list_s=0.0,
    )
    schema = "node Doc { name: String @key  text: String? @index }\nedge Link: Doc -> Doc"
    docs = [node("Doc", name=f"d{at}", text=f"river {'stone ' * (at % 5)}") for at in range(140)]
    links = [{"edge": "Link", "from": f"d{at}", "to": f"d{at * 7 % 100}"} for at in range(100)]

    def files(name: str, records: list[dict[str, Any]]) -> list[str]:
        return [str(write_jsonl(tmp_path / f"{name}{part}.jsonl", records[part::4])) for part in range(4)]

    def words(graph: Graph) -> dict[str, int]:
        """Number of a segment on this machine → its rows."""
        entries = (entry for _, entry in disk_cache.descriptions(cache_of(graph).keep_in))
        return {
            one["what"][-1]: sum(rows for _, rows, _ in one["rows"]["pieces"])
            for one in entries
            if one["what"][0] == WORDS
        }

    uri, told, later = s3.new_place(), [], []
    environ = {machine: {**s3.environ, user_folder.VARIABLE: str(tmp_path / machine)} for machine in ("one", "other")}
    graph = og.init(uri, schema, environ=environ["one"])
    result = graph.load(files("a", docs[:100] + links), mode="append", spark=spark, watch=told.append)
    assert result.notes == ()
    assert {progress.step for progress in told} >= {"index", "ends", "neighbours"}
    assert sorted(words(graph)) == ["0", "1"]
    assert build_segments(context_of(graph), Elsewhere(spark), result) is result
    assert build_adjacency(context_of(graph), Elsewhere(spark), result) is result
    other = og.open(uri, environ=environ["other"])
    other.load(files("b", docs[100:]), mode="append", spark=spark, watch=later.append)
    assert "index" in {progress.step for progress in later}
    assert words(other).items() >= words(graph).items(), "the uploaded segments are used"
    assert sum(words(other).values()) == 140
    plain = new_graph(tmp_path / "plain", schema, *docs, *links)
    hops = 'query q() { match { $d: Doc { name: "d7" } $d link{1,3} $e } return { $e.name } order { $e.name } }'
    ranked = 'query q() { match { $d: Doc } return { $d.name } order { bm25($d.text, "stone") } limit 7 }'
    for query in (hops, ranked):
        assert other.query(query).to_rows() == graph.query(query).to_rows() == plain.query(query).to_rows()


def _many_edges(root: Path) -> tuple[Graph, LoadResult]:
    """A graph with more edges than a block of their ends has, without search structures."""
    chooser, nodes, edges = np.random.default_rng(1), 20_000, 300_000
    names = np.array([f"n{at}" for at in range(nodes)])
    ends = {name: pa.array(names[chooser.integers(0, nodes, edges) ** 2 // nodes]) for name in ("from", "to")}
    graph = new_graph(root, "node P { name: String @key }\nedge K: P -> P")
    with tuning.replaced(segment_rows_min=edges):
        result = graph.load({"P": pa.table({"name": pa.array(names)}), "K": pa.table(ends)}, mode="append")
    return graph, result


def _adjacency(graph: Graph) -> dict[str, dict[str, bytes]]:
    """The arrays of the adjacency on disk, by kind."""
    folder = Path(graph.uri.removeprefix("file://")) / disk_cache.FOLDER
    assert disk_cache.find_damaged(folder) == []
    assert [path for path in folder.iterdir() if path.name.startswith(".making")] == []
    found: dict[str, dict[str, bytes]] = {}
    for path in folder.glob("*/about.json"):
        entry = json.loads(path.read_text())["entry"]
        if entry["what"][0] == "adjacency":
            found[entry["what"][-1]] = {name: (path.parent / name).read_bytes() for name in entry["arrays"]}
    return found


class RunnerWithin(SparkRunner):
    """Runs one task within a context, in the workers."""

    def __init__(self, spark: Any, task: str, context: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__(spark)
        self._task, self._context = task, context

    def run(self, step, task, job, work, **more):
        context = self._context

        def within(job: Any, unit: Any) -> Any:
            with context():
                return task(job, unit)

        return super().run(step, within if task.__name__ == self._task else task, job, work, **more)


@pytest.mark.parametrize("dies", [None, "number_edges", "merge_pairs", "place_values"])
def test_workers_build_adjacency(tmp_path, spark, tune, dies):
    tune(adjacency_divided_edges_min=1)
    graph, result = _many_edges(tmp_path)
    mark = tmp_path / "once"
    mark.touch()

    @contextmanager
    def die_once() -> Iterator[None]:
        yield
        with suppress(FileNotFoundError):
            mark.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    runner = SparkRunner(spark) if dies is None else RunnerWithin(spark, dies, die_once)
    assert build_adjacency(context_of(graph), runner, result).notes == ()
    assert mark.exists() is (dies is None)
    found = _adjacency(graph)
    shutil.rmtree(tmp_path / "g" / disk_cache.FOLDER)
    build_after_load(context_of(graph := reopened(graph)), result)
    assert found.keys() == {"ends", "out", "in"}
    assert found == _adjacency(graph)


@pytest.mark.parametrize("step", ["index", "ends", "neighbours"])
def test_cancelled_load_stops_its_workers_after_the_publish(tmp_path, spark, tune, step):
    tune(segment_rows_min=5, segment_part_rows_min=10, id_segments_rows_min=20)
    tune(adjacency_disk_edges_min=1, adjacency_divided_edges_min=1)
    graph = new_graph(tmp_path, "node P { name: String @key }\nedge K: P -> P")
    paths = []
    for part in range(0, 120, 30):
        names = [f"n{at}" for at in range(part, part + 30)]
        records = [*(node("P", name=name) for name in names), *(edge("K", name, names[0]) for name in names)]
        paths.append(write_jsonl(tmp_path / f"{part}.jsonl", records))
    cancel = og.Cancellation()

    def watch(progress: Any) -> None:
        if progress.step == step:
            cancel.cancel()

    result = graph.load(paths, mode="append", spark=spark, watch=watch, cancel=cancel)
    assert "the workers did not build the neighbours of 'edge:K' (cancelled)" in result.notes
    assert graph.head().commit_id == result.commit_id
    assert len(rows_of(graph, "P")) == 120
    assert _adjacency(graph) == {}


def test_driver_builds_adjacency_after_a_full_disk(tmp_path, spark, tune):
    tune(adjacency_divided_edges_min=1)
    graph, result = _many_edges(tmp_path)

    @contextmanager
    def limited() -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    result = build_adjacency(context_of(graph), RunnerWithin(spark, "merge_pairs", limited), result)
    assert result.notes == ("the workers did not build the neighbours of 'edge:K' (File too large)",)
    assert _adjacency(graph) == {}
    assert build_after_load(context_of(graph), result).notes == result.notes
    assert _adjacency(graph).keys() == {"ends", "out", "in"}
