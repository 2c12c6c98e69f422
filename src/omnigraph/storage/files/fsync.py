"""Durability of local files across a power failure.

Lance writes files and links them into place but never syncs, so after a power failure a manifest may refer to an empty
data file. Everything that a publish makes visible is synced before the publish; then the publish itself is synced.
Object stores do not require this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def sync_files(paths: Iterable[Path]) -> None:
    """Flush files to disk, then their folders; files that no longer exist are skipped.

    A file may be the first in its folder, so the parent of the folder is flushed too.
    """
    sync_folders_of(path for path in paths if _sync(path))


def sync_folders_of(paths: Iterable[Path]) -> None:
    """Flush the folders of files whose content is already on disk, as after a rename."""
    for folder in {above for path in paths for above in (path.parent, path.parent.parent)}:
        _sync(folder)


def sync_tree(folder: Path) -> None:
    """Flush every file and folder below a folder, the folder itself, and its two parents, which may be new too."""
    for base, _, files in os.walk(folder):
        for name in files:
            _sync(Path(base) / name)
        _sync(Path(base))
    for above in (folder.parent, folder.parent.parent):
        with suppress(PermissionError):  # a folder that cannot be read was not created by this process
            _sync(above)


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
