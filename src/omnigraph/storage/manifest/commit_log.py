"""The commit log: one small object per publish, created by exactly one publisher.

An entry contains all records since the last checkpoint, so the newest entry and the checkpoint are enough to read a
graph. A record is one manifest version: state rows that it replaces, ids that it removes, and history rows that it
adds. An entry is named after its first new version: the one after the version that its publisher replaced. Publishers
of the same version therefore compete for one name, and the store gives it to one of them.

An entry is a header and records as JSON lines, compressed with zstd, with their length and CRC-32 in front. Consecutive
records are similar, so an entry of 64 records is a few kilobytes.

Entries that a checkpoint covers are removed some time later. Names are not used again:

- In a folder, entries are removed in ascending order. A publisher whose base entry is still the same file after it
  created its own has therefore not used the name of a removed entry.
- On an object store, an entry is removed only if it is `TRIM_AGE_S` older than the newest one. A publisher or reader
  whose last look is older than `LOOK_AGE_S` does not trust that a name is unused: a reader lists the entries, and a
  publisher reads the checkpoint.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from uuid import uuid4

import msgspec
import pyarrow as pa

from omnigraph.decodable import decodable
from omnigraph.errors import Damaged, StorageError
from omnigraph.fast_dataclass import dataclass
from omnigraph.observer import timed
from omnigraph.storage.files.fsync import sync_folder
from omnigraph.storage.files.layout import LOG
from omnigraph.storage.files.local_objects import LocalObjects
from omnigraph.storage.files.location import Location
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.files.objects import object_store
from omnigraph.storage.lance.lance_errors import storage_failure
from omnigraph.storage.manifest.manifest_schema import Row

TRIM_AGE_S = 60.0
LOOK_AGE_S = 15.0
_CODEC = pa.Codec("zstd", compression_level=1)
_MAGIC = b"OGLOG1\n"
_SUFFIX = ".log"
_ENTRY_BYTES_MAX = 1 << 30
_SIZE_BYTES = 8
_CHECKSUM_BYTES = 4
_ERASED = "erased"
"""The ids of the versions that an erased entry names."""

FileIdentity = tuple[int, ...]
"""Identifies a file: device, inode, size, times of modification and change."""
FolderStamp = tuple[int, int, int]
"""The inode of a folder and its times of modification and change."""


class LogRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One manifest version as a change of the version before it."""

    version: int
    id: str
    """Identifies the version; the number alone does not, because a restored graph uses numbers again."""
    put: list[Row] = []
    drop: list[str] = []
    add: list[Row] = []
    rewrite: list[Row] = []
    """History rows that take the place of those with the same ids."""


class _Header(msgspec.Struct, frozen=True):
    """The version that the first record of an entry follows, the storage format of the graph, and its object store."""

    base: int
    base_id: str
    stamp: str | None
    store: str | None = None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """The records since a checkpoint."""

    base: int
    base_id: str
    stamp: str | None
    lines: tuple[bytes, ...]
    """The encoded records in ascending order."""
    records: tuple[LogRecord, ...]
    store: str | None = None
    """The object store that the publisher had found to honour conditional writes."""

    @property
    def version(self) -> int:
        """The version that the entry leads to."""
        return self.records[-1].version

    def id_of(self, version: int) -> str | None:
        """Return the id of a version that the entry names; None if it does not."""
        if version == self.base:
            return self.base_id
        position = version - self.base - 1
        return self.records[position].id if 0 <= position < len(self.records) else None


def new_record(
    version: int, put: Sequence[Row], drop: Sequence[str], add: Sequence[Row], rewrite: Sequence[Row] = ()
) -> LogRecord:
    """Return a record with a new id."""
    rows = (list(map(_compact, some)) for some in (add, rewrite))
    return LogRecord(version, uuid4().hex, list(map(_compact, put)), list(drop), *rows)


def _compact(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


def encode_record(record: LogRecord) -> bytes:
    """Return a record as one line."""
    return msgspec.json.encode(record, enc_hook=_plain_text)


def _plain_text(value: object) -> str:
    """Return the text of a value of a text type, for example a table key."""
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"a manifest row cannot contain a value of type {type(value).__name__}")


def encode_entry(base: int, base_id: str, stamp: str | None, lines: Sequence[bytes], store: str | None = None) -> bytes:
    """Return the content of an entry."""
    text = b"\n".join([msgspec.json.encode(_Header(base, base_id, stamp, store)), *lines])
    packed: bytes = _CODEC.compress(text, asbytes=True)
    size = len(text).to_bytes(_SIZE_BYTES, "little")
    checksum = zlib.crc32(text).to_bytes(_CHECKSUM_BYTES, "little")
    return b"".join([_MAGIC, size, checksum, packed])


def decode_entry(name: str, data: bytes) -> LogEntry:
    """Read an entry; raise `Damaged` with its name if it is not one."""
    try:
        first, *lines = _text_of(data).split(b"\n")
        header = msgspec.json.decode(first, type=decodable(_Header))
        records = tuple(msgspec.json.decode(line, type=decodable(LogRecord)) for line in lines)
        if [record.version for record in records] != list(range(header.base + 1, header.base + 1 + len(records))):
            raise ValueError("its versions are not consecutive")
        if not records:
            raise ValueError("it has no records")
    except (ValueError, msgspec.MsgspecError, pa.ArrowException, OSError) as error:
        raise _damaged(name, error) from error
    return LogEntry(header.base, header.base_id, header.stamp, tuple(lines), records, header.store)


def entry_text(name: str, data: bytes) -> bytes:
    """Return the text of an entry; raise `Damaged` with its name if it is not one."""
    try:
        return _text_of(data)
    except (ValueError, pa.ArrowException, OSError) as error:
        raise _damaged(name, error) from error


def _text_of(data: bytes) -> bytes:
    """Return the text of an entry after a check of its length and checksum."""
    if not data.startswith(_MAGIC):
        raise ValueError("it does not begin like a log entry")
    checksum_at = len(_MAGIC) + _SIZE_BYTES
    start = checksum_at + _CHECKSUM_BYTES
    size = int.from_bytes(data[len(_MAGIC) : checksum_at], "little")
    if size > _ENTRY_BYTES_MAX:
        raise ValueError("its size is not plausible")
    text: bytes = _CODEC.decompress(data[start:], decompressed_size=size, asbytes=True)
    if zlib.crc32(text) != int.from_bytes(data[checksum_at:start], "little"):
        raise ValueError("its checksum is wrong")
    return text


def _damaged(name: str, error: Exception) -> Damaged:
    return Damaged(
        f"the log entry '{name}' is damaged: {error}",
        code="damaged_manifest",
        hint="restore the graph's folder from a copy",
    )


def entry_name(first_version: int) -> str:
    """Return the name of the entry whose first new version is given."""
    return f"{LOG}/{first_version:020}{_SUFFIX}"


def first_version_of(name: str) -> int | None:
    """Return the first new version of an entry; None if the object is not an entry."""
    number = name.rpartition("/")[2].removesuffix(_SUFFIX)
    return int(number) if name.endswith(_SUFFIX) and len(number) == 20 and number.isdecimal() else None


class CommitLog:
    """Reads, creates and removes entries."""

    def __init__(self, location: Location, *, sync: bool) -> None:
        self.location = location
        self.sync = sync
        self._objects: ObjectStore = object_store(location, sync=False)
        self._folder = str(location.path / LOG) if location.path is not None else None

    def create(self) -> None:
        """Create the folder of the log, so that a publish does not sync the folder of the graph."""
        if self.location.path is None:
            return
        folder = self.location.path / LOG
        try:
            folder.mkdir(exist_ok=True)
            if self.sync:
                sync_folder(folder.parent)
        except OSError as error:
            raise storage_failure(error, self.location, "the log of the graph cannot be created") from error

    def names(self) -> list[str]:
        """Return the names of all entries, oldest first."""
        return [name for name in self._objects.list(LOG) if first_version_of(name) is not None]

    def read(self, name: str) -> LogEntry | None:
        """Return an entry; None if it does not exist."""
        data = self._objects.read(name)
        return decode_entry(name, data) if data is not None else None

    @timed("storage", "log_append")
    def append(self, name: str, data: bytes) -> bool:
        """Create an entry unless it exists; return True if it was created. With `sync`, it is on disk then."""
        if isinstance(self._objects, LocalObjects):
            return self._objects.create_whole(name, data, sync=self.sync)
        return self._objects.write_if_absent(name, data)

    def trim(self, covered: int) -> None:
        """Remove entries that lead to versions up to `covered`, oldest first, except those that may be in use.

        On an object store, entries that are not `TRIM_AGE_S` older than the newest one are kept.
        """
        if self._folder is None:
            covered_names = self._aged(covered)
        else:
            covered_names = [name for name in self.names()[:-1] if (first_version_of(name) or 0) <= covered]
        # If one cannot be removed, those after it stay too. The next checkpoint tries again.
        with suppress(StorageError):
            self._objects.delete_all(covered_names)

    def _aged(self, covered: int) -> list[str]:
        """Return the entries up to a version that are `TRIM_AGE_S` older than the newest one, by the store's times."""
        listed = [(name, at) for name, at in self._objects.list_times(LOG) if first_version_of(name) is not None]
        newest = max((at for _, at in listed), default=None)
        return [
            name
            for name, at in listed[:-1]
            if newest is not None
            and (first_version_of(name) or 0) <= covered
            and (newest - at).total_seconds() >= TRIM_AGE_S
        ]

    def erase_before(self, version: int) -> int:
        """Replace the entries before the one of a version by empty ones; return their number.

        The names stay in use, so that no publisher or reader that is behind takes one for the next version. An empty
        entry continues no version: a reader that finds it reads the checkpoint.
        """
        objects = object_store(self.location, sync=self.sync)
        names = [name for name in self.names()[:-1] if (first_version_of(name) or 0) < version]
        for name in names:
            first = first_version_of(name) or 1
            record = encode_record(LogRecord(first, _ERASED))
            objects.write(name, encode_entry(first - 1, _ERASED, None, [record]))
        return len(names)

    # -- quick checks in a folder ----------------------------------------------------------------

    def folder_stamp(self) -> FolderStamp | None:
        """Return what changes if an entry is created or removed; None on an object store or without a log.

        Two changes within the resolution of the clock of the file system have the same times.
        """
        if self._folder is None:
            return None
        try:
            found = os.stat(self._folder)  # noqa: PTH116 (pathlib takes ten times as long as the call itself)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_ctime_ns

    def has(self, name: str) -> bool:
        """Return True if the file of an entry exists."""
        return os.access(f"{self.location.path}/{name}", os.F_OK)

    def identity(self, name: str) -> FileIdentity | None:
        """Return the identity of the file of an entry; None if it does not exist or on an object store."""
        if self._folder is None:
            return None
        try:
            found = os.stat(f"{self.location.path}/{name}")  # noqa: PTH116 (as above)
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
