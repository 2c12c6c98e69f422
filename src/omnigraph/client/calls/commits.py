"""Calls of commits, their changes, and the change feed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from omnigraph.client.call import Call, Stream
from omnigraph.client.calls.branches import seconds, time_text
from omnigraph.client.calls.handle import CallHandle
from omnigraph.client.decoders import LineDecoder
from omnigraph.client.failures import reading
from omnigraph.client.messages import TYPED_JSON, TYPED_NDJSON
from omnigraph.client.results.changes import block_of, page_of
from omnigraph.client.results.history import commit_of
from omnigraph.errors import InputError
from omnigraph.listing import Listing, describe_commit
from omnigraph.operations.exploration.branch_status import EVERY_BRANCH
from omnigraph.versioning.feed.commit_changes import CommitBlock
from omnigraph.versioning.feed.feed import MIB, ChangePage, PageLimits, check_start
from omnigraph.versioning.model.manifest_objects import Commit
from omnigraph.versioning.model.point_text import point_text
from omnigraph.wire.change_feed import ChangesDocument, CommitChangesAnswerDocument
from omnigraph.wire.commits import CommitDocument, CommitListDocument
from omnigraph.wire.requests.changes import CHANGES_MAX, BaselineRequest, ChangesQuery
from omnigraph.wire.requests.commits import CommitChangesQuery, CommitListQuery, CommitQuery
from omnigraph.wire.requests.request import LIST_MAX
from omnigraph.wire.typed_values import untyped_value

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.versioning.write.repository import Point

_NO_TYPE = "-"
"""A text that is not the name of a type."""


class CommitCalls(CallHandle):
    """Calls of commits and of the change feed."""

    def commits(
        self,
        branch: str | None = None,
        limit: int | None = None,
        *,
        after: str | None = None,
        actor: str | None = None,
        kind: str | None = None,
        types: Sequence[str] | None = None,
        text: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Call[list[Commit]]:
        """Return the commits of a branch, newest first; "*" is all branches. The list prints as a table.

        `after`, the id of the last commit of a page, continues behind it. `limit` counts the selected commits: those of
        an `actor`, of a `kind` ("load", "mutation", "merge" …), that changed one of `types`, whose message contains
        `text`, made at or after `since` and before `until`. A time without a zone is in UTC.
        """
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InputError(f"the limit must be a non-negative integer (got {str(limit)[:40]!r})")
        found: list[Commit] = []
        left = LIST_MAX if limit is None else limit
        cursor = after
        while left:
            input = CommitListQuery(
                branch=branch if branch == EVERY_BRANCH else self._branch(branch),
                limit=min(left, LIST_MAX),
                after=cursor,
                actor=actor,
                kind=kind,
                type=None if types is None else list(types),
                text=text,
                since=time_text(since),
                until=time_text(until),
            )
            answer = yield self._get("commits", input=input, accept=TYPED_JSON)
            document = answer.document(CommitListDocument)
            found += map(commit_of, document.commits)
            left = LIST_MAX if limit is None else limit - len(found)
            if document.next is UNSET:
                break
            cursor = document.next
        return Listing(found, describe_commit)

    def commit(self, id: Point) -> Call[Commit]:
        """Return one commit, by its id or any other point."""
        request = self._get("commits", point_text(id), input=CommitQuery(branch=self._branch_of(id)), accept=TYPED_JSON)
        return commit_of((yield request).document(CommitDocument))

    def commit_changes(
        self,
        id: Point,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        changes_max: int | None = None,
        page: str | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[CommitBlock]:
        """Return the changes of one commit against its first parent, in a fixed order.

        With `changes_max`, return one page; `page` of the block names the next. `diff` also shows the first commit of a
        graph (`parentless_commit`) and a commit that changed the schema (`schema_boundary`).
        """
        if changes_max is not None:
            PageLimits(changes=changes_max)
        path = ("commits", point_text(id), "changes")
        changes: list[Any] = []
        while True:
            input = CommitChangesQuery(
                branch=self._branch_of(id),
                **filter_of(kinds, types, ops),
                limit=CHANGES_MAX if changes_max is None else changes_max,
                page_token=page,
            )
            request = self._get(*path, input=input, accept=TYPED_JSON, timeout=seconds(timeout), cancel=cancel)
            block = block_of((yield request).document(CommitChangesAnswerDocument))
            changes += block.changes
            page = block.page
            if changes_max is not None or page is None:
                return CommitBlock(block.commit, tuple(changes), block.schema_changed, page)

    def changes(
        self,
        cursor: str | None = None,
        *,
        start: str = "now",
        page: str | None = None,
        branch: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        changes_max: int = 1_000,
        bytes_max: int = 4 * MIB,
        commits_max: int = 128,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[ChangePage]:
        """Poll the change feed of a branch: its commits along first parents, oldest first, with their changes.

        The first poll names a `start` (`now`, `beginning` or `after:<commit>`); its answer holds the `cursor` of the
        next poll. If an answer has a `page` instead, poll with that first. A client that stores the cursor after it
        has processed the blocks sees every commit at least once.
        """
        PageLimits(changes_max, bytes_max, commits_max)
        is_first = page is None and cursor is None
        if is_first:
            check_start(start)
        input = ChangesQuery(
            branch=self._branch(branch),
            **filter_of(kinds, types, ops),
            limit=changes_max,
            cursor=cursor if page is None else None,
            start=start if is_first else None,
            page_token=page,
            bytes_max=bytes_max,
            commits_max=commits_max,
        )
        request = self._get("changes", input=input, accept=TYPED_JSON, timeout=seconds(timeout), cancel=cancel)
        return page_of((yield request).document(ChangesDocument))

    def changes_baseline(
        self,
        *,
        branch: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Stream[dict[str, Any]]:
        """Yield the records of a branch's head, then the cursor that continues from there, to restart after a gap."""
        input = BaselineRequest(branch=self._branch(branch), **filter_of(kinds, types, ops))
        request = self._post(
            *("changes", "baseline"),
            input=input,
            accept=TYPED_NDJSON,
            timeout=seconds(timeout),
            cancel=cancel,
            streamed=True,
            unlimited=True,
        )
        return Stream(request, RecordDecoder)


class RecordDecoder(LineDecoder[dict[str, Any]]):
    """Records from typed JSON lines without a first and a last line."""

    def __init__(self) -> None:
        super().__init__(dict[str, Any], enveloped=False)

    @reading
    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Return the records that these bytes complete."""
        return [untyped_value(record) for record in super().feed(data)]


def filter_of(kinds: Sequence[str] | None, types: Sequence[str] | None, ops: Sequence[str] | None) -> dict[str, Any]:
    """Return the members of a request that select changes.

    A value that no change has selects nothing, as an empty list does. A query string has no empty list; a type with an
    impossible name stands for it.
    """
    chosen: dict[str, list[str] | None] = {
        "kind": _known(kinds, ("node", "edge")),
        "type": None if types is None else list(types),
        "op": _known(ops, ("insert", "update", "delete")),
    }
    if [] in chosen.values():
        return {"kind": None, "type": [_NO_TYPE], "op": None}
    return dict(chosen)


def _known(given: Sequence[str] | None, values: Sequence[str]) -> list[str] | None:
    return None if given is None else [each for each in given if each in values]
