"""The writer of the audit log."""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import structs

from omnigraph.errors import StorageError, printable
from omnigraph.server.audit.audit_reader import AuditFilter, AuditReader, read
from omnigraph.server.audit.chain_files import (
    HeldChain,
    Mark,
    file_path,
    files_of,
    last_record,
    line_hash,
    sync_folder,
)
from omnigraph.wire.audit import AuditRecord
from omnigraph.wire.document import plain

if TYPE_CHECKING:
    from omnigraph.operations.file_copies import FileCopies
    from omnigraph.server.audit.file_copier import FileCopier

BYTES_MAX = 64 << 20
"""Size at which a file is closed and the next one begins."""
TEXT_MAX = 1024
"""Longer texts of a record are cut: names of a request are not bounded."""
RESUMED = "audit_resume"
"""Action of the record that ends a period in which records could not be written; its `rows` counts the lost ones."""

_log = logging.getLogger(__name__)


class AuditLog:
    """Appends records to one chain of a folder. Threads may share it; each process has its own.

    A durable record is on disk when `record` returns. Threads that write at the same time share one flush. Without
    `required`, a failure is logged once and the record is lost; with it, `record` raises a `StorageError`. Closed files
    are copied to `copies` in the background; a failing copy fails no request.
    """

    def __init__(
        self,
        folder: Path,
        *,
        required: bool = False,
        reads: Literal["none", "all"] = "none",
        bytes_max: int = BYTES_MAX,
        copies: FileCopies | None = None,
    ) -> None:
        self.folder = folder
        self.required = required
        self.reads = reads
        self._bytes_max = bytes_max
        self._flush = threading.Lock()
        """Held during a flush and a change of file; taken before `_lock`."""
        self._lock = threading.Lock()
        self._file: _OpenFile | None = None
        self._closed = False
        self._failing = threading.Lock()
        """Guards `_lost`."""
        self._lost = 0
        """Number of records lost since the last one that was written."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._chain, self._last = _resume(folder)
        except OSError as error:
            raise _unavailable(error, folder) from error
        self._durable = 0
        """Number of the last record that is on disk."""
        self._copier = _copier(folder, self._chain.chain, copies, self._path) if copies is not None else None

    def record(self, record: AuditRecord, *, durable: bool = True) -> None:
        """Append a record; a durable one is flushed to disk before the call returns.

        The log sets `at`, `seq` and `prev`. Records of writes and denials are durable.
        """
        try:
            place = self._append(record)
            if durable:
                self._make_durable(*place)
        except OSError as error:
            self._fail(error)
        else:
            if self._lost:
                self._resume_records()

    def check(self) -> None:
        """Raise a `StorageError` if the log is required and still fails; called before a write is executed."""
        if self.required and self._lost:
            self._resume_records()

    def read(
        self, wanted: AuditFilter | None = None, *, after: str | None = None, limit: int | None = None
    ) -> AuditReader:
        """Return the records of all chains of the folder, oldest first."""
        return read(self.folder, wanted, after=after, limit=limit)

    def close(self) -> None:
        """Flush and close the file, copy it, and release the chain."""
        with self._flush, self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                self._finish_file()
            except OSError as error:
                _log.error("the audit log '%s' cannot be flushed at its end: %s", self.folder, error.strerror)
        if self._copier is not None:
            self._copier.stop()
        self._chain.release()

    def _path(self) -> Path | None:
        with self._lock:
            return self._file.path if self._file is not None else None

    def _append(self, record: AuditRecord) -> tuple[_OpenFile, int]:
        with self._lock:
            now = datetime.now(UTC)
            if self._file is not None and self._file.takes(now, self._bytes_max):
                return self._write(self._file, record, now)
        with self._flush, self._lock:
            if self._closed:
                raise OSError(errno.EBADF, "it is closed")
            now = datetime.now(UTC)
            if self._file is None or not self._file.takes(now, self._bytes_max):
                self._finish_file()
                self._file = _OpenFile.create(self.folder, self._chain.chain, now)
            return self._write(self._file, record, now)

    def _write(self, file: _OpenFile, record: AuditRecord, now: datetime) -> tuple[_OpenFile, int]:
        seq = self._last.seq + 1
        at = now.isoformat(timespec="microseconds")[:-6] + "Z"
        line = _line(structs.replace(record, at=at, seq=seq, prev=self._last.hash))
        file.append(line + b"\n")
        self._last = Mark(seq, line_hash(line))
        return file, seq

    def _make_durable(self, file: _OpenFile, seq: int) -> None:
        with self._flush:
            if file.failure is not None:
                raise file.failure
            if self._durable >= seq:
                return
            with self._lock:
                last = self._last
            self._flush_file(file, last)

    def _flush_file(self, file: _OpenFile, last: Mark) -> None:
        file.sync()
        self._chain.write(last)
        self._durable = last.seq

    def _finish_file(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        try:
            if file.failure is None and self._durable < self._last.seq:
                self._flush_file(file, self._last)
        finally:
            file.close()
            if self._copier is not None:
                self._copier.notify()

    def _fail(self, error: OSError) -> None:
        with self._failing:
            self._lost += 1
            first = self._lost == 1
        if first:
            _log.error("the audit log '%s' cannot be written: %s", self.folder, error.strerror)
        if self.required:
            raise _unavailable(error) from error

    def _resume_records(self) -> None:
        """Append a record that counts the lost ones; if this fails too, they stay counted."""
        with self._failing:
            lost, self._lost = self._lost, 0
        if not lost:
            return
        record = AuditRecord(request_id="", route="", action=RESUMED, decision="allow", rows=lost, status=0, ms=0.0)
        try:
            self._make_durable(*self._append(record))
        except OSError as error:
            with self._failing:
                self._lost += lost
            if self.required:
                raise _unavailable(error) from error
            return
        _log.warning("the audit log '%s' is written again; records lost: %d", self.folder, lost)


class _OpenFile:
    """The file at the end of a chain."""

    def __init__(self, path: Path, handle: int, day: str) -> None:
        self.path = path
        self._handle = handle
        self._day = day
        self._size = 0
        self.failure: OSError | None = None
        """The error after which the content of the file is unknown; nothing more is written to it."""

    @classmethod
    def create(cls, folder: Path, chain: str, now: datetime) -> _OpenFile:
        files = files_of(folder)[chain]
        day = f"{now:%Y%m%d}"
        path = file_path(folder, day, chain, files[-1].number + 1 if files else 1)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        sync_folder(folder)
        return cls(path, handle, day)

    def takes(self, now: datetime, bytes_max: int) -> bool:
        """Return True if the next record belongs in this file."""
        return self.failure is None and self._size < bytes_max and self._day == f"{now:%Y%m%d}"

    def append(self, data: bytes) -> None:
        """Write a whole line or nothing."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._handle, rest) :]
        except OSError as error:
            self._undo(error)
            raise
        self._size += len(data)

    def _undo(self, error: OSError) -> None:
        try:
            os.ftruncate(self._handle, self._size)
        except OSError:
            self.failure = error

    def sync(self) -> None:
        """Flush the file to disk. After a failure the system may have dropped the data: the file is not used again."""
        try:
            os.fsync(self._handle)
        except OSError as error:
            self.failure = error
            raise

    def close(self) -> None:
        os.close(self._handle)


def _copier(folder: Path, chain: str, copies: FileCopies, open_file: Callable[[], Path | None]) -> FileCopier:
    from omnigraph.server.audit.file_copier import FileCopier  # noqa: PLC0415 (imports the store)

    return FileCopier(folder, chain, copies, open_file)


def _resume(folder: Path) -> tuple[HeldChain, Mark]:
    """Lock a chain and return the position at which it continues; a damaged chain is left as it is.

    If the files end before the head, lines are missing: the chain continues from the head, so that the gap shows.
    """
    for held in HeldChain.take(folder):
        head, last = held.read(), last_record(files_of(folder)[held.chain])
        if head is not None and last is not None:
            return held, last if last.seq > head.seq else head
        held.release()
    raise AssertionError("there is always a new chain")


def _line(record: AuditRecord) -> bytes:
    """Return a record as one line of ASCII, so that no character of a name can end the line or reach a terminal."""
    members = {name: _bounded(value) for name, value in plain(record).items()}
    return json.dumps(members, separators=(",", ":")).encode()


def _bounded(value: object) -> object:
    if isinstance(value, str):
        value = printable(value)
        return value if len(value) <= TEXT_MAX else value[:TEXT_MAX] + "…"
    return [_bounded(item) for item in value] if isinstance(value, list) else value


def _unavailable(error: OSError, folder: Path | None = None) -> StorageError:
    """Return the error of a log that fails. An answer to a request does not name the folder."""
    where = f" '{folder}'" if folder is not None else ""
    return StorageError(
        f"the audit log{where} cannot be written: {error.strerror}",
        code="audit_unavailable",
        hint="repair the audit disk or free space on it; requests that must be recorded fail until then",
    )
