"""Completeness of new local files.

Lance does not report an error of the last write to a local file: a full or failing disk leaves a truncated file, and
the commit succeeds. Every new file is therefore checked before something refers to it: its length is compared with the
length that its version records and with the length that its footer implies. Then it is flushed to disk (`fsync`).

An object store creates an object completely or not at all, so its objects are not checked.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path

from omnigraph.errors import Hint, StorageError
from omnigraph.storage.files.fsync import sync_files, sync_folder, sync_tree

_MAGIC = b"LANC"
_DATA_FOOTER = struct.Struct("<QQQIIHH4s")
"""Three positions of the metadata, the last of which is that of the buffer table; numbers of buffers and columns;
major and minor version; magic.
"""
_BUFFER_BYTES = 16
"""The size of an entry of the buffer table, which precedes the footer."""
_MANIFEST_FOOTER = struct.Struct("<QHH4s")
"""The position of the message, major and minor version, magic."""
_LENGTH_BYTES = 4
"""The size of the length before the message."""


def finish_files(files: Mapping[Path, int | None], *, sync: bool) -> None:
    """Check that new files are complete and, with `sync`, flush them and their folders to disk.

    The value of a file is its recorded length, if there is one. Files that no longer exist are skipped. Nothing may
    refer to the files yet.
    """
    for path, length in files.items():
        check_file(path, length)
    if sync:
        sync_files(files)


def finish_tree(folder: Path, *, sync: bool) -> None:
    """Check every file below a new folder and, with `sync`, flush them and the folders to disk."""
    for base, _, names in os.walk(folder):
        for name in names:
            check_file(Path(base, name))
    if sync:
        sync_tree(folder)


def check_file(path: Path, length: int | None = None) -> None:
    """Raise `StorageError` if a new file does not have a length, or not the one that its footer implies.

    An incomplete manifest of a version is removed: with it, Lance could not write the table again.
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        size = os.fstat(handle).st_size
        is_complete = length in (None, size) and _has_footer(handle, size, path.suffix)
    finally:
        os.close(handle)
    if is_complete:
        return
    if path.suffix == ".manifest":
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
    raise incomplete_file(path, size, length)


def incomplete_file(path: Path, size: int, length: int | None) -> StorageError:
    """Return the error for a new file that is shorter than what was written to it."""
    expected = "its end is missing" if length is None or length == size else f"{length} were written"
    return StorageError(
        f"the new file '{path}' is incomplete: it has {size} bytes, and {expected}",
        code="incomplete_file",
        hint=Hint(
            "nothing was published; the disk is full or fails: free some space or check the disk, and try again; "
            "cleanup() removes what was written",
            cli="nothing was published; the disk is full or fails: free some space or check the disk, and try again; "
            "'omnigraph cleanup' removes what was written",
        ),
    )


def _has_footer(handle: int, size: int, suffix: str) -> bool:
    """Return True if the footer of a Lance file is at its end; other files have none."""
    if suffix == ".lance":
        end = _read_end(handle, size, _DATA_FOOTER)
        return end is not None and end[2] + end[3] * _BUFFER_BYTES + _DATA_FOOTER.size == size
    if suffix == ".manifest":
        end = _read_end(handle, size, _MANIFEST_FOOTER)
        if end is None or end[0] >= size:
            return False
        length = int.from_bytes(os.pread(handle, _LENGTH_BYTES, end[0]), "little")
        return end[0] + _LENGTH_BYTES + length + _MANIFEST_FOOTER.size == size
    return True


def _read_end(handle: int, size: int, form: struct.Struct) -> tuple[int, ...] | None:
    """Return the fields of a footer before its magic; None if the file does not end with one."""
    data = os.pread(handle, form.size, size - form.size) if size >= form.size else b""
    return form.unpack(data)[:-1] if data.endswith(_MAGIC) else None
