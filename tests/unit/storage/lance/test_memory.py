"""Caches and objects of a process stay bounded over many commits."""

from __future__ import annotations

import gc
from collections import Counter

import omnigraph as og
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
