"""Advisory locks with which the writers of a machine take turns.

They save lost races; correctness does not depend on them. The lock files of a graph in a folder are in that folder.
Those of a graph on an object store are in a folder of the user for temporary files: they serve the processes of one
user on one machine.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from omnigraph.storage.backoff import RANDOM
from omnigraph.storage.files.location import Location
from omnigraph.storage.lance.lance_errors import storage_failure

_PUBLISH_LOCK_NAME = "__publish_lock"
_RETRY_LOCK_NAME = "__retry_lock"
_TABLE_LOCK_NAME = "__table_lock"
_PUBLISH_LOCK_S = 0.25
_RETRY_LOCK_S = 3.0
_FILES = 1_024
"""Lock files of all object stores. Two locks that share a file only wait for each other."""
_REMOTE = 8
"""The factor by which writers wait longer on an object store, whose requests take longer."""


class WriteLocks:
    """The locks of one graph. The value of each lock is True if another writer had it first."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._guard = Lock()
        self._thread_locks: dict[str, Lock] = {}

    def publish_lock(self) -> AbstractContextManager[bool]:
        """Return a lock with which publishers take turns."""
        return self._lock(_PUBLISH_LOCK_NAME, _PUBLISH_LOCK_S)

    def retry_lock(self, branch: str = "") -> AbstractContextManager[bool]:
        """Return a lock with which writers of a branch that lost a race retry one after the other.

        Without the lock, a slow writer among many could lose every race. A writer that has not lost a race does not
        wait here. In a folder, the lock serves all branches.
        """
        return self._lock(_RETRY_LOCK_NAME + ("" if self._location.is_local else branch), _RETRY_LOCK_S)

    def table_lock(self, folder: str) -> AbstractContextManager[bool]:
        """Return a lock with which writers of different branches number the versions of a table on an object store."""
        return nullcontext(False) if self._location.is_local else self._lock(_TABLE_LOCK_NAME + folder, _PUBLISH_LOCK_S)

    @contextmanager
    def _lock(self, name: str, patience_s: float) -> Iterator[bool]:
        """Acquire an advisory lock that affects order only, never correctness.

        The wait is therefore bounded: a process that is stopped while it holds the lock must not stop the others.
        """
        path, pause_s = self._location.path, 0.001
        if path is None:
            patience_s, pause_s = patience_s * _REMOTE, pause_s * _REMOTE
            path = self._user_folder
            digest = hashlib.sha256(f"{self._location.uri}\0{name}".encode()).digest()
            name = f"{int.from_bytes(digest[:4], 'big') % _FILES:04}"
        if path is None or sys.platform == "win32":
            with self._thread_lock(name, patience_s) as waited:
                yield waited
            return
        import fcntl  # noqa: PLC0415 (absent on Windows)

        waited = False
        with self._open_lock(path / name) as file:
            end = time.monotonic() + patience_s
            while time.monotonic() < end:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    waited = True
                    time.sleep(RANDOM.uniform(0.5, 2) * pause_s)
                except OSError:
                    # NFS and FUSE mounts may not support locks (ENOLCK, ENOSYS, EOPNOTSUPP): continue without one.
                    break
            yield waited

    @cached_property
    def _user_folder(self) -> Path | None:
        """The folder of the lock files of object stores; None if there is none that only this user can write."""
        if sys.platform == "win32":
            return None
        folder = Path(tempfile.gettempdir()) / f"omnigraph-locks-{os.getuid()}"
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
                return folder
        return None

    @contextmanager
    def _thread_lock(self, name: str, patience_s: float) -> Iterator[bool]:
        """Acquire the lock among the threads of this process; those of other processes race."""
        with self._guard:
            lock = self._thread_locks.setdefault(name, Lock())
        waited = not lock.acquire(blocking=False)
        acquired = not waited or lock.acquire(timeout=patience_s)
        try:
            yield waited
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
            raise storage_failure(error, self._location, "the graph cannot be written") from error
