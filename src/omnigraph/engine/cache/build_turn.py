"""Turns at building large structures: one process of a machine at a time.

The processes of a server need the same structures at the same time. One of them builds a structure and writes it to
the disk cache; the others wait and read it from there. The lock affects order only: after a bounded wait, and where
files cannot be locked, a process builds the structure itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from omnigraph.engine import tuning
from omnigraph.engine.exec.cancellation import add_note, checkpoint

LOCK = ".building"
"""The lock file in the folder of the disk cache."""


class _Turns(threading.local):
    """The turns of this thread."""

    def __init__(self) -> None:
        self.folders: set[Path] = set()


_turns = _Turns()


@contextmanager
def build_turn(folder: Path | None) -> Iterator[bool]:
    """Hold the turn of a folder. Yields True if there are turns: the structure may exist by now.

    A structure that is built from another one takes the turn of its thread again.
    """
    if folder in _turns.folders:
        # A lock belongs to an open file: a second one would wait for the first.
        yield True
        return
    file = _open(folder)
    if folder is None or file is None:
        yield False
        return
    with file:
        _wait(file)
        _turns.folders.add(folder)
        try:
            yield True
        finally:
            _turns.folders.discard(folder)


def _open(folder: Path | None) -> BinaryIO | None:
    if folder is None:
        return None
    try:
        folder.mkdir(exist_ok=True)
        return (folder / LOCK).open("ab")
    except OSError:
        return None


def _wait(file: BinaryIO) -> None:
    """Lock a file, or give up. Closing the file ends the lock."""
    try:
        import fcntl  # noqa: PLC0415 (absent on Windows, where every process builds for itself)
    except ImportError:
        return
    end = time.monotonic() + tuning.current.build_wait_s
    while time.monotonic() < end:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            checkpoint()
            time.sleep(tuning.current.poll_s)
        except OSError:
            # NFS and FUSE mounts may not support locks (ENOLCK, ENOSYS, EOPNOTSUPP).
            return
    add_note("another process builds too long")
