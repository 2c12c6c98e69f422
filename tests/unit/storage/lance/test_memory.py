"""Caches and objects of a process stay bounded over many commits."""

from __future__ import annotations

import gc
from collections import Counter

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.engine.cache.table_cache import TableData
from omnigraph.storage.lance import table_store
from omnigraph.storage.lance.tables import Table
from omnigraph.storage.manifest import checkpoint
from omnigraph.storage.manifest.manifest_version import ManifestVersion
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.state import State

SCHEMA = "node Item {\n  name: String @key\n  note: String @index\n}\n"
COUNT = "query q() { match { $i: Item } return { count($i) as n } }"
SEARCH = 'query q() { match { $i: Item  search($i.note, "red") } return { count($i) as n } }'
BOUND = 150_000
SLACK = 1.5
"""An entry is added before older ones are evicted."""


def objects() -> Counter[str]:
    gc.collect()
    kinds = (Table, TableData, ManifestVersion, State, Snapshot)
    # The type, not isinstance: a weak proxy of a dead object raises when its class is asked for.
    found = (type(one) for one in gc.get_objects())
    return Counter(kind.__name__ for kind in found if issubclass(kind, kinds))


def test_memory_is_bounded_in_the_number_of_commits(tmp_path, monkeypatch):
    for module in (table_store, checkpoint):
        monkeypatch.setattr(module, "_METADATA_CACHE_BYTES", BOUND)
        monkeypatch.setattr(module, "_INDEX_CACHE_BYTES", BOUND)
    monkeypatch.setattr(table_store, "_HANDLES_MAX", 8)
    graph = og.init(tmp_path / "graph", SCHEMA)
    repository, cache = graph._repository, graph._context.cache
    counts: list[Counter[str]] = []
    entries: list[int] = []
    for number in range(60):
        graph.load([{"type": "Item", "data": {"name": f"i{number}", "note": "red"}}], mode="append")
        assert next(iter(graph.query(COUNT)))["n"] == number + 1
        assert next(iter(graph.query(SEARCH)))["n"] == number + 1
        if number in (39, 59):
            counts.append(objects())
            entries.append(cache.entry_count)
    assert repository.tables.cache_bytes <= BOUND * 2 * SLACK
    assert repository.manifest.cache_bytes <= BOUND * 2 * SLACK
    assert counts[1] <= counts[0]
    assert entries[1] <= entries[0]


def test_adjacency_to_old_versions_of_nodes_is_dropped(tmp_path):
    """The edge table never changes, and its adjacency to every version of the nodes is kept with it."""
    graph = og.init(tmp_path / "graph", SCHEMA + "edge Near: Item -> Item\n")
    items = [{"type": "Item", "data": {"name": f"i{number}", "note": "red"}} for number in range(4)]
    graph.load([*items, {"edge": "Near", "from": "i0", "to": "i1"}], mode="append")
    counts: list[Counter[str]] = []
    with tuning.replaced(table_versions_max=3):
        for number in range(16):
            graph.mutate(f'query q() {{ update Item set {{ note: "{number}" }} where name = "i{number % 4}" }}')
            hops = graph.query("query q() { match { $a: Item $a near{1,3} $b } return { $a.name, count($b) as n } }")
            assert len(hops) == 1
            if number in (9, 15):
                counts.append(objects())
    assert counts[1]["TableData"] <= counts[0]["TableData"]


def test_handles_of_one_table_are_bounded(tmp_path):
    """A handle holds the metadata of every fragment of its version."""
    graph = og.init(tmp_path / "graph", SCHEMA)
    counts: list[Counter[str]] = []
    for number in range(40):
        graph.load([{"type": "Item", "data": {"name": f"i{number}", "note": "red"}}], mode="append")
        if number in (23, 39):
            counts.append(objects())
    assert counts[1]["Table"] <= counts[0]["Table"]
