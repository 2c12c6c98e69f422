"""Calls of the history of one node or edge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from omnigraph.client.call import Call, Calls
from omnigraph.client.calls.branches import seconds
from omnigraph.client.calls.handle import CallHandle, at_text
from omnigraph.client.messages import TYPED_JSON, Response
from omnigraph.client.results.changes import blame_of, entity_change_of
from omnigraph.errors import NotFound
from omnigraph.graph_tables import row_id
from omnigraph.versioning.feed.row_history import Blame, EntityChange
from omnigraph.versioning.write.ref_names import check_text
from omnigraph.wire.changes import BlameDocument, HistoryDocument
from omnigraph.wire.requests.tables import EntityQuery, HistoryQuery

if TYPE_CHECKING:
    from omnigraph.client.messages import Request
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.versioning.write.repository import At

PAGE = 100
"""Number of changes of one answer."""


class HistoryCalls(CallHandle):
    """Calls of the history of one node or edge."""

    def history(
        self,
        type_name: str,
        id: str | int,
        *,
        branch: str | None = None,
        at: At = None,
        after: str | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Calls[list[EntityChange]]:
        """Return an iterator of the changes of one node or edge, newest first: commit, old and new values.

        A change made on a merged branch is listed at its own commit, not at the merge. If a cleanup removed older
        versions, the last entry is the oldest readable state, with the operation `found`. With `after`, the id of the
        commit of an entry, the iterator continues behind that entry.
        """
        check_text(type_name, "type")
        stop: dict[str, Any] = {"timeout": seconds(timeout), "cancel": cancel}
        path = ("entities", type_name, row_id(id), "history")
        pages = _Pages(after)
        point = {"branch": self._branch(branch), "at": at_text(at)}
        while pages.has_next:
            input = HistoryQuery(**point, limit=PAGE, after=pages.after)
            yield pages.read(self._get(*path, input=input, accept=TYPED_JSON, **stop))
            # All pages are those of the commit of the first.
            point = {"at": pages.commit_id}

    def blame(
        self,
        type_name: str,
        id: str | int,
        *,
        branch: str | None = None,
        at: At = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[list[Blame]]:
        """Return the commit that last set each property of a node or edge; empty if it does not exist."""
        check_text(type_name, "type")
        input = EntityQuery(branch=self._branch(branch), at=at_text(at))
        path = ("entities", type_name, row_id(id), "blame")
        request = self._get(*path, input=input, accept=TYPED_JSON, timeout=seconds(timeout), cancel=cancel)
        answer = yield from _found(request)
        return [] if answer is None else [blame_of(each) for each in answer.document(BlameDocument).properties]


class _Pages:
    """The position in a history that is read page by page."""

    def __init__(self, after: str | None) -> None:
        self.after = after
        self.commit_id: str | None = None
        self.has_next = True

    def read(self, request: Request) -> Call[list[EntityChange]]:
        """Return one page; none for a row that never existed."""
        self.has_next = False
        answer = yield from _found(request)
        if answer is None:
            return []
        document = answer.document(HistoryDocument)
        self.commit_id = answer.commit_id
        if document.next is not UNSET:
            self.after, self.has_next = document.next, True
        return [entity_change_of(each) for each in document.changes]


def _found(request: Request) -> Call[Response | None]:
    """Return the answer to a request, None if the row does not exist."""
    try:
        return (yield request)
    except NotFound as error:
        if error.code != "entity_not_found":
            raise
        return None
