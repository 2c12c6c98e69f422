"""The manifest: a checkpoint and a log of the versions since; its newest version defines what is visible.

A publish creates the next entry of the log (`commit_log`). Exactly one publisher of a version succeeds, and the others
read again: a compare-and-swap over the whole graph in one request. The number of the next version is known in advance.
Nothing else is rewritten, so the cost of a publish depends neither on the history nor on the number of branches.

After `_CHECKPOINT_RECORDS` versions, the publisher folds the log into the checkpoint (`checkpoint`), a plain Lance
table. A checkpoint changes how a version is stored, not what it contains: a process that stops before, during or after
it loses nothing, and every version can be read from the newest entry and any checkpoint that is not older than the
entry's base.

Readers keep the newest version in memory. In a folder, three stat calls show whether there is a newer one: the time of
the log folder, the name of the next entry and the file of the known one. On an object store, one request for the next
entry does.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Damaged, OmniGraphError, StorageError
from omnigraph.fast_dataclass import dataclass
from omnigraph.observer import timed
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files.location import Location
from omnigraph.storage.lance.lance_errors import is_missing, lance_errors, storage_failure
from omnigraph.storage.lance.tables import replaced
from omnigraph.storage.lance.write_locks import WriteLocks
from omnigraph.storage.manifest.checkpoint import CheckpointConflict, CheckpointTable
from omnigraph.storage.manifest.commit_log import (
    LOOK_AGE_S,
    CommitLog,
    FolderStamp,
    LogEntry,
    LogRecord,
    encode_entry,
    encode_record,
    entry_name,
    new_record,
)
from omnigraph.storage.manifest.manifest_schema import STATE_TYPES, HistoryFilter, Row, to_rows
from omnigraph.storage.manifest.manifest_version import (
    Change,
    ManifestVersion,
    version_after,
    version_at_checkpoint,
)
from omnigraph.storage.parallel import each_request, request

_CHECKPOINT_RECORDS = 64
_CHECKPOINT_EVERY = 16
"""Versions between two attempts: while one publisher writes a checkpoint, the next ones do not."""
_CHECKPOINT_BYTES = 1 << 20
"""A checkpoint is written earlier if the encoded records are so large, because every entry contains all of them."""
_RECORDS_MAX = 1_024
"""A publish is refused if the checkpoint of so many versions fails."""
_OVERLAY_VERSIONS = 256
"""A handle that is so many versions after its checkpoint reads a newer one, if there is one."""
_KEEP_ENTRIES = 64
"""Versions before a checkpoint whose entries are kept for processes that are a little behind."""
_SETTLED_S = 3.0
"""The age of a folder stamp from which every change gives another one. The times of files have steps of at most 2 s."""
_READ_TRIES = 20
_CHECKPOINT_TRIES = 3
_ERASE_TRIES = 50
_NEXT_MAX = 3
"""Requests for the next entries that are made one after the other before the entries are listed."""
_TOGETHER = 4
"""Entries that are requested together if others publish."""
_QUIET_LOOKS = 3
"""Looks without a new version after which the log is no longer considered contended."""


class PublishConflict(Exception):
    """Another publisher won the race; the caller reads again and decides anew."""


@dataclass(frozen=True, slots=True)
class _Look:
    """A look at the store that found a version to be the newest: the version after it did not exist when it began."""

    version: ManifestVersion
    folder_stamp: FolderStamp | None
    """Of the log folder when the look began; None if it is unknown or on an object store."""
    at: tuple[float, float]
    """When it began: monotonic time and wall-clock time."""
    listed_at: float
    """The monotonic time of the last look that listed the entries."""
    is_settled: bool = False
    """True if the next change of the log folder changes its stamp."""

    @property
    def is_recent(self) -> bool:
        """True if no entry after the version was removed yet.

        A suspended process or machine stops some clocks, so two are compared.
        """
        monotonic, wall = _now()
        return monotonic - self.at[0] < LOOK_AGE_S and 0 <= wall - self.at[1] < LOOK_AGE_S


StoredForm = Callable[[ManifestVersion, Sequence[Row]], list[Row]]
"""Returns state rows as a checkpoint stores them; the log may contain a shorter form."""


class ManifestTable:
    """Reads and publishes the manifest."""

    def __init__(self, location: Location, *, sync: bool, stored_form: StoredForm | None = None) -> None:
        self.location = location
        self.sync = sync
        self._stored_form = stored_form
        self._quiet = _QUIET_LOOKS
        """Looks without a new version since the last one with a version of another publisher."""
        self.locks = WriteLocks(location)
        self._log = CommitLog(location, sync=sync)
        self._checkpoints = CheckpointTable(location, sync=sync)
        self._look: _Look | None = None
        self._last: ManifestVersion | None = None
        """The newest version read or published so far."""
        self._guard = Lock()

    @property
    def cache_bytes(self) -> int:
        """The size of the Lance caches in bytes."""
        return self._checkpoints.cache_bytes

    # -- reading ---------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Return True if the manifest exists."""
        return self._checkpoints.exists()

    def read_if_exists(self) -> ManifestVersion | None:
        """Return the newest version; None if there is no manifest."""
        try:
            return self.read()
        except OmniGraphError:
            if self.exists():
                raise
            return None

    def read(self) -> ManifestVersion:
        """Return the newest version."""
        for attempt in range(_READ_TRIES):
            last = self._last
            try:
                stamp = self._log.folder_stamp()
                at = _now()
                found = self._newest(last.epoch if last is not None else 0)
                if found is None or not _is_same_folder(stamp, self._log.folder_stamp()):
                    # The second: the folder of the graph was replaced meanwhile, or its first entry was written.
                    time.sleep(0.005 * (attempt + 1))
                    continue
                if last is not None and (found.purge_epoch != last.purge_epoch or not self._follows(last, found)):
                    found = replace(found, epoch=last.epoch + 1)
                    self._checkpoints.reset()
                if self._keep(found, last):
                    self._look = _Look(found, stamp, at, at[0])
                    return found
            except lance_errors() as error:
                # A publisher may have dropped the version of the checkpoint that was just opened.
                last_try = attempt == _READ_TRIES - 1 or (last is None and attempt == 0 and not self.exists())
                if not is_missing(error) or last_try:
                    raise storage_failure(error, self.location, "the graph manifest cannot be read") from error
                time.sleep(0.005 * (attempt + 1))
        raise Damaged(
            "the newest log entry does not continue the graph manifest",
            code="damaged_manifest",
            hint="restore the graph's folder from a copy; a copy during writes takes __log first, then __manifest",
        )

    def _newest(self, epoch: int) -> ManifestVersion | None:
        """Read the newest checkpoint and the newest entry; None if they do not belong together.

        The entry may have been removed in between.
        """
        if self.location.path is None:
            # The requests for the two overlap. If the checkpoint is older than the base of the entry, it is read again.
            listed = request(self._newest_entry)
            checkpoint = self._checkpoints.read()
            name, entry = listed.result()
        else:
            name, entry = self._newest_entry()
            checkpoint = self._checkpoints.read()
        version = version_at_checkpoint(checkpoint, epoch)
        if name is None:
            return version
        if entry is None:
            return None
        if entry.version < checkpoint.version:
            return version
        if entry.id_of(checkpoint.version) != checkpoint.id:
            return None
        if entry.version == checkpoint.version:
            return replace(
                version, entry=name, file_identity=self._log.identity(name), store=entry.store or version.store
            )
        return self._extended(version, entry, name)

    def _newest_entry(self) -> tuple[str | None, LogEntry | None]:
        """Return the name of the newest entry and the entry; it is None if it was removed in between."""
        names = self._log.names()
        return (names[-1], self._log.read(names[-1])) if names else (None, None)

    def _extended(self, known: ManifestVersion, entry: LogEntry, name: str) -> ManifestVersion:
        """Return the version that an entry leads to, from a version that the entry continues."""
        records = [record for record in entry.records if record.version > known.version]
        applied = version_after(known, records)
        checkpoint = known.checkpoint
        # The publisher of the entry may not have known this checkpoint. The next entry continues it.
        covered = max(checkpoint.version - entry.base, 0)
        return replace(
            applied,
            stamp=_newer(known.stamp, entry.stamp),
            store=entry.store,
            base=entry.base + covered,
            base_id=checkpoint.id if covered else entry.base_id,
            lines=entry.lines[covered:],
            entry=name,
            file_identity=self._log.identity(name),
        )

    def refresh(self, known: ManifestVersion) -> ManifestVersion:
        """Return the newest version; `known` itself if nothing was published."""
        look = self._look if self._look is not None and self._look.version is known else None
        stamp = self._log.folder_stamp()
        if look is not None and stamp is not None and look.folder_stamp == stamp:
            if look.is_settled:
                return known
            if (
                known.entry is not None
                and not self._log.has(known.next_entry)
                and known.file_identity is not None
                and self._log.identity(known.entry) == known.file_identity
            ):
                if time.monotonic() - look.at[0] > _SETTLED_S:
                    self._look = replace(look, is_settled=True)
                return known
        at = _now()
        found: ManifestVersion | None = None
        listed_at = at[0]
        if known is self._last:
            if look is not None and self.location.path is None and look.is_recent:
                found, listed_at = self._next(known, look), look.listed_at
            if found is None:
                found, listed_at = self._listed(known), at[0]
        if found is None or found.purge_epoch != known.purge_epoch or not self._keep(found, known):
            return self.read()
        self._look = _Look(found, stamp, at, listed_at)
        return found

    def _next(self, known: ManifestVersion, look: _Look) -> ManifestVersion | None:
        """Return the newest version if few entries lead to it from a known one that was recently the newest.

        No entry after the known one was removed since, so an unused name means that there is no newer version. The
        entries are listed now and then nevertheless, because the graph may have been replaced. If others published
        recently, the entries of several versions are requested together.
        """
        if known.entry is None or look.at[0] - look.listed_at > LOOK_AGE_S:
            return None
        found = known
        for _ in range(_NEXT_MAX):
            names = [entry_name(found.version + number) for number in range(1, (_TOGETHER if self._is_busy else 1) + 1)]
            before = found
            for name, entry in zip(names, each_request(self._log.read, names), strict=True):
                extended = self._continued(before, entry, name) if entry is not None else found
                if extended is None:
                    return None
                found = extended
            if found is before or found.next_entry in names:
                self._quiet = 0 if found is not known else self._quiet + 1
                return found
        return None

    @property
    def _is_busy(self) -> bool:
        """True if one of the last looks found versions of other publishers."""
        return self._quiet < _QUIET_LOOKS

    def _listed(self, known: ManifestVersion) -> ManifestVersion | None:
        """Return the newest version if the newest entry continues a known one; None if everything must be read."""
        names = self._log.names()
        if not names:
            return known if known.entry is None and self._is_newest(known) else None
        if names[-1] == known.entry:
            identity = self._log.identity(known.entry)
            if identity == known.file_identity and identity is not None:
                return known
        entry = self._log.read(names[-1])
        return self._continued(known, entry, names[-1]) if entry is not None else None

    def _continued(self, known: ManifestVersion, entry: LogEntry, name: str) -> ManifestVersion | None:
        """Return the version that an entry leads to; None if it does not continue the known one."""
        if entry.id_of(known.version) != known.id:
            return None
        if entry.version == known.version:
            # The file may be a copy of the same entry, or may have another link or owner now.
            identity = self._log.identity(name)
            same = name == known.entry and identity == known.file_identity
            return known if same else replace(known, entry=name, file_identity=identity)
        behind = entry.version - known.checkpoint.version
        if behind > _OVERLAY_VERSIONS and entry.base > known.checkpoint.version:
            return None
        return self._extended(known, entry, name)

    def _is_newest(self, known: ManifestVersion) -> bool:
        """Return True if the checkpoint of a version without an entry is the newest one."""
        try:
            return self._checkpoints.is_newest(known.checkpoint)
        except lance_errors():
            return False

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
            return found.version == last.version and found.id == last.id
        if not last.witness or last.witness in found.added:
            return True
        return bool(self._checkpoints.find(found.checkpoint, [last.witness]))

    def scan(self, at: ManifestVersion, rows: HistoryFilter, columns: Sequence[str] | None = None) -> list[Row]:
        """Return history rows."""
        for attempt in range(_READ_TRIES):
            try:
                found: list[Row] = self._checkpoints.scan(at.checkpoint, rows.to_sql(), columns).to_pylist()
                if at.rewritten:
                    found = [row for row in found if row["object_id"] not in at.rewritten]
                return found + [row for row in at.added.values() if rows.selects(row)]
            except lance_errors() as error:
                at = self._after_missing(at, error, attempt)
        raise AssertionError("the loop returns or raises")

    def find(self, at: ManifestVersion, *object_ids: str) -> list[Row]:
        """Return the rows with these ids, if any: from memory, or from the checkpoint."""
        found: list[Row] = []
        unknown: list[str] = []
        for object_id in object_ids:
            row = at.added.get(object_id) or at.row(object_id)
            if row is not None:
                found.append(row)
            else:
                unknown.append(object_id)
        if not unknown:
            return found
        for attempt in range(_READ_TRIES):
            try:
                return found + self._checkpoints.find(at.checkpoint, unknown)
            except lance_errors() as error:
                at = self._after_missing(at, error, attempt)
        raise AssertionError("the loop returns or raises")

    def duplicates(self, at: ManifestVersion) -> list[tuple[str, int]]:
        """Return the ids of rows that occur several times, with their number."""
        types = ", ".join(f"'{name}'" for name in STATE_TYPES)
        for attempt in range(_READ_TRIES):
            try:
                stored = self._checkpoints.scan(at.checkpoint, f"object_type NOT IN ({types})", ["object_id"])
                break
            except lance_errors() as error:
                at = self._after_missing(at, error, attempt)
        history = [object_id for object_id in stored["object_id"].to_pylist() if object_id not in at.rewritten]
        counts = Counter((*history, *at.checkpoint.state["object_id"].to_pylist(), *at.added))
        return [(object_id, count) for object_id, count in counts.items() if count > 1]

    def check_entry(self, at: ManifestVersion) -> None:
        """Read the entry of a version again; raise `Damaged` if it is damaged now."""
        if at.entry is not None:
            self._log.read(at.entry)

    def _after_missing(self, at: ManifestVersion, error: BaseException, attempt: int) -> ManifestVersion:
        """Return the newest version after the checkpoint of one was dropped during a read; raise other errors.

        A newer version contains every history row that an earlier one had.
        """
        if not is_missing(error) or attempt == _READ_TRIES - 1:
            raise storage_failure(error, self.location, "the graph manifest cannot be read") from error
        newer = self.read()
        if newer.epoch != at.epoch:
            raise replaced("the graph manifest cannot be read") from error
        return newer

    # -- writing ---------------------------------------------------------------------------------

    def create(self, rows: pa.Table, stamp: str) -> ManifestVersion:
        """Write version 1. Exactly one of several creators succeeds; the others get `PublishConflict`."""
        try:
            self._checkpoints.create(rows, stamp)
        except CheckpointConflict as error:
            raise PublishConflict from error
        self._log.create()
        return self.read()

    @timed("storage", "manifest_publish")
    def publish(self, base: ManifestVersion, *changes: Change) -> ManifestVersion:
        """Make the versions after exactly `base` by one entry, or raise `PublishConflict`.

        Any other error leaves the outcome open: the entry may have been created. The caller must read the manifest to
        find out.
        """
        look = self._look if self._look is not None and self._look.version is base else None
        if len(base.lines) >= _RECORDS_MAX:
            base = self._checkpointed(base)
        if not base.checkpoint.has_position:
            # The log of an upgraded graph begins at a checkpoint that does not depend on the version of the table.
            base = self._checkpointed(base)
            if not base.checkpoint.has_position:
                raise PublishConflict
        records = [
            new_record(base.version + number, change.put, change.drop, change.add, change.rewrite)
            for number, change in enumerate(changes, 1)
        ]
        lines = (*base.lines, *map(encode_record, records))
        name = base.next_entry
        data = encode_entry(base.base, base.base_id, base.stamp, lines, self.location.store_id)
        at = _now()
        if base.entry is None:
            self._log.create()
        reach("publish.before_commit")
        if base.entry is not None and self._log.identity(base.entry) != base.file_identity:
            raise PublishConflict
        if not self._log.append(name, data) and not self._is_own(name, records[-1]):
            raise PublishConflict
        self._check_not_reused(base, look)
        reach("publish.after_commit")
        made = version_after(base, records)
        published = replace(
            made, store=self.location.store_id, lines=lines, entry=name, file_identity=self._log.identity(name)
        )
        if published.purge_epoch != base.purge_epoch:
            published = replace(published, epoch=base.epoch + 1)
        self._keep(published, base)
        if _is_checkpoint_due(base.lines, lines):
            published = self._try_checkpoint(published)
        self._look = _Look(published, None, at, look.listed_at if look is not None else float("-inf"))
        return published

    def _is_own(self, name: str, record: LogRecord) -> bool:
        """Return True if an existing entry is ours: its response was lost, and the repetition was refused."""
        if self.location.path is not None:
            return False
        entry = self._log.read(name)
        return entry is not None and entry.id_of(record.version) == record.id

    def _check_not_reused(self, base: ManifestVersion, look: _Look | None) -> None:
        """Raise if the new entry may have the name of an entry that was removed; such an entry is never read.

        The caller looks for its commit in the newest version.
        """
        if self.location.path is not None:
            is_new = base.entry is not None and self._log.identity(base.entry) == base.file_identity
        else:
            is_new = look is not None and look.is_recent
        if is_new:
            return
        # Entries are removed only if a checkpoint contains them.
        try:
            newest = self._checkpoints.read().version
        except lance_errors() as error:
            raise storage_failure(error, self.location, "the commit cannot be published") from error
        if newest > base.version:
            raise StorageError(f"a publish was overtaken by at least {newest - base.version} others")

    def checkpoint(self, version: ManifestVersion) -> ManifestVersion:
        """Fold the log into the checkpoint; return the same version, stored differently."""
        for _ in range(_CHECKPOINT_TRIES):
            if version.lines:
                version = self._checkpointed(version)
        return version

    def _try_checkpoint(self, version: ManifestVersion) -> ManifestVersion:
        """Write a checkpoint. The version is published already: if this fails, the next publisher tries again."""
        try:
            return self._checkpointed(version)
        except (StorageError, Damaged):
            # A publish reports the error once `_RECORDS_MAX` versions are not in a checkpoint.
            return version

    def _checkpointed(self, version: ManifestVersion) -> ManifestVersion:
        """Return the version on a checkpoint of itself, or on a newer one that another process wrote."""
        try:
            if not self._checkpoints.is_newest(version.checkpoint):
                return self._on_newest(version)
            made = self._write_checkpoint(version)
        except CheckpointConflict:
            return self._on_newest(version)
        except lance_errors() as error:
            raise storage_failure(error, self.location, "the graph manifest cannot be read") from error
        self._log.trim(made.checkpoint.version - _KEEP_ENTRIES)
        self._keep(made, version)
        return made

    def _on_newest(self, version: ManifestVersion) -> ManifestVersion:
        """Return the version on the newest checkpoint; unchanged if it is not the newest version any more."""
        try:
            found = self._newest(version.epoch)
        except lance_errors() as error:
            raise storage_failure(error, self.location, "the graph manifest cannot be read") from error
        if found is None or found.id != version.id:
            return version
        self._keep(found, version)
        return found

    def _write_checkpoint(self, version: ManifestVersion, *, anew: bool = False) -> ManifestVersion:
        base = version.checkpoint
        like = base.state.schema
        gone = pa.array(list(version.changed), pa.utf8())
        kept = base.state.filter(pc.invert(pc.is_in(base.state["object_id"], value_set=gone)))
        put = [row for row in version.changed.values() if row is not None]
        if self._stored_form is not None:
            put = self._stored_form(version, put)
        state = pa.concat_tables([kept, to_rows(put).cast(like)])
        added = to_rows(version.added.values())
        rewritten = version.rewritten if version.rewritten or anew else None
        made = self._checkpoints.write(base, state, added, version.version, version.id, rewritten)
        on_it = version_at_checkpoint(made, version.epoch)
        return replace(
            on_it,
            entry=version.entry,
            file_identity=version.file_identity,
            witness=version.witness,
            stamp=version.stamp,
        )

    def erase_past(self) -> tuple[int, int]:
        """Remove every stored form of earlier versions: of the checkpoint, and of the records of the log.

        The checkpoint is written again, without the rows that a purge rewrote, even if nothing changed since. Files
        that existed before and that it does not refer to belong to earlier checkpoints, or to one that can no longer be
        committed. Returns the numbers of removed files and of erased log entries.
        """
        for _ in range(_ERASE_TRIES):
            version = self.read()
            try:
                before = self._checkpoints.files()
                made = self._write_checkpoint(version, anew=True)
            except CheckpointConflict:
                continue
            except lance_errors() as error:
                raise storage_failure(error, self.location, "the graph manifest cannot be read") from error
            reach("purge.checkpoint")
            self._read_back(made)
            self._keep(made, version)
            gone = self._checkpoints.remove_unused(made.checkpoint, before)
            return gone, self._log.erase_before(made.version)
        raise StorageError(
            f"{_ERASE_TRIES} attempts to write the manifest lost races against other writers",
            hint="try again",
        )

    def _read_back(self, made: ManifestVersion) -> None:
        """Read a new checkpoint from the store; if it is incomplete, remove it and raise the error.

        The graph then opens at the earlier checkpoint, which the log still continues. An entry that was made since may
        continue the new checkpoint only, so then it stays.
        """
        try:
            self._checkpoints.read_back(made.checkpoint)
        except OmniGraphError:
            if self._log.names()[-1:] == [made.entry]:
                self._checkpoints.withdraw(made.checkpoint)
            raise

    def raise_stamp(self, base: ManifestVersion, stamp: str) -> ManifestVersion:
        """Commit a new format stamp on exactly `base`, or raise `PublishConflict`."""
        try:
            self._checkpoints.raise_stamp(base.checkpoint, stamp)
        except CheckpointConflict as error:
            # Another process may have upgraded the graph, which no entry of the log shows.
            self.read()
            raise PublishConflict from error
        self._log.create()
        return self.read()


def _is_same_folder(one: FolderStamp | None, other: FolderStamp | None) -> bool:
    """Return True if two stamps are those of one folder, or of none."""
    return one is other if one is None or other is None else one[0] == other[0]


def _is_checkpoint_due(before: Sequence[bytes], lines: Sequence[bytes]) -> bool:
    """Return True if the publisher that made the second list of records from the first writes a checkpoint."""
    if sum(map(len, lines)) >= _CHECKPOINT_BYTES:
        return True
    return len(lines) >= _CHECKPOINT_RECORDS and len(lines) // _CHECKPOINT_EVERY > len(before) // _CHECKPOINT_EVERY


def _newer(one: str | None, other: str | None) -> str | None:
    """Return the newer of two stamps."""
    both = [stamp for stamp in (one, other) if stamp is not None]
    return max(both, key=lambda stamp: int(stamp) if stamp.isdecimal() else -1, default=None)


def _now() -> tuple[float, float]:
    return time.monotonic(), time.time()
