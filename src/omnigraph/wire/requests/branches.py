"""Inputs of branches, merges, reverts and tags."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from omnigraph.wire.durations import PATTERN
from omnigraph.wire.requests.request import (
    MESSAGE_MAX,
    After,
    BranchName,
    CommitId,
    Limit,
    Message,
    Point,
    Request,
    Resolve,
    TagName,
    UrlMessage,
)

Description = Annotated[str, Meta(max_length=10_000, description="A description of the branch.")]
Duration = Annotated[
    str,
    Meta(
        pattern=PATTERN,
        description="A duration: `90s`, `15m`, `12h`, `7d`, `2w`.",
        examples=["7d"],
    ),
]
Time = Annotated[
    str, Meta(min_length=1, max_length=40, description="A time in ISO 8601, such as `2026-01-31T12:00:00Z`.")
]

RefMessage = Annotated[str, Meta(max_length=MESSAGE_MAX, description="A message that the change records.")]


class ListQuery(Request, kw_only=True):
    """A part of a list."""

    limit: Limit | None = None
    after: After | None = None


class BranchListQuery(ListQuery, kw_only=True):
    """A part of the branches."""

    compare: (
        Annotated[
            BranchName,
            Meta(description="Return each branch with its newest commit, compared with this branch; not in parts."),
        ]
        | None
    ) = None


class BranchCreateRequest(Request, kw_only=True):
    """A new branch; it starts at a point of `from`, by default the newest commit of `main`."""

    name: BranchName
    from_: BranchName | None = field(name="from", default=None)
    at: Point | None = None
    description: Description | None = None
    expires_in: Duration | None = None
    message: RefMessage | None = None


class BranchQuery(Request, kw_only=True):
    """A branch to read."""

    compare: (
        Annotated[BranchName, Meta(description="Count the commits that only one of the two branches has.")] | None
    ) = None


class BranchDeleteQuery(Request, kw_only=True):
    """The extent of a deletion."""

    force: Annotated[bool, Meta(description="Delete the branch even if it has commits that are on no other one.")] = (
        False
    )
    message: Annotated[UrlMessage, Meta(description="A message that the deletion records.")] | None = None


class BranchUpdateRequest(Request, kw_only=True):
    """New attributes of a branch. An absent attribute does not change."""

    description: Description | None = None
    expires_at: (
        Annotated[Time, Meta(description="The time at which the branch expires, in ISO 8601, or `never`.")] | None
    ) = None
    message: RefMessage | None = None


class BranchMergePreviewRequest(Request, kw_only=True):
    """A merge to plan."""

    source: BranchName
    target: Annotated[BranchName, Meta(description="The branch that changes.")] = "main"
    resolve: Resolve | None = None
    source_commit: (
        Annotated[CommitId, Meta(description="The commit at which the head of the source must be.")] | None
    ) = None


class BranchMergeRequest(BranchMergePreviewRequest, kw_only=True):
    """A merge."""

    message: Message | None = None
    delete_branch: Annotated[bool, Meta(description="Delete the source after the merge.")] = False
    allow_policy_breakage: Annotated[
        bool, Meta(description="Merge even if rules for rows of the policy become invalid.")
    ] = False
    allow_query_breakage: Annotated[bool, Meta(description="Merge even if stored queries become invalid.")] = False
    force: Annotated[
        bool, Meta(description="Merge past the rules for proposals to the target; requires `proposal_bypass`.")
    ] = False


class RevertPreviewRequest(Request, kw_only=True):
    """A revert to plan."""

    branch: Annotated[BranchName, Meta(description="The branch that changes.")] = "main"
    resolve: Resolve | None = None


class RevertRequest(RevertPreviewRequest, kw_only=True):
    """A revert."""

    message: Message | None = None
    allow_policy_breakage: Annotated[
        bool, Meta(description="Revert even if rules for rows of the policy become invalid.")
    ] = False


class TagCreateRequest(Request, kw_only=True):
    """A new tag."""

    name: TagName
    branch: Annotated[BranchName, Meta(description="The branch of a version or time in `at`.")] | None = None
    at: Point | None = None
    message: Annotated[Message, Meta(description="A message that the tag records.")] | None = None


class TagDeleteQuery(Request, kw_only=True):
    """The deletion of a tag."""

    message: Annotated[UrlMessage, Meta(description="A message that the deletion records.")] | None = None
