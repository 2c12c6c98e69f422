"""The cache of compiled kernels: one object file per source, compiler and processor, in the cache folder of the user.

An object file is machine code that the process executes, so a file is used only if it and its folder belong to the
user and no other user can write to them. A file is written under a temporary name and renamed: readers see all of it or
nothing. The name contains a digest of everything that the code depends on, so versions and machines that share a home
folder do not affect each other. The cache is never inside a graph.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from omnigraph.engine.cache import user_folder
from omnigraph.engine.cache.user_folder import is_private, is_safe

_SUFFIX = ".object"
_KEPT_S = 60 * 86_400
"""Files that were not used for this time are removed when another one is written."""

_TOUCHED_S = 86_400
_BUILD_S = 120


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of compiled kernels; None if there is none."""
    return user_folder.cache_folder(environ, "kernels")


def object_name() -> str | None:
    """Return the name of the object file of this source, compiler and processor; None if there is no compiler."""
    digest = hashlib.sha256(f"{sys.platform} {platform.machine()} {_processor()}".encode())
    for package in ("numba", "llvmlite"):
        found = find_spec(package)
        if found is None or found.origin is None:
            return None
        digest.update(_content(Path(found.origin).with_name("_version.py")))
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + _content(source))
    return digest.hexdigest()[:32] + _SUFFIX


def _processor() -> str:
    """Return the model and the instruction sets of the processor, as far as the platform tells them cheaply."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            first = file.read(8192).partition("\n\n")[0]
    except OSError:
        return platform.processor()
    names = ("model name", "flags", "Features", "CPU implementer", "CPU part", "isa")
    return "\n".join(line for line in first.splitlines() if line.startswith(names))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def read_object(folder: Path, name: str) -> bytes | None:
    """Return the content of an object file; None if there is none that may be executed."""
    path = folder / name
    if not is_private(folder):
        return None
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            if not is_safe(state):
                return None
            data = file.read()
    except OSError:
        return None
    if time.time() - state.st_mtime > _TOUCHED_S:
        with suppress(OSError):
            os.utime(path)
    return data


def has_object(folder: Path, name: str) -> bool:
    """True if there is an object file in a private folder."""
    return (folder / name).is_file() and is_private(folder)


def write_object(folder: Path, name: str, data: bytes) -> None:
    """Write an object file, and remove files that were not used for a long time; raises `OSError`."""
    handle, temporary = tempfile.mkstemp(prefix=".new-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(folder / name)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
    for path in (*folder.glob(f"*{_SUFFIX}"), *folder.glob(".new-*"), *folder.glob("*.lock")):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT_S:
                path.unlink()


@contextmanager
def building(folder: Path, name: str) -> Iterator[None]:
    """Hold the turn to build an object file; waits while another process builds it, for a bounded time."""
    try:
        import fcntl  # noqa: PLC0415 (absent on Windows, where every process builds for itself)
    except ImportError:
        yield
        return
    with (folder / f"{name}.lock").open("ab") as file:
        end = time.monotonic() + _BUILD_S
        while time.monotonic() < end:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.1)
            except OSError:
                # A mount without locks: two processes may build the same file, and one replaces the other.
                break
        yield
