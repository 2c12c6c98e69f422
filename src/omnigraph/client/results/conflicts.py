"""Conflicts of a merge from documents."""

from __future__ import annotations

from omnigraph.versioning.compare.three_way import ConflictDetail
from omnigraph.wire.errors import ConflictDocument


def conflict_of(document: ConflictDocument) -> ConflictDetail:
    """Return the conflict of a document."""
    return ConflictDetail(
        document.table_key,
        document.row_id,
        document.kind,
        document.message,
        document.base,
        document.ours,
        document.theirs,
        document.properties,
    )
