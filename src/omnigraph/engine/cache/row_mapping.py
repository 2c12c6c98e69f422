"""Which rows of a version were in an earlier one: what was computed for them there is not computed again.

A small commit adds rows in a piece of their own and marks the rows it replaced or removed as gone; every other
row stays where it was. So something computed for all rows of one version (an index of words, a matrix of vectors)
serves later versions as well: its rows are looked up through a map, and only new rows are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.cache.disk_cache import CacheEntry, check, check_within, fragments_of
from omnigraph.engine.cache.table_cache import Fragments, Numbers, TableData, is_mapped

RowPositions = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True)
class FragmentLayout:
    """The pieces of a version, and for those that lost rows which places in them are left."""

    fragments: Fragments
    live: Mapping[int, Numbers] = field(default_factory=dict)

    @classmethod
    def of(cls, data: TableData, fragments: Sequence[int] | None = None) -> FragmentLayout:
        """How the rows of a version lie, or of some of its pieces."""
        chosen = range(len(data.fragments)) if fragments is None else fragments
        kept = tuple(data.fragments[at] for at in chosen)
        return cls(kept, {place: data.live_offsets(at) for place, at in enumerate(chosen) if data.fragments[at][2]})

    def write(self, name: str, about: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Put it among what is kept on disk, under a name."""
        about[name] = {"pieces": self.fragments, "left": sorted(self.live)}
        arrays |= {f"{name}-left{at}": left for at, left in self.live.items()}

    @classmethod
    def read(cls, kept: CacheEntry, name: str) -> FragmentLayout:
        """What `write` put there."""
        about = kept.about[name]
        fragments = fragments_of(about["pieces"])
        left = {int(at): kept.arrays[f"{name}-left{at}"] for at in about["left"]}
        check(set(left) == {at for at, (_, _, gone) in enumerate(fragments) if gone}, f"'{name}' lacks remaining rows")
        for at, places in left.items():
            check_within(places, fragments[at][1], f"{name}-left{at}")
            check(bool((places[1:] > places[:-1]).all()), f"'{name}-left{at}' is not ascending")
        return cls(fragments, left)

    def rows(self, at: int) -> int:
        """How many rows a piece has."""
        left = self.live.get(at)
        return self.fragments[at][1] if left is None else len(left)

    @property
    def nbytes(self) -> int:
        """Its size in memory."""
        return sum(left.nbytes for left in self.live.values() if not is_mapped(left))

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return sum(map(self.rows, range(len(self.fragments))))


@dataclass(frozen=True)
class RowMapping:
    """How the rows of a version relate to what is known: the rows of an earlier version, then the new ones.

    `stored_of` gives for a row of the version its place among the known, `row_of` the way back, -1 where a known row
    is no more. Both are None when every row is at its own place.
    """

    new: tuple[int, ...]
    """The pieces whose rows were not in the earlier version."""
    stored_of: RowPositions | None = None
    row_of: RowPositions | None = None


def map_rows(earlier: FragmentLayout, data: TableData) -> RowMapping | None:
    """The relation of a version to an earlier one; None when they share too little for it to help."""
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
    known = end = sum(counts)
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
                return None  # an older version, with rows that were gone already
        blocks.append(starts[files] + places)
    stored_of = np.concatenate([*blocks, np.zeros(0, np.int64)]).astype(np.int32)
    row_of = np.full(end, -1, np.int32)
    row_of[stored_of] = np.arange(len(stored_of), dtype=np.int32)
    assert known <= end
    return RowMapping(new, stored_of, row_of)


def removed_rows(earlier: FragmentLayout, data: TableData) -> Numbers | None:
    """The rows of an earlier version that are not where they were, ascending; None when this one is older."""
    places = removed_by_fragment(earlier, data)
    return None if places is None else np.concatenate([*(rows for _, _, rows in places), np.zeros(0, np.int64)])


def removed_by_fragment(earlier: FragmentLayout, data: TableData) -> list[tuple[int | None, Numbers, Numbers]] | None:
    """The same piece by piece: (the piece now, if it is still there; the places in it; the rows then)."""
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
