"""Results of purges from documents."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.operations.purge.certificate import PurgeCertificate
from omnigraph.versioning.model.purge_results import PurgeFinding, PurgePreview, PurgeScan, Redaction
from omnigraph.versioning.model.purges import PurgeRecord, PurgeTarget
from omnigraph.wire.purges import (
    PurgeDocument,
    PurgePreviewDocument,
    PurgeRecordDocument,
    PurgeVerifyDocument,
    RedactionDocument,
)


def certificate_of(document: PurgeDocument, ids: Iterable[str] = ()) -> PurgeCertificate:
    """Return the certificate of a purge of some ids."""
    return PurgeCertificate(
        purge_id=document.purge_id,
        graph=document.graph,
        type_name=document.type,
        ids=tuple(ids),
        id_count=document.id_count,
        edges=document.edges,
        reason=document.reason,
        actor=document.actor_id,
        started_us=document.started_at,
        finished_us=document.finished_at,
        rows=document.rows,
        versions=document.versions,
        manifest_rows=document.manifest_rows,
        rewritten=tuple(document.rewritten),
        removed=tuple(document.removed),
        bytes_read=document.bytes_read,
        bytes_written=document.bytes_written,
        bytes_manifests=document.bytes_manifests,
        bytes_removed=document.bytes_removed,
        digest=document.digest,
        unindexed=document.unindexed,
    )


def preview_of(document: PurgePreviewDocument) -> PurgePreview:
    """Return the rows that a purge would remove."""
    return PurgePreview(document.rows, tuple(document.missing), document.files)


def record_of(document: PurgeRecordDocument) -> PurgeRecord:
    """Return the record of a purge."""
    return PurgeRecord(
        id=document.purge_id,
        kind=document.kind,
        type_name=document.type,
        edges=document.edges,
        reason=document.reason,
        actor=document.actor_id,
        created_us=document.started_at,
        targets=tuple(
            PurgeTarget((target.table_id, target.incarnation), target.table_key, tuple(target.columns))
            for target in document.targets
        ),
        salt=document.salt,
        digests=frozenset(document.digests),
        state=document.state,
        finished_us=document.finished_at,
        summary=document.summary,
    )


def scan_of(document: PurgeVerifyDocument) -> PurgeScan:
    """Return the result of a search."""
    findings = tuple(PurgeFinding(each.object, each.place, each.value) for each in document.findings)
    return PurgeScan(findings, document.objects, document.bytes, tuple(document.undecodable))


def redaction_of(document: RedactionDocument) -> Redaction:
    """Return the places of redacted texts."""
    return Redaction(document.commits, document.refs, document.events, document.confirmed)
