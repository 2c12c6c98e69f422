"""Documents of purges. None contains a purged id: a server keeps the results of operations for a while."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from omnigraph.wire.document import Document


class PurgeDocument(Document, kw_only=True):
    """The certificate of a purge, without the ids."""

    uri: str
    purge_id: str
    graph: str
    type: str
    id_count: int
    edges: bool
    reason: str
    actor_id: str | None
    started_at: int
    finished_at: int
    rows: dict[str, int]
    versions: dict[str, int]
    manifest_rows: int
    rewritten: list[tuple[str, str | None]]
    removed: list[str]
    bytes_read: int
    bytes_written: int
    bytes_manifests: int
    bytes_removed: int
    digest: str
    unindexed: dict[str, str]


class PurgePreviewDocument(Document, kw_only=True):
    """The rows that a purge would remove, counted over all history."""

    uri: str
    rows: dict[str, int]
    missing: list[str]
    files: int


class PurgesResumedDocument(Document, kw_only=True):
    """The purges that were finished."""

    uri: str
    purges: list[PurgeDocument]


class PurgeFindingDocument(Document):
    """A place where a searched value, or a purged id, is stored."""

    object: str
    place: str
    value: str


class PurgeVerifyDocument(Document, kw_only=True):
    """The result of a search of the whole store."""

    uri: str
    clean: bool
    findings: list[PurgeFindingDocument]
    objects: int
    bytes: int
    undecodable: list[str]


class RedactionDocument(Document, kw_only=True):
    """The numbers of places of redacted texts; without `confirmed`, nothing was changed."""

    uri: str
    confirmed: bool
    commits: int
    refs: int
    events: int


class PurgeAllowedDocument(Document, kw_only=True):
    """The number of purged ids that can be written again."""

    uri: str
    type: str
    allowed: int


class PurgeTargetDocument(Document):
    """A table that a purge searches, and the columns in which the ids select rows."""

    table_id: int
    incarnation: int
    table_key: str
    columns: list[str]


class PurgeRecordDocument(Document, kw_only=True):
    """A purge, as the graph keeps it. `digests` are keyed digests of the ids that are refused."""

    purge_id: str
    kind: Literal["node", "edge"]
    type: str
    edges: bool
    reason: str
    actor_id: str | None
    state: Literal["running", "switched", "done"]
    started_at: int
    finished_at: int | None
    targets: list[PurgeTargetDocument]
    salt: str
    digests: list[str]
    summary: dict[str, Any]


class PurgeListDocument(Document):
    """Purges, oldest first."""

    purges: list[PurgeRecordDocument]
    next: str | UnsetType = UNSET
