"""`GraphHistory`: the part of `Graph` that merges, reverts, compares and reads history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from omnigraph.checkpoints import paced
from omnigraph.engine.exec.cancellation import OperationWatch
from omnigraph.errors import CommitNotFound, Conflict, Damaged, InputError, PageCursorRejected, PageGone
from omnigraph.graph_tables import row_id, table_key_of
from omnigraph.listing import Listing, describe_branch, describe_commit, describe_tag
from omnigraph.operations.authorization.authorized_points import find_readable
from omnigraph.operations.authorization.difference_rights import check_difference
from omnigraph.operations.authorization.visible_changes import VisibleDiff, VisibleRow, sight_of
from omnigraph.operations.commit_selection import CommitSelection
from omnigraph.operations.exploration.branch_status import EVERY_BRANCH, BranchStatus
from omnigraph.operations.exploration.diff_graph import DiffGraph, DiffGraphBuilder, DiffSummary
from omnigraph.operations.export import export_rows
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.merge.column_mapping import document, names_in, schema_difference, shown_names
from omnigraph.operations.merge.conflict_rules import Resolve
from omnigraph.operations.merge.guarded_merge import row_rules_of
from omnigraph.operations.merge.merge import MergeRequest, MergeResult, merge_branch, preview_merge
from omnigraph.operations.merge.merge_preview import MergePreview
from omnigraph.operations.merge.merge_tasks import RunRanges
from omnigraph.operations.merge.revert import RevertResult, preview_revert, revert_commit
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.changeset import ChangeSet
from omnigraph.versioning.compare.diff import RowChange
from omnigraph.versioning.feed.commit_changes import ChangeFilter, CommitBlock
from omnigraph.versioning.feed.diff_pages import DiffCursor, check_limit, read_changes, read_page, request_digest
from omnigraph.versioning.feed.feed import ChangePage, Feed, PageLimits, both_rights, read_block
from omnigraph.versioning.feed.row_history import Blame, EntityChange, EntityHistory
from omnigraph.versioning.model.ancestry import ahead_and_behind, merge_bases, reachable
from omnigraph.versioning.model.manifest_objects import Commit, Head, Tag
from omnigraph.versioning.model.snapshot import Snapshot, on_branch
from omnigraph.versioning.write.branches import BranchAttributes, create_branch, delete_branch, update_branch
from omnigraph.versioning.write.idempotency import hash_request
from omnigraph.versioning.write.ref_changes import RefRequest, keyed
from omnigraph.versioning.write.repository import At, Point
from omnigraph.versioning.write.tags import create_tag, delete_tag
from omnigraph.versioning.write.transaction import WriteOptions

T = TypeVar("T")


class GraphHistory:
    """Branches, merges, diffs and history of one opened graph."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context
        self._repository = context.repository
        self._sight = sight_of(context)

    def branches(self) -> list[str]:
        """Return every branch: main first, then by name."""
        self._context.check("read")
        return Listing(self._repository.branches(), self._describe_branch)

    def readable_branches(self) -> list[str]:
        """Return the branches that the caller may read: main first, then by name."""
        self._context.check("read")
        access = self._context.access
        names = self._repository.branches()
        return names if access is None else [name for name in names if access.decide("read", name).allowed]

    def branch_status(self, base: str) -> list[BranchStatus]:
        """Return every branch that the caller may read, compared with a base, from one pass over the history."""
        names = self.readable_branches()
        self._context.check("read", base)
        state = self._repository.state()
        commits = self._repository.all_commits(state)
        heads = {name: self._context.visible_head(state.get_head(name)) for name in names}
        base_id = state.get_head(base).commit_id
        compared = ahead_and_behind({name: head.commit_id for name, head in heads.items()}, base_id, commits.values())
        shown = dict(
            zip(heads, self._context.visible_commits(commits[head.commit_id] for head in heads.values()), strict=True)
        )
        return [BranchStatus(head, shown[name], base, *compared[name]) for name, head in heads.items()]

    def _describe_branch(self, name: str) -> dict[str, Any]:
        head = self._repository.state().find_head(name)
        return describe_branch(name, self._repository.get_commit(head.commit_id) if head is not None else None)

    def tags(self) -> list[Tag]:
        """Return every tag, by name."""
        self._context.check("read")
        return Listing(map(self._context.visible_tag, self._repository.state().tags()), describe_tag)

    def create_branch(
        self, name: str, from_branch: str, at: At, attributes: BranchAttributes, request: RefRequest
    ) -> Head:
        """Create a branch at the head of another one or at any point of its history."""
        # A repetition is checked too. A text in `at` names its own branch, which is judged when it is resolved.
        self._context.check("branch_create", None if isinstance(at, str) else from_branch, name)
        start = partial(self._context.start_of_branch, name, from_branch, at)
        head = create_branch(
            self._repository, name, from_branch=from_branch, at=start, attributes=attributes, request=request
        )
        return self._context.visible_head(head)

    def update_branch(
        self, name: str, attributes: BranchAttributes, request: RefRequest, *, if_commit: str | None
    ) -> Head:
        """Set attributes of a branch."""
        self._context.check("branch_create", None, name)
        head = update_branch(self._repository, name, attributes, if_commit=if_commit, request=request)
        return self._context.visible_head(head)

    def delete_branch(self, name: str, request: RefRequest, *, force: bool, if_commit: str | None) -> None:
        """Delete a branch."""
        self._context.check("branch_delete", None, name)
        request = keyed(request, "branch_delete", name, force)
        delete_branch(self._repository, name, force=force, if_commit=if_commit, request=request)

    def create_tag(self, name: str, branch: str, at: At, request: RefRequest) -> Tag:
        """Name a point of a branch's history."""
        if not isinstance(at, str):
            self._context.check("tag_create", branch)
        request = keyed(request, "tag_create", name, branch, at, request.message)
        point = partial(self._context.snapshot, branch, at, "tag_create")
        return self._context.visible_tag(create_tag(self._repository, name, point, request))

    def delete_tag(self, name: str, request: RefRequest) -> None:
        """Delete a tag."""
        self._context.check_tag(name)
        delete_tag(self._repository, name, keyed(request, "tag_delete", name))

    def commits(
        self,
        branch: str,
        limit: int | None,
        selection: CommitSelection,
        *,
        after: str | None = None,
    ) -> list[Commit]:
        """Return the selected commits of a branch, newest first; `after` continues behind a commit."""
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InputError(f"the limit must be a non-negative integer (got {str(limit)[:40]!r})")
        if branch == EVERY_BRANCH:
            found = self._repository.newest_commits(*self.readable_branches())
        else:
            self._context.check("read", branch)
            found = self._repository.newest_commits(branch, few=limit is not None)
        if after is not None:
            found = after_commit(found, lambda commit: commit.id, after, f"in the history of branch '{branch}'")
        # Conditions apply to the visible part of a commit: a list reveals nothing about the hidden part.
        chosen = filter(selection.includes, self._context.visible_commits(paced(found)))
        return Listing(islice(chosen, limit), describe_commit)

    # -- merge and revert ------------------------------------------------------------------------

    def merge(
        self,
        source: str,
        options: WriteOptions,
        resolve: Resolve,
        *,
        delete_branch: bool,
        allow_policy_breakage: bool,
        allow_query_breakage: bool,
        engine: str,
        spark: Any,
        source_commit: str | None = None,
    ) -> MergeResult:
        """Merge a branch into the branch of `options` as one commit."""
        check = self._context.schema_check(allowed=allow_policy_breakage)
        trusted = self._context.skips_row_check(source, options.branch)
        rules = row_rules_of(self._context, trusted=trusted, check=check)
        with _open_range_runner(engine, spark) as run_ranges:
            request = MergeRequest(
                source,
                options,
                partial(check_difference, self._context),
                resolve,
                delete_branch,
                rules,
                run_ranges,
                check,
                allow_query_breakage,
                source_commit,
            )
            return merge_branch(self._repository, request)

    def check_proposal_rules(self, source: str, target: str, *, force: bool) -> None:
        """Refuse a merge into a branch that takes proposals only; with `force`, the policy decides."""
        if self._context.access is None:
            return
        from omnigraph.operations.proposals.proposal_rights import needs_proposal

        if not needs_proposal(self._context, target):
            return
        if force:
            self._context.check("proposal_bypass", source, target)
            return
        raise Conflict(
            f"branch '{target}' takes proposals only: its rules need approvals or checks; nothing was written",
            code="proposal_required",
            hint=f"propose '{source}', or force the merge, which needs the right 'proposal_bypass'",
        )

    def preview_merge(self, source: str, into: str, resolve: Resolve, source_commit: str | None = None) -> MergePreview:
        """Return the plan of a merge, with its conflicts; nothing is written."""
        self._context.check_head(source)
        self._context.check_head(into)
        trusted = self._context.skips_row_check(source, into)
        rules, check = row_rules_of(self._context, trusted=trusted, preview=True), self._context.schema_check()
        return preview_merge(self._repository, source, into, resolve, rules, source_commit, check)

    def revert(
        self, point: Point, options: WriteOptions, resolve: Resolve, *, allow_policy_breakage: bool
    ) -> RevertResult:
        """Undo one commit as a new commit on the branch of `options`."""
        check = self._context.schema_check(allowed=allow_policy_breakage)
        # A repetition returns the recorded result even if the point no longer exists.
        options = replace(options, request_hash=hash_request("revert", options.branch, point, resolve))
        return revert_commit(
            self._repository,
            lambda: self._context.snapshot(options.branch, point).commit_id,
            options,
            partial(check_difference, self._context),
            resolve=resolve,
            check_schema=check,
            row_rules=row_rules_of(self._context, check=check),
        )

    def preview_revert(self, commit_id: Point, branch: str, resolve: Resolve) -> MergePreview:
        """Return the plan of a revert, with its conflicts; nothing is written."""
        self._context.check_head(branch)
        reverted = self._context.snapshot(branch, commit_id).commit_id
        rules, check = row_rules_of(self._context, preview=True), self._context.schema_check()
        return preview_revert(self._repository, reverted, branch, resolve, rules, check)

    # -- changes ---------------------------------------------------------------------------------

    def diff(
        self, from_: At, to: At, branch: str, wanted: ChangeFilter, watch: OperationWatch | None = None
    ) -> ChangeSet:
        """Return the differences between two points; an absent point is the head of `branch`. `watch` can stop it."""
        before, after = self.points(from_, to, branch)
        return self.diff_between(before, after, diff_title(from_, to, branch), wanted, watch)

    def diff_between(
        self, before: Snapshot, after: Snapshot, title: str, wanted: ChangeFilter, watch: OperationWatch | None = None
    ) -> ChangeSet:
        """Return the differences between two snapshots that the caller may read."""
        seen = self.compare(before, after)

        def changes() -> Iterator[RowChange]:
            found = read_changes(before, after, shown_names, wanted, seen=seen)
            return found if watch is None else watch.over(found)

        def as_graph(limit: int) -> DiffGraph:
            builder = DiffGraphBuilder(self._context, after, limit)
            builder.add(found)
            return builder.finish(DiffSummary(builder.counts, found.schema_steps, found.commits))

        steps = _schema_steps(before, after, seen)
        commits, aliases = (before.commit_id, after.commit_id), _alias_steps(before, after, seen, wanted)
        found = ChangeSet(changes, title, steps, commits=commits, as_graph=as_graph, aliases=aliases)
        return found

    def diff_graph(self, from_: At, to: At, branch: str, wanted: ChangeFilter, limit: int) -> DiffGraph:
        """Return the first changes between two points as a graph with one ring of unchanged neighbours."""
        before, after = self.points(from_, to, branch)
        found: DiffGraph = self.diff_between(before, after, diff_title(from_, to, branch), wanted).as_graph(limit)
        return found

    def diff_page(
        self, from_: At, to: At, branch: str, wanted: ChangeFilter, *, limit: int | None, after: str | None
    ) -> ChangeSet:
        """Return one page of the differences between two points: the first, or that of a cursor, at its commits."""
        check_limit(limit)
        digest = request_digest(self._repository.genesis_id, (str(from_), str(to), branch), wanted)
        cursor = DiffCursor.read(after, digest) if after is not None else None
        if cursor is None:
            first, last = self.points(from_, to, branch)
        else:
            first, last = (self._commit_of_cursor(branch, each) for each in (cursor.before, cursor.after))
            if self._sight is not None:
                first, last = map(self._on_branch_of, (first, last), self.points(from_, to, branch))
        title = diff_title(from_, to, branch)
        return self.page_between(first, last, title, wanted, limit=limit, cursor=cursor, digest=digest)

    def page_between(
        self,
        first: Snapshot,
        last: Snapshot,
        title: str,
        wanted: ChangeFilter,
        *,
        limit: int | None,
        cursor: DiffCursor | None,
        digest: str,
    ) -> ChangeSet:
        """Return one page of the differences between two snapshots; `digest` identifies the request of a cursor."""
        count = check_limit(limit)
        rights = None if self._sight is None else both_rights(self._sight, first, last)
        if cursor is not None:
            cursor.check(rights, first, last)
        seen = self.compare(first, last)
        changes = read_changes(first, last, shown_names, wanted, cursor, seen)
        try:
            start = DiffCursor(first.commit_id, last.commit_id, digest, rights=rights, epoch=first.purge_epoch)
            page = read_page(changes, cursor or start, count)
        except Damaged as error:
            if error.code != "version_reclaimed" or cursor is None:
                raise
            raise PageGone(first.commit_id if first.find_removed() else last.commit_id) from error
        steps = _schema_steps(first, last, seen)
        commits = first.commit_id, last.commit_id
        aliases = _alias_steps(first, last, seen, wanted)
        return ChangeSet(lambda: iter(page.changes), title, steps, page.next, commits=commits, aliases=aliases)

    def compare(self, before: Snapshot, after: Snapshot) -> VisibleDiff | None:
        """Return what the caller may see of two snapshots; None if everything."""
        return None if self._sight is None else self._sight.compare(before, after)

    def _commit_of_cursor(self, branch: str, commit_id: str) -> Snapshot:
        try:
            return self._context.snapshot(branch, commit_id)
        except CommitNotFound as error:
            raise PageCursorRejected(f"its commit {commit_id} is not one of this graph") from error

    def _on_branch_of(self, snapshot: Snapshot, point: Snapshot) -> Snapshot:
        """Return a snapshot on the branch of a point, by whose rules it is judged, if it is in the history of it."""
        commits = self._repository.all_commits()
        past = reachable(point.commit_id, lambda commit_id: commits[commit_id].parents)
        return on_branch(snapshot, point.branch) if snapshot.commit_id in past else snapshot

    def points(self, from_: At, to: At, branch: str, action: str = "read") -> tuple[Snapshot, Snapshot]:
        """Return the two snapshots of a diff; one text can name both as a range."""
        snapshot = partial(self._context.snapshot, branch, action=action)
        found = read_range(from_)
        if found is None:
            return snapshot(from_), snapshot(to)
        if to is not None:
            raise InputError(f"'{from_}' names both points of a diff", hint="omit the second argument")
        first, last = snapshot(found.first or None), snapshot(found.last or None)
        if found.from_base:
            commits = self._repository.all_commits()
            bases = merge_bases(first.commit_id, last.commit_id, commits)
            first = snapshot(max(bases, key=lambda commit_id: commits[commit_id].manifest_version))
        return first, last

    def commit_changes(
        self, commit: Commit, wanted: ChangeFilter, *, changes_max: int | None, page: str | None
    ) -> CommitBlock:
        """Return the changes of one commit against its first parent, or one page of them."""
        limits = PageLimits(changes=changes_max) if changes_max is not None else None
        block = read_block(self._repository, shown_names, commit, wanted, limits=limits, page=page, sight=self._sight)
        return replace(block, commit=self._context.visible_commit(block.commit))

    def feed(self, branch: str, wanted: ChangeFilter, action: str = "read") -> Feed:
        """Return the change feed of a branch."""
        self._context.check(action, branch)
        return Feed(self._repository, shown_names, branch, wanted, self._sight)

    def poll(self, feed: Feed, limits: PageLimits, *, cursor: str | None, start: str, page: str | None) -> ChangePage:
        """Return the next page of a change feed: at a page token, after a cursor, or from a start point.

        A feed contains the commits from which its branch was forked. The branch of each is judged.
        """
        if page is not None:
            found = feed.next_page(page, limits)
        elif cursor is not None:
            found = feed.resume(cursor, limits)
        else:
            found = feed.start(start, limits, partial(find_readable, self._repository, self._context.access))
        for name in dict.fromkeys(block.commit.branch for block in found.blocks):
            self._context.check_unnamed(name, "a commit of the feed")
        if self._sight is None:
            return found
        return replace(
            found,
            blocks=tuple(replace(block, commit=self._context.visible_commit(block.commit)) for block in found.blocks),
        )

    def baseline(self, branch: str, wanted: ChangeFilter) -> Iterator[dict[str, Any]]:
        """Yield the records of a branch's head, then a record with the cursor that continues from there."""
        feed = self.feed(branch, wanted, "export")
        snapshot = self._context.snapshot(branch, feed.head, "export")
        snapshot = on_branch(snapshot, branch)
        view = self._context.view(snapshot)
        for type_ in self._context.catalog(snapshot).tables():
            if wanted.has_table(type_.table_key):
                yield from export_rows(snapshot, type_, view)
        yield {"baseline": {"snapshot_commit_id": feed.head, "resume_cursor": feed.cursor_at(feed.head)}}

    def row_changes(self, snapshot: Snapshot, type_name: str, id: Any) -> Iterator[EntityChange]:
        """Yield the changes of one node or edge, newest first."""
        found = self.entity(snapshot, type_name, id).changes(snapshot.commit_id)
        return (replace(change, commit=self._context.visible_commit(change.commit)) for change in found)

    def blame(self, snapshot: Snapshot, type_name: str, id: Any) -> list[Blame]:
        """Return the commit that last set each property of a node or edge."""
        found = self.entity(snapshot, type_name, id).blame(snapshot.commit_id)
        return [replace(one, commit=self._context.visible_commit(one.commit)) for one in found]

    def entity(self, snapshot: Snapshot, type_name: str, id: Any) -> EntityHistory:
        """Return the history of one node or edge, with the property names of a snapshot's schema."""
        id = row_id(id)
        known = [type_.table_key for type_ in self._context.catalog(snapshot).tables()] if self._sight else None
        pin = snapshot.tables[table_key_of(snapshot, type_name, tables=known)].pin
        identity = (pin.table_id, pin.incarnation)
        seen = None if self._sight is None else VisibleRow(self._sight, snapshot, identity)
        today = document(snapshot.schema)

        def rename(schema_hash: str) -> Mapping[str, str]:
            return names_in(document(self._repository.schema(schema_hash)), today)[identity]

        return EntityHistory(self._repository, identity, id, rename, seen)


def _schema_steps(before: Snapshot, after: Snapshot, seen: VisibleDiff | None) -> tuple[str, ...]:
    return schema_difference(before.schema, after.schema) if seen is None else seen.schema_steps


_ALIASES_MAX = 1_000
"""Aliases that a diff lists."""


def _alias_steps(before: Snapshot, after: Snapshot, seen: VisibleDiff | None, wanted: ChangeFilter) -> tuple[str, ...]:
    """Return the differences of the aliases; none under rules for rows, which may hide their nodes."""
    if before.aliases_hash == after.aliases_hash or seen is not None:
        return ()
    keys = {table.pin.table_id: key for side in (before, after) for key, table in side.tables.items()}
    lines: list[str] = []
    more = 0
    for table, old, was, now in before.aliases.differences(after.aliases):
        key = TableKey.parse(keys[table]) if table in keys else None
        if key is None or not wanted.has_table(key):
            continue
        if len(lines) == _ALIASES_MAX:
            more += 1
        elif now is None:
            lines.append(f"{key.type_name} '{old}' is no longer an alias of '{was}'")
        else:
            lines.append(f"{key.type_name} '{old}' is an alias of '{now}'")
    return (*lines, f"and {more:,} more") if more else tuple(lines)


def after_commit(items: Iterator[T], id_of: Callable[[T], str], after: str, where: str) -> Iterator[T]:
    """Yield the items after that of a commit; `where` states in the error of a wrong commit where it must be."""
    for item in items:
        if id_of(item) == after:
            break
    else:
        raise PageCursorRejected(f"commit '{str(after)[:40]}' is not {where}")
    yield from items


def diff_title(from_: At, to: At, branch: str) -> str:
    """Return the title of a diff, which its representation shows."""
    return f"{from_} → {branch if to is None else to}" if read_range(from_) is None else str(from_)


@dataclass(frozen=True)
class PointRange:
    """Two points in one text: `first..last`, or `first...last` for the changes since their merge base."""

    first: str
    last: str
    from_base: bool


def read_range(point: At) -> PointRange | None:
    """Return the range that a text names, None if it names one point. Two dots occur in no name, only in paths."""
    if not isinstance(point, str) or ".." not in point or "../" in point:
        return None
    separator = "..." if "..." in point else ".."
    first, _, last = point.partition(separator)
    return PointRange(first.strip(), last.strip(), separator == "...")


@contextmanager
def _open_range_runner(engine: str, spark: Any) -> Iterator[RunRanges | None]:
    """Yield a function that decides the id ranges of a large merge on Spark; None for a loop in this process."""
    if engine not in ("memory", "spark"):
        raise InputError(f"there is no engine '{engine}' for a merge", hint="the engines are memory and spark")
    if engine == "memory":
        yield None
        return
    from omnigraph.spark.runner import SparkRunner
    from omnigraph.spark.session import session_for

    with session_for(spark) as session:
        yield partial(SparkRunner(session).run, "merge")
