"""Arrays of a structure on an object store that are read block by block.

An entry of the disk cache of a graph on an object store can be incomplete: its folder is complete except for a few
large arrays, of which only the blocks that queries touched are there (`RangedEntry`). Such an array is a sparse file of
its full size, a file of marks with one byte per block, and a file with the CRC-32 of every block, which was downloaded
with the entry. The other arrays of the entry are complete.

A mapped file cannot fetch its pages from an object store, so the ranges must be known before they are read. A
`RangedArray` is therefore no array: it returns values after their blocks are there, and `mapped` gives a compiled loop
the whole file once the ranges that the loop reads are there. The structures know their ranges: a CSR reads the offsets
of some nodes, then their neighbours; an inverted index reads a part of its dictionary, then the posting lists; an id
index reads the block in which a hash must be; a vector index reads the codes of some clusters. What needs a whole array
calls `whole`.

Missing blocks are fetched in parallel, adjacent ones by one request. An array of which more than half is there is
completed. A block is marked after its bytes are written. A process verifies the checksum of a block before it uses the
block for the first time, so marks are only a hint: after a crash, a truncated file or a lost page, the block is fetched
again. Blocks never change, so processes that fetch the same block write the same bytes.

The values of a block are checked with its checksum: compiled loops use them without bounds checks. If the entry is no
longer in the bucket, or a block there is damaged, `StructureLost` is raised, and the structure is computed instead.
"""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any, Protocol
from weakref import finalize

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.exec.cancellation import add_note, checkpoint
from omnigraph.errors import StorageError
from omnigraph.storage.parallel import each_request

AnyArray = np.ndarray[Any, Any]
Blocks = np.ndarray[Any, np.dtype[np.int64]]
Check = Callable[[AnyArray, int], None]
"""Checks the values of a block, given the position of its first value; raises `ValueError`."""

_PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 32
_NEAR_TRIES = 3
"""Blocks beside each other that are searched before the search is binary."""
_log = logging.getLogger(__name__)


class StructureLost(StorageError):
    """A structure is damaged or no longer on the object store. It was removed locally; the query can be repeated."""


class RangeSource(Protocol):
    """The object store of an entry."""

    def read_part(self, name: str, start: int, end: int, size: int) -> bytes:
        """Return a range of an object of a size; raise `FileNotFoundError` or `ValueError` if it is not available."""

    def lose(self, path: Path, folder: str, reason: str | None) -> None:
        """Remove a local entry whose folder is gone from the store, or damaged for a reason."""


class RangedArray:
    """An array of which blocks are fetched when they are read. The positions of a matrix are its rows."""

    def __init__(self, entry: RangedEntry, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.entry = entry
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.ndim = len(shape)
        self._position_bytes = prod(shape[1:]) * dtype.itemsize
        self.nbytes = shape[0] * self._position_bytes
        self._per_block = entry.block_bytes // dtype.itemsize
        """The number of values of a block; blocks may divide rows of a matrix."""
        blocks = -(-self.nbytes // entry.block_bytes)
        self._sums = np.fromfile(sums_path(entry.path, name), np.uint32)
        if len(self._sums) != blocks or zlib.crc32(self._sums.tobytes()) != entry.sums[name]:
            raise ValueError(f"the checksums of '{name}' are damaged")
        self._file = os.open(entry.path / name, os.O_RDWR | getattr(os, "O_BINARY", 0))
        finalize(self, os.close, self._file)
        if os.fstat(self._file).st_size != self.nbytes:
            # The blocks that are missing now do not match their checksums.
            os.truncate(self._file, self.nbytes)
        self.base = np.memmap(entry.path / name, dtype, "r", shape=self.shape)
        """The file. Only blocks that were requested have their values."""
        self._mapped = np.asarray(self.base)
        self._bytes = self._mapped.reshape(-1).view(np.uint8)
        self._marks = _open_marks(marks_path(entry.path, name), blocks)
        self._verified = np.zeros(blocks, bool)
        self._checks: list[Check] = []
        self.is_complete = False
        """True if all blocks are there and verified."""

    def __len__(self) -> int:
        return self.shape[0]

    def add_check(self, check: Check) -> None:
        """Check the values of every block before it is used."""
        self._checks.append(check)

    # -- reading ---------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        """Return values as an array does; other selections than positions and simple ranges read the whole array."""
        if self.is_complete:
            return self._mapped[key]
        if isinstance(key, slice) and key.step in (None, 1):
            start, stop, _ = key.indices(len(self))
            return self.read(start, stop)
        if isinstance(key, int | np.integer):
            position = int(key) + (len(self) if key < 0 else 0)
            if 0 <= position < len(self):
                self.entry.ensure([(self, self.blocks_of_ranges([position], [position + 1]))])
            return self._mapped[key]
        if isinstance(key, np.ndarray) and key.dtype.kind in "iu":
            if len(key) and (int(key.min()) < 0 or int(key.max()) >= len(self)):
                raise IndexError(f"a position of '{self.name}' is out of range")
            self.entry.ensure([(self, self.blocks_of(key))])
            return self._mapped[key]
        return self.whole()[key]

    def read(self, start: int, stop: int) -> AnyArray:
        """Return a range of the values."""
        self.entry.ensure([(self, self.blocks_of_ranges([start], [stop]))])
        return self._mapped[start:stop]

    def mapped(self) -> AnyArray:
        """Return the file as an array. Only values that were requested are there."""
        return self._mapped

    def whole(self) -> AnyArray:
        """Return the complete array."""
        if not self.is_complete:
            self.entry.ensure([(self, self.blocks)])
        return self._mapped

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.whole(), dtype, copy=copy)

    def searchsorted(self, value: Any) -> int:
        """Return the position of the first value that is not less than `value`, in an ascending array of even spread.

        The first block is guessed from the spread of all values of the type, so few blocks are read.
        """
        if self.is_complete:
            return int(self._mapped.searchsorted(value))
        low, high = 0, len(self._sums)
        at, tries = self._guess(value), 0
        while low < high:
            tries += 1
            first = at * self._per_block
            values = self.read(first, min(first + self._per_block, len(self)))
            if value > values[-1]:
                low = at + 1
            elif value <= values[0]:
                high = at
            else:
                return first + int(values.searchsorted(value))
            # The guess is mostly right or next to the right block.
            at = min(max(at, low), high - 1) if tries < _NEAR_TRIES else (low + high) // 2
        return min(low * self._per_block, len(self))

    def _guess(self, value: Any) -> int:
        """Return the block in which a value is if the values are spread evenly."""
        share = int(value) / (int(np.iinfo(self.dtype).max) + 1)
        return min(int(share * len(self)) // self._per_block, len(self._sums) - 1)

    def blocks_near(self, values: AnyArray) -> Blocks:
        """Return the blocks that contain most of some values in an array of even spread."""
        return np.unique(np.array([self._guess(value) for value in values.tolist()], np.int64))

    # -- blocks ----------------------------------------------------------------------------------

    def blocks_of(self, positions: AnyArray) -> Blocks:
        """Return the blocks of some positions."""
        if self.ndim > 1:
            starts = positions.astype(np.int64)
            return self.blocks_of_ranges(starts, starts + 1)
        if len(positions) <= 1:
            return (positions // self._per_block).astype(np.int64)
        wanted = np.zeros(len(self._sums), bool)
        wanted[positions // self._per_block] = True
        return np.flatnonzero(wanted)

    def blocks_of_ranges(self, starts: Any, stops: Any) -> Blocks:
        """Return the blocks of some ranges of positions; empty ranges have none."""
        starts, stops = np.asarray(starts, np.int64), np.asarray(stops, np.int64)
        some = stops > starts
        block = self.entry.block_bytes
        firsts, lasts = starts[some] * self._position_bytes // block, (stops[some] * self._position_bytes - 1) // block
        if len(firsts) == 1:
            return np.arange(firsts[0], lasts[0] + 1)
        change = np.zeros(len(self._sums) + 1, np.int64)
        np.add.at(change, firsts, 1)
        np.add.at(change, lasts + 1, -1)
        return np.flatnonzero(np.cumsum(change)[:-1])

    @property
    def blocks(self) -> Blocks:
        """All blocks."""
        return np.arange(len(self._sums))

    def has(self, blocks: Blocks) -> bool:
        """Return True if some blocks are there and verified in this process."""
        return self.is_complete or bool(self._verified[blocks].all())

    def missing(self, blocks: Blocks) -> list[tuple[RangedArray, int, int]]:
        """Verify the blocks that are there; return runs of those that are not: (array, first block, block after it).

        All missing blocks are returned if more than half of the array would be there.
        """
        self._verify(blocks)
        left = blocks[~self._verified[blocks]]
        if not len(left):
            return []
        if 2 * (int(np.count_nonzero(self._marks)) + len(left)) > len(self._marks):
            self._verify(self.blocks)
            left = np.flatnonzero(~self._verified)
        per_part = max(_PART_BYTES // self.entry.block_bytes, 1)
        runs = np.split(left, np.flatnonzero(np.diff(left) != 1) + 1)
        return [
            (self, int(run[at]), int(run[min(at + per_part, len(run)) - 1]) + 1)
            for run in runs
            for at in range(0, len(run), per_part)
        ]

    def _verify(self, blocks: Blocks) -> None:
        """Verify the marked ones of some blocks that this process did not use yet."""
        damaged = 0
        for block in blocks[~self._verified[blocks] & (self._marks[blocks] == 1)].tolist():
            if self._matches(block):
                start = block * self.entry.block_bytes
                self._check(block, self._bytes[start : start + self.entry.block_bytes].view(self.dtype))
                self._verified[block] = True
            else:
                self._marks[block] = 0
                damaged += 1
        if damaged:
            _log.warning("%d blocks of '%s' of the cache are damaged and are read again", damaged, self.name)

    def _matches(self, block: int) -> bool:
        """Return True if a block of the file has its checksum."""
        start = block * self.entry.block_bytes
        return zlib.crc32(self._bytes[start : start + self.entry.block_bytes].data) == int(self._sums[block])

    def is_sound(self) -> bool:
        """Return True if all marked blocks match their checksums."""
        return all(map(self._matches, np.flatnonzero(self._marks).tolist()))

    def put(self, first: int, data: bytes) -> None:
        """Store blocks from the object store: verify them, write them, then mark them."""
        size = self.entry.block_bytes
        count = -(-len(data) // size)
        for at in range(count):
            part = data[at * size : (at + 1) * size]
            if zlib.crc32(part) != self._sums[first + at]:
                raise ValueError(f"'{self.name}' has a wrong checksum")
            self._check(first + at, np.frombuffer(part, self.dtype))
        _write_at(self._file, data, first * size)
        self._marks[first : first + count] = 1
        self._verified[first : first + count] = True

    def _check(self, block: int, values: AnyArray) -> None:
        for check in self._checks:
            check(values, block * self._per_block)

    def update(self) -> bool:
        """Note whether all blocks are verified; return it."""
        self.is_complete = self.is_complete or bool(self._verified.all())
        return self.is_complete


class RangedEntry:
    """The arrays of an incomplete entry of the disk cache that are read by range."""

    def __init__(
        self,
        path: Path,
        folder: str,
        block_bytes: int,
        sums: dict[str, int],
        source: RangeSource | None,
        completed: Callable[[], None],
    ) -> None:
        self.path = path
        self.folder = folder
        """The folder of the arrays on the object store."""
        self.block_bytes = block_bytes
        self.sums = sums
        """Array → the CRC-32 of its checksums."""
        self._given_source = source
        self._completed: Callable[[], None] | None = completed
        """Called once when all arrays are complete."""
        self._lock = Lock()
        self.arrays: dict[str, RangedArray] = {}

    @property
    def _source(self) -> RangeSource:
        assert self._given_source is not None, "an incomplete entry is read with its object store"
        return self._given_source

    def ensure(self, wanted: Iterable[tuple[RangedArray, Blocks]]) -> None:
        """Fetch the missing ones of some blocks. Raises `StructureLost` if they cannot be had any more."""
        wanted = [(array, blocks) for array, blocks in wanted if not array.has(blocks)]
        if not wanted:
            return
        while not self._lock.acquire(timeout=tuning.current.poll_s):
            checkpoint()
        try:
            self._fetch([part for array, blocks in wanted for part in array.missing(blocks)])
            complete = [array.update() for array in self.arrays.values()]
            if all(complete) and self._completed is not None:
                self._completed()
                self._completed = None
        except FileNotFoundError:
            self._lose(None)
        except ValueError as error:
            self._lose(str(error))
        finally:
            self._lock.release()

    def _fetch(self, parts: Sequence[tuple[RangedArray, int, int]]) -> None:
        source = self._source

        def fetch(part: tuple[RangedArray, int, int]) -> int:
            array, first, stop = part
            start, end = first * self.block_bytes, min(stop * self.block_bytes, array.nbytes)
            data = source.read_part(f"{self.folder}/{array.name}", start, end, array.nbytes)
            if len(data) != end - start:
                raise ValueError(f"'{array.name}' is too short")
            array.put(first, data)
            return len(data)

        size = 0
        for at in range(0, len(parts), _PARTS_AT_ONCE):
            checkpoint()
            size += sum(each_request(fetch, parts[at : at + _PARTS_AT_ONCE]))
        if size:
            add_note(f"{size:,} bytes of the cache downloaded")

    def check(self, condition: bool, reason: str) -> None:
        """Raise `StructureLost` unless a condition on values of the entry holds."""
        if not condition:
            self._lose(reason)

    def _lose(self, reason: str | None) -> None:
        self._source.lose(self.path, self.folder, reason)
        raise StructureLost(
            "a search structure is no longer on the object store"
            if reason is None
            else f"a search structure of the bucket is damaged: {reason}",
            hint="try again; the structure is computed from the tables",
        )


def complete_array(array: AnyArray | RangedArray) -> AnyArray:
    """Return an array; one that is read by range is completed."""
    return array.whole() if isinstance(array, RangedArray) else array


def mapped_array(array: AnyArray | RangedArray) -> AnyArray:
    """Return an array; of one that is read by range, only values that were requested are there."""
    return array.mapped() if isinstance(array, RangedArray) else array


def fetch(arrays: Sequence[AnyArray | RangedArray], blocks_of: Callable[[RangedArray], Blocks]) -> list[AnyArray]:
    """Request blocks of the arrays of an entry that are read by range, at the same time; return the mapped arrays."""
    ranged = [array for array in arrays if isinstance(array, RangedArray)]
    if ranged:
        ranged[0].entry.ensure([(array, blocks_of(array)) for array in ranged])
    return [mapped_array(array) for array in arrays]


def fetch_rows(arrays: Sequence[AnyArray | RangedArray], rows: AnyArray | None) -> list[AnyArray]:
    """Return the arrays of an entry with the values of some rows (None: all), which `fetch` requests."""
    return fetch(arrays, lambda array: array.blocks if rows is None else array.blocks_of(rows))


def block_sums(path: Path, block_bytes: int) -> bytes:
    """Return the CRC-32 of every block of a file."""
    sums: list[int] = []
    with path.open("rb") as file:
        while data := file.read(block_bytes):
            sums.append(zlib.crc32(data))
    return np.array(sums, np.uint32).tobytes()


def sums_path(folder: Path, name: str) -> Path:
    """Return the file of the checksums of the blocks of an array."""
    return folder / f".sums-{name}"


def marks_path(folder: Path, name: str) -> Path:
    """Return the file of the marks of an array."""
    return folder / f".blocks-{name}"


def _open_marks(path: Path, blocks: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Map the marks of an array; blocks of a missing or truncated file are not marked."""
    with path.open("ab") as file:
        if file.tell() != blocks:
            file.truncate(blocks)
    return np.memmap(path, np.uint8, "r+", shape=(blocks,))


def _write_at(file: int, data: bytes, place: int) -> None:
    view = memoryview(data)
    try:
        while view:
            done = _write_some(file, view, place)
            view, place = view[done:], place + done
    except OSError as error:
        raise StorageError(
            f"the cache folder cannot be written: {error.strerror}",
            hint="free disk space, or let OMNIGRAPH_CACHE_DIR name a folder on another disk",
        ) from error


_moving = Lock()
"""Held while a file is written by its position, which all threads share."""


def _write_some(file: int, data: memoryview, place: int) -> int:
    """Write bytes at a place of a file; return how many were written."""
    if hasattr(os, "pwrite"):  # not on Windows
        return os.pwrite(file, data, place)
    with _moving:
        os.lseek(file, place, os.SEEK_SET)
        return os.write(file, data)
