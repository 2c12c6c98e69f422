"""Rows, tables, exports and Blob values of a remote graph equal those of the embedded graph."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import InputError, NotFound, TypeNotFound


@pytest.mark.parametrize(("type_name", "id"), [("Person", "ana"), ("Person", "bo/b"), ("Place", 7), ("Knows", "k1")])
def test_get(local, remote, type_name, id):
    expected = local.get(type_name, id)
    assert expected is not None
    assert remote.get(type_name, id) == expected
    assert remote.entity_at(type_name, id, at=local.snapshot().commit_id) == expected


def test_absent_rows_and_types(remote):
    assert remote.get("Person", "nobody") is None
    with pytest.raises(TypeNotFound):
        remote.get("Nothing", "x")
    with pytest.raises(InputError, match="there is no kind"):
        remote.get("Person", "ana", kind="both")


@pytest.mark.parametrize("columns", [None, ["name", "born"]])
def test_tables(local, remote, columns):
    expected = local.to_arrow("Person", columns=columns)
    found = remote.to_arrow("Person", columns=columns)
    assert found.schema.equals(expected.schema)
    assert found.to_pylist() == expected.to_pylist()
    reader, here = remote.to_batches("Person", columns=columns), local.to_batches("Person", columns=columns)
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.schema.equals(here.schema, check_metadata=True)
    assert reader.read_all().to_pylist() == expected.to_pylist()
    assert [batch.num_rows for batch in remote.to_batches("Person", batch_rows=1)] == [1, 1]


def test_table_errors(remote):
    with pytest.raises(InputError, match="no column"):
        remote.to_batches("Person", columns=["nme"])
    with pytest.raises(InputError, match="batch_rows"):
        remote.to_batches("Person", batch_rows=0)
    with pytest.raises(TypeNotFound):
        remote.to_arrow("Persons")


@pytest.mark.parametrize("types", [None, ["Person"], ["node:Place", "Knows"]])
def test_export_of_records(local, remote, types):
    assert list(remote.export(types=types)) == list(local.export(types=types))


@pytest.mark.parametrize("format", ["jsonl", "parquet", "csv", "arrow"])
def test_export_to_files(local, remote, tmp_path, format):
    here, there = tmp_path / "here", tmp_path / "there"
    assert remote.export(there, format=format) == local.export(here, format=format)
    if format == "jsonl":
        assert there.read_text() == here.read_text()
        return
    assert sorted(path.name for path in there.iterdir()) == sorted(path.name for path in here.iterdir())
    copy = og.init(tmp_path / "copy.omni", str(local.schema))
    copy.load([str(there)], mode="append")
    assert list(copy.export()) == list(local.export())


@pytest.mark.parametrize("format", ["neo4j", "graphml", "gexf"])
def test_export_for_other_graph_programs(local, remote, server, tmp_path, format):
    here, there, later = tmp_path / "here", tmp_path / "there", tmp_path / "later"
    assert remote.export(there, format=format) == local.export(here, format=format)

    async def export() -> int:
        async with await og.aconnect(server.url) as graph:
            return await graph.export(later, format=format, types=["Person", "Knows"])

    assert asyncio.run(export()) == 3
    assert remote.export(tmp_path / "some", format=format, types=["Person", "Knows"]) == 3
    paths = [sorted(path.rglob("*")) if path.is_dir() else [path] for path in (here, there, later, tmp_path / "some")]
    texts = [[path.read_bytes() for path in some] for some in paths]
    assert texts[0] == texts[1]
    assert texts[2] == texts[3]
    with pytest.raises(InputError, match="the edges 'Knows' are exported without their nodes 'Person'"):
        remote.export(tmp_path / "wrong", format=format, types=["Knows"])
    assert not (tmp_path / "wrong").exists()


def test_a_refused_export_leaves_the_file(remote, tmp_path):
    path = tmp_path / "old.jsonl"
    path.write_text("old")
    with pytest.raises(TypeNotFound):
        remote.export(path, types=["Nothing"])
    assert path.read_text() == "old"
    with pytest.raises(InputError) as caught:
        remote.export(tmp_path / "parts", format="parquet", partitioned=True)
    assert caught.value.code == "not_remote"


def test_blob(local, remote):
    here, there = local.blob("Person", "bo/b", "photo"), remote.blob("Person", "bo/b", "photo")
    assert (there.size, there.etag, there.commit_id) == (here.size, here.etag, here.commit_id)
    assert there.read() == here.read() == b"hello world"
    assert there.read(6, 3) == b"wor"
    assert there.read(99) == b""
    assert list(there.stream(4)) == list(here.stream(4))
    with there.open() as file:
        file.seek(-5, 2)
        assert file.read() == b"world"
    for arguments, error in [(("Person", "ana", "photo"), NotFound), (("Person", "ana", "name"), InputError)]:
        with pytest.raises(error) as local_error:
            local.blob(*arguments)
        with pytest.raises(error) as remote_error:
            remote.blob(*arguments)
        assert str(remote_error.value) == str(local_error.value)


def test_networkx(local, remote):
    here, there = local.to_networkx(), remote.to_networkx()
    assert dict(there.nodes(data=True)) == dict(here.nodes(data=True))
    assert list(there.edges(keys=True, data=True)) == list(here.edges(keys=True, data=True))


def test_asynchronous_tables(local, server, tmp_path):
    async def scenario():
        async with await og.aconnect(server.url) as graph:
            assert await graph.get("Person", "ana") == local.get("Person", "ana")
            batches = [batch async for batch in graph.to_batches("Person")]
            assert pa.Table.from_batches(batches).to_pylist() == local.to_arrow("Person").to_pylist()
            assert [record async for record in await graph.export()] == list(local.export())
            assert await graph.export(tmp_path / "all.jsonl") == 5
            blob = await graph.blob("Person", "bo/b", "photo")
            assert await blob.read(0, 5) == b"hello"
            assert [chunk async for chunk in blob.stream(6)] == [b"hello ", b"world"]

    asyncio.run(scenario())
