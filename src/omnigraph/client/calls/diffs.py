"""Calls of diffs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from omnigraph.client.call import Call, Stream
from omnigraph.client.calls.branches import seconds
from omnigraph.client.calls.commits import filter_of
from omnigraph.client.calls.handle import CallHandle, at_text
from omnigraph.client.decoders import LineDecoder
from omnigraph.client.diff_files import DiffFiles
from omnigraph.client.failures import reading, unreadable
from omnigraph.client.local_only import check_engine, local_parameter
from omnigraph.client.messages import TYPED_JSON, TYPED_NDJSON
from omnigraph.client.results.changes import diff_graph_of, given, row_change_of, summary_of
from omnigraph.graph_history import diff_title, read_range
from omnigraph.operations.exploration.diff_graph import DiffGraph, DiffSummary, check_graph_limit
from omnigraph.versioning.compare.changeset import ChangeSet
from omnigraph.versioning.compare.diff import RowChange
from omnigraph.versioning.feed.diff_pages import check_limit
from omnigraph.wire.changes import DiffDocument, DiffGraphDocument, DiffSummaryDocument, RowChangeDocument
from omnigraph.wire.requests.changes import DiffGraphQuery, DiffPointsQuery, DiffQuery
from omnigraph.wire.requests.request import LIST_MAX

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.pipeline.runner import Watch
    from omnigraph.versioning.write.repository import At


@dataclass(frozen=True)
class Difference:
    """The answer to a diff: what a `ChangeSet` shows, and its changes or the stream of them."""

    title: str
    schema_steps: tuple[str, ...]
    commits: tuple[str, str]
    changes: Sequence[RowChange] | Stream[RowChange]
    next: str | None = None
    aliases: tuple[str, ...] = ()

    def rows(self) -> Sequence[RowChange]:
        """Return the changes of an answer that is not a stream."""
        assert not isinstance(self.changes, Stream), "the answer is a list"
        return self.changes

    def change_set(self, iterate: Callable[[Stream[RowChange]], Iterator[RowChange]]) -> ChangeSet:
        """Return the change set; `iterate` makes an iterator of a stream."""
        found = self.changes
        read = (lambda: iterate(found)) if isinstance(found, Stream) else (lambda: iter(found))
        steps, aliases = self.schema_steps, self.aliases
        return ChangeSet(read, self.title, steps, self.next, commits=self.commits, aliases=aliases)


class DiffCalls(CallHandle):
    """Calls of diffs."""

    def diff(
        self,
        from_: At,
        to: At = None,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        limit: int | None = None,
        after: str | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[Difference]:
        """Return every node and edge that differs between two points: branches, tags, commits, versions or times.

        `diff("a..b")` is `diff("a", "b")`. `diff("a...b")` compares `b` with the newest common ancestor of both: the
        changes made on `b` alone. An omitted point is the branch of this handle.
        The call resolves both points; iteration reads rows. `schema_steps` lists the differences of the schemas.
        `cancel` and `timeout`, in seconds from the call, stop the iteration.
        With `limit`, the call reads one page of that many changes, and `next` of the result holds the cursor of the
        following page, if any. Passed as `after`, the cursor continues at the same commits, regardless of later writes.
        """
        stop: dict[str, Any] = {"timeout": seconds(timeout), "cancel": cancel}
        points = self._points(from_, to)
        wanted = filter_of(kinds, types, ops)
        title = diff_title(from_, to, self.branch)
        if limit is not None or after is not None:
            return (yield from self._page(title, {**points, **wanted}, check_limit(limit), after, stop))
        input = DiffQuery(**points, **wanted, changes=False)
        document = (yield self._get("diff", input=input, accept=TYPED_JSON, **stop)).document(DiffDocument)
        first, last = commits = _commits(document)
        rows = DiffQuery(from_=first, to=last, **wanted)
        request = self._get("diff", input=rows, accept=TYPED_NDJSON, streamed=True, unlimited=True, **stop)
        steps, changes = tuple(document.schema_steps), Stream(request, ChangeDecoder)
        return Difference(title, steps, commits, changes, aliases=_aliases(document))

    def _diff_branch(self, from_: At, to: At) -> str | None:
        """Return the branch of the handle if a point of the diff depends on it."""
        is_range = isinstance(from_, str) and read_range(from_) is not None
        return self._branch_of(from_) if is_range else self._branch_of(from_, to)

    def diff_summary(
        self,
        from_: At,
        to: At = None,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[DiffSummary]:
        """Return the numbers of inserted, updated and deleted rows between two points, by table.

        Arguments are as in `Graph.diff_summary`.
        """
        stop: dict[str, Any] = {"timeout": seconds(timeout), "cancel": cancel}
        wanted = {name: value for name, value in filter_of(kinds, types, None).items() if name != "op"}
        input = DiffPointsQuery(**self._points(from_, to), **wanted)
        request = self._get("diff", "summary", input=input, accept=TYPED_JSON, **stop)
        return summary_of((yield request).document(DiffSummaryDocument))

    def diff_graph(
        self,
        from_: At,
        to: At = None,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        limit: int = 300,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[DiffGraph]:
        """Return the first changes between two points as a graph, with one ring of unchanged neighbours.

        Arguments are as in `Graph.diff_graph`.
        """
        stop: dict[str, Any] = {"timeout": seconds(timeout), "cancel": cancel}
        wanted = filter_of(kinds, types, ops)
        input = DiffGraphQuery(**self._points(from_, to), **wanted, limit=check_graph_limit(limit))
        request = self._get("diff", "graph", input=input, accept=TYPED_JSON, **stop)
        return diff_graph_of((yield request).document(DiffGraphDocument))

    def _points(self, from_: At, to: At) -> dict[str, Any]:
        """Return the members of a request that name the points of a diff."""
        return {"from_": at_text(from_), "to": at_text(to), "branch": self._diff_branch(from_, to)}

    def export_diff(
        self,
        from_: At,
        to: At,
        out: str | os.PathLike[str],
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        engine: str = "auto",
        spark: Any = None,
        watch: Watch | None = None,  # noqa: ARG002 (the progress of a job)
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[DiffFiles]:
        """Write the changes of `diff` to a new folder of JSON lines on this machine.

        `cancel` and `timeout` stop the diff; its files are removed.
        """
        check_engine("export_diff", engine, spark)
        folder = os.fspath(out)
        if "://" in folder:
            raise local_parameter("export_diff", "out")
        found = yield from self.diff(from_, to, kinds=kinds, types=types, cancel=cancel, timeout=timeout)
        assert isinstance(found.changes, Stream), "a diff without a limit is a stream"
        return DiffFiles(folder, found.commits, found.changes)

    def _page(
        self, title: str, members: dict[str, Any], limit: int, after: str | None, stop: dict[str, Any]
    ) -> Call[Difference]:
        """Return one page. A page with more changes than an answer has is read in several parts."""
        changes: list[RowChange] = []
        while True:
            count = min(limit - len(changes), LIST_MAX)
            input = DiffQuery(**members, limit=count, after=after)
            document = (yield self._get("diff", input=input, accept=TYPED_JSON, **stop)).document(DiffDocument)
            changes += map(row_change_of, document.changes)
            after = given(document.next)
            if after is None or len(changes) >= limit:
                steps, aliases = tuple(document.schema_steps), _aliases(document)
                return Difference(title, steps, _commits(document), changes, after, aliases)


def _aliases(document: DiffDocument) -> tuple[str, ...]:
    return () if isinstance(document.aliases, UnsetType) else tuple(document.aliases)


class ChangeDecoder:
    """Changes from the typed JSON lines of a diff."""

    def __init__(self) -> None:
        self._lines: LineDecoder[RowChangeDocument] = LineDecoder(RowChangeDocument)

    @reading
    def feed(self, data: bytes) -> list[RowChange]:
        """Return the changes that these bytes complete."""
        return [row_change_of(document) for document in self._lines.feed(data)]

    def finish(self) -> None:
        """Raise `RemoteError` if the last line is missing."""
        self._lines.finish()


def _commits(document: DiffDocument) -> tuple[str, str]:
    if document.from_commit_id is UNSET or document.to_commit_id is UNSET:
        raise unreadable("it does not name the commits")
    return document.from_commit_id, document.to_commit_id
