"""Replacement of a file: the earlier content stays in its place until the new content is complete on disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast
from uuid import uuid4

TEMPORARY = ".writing-"
"""Prefix of the names of files that are not complete yet."""


@contextmanager
def replacement(target: Path, *, mode: int = 0o666, sync: bool = True) -> Iterator[BinaryIO]:
    """Yield a new file that takes the place of `target` at the end of the block.

    It is written under a temporary name in the same folder and flushed to disk, its length is compared with what was
    written, and it is renamed; then the folder is flushed. If a step fails, `target` is unchanged. Only `mode` and the
    umask determine the permissions of the new file. Without `sync`, nothing is flushed.
    """
    temporary = target.with_name(f"{TEMPORARY}{uuid4().hex}")
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield cast(BinaryIO, file)
            file.flush()
            if sync:
                os.fsync(handle)
            if os.fstat(handle).st_size != file.tell():
                raise OSError(errno.EIO, "the end of the file is missing after it was written")
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        _flush_folder(target.parent)


@contextmanager
def output(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces the one that a user named; links are followed, and a pipe or device is written."""
    target = path.resolve()
    if target.exists() and not target.is_file():
        with target.open("wb") as device:
            yield device
        return
    with replacement(target) as file:
        yield file


def replace_file(target: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Replace the content of a file, which is read back before it takes the place of the earlier one."""
    with replacement(target, mode=mode) as file:
        file.write(data)
        file.seek(0)
        if file.read() != data:
            raise OSError(errno.EIO, "the file differs from what was written")


def keep_permissions(target: Path, file: BinaryIO) -> None:
    """Give a new file the permissions of the present one, if there is one."""
    if target.exists() and hasattr(os, "fchmod"):
        os.fchmod(file.fileno(), target.stat().st_mode & 0o7777)


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
