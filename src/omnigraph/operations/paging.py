"""Pages of a read: consecutive rows of one result at one commit.

A cursor contains the branch, the commit, the number of rows already returned, the value of `now()`, and a digest of the
query and its parameters. The graph keeps no state between pages.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from omnigraph.engine.exec.cancellation import Watch, watching
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.exec.executor import Execution
from omnigraph.engine.plan.limit_offset import Page
from omnigraph.engine.plan.prepared_query import PreparedQuery
from omnigraph.engine.result.result import Result
from omnigraph.errors import CommitNotFound, Damaged, InputError, PageCursorRejected, PageGone
from omnigraph.observer import current
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.lost_structures import repeated_if_lost
from omnigraph.operations.read import embedding_at, report_plan, result_of
from omnigraph.operations.requests import ExceedsBudget, ReadRequest
from omnigraph.query.params import bind_params
from omnigraph.query.plan import ir
from omnigraph.query.valid_time import visibility_at
from omnigraph.query.visibility import Visibility
from omnigraph.versioning.feed.cursors import check_epoch, read_token, short_id, write_token
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import At

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.engine.exec.projection import Projection


@dataclass(frozen=True)
class _Cursor:
    """Start of a page."""

    branch: str
    commit_id: str
    offset: int
    now_ms: int
    digest: str
    epoch: int
    """The purge epoch of the snapshot of the first page."""

    def write(self) -> str:
        """Return the cursor as a token."""
        fields = {"commit": self.commit_id, "offset": self.offset, "now": self.now_ms, "digest": self.digest}
        return write_token("query-page", self.epoch, {"branch": short_id(self.branch), **fields})

    @classmethod
    def read(cls, text: object, branch: str) -> _Cursor:
        """Return the cursor of a token; raise `PageCursorRejected` if it is invalid or of another branch."""
        fields = read_token(
            text,
            "query-page",
            {"branch": short_id(branch)},
            {"commit": str, "offset": int, "now": int, "digest": str},
            rejected=PageCursorRejected,
        )
        if fields["offset"] < 0:
            raise PageCursorRejected("it is not a valid token")
        return cls(branch, fields["commit"], fields["offset"], fields["now"], fields["digest"], fields["epoch"])


@dataclass(frozen=True)
class OpenedPage:
    """A page whose cursor and query are valid, before it is read."""

    snapshot: Snapshot
    prepared: PreparedQuery
    params: Mapping[str, Any]
    cursor: _Cursor
    rows: int
    started: float

    @property
    def page(self) -> Page:
        """The rows of the page."""
        return Page(self.cursor.offset, self.rows)

    @property
    def now_ms(self) -> int:
        """The value of `now()`, equal for all pages."""
        return self.cursor.now_ms

    def result(self, found: pa.Table | Projection, *, more: bool) -> Result:
        """Return the rows of the page; with `more`, with the cursor of the next one."""
        next_page = replace(self.cursor, offset=self.cursor.offset + self.rows).write() if more else None
        elapsed_ms = (time.perf_counter() - self.started) * 1000
        return result_of(found, self.prepared.plan, self.snapshot, elapsed_ms, next=next_page)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raise `PageGone` if the snapshot of a later page was reclaimed."""
        try:
            yield
        except Damaged as error:
            if error.code != "version_reclaimed" or not self.cursor.offset:
                raise
            raise PageGone(self.snapshot.commit_id) from error


@repeated_if_lost
def read_page(context: GraphContext, request: ReadRequest) -> Result:
    """Return one page of a read query in memory: its first rows, or those after a cursor of the same branch."""
    watch = request.limits.watch()
    opened = open_page(context, request, watch)
    compiled = time.perf_counter()
    seen = context.visibility_of(opened.snapshot)
    visibility = visibility_at(opened.prepared.plan, opened.prepared.catalog, opened.params, opened.now_ms, seen)
    execution_context = ExecutionContext(
        opened.prepared.catalog, opened.snapshot, context.cache, request.limits, watch, visibility
    )
    too_large = opened.prepared.estimated_bytes > execution_context.bytes_max
    if too_large and request.executor == "auto" and not execution_context.is_limited_by_caller:
        raise ExceedsBudget
    execution = Execution(
        opened.prepared,
        execution_context,
        opened.params,
        now_ms=opened.now_ms,
        embed=embedding_at(context, opened.snapshot),
        page=opened.page,
    )
    with opened.reading():
        found = execution.run()
    observer = current()
    if observer is not None:
        observer.phase("run", compiled, time.perf_counter())
    return opened.result(found, more=execution.more)


def open_page(context: GraphContext, request: ReadRequest, watch: Watch) -> OpenedPage:
    """Find the snapshot, plan and cursor of a page.

    The first page reads the requested snapshot. If the request names a point in time, a cursor must be of its commit.
    """
    started = time.perf_counter()
    observer = current()
    page = request.page
    assert page is not None, "a request for a page"
    cursor = _Cursor.read(page.after, request.branch) if page.after is not None else None
    position = (cursor.commit_id, cursor.epoch) if cursor is not None else None
    snapshot = snapshot_of_page(context, request.branch, request.at, position)
    with watching(watch):
        watch.check()
        visibility = context.visibility_of(snapshot)
        prepared = context.plans.get_read(snapshot, request.query, visibility)
    if observer is not None:
        report_plan(observer, prepared, watch, started)
    plan = prepared.plan
    if not plan.order_by:
        raise InputError(
            f"query '{plan.name}' has no order, so it has no pages",
            code="page_without_order",
            hint="add order { … } after 'return'",
        )
    with watching(watch):
        params = bind_params(plan.params, request.query.params)
    digest = _digest(plan, params, visibility)
    if cursor is None:
        now_ms, epoch = context.repository.clock() // 1000, snapshot.purge_epoch
        cursor = _Cursor(request.branch, snapshot.commit_id, 0, now_ms, digest, epoch)
    elif cursor.digest != digest:
        raise PageCursorRejected("it belongs to another query, or to other parameters")
    return OpenedPage(snapshot, prepared, params, cursor, page.rows, started)


def snapshot_of_page(context: GraphContext, branch: str, at: At, cursor: tuple[str, int] | None) -> Snapshot:
    """Return the snapshot of a page: that of the commit of its cursor, at its purge epoch, else the requested one."""
    if cursor is None:
        return context.snapshot(branch, at)
    commit_id, epoch = cursor
    if at is not None and context.snapshot(branch, at).commit_id != commit_id:
        raise PageCursorRejected(f"it belongs to commit {commit_id}, not to that of 'at'")
    snapshot = _snapshot_at(context, branch, commit_id)
    check_epoch({"epoch": epoch}, snapshot.purge_epoch, PageCursorRejected)
    return snapshot


def _snapshot_at(context: GraphContext, branch: str, commit_id: str) -> Snapshot:
    """Return the snapshot of a cursor. A cursor is no authority: its commit is judged like any other."""
    try:
        found = context.snapshot(branch, commit_id)
    except CommitNotFound as error:
        raise PageCursorRejected(f"its commit {commit_id} is not one of this graph") from error
    if not context.has_row_rules or found.branch == branch:
        return found
    # The commit was made on another branch and is read by the rules of the branch of the request.
    on_branch = context.snapshot(branch, found.version)
    return on_branch if on_branch.commit_id == commit_id else found


def _digest(plan: ir.QueryIR, params: Mapping[str, Any], visibility: Visibility | None) -> str:
    """Return a digest of plan, parameters and visibility; the formatting of the query text does not affect it."""
    canonical = repr((plan, sorted(params.items())))
    if visibility is not None:
        canonical += visibility.digest
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:32]
