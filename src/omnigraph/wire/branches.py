"""Documents of branches, merges, reverts and tags."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from msgspec import UNSET, UnsetType, field

from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.document import Document
from omnigraph.wire.errors import ConflictDocument
from omnigraph.wire.pins import PinDocument

MergeOutcome = Literal["already_up_to_date", "fast_forward", "merged"]


class HeadDetailsDocument(Document):
    """Further attributes of a branch; `since` is the manifest version in which it was created."""

    incarnation: str
    parent_commit_id: str | None
    manifest_version: int
    schema_hash: str
    created_us: int
    fork_commit_id: str | None
    fork_branch: str | None
    since: int
    pins: list[PinDocument]


class BranchCreatedDocument(Document, kw_only=True):
    """A new branch and its head; `branch` is in typed answers only."""

    uri: str
    from_: str = field(name="from")
    name: str
    actor_id: str | None
    graph_commit_id: str
    branch: BranchDocument | UnsetType = UNSET


class BranchListDocument(Document):
    """The names of the branches, sorted; `next` continues a part of them. `statuses` is in answers with `compare`."""

    branches: list[str]
    next: str | UnsetType = UNSET
    statuses: list[BranchDocument] | UnsetType = UNSET


class ComparedBranchDocument(Document):
    """Another branch: `ahead` commits are only on the branch that was compared with it, `behind` only on this one."""

    name: str
    ahead: int
    behind: int


class BranchDocument(Document, kw_only=True):
    """One branch; `expires_at` is in microseconds since 1970, and `compared` counts commits against another branch.

    `details` is in typed answers only.
    """

    name: str
    head: CommitDocument
    owner: str | None = None
    description: str | None = None
    expires_at: int | None = None
    compared: ComparedBranchDocument | UnsetType = UNSET
    details: HeadDetailsDocument | UnsetType = UNSET


class BranchHead(Protocol):
    """A branch, as far as its document shows it."""

    @property
    def branch(self) -> str:
        """Name of the branch."""

    @property
    def owner(self) -> str | None:
        """The actor that created the branch."""

    @property
    def description(self) -> str | None:
        """Description of the branch."""

    @property
    def expires_us(self) -> int | None:
        """Time after which a cleanup deletes the branch."""


def branch_document(
    head: BranchHead, commit: CommitDocument, compared: ComparedBranchDocument | UnsetType = UNSET
) -> BranchDocument:
    """Return the document of a branch with its newest commit."""
    return BranchDocument(
        name=head.branch,
        head=commit,
        owner=head.owner,
        description=head.description,
        expires_at=head.expires_us,
        compared=compared,
    )


class RefDeletedDocument(Document):
    """A deleted branch or tag."""

    uri: str
    name: str
    actor_id: str | None


class MergeTableDocument(Document):
    """The planned changes to one table; an adopted table is taken from the source as a whole."""

    inserted: int
    updated: int
    deleted: int
    adopted: bool


class SettledRowDocument(Document):
    """A row whose conflict is settled, as the merge leaves it; `row` is null if it is deleted."""

    id: str
    table_key: str
    row_id: str
    row: dict[str, Any] | None


class _MergePlanMembers(Document, kw_only=True):
    """Members that follow those of the subclass."""

    outcome: MergeOutcome
    tables: dict[str, MergeTableDocument]
    dropped_tables: list[str]
    schema_changes: bool
    schema_steps: list[str]
    query_changes: int | UnsetType = UNSET
    """The number of stored queries that change."""
    broken_rules: list[str] | UnsetType = UNSET
    """Problems that the rules for rows of the policy would have with the merged schema."""
    conflicts: list[ConflictDocument]
    hidden_conflicts: int | UnsetType = UNSET
    hidden_changes: bool | UnsetType = UNSET
    source_commit: str | UnsetType = UNSET
    renamed_tables: dict[str, str] | UnsetType = UNSET
    settled: list[SettledRowDocument] | UnsetType = UNSET
    """The first rows whose conflicts `resolve` settles."""


class MergePreviewDocument(_MergePlanMembers):
    """The plan of a merge, with all conflicts; nothing was written."""

    source: str
    target: str


class RevertPreviewDocument(_MergePlanMembers):
    """The plan of a revert, with all conflicts; nothing was written."""

    reverted_commit_id: str
    branch: str


class MergeDocument(Document, kw_only=True):
    """The result of a merge."""

    source: str
    target: str
    outcome: MergeOutcome
    commit_id: str | None
    actor_id: str | None
    schema_steps: list[str] | UnsetType = UNSET
    branch_deleted: bool | UnsetType = UNSET
    branch_delete_error: str | UnsetType = UNSET
    commit: CommitDocument | UnsetType | None = UNSET


class RevertDocument(Document):
    """The result of a revert; `commit_id` is null if there was nothing to revert."""

    reverted_commit_id: str
    branch: str
    commit_id: str | None
    actor_id: str | None
    commit: CommitDocument | UnsetType | None = UNSET


class TagDocument(Document, kw_only=True):
    """One tag; `created_at` is in microseconds since 1970. `pins` is in typed answers only."""

    name: str
    graph_commit_id: str
    created_at: int
    actor_id: str | None
    message: str | None
    pins: list[PinDocument] | UnsetType = UNSET


class TagCreatedDocument(TagDocument):
    """A new tag, after the graph that contains it."""

    uri: str


class TagListDocument(Document):
    """Tags by name; `next` continues a part of them."""

    tags: list[TagDocument]
    next: str | UnsetType = UNSET
