"""Graphs of earlier storage formats, written by the releases that used them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import lance
import pytest

import omnigraph as og
from omnigraph.errors import IncompatibleFormat
from omnigraph.storage.manifest.manifest_schema import STAMP_KEY
from omnigraph.version import STORAGE_FORMAT, STORAGE_FORMAT_NEWEST, STORAGE_FORMAT_OLDEST
from support.graphs import files_below
from support.store import repository_of

CASES = Path(__file__).parents[3] / "cases" / "formats"
OLDER = "match { $p: Person $p.age > 3 } return { $p.name } order { $p.name }"


@pytest.fixture(params=range(STORAGE_FORMAT_OLDEST, STORAGE_FORMAT))
def format_(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def previous(tmp_path: Path, format_: int) -> Path:
    with zipfile.ZipFile(CASES / f"{format_}.zip") as file:
        file.extractall(tmp_path)
    return tmp_path / "team.omni"


def stamp(path: Path) -> int:
    return int(lance.dataset(path / "__manifest").schema.metadata[STAMP_KEY.encode()])


def test_a_graph_of_an_earlier_format_is_read_without_changes(previous, format_):
    before = files_below(previous)
    graph = og.open(previous, read_only=True)
    assert [row["p.name"] for row in graph.query(OLDER)] == ["p4", "p5"]
    assert [row["p.name"] for row in graph.query(OLDER, branch="side")] == ["p3", "p4", "p5"]
    assert len(graph.query("match { $a knows{1,5} $b } return { $a.name, $b.name }")) == 15
    assert [change.id for change in graph.diff("main", "side")] == ["p3"]
    assert [tag.name for tag in graph.tags()] == ["v1"]
    assert graph.verify() == []
    assert graph.snapshot().to_json()["internal_schema_version"] == format_
    assert stamp(previous) == format_
    assert files_below(previous) == before


def test_the_first_write_upgrades_the_format_and_loses_nothing(previous, format_):
    graph = og.open(previous)
    before = [commit.id for commit in graph.commits()]
    reader = og.open(previous, read_only=True)
    assert stamp(previous) == format_, "opening is no write"
    graph.mutate('insert Person { name: "new", age: 9 }')
    assert stamp(previous) == STORAGE_FORMAT
    assert [commit.id for commit in graph.commits()][1:] == before
    assert [row["p.name"] for row in reader.query(OLDER)] == ["new", "p4", "p5"]
    assert graph.merge("side").outcome == "merged"
    assert (
        graph.on("side")
        .mutate('query q() { update Person set { age: 77 } where name = "p3" }', idempotency_key="k1")
        .commit_id
        == graph.commits("side")[0].id
    )
    graph.optimize()
    assert graph.verify() == []
    assert [problem for problem in graph.verify(deep=True) if problem.damage] == []
    assert [row["p.name"] for row in graph.query(OLDER, at="v1")] == ["p4", "p5"]


def test_two_writers_upgrade_the_format_once(previous):
    first, second = og.open(previous), og.open(previous)
    first.snapshot(), second.snapshot()
    first.mutate('insert Person { name: "a" }')
    second.mutate('insert Person { name: "b" }')
    assert stamp(previous) == STORAGE_FORMAT
    assert {"a", "b"} <= {row["p.name"] for row in first.query("match { $p: Person } return { $p.name }")}
    assert first.verify() == []


def test_a_handle_upgrades_a_graph_that_another_process_upgraded(tmp_path):
    """The stamp is not in the log: the handle must read the checkpoint again."""
    graph = og.init(tmp_path / "graph", "node Person { name: String @key }", sync=False)
    graph.mutate('insert Person { name: "a" }')
    og.open(tmp_path / "graph").store_query("query people() { match { $p: Person } return { $p.name } }")
    assert graph.purge("Person", ["a"], reason="test").rows == {"node:Person": 1}


def test_a_checkpoint_of_an_upgraded_graph_loses_nothing(previous):
    graph = og.open(previous)
    known = og.open(previous, read_only=True)
    before = known.commits("side")
    for number in range(70):
        graph.mutate(f'insert Person {{ name: "new {number}", age: 9 }}')
    for handle in (graph, known, og.open(previous)):
        assert repository_of(handle).state().manifest.checkpoint.version > 64
        assert len(handle.commits()) == 72
        assert handle.commits("side") == before
        assert len(handle.query(OLDER)) == 72
        assert [row["p.name"] for row in handle.query(OLDER, branch="side")] == ["p3", "p4", "p5"]
        assert [row["p.name"] for row in handle.query(OLDER, at="v1")] == ["p4", "p5"]
    assert graph.verify() == []
    rows = lance.dataset(previous / "__manifest").to_table().to_pylist()
    assert len({row["object_id"] for row in rows}) == len(rows)


@pytest.mark.parametrize("format_", [STORAGE_FORMAT - 1], indirect=True)
def test_a_handle_does_not_write_a_graph_that_a_later_release_upgraded(previous):
    graph, reader = og.open(previous), og.open(previous, read_only=True)
    graph.mutate('insert Person { name: "new" }')
    lance.dataset(previous / "__manifest").update_schema_metadata({STAMP_KEY: str(STORAGE_FORMAT_NEWEST + 1)})
    repository_of(graph).manifest.read()
    with pytest.raises(IncompatibleFormat):
        og.open(previous)
    with pytest.raises(IncompatibleFormat):
        graph.mutate('insert Person { name: "newer" }')
    assert stamp(previous) == STORAGE_FORMAT_NEWEST + 1
    assert len(reader.commits()) == 3


@pytest.mark.parametrize("found", [STORAGE_FORMAT_OLDEST - 1, STORAGE_FORMAT_NEWEST + 1])
def test_other_formats_are_refused(previous, found):
    lance.dataset(previous / "__manifest").update_schema_metadata({STAMP_KEY: str(found)})
    with pytest.raises(IncompatibleFormat, match=f"has storage format {found}; this release reads 1001 to 1006"):
        og.open(previous)
