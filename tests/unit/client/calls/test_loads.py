"""Loads over HTTP equal embedded loads, in counts, rows, rejects and errors."""

from __future__ import annotations

import asyncio
import gzip
import json
from datetime import UTC, date, datetime

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound, InputError, KeyReused, OmniGraphError, RecordError

PEOPLE = [
    {"type": "Person", "data": {"name": "kim", "born": date(2001, 2, 3), "seen": datetime(2026, 1, 1, tzinfo=UTC)}},
    {"type": "Person", "data": {"name": "lee", "photo": b"abc", "big": 2**62}},
    {"edge": "Knows", "from": "kim", "to": "lee", "data": {"id": "k9", "since": 3}},
]
WRONG = [*PEOPLE, {"type": "Person", "data": {"name": 5}}, {"type": "Nothing", "data": {}}, 7]


@pytest.fixture
def pair(local, remote):
    """Two equal branches: one for the embedded graph, one for the client."""
    names = [f"l{len(local.branches())}-{side}" for side in ("here", "there")]
    for name in names:
        local.branch_create(name)
    return local.on(names[0]), remote.on(names[1])


def compared(here: og.Graph, there: og.RemoteGraph, data, **options) -> None:
    """Load the same input on both sides and compare results, rejects and rows."""
    rejects_here: list = []
    rejects_there: list = []
    result_here = here.load(data, mode="merge", rejects=rejects_here, **options)
    result_there = there.load(data, mode="merge", rejects=rejects_there, **options)
    plain = [{**result.to_json(), "branch": "", "commit_id": ""} for result in (result_here, result_there)]
    assert plain[1] == plain[0]
    assert rejects_there == rejects_here
    assert result_there.rejected == result_here.rejected
    assert list(there.export()) == list(here.export())
    head = there.query("match { $p: Person } return { $p.name }").commit_id
    assert result_there.commit_id in (head, None)


def test_records(pair):
    compared(*pair, PEOPLE)
    compared(*pair, (record for record in []))


def test_wrong_records(pair):
    compared(*pair, WRONG)
    here, there = pair
    for data in (WRONG, [{"type": "Person", "data": {"name": "n", "score": float("nan")}}]):
        with pytest.raises(RecordError) as expected:
            here.load(data, mode="append")
        with pytest.raises(RecordError) as found:
            there.load(data, mode="append")
        assert (found.value.line, found.value.source, found.value.rule) == (
            expected.value.line,
            expected.value.source,
            expected.value.rule,
        )


def write_files(folder):
    lines = [json.dumps({"type": "Person", "data": {"name": name}}) for name in ("q", 1)]
    (folder / "some.jsonl").write_text("\n".join(["// a comment", "", *lines]) + "\n")
    (folder / "more.jsonl.gz").write_bytes(gzip.compress(b'{"type": "Person", "data": {"name": "r"}}\n'))
    (folder / "Person.csv").write_text("name;score;big\ns;1.5;3\nt;;\nu;x;\n")
    pq.write_table(pa.table({"code": [1, 2], "title": ["one", None]}), folder / "Place.parquet")
    return folder


def test_files_of_several_formats(pair, tmp_path):
    folder = write_files(tmp_path)
    compared(*pair, str(folder))
    compared(*pair, [folder / "Person.csv", str(folder / "*.jsonl")])
    compared(*pair, folder / "Person.csv", delimiter=";")


def test_tables_with_other_names(pair, tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("Who;Punkte;geboren;x\ns;1.5;24.12.1990;1\nt;NA;NA;2\nu;oops;1.1.2001;3\n")
    columns = {"Who": "name", "Person:Punkte": "score", "geboren": "born", "x": None}
    format = {"columns": columns, "null": "NA", "date_format": "%d.%m.%Y", "delimiter": ";"}
    compared(*pair, {"Person": people}, dry_run=True, **format)
    compared(*pair, {"Person": [people]}, **format)
    table = pa.table({"a": ["s", None], "b": ["t", "t"], "k": ["e1", "e2"]})
    compared(*pair, {"Knows": table}, columns={"a": "from", "b": "to", "k": "id"}, skip_null_ends=True)


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"name": ["v", "w"], "born": [date(2000, 1, 1), None], "big": [1, None]}),
        pandas.DataFrame({"name": ["v", "w"], "big": [1, None], "score": [0.5, None]}),
        pa.table({"name": ["v", None]}),
    ],
    ids=["arrow", "pandas", "wrong"],
)
def test_tables(pair, table):
    compared(*pair, {"Person": table, "Knows": pa.table({"from": ["v"], "to": ["v"], "id": ["kv"]})})


@pytest.mark.parametrize(
    ("data", "options"),
    [
        ("absent.jsonl", {}),
        (pa.table({"name": ["x"]}), {}),
        (5, {}),
        (PEOPLE, {"mode": None}),
        (PEOPLE, {"mode": "replace"}),
        (PEOPLE, {"missing": "drop"}),
        (PEOPLE, {"delimiter": "~"}),
        ({"Nothing": pa.table({"name": ["x"]})}, {}),
        ({"Person": pa.table({"nme": ["x"]})}, {}),
        (PEOPLE, {"branch": "absent"}),
        (PEOPLE, {"if_commit": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}),
    ],
)
def test_errors_equal_those_of_the_embedded_graph(pair, data, options):
    here, there = pair
    options = {"mode": "append", **options}
    with pytest.raises(OmniGraphError) as expected:
        here.load(data, **options)
    with pytest.raises(type(expected.value)) as found:
        there.load(data, **options)
    here_text, there_text = (str(error.value).replace(g.branch, "B") for error, g in ((expected, here), (found, there)))
    assert (there_text, found.value.code) == (here_text, expected.value.code)


def test_spark_is_not_remote(pair):
    with pytest.raises(InputError) as caught:
        pair[1].load(PEOPLE, mode="append", engine="spark")
    assert caught.value.code == "not_remote"


def test_job_ids_and_rejects_in_a_file(pair, tmp_path):
    _, there = pair
    first = there.load(WRONG, mode="merge", job_id=f"job-{there.branch}", rejects=tmp_path / "bad.jsonl")
    assert (first.rejected_count, first.repeated) == (3, False)
    assert len((tmp_path / "bad.jsonl").read_text().splitlines()) == 3
    again = there.load(WRONG, mode="merge", job_id=f"job-{there.branch}")
    assert (again.repeated, again.commit_id) == (True, first.commit_id)
    with pytest.raises(KeyReused):
        there.load(PEOPLE, mode="append", job_id=f"job-{there.branch}")


def test_ingest_creates_the_branch(local, remote):
    result = remote.ingest(PEOPLE, branch="fresh", from_branch="main", message="new branch")
    assert (result.branch, result.base_branch, result.branch_created) == ("fresh", "main", True)
    assert local.commit(result.commit_id).message == "new branch"
    assert not remote.ingest(PEOPLE, branch="fresh").branch_created
    with pytest.raises(BranchNotFound):
        remote.ingest(PEOPLE, branch="other", from_branch="absent")


def test_missing_properties(pair):
    _, there = pair
    there.load([{"type": "Person", "data": {"name": "ana"}}], mode="merge")
    assert there.get("Person", "ana")["score"] == 1.5
    there.load([{"type": "Person", "data": {"name": "ana"}}], mode="merge", missing="null")
    assert there.get("Person", "ana")["score"] is None


def test_asynchronous_loads(local, server, tmp_path):
    folder = write_files(tmp_path)

    async def scenario():
        local.branch_create("async-load")
        async with await og.aconnect(server.url, branch="async-load") as graph:
            result = await graph.load(str(folder), mode="merge", rejects=[])
            assert (result.rejected_count, dict(result.tables)) == (2, {"node:Person": 4, "node:Place": 2})
            assert (await graph.load(PEOPLE, mode="merge")).commit_id is not None

    asyncio.run(scenario())


def test_progress_counts_the_sent_bytes(pair, tmp_path):
    (tmp_path / "many.jsonl").write_text(
        "".join(json.dumps({"type": "Person", "data": {"name": f"person {n:>1000}"}}) + "\n" for n in range(2_000))
    )
    seen: list = []
    pair[1].load(str(tmp_path / "many.jsonl"), mode="merge", watch=seen.append)
    total = (tmp_path / "many.jsonl").stat().st_size >> 10
    assert {(step.step, step.total) for step in seen} == {("sending KiB", total)}
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert (len({step.done for step in seen}) > 2, seen[-1].done) == (True, total)


def test_files_of_other_graph_programs(pair, local, folder):
    here, there = pair
    local.export(folder / "neo4j", format="neo4j")
    (folder / "neo4j" / "Person-part2.csv").write_text("zoe,,,,,,Person\nyan,,,,,,Robot\n")
    compared(here, there, folder / "neo4j", format="neo4j")
    local.export(folder / "x.graphml", format="graphml")
    compared(here, there, folder / "x.graphml")
    (folder / "l.csv").write_text("name:ID,big:long,:LABEL\nlia,1,Person|Extra\n")
    compared(here, there, folder / "l.csv", format="neo4j", array_delimiter="|")
    for graph in pair:
        with pytest.raises(InputError, match="there is no format 'x' of files to load"):
            graph.load(folder / "l.csv", mode="merge", format="x")
        with pytest.raises(InputError, match="the format neo4j is one of files"):
            graph.load([], mode="merge", format="neo4j")
