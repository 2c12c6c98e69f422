"""Tables as DataFrames and as a data source: snapshots, exact values, one commit per write."""

from __future__ import annotations

import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import InputError, RecordError
from omnigraph.graph import Graph
from omnigraph.spark import OmniGraphDataSource

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    wide: U64?
    small: U32?
    ratio: F32?
    seen: DateTime?
    born: Date?
    tags: [String]?
    numbers: [U64]?
    place: Vector(2)?
    token: Uuid?
}

edge Knows: Person -> Person {
    since: Date?
}
"""
ANA = {
    "name": "ana", "age": 30, "wide": 2**64 - 1, "small": 2**32 - 1, "ratio": 0.5, "seen": "2020-05-05T10:00:00.001Z",
    "born": "1990-02-28", "tags": ["a", "b"], "numbers": [1, 2**64 - 1], "place": [1.0, 2.0],
    "token": "123E4567-E89B-12D3-A456-426614174000",
}  # fmt: skip


def graph_at(root: Path) -> Graph:
    graph = og.init(root, SCHEMA, sync=False, environ={})
    people = [{"type": "Person", "data": ANA}, *({"type": "Person", "data": {"name": n}} for n in ("bo", "cy"))]
    graph.load(people, mode="append")
    graph.load([{"edge": "Knows", "from": "ana", "to": "bo", "data": {"since": "2020-01-01"}}], mode="append")
    return graph


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return graph_at(tmp_path / "graph.omni")


@pytest.fixture(scope="module")
def source(spark: Any) -> Any:
    spark.dataSource.register(OmniGraphDataSource)
    return spark


def read(spark: Any, graph: Graph, type_name: str = "Person", **options: str) -> Any:
    reader = spark.read.format("omnigraph").option("uri", graph.uri).option("type", type_name)
    return reader.options(**options)


def names(frame: Any) -> list[str]:
    return sorted(row["name"] for row in frame.collect())


@pytest.mark.parametrize("way", ["frame", "source"])
def test_values_of_every_type_round_trip(source: Any, graph: Graph, way: str) -> None:
    frame = graph.to_spark("Person", spark=source) if way == "frame" else read(source, graph).load()
    assert frame.schema.simpleString() == (
        "struct<id:string,age:int,born:date,name:string,numbers:array<decimal(20,0)>,place:array<float>,ratio:float,"
        "seen:timestamp,small:bigint,tags:array<string>,token:string,wide:decimal(20,0)>"
    )
    row = frame.where("name = 'ana'").collect()[0].asDict()
    assert row == {
        "id": "ana", "name": "ana", "age": 30, "wide": Decimal(2**64 - 1), "small": 2**32 - 1, "ratio": 0.5,
        "seen": datetime(2020, 5, 5, 10, 0, 0, 1000), "born": date(1990, 2, 28), "tags": ["a", "b"],
        "numbers": [Decimal(1), Decimal(2**64 - 1)], "place": [1.0, 2.0],
        "token": "123e4567-e89b-12d3-a456-426614174000",
    }  # fmt: skip
    empty = frame.where("name = 'bo'").collect()[0].asDict()
    assert {name for name, value in empty.items() if value is not None} == {"id", "name"}


def test_dataframe_loads_uuids_in_either_case(source: Any, graph: Graph) -> None:
    token = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    frame = source.createDataFrame([("bo", token.upper()), ("cy", token)], "name string, token string")
    graph.load({"Person": frame}, mode="merge")
    text = f'match {{ $p: Person $p.token >= uuid("{token}") }} return {{ $p.token as token, count($p) as n }}'
    for engine in ("memory", "spark"):
        rows = graph.query(text, engine=engine, spark=source if engine == "spark" else None).to_rows()
        assert rows == [{"token": token, "n": 2}]
    wrong = source.createDataFrame([("bo", "nope")], "name string, token string")
    with pytest.raises(RecordError, match="'nope' is not a UUID"):
        graph.load({"Person": wrong}, mode="merge")


def test_columns_and_rows_are_selected(source: Any, graph: Graph) -> None:
    frame = graph.to_spark("Person", spark=source, columns=["name", "age"], filter="age >= 30")
    assert [tuple(row) for row in frame.collect()] == [("ana", 30)]
    chosen = read(source, graph, filter="age IS NULL").schema("name string").load()
    assert (chosen.columns, names(chosen)) == (["name"], ["bo", "cy"])
    with pytest.raises(InputError, match="has no column 'nam'") as caught:
        graph.to_spark("Person", spark=source, columns=["nam"])
    assert caught.value.hint == "did you mean 'name'?"


def test_filter_of_one_query_does_not_affect_the_next(source: Any, graph: Graph) -> None:
    frame = read(source, graph).load()
    assert frame.where("name = 'ana'").count() == 1
    assert frame.count() == 3
    assert frame.where("name = 'ana'").unionAll(frame).count() == 4


def test_dataframe_reads_one_snapshot(source: Any, graph: Graph) -> None:
    before = graph.commits()[0].id
    frames = [read(source, graph).load(), graph.to_spark("Person", spark=source)]
    graph.load([{"type": "Person", "data": {"name": "di"}}], mode="append")
    assert [names(frame) for frame in frames] == [["ana", "bo", "cy"]] * 2
    assert names(read(source, graph).load()) == ["ana", "bo", "cy", "di"]
    for at in (before, str(graph.snapshot(at=before).version)):
        assert names(read(source, graph, at=at).load()) == ["ana", "bo", "cy"]
    graph.branch_create("old", at=before)
    assert names(read(source, graph, branch="old").load()) == ["ana", "bo", "cy"]


def test_partition_is_a_fragment(source: Any, graph: Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": "di"}}], mode="append")
    assert read(source, graph).load().rdd.getNumPartitions() == 2
    assert read(source, graph, "Knows").load().select("src", "dst").collect() == [("ana", "bo")]


INVALID_OPTIONS = {
    "no type": ({"type": ""}, "requires the option 'type'"),
    "unknown type": ({"type": "Persn"}, "'Persn' does not exist at commit"),
    "unknown option": ({"brunch": "x"}, "has no option 'brunch'"),
    "unknown branch": ({"branch": "x"}, "there is no branch 'x'"),
}


@pytest.mark.parametrize(("options", "message"), INVALID_OPTIONS.values(), ids=INVALID_OPTIONS)
def test_invalid_options_are_reported(source: Any, graph: Graph, options: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        read(source, graph, **options).load()


def test_column_cannot_be_read_as_another_type(source: Any, graph: Graph) -> None:
    with pytest.raises(Exception, match="column 'age' is int in Spark, not string"):
        read(source, graph).schema("age string").load().collect()


def write(frame: Any, graph: Graph, type_name: str = "Person", how: str = "append", **options: str) -> None:
    writer = frame.write.format("omnigraph").mode(how).option("uri", graph.uri).option("type", type_name)
    writer.options(**options).save()


def left_over(graph: Graph) -> list[str]:
    """Files that remain after a write, apart from table data."""
    root = Path(graph.uri)
    used = {
        file.path
        for key in graph.snapshot().tables
        for fragment in graph.snapshot().table(key).dataset.get_fragments()
        for file in fragment.metadata.files
    }
    unused = [path for path in root.glob("*/*/data/*.lance") if path.name not in used]
    return [path.name for path in (*root.joinpath("__staging").glob("*"), *unused)]


def test_append_is_one_commit(source: Any, graph: Graph) -> None:
    commits = len(graph.commits())
    rows = source.range(0, 40, 1, 4).selectExpr("concat('p', id) as name", "cast(id as int) as age")
    write(rows, graph, message="forty more", actor="act-ana")
    assert len(graph.commits()) == commits + 1
    assert (graph.commits()[0].message, graph.commits()[0].actor) == ("forty more", "act-ana")
    assert graph.to_arrow("Person").num_rows == 43
    edges = source.createDataFrame([("p1", "p2"), ("p2", "ana")], "src string, dst string")
    write(edges, graph, "Knows")
    assert graph.to_arrow("Knows").num_rows == 3
    assert left_over(graph) == []
    assert graph.verify() == []


def test_dataframe_of_one_graph_can_be_written_to_another(source: Any, graph: Graph, tmp_path: Path) -> None:
    copy = og.init(tmp_path / "copy.omni", SCHEMA, sync=False, environ={})
    write(read(source, graph).load().drop("id"), copy)
    rows = [g.to_arrow("Person").sort_by("name").to_pylist() for g in (graph, copy)]
    assert rows[0] == rows[1]


def test_merge_and_overwrite(source: Any, graph: Graph) -> None:
    newer = source.createDataFrame([("ana", 31), ("di", 4)], "name string, age int")
    write(newer, graph, mode="merge")
    ages = {row["name"]: row["age"] for row in graph.to_arrow("Person").to_pylist()}
    assert ages == {"ana": 31, "bo": None, "cy": None, "di": 4}
    write(source.createDataFrame([("ana", "di")], "src string, dst string"), graph, "Knows", how="overwrite")
    assert [(row["src"], row["dst"]) for row in graph.to_arrow("Knows").to_pylist()] == [("ana", "di")]


INVALID_ROWS = {
    "existing key": ("Person", [("ana", 1)], "name string, age int", "ana"),
    "wrong type": ("Person", [("di", "x")], "name string, age string", "age"),
    "missing node": ("Knows", [("ana", "nobody")], "src string, dst string", "nobody"),
}


@pytest.mark.parametrize(("type_name", "rows", "columns", "message"), INVALID_ROWS.values(), ids=INVALID_ROWS)
def test_invalid_rows_change_nothing(
    source: Any, graph: Graph, type_name: str, rows: list[Any], columns: str, message: str
) -> None:
    before = graph.commits()[0].id
    with pytest.raises(Exception, match=message):
        write(source.createDataFrame(rows, columns), graph, type_name)
    assert graph.commits()[0].id == before
    assert left_over(graph) == []


@pytest.mark.parametrize("broken", [3, 39])
def test_failed_task_leaves_no_files(source: Any, graph: Graph, broken: int) -> None:
    before = graph.commits()[0].id
    name = f"if(id = {broken}, raise_error('no such day'), concat('p', id)) as name"
    with pytest.raises(Exception, match="no such day"):
        write(source.range(0, 40, 1, 4).selectExpr(name), graph)
    assert graph.commits()[0].id == before
    # Spark aborts the write while other tasks still run; they remove their own files when they end.
    for _ in range(300):
        if not left_over(graph):
            break
        time.sleep(0.1)
    assert left_over(graph) == []


def test_constraints_hold_across_partitions(source: Any, graph: Graph) -> None:
    twice = source.range(0, 40, 1, 4).selectExpr("concat('p', id % 39) as name")
    with pytest.raises(Exception, match=r"@unique violation on Person\.name"):
        write(twice, graph)
    assert left_over(graph) == []


def test_job_id_runs_once(source: Any, graph: Graph) -> None:
    rows = source.createDataFrame([("di",)], "name string")
    write(rows, graph, job_id="nightly-1")
    commits = len(graph.commits())
    write(rows, graph, job_id="nightly-1")
    assert len(graph.commits()) == commits
