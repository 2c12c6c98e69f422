"""The cache folder of the user: compiled kernels, and derived structures of graphs on object stores.

The content of the folder is executed or used without bounds checks, so it is used only if it belongs to the user and no
other user can write to it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

VARIABLE = "OMNIGRAPH_CACHE_DIR"
"""The variable that names the folder; `off` keeps nothing on disk."""

_GRAPHS = "graphs"
_KEPT_S = 30 * 86_400
"""The structures of a graph that was not opened for this time are removed when another graph is opened."""
_TOUCHED_S = 86_400
_PURGES = ".purges"
"""The file with the number of purges of a graph when its structures were made."""


def cache_folder(environ: Mapping[str, str], name: str) -> Path | None:
    """Return a folder below the cache folder of the user; None if there is none."""
    named = environ.get(VARIABLE, "").strip()
    if named:
        return None if named.lower() == "off" else Path(named).expanduser().absolute() / name
    base = _platform_folder(environ)
    return base / "omnigraph" / name if base is not None else None


def graph_folder(environ: Mapping[str, str], uri: str) -> Path | None:
    """Return the folder of the derived structures of a graph on an object store; None if there is none."""
    base = cache_folder(environ, _GRAPHS)
    if base is None or not make_folder(base):
        return None
    folder = base / hashlib.sha256(uri.encode()).hexdigest()[:32]
    now = time.time()
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        if now - folder.stat().st_mtime > _TOUCHED_S:
            os.utime(folder)
            _remove_unused(base, now - _KEPT_S)
    return folder if is_private(folder) else None


def forget_purged(folder: Path, purges: int) -> None:
    """Remove the structures of a graph that were made before its newest purge; `purges` is the number of purges."""
    marker = folder / _PURGES
    with suppress(OSError, ValueError):
        if purges == (int(marker.read_text()) if marker.exists() else 0):
            return
    for path in folder.iterdir():
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    with suppress(OSError):
        marker.write_text(str(purges))


def _remove_unused(base: Path, before: float) -> None:
    for path in base.iterdir():
        with suppress(OSError):
            if path.stat().st_mtime < before:
                shutil.rmtree(path, ignore_errors=True)


def _platform_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of the platform for caches of the user."""
    if sys.platform == "win32":
        local = environ.get("LOCALAPPDATA", "").strip()
        return Path(local) if local else None
    home = environ.get("HOME", "").strip()
    xdg = environ.get("XDG_CACHE_HOME", "").strip()
    if not home or not _is_owned(Path(home)):
        # Under sudo, HOME can be that of another user, who could not write to our folder later.
        return None
    if sys.platform == "darwin":
        return Path(home) / "Library" / "Caches"
    return Path(xdg) if xdg and Path(xdg).is_absolute() else Path(home) / ".cache"


def make_folder(folder: Path) -> bool:
    """Make the folder if it does not exist; return True if it is private and writable."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return is_private(folder) and os.access(folder, os.W_OK)


def is_private(folder: Path) -> bool:
    """True if a folder belongs to the user and no other user can write to it."""
    try:
        return is_safe(folder.stat())
    except OSError:
        return False


def is_safe(state: os.stat_result) -> bool:
    """True if a file or folder belongs to the user and no other user can write to it."""
    if sys.platform == "win32":
        return True
    return state.st_uid == os.geteuid() and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_owned(path: Path) -> bool:
    try:
        return path.stat().st_uid == os.geteuid()
    except OSError:
        return False
