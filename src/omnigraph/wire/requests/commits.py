"""Inputs of commits."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from omnigraph.wire.requests.changes import ChangeFilterQuery
from omnigraph.wire.requests.request import (
    TOKEN_MAX,
    After,
    Branch,
    CommitId,
    Limit,
    Name,
    Request,
    either,
)


class CommitListQuery(Request, kw_only=True):
    """A part of the commits of a branch, newest first."""

    branch: Branch | None = None
    limit: Limit | None = None
    after: After | None = None
    before: Annotated[CommitId, Meta(description="Another name of `after`.")] | None = None
    actor: Annotated[Name, Meta(description="Only the commits of this actor.")] | None = None
    kind: Annotated[Name, Meta(description="Only the commits of this kind, such as `write` or `merge`.")] | None = None

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
