"""Maintenance: compaction, indexes, and removal of unreachable data.

Compaction and indexing never change rows. They are published like any write, as one commit with the new pins; if the
branch moved, they are planned again. A cleanup starts from what is retained (`retention`), never from what looks old.
Ages are measured by the store's clock and only decide what is worth removing. A fence (`reclaim`) ensures that no
version is removed that a concurrent write is about to publish.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from omnigraph.checkpoints import checkpoint
from omnigraph.decodable import decodable
from omnigraph.errors import InputError, OmniGraphError, StorageError
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files import layout
from omnigraph.storage.lance.garbage import (
    Removed,
    VersionFile,
    list_versions,
    remove,
    remove_unfinished,
    unknown_folders,
)
from omnigraph.storage.lance.indexes import IndexSpec, PendingIndex, stage_indexes, uncovered_rows
from omnigraph.storage.lance.table_versions import compacted
from omnigraph.storage.lance.tables import Table
from omnigraph.versioning.model.ids import system_clock
from omnigraph.versioning.model.manifest_objects import microseconds
from omnigraph.versioning.model.state import State
from omnigraph.versioning.upkeep.parallel import TABLES_AT_ONCE, each
from omnigraph.versioning.upkeep.reclaim import Garbage, reclaim
from omnigraph.versioning.upkeep.retention import RetentionPolicy, TableId, live_versions
from omnigraph.versioning.write.branches import delete_expired, expired
from omnigraph.versioning.write.idempotency import hash_request
from omnigraph.versioning.write.ref_changes import NO_REQUEST, RefRequest
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write_once

GRACE = timedelta(minutes=15)
"""Time during which an unpinned version is presumed to belong to a write in progress."""

_AHEAD_MAX = timedelta(days=1)
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)

Wanted = Mapping[str, Sequence[IndexSpec]]


@dataclass(frozen=True)
class TableStats:
    """The result of maintenance for one table."""

    table_key: str
    fragments_before: int
    fragments_after: int
    committed: bool
    pending: tuple[PendingIndex, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that all interfaces show."""
        return {
            "table_key": self.table_key,
            "fragments_removed": self.fragments_before if self.committed else 0,
            "fragments_added": self.fragments_after if self.committed else 0,
            "committed": self.committed,
            "pending_indexes": [{"property": p.column, "reason": p.reason} for p in self.pending],
        }


@dataclass(frozen=True)
class CleanupStats:
    """Result of a cleanup, or of its preview, for one table."""

    table_key: str
    folder: str
    old_versions_removed: int = 0
    bytes_removed: int = 0
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that all interfaces show."""
        return {
            "table_key": self.table_key,
            "old_versions_removed": self.old_versions_removed,
            "bytes_removed": self.bytes_removed,
            "error": self.error,
        }


@dataclass(frozen=True)
class _Work:
    """What maintenance does with the tables of a branch."""

    wanted: Wanted
    at_once: int
    tables: Collection[str] | None = None
    """The keys of the tables; None stands for all."""
    compact: bool = False


def optimize(
    repository: Repository,
    options: WriteOptions | None = None,
    *,
    wanted: Wanted | None = None,
    tables: Collection[str] | None = None,
    at_once: int = TABLES_AT_ONCE,
) -> list[TableStats]:
    """Compact the tables of a branch and update its indexes in one commit; no commit if nothing changes.

    `tables` are the keys of the tables to treat, by default all; `at_once` of them are treated in parallel.
    """
    options = replace(options or WriteOptions(), kind="optimize")
    return _maintain(repository, options, _Work(wanted or {}, at_once, tables, compact=True))


def ensure_indices(
    repository: Repository, options: WriteOptions, wanted: Wanted, *, at_once: int = TABLES_AT_ONCE
) -> list[TableStats]:
    """Build the missing indexes in one commit; no commit if none is missing."""
    return _maintain(repository, replace(options, kind="ensure_indices"), _Work(wanted, at_once))


def _maintain(repository: Repository, options: WriteOptions, work: _Work) -> list[TableStats]:
    """Maintain a branch. A repetition with the same idempotency key returns the result of the first call."""
    options = replace(options, request_hash=hash_request(options.kind, options.branch))
    stats: list[TableStats] = []

    def prepare(transaction: Transaction) -> None:
        def maintain(key: str) -> tuple[Table, TableStats]:
            checkpoint()
            return _maintain_table(key, transaction.snapshot.table(key), work)

        keys = [key for key in transaction.snapshot.tables if work.tables is None or key in work.tables]
        maintained = each(maintain, keys, work.at_once)
        stats[:] = [one for _, one in maintained]
        for table, one in maintained:
            if one.committed:
                transaction.set_version(one.table_key, table)
        recorded = [msgspec.to_builtins(one) for one in stats]
        transaction.options = replace(transaction.options, result={"tables": recorded})
        reach("optimize.before_publish")

    _, earlier = write_once(repository, prepare, options)
    return stats if earlier is None else msgspec.convert(earlier.result["tables"], decodable(list[TableStats]))


def _maintain_table(key: str, table: Table, work: _Work) -> tuple[Table, TableStats]:
    """Return the maintained table, which is the given one if there is nothing to do, and the result."""
    before = table.fragment_count
    current = table
    if work.compact:
        current = compacted(table, always=True)
        reach("optimize.compacted")
    moved = current is not table
    stale = moved or (work.compact and uncovered_rows(current))
    staged, pending = stage_indexes(current, work.wanted.get(key, ()), rebuild=stale)
    if staged is not None:
        current, _ = staged.promote()
    return current, TableStats(key, before, current.fragment_count, current is not table, tuple(pending))


# -- cleanup -----------------------------------------------------------------------------------------


def check_retention(keep: int | None, older_than: timedelta | None) -> None:
    """Raise `InputError` if these options of a cleanup state nothing or are not valid."""
    if keep is None and older_than is None:
        raise InputError(
            "a cleanup needs a policy", hint="give keep (newest commits per branch) or older_than, or both"
        )
    if keep is not None and keep < 0:
        raise InputError("keep cannot be negative")
    if older_than is not None and not isinstance(older_than, timedelta):
        raise InputError(f"older_than is a timedelta, not {type(older_than).__name__}", hint="write timedelta(days=7)")


def cleanup(
    repository: Repository,
    *,
    keep: int | None = None,
    older_than: timedelta | None = None,
    confirm: bool = False,
    grace: timedelta = GRACE,
    request: RefRequest = NO_REQUEST,
    at_once: int = TABLES_AT_ONCE,
) -> list[CleanupStats]:
    """Delete expired branches, and remove table versions that no retained commit pins.

    A commit is retained if it is one of a branch's newest `keep` commits or newer than `older_than`. Heads, fork points
    and the merge bases of any two branches are always retained, and so is every commit that was a head within `grace`,
    because a process may still read it or write on top of it. Without `confirm` nothing is removed, and the counts show
    what would be removed. A grace of zero states that no other process uses the graph: ages then do not matter, and
    files of unfinished writes are removed too. `request` is the author of the deletion of expired branches. `at_once`
    tables are treated in parallel.
    """
    check_retention(keep, older_than)
    if confirm:
        repository.check_writable()
    now = datetime.now(UTC) if repository.read_only else repository.objects.now()
    if confirm:
        _check_clock(now)
        delete_expired(repository, microseconds(now), request)
    state = repository.state()
    state = state.without_heads(expired(state, microseconds(now)))
    # An object store reports times in whole seconds: the newest versions can be as old as `now`.
    before = now - grace if grace else _END_OF_TIME
    listed, stats = _list_tables(repository, state, at_once)
    written = {(*identity, file.version): file.written_at for identity, files in listed.items() for file in files}
    policy = RetentionPolicy(keep, now - older_than if older_than is not None else None, before)
    live = live_versions(repository, state, written, now, policy)
    reach("cleanup.planned")
    garbage = Garbage(state)
    for identity, files in listed.items():
        folder = state.tables[identity].folder
        newest = max((file.version for file in files), default=0)
        kept = live.get(identity, set()) | {newest}
        garbage.present[folder] = {file.version for file in files}
        garbage.versions[folder] = {f.version for f in files if f.version not in kept and f.written_at < before}
    if not confirm:
        for identity in listed:
            row = state.tables[identity]
            stats[identity] = CleanupStats(row.key, row.folder, len(garbage.versions[row.folder]))
        return [stats[identity] for identity in sorted(stats)]
    known = {row.folder for row in state.tables.values()}
    unknown = unknown_folders(repository.tables, known)
    garbage.unknown = set(unknown)
    garbage.folders = {folder for folder, written_at in unknown.items() if written_at < before}
    removed = _remove(repository, garbage, before, at_once, no_writers=not grace)
    for identity in listed:
        row = state.tables[identity]
        done = removed.get(row.folder, Removed((), 0))
        error = done if isinstance(done, str) else None
        versions, size = (0, 0) if isinstance(done, str) else (len(done.versions), done.bytes)
        stats[identity] = CleanupStats(row.key, row.folder, versions, size, error)
    # Once the graph exists, the claim of its creator is not needed.
    repository.objects.delete(layout.INIT_CLAIM)
    repository.objects.remove_unfinished(before)
    remove_unfinished(repository.tables, layout.MANIFEST, before)
    return [stats[identity] for identity in sorted(stats)]


def _check_clock(now: datetime) -> None:
    """Refuse a host clock that is far ahead: by that clock, Lance removes unreferenced files that are a week old."""
    ahead = datetime.fromtimestamp(system_clock() / 1_000_000, UTC) - now
    if ahead > _AHEAD_MAX:
        raise StorageError(
            f"the clock of this host is {ahead} ahead of the store's; nothing was removed",
            code="clock_skew",
            hint="set the clock of this host, then run the cleanup again",
        )


def _list_tables(
    repository: Repository, state: State, at_once: int
) -> tuple[dict[TableId, list[VersionFile]], dict[TableId, CleanupStats]]:
    """Return the versions of each table, and the error for each table that cannot be listed."""
    listed: dict[TableId, list[VersionFile]] = {}
    failed: dict[TableId, CleanupStats] = {}

    def list_table(identity: TableId) -> None:
        row = state.tables[identity]
        try:
            listed[identity] = list_versions(repository.tables, row.folder)
        except OmniGraphError as error:
            failed[identity] = CleanupStats(row.key, row.folder, error=error.message)

    each(list_table, sorted(state.tables), at_once)
    return {identity: listed[identity] for identity in sorted(listed)}, failed


def _remove(
    repository: Repository, garbage: Garbage, before: datetime, at_once: int, *, no_writers: bool
) -> dict[str, Removed | str]:
    """Remove garbage; return folder → what was removed, or the reason why it was not."""
    done: dict[str, Removed | str] = {}

    def remove_from(folder: str, versions: list[int] | None) -> None:
        try:
            if versions is None:
                repository.objects.delete_folder(folder)
            else:
                done[folder] = remove(repository.tables, folder, versions, no_writers=no_writers)
        except OmniGraphError as error:
            done[folder] = error.message
            raise

    def remove_unfinished_from(folder: str) -> None:
        try:
            remove_unfinished(repository.tables, folder, before)
        except OmniGraphError as error:
            done[folder] = error.message

    def remove_unreferenced(folder: str) -> None:
        with suppress(OmniGraphError):
            remove_from(folder, [])

    each(remove_unfinished_from, garbage.versions, at_once)
    reclaim(repository, garbage, remove_from, at_once)
    if no_writers:
        each(remove_unreferenced, garbage.versions.keys() - done.keys(), at_once)
    return done
