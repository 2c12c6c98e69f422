"""Segments of one version are reused by later versions after inserts, updates, deletes and compaction."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph as og
from omnigraph.engine.cache import disk_cache
from omnigraph.engine.cache.segments import SegmentBuilder, SegmentView, segments_of
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.engine.search import index_builder
from omnigraph.graph import Graph
from support.writes import new_graph, node, reopened

SCHEMA = "node Doc { name: String @key  text: String?  vec: Vector(3)? }"
WORDS = ["red", "blue", "green", "stone", "river", "sea", "café", "über"]
ASK = """query q($v: Vector(3), $t: String) {
    match { $d: Doc }
    return { $d.name, nearest($d.vec, $v) as far, bm25($d.text, $t) as score, search($d.text, $t) as held }
    order { $d.name }
}"""
NEAR = "query q($v: Vector(3)) { match { $d: Doc } return { $d.name } order { nearest($d.vec, $v) } limit 5 }"
RELEVANT = "query q($t: String) { match { $d: Doc } return { $d.name } order { bm25($d.text, $t) } limit 5 }"
BOTH = """query q($v: Vector(3), $t: String) {
    match { $d: Doc } return { $d.name } order { rrf(nearest($d.vec, $v), bm25($d.text, $t)) } limit 5
}"""


@pytest.fixture(autouse=True)
def _small(tune):
    """Lower the thresholds so that all structures are kept on disk and compared by codes."""
    tune(vector_exact_rows_max=1, vector_disk_bytes_min=0, postings_disk_rows_min=0)


def answers(graph: Graph, random: Random, **where: Any) -> list[Any]:
    values = {"v": [random.choice((-1, 0, 1, 0.5)) for _ in range(3)], "t": " ".join(random.sample(WORDS, 2))}
    return [
        graph.query(text, params={key: values[key] for key in values if f"${key}:" in text}, **where).to_rows()
        for text in (ASK, NEAR, RELEVANT, BOTH)
    ]


def doc(random: Random, name: str) -> dict[str, Any]:
    text = None if random.random() < 0.1 else " ".join(random.choices(WORDS, k=random.randrange(6)))
    vec = None if random.random() < 0.1 else [random.choice((-2, -1, 0, 0.5, 1)) for _ in range(3)]
    return node("Doc", name=name, text=text, vec=vec)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_updated_segments_give_the_results_of_a_new_graph_long(tmp_path, tune, seed):
    tune(segment_rows_min=2, segments_max=3)
    compare_after_changes(tmp_path, seed, steps=30)


@pytest.mark.parametrize("seed", range(4))
def test_updated_segments_give_the_results_of_a_new_graph(tmp_path, seed):
    compare_after_changes(tmp_path, seed, steps=12)


@pytest.mark.parametrize("seed", range(4, 6))
def test_vectors_are_read_from_the_table_if_a_copy_would_be_large(tmp_path, tune, seed):
    tune(vector_copy_bytes_max=0, complete_column_rows=0, complete_column_bytes=0, take_row_cost=1)
    compare_after_changes(tmp_path, seed, steps=12)
    arrays = {file.name for file in tmp_path.rglob(f"{disk_cache.FOLDER}/*/*")}
    assert "codes" in arrays
    assert "matrix" not in arrays


def test_the_size_of_the_copy_is_that_of_all_segments(tmp_path, tune):
    tune(segment_rows_min=10, vector_disk_bytes_min=1, vector_copy_bytes_max=40 * 3 * 4)
    random = Random(3)

    def count(array: str) -> int:
        return len(list(tmp_path.rglob(f"{disk_cache.FOLDER}/*/{array}")))

    graph = new_graph(tmp_path, SCHEMA, *(doc(random, f"d{at}") for at in range(30)))
    answers(graph, Random(0))
    assert (count("codes"), count("matrix")) == (1, 1)
    graph.load([doc(random, f"e{at}") for at in range(20)], mode="append")
    answers(graph, Random(0))
    assert (count("codes"), count("matrix")) == (2, 1)


def compare_after_changes(tmp_path: Path, seed: int, steps: int) -> None:
    """Change a graph at random; after every change, compare its results with those of a new graph."""
    random = Random(seed)
    graph = new_graph(tmp_path, SCHEMA, *(doc(random, f"d{at}") for at in range(30)))
    answers(graph, Random(0))
    points = [graph.commits()[0].id]
    for step in range(steps):
        names = [record["data"]["name"] for record in graph.export()]
        match random.randrange(5):
            case 0 | 1:
                graph.load([doc(random, f"s{step}-{at}") for at in range(random.randrange(1, 4))], mode="append")
            case 2:
                graph.load([doc(random, random.choice(names))], mode="merge")
            case 3:
                graph.mutate(f'query q() {{ delete Doc where name = "{random.choice(names)}" }}')
            case _:
                graph.optimize()
        points.append(graph.commits()[0].id)
        if random.random() < 0.3:
            graph = reopened(graph)
        seen = random.randrange(1_000)
        fresh = new_graph(tmp_path / f"fresh{step}", SCHEMA)
        fresh.load(list(graph.export()), mode="append")
        assert answers(graph, Random(seen)) == answers(fresh, Random(seen))
    # Earlier versions, with the segments that later versions left in memory and on disk.
    for at in random.sample(points, 4):
        fresh = new_graph(tmp_path / f"past{at}", SCHEMA)
        fresh.load(list(graph.export(at=at)), mode="append")
        assert answers(graph, Random(7), at=at) == answers(fresh, Random(7))


def count_built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of texts analysed by each build."""
    seen: list[int] = []
    finish = index_builder.IndexBuild.row_arrays

    def counting(build: Any) -> Any:
        made = finish(build)
        seen.append(len(made["lengths"]))
        return made

    monkeypatch.setattr(index_builder.IndexBuild, "row_arrays", counting)
    return seen


def test_a_small_commit_analyses_only_its_rows_and_a_new_process_none(tmp_path, monkeypatch):
    random = Random(1)
    graph = new_graph(tmp_path, SCHEMA, *(doc(random, f"d{at}") for at in range(50)))
    seen = count_built(monkeypatch)
    answers(graph, Random(0))
    assert seen == [50]
    graph.load([doc(random, "new")], mode="append")
    answers(graph, Random(0))
    assert seen == [50, 1]
    graph.mutate('query q() { delete Doc where name = "d7" }')
    graph.load([doc(random, "d8")], mode="merge")
    answers(graph, Random(0))
    assert seen == [50, 1, 2], "only rows of new fragments; nothing for a delete"
    other = reopened(graph)
    answers(other, Random(0))
    assert seen == [50, 1, 2, 2], "the segments of the first process are read from disk"
    assert {path.name for path in (Path(graph.uri.removeprefix("file://")) / disk_cache.FOLDER).iterdir()}


def test_deleted_or_damaged_entries_are_rebuilt(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, *(doc(Random(2), f"d{at}") for at in range(20)))
    expected = answers(graph, Random(0))
    folder = Path(graph.uri.removeprefix("file://")) / disk_cache.FOLDER
    for about in folder.glob("*/about.json"):
        about.write_text("{")
    assert answers(reopened(graph), Random(0)) == expected
    for array in folder.glob("*/*"):
        array.write_bytes(b"no array")
    assert answers(reopened(graph), Random(0)) == expected


def test_many_new_rows_become_a_segment_on_disk(tmp_path, monkeypatch, tune):
    tune(segment_rows_min=3)
    random = Random(1)
    graph = new_graph(tmp_path, SCHEMA, *(doc(random, f"d{at}") for at in range(10)))
    seen = count_built(monkeypatch)
    answers(graph, Random(0))
    graph.load([doc(random, f"n{at}") for at in range(8)], mode="append")
    answers(graph, Random(0))
    assert seen == [10, 8]
    graph.load([doc(random, "one"), doc(random, "n3")], mode="merge")
    answers(graph, Random(0))
    assert seen == [10, 8, 2]
    answers(reopened(graph), Random(0))
    assert seen == [10, 8, 2, 2], "both segments are read from disk"
    graph.optimize()
    answers(graph, Random(0))
    assert seen == [10, 8, 2, 2, 19], "compaction moved the rows to other files"
    answers(reopened(graph), Random(0))
    assert seen == [10, 8, 2, 2, 19], "the earlier segments are removed"


def test_segments_are_merged_if_there_are_too_many_or_most_rows_are_deleted(tmp_path, monkeypatch, tune):
    tune(segment_rows_min=1, segments_max=2)
    random = Random(1)
    graph = new_graph(tmp_path, SCHEMA, *(doc(random, f"d{at}") for at in range(4)))
    seen = count_built(monkeypatch)
    for step in range(3):
        answers(graph, Random(0))
        graph.load([doc(random, f"s{step}-{at}") for at in range(2)], mode="append")
    answers(graph, Random(0))
    assert seen == [4, 2, 8, 2]
    for name in ("d0", "d1", "d2", "d3", "s0-0", "s0-1"):
        graph.mutate(f'query q() {{ delete Doc where name = "{name}" }}')
    answers(graph, Random(0))
    assert seen == [4, 2, 8, 2, 4]


def test_a_read_only_graph_uses_the_disk_cache_without_writing(tmp_path, monkeypatch):
    random = Random(1)
    graph = new_graph(tmp_path, SCHEMA, *(doc(random, f"d{at}") for at in range(10)))
    folder = Path(graph.uri.removeprefix("file://")) / disk_cache.FOLDER
    seen = count_built(monkeypatch)
    reader = og.open(graph.uri, read_only=True, environ={})
    answers(reader, Random(0))
    assert seen == [10]
    assert not folder.exists()
    answers(graph, Random(0))
    answers(og.open(graph.uri, read_only=True, environ={}), Random(0))
    assert seen == [10, 10]


def test_segment_view_computed_by_hand(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, *(node("Doc", name=name, text=name) for name in "abcd"))
    cache = DataCache()

    def view(**where: Any) -> SegmentView[list[str]]:
        data = cache.table(graph.snapshot(**where).table("node:Doc"))

        def make(fragments: Any) -> list[str]:
            return [text for chunk in data.stream("text", fragments) for text in chunk.to_pylist()]

        return segments_of(data, "text", SegmentBuilder("texts", 0, make, lambda *_: None, lambda _: []))

    assert view() == SegmentView((["a", "b", "c", "d"],), (0,))
    graph.mutate('query q() { delete Doc where name = "b" }')
    graph.load([node("Doc", name="e", text="e")], mode="append")
    found = view()
    assert found.bodies == (["a", "b", "c", "d"], ["e"])
    assert found.starts == (0, 4)
    assert found.stored_of is not None
    assert found.stored_of.tolist() == [0, 2, 3, 4]
    assert found.row_of is not None
    assert found.row_of.tolist() == [0, -1, 1, 2, 3]
    assert view(at=graph.commits()[2].id) == SegmentView((["a", "b", "c", "d"],), (0,))
