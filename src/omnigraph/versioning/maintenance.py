"""Keeps a graph fast and small: compaction, indexes, collection of what nobody can reach.

Compaction and indexes never change rows, so they are published like any write, as one commit with the
new pins; when the branch moved meanwhile they are planned again. Collection works from what is retained,
never from what looks old: a version goes only if no head, no tag, no retained commit and no fork point pins it,
and it is older than any write that could still be on its way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from omnigraph.errors import InputError, OmniGraphError
from omnigraph.storage import layout
from omnigraph.storage.failpoints import reach
from omnigraph.storage.garbage import list_versions, remove, remove_strange_folders, remove_unfinished
from omnigraph.storage.indexes import IndexSpec, PendingIndex, stage_indexes, uncovered_rows
from omnigraph.storage.numbered import compacted
from omnigraph.storage.tables import Table
from omnigraph.versioning.history import meeting_points
from omnigraph.versioning.records import MAIN, Commit, TableRow
from omnigraph.versioning.repository import Repository
from omnigraph.versioning.state import State
from omnigraph.versioning.transaction import Transaction, WriteOptions, write

GRACE = timedelta(minutes=15)
"""How long a version nobody pins is presumed to be on its way to a publish."""

Wanted = Mapping[str, Sequence[IndexSpec]]


@dataclass(frozen=True)
class TableStats:
    """What maintenance did to one table."""

    table_key: str
    fragments_before: int
    fragments_after: int
    committed: bool
    pending: tuple[PendingIndex, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The form surfaces show."""
        return {
            "table_key": self.table_key,
            "fragments_removed": self.fragments_before if self.committed else 0,
            "fragments_added": self.fragments_after if self.committed else 0,
            "committed": self.committed,
            "pending_indexes": [{"property": p.column, "reason": p.reason} for p in self.pending],
        }


@dataclass(frozen=True)
class CleanupStats:
    """What a cleanup removed, or would remove, from one table."""

    table_key: str
    folder: str
    old_versions_removed: int = 0
    bytes_removed: int = 0
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The form surfaces show."""
        return {
            "table_key": self.table_key,
            "old_versions_removed": self.old_versions_removed,
            "bytes_removed": self.bytes_removed,
            "error": self.error,
        }


@dataclass
class _Plan:
    tables: dict[str, Table] = field(default_factory=dict)
    stats: list[TableStats] = field(default_factory=list)


def optimize(repository: Repository, branch: str = MAIN, *, wanted: Wanted | None = None) -> list[TableStats]:
    """Compact every table of a branch and bring its indexes up to date, in one commit; none if all is well."""
    return _maintain(repository, branch, "optimize", wanted or {}, compact=True)


def ensure_indices(repository: Repository, branch: str, wanted: Wanted) -> list[TableStats]:
    """Build the indexes that are missing, in one commit; none if none is."""
    return _maintain(repository, branch, "ensure_indices", wanted, compact=False)


def _maintain(repository: Repository, branch: str, kind: str, wanted: Wanted, *, compact: bool) -> list[TableStats]:
    plan = _Plan()

    def prepare(transaction: Transaction) -> None:
        plan.tables.clear()
        plan.stats.clear()
        for key in transaction.snapshot.tables:
            _improve(plan, key, transaction.snapshot.table(key), wanted.get(key, ()), compact=compact)
        for key, table in plan.tables.items():
            transaction.set_version(key, table)
        reach("optimize.before_publish")

    write(repository, prepare, WriteOptions(branch=branch, kind=kind))
    return plan.stats


def _improve(plan: _Plan, key: str, table: Table, specs: Sequence[IndexSpec], *, compact: bool) -> None:
    before = table.fragment_count
    current = table
    if compact:
        current = compacted(table, always=True)
        reach("optimize.compacted")
    # Text and vector indexes lose hits once rows were deleted and compacted away; they are built anew.
    moved = current is not table
    stale = moved or (compact and uncovered_rows(current))
    staged, pending = stage_indexes(current, specs, rebuild=stale)
    if staged is not None:
        current, _ = staged.promote()
    if current is not table:
        plan.tables[key] = current
    plan.stats.append(TableStats(key, before, current.fragment_count, current is not table, tuple(pending)))


# -- cleanup -----------------------------------------------------------------------------------------


def cleanup(
    repository: Repository,
    *,
    keep: int | None = None,
    older_than: timedelta | None = None,
    confirm: bool = False,
    grace: timedelta = GRACE,
) -> list[CleanupStats]:
    """Remove table versions that only forgotten commits pin.

    A commit is retained when it is one of a branch's newest `keep`, or younger than `older_than`; heads, fork
    points and whatever two branches would be merged on always are, and so is what was a head within the `grace`,
    because somebody may still read it or write on top of it. Without `confirm` nothing is removed, and the
    counts say what would be. No grace at all says that nobody is at work: then files of unfinished writes go too.
    """
    if keep is None and older_than is None:
        raise InputError(
            "a cleanup needs a policy", hint="give keep (newest commits per branch) or older_than, or both"
        )
    if keep is not None and keep < 0:
        raise InputError("keep cannot be negative")
    if confirm:
        repository.check_writable()
    now = datetime.fromtimestamp(repository.clock() / 1_000_000, UTC)
    state = repository.state()
    live = _live_versions(repository, keep, now - older_than if older_than is not None else None, now - grace)
    reach("cleanup.planned")
    stats: list[CleanupStats] = []
    for identity, row in sorted(state.tables.items()):
        try:
            # A branch made since the look above may pin what was free then.
            versions = live.get(identity, set()) | _head_versions(repository.state()).get(identity, set())
            stats.append(_clean_table(repository, row, versions, now - grace, nobody_writes=not grace, confirm=confirm))
        except OmniGraphError as error:
            stats.append(CleanupStats(row.key, row.folder, error=error.message))
        reach("cleanup.table")
    if confirm:
        known = {row.folder for row in repository.state().tables.values()}
        remove_strange_folders(repository.tables, known, now - grace)
        # Where there is a graph, nobody needs the claim of its creator any more.
        repository.objects.delete(layout.INIT_CLAIM)
        repository.objects.remove_unfinished(now - grace)
        remove_unfinished(repository.tables, layout.MANIFEST, now - grace)
    return stats


def _live_versions(
    repository: Repository, keep: int | None, since: datetime | None, in_use_since: datetime
) -> dict[tuple[int, int], set[int]]:
    """Table identity → the versions something retained still pins."""
    # Whatever is published after this look pins versions that are younger than the grace.
    state = repository.state()
    commits = repository.all_commits(state)
    heads = state.heads()
    # Without the rows of their base, two branches could not be merged any more.
    retained = set(meeting_points((head.commit_id for head in heads), lambda commit_id: commits[commit_id].parents))
    live: dict[tuple[int, int], set[int]] = {}
    for pin in state.protected_pins():
        live.setdefault((pin.table_id, pin.incarnation), set()).add(pin.lance_version)
    for head in heads:
        retained.add(head.commit_id)
        if head.fork_commit_id is not None:
            retained.add(head.fork_commit_id)
        retained |= _retained(head.commit_id, commits, keep, since, in_use_since)
    for commit_id, pins in repository.all_pins(state).items():
        if commit_id in retained:
            for pin in pins:
                live.setdefault((pin.table_id, pin.incarnation), set()).add(pin.lance_version)
    return live


def _retained(
    start: str, commits: Mapping[str, Commit], keep: int | None, since: datetime | None, in_use_since: datetime
) -> set[str]:
    retained: set[str] = set()
    position = 0
    commit = commits.get(start)
    replaced_at: int | None = None
    while commit is not None:
        young = since is not None and commit.created_at >= _microseconds(since)
        newest = keep is not None and position < max(keep, 1)
        in_use = replaced_at is not None and replaced_at >= _microseconds(in_use_since)
        if young or newest or in_use:
            retained.add(commit.id)
        elif keep is None or position >= keep:
            break
        position += 1
        replaced_at = commit.created_at
        commit = commits.get(commit.parent_id) if commit.parent_id else None
    return retained


def _microseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000)


def _head_versions(state: State) -> dict[tuple[int, int], set[int]]:
    """Table identity → the versions some branch's head or some tag pins."""
    pinned: dict[tuple[int, int], set[int]] = {}
    for pin in state.protected_pins():
        pinned.setdefault((pin.table_id, pin.incarnation), set()).add(pin.lance_version)
    return pinned


def _clean_table(
    repository: Repository, row: TableRow, live: set[int], before: datetime, *, nobody_writes: bool, confirm: bool
) -> CleanupStats:
    key, folder = row.key, row.folder
    versions = list_versions(repository.tables, folder)
    newest = versions[-1].version if versions else 0
    gone = [v.version for v in versions if v.version not in live and v.version != newest and v.written_at < before]
    if not confirm:
        return CleanupStats(key, folder, len(gone))
    remove_unfinished(repository.tables, folder, before)
    removed = remove(repository.tables, folder, gone, nobody_writes=nobody_writes)
    return CleanupStats(key, folder, len(removed.versions), removed.bytes)
