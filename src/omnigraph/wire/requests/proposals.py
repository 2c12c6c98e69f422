"""Inputs of proposals."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from omnigraph.wire.requests.request import (
    TOKEN_MAX,
    Branch,
    BranchName,
    CommitId,
    Limit,
    Message,
    Name,
    Ops,
    Request,
    Resolve,
    Types,
)

TEXT_MAX = 48 << 10
Title = Annotated[str, Meta(min_length=1, max_length=300, description="The title, one line.", examples=["Add Dan"])]
Text = Annotated[str, Meta(max_length=TEXT_MAX, description="A text.")]
Labels = Annotated[list[Name], Meta(max_length=50, description="Labels.")]
Reviewers = Annotated[list[Name], Meta(max_length=50, description="Actors that are asked for a review.")]
ProposalId = Annotated[str, Meta(min_length=26, max_length=26, description="The id of a proposal.")]
StateFilter = Annotated[
    Literal["open", "all", "draft", "checking", "blocked", "ready", "landing", "landed", "closed"],
    Meta(description="A state, `open` for all that are neither landed nor closed (the default), or `all`."),
]


class ProposalsQuery(Request, kw_only=True):
    """Which proposals are listed."""

    state: StateFilter | None = None
    target: BranchName | None = None
    author: Name | None = None
    reviewer: Name | None = None
    label: Name | None = None
    limit: Limit | None = None
    after: ProposalId | None = None


class ProposeRequest(Request, kw_only=True):
    """A proposal to bring a branch into another one."""

    source: BranchName
    target: Branch | None = None
    title: Title
    body: Text | None = None
    labels: Labels | None = None
    reviewers: Reviewers | None = None
    draft: Annotated[bool, Meta(description="A draft is neither tried nor checked.")] = False


class ProposalQuery(Request, kw_only=True):
    """The request of one proposal."""


class EditProposalRequest(Request, kw_only=True):
    """Changes of a proposal; an absent member changes nothing."""

    title: Title | None = None
    body: Text | None = None
    labels: Labels | None = None
    reviewers: Reviewers | None = None
    draft: bool | None = None


class ProposalDiffQuery(Request, kw_only=True):
    """Which changes of a proposal are returned."""

    type: Types | None = None
    op: Ops | None = None
    limit: Limit | None = None
    after: Annotated[str, Meta(min_length=1, max_length=4096, description="The value of `next`.")] | None = None


class CommentPlace(Request, kw_only=True):
    """The row, and possibly the property, that a comment is about."""

    table_key: Annotated[str, Meta(max_length=250, description="The table.", examples=["node:Person"])]
    row_id: Annotated[str, Meta(max_length=10_000, description="The id of the row.")]
    property: Name | None = None


class CommentRequest(Request, kw_only=True):
    """A comment."""

    text: Text
    on: CommentPlace | None = None
    reply_to: Name | None = None


class EditCommentRequest(Request, kw_only=True):
    """A new text of an own comment, or the state of a thread."""

    text: Text | None = None
    resolved: bool | None = None


class ReviewRequest(Request, kw_only=True):
    """A verdict on the head of the source; `commit` is the head that was reviewed."""

    verdict: Literal["approve", "request_changes", "retract"]
    text: Text | None = None
    commit: CommitId | None = None


class ResolveRequest(Request, kw_only=True):
    """Choices for conflicts; null removes them."""

    resolve: Resolve | None = None


class CheckRequest(Request, kw_only=True):
    """A run of the checks."""

    again: Annotated[bool, Meta(description="Run the checks that have a result, too.")] = False


class ReportCheckRequest(Request, kw_only=True):
    """The result of an external check of a trial."""

    state: Literal["pass", "fail", "error", "pending"]
    commit: CommitId
    details: Text | None = None


class LandRequest(Request, kw_only=True):
    """A landing."""

    message: Message | None = None


class CloseRequest(Request, kw_only=True):
    """A close."""

    why: Text | None = None


class ProposalEventsQuery(Request, kw_only=True):
    """Which events are returned."""

    after: Annotated[int, Meta(ge=0, description="Only events with larger numbers.")] = 0


class ProposalStreamQuery(Request, kw_only=True):
    """Which events are streamed."""

    target: BranchName | None = None
    cursor: (
        Annotated[str, Meta(max_length=TOKEN_MAX, description="The id of the last event that was received.")] | None
    ) = None
