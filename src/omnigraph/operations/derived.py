"""Search structures that are built when data is written or optimised, so that the first query need not build them.

A structure is kept in the disk cache. Each builder decides whether a table needs its structure, and computes only what
is missing. A query builds what no one has built.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from omnigraph.checkpoints import checkpoint
from omnigraph.engine import tuning
from omnigraph.engine.cache.id_segments import build_id_segments
from omnigraph.engine.cache.table_cache import TableData
from omnigraph.operations.load.load_result import LoadResult
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.versioning.model.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.operations.graph_context import GraphContext

Builder = Callable[[NodeType | EdgeType, TableData], None]
"""Builds a structure of one table if the table needs it and it is missing."""


def _ids(_: NodeType | EdgeType, data: TableData) -> None:
    build_id_segments(data)


BUILDERS: tuple[Builder, ...] = (_ids,)


def build_derived(context: GraphContext, snapshot: Snapshot, tables: Collection[str] | None = None) -> None:
    """Build the missing structures of the tables of a snapshot, or of some of them, and keep them on disk."""
    if context.cache.keep_in is None:
        return
    for type_ in context.catalogs.of(snapshot).tables():
        if type_.table_key not in snapshot.tables or (tables is not None and type_.table_key not in tables):
            continue
        data = context.cache.table(snapshot.table(type_.table_key))
        for build in BUILDERS:
            checkpoint()
            build(type_, data)


def build_after_load(context: GraphContext, result: LoadResult) -> None:
    """Build the structures of the tables to which a load added many rows. The next query computes those of few rows."""
    if result.commit_id is None or result.repeated:
        return
    large = [key for key, rows in result.tables if rows > tuning.current.segment_rows_min]
    if large:
        build_derived(context, context.repository.snapshot(result.branch, result.commit_id), large)
