"""Documents of maintenance: optimize, cleanup, recover, verify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from msgspec import UNSET, UnsetType

from omnigraph.wire.document import Document


class PendingIndexDocument(Document):
    """An index that is not built yet."""

    property: str
    reason: str


class OptimizedTableDocument(Document):
    """The compaction of one table; the members after `skipped` are in answers of a server only."""

    table_key: str
    fragments_removed: int
    fragments_added: int
    committed: bool
    pending_indexes: list[PendingIndexDocument]
    skipped: str | None = None
    fragments_before: int | UnsetType = UNSET
    fragments_after: int | UnsetType = UNSET


class OptimizeDocument(Document):
    """The result of compacting the tables of a branch."""

    uri: str
    branch: str
    tables: list[OptimizedTableDocument]


class CleanedTableDocument(Document):
    """The versions that a cleanup removed, or would remove, from one table; `folder` is in answers of a server only."""

    table_key: str
    old_versions_removed: int
    bytes_removed: int
    error: str | None
    folder: str | UnsetType = UNSET


class CleanupDocument(Document, kw_only=True):
    """The result of a cleanup; a preview has `would_remove` and no tables."""

    uri: str
    keep_versions: int | None
    older_than_secs: int | None
    confirmed: bool
    tables: list[CleanedTableDocument]
    would_remove: list[CleanedTableDocument] | UnsetType = UNSET


def cleanup_document(
    uri: str, keep: int | None, older_than: timedelta | None, tables: Sequence[Mapping[str, Any]], *, confirmed: bool
) -> CleanupDocument:
    """Return the result of a cleanup with these tables, removed or to be removed."""
    documents = [CleanedTableDocument.of(table) for table in tables]
    return CleanupDocument(
        uri=uri,
        keep_versions=keep,
        older_than_secs=int(older_than.total_seconds()) if older_than is not None else None,
        confirmed=confirmed,
        tables=documents if confirmed else [],
        would_remove=UNSET if confirmed else documents,
    )


class RecoveredWriteDocument(Document):
    """An interrupted write and its outcome."""

    intent: str
    outcome: str
    graph_commit_id: str | None
    branch: str | None
    actor_id: str | None
    tables: list[dict[str, Any]]
    detail: str | None


class RecoverDocument(Document):
    """The interrupted writes that were completed or rolled back."""

    uri: str
    settled: list[RecoveredWriteDocument]


class ProblemDocument(Document):
    """A violated invariant, or a part of the graph that could not be checked."""

    where: str
    what: str


class VerifyDocument(Document, kw_only=True):
    """The result of a verification; a deep one has `remarks`."""

    uri: str
    sound: bool
    problems: list[ProblemDocument]
    remarks: list[ProblemDocument] | UnsetType = UNSET


def verify_document(
    uri: str, problems: Sequence[ProblemDocument], remarks: Sequence[ProblemDocument], *, deep: bool
) -> VerifyDocument:
    """Return the result of a verification; a graph without problems is sound."""
    shown = list(remarks) if deep else UNSET
    return VerifyDocument(uri=uri, sound=not problems, problems=list(problems), remarks=shown)
