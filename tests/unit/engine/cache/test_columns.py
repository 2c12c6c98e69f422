"""Columns of rows in memory, and the tables that a cache opens per snapshot."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.engine.exec.context import NO_LIMITS, ExecutionContext
from support.writes import new_graph, node


def test_memory_table_reads_columns():
    table = MemoryTable.of(pa.table({"n": pa.chunked_array([[1, 2], [3]])}))
    assert table.row_count == 3
    assert table.column("n").to_pylist() == [1, 2, 3]
    assert table.take("n", np.array([2, 0])).to_pylist() == [3, 1]
    assert table.codes("n") is None


def test_derived_structures_are_computed_once():
    table = MemoryTable({}, 5)
    assert [table.derived("x", lambda value=value: value) for value in (1, 2)] == [1, 1]


def test_opened_tables_are_shared_per_snapshot_and_dropped_with_it(tmp_path):
    graph = new_graph(tmp_path, "node P { name: String @key }", node("P", name="a"))
    cache, snapshot = DataCache(), graph.snapshot()
    catalog = graph._context.catalogs.of(snapshot)
    first, second = (ExecutionContext(catalog, snapshot, cache, NO_LIMITS) for _ in range(2))
    assert first.table("node:P") is second.table("node:P")
    assert len(cache.snapshots) == 1
    del snapshot, first, second, graph
    gc.collect()
    assert len(cache.snapshots) == 0
