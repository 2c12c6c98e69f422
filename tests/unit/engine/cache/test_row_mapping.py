"""Mapping between the rows of a version and those of an earlier one."""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.engine.cache.row_mapping import FragmentLayout, map_rows
from omnigraph.engine.cache.table_cache import DataCache
from support.writes import new_graph, node

SCHEMA = "node Doc { name: String @key }"


def test_row_mapping_computed_by_hand(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, *(node("Doc", name=name) for name in "abcd"))
    cache = DataCache()

    def data() -> Any:
        return cache.table(graph.snapshot().table("node:Doc"))

    first = FragmentLayout.of(data())
    graph.mutate('query q() { delete Doc where name = "b" }')
    graph.load([node("Doc", name="e")], mode="append")
    found = map_rows(first, data())
    assert found is not None
    assert found.new == (1,)
    assert found.stored_of is not None
    assert found.stored_of.tolist() == [0, 2, 3, 4]
    assert found.row_of is not None
    assert found.row_of.tolist() == [0, -1, 1, 2, 3]
    later = FragmentLayout.of(data())
    assert np.array_equal(later.live[0], [0, 2, 3])
    old = cache.table(graph.snapshot(at=graph.commits()[2].id).table("node:Doc"))
    assert map_rows(later, old) is None, "an older version has a row that the later layout lacks"
