"""Inputs of commits."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from omnigraph.wire.requests.branches import Time
from omnigraph.wire.requests.changes import ChangeFilterQuery
from omnigraph.wire.requests.request import (
    TOKEN_MAX,
    After,
    Branch,
    CommitId,
    Limit,
    Name,
    Request,
    Types,
    either,
)


class CommitListQuery(Request, kw_only=True):
    """A part of the commits of a branch, newest first."""

    branch: (
        Annotated[Branch, Meta(description="The name of a branch, by default `main`; `*` is all branches.")] | None
    ) = None
    limit: Limit | None = None
    after: After | None = None
    before: Annotated[CommitId, Meta(description="Another name of `after`.")] | None = None
    actor: Annotated[Name, Meta(description="Only the commits of this actor.")] | None = None
    kind: Annotated[Name, Meta(description="Only the commits of this kind, such as `write` or `merge`.")] | None = None
    type: Types | None = None
    text: (
        Annotated[str, Meta(min_length=1, max_length=1000, description="Only the commits whose message contains this.")]
        | None
    ) = None
    since: Annotated[Time, Meta(description="Only the commits at or after this time, in ISO 8601.")] | None = None
    until: Annotated[Time, Meta(description="Only the commits before this time, in ISO 8601.")] | None = None

    @property
    def every_branch(self) -> str | None:
        """`*` if the commits of all branches are requested."""
        return self.branch if self.branch == "*" else None

    @property
    def start(self) -> str | None:
        """The commit after which the list continues."""
        return either("after", self.after, "before", self.before)


class CommitQuery(Request, kw_only=True):
    """The branch of a version or time that names a commit."""

    branch: Branch | None = None


class CommitChangesQuery(ChangeFilterQuery, kw_only=True):
    """A part of the changes of a commit."""

    branch: Branch | None = None
    page_token: (
        Annotated[str, Meta(min_length=1, max_length=TOKEN_MAX, description="Continues an earlier answer.")] | None
    ) = None
