"""The manifest table: its newest version defines what is visible.

`__manifest` contains two kinds of rows: *history*, which is append-only, and *state*, which is small and replaced by
every publish. Its fragments are a few sealed ones that contain only history, and one live fragment, the last, which
contains the newest history (the tail) and the whole state. The first sealed fragment (the anchor) contains the rows the
graph was created with.

A publish replaces the live fragment in one Lance commit and declares the anchor as modified. Lance compares a commit
with the transactions of the versions that still exist since its base version. Because all of them modify the anchor,
any one of them is enough to refuse the commit, however many versions were dropped in between. So exactly one publisher
of a version wins, and the others read again: a compare-and-swap over the whole graph. It is also the reason why the
number of the next version is known in advance (read version + 1).

No cost grows with history. Opening reads the live fragment, and a publish rewrites it. A full tail is sealed and merged
with sealed fragments that are not larger, so their number stays logarithmic. Old versions are dropped regularly;
history does not depend on them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Damaged, StorageError
from omnigraph.observer import timed
from omnigraph.scalar_types.readers import is_unicode
from omnigraph.storage.backoff import RANDOM
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files.fsync import sync_files, sync_tree
from omnigraph.storage.files.layout import MANIFEST, manifest_file, manifest_name
from omnigraph.storage.files.location import Location
from omnigraph.storage.lance.create_once import create_once
from omnigraph.storage.lance.fragments import replace_fragments
from omnigraph.storage.lance.lance_errors import is_conflict, is_missing, lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.tables import PRIMARY_KEY, replaced, sql_text, transaction_of

STAMP_KEY = "omnigraph:internal_schema_version"
STATE_TYPES = ("table", "graph_head", "graph_tag", "graph_abort", "graph_identity")
"""The row types that are state; all other types are history."""

SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.utf8(), nullable=False, metadata=PRIMARY_KEY),
        pa.field("object_type", pa.utf8(), nullable=False),
        pa.field("location", pa.utf8()),
        pa.field("metadata", pa.utf8()),
        pa.field("base_objects", pa.list_(pa.utf8())),
        pa.field("table_key", pa.utf8(), nullable=False),
        pa.field("stable_table_id", pa.uint64()),
        pa.field("table_incarnation_id", pa.uint64()),
        pa.field("table_version", pa.uint64()),
        pa.field("table_branch", pa.utf8()),
        pa.field("row_count", pa.uint64()),
    ]
)

_SEAL_ROWS = 64
_TRIM_EVERY = 64
_KEEP_VERSIONS = 32
_READ_TRIES = 20
_METADATA_CACHE_BYTES = 4 * 1024 * 1024
_INDEX_CACHE_BYTES = 1024 * 1024
"""Cache sizes of Lance for the manifest: only its newest version is read again."""
_PUBLISH_LOCK_NAME = "__publish_lock"
_RETRY_LOCK_NAME = "__retry_lock"
_PUBLISH_LOCK_S = 0.25
_RETRY_LOCK_S = 3.0


FileIdentity = tuple[int, ...]
"""Identifies a file: device, inode, size, times of modification and change."""


class PublishConflict(Exception):
    """Another publisher won the race; the caller reads again and decides anew."""


@dataclass(frozen=True)
class ManifestVersion:
    """One version of the manifest with its live fragment in memory."""

    version: int
    state: pa.Table
    tail: pa.Table
    stamp: str | None
    dataset: lance.LanceDataset
    transaction: str
    """The id of the transaction that made the version."""
    commit_id: str | None
    """The newest commit, if the tail contains one."""
    epoch: int
    """The number of times this process found that the graph was replaced by another one."""
    file_identity: FileIdentity | None = None
    """The file of the version; None on an object store."""

    @cached_property
    def file_names(self) -> tuple[str, str]:
        """The manifest file names of the next version and of this one."""
        return manifest_name(self.version + 1), manifest_name(self.version)


class ManifestTable:
    """Reads and publishes `__manifest`."""

    def __init__(self, location: Location, *, sync: bool) -> None:
        self.location = location
        self.sync = sync
        self._uri = location.child(MANIFEST)
        self._versions = str((location.path or Path()) / MANIFEST / "_versions")
        self._options = location.storage_options
        self._session = _new_session()
        self._seen: tuple[int, int] | None = None
        """A version, and the modification time of the version folder before the version was found to be the newest."""
        self._last: ManifestVersion | None = None
        """The newest version read or published so far."""
        self._guard = Lock()
        self._thread_locks: dict[str, Lock] = {}

    @property
    def cache_bytes(self) -> int:
        """The size of the Lance caches in bytes."""
        return int(self._session.size_bytes())

    # -- reading ---------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Return True if the manifest exists."""
        if self.location.path is not None and not (self.location.path / MANIFEST / "_versions").is_dir():
            return False
        try:
            self._open()
        except lance_errors() as error:
            if is_missing(error):
                return False
            raise storage_failure(error, self.location, "the graph manifest cannot be opened") from error
        return True

    def read(self) -> ManifestVersion:
        """Return the newest version."""
        for attempt in range(_READ_TRIES):
            last = self._last
            try:
                folder_time = self._folder_time()
                found = self._version(self._open(), last.epoch if last is not None else 0)
                if last is not None and not self._follows(last, found):
                    found = replace(found, epoch=last.epoch + 1)
                    self._session = _new_session()
                if self._keep(found, last):
                    self._remember_seen(found, folder_time)
                    return found
            except lance_errors() as error:
                # A publisher may have trimmed the version that was just opened.
                if not is_missing(error) or attempt == _READ_TRIES - 1:
                    raise storage_failure(error, self.location, "the graph manifest cannot be read") from error
                time.sleep(0.005 * (attempt + 1))
        raise AssertionError("the loop returns or raises")

    def refresh(self, known: ManifestVersion) -> ManifestVersion:
        """Return the newest version; `known` itself if nothing was published."""
        folder_time = self._folder_time()
        if folder_time is not None and self._seen == (known.version, folder_time):
            following, own = known.file_names
            if (
                not self._has(following)
                and known.file_identity is not None
                and self._file_identity(own) == known.file_identity
            ):
                return known
        try:
            if known is self._last and transaction_of(self._open()) == known.transaction:
                file_identity = self._verified_identity(known.version, known.transaction)
                # The file may be a copy of the same version, or may have another link or owner now.
                same = known if file_identity == known.file_identity else replace(known, file_identity=file_identity)
                if self._keep(same, known):
                    self._remember_seen(same, folder_time)
                    return same
        except lance_errors():
            return self.read()
        return self.read()

    def _keep(self, found: ManifestVersion, last: ManifestVersion | None) -> bool:
        """Make a version the newest known one; return False if another thread found a different history."""
        with self._guard:
            current = self._last
            if current is not last and current is not None and current.epoch != found.epoch:
                return False
            if current is None or (current.epoch, current.version) <= (found.epoch, found.version):
                self._last = found
        return True

    def _follows(self, last: ManifestVersion, found: ManifestVersion) -> bool:
        """Return True if a version continues the history of an earlier one.

        Otherwise the folder was replaced, for example by an older copy to which other commits were added.
        """
        if found.version <= last.version:
            return found.version == last.version and found.transaction == last.transaction
        if last.commit_id is None or not _is_commit(last):
            # Other versions can have the same newest commit: only the transaction identifies this one.
            return self._made_by(found, last.version) == last.transaction
        if found.commit_id == last.commit_id:
            return True
        if pc.any(pc.equal(found.tail["object_id"], last.commit_id)).as_py():
            return True
        condition = f"object_id = {sql_text(last.commit_id)}"
        return bool(found.dataset.to_table(filter=condition, columns=["object_id"]).num_rows)

    def _folder_time(self) -> int | None:
        """Return when an entry of the version folder was last created or removed; None on an object store.

        Versions are consecutive. If the next version does not exist, either nothing was published, or so much that the
        next version was already trimmed. In the second case the known version is gone as well, and the time of the
        folder has changed. Three stat calls take microseconds; a listing takes a tenth of a millisecond.
        """
        if self.location.path is None:
            return None
        try:
            return os.stat(self._versions).st_mtime_ns  # noqa: PTH116 (pathlib takes ten times as long as the call itself)
        except OSError:
            return None

    @staticmethod
    def _made_by(at: ManifestVersion, version: int) -> str | None:
        """Return the transaction that made an earlier version; None if that version no longer exists."""
        try:
            transaction = at.dataset.read_transaction(version)
        except lance_errors():
            return None
        return str(transaction.uuid) if transaction is not None else None

    def _has(self, name: str) -> bool:
        return os.access(f"{self._versions}/{name}", os.F_OK)

    def _file_identity(self, name: str) -> FileIdentity | None:
        try:
            return _identify(os.stat(f"{self._versions}/{name}"))  # noqa: PTH116 (as above)
        except OSError:
            return None

    def _verified_identity(self, version: int, transaction: str) -> FileIdentity | None:
        """Return the mark of a version's file; raise if the file belongs to another transaction by now."""
        if self.location.path is None:
            return None
        with manifest_file(self.location.path / MANIFEST, version).open("rb") as file:
            file_identity = _identify(os.fstat(file.fileno()))
            if transaction.encode() not in file.read():
                raise FileNotFoundError(f"version {version} of the manifest was not found: it was replaced")
        return file_identity

    def _remember_seen(self, found: ManifestVersion, folder_time: int | None) -> None:
        self._seen = (found.version, folder_time) if folder_time is not None else None

    @timed("storage", "manifest_scan")
    def scan(self, at: ManifestVersion, condition: str, columns: list[str] | None = None) -> pa.Table:
        """Return the history and state rows that satisfy an SQL condition."""
        for attempt in range(_READ_TRIES):
            try:
                return at.dataset.to_table(filter=condition, columns=columns)
            except lance_errors() as error:
                if not is_missing(error) or attempt == _READ_TRIES - 1:
                    raise storage_failure(error, self.location, "the graph manifest cannot be read") from error
                # The version was trimmed during the read. A newer version contains every history row that this one had.
                newer = self.read()
                if newer.epoch != at.epoch:
                    raise replaced("the graph manifest cannot be read") from error
                at = newer
        raise AssertionError("the loop returns or raises")

    def find(self, at: ManifestVersion, *object_ids: str) -> pa.Table:
        """Return the rows with these ids, if any: first from memory, then from the sealed fragments."""
        # Text with an unpaired surrogate cannot be stored, so it is not the id of any row.
        object_ids = tuple(filter(is_unicode, object_ids))
        wanted = pa.array(object_ids, pa.utf8())
        found = pa.concat_tables(
            rows.filter(pc.is_in(rows["object_id"], value_set=wanted)) for rows in (at.tail, at.state)
        )
        if found.num_rows >= len(object_ids):
            return found
        sealed = self.scan(at, f"object_id IN ({', '.join(map(sql_text, object_ids))})")
        return sealed if not found.num_rows else pa.concat_tables([found, sealed])

    @timed("storage", "manifest_open")
    def _open(self) -> lance.LanceDataset:
        return lance.dataset(self._uri, storage_options=self._options, session=self._session)

    def _version(self, dataset: lance.LanceDataset, epoch: int) -> ManifestVersion:
        fragments = dataset.get_fragments()
        metadata = dataset.schema.metadata or {}
        stamp = metadata.get(STAMP_KEY.encode())
        if not fragments:
            raise Damaged("the graph manifest is empty", hint="restore the graph's folder from a copy")
        live = max(fragments, key=lambda fragment: fragment.fragment_id).to_table()
        if live.schema.names != SCHEMA.names:
            raise Damaged(
                f"the columns of the graph manifest are unknown to this release: {', '.join(live.schema.names)}",
                hint="open the graph with the release that wrote it",
            )
        is_state = _is_state(live)
        tail = live.filter(pc.invert(is_state))
        transaction = transaction_of(dataset)
        return ManifestVersion(
            version=dataset.version,
            state=live.filter(is_state),
            tail=tail,
            stamp=stamp.decode() if stamp is not None else None,
            dataset=dataset,
            transaction=transaction,
            commit_id=_newest_commit(tail),
            epoch=epoch,
            file_identity=self._verified_identity(dataset.version, transaction),
        )

    # -- writing ---------------------------------------------------------------------------------

    def create(self, rows: pa.Table, stamp: str) -> ManifestVersion:
        """Write version 1. Exactly one of several creators succeeds; the others get `PublishConflict`."""
        schema = SCHEMA.with_metadata({STAMP_KEY: stamp})
        is_state = _is_state(rows)
        state, history = rows.filter(is_state), rows.filter(pc.invert(is_state))
        assert history.num_rows >= state.num_rows > 0, "the anchor is the first file, the state is in the second"
        ordered = pa.concat_tables([history, state]).cast(schema)
        try:
            create_once(self._uri, ordered, self._options, rows_per_file_max=history.num_rows)
        except FileExistsError as error:
            raise PublishConflict from error
        except lance_errors() as error:
            raise storage_failure(error, self.location, "the graph manifest cannot be created") from error
        if self.sync and self.location.path is not None:
            sync_tree(self.location.path / MANIFEST)
        return self.read()

    @timed("storage", "manifest_publish")
    def publish(self, base: ManifestVersion, state: pa.Table, added: pa.Table) -> ManifestVersion:
        """Replace the state and add history rows in one commit on exactly `base`, or raise `PublishConflict`.

        Any other error leaves the outcome open: the commit may have landed. The caller must read the manifest to find
        out.
        """
        tail = pa.concat_tables([base.tail, added])
        try:
            fragments = sorted(base.dataset.get_fragments(), key=lambda fragment: fragment.fragment_id)
            removed = [fragments[-1].fragment_id]
            new = []
            if tail.num_rows >= _SEAL_ROWS:
                merged, gone = self._merge(fragments[1:-1], tail)
                removed += gone
                new += lance.fragment.write_fragments(merged, base.dataset, mode="append")
                tail = tail.slice(0, 0)
            new += lance.fragment.write_fragments(
                pa.concat_tables([tail, state]).combine_chunks(), base.dataset, mode="append"
            )
            operation = replace_fragments(base.dataset, removed=removed, updated=[fragments[0].metadata], new=new)
            self._sync_data(new)
            reach("publish.before_commit")
            if base.file_identity is not None and self._file_identity(base.file_names[1]) != base.file_identity:
                raise PublishConflict
            dataset = lance.LanceDataset.commit(base.dataset, operation, read_version=base.version, max_retries=0)
            if self.sync and self.location.path is not None:
                sync_files([manifest_file(self.location.path / MANIFEST, dataset.version)])
            latest = dataset.latest_version
        except lance_errors() as error:
            # A publisher that was suspended may find that its base version was trimmed by those that overtook it.
            if is_conflict(error) or (is_missing(error) and self.refresh(base) is not base):
                raise PublishConflict from error
            raise storage_failure(error, self.location, "the commit cannot be published") from error
        if dataset.version != base.version + 1:
            raise Damaged(f"a publish on version {base.version} landed at {dataset.version}")
        if latest >= dataset.version + _KEEP_VERSIONS:
            # A request that was in flight for so long may have written to the number of a dropped version, which is
            # never read. The caller looks for its commit in the newest version.
            raise StorageError(f"a publish was overtaken by {latest - dataset.version} others")
        reach("publish.after_commit")
        if dataset.version % _TRIM_EVERY == 0:
            self._trim(dataset)
        transaction = transaction_of(dataset)
        try:
            file_identity = self._verified_identity(dataset.version, transaction)
        except OSError:
            file_identity = None
        published = ManifestVersion(
            version=dataset.version,
            state=state,
            tail=tail,
            stamp=base.stamp,
            dataset=dataset,
            transaction=transaction,
            commit_id=_newest_commit(added) or base.commit_id,
            epoch=base.epoch,
            file_identity=file_identity,
        )
        self._keep(published, base)
        return published

    def raise_stamp(self, base: ManifestVersion, stamp: str) -> ManifestVersion:
        """Commit a new format stamp on exactly `base`, or raise `PublishConflict`."""
        update = lance.LanceOperation.UpdateMap({STAMP_KEY: stamp})
        operation = lance.LanceOperation.UpdateConfig(schema_metadata_updates=update)
        try:
            lance.LanceDataset.commit(base.dataset, operation, read_version=base.version, max_retries=0)
        except lance_errors() as error:
            if is_conflict(error):
                raise PublishConflict from error
            raise storage_failure(error, self.location, "the storage format of the graph cannot be upgraded") from error
        if self.sync and self.location.path is not None:
            sync_tree(self.location.path / MANIFEST)
        return self.read()

    def _merge(self, sealed: list[lance.LanceFragment], tail: pa.Table) -> tuple[pa.Table, list[int]]:
        """Return the rows of a new sealed fragment and the ids of the fragments it absorbs.

        It absorbs the newest sealed fragments first, as long as they are not larger.
        """
        parts = [tail]
        gone: list[int] = []
        total = tail.num_rows
        for fragment in reversed(sealed):
            if fragment.count_rows() > total:
                break
            parts.insert(0, fragment.to_table())
            gone.append(fragment.fragment_id)
            total += fragment.count_rows()
        return pa.concat_tables(parts).combine_chunks(), gone

    def _sync_data(self, fragments: list[lance.FragmentMetadata]) -> None:
        if self.sync and self.location.path is not None:
            folder = self.location.path / MANIFEST / "data"
            sync_files(folder / file.path for fragment in fragments for file in fragment.files)

    def _trim(self, dataset: lance.LanceDataset) -> None:
        """Drop old versions of the manifest, on a best-effort basis; the newest version contains all history rows."""
        try:
            dataset.cleanup_old_versions(older_than=timedelta(0), retain_versions=_KEEP_VERSIONS)
        except lance_errors() as error:
            if not is_conflict(error) and not is_missing(error):
                raise storage_failure(error, self.location, "old versions of the manifest cannot be dropped") from error

    def publish_lock(self) -> AbstractContextManager[None]:
        """Return a lock with which publishers on one machine take turns; on an object store, those of this process.

        It saves lost races; correctness does not depend on it.
        """
        return self._lock(_PUBLISH_LOCK_NAME, _PUBLISH_LOCK_S)

    def retry_lock(self) -> AbstractContextManager[None]:
        """Return a lock with which writers on one machine that lost a race retry one after the other.

        On an object store these are the writers of this process. Without the lock, a slow writer among many could lose
        every race. A writer that has not lost a race does not wait here.
        """
        return self._lock(_RETRY_LOCK_NAME, _RETRY_LOCK_S)

    @contextmanager
    def _lock(self, name: str, patience_s: float) -> Iterator[None]:
        """Acquire an advisory lock that affects order only, never correctness.

        The wait is therefore bounded: a process that is stopped while it holds the lock must not stop the others.
        """
        path = self.location.path
        if path is None or sys.platform == "win32":
            with self._thread_lock(name, patience_s):
                yield
            return
        import fcntl  # noqa: PLC0415 (absent on Windows)

        with self._open_lock(path / name) as file:
            end = time.monotonic() + patience_s
            while time.monotonic() < end:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(RANDOM.uniform(0.0005, 0.002))
                except OSError:
                    # NFS and FUSE mounts may not support locks (ENOLCK, ENOSYS, EOPNOTSUPP): continue without one.
                    break
            yield

    @contextmanager
    def _thread_lock(self, name: str, patience_s: float) -> Iterator[None]:
        """Acquire the lock among the threads of this process; those of other processes race."""
        with self._guard:
            lock = self._thread_locks.setdefault(name, Lock())
        acquired = lock.acquire(timeout=patience_s)
        try:
            yield
        finally:
            if acquired:
                lock.release()

    def _open_lock(self, path: Path) -> BinaryIO:
        """Open a lock file. In a shared folder it may belong to a user whose files are read-only for this user."""
        try:
            return path.open("ab")
        except OSError as error:
            with suppress(OSError):
                return path.open("rb")
            raise storage_failure(error, self.location, "the graph cannot be written") from error


def _new_session() -> Any:
    return lance.Session(  # type: ignore[attr-defined]
        index_cache_size_bytes=_INDEX_CACHE_BYTES, metadata_cache_size_bytes=_METADATA_CACHE_BYTES
    )


def _identify(found: os.stat_result) -> FileIdentity:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _newest_commit(rows: pa.Table) -> str | None:
    """Return the last commit among rows in insertion order; None if there is none."""
    commits = rows.filter(pc.equal(rows["object_type"], "graph_commit"))["object_id"]
    return commits[-1].as_py() if len(commits) else None


def _is_commit(version: ManifestVersion) -> bool:
    """Return True if this version itself added the newest commit; False if the row of that commit left the tail."""
    tail = version.tail
    rows = tail.filter(pc.equal(tail["object_type"], "graph_commit"))
    return bool(rows.num_rows) and rows["table_version"][-1].as_py() == version.version


def _is_state(rows: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(rows["object_type"], value_set=pa.array(STATE_TYPES))
