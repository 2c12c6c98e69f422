"""Entries of the disk cache that have the ends of edges, neighbours or incident edges."""

from __future__ import annotations

from omnigraph.engine.adjacency.incremental import BuiltAdjacency
from omnigraph.engine.cache import disk_cache, entry_checks
from omnigraph.engine.cache.row_mapping import FragmentLayout

TABLES = ("edges", "sources", "targets")
"""The tables whose fragments are described in an entry."""
RANGED = ("offsets", "targets", "edges")
"""The arrays that a walk from few nodes reads by range. The ends of edges are read as a whole."""


def arrays_of(kind: str) -> tuple[str, ...]:
    """Return the names of the arrays of a structure in the disk cache."""
    if kind == "ends":
        return ("src", "dst")
    return ("offsets", "edges", "targets") if kind.startswith("edges_") else ("offsets", "targets", "loops")


def read_built(kept: disk_cache.CacheEntry, kind: str) -> BuiltAdjacency:
    """Read an entry of the disk cache; raise `entry_checks.BadEntry` if a number in it is out of range.

    Compiled kernels use these arrays without bounds checks. A trusted entry was checked before.
    """
    edges, sources, targets = (FragmentLayout.read(kept, name) for name in TABLES)
    arrays = tuple(kept.get(name) for name in arrays_of(kind))
    built = BuiltAdjacency(edges, sources, targets, arrays)
    if kind == "ends":
        src, dst = arrays
        entry_checks.check(len(src) == len(dst) == edges.row_count, "'ends' has a wrong number of edges")
        if not kept.trusted:
            entry_checks.check_within(src, sources.row_count, "src")
            entry_checks.check_within(dst, targets.row_count, "dst")
        return built
    near, far = (targets, sources) if kind.endswith("in") else (sources, targets)
    if kind.startswith("edges_"):
        offsets, rows, neighbours = arrays
        entry_checks.check(len(rows) == len(neighbours), "'edges' and 'targets' have different lengths")
        if not kept.trusted:
            entry_checks.check_offsets(offsets, near.row_count, len(neighbours), "offsets")
            entry_checks.check_within(rows, edges.row_count, "edges")
            entry_checks.check_within(neighbours, far.row_count, "targets")
        return built
    offsets, neighbours, loops = arrays
    if not kept.trusted:
        entry_checks.check_offsets(offsets, near.row_count, len(neighbours), "offsets")
        entry_checks.check_within(neighbours, far.row_count, "targets")
    entry_checks.check_within(loops, near.row_count, "loops")
    return built
