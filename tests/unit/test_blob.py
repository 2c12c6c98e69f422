"""`Graph.blob`: ranged reads, tags, time travel and errors."""

from __future__ import annotations

import asyncio
import io
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import omnigraph as og
from omnigraph.blob import Blob
from omnigraph.engine.exec.cancellation import Cancellation, Watch, watching
from omnigraph.errors import Cancelled, CommitNotFound, Damaged, InputError, NotFound, TypeNotFound
from omnigraph.versioning.upkeep.maintenance import cleanup
from support.writes import edge, new_graph, node

SCHEMA = """
node Photo { name: String @key  stars: I32?  data: Blob?  small: Blob? }
node Room { number: I32 @key  plan: Blob? }
node Plain { name: String @key }
edge Shows: Photo -> Room { note: Blob? }
"""
MIB = 1024 * 1024
SIZES = {"inline": 900, "packed": 200_000, "large": 9 * MIB, "empty": 0}
"""Lance stores values of these sizes in the data file, in a shared file and in a file of their own."""


def content(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


@pytest.fixture
def graph(tmp_path):
    photos = [node("Photo", name=name, data=content(size)) for name, size in SIZES.items()]
    return new_graph(tmp_path, SCHEMA, *photos, node("Photo", name="none"))


def set_stars(graph: og.Graph, name: str) -> str:
    return graph.mutate(f'query q() {{ update Photo set {{ stars: 5 }} where name = "{name}" }}').commit_id


def put(graph: og.Graph, name: str, data: bytes | None) -> None:
    graph.load([node("Photo", name=name, data=data)], mode="merge", missing="keep")


def bytes_read() -> int:
    """Return the number of bytes that this process has read from files."""
    return int(Path("/proc/self/io").read_text().split()[1])


# -- reads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIZES)
def test_blob_has_the_stored_bytes(graph, name):
    blob, expected = graph.blob("Photo", name, "data"), content(SIZES[name])
    assert blob.size == len(expected)
    assert blob.read() == expected
    assert b"".join(blob.stream(100_000)) == expected
    assert blob.open().read() == expected
    assert blob.commit_id == graph.snapshot().commit_id


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(
    ("offset", "length"), [(0, 0), (0, 10), (100, None), (899, 5), (900, None), (150_000, 80_000), (10**12, 1)]
)
def test_range_is_limited_to_the_value(graph, name, offset, length):
    expected = content(SIZES[name])[offset:][:length]
    blob = graph.blob("Photo", name, "data")
    assert blob.read(offset, length) == expected
    assert b"".join(blob.stream(1_000, offset=offset, length=length)) == expected


def test_chunks_have_the_requested_size(graph):
    assert [len(chunk) for chunk in graph.blob("Photo", "inline", "data").stream(400)] == [400, 400, 100]
    assert [len(chunk) for chunk in graph.blob("Photo", "large", "data").stream()] == [MIB] * 9
    assert list(graph.blob("Photo", "empty", "data").stream()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the number of bytes read is known on Linux only")
def test_only_the_requested_range_is_read(graph):
    before = bytes_read()
    blob = graph.blob("Photo", "large", "data")
    assert blob.read(5 * MIB, 1_000) == content(9 * MIB)[5 * MIB : 5 * MIB + 1_000]
    assert next(blob.stream(1_000)) == content(9 * MIB)[:1_000]
    assert bytes_read() - before < MIB


def test_open_returns_a_seekable_file(graph):
    expected = content(9 * MIB)
    with graph.blob("Photo", "large", "data").open() as file:
        assert isinstance(file, io.BufferedIOBase)
        assert file.read(5) == expected[:5]
        assert file.seek(-7, io.SEEK_END) == len(expected) - 7
        assert file.read() == expected[-7:]
        assert file.read(1) == b""
        assert file.seek(3 * MIB) == 3 * MIB
        file.seek(10, io.SEEK_CUR)
        assert (file.tell(), file.read(4)) == (3 * MIB + 10, expected[3 * MIB + 10 :][:4])
        with pytest.raises(ValueError, match="negative"):
            file.raw.seek(-1)


def test_threads_share_a_blob(graph):
    blob, expected = graph.blob("Photo", "large", "data"), content(9 * MIB)
    offsets = [number * 137_731 % (8 * MIB) for number in range(100)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda offset: blob.read(offset, 500), offsets))
    assert found == [expected[offset : offset + 500] for offset in offsets]


def test_stream_stops_at_a_cancellation(graph):
    cancellation = Cancellation()
    with watching(Watch(cancellation=cancellation)):
        chunks = graph.blob("Photo", "large", "data").stream(1_000)
        next(chunks)
        cancellation.cancel()
        with pytest.raises(Cancelled):
            next(chunks)


@pytest.mark.parametrize(
    "call",
    [
        lambda blob: blob.read(-1),
        lambda blob: blob.read(0, -1),
        lambda blob: blob.read(1.5),
        lambda blob: blob.read(True),
        lambda blob: blob.stream(0),
        lambda blob: blob.stream("1"),
        lambda blob: blob.stream(offset=-1),
    ],
)
def test_wrong_ranges_are_refused_at_the_call(graph, call):
    with pytest.raises(InputError, match="must be a"):
        call(graph.blob("Photo", "inline", "data"))


def test_edges_and_integer_keys(tmp_path):
    shows = edge("Shows", "a", "7", id_="e", note=b"in the corner")
    graph = new_graph(tmp_path, SCHEMA, node("Photo", name="a"), node("Room", number=7, plan=b"square"), shows)
    assert graph.blob("Shows", "e", "note").read() == b"in the corner"
    assert graph.blob("Room", 7, "plan").read() == graph.blob("Room", "7", "plan").read() == b"square"


def test_ids_and_names_are_quoted(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, node("Photo", name="it's", data=b"a"), node("Photo", name="x", data=b"b"))
    assert graph.blob("Photo", "it's", "data").read() == b"a"
    with pytest.raises(NotFound, match="does not exist"):
        graph.blob("Photo", "' OR '1'='1", "data")


# -- versions ----------------------------------------------------------------------------------------


def test_old_commits_keep_their_bytes(graph):
    first = graph.snapshot().commit_id
    put(graph, "inline", b"new")
    graph.tag_create("second")
    graph.branch_create("side")
    put(graph.on("side"), "inline", b"side")
    put(graph, "inline", None)
    assert graph.blob("Photo", "inline", "data", at=first).read() == content(900)
    assert graph.blob("Photo", "inline", "data", at="second").read() == b"new"
    assert graph.blob("Photo", "inline", "data", branch="side").read() == b"side"
    assert graph.on("side").blob("Photo", "inline", "data").read() == b"side"


def test_open_blob_keeps_its_version(graph):
    blob = graph.blob("Photo", "large", "data")
    put(graph, "large", b"new")
    graph.optimize()
    assert blob.read(9 * MIB - 10) == content(9 * MIB)[-10:]


def test_values_survive_compaction_and_schema_changes(graph):
    set_stars(graph, "large")
    graph.optimize()
    graph.apply_schema(SCHEMA.replace("stars: I32?", "stars: I32?  extra: Blob?  size: I32?"))
    with pytest.raises(NotFound) as failure:
        graph.blob("Photo", "large", "extra")
    assert failure.value.code == "null_blob"
    graph.load([node("Photo", name="large", extra=b"more")], mode="merge")
    assert graph.blob("Photo", "large", "extra").read() == b"more"
    graph.apply_schema(SCHEMA.replace("data: Blob?", 'image: Blob? @rename_from("data")'), allow_data_loss=True)
    for name, size in SIZES.items():
        assert graph.blob("Photo", name, "image").read() == content(size)


def test_removed_files_are_a_typed_error(graph):
    blob = graph.blob("Photo", "large", "data")
    [folder] = {path.parents[1] for path in Path(graph.uri).rglob("*.blob")}
    shutil.rmtree(folder)
    with pytest.raises(Damaged) as failure:
        blob.read(0, 10)
    assert failure.value.code == "missing_file"


def test_versions_removed_by_a_cleanup_are_a_typed_error(graph):
    first, blob = graph.snapshot().commit_id, graph.blob("Photo", "large", "data")
    put(graph, "large", b"new")
    graph.optimize()
    cleanup(graph._repository, keep=1, confirm=True, grace=timedelta(seconds=-3600))
    for read in (lambda: blob.read(0, 10), lambda: graph.blob("Photo", "large", "data", at=first)):
        with pytest.raises(Damaged) as failure:
            read()
        assert failure.value.code == "version_reclaimed"
    assert graph.blob("Photo", "large", "data").read() == b"new"


# -- tags --------------------------------------------------------------------------------------------


def test_etag_identifies_the_bytes(graph):
    tags = {name: graph.blob("Photo", name, "data").etag for name in SIZES}
    assert len(set(tags.values())) == len(tags)
    assert all(len(tag) == 32 and tag.isalnum() for tag in tags.values())
    again = og.open(graph.uri)
    assert {name: again.blob("Photo", name, "data").etag for name in SIZES} == tags


def test_etag_changes_with_the_bytes_and_not_with_other_rows(graph):
    first = graph.snapshot().commit_id
    tags = {name: graph.blob("Photo", name, "data").etag for name in SIZES}
    put(graph, "inline", b"x" * 900)
    assert graph.blob("Photo", "inline", "data").etag != tags["inline"]
    assert graph.blob("Photo", "large", "data").etag == tags["large"]
    assert graph.blob("Photo", "inline", "data", at=first).etag == tags["inline"]
    graph.branch_create("side")
    assert graph.blob("Photo", "large", "data", branch="side").etag == tags["large"]


def test_etag_differs_between_two_properties_of_a_row(graph):
    graph.load([node("Photo", name="two", data=b"same", small=b"diff")], mode="merge")
    assert graph.blob("Photo", "two", "data").etag != graph.blob("Photo", "two", "small").etag


def test_etags_of_two_writers_of_the_same_row_differ(graph):
    """Both branches write to the same offset of a new fragment with the same number."""
    graph.branch_create("side")
    put(graph, "inline", b"ours")
    put(graph.on("side"), "inline", b"theirs")
    ours, theirs = graph.blob("Photo", "inline", "data"), graph.blob("Photo", "inline", "data", branch="side")
    assert ours.etag != theirs.etag
    assert (ours.read(), theirs.read()) == (b"ours", b"theirs")


def test_repr_shows_size_and_tag():
    assert repr(Blob(lambda _, length: bytes(length), size=3, etag="ab", commit_id="c")) == "Blob(size=3, etag='ab')"


# -- errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "code", "message", "hint"),
    [
        (("Photos", "inline", "data"), TypeNotFound, "type_not_found", "type 'Photos' does not", "'Photo'"),
        (("Photo", "gone", "data"), NotFound, "entity_not_found", "Photo 'gone' does not exist at", "is its key"),
        (("Photo", "none", "data"), NotFound, "null_blob", "Photo 'none' has no value in 'data'", "earlier values"),
        (("Photo", "inline", "dat"), InputError, "not_a_blob", "'Photo' has no property 'dat'", "'data'"),
        (("Photo", "inline", "zzz"), InputError, "not_a_blob", "'Photo' has no property 'zzz'", "are: data, small"),
        (("Photo", "inline", "stars"), InputError, "not_a_blob", "'stars' of type I32?, not Blob", "data, small"),
        (("Photo", "inline", "id"), InputError, "not_a_blob", "has no property 'id'", "data, small"),
        (("Plain", "x", "name"), InputError, "not_a_blob", "'name' of type String, not Blob", "no Blob property"),
        (("Photo", "inline", 3), InputError, "bad_input", "the name of a property is a str, not int", ""),
        (("Photo", 1.5, "data"), InputError, "bad_input", "an id is a str or an int", ""),
    ],
)
def test_errors_name_the_cause(graph, arguments, error, code, message, hint):
    with pytest.raises(error) as failure:
        graph.blob(*arguments)
    assert failure.value.code == code
    assert message in failure.value.message
    assert hint in (failure.value.hint or "")


def test_unknown_point_is_refused(graph):
    with pytest.raises(CommitNotFound):
        graph.blob("Photo", "inline", "data", at="nowhere")


# -- event loops -------------------------------------------------------------------------------------


def test_async_blob(graph):
    async def scenario():
        async with await og.aopen(graph.uri) as opened:
            blob = await opened.blob("Photo", "packed", "data")
            known, expected = graph.blob("Photo", "packed", "data"), content(200_000)
            assert (blob.size, blob.etag, blob.commit_id) == (known.size, known.etag, known.commit_id)
            assert repr(blob) == f"Async{known!r}"
            assert await blob.read() == expected
            assert await blob.read(10, 5) == expected[10:15]
            assert [chunk async for chunk in blob.stream(150_000)] == [expected[:150_000], expected[150_000:]]
            assert [len(chunk) async for chunk in blob.stream(2, offset=1, length=3)] == [2, 1]
            with pytest.raises(NotFound):
                await opened.blob("Photo", "none", "data")
            with pytest.raises(InputError):
                blob.stream(0)

    asyncio.run(scenario())
