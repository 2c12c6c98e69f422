"""`PurgeCertificate`: what a purge removed, for whom it was done and when, and which files it rewrote and removed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from omnigraph.versioning.model.manifest_objects import instant
from omnigraph.versioning.model.purges import PurgeRecord
from omnigraph.versioning.purge.plan import PurgePlan


@dataclass(frozen=True)
class PurgeCertificate:
    """The certificate of a completed purge. The graph keeps a summary and the digest, never the ids."""

    purge_id: str
    graph: str
    """The first commit of the graph, which identifies it."""
    type_name: str
    ids: tuple[str, ...]
    """The purged ids; empty if another process continued the purge."""
    id_count: int
    edges: bool
    reason: str
    actor: str | None
    started_us: int
    finished_us: int
    rows: Mapping[str, int]
    """Table key → number of removed rows, over all history."""
    versions: Mapping[str, int]
    """Table key → number of rewritten versions."""
    manifest_rows: int
    """Number of rewritten rows of the manifest: commits, versions and requests."""
    rewritten: tuple[tuple[str, str | None], ...]
    """File → the file that takes its place, None for none; names in the graph."""
    removed: tuple[str, ...]
    """Removed files; names in the graph."""
    bytes_read: int
    """The size of the data files that contained rows."""
    bytes_written: int
    """The size of the data files that take their place."""
    bytes_manifests: int
    """The size of the manifests of the rewritten versions."""
    bytes_removed: int
    digest: str
    """The SHA-256 of the certificate without the ids, in hexadecimal; the graph keeps it."""
    unindexed: Mapping[str, str] = field(default_factory=dict)
    """Table key → why indexes or search structures that the purge dropped are missing; `optimize` builds them."""

    @property
    def finished_at(self) -> datetime:
        """The time in UTC at which the purge ended."""
        return instant(self.finished_us)

    def computed_digest(self) -> str:
        """Return the digest of the facts. That of a repeated request differs, because it has no names of files."""
        text = json.dumps(self._facts(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def _facts(self) -> dict[str, Any]:
        return {
            "purge_id": self.purge_id,
            "graph": self.graph,
            "type": self.type_name,
            "id_count": self.id_count,
            "edges": self.edges,
            "reason": self.reason,
            "actor_id": self.actor,
            "started_at": self.started_us,
            "rows": dict(self.rows),
            "versions": dict(self.versions),
            "manifest_rows": self.manifest_rows,
            "rewritten": [list(pair) for pair in self.rewritten],
            "removed": list(self.removed),
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "bytes_manifests": self.bytes_manifests,
            "bytes_removed": self.bytes_removed,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that all interfaces show."""
        return {
            **self._facts(),
            "ids": list(self.ids),
            "finished_at": self.finished_us,
            "digest": self.digest,
            "unindexed": dict(self.unindexed),
        }

    def summary(self) -> dict[str, Any]:
        """Return the part that the graph keeps."""
        return {
            "rows": dict(self.rows),
            "versions": dict(self.versions),
            "manifest_rows": self.manifest_rows,
            "files_rewritten": len(self.rewritten),
            "files_removed": len(self.removed),
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "bytes_manifests": self.bytes_manifests,
            "bytes_removed": self.bytes_removed,
            "digest": self.digest,
        }


def certificate_of(
    record: PurgeRecord, plan: PurgePlan, removed: Mapping[str, int], ids: Sequence[str], graph: str, finished_us: int
) -> PurgeCertificate:
    """Return the certificate of a purge whose files are removed."""
    rewritten = [
        (f"{folder}/{old}", None if new is None else f"{folder}/{new}")
        for folder, replaced in sorted(plan.replaced.items())
        for old, new in sorted(replaced.items())
    ]
    certificate = PurgeCertificate(
        purge_id=record.id,
        graph=graph,
        type_name=record.type_name,
        ids=tuple(ids),
        id_count=len(record.digests),
        edges=record.edges,
        reason=record.reason,
        actor=record.actor,
        started_us=record.created_us,
        finished_us=finished_us,
        rows=plan.rows,
        versions=plan.versions,
        manifest_rows=plan.manifest_rows,
        rewritten=tuple(rewritten),
        removed=tuple(sorted(removed)),
        bytes_read=plan.bytes_read,
        bytes_written=plan.bytes_written,
        bytes_manifests=plan.bytes_manifests,
        bytes_removed=sum(removed.values()),
        digest="",
    )
    return replace(certificate, digest=certificate.computed_digest())


def recorded_certificate(record: PurgeRecord, ids: Sequence[str], graph: str) -> PurgeCertificate:
    """Return the certificate of a completed purge from its record, without the names of files."""
    summary = record.summary
    return PurgeCertificate(
        purge_id=record.id,
        graph=graph,
        type_name=record.type_name,
        ids=tuple(ids),
        id_count=len(record.digests),
        edges=record.edges,
        reason=record.reason,
        actor=record.actor,
        started_us=record.created_us,
        finished_us=record.finished_us or record.created_us,
        rows=summary["rows"],
        versions=summary["versions"],
        manifest_rows=summary["manifest_rows"],
        rewritten=(),
        removed=(),
        bytes_read=summary["bytes_read"],
        bytes_written=summary["bytes_written"],
        bytes_manifests=summary["bytes_manifests"],
        bytes_removed=summary["bytes_removed"],
        digest=summary["digest"],
    )
