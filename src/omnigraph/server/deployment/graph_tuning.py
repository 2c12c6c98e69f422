"""Settings of the server that apply to its opened graphs: the age of reads, and one bound for all caches."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.graph_handle import cache_of, set_staleness
from omnigraph.server.deployment.graphs import ServedGraph
from omnigraph.server.deployment.settings import ServerSettings

REMOTE_STALENESS_MS = 100
"""The default age of a look at the branches of a graph on an object store, where a look is a request."""


def apply_settings(graphs: Iterable[ServedGraph], settings: ServerSettings) -> None:
    """Apply the settings to all open graphs."""
    for served in graphs:
        if served.graph is not None:
            set_staleness(served.graph, staleness_ms(served, settings) / 1000)
            # The processes of a server need the same structures; one of them builds a large one.
            cache_of(served.graph).takes_turns = True


def staleness_ms(served: ServedGraph, settings: ServerSettings) -> int:
    """Return the age up to which a read may use an earlier look at the branches."""
    if settings.read_staleness_ms is not None:
        return settings.read_staleness_ms
    return 0 if served.is_local else REMOTE_STALENESS_MS


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
    """Drop the half of each cache that was used least recently."""
    for cache in caches_of(graphs):
        cache.shrink(cache.bytes // 2)
