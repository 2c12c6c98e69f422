"""One segment of an inverted index: a dictionary of terms, their posting lists and the lengths of rows.

On an object store, the guide, every 1,024th term, is read as a whole. It leads to the range of the dictionary that has
a term, and the dictionary to the posting list, so a query reads three ranges of each term. The lengths of rows are read
by the blocks that the lists need.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.cache import disk_cache, entry_checks
from omnigraph.engine.cache.ranged_arrays import AnyArray, RangedArray, RangedEntry, complete_array, mapped_array
from omnigraph.engine.cache.table_cache import unmapped_bytes
from omnigraph.engine.exec.cancellation import checkpoint
from omnigraph.engine.search.analyzer import all_within
from omnigraph.engine.search.index_builder import GUIDED, Lengths
from omnigraph.engine.search.posting_lists import (
    PADDING,
    BadPostings,
    RowNumbers,
    TermCounts,
    Words,
    count_postings,
    decode_list,
)
from omnigraph.errors import Damaged

_CHECKED_WORDS = 1 << 20
_COUNTS_MAX = 1_024
"""Posting lists whose numbers of rows are kept."""

ARRAYS = ("letters", "ends", "offsets", "words", "lengths", "totals")
"""The arrays of a segment."""
RANGED = ("letters", "ends", "offsets", "words", "lengths")
"""Those that are read by range."""


@dataclass(frozen=True)
class InvertedIndex:
    """The terms of some rows."""

    letters: AnyArray | RangedArray
    """The terms in UTF-8, ascending, without separators."""
    ends: AnyArray | RangedArray
    """The first byte of each term, then the end of the last."""
    offsets: AnyArray | RangedArray
    """The first word of the posting list of each term, then the end of the last."""
    words: Words | RangedArray
    """The posting lists."""
    lengths: Lengths | RangedArray
    """The number of terms of each row plus one; 0 for null."""
    totals: AnyArray
    """The number of rows that are not null, the number of their terms, and the largest value of `lengths`."""
    guide: list[bytes] | None = None
    """Every `GUIDED`th term, if the dictionary is read by range."""
    _counts: dict[tuple[int, int], int] = field(init=False, default_factory=dict, repr=False, compare=False)
    """The numbers of rows of the posting lists that queries used."""

    @property
    def nbytes(self) -> int:
        """The size in memory; 0 for mapped arrays."""
        return unmapped_bytes(*(getattr(self, name) for name in ARRAYS))

    @property
    def terms(self) -> pa.Array:
        """The distinct terms, ascending."""
        kind = pa.utf8() if self.ends.dtype == np.int32 else pa.large_utf8()
        buffers = [None, pa.py_buffer(complete_array(self.ends)), pa.py_buffer(complete_array(self.letters))]
        terms = pa.Array.from_buffers(kind, len(self.ends) - 1, buffers)
        if isinstance(self.letters, RangedArray) or isinstance(self.ends, RangedArray):
            try:
                terms.validate(full=True)
            except pa.ArrowInvalid as error:
                raise damaged(error) from error
        return terms

    def find(self, word: str) -> tuple[int, int] | None:
        """Return the first word and the end of the posting list of a term; None if no row contains it."""
        wanted = word.encode()
        low, high = self._range_of(wanted)
        while low < high:
            middle = (low + high) // 2
            if self._term(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        if low == len(self.ends) - 1 or self._term(low) != wanted:
            return None
        start, stop = int(self.offsets[low]), int(self.offsets[low + 1])
        if not 0 <= start <= stop <= len(self.words) - PADDING:
            raise damaged(BadPostings("a posting list is out of range"))
        return start, stop

    def _range_of(self, wanted: bytes) -> tuple[int, int]:
        """Return the range of the dictionary in which a term must be, by its first and its last position."""
        last = len(self.ends) - 1
        if self.guide is None:
            return 0, last
        place = bisect_right(self.guide, wanted)
        return max(place - 1, 0) * GUIDED, min(place * GUIDED, last)

    def prefetch(self, words: Sequence[str]) -> None:
        """Read the posting lists of some terms from the object store, by three rounds of requests."""
        if self.entry is None:
            return
        ranges = [self._range_of(word.encode()) for word in words]
        lows, highs = np.array([low for low, _ in ranges], np.int64), np.array([high for _, high in ranges], np.int64)
        stops = np.minimum(highs + 1, len(self.ends) - 1) + 1
        self._ensure((self.ends, lows, stops), (self.offsets, lows, stops))
        ends = mapped_array(self.ends)
        self._ensure((self.letters, ends[lows], ends[stops - 1]))
        found = [place for place in map(self.find, words) if place is not None]
        self._ensure((self.words, [start for start, _ in found], [stop + PADDING for _, stop in found]))

    @cached_property
    def entry(self) -> RangedEntry | None:
        """The entry from which arrays are read by range; None if all arrays are complete."""
        arrays = (getattr(self, name) for name in ARRAYS)
        return next((array.entry for array in arrays if isinstance(array, RangedArray)), None)

    def _ensure(self, *ranges: tuple[AnyArray | RangedArray, Any, Any]) -> None:
        """Read ranges of some arrays from the object store at the same time."""
        if self.entry is not None:
            wanted = [(array, starts, stops) for array, starts, stops in ranges if isinstance(array, RangedArray)]
            self.entry.ensure([(array, array.blocks_of_ranges(starts, stops)) for array, starts, stops in wanted])

    def words_of(self, place: tuple[int, int]) -> Words:
        """Return an array that has the words of a posting list at its place."""
        self._ensure((self.words, [place[0]], [place[1] + PADDING]))
        return mapped_array(self.words)

    def lengths_of(self, place: tuple[int, int]) -> Lengths:
        """Return an array that has the lengths of the rows of a posting list."""
        if isinstance(self.lengths, RangedArray):
            if self.count(place) >= len(self.lengths.blocks):
                return self.lengths.whole()
            self.lengths.entry.ensure([(self.lengths, self.lengths.blocks_of(self.postings(place)[0]))])
        return mapped_array(self.lengths)

    def _term(self, at: int) -> bytes:
        return self.letters[self.ends[at] : self.ends[at + 1]].tobytes()

    def count(self, place: tuple[int, int]) -> int:
        """Return the number of rows of a posting list."""
        known = self._counts.get(place)
        if known is None:
            try:
                known = count_postings(self.words_of(place), *place)
            except BadPostings as error:
                raise damaged(error) from error
            if len(self._counts) >= _COUNTS_MAX:
                self._counts.clear()
            self._counts[place] = known
        return known

    def postings(self, place: tuple[int, int]) -> tuple[RowNumbers, TermCounts]:
        """Return the rows of a posting list, ascending, and the number of occurrences in each."""
        try:
            return decode_list(self.words_of(place), *place, len(self.lengths))
        except BadPostings as error:
            raise damaged(error) from error

    def near(self, wanted: list[str], edits: int) -> list[str]:
        """Return the terms within `edits` edits of one of the wanted words."""
        terms = self.terms
        lengths = pc.utf8_length(terms).to_numpy(zero_copy_only=False)
        found: list[str] = []
        for word in dict.fromkeys(wanted):
            checkpoint()
            close = terms.take(pa.array(np.flatnonzero(np.abs(lengths - len(word)) <= edits))).to_pylist()
            found += [close[at] for at in np.flatnonzero(all_within(close, word, edits)).tolist()]
        return list(dict.fromkeys(found))


def damaged(error: Exception) -> Damaged:
    """Return the error for an index whose values are not consistent."""
    return Damaged(
        f"a text index of the cache is damaged: {error}", hint="remove the folder '__cache' of the graph; it is rebuilt"
    )


def read_index(entry: disk_cache.CacheEntry, row_count: int) -> InvertedIndex:
    """Read and check an entry of the disk cache with a number of rows; raise `BadEntry` if it is inconsistent."""
    dictionary = (entry.get("letters"), entry.get("ends"), entry.get("offsets"))
    rows = (entry.get("lengths"), entry.arrays["totals"])
    index = InvertedIndex(*dictionary, entry.get("words"), *rows, _read_guide(entry))
    ends, offsets, lengths = index.ends, index.offsets, index.lengths
    entry_checks.check(ends.dtype in (np.int32, np.int64) and ends.ndim == 1 and len(ends) > 0, "'ends' is malformed")
    entry_checks.check(offsets.dtype in (np.uint32, np.int64) and offsets.shape == ends.shape, "'offsets' is malformed")
    entry_checks.check(index.letters.dtype == np.uint8 and index.letters.ndim == 1, "'letters' is malformed")
    entry_checks.check(index.words.dtype == np.uint32 and len(index.words) >= PADDING, "'words' is malformed")
    narrow = lengths.dtype in (np.uint16, np.uint32)
    entry_checks.check(narrow and lengths.shape == (row_count,), "'lengths' is malformed")
    entry_checks.check(index.totals.dtype == np.int64 and index.totals.shape == (3,), "'totals' is malformed")
    for array, end, name in ((ends, len(index.letters), "ends"), (offsets, len(index.words) - PADDING, "offsets")):
        # The end of an array that is read by range is checked when it is read.
        ranged = isinstance(array, RangedArray)
        entry_checks.check(ranged or int(array[-1]) == end, f"'{name}' does not cover its values")
    if not entry.trusted:
        _check_values(index)
    return index


def _read_guide(entry: disk_cache.CacheEntry) -> list[bytes] | None:
    """Read every `GUIDED`th term if arrays are read by range; None if the entry, of an earlier release, has none."""
    if not entry.ranged or "guide_ends" not in entry.arrays:
        return None
    letters, ends = entry.arrays["guide_letters"], entry.arrays["guide_ends"]
    terms = -(-(len(entry.get("ends")) - 1) // GUIDED)
    entry_checks.check_offsets(ends, terms, len(letters), "guide_ends")
    return [letters[start:end].tobytes() for start, end in pairwise(ends.tolist())]


def _check_values(index: InvertedIndex) -> None:
    """Check the values of an index; raises `ValueError` or `entry_checks.BadEntry`."""
    entry_checks.check_offsets(index.ends, len(index.ends) - 1, len(index.letters), "ends")
    entry_checks.check_offsets(index.offsets, len(index.ends) - 1, len(index.words) - PADDING, "offsets")
    entry_checks.check_within(index.lengths, int(index.totals[2]) + 1, "lengths")
    if index.entry is not None:
        return  # lists are checked when they are read
    index.terms.validate(full=True)
    first = 0
    while first < len(index.offsets) - 1:
        checkpoint()
        bound = int(index.offsets[first]) + _CHECKED_WORDS
        stop = max(first + 1, int(np.searchsorted(index.offsets, bound, side="right")) - 1)
        decode_list(
            complete_array(index.words), int(index.offsets[first]), int(index.offsets[stop]), len(index.lengths)
        )
        first = stop
