"""Durability of local files across a power failure.

Lance writes files and links them into place but never syncs, so after a power failure a manifest may refer to an empty
data file. A commit has three barriers, each of which is complete before the next begins:

1. the files of all tables that it changes, with their folders, all at once, after `new_files` checked them;
2. the entry of the log;
3. the folder of the log. The response follows.

A power failure before the third leaves files that no version of the graph refers to, or a complete commit that was not
acknowledged. Intent files are not synced: they only help to find such files early, and a cleanup finds them as well.
Object stores do not require any of this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock

from omnigraph.storage.parallel import each_request

_AT_ONCE = 32
"""Files that are flushed at the same time."""


class _SyncedFolders:
    """Folders whose entry in their parent is on disk, as far as this process knows."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, int] = {}

    def parents_of(self, folders: Iterable[Path]) -> set[Path]:
        """Return the parents to flush: those of folders that this process has not seen before."""
        found = set()
        with self._lock:
            for folder in folders:
                inode = _inode(folder)
                if inode is not None and self._known.get(str(folder)) != inode:
                    found.add(folder.parent)
        return found

    def add(self, folders: Iterable[Path]) -> None:
        """Record that the parents of folders were flushed."""
        with self._lock:
            for folder in folders:
                inode = _inode(folder)
                if inode is not None:
                    self._known[str(folder)] = inode
            while len(self._known) > 4_096:
                del self._known[next(iter(self._known))]


_synced = _SyncedFolders()


def sync_files(paths: Iterable[Path]) -> None:
    """Flush files and their folders to disk, all at once; files that no longer exist are skipped.

    A file may be the first in its folder, so the parent of a folder is flushed too the first time this process writes
    to the folder.
    """
    files = list(dict.fromkeys(paths))
    folders = {path.parent for path in files}
    _sync_all([*files, *folders, *_synced.parents_of(folders)])
    _synced.add(folders)


def sync_folders_of(paths: Iterable[Path]) -> None:
    """Flush the folders of files whose content is already on disk, as after a rename."""
    folders = {path.parent for path in paths}
    _sync_all([*folders, *_synced.parents_of(folders)])
    _synced.add(folders)


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder."""
    _sync(folder)


def sync_folders_below(folder: Path) -> None:
    """Flush the entries of a folder and of every folder below it, so that no removed file appears again."""
    _sync_all([Path(base) for base, _, _ in os.walk(folder)])


def sync_tree(folder: Path) -> None:
    """Flush every file and folder below a folder, the folder itself, and its two parents, which may be new too."""
    found = [Path(base) / name for base, _, files in os.walk(folder) for name in (*files, "")]
    _sync_all(found)
    for above in (folder.parent, folder.parent.parent):
        with suppress(PermissionError):  # a folder that cannot be read was not created by this process
            _sync(above)


def _sync_all(paths: list[Path]) -> None:
    """Flush several files at once. The disk orders the work; the caller waits for the slowest one.

    Of very many files, each thread flushes some.
    """
    groups = [paths[start::_AT_ONCE] for start in range(min(len(paths), _AT_ONCE))]
    each_request(_sync_each, groups)


def _sync_each(paths: list[Path]) -> None:
    for path in paths:
        _sync(path)


def _sync(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return True


def _inode(folder: Path) -> int | None:
    try:
        return os.stat(folder).st_ino  # noqa: PTH116 (pathlib takes ten times as long as the call itself)
    except OSError:
        return None
