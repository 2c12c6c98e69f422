"""Writes the arrays of an entry of the disk cache."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.cache.entry_checks import check, checksum
from omnigraph.engine.cache.ranged_arrays import AnyArray
from omnigraph.engine.cache.shared_arrays import BlockSums, SharedArray

SCRATCH = ".scratch"
"""The folder of intermediate files in that of an unfinished entry."""


class EntryWriter:
    """An entry that is being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kinds: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        self._checksums: dict[str, int] = {}
        """The checksums of arrays that other processes wrote."""

    def put(self, name: str, array: AnyArray) -> None:
        """Write a complete array."""
        with self.rows(name, array.shape, array.dtype) as file:
            file.write(np.ascontiguousarray(array).tobytes())

    @contextmanager
    def rows(self, name: str, shape: tuple[int, ...], kind: np.dtype[Any]) -> Iterator[IO[bytes]]:
        """Open a file for the rows of an array that may be larger than memory."""
        with self._opened(name) as file:
            yield file
        self._kinds[name] = (kind, shape)

    @contextmanager
    def mapped(self, name: str, shape: tuple[int, ...], kind: np.dtype[Any]) -> Iterator[AnyArray]:
        """Map a new file for the values of an array that is written in any order."""
        size = int(np.prod(shape, dtype=object)) * kind.itemsize
        with self._opened(name) as file:
            file.truncate(size)
            array = np.memmap(self._path / name, kind, "r+", shape=shape) if size else np.zeros(shape, kind)
            yield array
            if isinstance(array, np.memmap):
                array.flush()
            file.seek(size)
        self._kinds[name] = (kind, shape)

    def share(self, name: str, kind: np.dtype[Any], length: int) -> SharedArray:
        """Allocate an array that other processes write."""
        self._kinds[name] = (kind, (length,))
        return SharedArray.allocate(self._path / name, kind, length)

    def finish(self, array: SharedArray, ranges: Iterable[BlockSums]) -> None:
        """Record the checksum of an array whose ranges were written by other processes."""
        self._checksums[array.path.name] = array.checksum(ranges)

    @contextmanager
    def streams(self, kinds: Mapping[str, np.dtype[Any]]) -> Iterator[dict[str, IO[bytes]]]:
        """Open a file for each of several arrays of one dimension; their lengths are those of the finished files."""
        with ExitStack() as stack:
            yield {name: stack.enter_context(self._opened(name)) for name in kinds}
        for name, kind in kinds.items():
            self._kinds[name] = (kind, ((self._path / name).stat().st_size // kind.itemsize,))

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        with (self._path / name).open("wb") as file:
            yield file
            if file.tell() >= tuning.current.disk_cache_large_bytes:
                file.flush()
                os.fsync(file.fileno())

    def read(self, name: str) -> AnyArray:
        """Map an array that was written."""
        return map_array(self._path / name, *self._kinds[name])

    def scratch(self) -> Path:
        """Return a folder for intermediate files, which are removed when the entry is complete."""
        folder = self._path / SCRATCH
        folder.mkdir()
        return folder

    def described(self) -> dict[str, Any]:
        """Return the type, shape, checksum and modification time of every array."""
        return {
            name: {
                "type": kind.str,
                "shape": list(shape),
                "checksum": self._checksums[name] if name in self._checksums else checksum(self.read(name)),
                "time": (self._path / name).stat().st_mtime_ns,
            }
            for name, (kind, shape) in self._kinds.items()
        }


def map_array(path: Path, kind: np.dtype[Any], shape: tuple[int, ...]) -> AnyArray:
    """Map an array of an entry; raise `BadEntry` if its file has another size."""
    wanted = int(np.prod(shape, dtype=object)) * kind.itemsize
    check(path.stat().st_size == wanted, f"'{path.name}' does not have {wanted} bytes")
    if not wanted:
        return np.zeros(shape, kind)
    # A plain array over the mapping.
    return np.asarray(np.memmap(path, kind, "r", shape=shape))
