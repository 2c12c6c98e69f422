"""Inputs of diffs and of the change feed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from omnigraph.errors import LimitReached
from omnigraph.wire.requests.request import (
    TOKEN_MAX,
    After,
    Branch,
    Kinds,
    Limit,
    Ops,
    Point,
    Request,
    Types,
    exclude,
)

MAIN_BRANCH = "main"
CHANGES_MAX = 8192
"""Largest `limit` of the change feed."""

Token = Annotated[str, Meta(min_length=1, max_length=TOKEN_MAX)]


class DiffPointsQuery(Request, kw_only=True):
    """Two points to compare."""

    from_: Annotated[Point, Meta(description="The first point; by default the newest commit of `main`.")] | None = (
        field(name="from", default=None)
    )
    to: Annotated[Point, Meta(description="The second point; by default the newest commit of `main`.")] | None = None
    branch: Annotated[Branch, Meta(description="The branch of an omitted point; by default `main`.")] | None = None
    since: (
        Annotated[
            Literal["base"],
            Meta(description="With `base`, only the changes made on `to` since its newest common commit with `from`."),
        ]
        | None
    ) = None
    kind: Kinds | None = None
    type: Types | None = None

    @property
    def first(self) -> str | None:
        """The first point, or both as a range if the changes since the common commit are requested."""
        if self.since is None:
            return self.from_
        return f"{self.from_ or self.branch or MAIN_BRANCH}...{self.to or self.branch or MAIN_BRANCH}"

    @property
    def last(self) -> str | None:
        """The second point; None if `first` names both."""
        return self.to if self.since is None else None


class DiffGraphQuery(DiffPointsQuery, kw_only=True):
    """Two points to compare as a graph."""

    op: Ops | None = None
    limit: Annotated[
        int, Meta(ge=1, le=1_000, description="The largest number of changed nodes, and of changed edges.")
    ] = 300


class DiffQuery(DiffPointsQuery, kw_only=True):
    """Two points to compare, and a part of their differences."""

    op: Ops | None = None
    limit: Limit | None = None
    after: After | None = None
    changes: Annotated[bool, Meta(description="Without changes, the answer has only commits and schema steps.")] = True


class BaselineRequest(Request, kw_only=True):
    """A branch to read as the start of a change feed."""

    branch: Branch | None = None
    kind: Kinds | None = None
    type: Types | None = None
    op: Ops | None = None


class ChangeFilterQuery(Request, kw_only=True):
    """A part of some changes."""

    kind: Kinds | None = None
    type: Types | None = None
    op: Ops | None = None
    limit: (
        Annotated[
            int, Meta(ge=1, description=f"The largest number of changes, at most {CHANGES_MAX}; by default 1000.")
        ]
        | None
    ) = None

    @property
    def changes_max(self) -> int:
        """The largest number of changes; `LimitReached` if the limit is too large."""
        if self.limit is not None and self.limit > CHANGES_MAX:
            raise LimitReached(
                f"'limit' is {self.limit}; it is at most {CHANGES_MAX}",
                resource="rows",
                limit=CHANGES_MAX,
                actual=self.limit,
                hint="read several pages",
            )
        return 1000 if self.limit is None else self.limit


class ChangesStreamQuery(ChangeFilterQuery, kw_only=True):
    """The start of a stream of changes; `cursor` and `start` exclude each other."""

    branch: Branch | None = None
    cursor: (
        Annotated[Token, Meta(description="Continues after an earlier answer: the value of its `cursor`.")] | None
    ) = None
    start: (
        Annotated[
            str,
            Meta(
                pattern="^(now|beginning|after:.{1,200})$",
                description="The start of a new feed: `now`, `beginning` or `after:<commit id>`; by default `now`.",
            ),
        ]
        | None
    ) = None

    def check(self) -> None:
        """Raise `InputError` if two starting points are given."""
        exclude({"cursor": self.cursor, "start": self.start})


class ChangesQuery(ChangesStreamQuery, kw_only=True):
    """A poll of the change feed; `cursor`, `start` and `page_token` exclude each other."""

    page_token: (
        Annotated[Token, Meta(description="Continues within an answer: the value of its `next_page_token`.")] | None
    ) = None
    bytes_max: (
        Annotated[int, Meta(ge=1, le=32 * 1024 * 1024, description="The largest size; by default 4 MiB.")] | None
    ) = None
    commits_max: (
        Annotated[int, Meta(ge=1, le=512, description="The largest number of commits; by default 128.")] | None
    ) = None

    def check(self) -> None:
        """Raise `InputError` if two starting points are given."""
        exclude({"cursor": self.cursor, "start": self.start, "page_token": self.page_token})
