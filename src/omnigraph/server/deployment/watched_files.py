"""The files that a server was built from, and whether one of them has changed since."""

from __future__ import annotations

from pathlib import Path

Stamp = tuple[int, int, int, int] | None
"""Time of change, size, inode and device of a file; None if it is missing."""


class WatchedFiles:
    """Files and their stamps. A file is noted before it is read, so that a later change is always seen."""

    def __init__(self) -> None:
        self._stamps: dict[Path, Stamp] = {}

    def note(self, *paths: Path | None) -> None:
        """Add files with their present stamps; a known file keeps its stamp."""
        for path in paths:
            if path is not None:
                self._stamps.setdefault(path, stamp_of(path))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, in the order in which they were noted."""
        return tuple(self._stamps)

    def changed(self) -> list[Path]:
        """Return the files whose stamps differ from the noted ones."""
        return [path for path, stamp in self._stamps.items() if stamp_of(path) != stamp]


def stamp_of(path: Path) -> Stamp:
    """Return a value that changes when a file is written, replaced, created or removed."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev
