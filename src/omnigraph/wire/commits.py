"""Documents of commits."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from omnigraph.wire.document import Document


class CommitDocument(Document):
    """One commit; `created_at` is in microseconds since 1970, and `manifest_branch` is null for `main`.

    The members after `changed` are in typed answers only: `since` is the manifest version in which the branch of the
    commit was created, `fork_commit_id` the commit from which it was forked.
    """

    graph_commit_id: str
    manifest_branch: str | None
    manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int
    message: str | None
    metadata: dict[str, Any]
    kind: str
    changed: list[str]
    schema_hash: str | UnsetType = UNSET
    since: int | UnsetType = UNSET
    fork_commit_id: str | UnsetType | None = UNSET


class CommitListDocument(Document):
    """Commits, newest first; `next` continues a part of them. `heads` and `tags` are in lists of all branches."""

    commits: list[CommitDocument]
    next: str | UnsetType = UNSET
    heads: dict[str, str] | UnsetType = UNSET
    """Branch → its newest commit."""
    tags: dict[str, str] | UnsetType = UNSET
    """Tag → its commit."""
