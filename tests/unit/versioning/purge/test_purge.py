"""Repeated purges, and the indexes after a purge."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import KeyReused, OmniGraphError, StorageError
from omnigraph.operations.purge import rebuild
from omnigraph.storage.failpoints import arm
from omnigraph.storage.lance.table_versions import renewed
from support.failing_disk import file_size_limit
from support.store import repository_of

SCHEMA = """\
node Person {
  name: String @key
  note: String? @index
}

edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", SCHEMA, sync=False)
    people = [{"type": "Person", "data": {"name": name, "note": f"note of {name}"}} for name in ("ana", "bob", "cy")]
    graph.load([*people, {"edge": "Knows", "from": "ana", "to": "bob", "data": {}}], mode="append")
    return graph


def indexed(graph: og.Graph, key: str) -> bool:
    return bool(repository_of(graph).snapshot("main").table(key).dataset.describe_indices())


def structures(folder: Path) -> set[str]:
    return {path.name for path in (folder / "__cache").rglob("*") if path.is_file()}


def test_a_repeated_request_returns_the_certificate(graph, tmp_path):
    first = graph.purge("Person", ["ana"], edges=True, reason="test", idempotency_key="once")
    again = og.open(tmp_path / "graph").purge("Person", ["ana"], edges=True, reason="test", idempotency_key="once")
    assert (again.purge_id, again.digest, again.rows) == (first.purge_id, first.digest, first.rows)
    assert (again.versions, again.bytes_removed) == (first.versions, first.bytes_removed)
    assert first.removed
    assert (again.removed, again.rewritten) == ((), ())
    assert first.digest == first.computed_digest()
    assert len(graph.purges()) == 1
    assert graph.purge("Person", ["ana"], edges=True, reason="test", idempotency_key="twice").rows == {}
    with pytest.raises(KeyReused, match="'once' was used for another purge"):
        graph.purge("Person", ["bob"], reason="test", idempotency_key="once")
    with pytest.raises(og.errors.InputError, match="idempotency key"):
        graph.purge("Person", ["bob"], reason="test", idempotency_key="")


def test_a_graph_with_keyed_and_queued_proposals(graph):
    """Keys and queues are stored beside the logs of proposals."""
    graph.branch_create("draft")
    graph.on("draft").mutate('query q() { insert Person { name: "dee" } }')
    proposal = graph.propose("draft", title="Add Dee", idempotency_key="of-dee")
    proposal.comment("who is this?", on={"table_key": "node:Person", "row_id": "dee"})
    proposal.land()
    graph.purge("Person", ["dee"], reason="test")
    assert [record.state for record in graph.purges()] == ["done"]
    assert graph.purge_redact(["Add Dee"], confirm=True).events == 1


@pytest.mark.parametrize("dropped", [False, True])
def test_the_values_of_other_rows_are_kept(tmp_path, dropped):
    """A purge writes the columns of files again, lists included."""
    properties = {
        "tags": ("[String]?", ["a", ""]),
        "marks": ("[I64]?", []),
        "days": ("[Date]?", ["2026-01-01"]),
        "vec": ("Vector(2)?", [1.0, 2.0]),
        "data": ("Blob?", "base64:AAAA"),
    }
    head = "node Person {\n  name: String @key\n"
    graph = og.init(
        tmp_path / "values", head + "".join(f"  {name}: {of}\n" for name, (of, _) in properties.items()) + "}\n"
    )
    values = {name: value for name, (_, value) in properties.items()}
    graph.load([{"type": "Person", "data": {"name": name, **values}} for name in ("ana", "bob")], mode="append")
    loaded = graph.snapshot().commit_id
    if dropped:
        graph.apply_schema(head + "}\n", allow_data_loss=True)
    expected = [[row for row in graph.export(at=at) if row["data"]["name"] == "bob"] for at in (loaded, None)]
    graph.purge("Person", ["ana"], reason="test")
    purged = og.open(tmp_path / "values")
    assert [[*purged.export(at=at)] for at in (loaded, None)] == expected
    assert purged.verify(deep=True) == []


def test_dropped_sorted_indexes_are_in_the_certificate(graph):
    """A purge makes no commit; `optimize` builds the indexes."""
    graph.optimize()
    assert indexed(graph, "node:Person")
    before = [commit.id for commit in graph.commits()]
    certificate = graph.purge("Person", ["ana"], edges=True, reason="test")
    assert sorted(certificate.unindexed) == ["edge:Knows", "node:Person"]
    assert certificate.to_json()["unindexed"] == certificate.unindexed
    assert not indexed(graph, "node:Person")
    assert [commit.id for commit in graph.commits()] == before
    graph.optimize()
    assert indexed(graph, "node:Person")
    assert graph.purge_verify(["note of ana"]).is_clean
    assert graph.verify(deep=True) == []


def test_search_structures_are_built_again(graph, tmp_path, tune):
    tune(segment_rows_min=1, id_segments_rows_min=1)
    assert not structures(tmp_path / "graph")
    certificate = graph.purge("Person", ["ana"], edges=True, reason="test")
    assert certificate.unindexed == {}
    assert structures(tmp_path / "graph")
    assert graph.purge_verify(["note of ana"]).is_clean


def test_a_failure_to_build_structures_is_in_the_certificate(graph, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise og.errors.StorageError("the disk is full", code="disk_full")

    monkeypatch.setattr(rebuild, "build_derived", fail)
    certificate = graph.purge("Person", ["ana"], edges=True, reason="test")
    assert certificate.unindexed == {"node:Person": "the disk is full", "edge:Knows": "the disk is full"}
    assert graph.purges()[0].state == "done"
    assert graph.purge_verify(["note of ana"]).is_clean


def cut(folder: Path, known: set[Path]) -> None:
    """Remove the end of the files that are not known."""
    for path in set(folder.glob("data/*.lance")) - known:
        os.truncate(path, path.stat().st_size - 1)


def test_new_data_files_are_checked_before_the_switch(graph, tmp_path):
    (table,) = (tmp_path / "graph" / "nodes").iterdir()
    known = set(table.glob("data/*"))
    with arm("purge.rewritten", lambda: cut(table, known)), pytest.raises(StorageError, match="is incomplete"):
        graph.purge("Person", ["ana"], edges=True, reason="test")
    again = og.open(tmp_path / "graph")
    assert again.purges()[0].state == "running"
    assert sorted(again.to_arrow("Person")["name"].to_pylist()) == ["ana", "bob", "cy"]
    assert [problem for problem in again.verify(deep=True) if problem.damage] == []
    again.purge_resume()
    assert sorted(again.to_arrow("Person")["name"].to_pylist()) == ["bob", "cy"]
    assert again.purge_verify(["note of ana"]).is_clean


def test_a_new_manifest_is_read_back_before_earlier_ones_are_removed(graph, tmp_path):
    manifest = tmp_path / "graph" / "__manifest"
    known: set[Path] = set()
    with (
        arm("purge.switched", lambda: known.update(manifest.rglob("*.lance"))),
        arm("purge.checkpoint", lambda: cut(manifest, known)),
        pytest.raises(OmniGraphError, match="manifest"),
    ):
        graph.purge("Person", ["ana"], edges=True, reason="test")
    assert known
    assert all(path.exists() for path in known)
    for handle in (og.open(tmp_path / "graph"), graph):
        assert sorted(handle.to_arrow("Person")["name"].to_pylist()) == ["bob", "cy"]
        assert len(handle.commits()) == 2
    assert [problem for problem in graph.verify(deep=True) if problem.damage] == []
    graph.purge_resume()
    assert graph.purge_verify(["note of ana"]).is_clean


def test_a_new_manifest_that_a_later_entry_continues_is_kept(graph, tmp_path):
    manifest = tmp_path / "graph" / "__manifest"
    known: set[Path] = set()

    def publish_and_cut() -> None:
        og.open(tmp_path / "graph").tag_create("t")
        known.update(manifest.glob("_versions/*.manifest"))
        cut(manifest, known)

    with (
        arm("purge.switched", lambda: known.update(manifest.rglob("*.lance"))),
        arm("purge.checkpoint", publish_and_cut),
        pytest.raises(OmniGraphError, match="manifest"),
    ):
        graph.purge("Person", ["ana"], edges=True, reason="test")
    assert all(path.exists() for path in known)


def test_a_version_that_a_sweep_restores_is_complete_or_refused(graph, tmp_path):
    (table,) = (tmp_path / "graph" / "nodes").iterdir()
    before = {*table.glob("_versions/*.manifest")}
    limits = ExitStack()

    def add_unpinned_version_and_limit_files() -> None:
        repository = repository_of(graph)
        base = repository.snapshot("main").table("node:Person")
        renewed(base, base.version)
        before.update(table.glob("_versions/*.manifest"))
        limits.enter_context(file_size_limit(min(path.stat().st_size for path in before) - 1))

    with (
        limits,
        arm("purge.checkpoint", add_unpinned_version_and_limit_files),
        pytest.raises(StorageError, match="cannot be changed"),
    ):
        graph.purge("Person", ["ana"], edges=True, reason="test")
    assert {*table.glob("_versions/*.manifest")} == before
    graph.purge_resume()
    assert sorted(graph.to_arrow("Person")["name"].to_pylist()) == ["bob", "cy"]
    assert [problem for problem in graph.verify(deep=True) if problem.damage] == []
