"""Search structures of a graph on an object store are computed once and downloaded by other machines."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.engine.adjacency import adjacency
from omnigraph.engine.cache import disk_cache, entry_checks, id_segments, remote_cache, user_folder
from omnigraph.engine.search import inverted_index, vector_scan
from omnigraph.graph_handle import cache_of
from omnigraph.storage.files.location import locate
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.files.objects import object_store

SCHEMA = """
node Item { name: String @key  note: String @index  v: Vector(4) }
edge Link: Item -> Item
"""
HOPS = 'query q() { match { $a: Item { name: "i1" }  $a link $b } return { $b.name as name } order { $b.name } }'
RANKED = 'query q() { match { $a: Item } return { $a.name as name } order { bm25($a.note, "red 7") } limit 3 }'
NEAREST = (
    "query q() { match { $a: Item } return { $a.name as name } order { nearest($a.v, [1.0, 2.0, 3.0, 4.0]) } limit 3 }"
)
QUERIES = (HOPS, RANKED, NEAREST)


def items(first: int, last: int) -> list[dict[str, Any]]:
    nodes = [
        {"type": "Item", "data": {"name": f"i{at}", "note": f"red {at}", "v": [at, 1, 2, at % 3]}}
        for at in range(first, last)
    ]
    return nodes + [{"edge": "Link", "from": f"i{at}", "to": f"i{at // 2}"} for at in range(max(first, 1), last)]


@pytest.fixture(autouse=True)
def low_thresholds(tune):
    tune(
        adjacency_disk_edges_min=20,
        adjacency_changed_edges_min=10,
        segment_rows_min=10,
        postings_disk_rows_min=10,
        vector_disk_bytes_min=1,
        vector_exact_rows_max=1,
        id_segments_rows_min=10,
        complete_column_rows=1,
        remote_cache_list_s=0.0,
    )


class Machines:
    """Machines with cache folders of their own."""

    def __init__(self, s3: Any, folder: Path) -> None:
        self.uri = s3.new_place()
        self.objects: ObjectStore = object_store(locate(self.uri, s3.environ))
        self._environ = s3.environ
        self._folder = folder

    def environ(self, name: str) -> dict[str, str]:
        return {**self._environ, user_folder.VARIABLE: str(self._folder / name)}

    def open(self, name: str, **given: Any) -> og.Graph:
        return og.open(self.uri, environ=self.environ(name), **given)

    def entries(self) -> list[str]:
        return self.objects.list(remote_cache._folder())

    def document(self, kind: str) -> tuple[str, dict[str, Any]]:
        for name in self.entries():
            document = json.loads(self.objects.read(name) or b"")
            what = document["entry"]["what"]
            table = "edges/" if kind == "adjacency" else "nodes/"
            if what[0] == kind and what[-1] in ("0", "out") and what[1].startswith(table):
                return name, document
        raise AssertionError(f"there is no entry of {kind}")


@pytest.fixture
def machines(s3, tmp_path) -> Machines:
    found = Machines(s3, tmp_path)
    graph = og.init(found.uri, SCHEMA, environ=found.environ("first"))
    graph.load(items(0, 60), mode="append")
    return found


@pytest.fixture
def forbid_builds(monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("built again")

    def forbid() -> None:
        monkeypatch.setattr(adjacency, "write_targets", refuse)
        monkeypatch.setattr(adjacency, "number_ends", refuse)
        monkeypatch.setattr(inverted_index, "write_index", refuse)
        monkeypatch.setattr(inverted_index, "build_inverted_index", refuse)
        monkeypatch.setattr(vector_scan, "_blocks", refuse)
        monkeypatch.setattr(id_segments, "crc32_texts", refuse)

    return forbid


def answers(graph: og.Graph) -> list[list[Any]]:
    return [graph.query(query).to_pylist() for query in QUERIES]


def test_another_machine_downloads_what_a_load_built(machines, forbid_builds):
    expected = answers(machines.open("first"))
    forbid_builds()
    graph = machines.open("second", read_only=True)
    assert answers(graph) == expected
    assert answers(machines.open("second")) == expected, "a later process maps the local copies"


def test_an_optimized_graph_replaces_its_entries(machines, forbid_builds):
    before = machines.entries()
    graph = machines.open("second")
    graph.load(items(60, 200), mode="append")
    graph.optimize()
    after = machines.entries()
    assert not set(before) & set(after)
    expected = answers(graph)
    known = {json.loads(machines.objects.read(name) or b"")["entry"]["what"][0] for name in after}
    assert known >= {"adjacency", "ids", inverted_index.WORDS, "vectors"}
    folders = {name.rpartition(".json")[0].rpartition(".")[2] for name in after}
    assert {folder.rpartition("/")[2] for folder in machines.objects.folders(remote_cache._folder())} == folders
    forbid_builds()
    assert answers(machines.open("first")) == expected, "an outdated local copy is replaced"
    assert answers(machines.open("third")) == expected
    machines.open("third").optimize()
    assert machines.entries() == after


def test_stored_statistics_stay_on_the_machine(machines, tune):
    tune(statistics_stored_rows_min=10)
    graph = machines.open("second")
    graph.load(items(60, 200), mode="append")
    graph.optimize()
    graph.optimize()
    kept = {entry["what"][0] for _, entry in disk_cache.descriptions(cache_of(graph).keep_in)}
    uploaded = {json.loads(machines.objects.read(name) or b"")["entry"]["what"][0] for name in machines.entries()}
    assert "statistics" in kept
    assert "statistics" not in uploaded


def test_small_changes_make_no_request(machines, monkeypatch):
    graph = machines.open("first")
    answers(graph)
    monkeypatch.setattr(remote_cache.RemoteCache, "_list", lambda _: pytest.fail("listed"))
    monkeypatch.setattr(remote_cache.RemoteCache, "upload", lambda *_, **__: pytest.fail("uploaded"))
    graph.load(items(60, 64), mode="append")
    graph.mutate('query q() { update Item set { note: "blue" } where name = "i3" }')
    assert graph.query(HOPS).to_pylist()
    assert graph.query(RANKED).to_pylist()


@pytest.mark.parametrize("kind", ["adjacency", "postings", "vectors", "ids"])
@pytest.mark.parametrize("harm", ["flip", "shorten", "remove", "description", "no description"])
def test_a_damaged_entry_is_built_again(machines, caplog, kind, harm):
    expected = answers(machines.open("first"))
    kind = inverted_index.WORDS if kind == "postings" else kind
    name, document = machines.document(kind)
    folder = f"{remote_cache._folder()}/{name.rpartition('.json')[0].rpartition('.')[2]}"
    array = max(machines.objects.list(folder), key=lambda one: len(machines.objects.read(one) or b""))
    data = machines.objects.read(array) or b""
    match harm:
        case "flip":
            machines.objects.write(array, data[:-1] + bytes([data[-1] ^ 1]))
        case "shorten":
            machines.objects.write(array, data[:-1])
        case "remove":
            machines.objects.delete(array)
        case "description":
            machines.objects.write(name, b'{"entry": {}')
        case _:
            machines.objects.delete(name)
    with caplog.at_level(logging.WARNING, "omnigraph"):
        assert answers(machines.open("second", read_only=True)) == expected
        assert answers(machines.open("third")) == expected
    assert ("is damaged and is built again" in caplog.text) == (harm in ("flip", "shorten", "description"))
    machines.open("third").optimize()
    if harm != "remove":
        assert machines.document(kind)[1]["entry"]["arrays"] == document["entry"]["arrays"]


def forged(document: dict[str, Any], **changes: Any) -> bytes:
    entry = {**document["entry"], **changes}
    text = json.dumps(entry, sort_keys=True)
    return json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest(), "entry": entry}).encode()


@pytest.mark.parametrize(
    "changes",
    [
        {"arrays": {"../../../../escaped": {"type": "|u1", "shape": [4], "checksum": 1}}},
        {"arrays": {"targets": {"type": "|O", "shape": [4], "checksum": 1}}},
        {"arrays": {"targets": {"type": "<i4", "shape": [1 << 60], "checksum": 1}}},
        {"arrays": {"targets": {"type": "<i4", "shape": [-1], "checksum": 1}}},
        {"arrays": ["targets"]},
        {"arrays": {}},
        {"edges": {"pieces": 7}},
        {"edges": []},
        {"what": ["adjacency"]},
        {"what": 7},
        {"generation": 4},
    ],
)
def test_a_forged_description_is_refused(machines, tmp_path, changes):
    expected = answers(machines.open("first"))
    name, document = machines.document("adjacency")
    machines.objects.write(name, forged(document, **changes))
    assert answers(machines.open("second")) == expected
    assert not list(tmp_path.rglob("escaped"))


def test_values_out_of_range_are_refused(machines, caplog):
    """Checksums protect from damage; compiled loops need indexes that are in range even if they are forged."""
    expected = answers(machines.open("first"))
    name, document = machines.document("adjacency")
    upload = name.rpartition(".json")[0].rpartition(".")[2]
    facts = document["entry"]["arrays"]["targets"]
    array = np.full(facts["shape"], 1 << 30, facts["type"])
    machines.objects.write(f"{remote_cache._folder()}/{upload}/targets", array.tobytes())
    arrays = {**document["entry"]["arrays"], "targets": {**facts, "checksum": entry_checks.checksum(array)}}
    machines.objects.write(name, forged(document, arrays=arrays))
    with caplog.at_level(logging.WARNING, "omnigraph"):
        assert answers(machines.open("second")) == expected
    assert "'targets' has a number out of range" in caplog.text


def test_an_upload_that_fails_is_no_error(machines, monkeypatch, caplog):
    from omnigraph.errors import StorageError  # noqa: PLC0415
    from omnigraph.storage.files.s3_objects import S3Objects  # noqa: PLC0415

    def fail(*_: Any) -> None:
        raise StorageError("no space")

    monkeypatch.setattr(S3Objects, "write_file", fail)
    graph = machines.open("first")
    with caplog.at_level(logging.WARNING, "omnigraph"):
        assert graph.load(items(60, 200), mode="append").notes == ()
    assert "search structures were not uploaded: no space" in caplog.text
    assert answers(machines.open("second")) == answers(graph)


def test_remains_of_uploads_are_removed(machines, tune):
    orphan, older, newer = (
        f"{remote_cache._folder()}/{'0' * 32}/words",
        f"{disk_cache.FOLDER}/4/x.json",
        f"{disk_cache.FOLDER}/99/x.json",
    )
    for name in (orphan, older, newer):
        machines.objects.write(name, b"x")
    machines.open("first").optimize()
    assert [machines.objects.read(name) for name in (orphan, older, newer)] == [b"x", None, b"x"]
    tune(disk_cache_orphan_s=-60.0)
    machines.open("first").optimize()
    assert machines.objects.read(orphan) is None
    assert answers(machines.open("second"))
