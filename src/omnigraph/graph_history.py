"""`Review`: the half of `Graph` that looks at history and brings branches together. Composes, decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

from omnigraph.errors import InputError, TypeNotFound
from omnigraph.listing import Listing, describe_branch, describe_commit, describe_tag
from omnigraph.operations.catalog_cache import CatalogCache
from omnigraph.operations.column_mapping import document, names_in, schema_difference, shown_names
from omnigraph.operations.conflict_rules import Resolve
from omnigraph.operations.export import export_rows
from omnigraph.operations.merge import MergeResult, merge_branch, preview_merge
from omnigraph.operations.merge_plan import MergePlan
from omnigraph.operations.merge_tasks import RunRanges
from omnigraph.operations.revert import RevertResult, preview_revert, revert_commit
from omnigraph.scalar_types.readers import is_unicode
from omnigraph.suggestions import did_you_mean
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.changeset import ChangeSet
from omnigraph.versioning.compare.diff import RowChange, diff_snapshots
from omnigraph.versioning.feed.commit_changes import ChangeFilter, CommitBlock
from omnigraph.versioning.feed.feed import MIB, ChangePage, Feed, PageLimits, read_block
from omnigraph.versioning.feed.row_history import Blame, EntityChange, EntityHistory
from omnigraph.versioning.model.ancestry import merge_bases
from omnigraph.versioning.model.manifest_objects import Commit, Head, Tag
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.ref_names import check_text
from omnigraph.versioning.write.repository import At, Point, Repository
from omnigraph.versioning.write.tags import create_tag, delete_tag
from omnigraph.versioning.write.transaction import WriteOptions


class Review:
    """Branches, merges, diffs and history of a graph, seen from one branch."""

    _repository: Repository
    _catalogs: CatalogCache
    branch: str
    actor: str | None

    # -- branches --------------------------------------------------------------------------------

    def branches(self) -> list[str]:
        """Every branch: main first, then by name. The list prints as a table."""
        names = self._repository.branches()
        return Listing(names, self._describe_branch)

    def _describe_branch(self, name: str) -> dict[str, Any]:
        head = self._repository.state().find_head(name)
        return describe_branch(name, self._repository.get_commit(head.commit_id) if head is not None else None)

    def branch_create(self, name: str, from_branch: str | None = None, at: At = None) -> Head:
        """Create a branch at another one's head, or at any point of its history; nothing is copied."""
        return self._repository.create_branch(name, from_branch=from_branch or self.branch, at=at, owner=self.actor)

    def branch_delete(self, name: str, *, force: bool = False) -> None:
        """Delete a branch; its commits stay readable by their ids until a cleanup.

        A branch with commits that are on no other branch and under no tag is deleted only with `force`.
        """
        self._repository.delete_branch(name, force=force)

    def merge(
        self,
        source: str,
        into: str | None = None,
        *,
        actor: str | None = None,
        message: str | None = None,
        resolve: Resolve = None,
        delete_branch: bool = False,
        engine: str = "memory",
        spark: Any = None,
    ) -> MergeResult:
        """Merge a branch into `into`, by default the branch of this handle, as one commit.

        `MergeConflict` carries everything in the way.

        `resolve` settles row conflicts: by "ours", "theirs" or "columns" for everything, or in a dict by type
        (`{"Person": "theirs", "*": "columns"}`), by property (`{"Person.age": "ours"}`) or by the id of a conflict,
        which takes values too (`{"node:Person:ana": {"age": 31}}`) or None to delete the row.

        With `engine="spark"`, tables with very many changed rows are decided range by range on Spark: on `spark`,
        a session or `omnigraph.spark.SessionOptions`, else on the active session, else on one of its own.
        """
        options = WriteOptions(branch=into or self.branch, actor=actor or self.actor, message=message)
        with _spreading(engine, spark) as run_ranges:
            return merge_branch(
                self._repository,
                source,
                options,
                resolve=resolve,
                delete_branch=delete_branch,
                run_ranges=run_ranges,
            )

    def merge_preview(self, source: str, into: str | None = None, *, resolve: Resolve = None) -> MergePlan:
        """What a merge would do, conflicts included; nothing is written."""
        return preview_merge(self._repository, source, into or self.branch, resolve)

    def revert(
        self,
        commit_id: Point,
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        resolve: Resolve = None,
    ) -> RevertResult:
        """Take one commit back as a new commit; `MergeConflict` carries what later commits changed or still need.

        The commit is named by its id or any other point, such as a tag.

        A merge is taken back against its first parent: everything it brought. In `resolve`, "theirs" is the
        state before the commit.
        """
        options = WriteOptions(branch=branch or self.branch, actor=actor or self.actor, message=message)
        reverted = self.snapshot(options.branch, commit_id).commit_id
        return revert_commit(self._repository, reverted, options, resolve=resolve)

    def revert_preview(self, commit_id: Point, *, branch: str | None = None, resolve: Resolve = None) -> MergePlan:
        """What a revert would do, conflicts included; nothing is written."""
        reverted = self.snapshot(branch, commit_id).commit_id
        return preview_revert(self._repository, reverted, branch or self.branch, resolve)

    # -- tags ------------------------------------------------------------------------------------

    def tag_create(self, name: str, at: At = None, *, actor: str | None = None, message: str | None = None) -> Tag:
        """Name a point of history: this branch's head, or any point. No cleanup removes what a tag names."""
        return create_tag(self._repository, name, self.snapshot(at=at), actor=actor or self.actor, message=message)

    def tags(self) -> list[Tag]:
        """Every tag, by name. The list prints as a table."""
        return Listing(self._repository.state().tags(), describe_tag)

    def tag_delete(self, name: str) -> None:
        """Forget a name; its commit stays readable by its id until a cleanup."""
        delete_tag(self._repository, name)

    # -- what changed ----------------------------------------------------------------------------

    def diff(
        self,
        from_: At,
        to: At = None,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> ChangeSet:
        """Every node and edge that differs between two points: branches, tags, commits, versions or times.

        `diff("a..b")` is `diff("a", "b")`. `diff("a...b")` compares `b` with the newest common ancestor of both: the
        changes made on `b` alone. A side that is left out is the branch of this handle.

        Both points are resolved by the call; rows are read by iterating. `schema_steps` of the result says how the
        schemas differ.
        """
        wanted = ChangeFilter.of(kinds, types, ops)
        before, after = self._points(from_, to)

        def changes() -> Iterator[RowChange]:
            for change in diff_snapshots(before, after, shown_names, wanted=wanted.has_table):
                if wanted.has_op(change.op):
                    yield change

        title = f"{from_} → {self.branch if to is None else to}" if read_range(from_) is None else str(from_)
        return ChangeSet(changes, title, schema_difference(before.schema, after.schema))

    def commit_changes(
        self,
        id: Point,
        *,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        changes_max: int | None = None,
        page: str | None = None,
    ) -> CommitBlock:
        """Exactly what one commit changed, against its first parent, in an order that never changes.

        With `changes_max`, one page of it; the block's `page` then brings the next. The commit a graph was created
        with has no parent (`parentless_commit`), and one that changed the schema cannot be told row by row
        (`schema_boundary`); `diff` shows both.
        """
        wanted = ChangeFilter.of(kinds, types, ops)
        commit = self.snapshot(at=id).commit
        limits = PageLimits(changes=changes_max) if changes_max is not None else None
        return read_block(self._repository, shown_names, commit, wanted, limits=limits, page=page)

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
    ) -> ChangePage:
        """Poll the change feed of a branch: its commits along first parents, oldest first, with their changes.

        The first poll names a `start` (`now`, `beginning` or `after:<commit>`); its answer holds a `cursor` to
        bring along next time. Where an answer has a `page` instead, ask again with that first. Whoever keeps
        the cursor only after the blocks are worked off sees every commit at least once.
        """
        feed = self._feed(branch, kinds, types, ops)
        limits = PageLimits(changes_max, bytes_max, commits_max)
        if page is not None:
            return feed.next_page(page, limits)
        if cursor is not None:
            return feed.resume(cursor, limits)
        return feed.start(start, limits)

    def changes_baseline(
        self,
        *,
        branch: str | None = None,
        kinds: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The records of a branch's head, then one with the cursor that goes on from there: the way out of a gap."""
        feed = self._feed(branch, kinds, types, ops)
        snapshot = self.snapshot(at=feed.head)
        wanted = ChangeFilter.of(kinds, types, ops)
        catalog = self._catalogs.of(snapshot)
        for type_ in catalog.tables():
            if wanted.has_table(type_.table_key):
                yield from export_rows(snapshot, type_)
        yield {"baseline": {"snapshot_commit_id": feed.head, "resume_cursor": feed.cursor_at(feed.head)}}

    def _feed(
        self,
        branch: str | None,
        kinds: Sequence[str] | None,
        types: Sequence[str] | None,
        ops: Sequence[str] | None,
    ) -> Feed:
        wanted = ChangeFilter.of(kinds, types, ops)
        return Feed(self._repository, shown_names, branch or self.branch, wanted)

    def history(
        self, type_name: str, id: str | int, *, branch: str | None = None, at: At = None
    ) -> Iterator[EntityChange]:
        """Every change of one node or edge, newest first: by which commit, from what to what.

        A change made on a branch that was merged is told there, not at its merge. Where a cleanup removed
        older versions, the last entry is the oldest state that can be read, told as `found`.
        """
        snapshot = self.snapshot(branch, at)
        return self._entity(snapshot, type_name, id).changes(snapshot.commit_id)

    def blame(self, type_name: str, id: str | int, *, branch: str | None = None, at: At = None) -> list[Blame]:
        """Which commit last set each property of a node or edge; nothing when it is not there."""
        snapshot = self.snapshot(branch, at)
        return self._entity(snapshot, type_name, id).blame(snapshot.commit_id)

    def _entity(self, snapshot: Snapshot, type_name: str, id: Any) -> EntityHistory:
        id = row_id(id)
        pin = snapshot.tables[self._table_key(snapshot, type_name)].pin
        identity = (pin.table_id, pin.incarnation)
        today = document(snapshot.schema)

        def rename(schema_hash: str) -> Mapping[str, str]:
            return names_in(document(self._repository.schema(schema_hash)), today)[identity]

        return EntityHistory(self._repository, identity, id, rename)

    # -- history ---------------------------------------------------------------------------------

    def commits(self, branch: str | None = None, limit: int | None = None) -> list[Commit]:
        """The history of a branch, newest first. The list prints as a table."""
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InputError(f"a limit is a whole number from 0 on, not {str(limit)[:40]!r}")
        return Listing(self._repository.commits(branch or self.branch, limit), describe_commit)

    def commit(self, id: Point) -> Commit:
        """One commit, by its id or any other point."""
        return self.snapshot(at=id).commit

    def snapshot(self, branch: str | None = None, at: At = None) -> Snapshot:
        """The graph at a branch's head, or at a point: branch, tag, commit id, snapshot id, version or time.

        The first eight or more characters of a commit id name the commit if no other begins with them.
        """
        return self._repository.snapshot(branch or self.branch, at)

    def _points(self, from_: At, to: At) -> tuple[Snapshot, Snapshot]:
        """The two points of a diff; a range is written in one text."""
        found = read_range(from_)
        if found is None:
            return self.snapshot(at=from_), self.snapshot(at=to)
        if to is not None:
            raise InputError(f"'{from_}' names both points of a diff", hint="leave the second argument out")
        first, last = (self.snapshot(at=text or None) for text in (found.first, found.last))
        if found.from_base:
            commits = self._repository.all_commits()
            bases = merge_bases(first.commit_id, last.commit_id, lambda commit_id: commits[commit_id].parents)
            first = self.snapshot(at=max(bases, key=lambda commit_id: commits[commit_id].manifest_version))
        return first, last

    def _table_key(self, snapshot: Snapshot, type_name: str) -> str:
        """A name means a node type first, then an edge type."""
        check_text(type_name, "type")
        for kind in ("node", "edge"):
            if TableKey.of(kind, type_name) in snapshot.tables:
                return TableKey.of(kind, type_name)
        known = [TableKey.parse(key).type_name for key in snapshot.tables]
        raise TypeNotFound(
            f"type '{type_name}' does not exist at commit {snapshot.commit_id}", hint=did_you_mean(type_name, known)
        )


def row_id(id: Any) -> str:
    """The id of a node or edge as it is stored; the integer key of a node is written as text."""
    if not isinstance(id, bool) and isinstance(id, Integral):
        return str(int(id))
    if not isinstance(id, str):
        raise InputError(f"an id is a str or an int, not {type(id).__name__}", hint=f"write '{str(id)[:80]}'")
    if not is_unicode(id):
        raise InputError("the id is not valid Unicode text")
    return id


@dataclass(frozen=True)
class PointRange:
    """Two points in one text: `first..last`, or `first...last` for the changes since their merge base."""

    first: str
    last: str
    from_base: bool


def read_range(point: At) -> PointRange | None:
    """The range a text writes; None if it names one point. No name contains two dots, only paths do."""
    if not isinstance(point, str) or ".." not in point or "../" in point:
        return None
    separator = "..." if "..." in point else ".."
    first, _, last = point.partition(separator)
    return PointRange(first.strip(), last.strip(), separator == "...")


@contextmanager
def _spreading(engine: str, spark: Any) -> Iterator[RunRanges | None]:
    """Who decides the ranges of a large merge: None for a loop in this process."""
    if engine not in ("memory", "spark"):
        raise InputError(f"there is no engine '{engine}' for a merge", hint="the engines are memory and spark")
    if engine == "memory":
        yield None
        return
    from omnigraph.spark.runner import SparkRunner  # noqa: PLC0415 (who wants no Spark need not have it)
    from omnigraph.spark.session import session_for  # noqa: PLC0415

    with session_for(spark) as session:
        yield partial(SparkRunner(session).run, "merge")
