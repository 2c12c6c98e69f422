"""Makes local files survive a power cut.

Lance writes files and links them into place but never syncs, so a machine that loses power may come
back with a manifest that names an empty data file. Before a publish, everything it will make visible is
synced; then the publish itself. Object stores need none of this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def sync_files(paths: Iterable[Path]) -> None:
    """Flush files to the disk, then the folders that hold them; a file that is gone is skipped.

    A file may be the first in its folder, so the folder above is flushed too.
    """
    sync_folders_of(path for path in paths if _sync(path))


def sync_folders_of(paths: Iterable[Path]) -> None:
    """Flush the folders of files that are on the disk themselves, as after a rename."""
    for folder in {above for path in paths for above in (path.parent, path.parent.parent)}:
        _sync(folder)


def sync_tree(folder: Path) -> None:
    """Flush every file below a folder, all folders on the way, and the two above, which may be as new."""
    for base, _, files in os.walk(folder):
        for name in files:
            _sync(Path(base) / name)
        _sync(Path(base))
    for above in (folder.parent, folder.parent.parent):
        with suppress(PermissionError):  # what may not be read was not made by us
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
