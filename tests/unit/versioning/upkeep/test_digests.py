"""Deep verification finds every changed bit in every file of a table, and reports nothing for undamaged graphs."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.pipeline.load import load_source
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.pipeline.splits import plan_input
from omnigraph.pipeline.staged_input import FileSource
from omnigraph.versioning.upkeep import maintenance
from omnigraph.versioning.write import transaction

SCHEMA = """\
node Item {
  name: String @key
  note: String? @index
  data: Blob?
}

edge Link: Item -> Item {
  weight: I64?
}
"""


def item(name, **more):
    return {"type": "Item", "data": {"name": name, **more}}


def link(source, target):
    return {"edge": "Link", "from": source, "to": target}


def bulk(graph, folder, records, mode="merge"):
    path = folder / "bulk.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records))
    source = FileSource(plan_input([str(path)], {}, 1, split_bytes=60))
    return load_source(graph._repository, InlineRunner(), source, LoadRequest(mode))


def lived_in(uri, folder, **settings):
    """Return a graph with bulk-loaded, inserted, updated, deleted, merged, compacted and indexed rows."""
    graph = og.init(uri, SCHEMA, **settings)
    bulk(graph, folder, [item(f"bulk-{n}", note=f"note {n}") for n in range(6)] + [link("bulk-0", "bulk-1")])
    graph.load([item("a", note="first"), item("b"), link("a", "b")], mode="merge")
    graph.load([item("a", note="second")], mode="merge")
    bulk(graph, folder, [item("a", note="third"), item("c"), item("bulk-2", note="other")])
    graph.branch_create("side")
    og.open(uri, branch="side", **settings).load([item("side")], mode="merge")
    graph.merge("side", into="main")
    graph.optimize()
    graph.load([item("d", note="last"), link("d", "a")], mode="merge")
    graph.mutate('query drop() { delete Item where name = "b" }')
    graph.tag_create("kept")
    graph.load([item("after")], mode="merge")
    return graph


@pytest.fixture
def graph(tmp_path):
    return lived_in(tmp_path / "g", tmp_path, sync=False, environ={})


def deep(graph):
    return og.open(graph.uri, read_only=True, environ={}).verify(deep=True)


def live_files(graph):
    """Return every file that some head or tag refers to."""
    from omnigraph.storage.lance.digests import files_of_version, version_file, with_large_values  # noqa: PLC0415

    root = Path(graph.uri)
    repository = graph._repository
    snapshots = [repository.snapshot(branch) for branch in repository.branches()]
    snapshots.append(repository.snapshot(at="kept"))
    found = set()
    for snapshot in snapshots:
        for key, pinned in snapshot.tables.items():
            table = snapshot.table(key)
            files = with_large_values(table, files_of_version(table, indexes=True))
            found |= {root / pinned.folder / file for file in (*files, version_file(table.version))}
    return sorted(found)


def test_an_undamaged_graph_is_clean_after_every_operation(graph, tmp_path):
    assert deep(graph) == []
    graph.apply_schema(SCHEMA.replace("note: String? @index", "note: String? @index\n  more: I64?"))
    assert deep(graph) == []
    graph.load([item("later", more=3)], mode="merge")
    maintenance.cleanup(graph._repository, keep=1, confirm=True, grace=timedelta(hours=-1))
    assert deep(graph) == []
    graph.optimize()
    bulk(graph, tmp_path, [item("end")], mode="append")
    assert deep(graph) == []


def test_an_empty_graph_is_clean(tmp_path):
    assert deep(og.init(tmp_path / "g", SCHEMA, sync=False, environ={})) == []


def flip(path, bit):
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << (bit % 8)
    path.write_bytes(data)


def test_a_flipped_bit_is_found_in_any_file(graph):
    random = Random(7)
    files = live_files(graph)
    kinds = {path.parent.name if path.parent.name != path.parent.parent.name else "" for path in files}
    assert {"data", "_deletions", "_versions"} <= kinds
    assert any("_indices" in path.parts for path in files)
    for path in files:
        before = path.read_bytes()
        bits = {0, len(before) * 8 - 1, random.randrange(len(before) * 8)}
        for bit in (
            sorted(bits) if path.suffix == ".lance" and "_indices" not in path.parts else [random.choice([*bits])]
        ):
            flip(path, bit)
            found = deep(graph)
            assert any(path.name in problem.what and problem.damage for problem in found), (path, bit)
            path.write_bytes(before)
    assert deep(graph) == []


@pytest.mark.long
def test_flipped_bits_are_found_long(graph):
    random = Random(11)
    for path in live_files(graph):
        before = path.read_bytes()
        for _ in range(40):
            flip(path, random.randrange(len(before) * 8))
            assert any(path.name in problem.what for problem in deep(graph)), path
            path.write_bytes(before)


def test_a_missing_and_an_emptied_file_are_found(graph):
    path = next(path for path in live_files(graph) if path.parent.name == "data")
    before = path.read_bytes()
    path.write_bytes(b"")
    assert any(path.name in problem.what for problem in deep(graph))
    path.unlink()
    assert any(path.name in problem.what for problem in deep(graph))
    path.write_bytes(before)
    assert deep(graph) == []


def test_files_without_a_digest_are_no_damage(tmp_path, monkeypatch):
    """Files of a release that did not record digests."""
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, environ={})
    with monkeypatch.context() as older:
        older.setattr(transaction, "record_digests", lambda *_, **__: {})
        graph.load([item("a")], mode="merge")
    (found,) = deep(graph)
    assert not found.damage
    assert found.what == "no digest recorded for 2 of its files"
    assert graph.verify() == []


def test_large_values_are_covered(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, environ={})
    blob = pa.array([bytes(range(256)) * 1000], pa.large_binary())
    graph.load({"Item": pa.table({"name": ["big"], "data": blob})}, mode="append")
    table = next(Path(graph.uri).glob("nodes/*"))
    stored = sorted(path for path in (table / "data").rglob("*") if path.is_file())
    assert deep(graph) == []
    for path in stored:
        flip(path, path.stat().st_size * 4)
        assert any(path.name in problem.what for problem in deep(graph)), path
        flip(path, path.stat().st_size * 4)
