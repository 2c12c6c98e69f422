"""Advisory locks with which writers take turns. They save lost races; correctness does not depend on them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from omnigraph.storage.backoff import RANDOM
from omnigraph.storage.files.location import Location
from omnigraph.storage.lance.lance_errors import storage_failure

_PUBLISH_LOCK_NAME = "__publish_lock"
_RETRY_LOCK_NAME = "__retry_lock"
_PUBLISH_LOCK_S = 0.25
_RETRY_LOCK_S = 3.0


class PublishLocks:
    """The locks of one graph."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._guard = Lock()
        self._thread_locks: dict[str, Lock] = {}

    def publish_lock(self) -> AbstractContextManager[None]:
        """Return a lock with which publishers on one machine take turns; on an object store, those of this process."""
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
        path = self._location.path
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
            raise storage_failure(error, self._location, "the graph cannot be written") from error
