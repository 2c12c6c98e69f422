"""Conflicts of a merge from documents."""

from __future__ import annotations

from msgspec import UNSET

from omnigraph.versioning.compare.three_way import ConflictDetail, ConflictRow
from omnigraph.wire.errors import ConflictDocument


def conflict_of(document: ConflictDocument) -> ConflictDetail:
    """Return the conflict of a document."""
    rows = () if document.rows is UNSET else document.rows
    return ConflictDetail(
        document.table_key,
        document.row_id,
        document.kind,
        document.message,
        document.base,
        document.ours,
        document.theirs,
        document.properties,
        tuple(ConflictRow(row.table_key, row.row_id, row.row, row.ours, row.theirs) for row in rows),
    )
