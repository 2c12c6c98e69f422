"""Search structures are built after bulk loads and by `optimize`; queries compute only rows that they do not cover."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.engine.adjacency import adjacency
from omnigraph.engine.cache import disk_cache
from omnigraph.engine.search import index_builder, inverted_index
from omnigraph.errors import StorageError
from omnigraph.graph import Graph
from omnigraph.operations import derived
from omnigraph.pipeline.runner import Progress
from omnigraph.query.visibility import Visibility
from omnigraph.query.write_guard import WriteGuard
from support.writes import edge, new_graph, node, reopened

SCHEMA = """node Doc {
    name: String @key
    text: String? @index
    kind: enum(a, b) @index
    note: String?
    vec: Vector(3)?
}"""
RANKED = 'query q() { match { $d: Doc } return { $d.name } order { bm25($d.text, "river stone") } limit 5 }'
NOTED = 'query q() { match { $d: Doc  search($d.note, "sea") } return { $d.name } order { $d.name } }'
ROWS = 40


@pytest.fixture(autouse=True)
def small(tune):
    """Keep the structures of small tables."""
    tune(segment_rows_min=10, postings_disk_rows_min=1, vector_disk_bytes_min=1, id_segments_rows_min=20)


@pytest.fixture
def built(monkeypatch) -> list[int]:
    """The number of texts of each build of a text index."""
    seen: list[int] = []
    finish = index_builder.IndexBuild.row_arrays

    def counting(build: Any) -> Any:
        made = finish(build)
        seen.append(len(made["lengths"]))
        return made

    monkeypatch.setattr(index_builder.IndexBuild, "row_arrays", counting)
    return seen


def docs(start: int, stop: int) -> list[dict[str, Any]]:
    return [
        node("Doc", name=f"d{at}", text=f"river {'stone ' * (at % 5)}{at}", kind="a", note="sea", vec=[at, 1, 0])
        for at in range(start, stop)
    ]


def kept(graph: og.Graph) -> set[str]:
    folder = Path(graph.uri.removeprefix("file://")) / disk_cache.FOLDER
    return {json.loads(about.read_text())["entry"]["what"][0] for about in folder.glob("*/about.json")}


def test_a_bulk_load_builds_the_structures_that_queries_use(tmp_path, built):
    graph = new_graph(tmp_path, SCHEMA, *docs(0, ROWS))
    assert {inverted_index.WORDS, "vectors", "ids"} <= kept(graph)
    assert built == [ROWS], "the declared text column; not the key, the enum and the other text"
    expected = graph.query(RANKED).to_rows()
    assert reopened(graph).query(RANKED).to_rows() == expected
    assert built == [ROWS], "no query built an index"


def test_few_new_rows_are_left_to_the_queries_and_many_form_a_segment(tmp_path, built):
    graph = new_graph(tmp_path, SCHEMA, *docs(0, ROWS))
    graph.load(docs(ROWS, ROWS + 5), mode="append")
    assert built == [ROWS]
    graph.query(RANKED)
    assert built == [ROWS, 5]
    graph.load(docs(ROWS + 5, ROWS + 20), mode="append")
    assert built == [ROWS, 5, 20], "with the rows of the load before it"
    graph.query(RANKED)
    graph.optimize()
    graph.query(RANKED)
    assert built[3:] in ([], [ROWS + 20]), "compaction may move the rows"
    assert len(graph.query(RANKED)) == 5


def test_optimize_builds_what_is_missing_and_a_column_that_was_searched(tmp_path, built, tune):
    tune(segment_rows_min=1_000)
    graph = new_graph(tmp_path, SCHEMA, *docs(0, ROWS))
    assert inverted_index.WORDS not in kept(graph)
    assert built == []
    tune(segment_rows_min=10)
    graph.optimize()
    assert built == [ROWS]
    graph.query(NOTED)
    assert built == [ROWS, ROWS]
    graph.load(docs(ROWS, ROWS + 20), mode="append")
    assert built == [ROWS, ROWS, 20, 20], "both columns"
    assert not any(table.pending for table in graph.optimize())


def test_progress_is_reported(tmp_path):
    graph = new_graph(tmp_path, SCHEMA)
    steps: list[Progress] = []
    graph.load(docs(0, ROWS), mode="append", watch=steps.append)
    found = [(step.done, step.total) for step in steps if step.step == "build search structures"]
    assert found == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_notes_on_structures_name_no_hidden_column(tmp_path, monkeypatch):
    graph = new_graph(tmp_path, SCHEMA)

    def fail(chunks: Any, writer: Any, bytes_max: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(inverted_index, "write_index", fail)
    hides = WriteGuard(Visibility({}, {("node:Doc", "text"): None}))
    records = docs(0, ROWS)
    for record in records:
        record["data"].pop("text", None)
    result = Graph(graph._context.with_guard(hides)).load(records, mode="append")
    assert "search structures that you cannot use were not built" in result.notes
    assert "text" not in str(result.notes)


@pytest.mark.parametrize("failure", ["disk", "cancelled"])
def test_a_load_whose_structures_cannot_be_built_is_committed_and_says_so(tmp_path, monkeypatch, failure):
    graph = new_graph(tmp_path, SCHEMA)
    cancellation = og.Cancellation()

    def fail(chunks: Any, writer: Any, bytes_max: int) -> None:
        if failure == "disk":
            raise OSError(errno.ENOSPC, "No space left on device")
        cancellation.cancel()
        index_builder.index_arrays(chunks)

    monkeypatch.setattr(inverted_index, "write_index", fail)
    result = graph.load(docs(0, ROWS), mode="append", cancel=cancellation)
    assert result.commit_id is not None
    reason = "No space left on device" if failure == "disk" else "cancelled"
    assert any("'text' was not built" in note and reason in note for note in result.notes), result.notes
    monkeypatch.undo()
    assert len(reopened(graph).query(RANKED)) == 5


def test_a_load_whose_structures_cannot_be_listed_is_committed_and_says_so(tmp_path, monkeypatch):
    graph = new_graph(tmp_path, SCHEMA)

    def fail(*_: Any) -> None:
        raise StorageError("the store does not answer")

    monkeypatch.setattr(derived, "_is_searched", fail)
    result = graph.load(docs(0, ROWS), mode="append")
    note = "a search structure was not built (the store does not answer); the first query that needs it builds it"
    assert result.notes == (f"node:Doc: {note}",)
    assert len(reopened(graph).query(RANKED)) == 5


def test_optimize_reports_what_it_could_not_build(tmp_path, monkeypatch, tune):
    tune(segment_rows_min=1_000)
    graph = new_graph(tmp_path, SCHEMA, *docs(0, ROWS))
    tune(segment_rows_min=10)

    def fail(chunks: Any, writer: Any, bytes_max: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(inverted_index, "write_index", fail)
    (table,) = graph.optimize()
    assert [(one.column, one.reason) for one in table.pending] == [("text", "not built: No space left on device")]


def test_a_build_keeps_the_memory_budget(tmp_path, monkeypatch, tune):
    tune(postings_chunk_bytes=100)
    made: list[tuple[int, int]] = []
    finish = index_builder.IndexBuild.row_arrays

    def recording(build: Any) -> Any:
        made.append((build.partial_bytes, len(build.partials)))
        return finish(build)

    monkeypatch.setattr(index_builder.IndexBuild, "row_arrays", recording)
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, memory="64MiB")
    graph.load(docs(0, ROWS), mode="append")
    assert made == [(64 * 1024**2 // 4 // 3, 1)]
    tune(postings_chunk_bytes=100, postings_partial_bytes=500)
    graph.load(docs(ROWS, 3 * ROWS), mode="append")
    assert made[1][0] == 500
    assert made[1][1] > 3
    assert len(graph.query(RANKED)) == 5


def test_a_read_only_graph_builds_nothing(tmp_path, built):
    graph = new_graph(tmp_path, SCHEMA, *docs(0, 5))
    reader = og.open(graph.uri, read_only=True)
    assert len(reader.query(RANKED)) == 5
    assert built == [5]
    assert kept(graph) <= {"statistics"}


LINKED = "node Item { name: String @key }\nedge Link: Item -> Item"


def links(start: int, stop: int) -> list[dict[str, Any]]:
    return [edge("Link", f"i{at % ROWS}", f"i{at * 7 % ROWS}") for at in range(start, stop)]


def test_a_bulk_load_of_edges_builds_the_neighbours_of_both_directions(tmp_path, tune, monkeypatch):
    tune(adjacency_disk_edges_min=10, adjacency_changed_edges_min=0)
    graph = new_graph(tmp_path, LINKED, *(node("Item", name=f"i{at}") for at in range(ROWS)), *links(0, 100))
    folder = Path(graph.uri.removeprefix("file://")) / disk_cache.FOLDER

    def edges_of(direction: str) -> int:
        for about in folder.glob("*/about.json"):
            entry = json.loads(about.read_text())["entry"]
            if entry["what"][0] == "adjacency" and entry["what"][-1] == direction:
                return sum(rows for _, rows, _ in entry["edges"]["pieces"])
        return 0

    assert edges_of("out") == edges_of("in") == 100
    hop = 'query q() { match { $a: Item { name: "i1" }  $a <link>{1,2} $b } return { count($b) as n } }'
    graph.load(links(100, 120), mode="append")
    assert edges_of("out") == 100, "few new edges are left to the queries"
    expected = graph.query(hop).to_rows()
    graph.load(links(120, 200), mode="append")
    assert edges_of("out") == edges_of("in") == 200
    graph.load(links(200, 220), mode="append")
    graph.optimize()
    assert edges_of("out") == edges_of("in") == 220
    monkeypatch.setattr(adjacency, "write_targets", lambda *_: pytest.fail("a query built the neighbours"))
    out = 'query q() { match { $a: Item { name: "i1" }  $a link $b } return { count($b) as n } }'
    assert reopened(graph).query(out).to_rows()[0]["n"] > 0
    assert expected[0]["n"] > 0
