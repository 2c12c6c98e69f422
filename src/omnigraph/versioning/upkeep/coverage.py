"""The state of tables that decides whether maintenance is worthwhile: fragments, and rows without an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnigraph.checkpoints import checked
from omnigraph.storage.lance.indexes import IndexSpec, count_uncovered
from omnigraph.storage.lance.tables import FRAGMENT_ROWS
from omnigraph.versioning.model.snapshot import Snapshot

ROWS_PART = 10
"""A table is indexed again when one row in this many is not covered, so a row is indexed a few times in all."""


@dataclass(frozen=True, slots=True)
class TableCoverage:
    """One table of a snapshot."""

    table_key: str
    version: int
    """The version of the table that the snapshot pins."""
    rows: int
    fragments: int
    uncovered_rows: int
    """Rows that the least complete of the wanted indexes does not cover."""

    def is_due(self, rows_min: int, fragments_min: int) -> bool:
        """Return True if an optimization of the table is worthwhile."""
        unindexed = self.uncovered_rows >= max(rows_min, self.rows / ROWS_PART)
        return unindexed or self.fragments - self.rows // FRAGMENT_ROWS >= fragments_min


def coverage(snapshot: Snapshot, wanted: Mapping[str, Sequence[IndexSpec]]) -> list[TableCoverage]:
    """Return the coverage of every table of a snapshot; reads metadata only."""
    return [table_coverage(snapshot, key, wanted.get(key, ())) for key in checked(snapshot.tables)]


def table_coverage(snapshot: Snapshot, key: str, wanted: Sequence[IndexSpec]) -> TableCoverage:
    """Return the coverage of one table of a snapshot."""
    table, version = snapshot.table(key), snapshot.tables[key].pin.lance_version
    return TableCoverage(key, version, table.row_count, table.fragment_count, count_uncovered(table, wanted))
