"""Statistics that are stored with the graph: by loads, queries and maintenance, for later processes."""

from __future__ import annotations

import json
import random
import shutil

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.engine.cache.disk_cache import FOLDER
from omnigraph.engine.cache.table_cache import TableData
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.operations.requests import QueryText
from support.writes import new_graph, node

SCHEMA = """
node P { name: String @key  n: I64?  city: String?  text: String? @index  vec: Vector(4)? }
edge E: P -> P { w: F64? }
"""
QUERY = QueryText("""
query q() {
  match { $a: P  $a.city = "c1"  $b: P  $b.n > 40  $a e $b  $c: P  $c e $b }
  return { $a.name, $c.name }
}
""")
ROWS = 2_000


@pytest.fixture(autouse=True)
def limits():
    """Loads of these tests store statistics."""
    with tuning.replaced(statistics_load_rows_min=500, statistics_stored_rows_min=100) as changed:
        yield changed


def people(count: int, start: int = 0) -> pa.Table:
    numbers = np.arange(start, start + count)
    return pa.table(
        {
            "name": [f"p{number:05}" for number in numbers],
            "n": pa.array(numbers % 100, pa.int64()),
            "city": [f"c{number % 7}" for number in numbers],
            "text": [f"some words {number}" if number % 10 == 0 else None for number in numbers],
        }
    )


def edges(count: int) -> pa.Table:
    random = np.random.default_rng(5)
    ends = [[f"p{number:05}" for number in (ROWS * random.random(count) ** power).astype(int)] for power in (1, 3)]
    return pa.table({"from": ends[0], "to": ends[1], "w": random.random(count)})


@pytest.fixture
def path(tmp_path):
    graph = new_graph(tmp_path, SCHEMA)
    graph.load({"P": people(ROWS), "E": edges(6_000)}, mode="append")
    return tmp_path / "g"


class Reads:
    """The reads of table columns."""

    def __init__(self, monkeypatch) -> None:
        self.names: list[str] = []
        for method in ("read", "read_rows", "read_fragments", "stream"):
            monkeypatch.setattr(TableData, method, self._recorded(getattr(TableData, method)))

    def _recorded(self, read):
        def recorded(data, names, *args):
            self.names += [names] if isinstance(names, str) else names
            return read(data, names, *args)

        return recorded


@pytest.fixture
def reads(monkeypatch) -> Reads:
    return Reads(monkeypatch)


def opened(path, **settings):
    return og.open(path, environ={}, **settings)


def plan(graph):
    return graph._context.plans.get_read(graph.snapshot(), QUERY).plan


def statistics(graph, at=None) -> GraphStatistics:
    context, snapshot = graph._context, graph.snapshot(at=at) if at is not None else graph.snapshot()
    return GraphStatistics(context.catalogs.of(snapshot), snapshot, context.cache)


def entries(path) -> set[str]:
    return {entry.name for entry in (path / FOLDER).iterdir()} if (path / FOLDER).exists() else set()


def test_a_new_handle_plans_without_reading_a_column(path, reads):
    assert len(entries(path)) == 2
    chosen = plan(opened(path))
    assert reads.names == []
    shutil.rmtree(path / FOLDER)
    assert plan(opened(path)) == chosen
    assert {"city", "n", "dst"} <= set(reads.names), "without stored statistics, columns are read"


def test_a_first_query_stores_what_it_computed(path, reads):
    shutil.rmtree(path / FOLDER)
    chosen = plan(opened(path))
    assert reads.names
    reads.names.clear()
    assert plan(opened(path)) == chosen
    assert reads.names == []
    later = opened(path)
    statistics(later).node_column("P", "text")
    assert reads.names == ["text"], "other columns are read when they are needed"


def test_statistics_of_a_load_equal_computed_ones(path):
    found = opened(path)
    loaded = statistics(found)
    shutil.rmtree(path / FOLDER)
    computed = statistics(opened(path))
    for name in ("n", "city", "text", "name", "vec"):
        assert loaded.node_column("P", name).pack() == computed.node_column("P", name).pack()
    assert loaded.edge_column("E", "w").pack() == computed.edge_column("E", "w").pack()
    for end in ("source", "target"):
        assert loaded.degrees("E", end) == computed.degrees("E", end)
    assert loaded.degrees("E", "target").skew > 1.5


def test_a_bulk_job_stores_the_same_statistics(path, tmp_path):
    lines = tmp_path / "rows.jsonl"
    rows = people(ROWS).to_pylist()
    lines.write_text("".join(json.dumps(node("P", **row)) + "\n" for row in rows))
    graph = og.init(tmp_path / "bulk", SCHEMA, environ={})
    with tuning.replaced(memory_load_bytes_max=1):
        graph.load(lines, mode="append")
    assert len(entries(tmp_path / "bulk")) == 1
    found, expected = (statistics(opened(place)).node_column("P", "n") for place in (tmp_path / "bulk", path))
    assert (found.rows, found.distinct, found.common) == (expected.rows, expected.distinct, expected.common)


def test_small_commits_write_nothing_and_keep_the_statistics(path, reads):
    graph, before = opened(path), entries(path)
    for number in range(5):
        graph.mutate(f'query q() {{ update P set {{ n: {number} }} where name = "p{number:05}" }}')
        graph.mutate(f'query q() {{ insert P {{ name: "x{number}", n: {number} }} }}')
        plan(graph)
    reads.names.clear()
    plan(opened(path))
    assert reads.names == []
    assert entries(path) == before


def test_added_rows_are_merged_in_a_new_process(path, reads):
    graph = opened(path)
    with tuning.replaced(statistics_load_rows_min=10**9):
        graph.load({"P": people(400, start=ROWS)}, mode="append")
    reads.names.clear()
    later = opened(path)
    found = statistics(later)
    merged = found.node_column("P", "n")
    assert reads.names == ["n"]
    assert (merged.rows, merged.distinct, merged.hashed) == (ROWS + 400, 100, ROWS + 400)
    found.store()
    reads.names.clear()
    assert statistics(opened(path)).node_column("P", "n").pack() == merged.pack()
    assert reads.names == []
    shutil.rmtree(path / FOLDER)
    whole = statistics(opened(path)).node_column("P", "n")
    assert merged.distinct == whole.distinct
    for value in (10, 50, 90):
        below = whole.share_below(value, inclusive=True)
        assert merged.share_below(value, inclusive=True) == pytest.approx(below, abs=0.08)


def test_an_appending_load_merges_its_rows(path, reads):
    graph = opened(path)
    graph.load({"P": people(600, start=ROWS)}, mode="append")
    assert reads.names == [], "a load in memory reads nothing for statistics"
    found = statistics(opened(path))
    assert (found.node_column("P", "n").rows, found.node_column("P", "city").distinct) == (ROWS + 600, 7)
    assert reads.names == []


def test_a_load_that_replaces_rows_leaves_the_statistics_to_a_query(path, reads):
    changed = people(ROWS).set_column(1, "n", pa.array([7] * ROWS, pa.int64()))
    opened(path).load({"P": changed.slice(0, 1_500)}, mode="merge")
    reads.names.clear()
    found = statistics(opened(path)).node_column("P", "n")
    assert reads.names == ["n"]
    assert found.share_equal(7) == pytest.approx(0.75, abs=0.05)


def test_many_deleted_rows_are_not_described(path):
    graph = opened(path)
    graph.mutate("query q() { delete P where n < 50 }")
    found = statistics(opened(path)).node_column("P", "n")
    assert (found.rows, found.low) == (ROWS / 2, 50)


def test_optimize_stores_statistics(path, reads):
    graph = opened(path)
    shutil.rmtree(path / FOLDER)
    graph.mutate("query q() { delete P where n < 50 }")
    graph.optimize()
    reads.names.clear()
    found = statistics(opened(path)).node_column("P", "n")
    assert (found.rows, reads.names) == (ROWS / 2, [])


def test_an_older_version_replaces_nothing(path, reads):
    before = opened(path).snapshot().commit_id
    graph = opened(path)
    graph.load({"P": people(3_000, start=ROWS)}, mode="append")
    kept = entries(path)
    old = statistics(graph, at=before)
    assert old.node_column("P", "n").rows == ROWS
    old.store()
    assert entries(path) == kept
    reads.names.clear()
    assert statistics(opened(path)).node_column("P", "n").rows == ROWS + 3_000
    assert reads.names == []


def test_a_damaged_entry_is_reported_and_rebuilt(path, caplog, reads):
    [damaged] = [entry for entry in (path / FOLDER).iterdir() if _rows_described(entry) == ROWS]
    file = damaged / "document"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    graph = opened(path)
    assert any(damaged.name in problem.where for problem in graph.verify())
    plan(graph)
    assert "is damaged and is built again" in caplog.text
    assert "city" in reads.names
    assert opened(path).verify() == []
    reads.names.clear()
    plan(opened(path))
    assert reads.names == []


def _rows_described(entry) -> int:
    return json.loads((entry / "about.json").read_text())["entry"]["rows"]


def test_a_read_only_handle_uses_the_statistics_and_writes_none(path, reads):
    plan(opened(path, read_only=True))
    assert reads.names == []
    shutil.rmtree(path / FOLDER)
    plan(opened(path, read_only=True))
    assert reads.names
    assert entries(path) == set()


def test_a_graph_without_a_disk_cache_keeps_statistics_in_memory(path, reads):
    graph = opened(path)
    cache = graph._context.cache
    cache.folder = cache.keep_in = None
    chosen, count = plan(graph), len(reads.names)
    assert count
    graph._context.plans._known.clear()
    assert plan(graph) == chosen
    assert len(reads.names) == count
    assert statistics(graph).coverage("P", "text") is None, "a search does not read the column"


def test_renamed_and_dropped_columns(path, reads):
    graph = opened(path)
    graph.apply_schema(
        SCHEMA.replace("city: String?", 'town: String? @rename_from("city")').replace("  vec: Vector(4)?", "")
    )
    reads.names.clear()
    found = statistics(opened(path)).node_column("P", "town")
    assert (found.distinct, reads.names) == (7, [])


def test_small_loads_and_tables_are_left_to_queries(tmp_path, limits):
    with tuning.replaced(statistics_load_rows_min=3_000):
        graph = new_graph(tmp_path, SCHEMA)
        graph.load({"P": people(ROWS)}, mode="append")
        assert entries(tmp_path / "g") == set()
        graph.load({"P": people(1_200, start=ROWS), "E": edges(2_000)}, mode="append")
        assert len(entries(tmp_path / "g")) == 1, "one table for each 3,000 rows: the largest"
    assert limits.statistics_stored_rows_min == 100


def test_coverage_of_texts_and_vectors(path):
    found = statistics(opened(path))
    text, vector = found.coverage("P", "text"), found.coverage("P", "vec")
    assert text.filled_share == pytest.approx(0.1, abs=0.02)
    assert text.length == pytest.approx(len("some words 1000"), abs=1)
    assert vector.filled_share == 0


@pytest.mark.parametrize("seed", range(4))
def test_statistics_after_random_changes_agree_with_computed_ones(tmp_path, seed):
    source = random.Random(seed)
    path = tmp_path / "g"
    graph = new_graph(tmp_path, SCHEMA)
    graph.load({"P": people(600)}, mode="append")
    count = 600
    for _ in range(8):
        low = source.randrange(90)
        match source.choice(["append", "append", "small", "update", "delete", "optimize"]):
            case "append":
                added = source.choice([20, 200, 700])
                graph.load({"P": people(added, start=count)}, mode="append")
                count += added
            case "small":
                graph.mutate(f'query q() {{ insert P {{ name: "x{count}", n: {low} }} }}')
            case "update":
                graph.mutate(f"query q() {{ update P set {{ n: {low} }} where n > {low + 5} }}")
            case "delete":
                graph.mutate(f"query q() {{ delete P where n = {low} }}")
            case "optimize":
                graph.optimize()
        later = statistics(opened(path, read_only=source.random() < 0.3))
        values = later._data("node:P").column("n").to_numpy()
        found = later.node_column("P", "n")
        later.store()
        present = np.unique(values)
        assert found.distinct == pytest.approx(len(present), rel=0.25, abs=3)
        for bound in (10, 50, 90):
            below = float((values <= bound).mean())
            assert found.share_below(bound, inclusive=True) == pytest.approx(below, abs=0.15)
        assert later.node_column("P", "city").distinct == pytest.approx(7, abs=1)
