"""Arrays of an entry of the disk cache that several processes write.

One process allocates the file, and the others write ranges of it. A range begins with a block of the checksum and ends
with one, or with the array. So the checksum is computed where the values are written, no page of the file has two
writers, and writing a range again changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from omnigraph.engine.cache import entry_checks
from omnigraph.engine.cache.ranged_arrays import AnyArray
from omnigraph.fast_dataclass import dataclass


@dataclass(frozen=True)
class BlockSums:
    """The part of a checksum that a range of an array contributes."""

    sums: entry_checks.Sums
    rest: bytes

    @classmethod
    def of(cls, values: AnyArray) -> BlockSums:
        """Return the sums of values that begin with a block."""
        raw = values.view(np.uint8)
        return cls(entry_checks.block_sums(raw), entry_checks.rest_of(raw))


@dataclass(frozen=True)
class SharedArray:
    """An array of numbers of one dimension, by the path of its file."""

    path: Path
    kind: np.dtype[Any]
    length: int

    @classmethod
    def allocate(cls, path: Path, kind: np.dtype[Any], length: int) -> SharedArray:
        """Make the file and reserve its space. Raises `OSError` if the disk has too little."""
        size = length * kind.itemsize
        with path.open("wb") as file:
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            file.truncate(size)
        return cls(path, kind, length)

    @property
    def block(self) -> int:
        """The number of values of a block."""
        return entry_checks.BLOCK_BYTES // self.kind.itemsize

    def ranges(self, most: int) -> Iterator[range]:
        """Divide the array into ranges of whole blocks with at most so many values, but at least a block each."""
        step = max(most // self.block, 1) * self.block
        for first in range(0, self.length, step):
            yield range(first, min(first + step, self.length))

    def write(self, parts: Iterable[AnyArray], first: int) -> BlockSums:
        """Write values from a block on. All parts but the last consist of whole blocks."""
        done: list[BlockSums] = []
        with self.path.open("r+b") as file:
            file.seek(first * self.kind.itemsize)
            for part in parts:
                file.write(part.tobytes())
                done.append(BlockSums.of(part))
            file.flush()
            os.fsync(file.fileno())
        return combined(done)

    def checksum(self, done: Iterable[BlockSums]) -> int:
        """Return the checksum of the array from the sums of all its ranges, in order."""
        every = combined(done)
        return entry_checks.combined_checksum(self.length * self.kind.itemsize, every.sums, every.rest)


def combined(done: Iterable[BlockSums]) -> BlockSums:
    """Return the sums of consecutive ranges. Only the last has a rest."""
    ranges = list(done)
    sums = [np.zeros(0, np.uint64), *(one.sums for one in ranges)]
    return BlockSums(np.concatenate(sums), b"".join(one.rest for one in ranges))
