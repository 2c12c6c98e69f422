"""Indexes of a table: listing and building.

An index is derived state: it affects speed, never results. All missing indexes of a table are built on one version and
committed as one change, which is staged and promoted like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from omnigraph.fast_dataclass import dataclass
from omnigraph.storage.lance.lance_errors import lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.staging import StagedWrite
from omnigraph.storage.lance.tables import Table

SEGMENT_ROWS = 1 << 23
"""The rows of one segment of an index, unless a single fragment has more."""
_RETIRED_SUFFIXES = ("_text", "_vector")
"""The ends of the names of text and vector indexes that earlier releases built. No query uses them."""


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """A sorted index that should exist."""

    column: str

    @property
    def name(self) -> str:
        """The name of the index in the table."""
        return f"{self.column}_btree"


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """An index that cannot be built yet, and the reason."""

    column: str
    reason: str


def index_names(table: Table) -> set[str]:
    """Return the names of the indexes of a version."""
    return {index.name for index in table.dataset.describe_indices()}


def uncovered_rows(table: Table) -> bool:
    """Return True if some index that is used does not cover all rows."""
    fragments = {fragment.fragment_id for fragment in table.dataset.get_fragments()}
    return any(
        fragments.difference(*(segment.fragment_ids for segment in index.segments))
        for index in table.dataset.describe_indices()
        if not _is_retired(index)
    )


def count_uncovered(table: Table, wanted: Iterable[IndexSpec]) -> int:
    """Return the number of rows that the least complete of the wanted indexes does not cover."""
    rows = {fragment.fragment_id: fragment.count_rows() for fragment in table.dataset.get_fragments()}
    have = {index.name: index for index in table.dataset.describe_indices()}
    most = 0
    for spec in wanted:
        index = have.get(spec.name)
        covered = set().union(*(segment.fragment_ids for segment in index.segments)) if index is not None else set()
        most = max(most, sum(count for fragment, count in rows.items() if fragment not in covered))
    return most


def stage_indexes(
    table: Table, wanted: Iterable[IndexSpec], *, rebuild: bool = False
) -> tuple[StagedWrite | None, list[PendingIndex]]:
    """Build the missing indexes (with `rebuild`, all wanted indexes) on this version.

    Text and vector indexes that earlier releases built are dropped. Returns the staged change, or None if there is
    nothing to do, and the indexes that cannot be built yet.
    """
    have = {index.name: index for index in table.dataset.describe_indices()}
    missing = [spec for spec in wanted if rebuild or spec.name not in have]
    empty = table.row_count == 0
    pending = [PendingIndex(spec.column, "the table is empty") for spec in missing] if empty else []
    build = [] if empty else missing
    built = {spec.name for spec in build}
    gone = [index for index in have.values() if index.name in built or _is_retired(index)]
    if not build and not gone:
        return None, pending
    # Lance locks the handle that it builds an index with, and readers share the handle of the table.
    dataset = table.private()
    try:
        made = [segment for spec in build for segment in _build(dataset, spec)]
        operation = lance.LanceOperation.CreateIndex(made, [one for index in gone for one in segments_of(index)])
    except lance_errors() as error:
        raise storage_failure(error, table.store.location, f"indexes of '{table.folder}' cannot be built") from error
    return StagedWrite(table, lance.Transaction(table.version, operation)), pending


def _is_retired(index: Any) -> bool:
    return index.index_type != "BTree" and str(index.name).endswith(_RETIRED_SUFFIXES)


def _build(dataset: lance.LanceDataset, spec: IndexSpec) -> Iterator[lance.Index]:
    """Yield the segments of an index. Their size is bounded: Lance sorts a segment in memory, with 70 bytes per row."""
    for fragments in _groups({fragment.fragment_id: fragment.count_rows() for fragment in dataset.get_fragments()}):
        yield dataset.create_index_uncommitted(
            spec.column, "BTREE", name=spec.name, replace=True, fragment_ids=fragments
        )


def _groups(rows: Mapping[int, int]) -> Iterator[list[int]]:
    """Yield consecutive fragments that have about `SEGMENT_ROWS` rows at most."""
    group: list[int] = []
    size = 0
    for fragment, count in rows.items():
        if group and size + count > SEGMENT_ROWS:
            yield group
            group, size = [], 0
        group.append(fragment)
        size += count
    if group:
        yield group


def segments_of(index: Any) -> list[lance.Index]:
    """Return the descriptions of an index's segments that a removal requires."""
    return [
        lance.Index(
            uuid=segment.uuid,
            name=index.name,
            fields=index.fields,
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=set(segment.fragment_ids),  # type: ignore[arg-type]
            index_version=segment.index_version,
        )
        for segment in index.segments
    ]
