"""Mapping between the rows of a table version and those of an earlier version.

A small commit adds rows in a new fragment and marks replaced or removed rows as deleted; all other rows stay in their
fragments. A structure computed for all rows of one version (an inverted index, a vector matrix) therefore serves later
versions: its rows are found through the mapping, and only new rows are computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.cache.disk_cache import CacheEntry, fragments_of
from omnigraph.engine.cache.entry_checks import check, check_within
from omnigraph.engine.cache.table_cache import Fragments, Numbers, TableData, is_mapped
from omnigraph.fast_dataclass import dataclass

RowPositions = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True)
class FragmentLayout:
    """The fragments of a version, and the live offsets of those with deleted rows."""

    fragments: Fragments
    live: Mapping[int, Numbers] = field(default_factory=dict)

    @classmethod
    def of(cls, data: TableData, fragments: Sequence[int] | None = None) -> FragmentLayout:
        """Return the layout of a version, or of some of its fragments."""
        chosen = range(len(data.fragments)) if fragments is None else fragments
        entry = tuple(data.fragments[at] for at in chosen)
        return cls(entry, {place: data.live_offsets(at) for place, at in enumerate(chosen) if data.fragments[at][2]})

    def write(self, name: str, about: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Add the layout to the metadata and arrays of a cache entry, under a name."""
        about[name] = {"pieces": self.fragments, "left": sorted(self.live)}
        arrays |= {f"{name}-left{at}": left for at, left in self.live.items()}

    @classmethod
    def read(cls, entry: CacheEntry, name: str) -> FragmentLayout:
        """Read a layout that `write` added to a cache entry."""
        about = entry.about[name]
        fragments = fragments_of(about["pieces"])
        left = {int(at): entry.arrays[f"{name}-left{at}"] for at in about["left"]}
        check(
            set(left) == {at for at, (_, _, gone) in enumerate(fragments) if gone},
            f"'{name}' has no live offsets of a fragment",
        )
        for at, places in left.items():
            check_within(places, fragments[at][1], f"{name}-left{at}")
            check(bool((places[1:] > places[:-1]).all()), f"'{name}-left{at}' is not ascending")
        return cls(fragments, left)

    def rows(self, at: int) -> int:
        """Return the number of live rows of a fragment."""
        left = self.live.get(at)
        return self.fragments[at][1] if left is None else len(left)

    @cached_property
    def digest(self) -> str:
        """Identifies the rows of the layout."""
        return blake2b(repr(self.fragments).encode(), digest_size=16).hexdigest()

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return sum(left.nbytes for left in self.live.values() if not is_mapped(left))

    @property
    def row_count(self) -> int:
        """The number of live rows."""
        return sum(map(self.rows, range(len(self.fragments))))


@dataclass(frozen=True)
class RowMapping:
    """The mapping of the rows of a version to stored rows: those of an earlier version, then the new ones.

    `stored_of` maps a row of the version to its stored row. `row_of` is the inverse, -1 for a stored row that was
    deleted. Both are None if every row is its own stored row.
    """

    new: tuple[int, ...]
    """The fragments that the earlier version did not have."""
    stored_of: RowPositions | None = None
    row_of: RowPositions | None = None

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return sum(int(rows.nbytes) for rows in (self.stored_of, self.row_of) if rows is not None)


def map_rows(earlier: FragmentLayout, data: TableData) -> RowMapping | None:
    """Map the rows of a version to those of an earlier one; None if the versions share too little.

    The structures of a table are mostly of few versions, so mappings are kept.
    """
    return data.derived(f"rows of:{earlier.digest}", lambda: _mapped(earlier, data))


def _mapped(earlier: FragmentLayout, data: TableData) -> RowMapping | None:
    fragments = data.fragments
    if fragments[: len(earlier.fragments)] == earlier.fragments:
        new = tuple(range(len(earlier.fragments), len(fragments)))
        return RowMapping(new) if _few([data.rows_in(at) for at in new], data.row_count) else None
    counts = [earlier.rows(at) for at in range(len(earlier.fragments))]
    starts = dict(zip((files for files, _, _ in earlier.fragments), np.cumsum(counts) - counts, strict=True))
    numbers = {files: at for at, (files, _, _) in enumerate(earlier.fragments)}
    new = tuple(at for at, (files, _, _) in enumerate(fragments) if files not in numbers)
    if not _few([data.rows_in(at) for at in new], data.row_count):
        return None
    end = sum(counts)
    blocks: list[Numbers] = []
    for at, (files, _, gone) in enumerate(fragments):
        if files not in numbers:
            blocks.append(np.arange(end, end + data.rows_in(at)))
            end += data.rows_in(at)
            continue
        then = numbers[files]
        if gone == earlier.fragments[then][2]:
            places = np.arange(counts[then])
        else:
            left, before = data.live_offsets(at), earlier.live.get(then)
            places = left if before is None else np.searchsorted(before, left)
            if before is not None and not np.array_equal(before[np.minimum(places, len(before) - 1)], left):
                return None  # an older version, with rows that were deleted in the earlier layout
        blocks.append(starts[files] + places)
    if end > tuning.current.row_numbers_max:
        return None  # stored rows have numbers too, also those that were deleted
    stored_of = np.concatenate([*blocks, np.zeros(0, np.int64)]).astype(np.int32)
    row_of = np.full(end, -1, np.int32)
    row_of[stored_of] = np.arange(len(stored_of), dtype=np.int32)
    return RowMapping(new, stored_of, row_of)


def removed_rows(earlier: FragmentLayout, data: TableData) -> Numbers | None:
    """Return the rows of an earlier version that moved or were deleted, ascending; None if this version is older."""
    places = removed_by_fragment(earlier, data)
    return None if places is None else np.concatenate([*(rows for _, _, rows in places), np.zeros(0, np.int64)])


def removed_by_fragment(earlier: FragmentLayout, data: TableData) -> list[tuple[int | None, Numbers, Numbers]] | None:
    """Return `removed_rows` by fragment: (fragment, offsets in it, rows of the earlier version).

    The fragment is None if it no longer exists.
    """
    now = {files: at for at, (files, _, _) in enumerate(data.fragments)}
    found: list[tuple[int | None, Numbers, Numbers]] = []
    start = 0
    for then, (files, rows, gone) in enumerate(earlier.fragments):
        at, before = now.get(files), earlier.live.get(then)
        left = np.zeros(rows, bool)
        if at is not None:
            left[data.live_offsets(at) if data.fragments[at][2] != gone else slice(None)] = True
        if at is None or data.fragments[at][2] != gone:
            if before is not None and int(left.sum()) != int(left[before].sum()):
                return None
            missing = np.flatnonzero(~left if before is None else ~left[before])
            found.append((at, missing if before is None else before[missing], start + missing))
        start += earlier.rows(then)
    return found


def _few(new: list[int], rows: int) -> bool:
    return sum(new) <= max(tuning.current.mapped_rows_new_max, tuning.current.mapped_rows_new_share_max * rows)
