"""The engine caches of a process: one for each graph, with one bound for all of them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.graph_handle import cache_of
from omnigraph.server.graphs import ServedGraph


def caches_of(graphs: Iterable[ServedGraph]) -> list[DataCache]:
    """Return the caches of the open graphs."""
    return [cache_of(served.graph) for served in graphs if served.graph is not None]


def bound_caches(graphs: Iterable[ServedGraph], bytes_max: int) -> None:
    """Keep the sum of the caches within a bound: the largest ones shrink first."""
    caches = caches_of(graphs)
    for cache in caches:
        cache.bytes_max = bytes_max
    excess = sum(cache.bytes for cache in caches) - bytes_max
    for cache in sorted(caches, key=lambda cache: cache.bytes, reverse=True):
        if excess <= 0:
            return
        before = cache.bytes
        cache.shrink(max(before - excess, 0))
        excess -= before - cache.bytes


def halve_caches(graphs: Iterable[ServedGraph]) -> None:
    """Drop the half of each cache that was used least recently, and return free memory to the system."""
    for cache in caches_of(graphs):
        cache.shrink(cache.bytes // 2)
    pa.default_memory_pool().release_unused()
