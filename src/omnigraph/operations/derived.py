"""Search structures that are built when data is written or optimised, before the first query uses them.

A structure is kept in the disk cache. Each builder decides whether a table needs its structures, and computes only what
is missing: the id index, text indexes of columns that are declared with `@index` or were searched before, codes of
vectors, their clusters if the graph permits approximate search or was searched so before, and the neighbours of nodes
along each edge type. Tables of few rows have none. A query builds what no one has built.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.checkpoints import checkpoint
from omnigraph.engine import tuning
from omnigraph.engine.adjacency.adjacency import EdgeAdjacency
from omnigraph.engine.cache.id_segments import IDS, build_id_segments, id_segment_builder, uses_segments
from omnigraph.engine.cache.segments import SegmentBuilder, keep_segments
from omnigraph.engine.cache.table_cache import TableData
from omnigraph.errors import Cancelled, OmniGraphError, QueryTimeout
from omnigraph.operations.load.load_result import LoadResult
from omnigraph.query.plan.ir import Direction
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.operations.graph_context import GraphContext

Progress = Callable[[int, int], None]
"""Called with the number of finished structures and the number of all."""


@dataclass(frozen=True)
class DerivedStructure:
    """A structure of a column, and the function that builds what is missing of it.

    `kind` names the builder of its segments (`segment_builder`); None if it has no segments or builds them in order.
    """

    column: str
    build: Callable[[], object]
    kind: str | None = None


@dataclass(frozen=True)
class NotBuilt:
    """A structure that could not be built, and the reason."""

    table_key: str
    column: str
    """`ALL_COLUMNS` if it is unknown which structures the table needs."""
    reason: str

    @property
    def described(self) -> str:
        """The structure as the subject of a note."""
        return (
            "a search structure was" if self.column == ALL_COLUMNS else f"the search structure of '{self.column}' was"
        )


ALL_COLUMNS = "*"
_FAILURES = (OmniGraphError, OSError, MemoryError, pa.ArrowException)
"""Errors of a build, which do not fail the write that it follows."""


_LAYOUTS = ("rows", "edges", "sources", "targets")
"""The lists of fragments in the description of a structure."""
_DIRECTIONS: tuple[tuple[str, Direction], ...] = (("src", "out"), ("dst", "in"))
"""The columns of an edge table, and the direction in which edges are followed from them."""
Builder = Callable[[NodeType | EdgeType, TableData], Iterator[DerivedStructure]]
"""Yields the structures that one table needs."""


def _ids(_: NodeType | EdgeType, data: TableData) -> Iterator[DerivedStructure]:
    if uses_segments(data):
        yield DerivedStructure("id", lambda: build_id_segments(data), IDS)


def _text_indexes(type_: NodeType | EdgeType, data: TableData) -> Iterator[DerivedStructure]:
    from omnigraph.engine.search.inverted_index import text_segments  # noqa: PLC0415 (only for searches)

    for name, property_ in type_.properties.items():
        if property_.type.is_text and not property_.type.is_list and _is_searched(type_, data, name):
            builder = text_segments(data, name)
            yield DerivedStructure(name, partial(keep_segments, data, name, builder), builder.kind)


def _is_searched(type_: NodeType | EdgeType, data: TableData, name: str) -> bool:
    """Return True if a text column was searched before, or is declared with `@index` and does not identify the rows."""
    from omnigraph.engine.search.inverted_index import WORDS  # noqa: PLC0415 (only for searches)

    if data.cache.is_kept((WORDS, data.folder, str(data.field_id(name)), "0")):
        return True
    if not isinstance(type_, NodeType) or type_.properties[name].type.enum_values is not None:
        return False
    return (name,) in type_.indices and (name,) not in type_.unique and name not in type_.key


def _vector_codes(type_: NodeType | EdgeType, data: TableData) -> Iterator[DerivedStructure]:
    from omnigraph.engine.search.vector_scan import vector_segments  # noqa: PLC0415 (only for searches)

    for name, property_ in type_.properties.items():
        if property_.type.scalar == "Vector" and not property_.type.is_list:
            builder = vector_segments(data, name, property_.type.dim or 0)
            yield DerivedStructure(name, partial(keep_segments, data, name, builder), builder.kind)


BUILDERS: tuple[Builder, ...] = (_ids, _text_indexes, _vector_codes)


def segment_builder(kind: str, type_: NodeType | EdgeType, data: TableData, column: str) -> SegmentBuilder[Any]:
    """Return the builder of the segments of a structure."""
    from omnigraph.engine.search.inverted_index import WORDS, text_segments  # noqa: PLC0415 (only for searches)
    from omnigraph.engine.search.vector_scan import vector_segments  # noqa: PLC0415

    if kind == IDS:
        return id_segment_builder(data)
    if kind == WORDS:
        return text_segments(data, column)
    return vector_segments(data, column, type_.properties[column].type.dim or 0)


def segment_structures(
    context: GraphContext, snapshot: Snapshot, key: str
) -> Iterator[tuple[TableData, str, SegmentBuilder[Any]]]:
    """Yield the structures of a table that consist of segments: its data, the column and the builder."""
    if _exceeds_row_numbers(snapshot, key):
        return
    type_ = next(one for one in context.catalogs.of(snapshot).tables() if one.table_key == key)
    data = context.cache.table(snapshot.table(key))
    for builder in BUILDERS:
        for structure in builder(type_, data):
            if structure.kind is not None:
                yield data, structure.column, segment_builder(structure.kind, type_, data, structure.column)


def _vector_clusters(context: GraphContext, type_: NodeType, data: TableData) -> Iterator[DerivedStructure]:
    from omnigraph.engine.search.cluster_segments import CLUSTERS, keep_clusters  # noqa: PLC0415 (only for searches)

    for name, property_ in type_.properties.items():
        if property_.type.scalar != "Vector" or property_.type.is_list:
            continue
        subject = (CLUSTERS, data.folder, str(data.field_id(name)), "0")
        if context.approximate or data.cache.is_kept(subject):
            yield DerivedStructure(name, partial(keep_clusters, data, name, property_.type.dim or 0))


def _adjacency(context: GraphContext, snapshot: Snapshot, type_: EdgeType, share: float) -> Iterator[DerivedStructure]:
    """Yield the neighbours in both directions, unless they are kept for all edges except at most this share."""
    adjacency = _kept_adjacency(context, snapshot, type_)
    if adjacency is not None:
        for column, direction in _DIRECTIONS:
            if adjacency.is_missing(direction, share):
                yield DerivedStructure(column, partial(adjacency.neighbours, direction))


def _kept_adjacency(context: GraphContext, snapshot: Snapshot, type_: EdgeType) -> EdgeAdjacency | None:
    """Return the adjacency of an edge type; None if it is not kept on disk."""
    keys = (type_.table_key, TableKey.node(type_.from_type), TableKey.node(type_.to_type))
    if any(key not in snapshot.tables for key in keys) or context.catalogs.of(snapshot).joins_periods(type_):
        return None
    edges, sources, targets = (context.cache.table(snapshot.table(key)) for key in keys)
    if edges.row_count < tuning.current.adjacency_disk_edges_min:
        return None
    return EdgeAdjacency.of(edges, sources, targets, context.cache)


def missing_adjacency(context: GraphContext, snapshot: Snapshot, key: str) -> EdgeAdjacency | None:
    """Return the adjacency of an edge table if a load has to build it in both directions; else None."""
    type_ = next(one for one in context.catalogs.of(snapshot).tables() if one.table_key == key)
    if not isinstance(type_, EdgeType):
        return None
    ends = (TableKey.node(type_.from_type), TableKey.node(type_.to_type))
    if any(table in snapshot.tables and _exceeds_row_numbers(snapshot, table) for table in (key, *ends)):
        return None
    adjacency, share = _kept_adjacency(context, snapshot, type_), tuning.current.adjacency_update_share
    if adjacency is None or not all(adjacency.is_missing(direction, share) for _, direction in _DIRECTIONS):
        return None
    return adjacency


def build_derived(
    context: GraphContext,
    snapshot: Snapshot,
    tables: Collection[str] | None = None,
    progress: Progress | None = None,
    *,
    after_load: bool = False,
) -> list[NotBuilt]:
    """Build the missing structures of the tables of a snapshot, or of some of them, and keep them on disk.

    A structure that cannot be extended by new rows is built after a load only if the load added a large share of the
    rows: loads in many parts would otherwise build it again for each part.

    The commit that they belong to is published. An error, a cancellation or an expired time limit is therefore a reason
    in the result and not raised; the first query that needs a missing structure builds it.
    """
    if context.cache.keep_in is None:
        return []
    failed: list[NotBuilt] = []
    wanted: list[tuple[str, DerivedStructure]] = []
    for type_ in context.catalogs.of(snapshot).tables():
        table_key = type_.table_key
        if table_key in snapshot.tables and (tables is None or table_key in tables):
            try:
                wanted += [(table_key, one) for one in _structures(context, snapshot, type_, after_load=after_load)]
            except _FAILURES as error:
                failed.append(NotBuilt(table_key, ALL_COLUMNS, reason_of(error)))
    for done, (key, structure) in enumerate(wanted):
        if progress is not None:
            progress(done, len(wanted))
        try:
            checkpoint()
            structure.build()
        except _FAILURES as error:
            failed.append(NotBuilt(key, structure.column, reason_of(error)))
    if progress is not None and wanted:
        progress(len(wanted), len(wanted))
    _upload(context, snapshot, sweep=not after_load)
    return failed


def _upload(context: GraphContext, snapshot: Snapshot, *, sweep: bool) -> None:
    """Upload the structures of a snapshot on an object store, for other machines."""
    remote = context.cache.remote
    if remote is None or context.repository.read_only:
        return
    rows_of = [context.cache.table(snapshot.table(key)).rows_by_file for key in snapshot.tables]
    files = {file for some in rows_of for file in some}

    def is_current(about: Mapping[str, Any]) -> bool:
        # Statistics describe no fragments: each machine summarises its own.
        layouts = [about[name]["pieces"] for name in _LAYOUTS if isinstance(about.get(name), Mapping)]
        return bool(layouts) and all(fragment[0] in files for pieces in layouts for fragment in pieces)

    remote.upload(is_current, sweep=sweep)


def _structures(
    context: GraphContext, snapshot: Snapshot, type_: NodeType | EdgeType, *, after_load: bool
) -> Iterator[DerivedStructure]:
    if _exceeds_row_numbers(snapshot, type_.table_key):
        return
    data = context.cache.table(snapshot.table(type_.table_key))
    if data.row_count <= tuning.current.segment_rows_min and not data.has_long_values:
        return
    for builder in BUILDERS:
        yield from builder(type_, data)
    if isinstance(type_, NodeType):
        yield from _vector_clusters(context, type_, data)
    if isinstance(type_, EdgeType):
        constants = tuning.current
        share = constants.adjacency_update_share if after_load else constants.adjacency_overlay_share
        yield from _adjacency(context, snapshot, type_, share)


def _exceeds_row_numbers(snapshot: Snapshot, key: str) -> bool:
    """Return True if a table has too many rows for row numbers: no query can use its structures."""
    return snapshot.tables[key].pin.row_count > tuning.current.row_numbers_max


def reason_of(error: BaseException) -> str:
    """Return why a structure could not be built, as a part of a note."""
    if isinstance(error, Cancelled):
        return "cancelled"
    if isinstance(error, QueryTimeout):
        return "the time limit expired"
    if isinstance(error, OmniGraphError):
        return error.message
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "out of memory" if isinstance(error, MemoryError) else str(error)


def large_tables(result: LoadResult) -> list[str]:
    """Return the tables to which a load added many rows."""
    if result.commit_id is None or result.repeated:
        return []
    return [key for key, rows in result.tables if rows > tuning.current.segment_rows_min]


def build_after_load(context: GraphContext, result: LoadResult, progress: Progress | None = None) -> LoadResult:
    """Build the structures of the tables to which a load added many rows. The next query computes those of few rows.

    Returns the result of the load, with a note on each structure that could not be built.
    """
    large = large_tables(result)
    if not large or result.commit_id is None:
        return result
    snapshot = context.repository.snapshot(result.branch, result.commit_id)
    failed = build_derived(context, snapshot, large, progress, after_load=True)
    hidden = _properties(context.catalogs.of(snapshot)) - _properties(context.catalog(snapshot))
    notes = [
        f"{one.table_key}: {one.described} not built ({one.reason}); the first query that needs it builds it"
        for one in failed
        if (one.table_key, one.column) not in hidden
    ]
    if len(notes) < len(failed):
        notes.append("search structures that you cannot use were not built")
    return replace(result, notes=(*result.notes, *notes))


def _properties(catalog: Catalog) -> set[tuple[str, str]]:
    return {(type_.table_key, name) for type_ in catalog.tables() for name in type_.properties}
