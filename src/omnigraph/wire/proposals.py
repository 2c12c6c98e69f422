"""Documents of proposals."""

from __future__ import annotations

from typing import Any, Literal

from omnigraph.wire.changes import RowChangeDocument
from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.document import Document

ProposalState = Literal["draft", "checking", "blocked", "ready", "landing", "landed", "closed"]


class BlockerDocument(Document):
    """Something that prevents the landing of a proposal."""

    code: str
    message: str


class ReviewDocument(Document):
    """The newest verdict of one reviewer; `counts` is true for an approval that counts."""

    actor_id: str
    verdict: str
    commit: str
    counts: bool
    text: str | None
    created_at: int


class CheckDocument(Document):
    """A check and its newest result on the trial."""

    name: str
    state: str
    required: bool
    details: str | None
    commit: str | None
    ms: int | None
    actor_id: str | None
    created_at: int | None


class TrialDocument(Document):
    """The newest trial of the merge; `tables` has the numbers of changed rows."""

    base: str
    source_head: str
    commit: str | None
    outcome: str
    conflicts: int
    current: bool
    tables: dict[str, dict[str, int]]
    schema_steps: list[str]


class ProposalDocument(Document, kw_only=True):
    """A proposal to bring the branch `source` into the branch `target`; times are in microseconds since 1970."""

    id: str
    title: str
    state: ProposalState
    source: str
    target: str
    events: int
    body: str | None
    """The description; lists leave it out."""
    draft: bool
    source_head: str | None
    target_head: str | None
    comments: int
    landed: str | None
    closed_by: str | None
    closed_why: str | None
    actor_id: str | None
    """The author."""
    created_at: int
    updated_at: int
    labels: list[str]
    reviewers: list[str]
    blocked_by: list[BlockerDocument]
    approvals: list[str]
    reviews: list[ReviewDocument]
    checks: list[CheckDocument]
    trial: TrialDocument | None


class ProposalListDocument(Document):
    """Proposals, newest first; `next` continues the list."""

    proposals: list[ProposalDocument]
    next: str | None = None


class CommentPlaceDocument(Document):
    """The row, and possibly the property, that a comment is about."""

    table_key: str
    row_id: str
    property: str | None = None


class CommentDocument(Document, kw_only=True):
    """A comment on a proposal."""

    id: str
    actor_id: str | None
    created_at: int
    edited_at: int | None
    text: str
    on: CommentPlaceDocument | None
    reply_to: str | None
    resolved: bool


class CommentListDocument(Document):
    """The comments that the caller may see, and the number of the others."""

    comments: list[CommentDocument]
    hidden_comments: int


class ShownProposalDocument(ProposalDocument, kw_only=True):
    """A proposal with its comments, those that the caller may see, and the number of the others."""

    comment_list: list[CommentDocument]
    hidden_comments: int


class ProposalDiffDocument(Document, kw_only=True):
    """Changes that a proposal makes, from the head of its target to its trial; `next` continues them."""

    from_commit_id: str
    to_commit_id: str
    schema_steps: list[str]
    changes: list[RowChangeDocument]
    next: str | None


class CheckRowsDocument(Document):
    """Rows of a check on the trial, at most a hundred, as the caller may see them."""

    name: str
    rows: list[dict[str, Any]]
    total: int
    node_types: dict[str, str]
    """Column of nodes → their type; a column of several types is left out."""


class LandedDocument(Document):
    """A landed proposal and its commit."""

    proposal: ProposalDocument
    commit: CommitDocument


class ProposalEventDocument(Document, kw_only=True):
    """One event of the log of a proposal."""

    number: int
    kind: str
    actor_id: str | None
    created_at: int
    request_id: str | None = None
    data: dict[str, Any]


class ProposalEventListDocument(Document):
    """Events of the log of a proposal, in order."""

    events: list[ProposalEventDocument]


class StreamedEventDocument(Document):
    """An event of a proposal in a stream of events."""

    proposal: str
    source: str
    target: str
    event: ProposalEventDocument
