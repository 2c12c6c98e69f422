"""`GraphChanges`: the methods of `Graph` that read commits, differences, the change feed and the history of a row."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from omnigraph.graph_handle import GraphHandle
from omnigraph.operations.commit_selection import CommitSelection
from omnigraph.operations.exploration.branch_status import EVERY_BRANCH
from omnigraph.operations.stoppable import stoppable, stoppable_items, watch_of

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.operations.exploration.diff_graph import DiffGraph, DiffSummary
    from omnigraph.pipeline.diff import DiffResult
    from omnigraph.pipeline.runner import Watch
    from omnigraph.versioning.compare.changeset import ChangeSet
    from omnigraph.versioning.feed.commit_changes import CommitBlock
    from omnigraph.versioning.feed.feed import ChangePage
    from omnigraph.versioning.feed.row_history import Blame, EntityChange
    from omnigraph.versioning.model.manifest_objects import Commit
    from omnigraph.versioning.write.repository import At, Point


class GraphChanges(GraphHandle):
    """Commits, differences and history of a graph."""

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
    ) -> list[Commit]:
        """Return the commits of a branch, newest first; "*" is all branches. The list prints as a table.

        `after`, the id of the last commit of a page, continues behind it. `limit` counts the selected commits: those of
        an `actor`, of a `kind` ("load", "mutation", "merge" …), that changed one of `types`, whose message contains
        `text`, made at or after `since` and before `until`. A time without a zone is in UTC.
        """
        name = branch if branch == EVERY_BRANCH else self._branch(branch)
        selection = CommitSelection(actor, kind, types, text, since, until)
        return self._history.commits(name, limit, selection, after=after)

    def commit(self, id: Point) -> Commit:
        """Return one commit, by its id or any other point."""
        return self.snapshot(at=id).commit

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
    ) -> ChangeSet:
        """Return every node and edge that differs between two points: branches, tags, commits, versions or times.

        `diff("a..b")` is `diff("a", "b")`. `diff("a...b")` compares `b` with the newest common ancestor of both: the
        changes made on `b` alone. An omitted point is the branch of this handle.
        The call resolves both points; iteration reads rows. `schema_steps` lists the differences of the schemas.
        `cancel` and `timeout`, in seconds from the call, stop the iteration.
        With `limit`, the call reads one page of that many changes, and `next` of the result holds the cursor of the
        following page, if any. Passed as `after`, the cursor continues at the same commits, regardless of later writes.
        """
        from omnigraph.versioning.feed.commit_changes import ChangeFilter

        wanted = ChangeFilter.of(kinds, types, ops)
        if limit is None and after is None:
            return self._history.diff(from_, to, self.branch, wanted, watch_of("diff", cancel, timeout))
        with stoppable("diff", cancel, timeout):
            return self._history.diff_page(from_, to, self.branch, wanted, limit=limit, after=after)

    def diff_summary(
        self,
        from_: At,
        to: At = None,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> DiffSummary:
        """Return the numbers of inserted, updated and deleted rows between two points, by table.

        The points are those of `diff`: `diff_summary("a...b")` counts the changes made on `b` alone.
        """
        from omnigraph.operations.exploration.diff_graph import DiffSummary

        found = self.diff(from_, to, kinds=kinds, types=types, cancel=cancel, timeout=timeout)
        return DiffSummary(found.counts(), found.schema_steps, found.commits)

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
    ) -> DiffGraph:
        """Return the first changes between two points as a graph, with one ring of unchanged neighbours.

        The graph has at most `limit` changed nodes and `limit` changed edges; all changes are counted in `summary`. The
        points and filters are those of `diff`.
        """
        from omnigraph.operations.exploration.diff_graph import check_graph_limit
        from omnigraph.versioning.feed.commit_changes import ChangeFilter

        check_graph_limit(limit)
        with stoppable("diff", cancel, timeout):
            return self._history.diff_graph(from_, to, self.branch, ChangeFilter.of(kinds, types, ops), limit)

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
        watch: Watch | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> DiffResult:
        """Write the changes of `diff` to a new folder of JSON lines; the job runs on the engine of a load.

        `cancel` and `timeout` stop the job; its files are removed.
        """
        from omnigraph.bulk_options import BulkOptions
        from omnigraph.pipeline.diff import DiffRequest
        from omnigraph.versioning.feed.commit_changes import ChangeFilter

        wanted = ChangeFilter.of(kinds, types, None).has_table
        request = DiffRequest(*self._history.points(from_, to, self.branch, "export"), os.fspath(out), wanted)
        with stoppable("diff", cancel, timeout):
            return self._io.export_diff(request, BulkOptions(engine, spark, watch))

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
    ) -> CommitBlock:
        """Return the changes of one commit against its first parent, in a fixed order.

        With `changes_max`, return one page; `page` of the block names the next. `diff` also shows the first commit of a
        graph (`parentless_commit`) and a commit that changed the schema (`schema_boundary`).
        """
        from omnigraph.versioning.feed.commit_changes import ChangeFilter

        wanted = ChangeFilter.of(kinds, types, ops)
        with stoppable("read", cancel, timeout):
            return self._history.commit_changes(self._known_commit(id), wanted, changes_max=changes_max, page=page)

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
        bytes_max: int = 4 * 1024 * 1024,
        commits_max: int = 128,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> ChangePage:
        """Poll the change feed of a branch: its commits along first parents, oldest first, with their changes.

        The first poll names a `start` (`now`, `beginning` or `after:<commit>`); its answer holds the `cursor` of the
        next poll. If an answer has a `page` instead, poll with that first. A client that stores the cursor after it
        has processed the blocks sees every commit at least once.
        """
        from omnigraph.versioning.feed.commit_changes import ChangeFilter
        from omnigraph.versioning.feed.feed import PageLimits

        limits = PageLimits(changes_max, bytes_max, commits_max)
        with stoppable("read", cancel, timeout):
            feed = self._history.feed(self._branch(branch), ChangeFilter.of(kinds, types, ops))
            return self._history.poll(feed, limits, cursor=cursor, start=start, page=page)

    def changes_baseline(
        self,
        *,
        branch: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the records of a branch's head, then the cursor that continues from there, to restart after a gap."""
        from omnigraph.versioning.feed.commit_changes import ChangeFilter

        wanted = ChangeFilter.of(kinds, types, ops)
        records = self._history.baseline(self._branch(branch), wanted)
        yield from stoppable_items("read", cancel, timeout, lambda: records)

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
    ) -> Iterator[EntityChange]:
        """Return an iterator of the changes of one node or edge, newest first: commit, old and new values.

        A change made on a merged branch is listed at its own commit, not at the merge. If a cleanup removed older
        versions, the last entry is the oldest readable state, with the operation `found`. With `after`, the id of the
        commit of an entry, the iterator continues behind that entry.
        """
        from omnigraph.graph_history import after_commit

        snapshot = self._point("read", branch, at)

        def changes() -> Iterator[EntityChange]:
            found = self._history.row_changes(snapshot, type_name, id)
            if after is None:
                return found
            where = f"in the history of {type_name} '{id}'"
            return after_commit(found, lambda change: change.commit.id, after, where)

        return stoppable_items("read", cancel, timeout, changes)

    def blame(
        self,
        type_name: str,
        id: str | int,
        *,
        branch: str | None = None,
        at: At = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> list[Blame]:
        """Return the commit that last set each property of a node or edge; empty if it does not exist."""
        snapshot = self._point("read", branch, at)
        with stoppable("read", cancel, timeout):
            return self._history.blame(snapshot, type_name, id)

    def _known_commit(self, id: Point) -> Commit:
        """Return a commit; one that the caller may not read does not differ from one that does not exist."""
        from omnigraph.operations.authorization.authorized_points import hidden_commit

        access = self._context.access
        if access is None:
            return self.commit(id)
        return hidden_commit(self._repository, access, partial(self._point, "read", None, id), id).commit
