"""Inverted index of a text column: the rows that contain each term, and how often.

The index is built from the column, so a search returns the same rows and scores with or without a text index of the
table. It consists of arrays sorted by term, then by row. A large index is kept on disk and mapped. A small commit adds
a segment with its rows and skips deleted ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import kernels, tuning
from omnigraph.engine.cache import disk_cache
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.row_mapping import RowPositions
from omnigraph.engine.cache.segments import SegmentBuilder, SegmentView, segments_of
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData
from omnigraph.engine.cache.union_table import joined_segments
from omnigraph.engine.exec.cancellation import add_note, checkpoint, paced
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.search.analyzer import Scores, all_within, analyse_run, split_runs

_K1, _B = 1.2, 0.75
WORDS = "bigrams"
"""The kind of the index in the disk cache. A change of the text analysis needs a new name."""
_NO_PLACES = np.zeros(0, np.int32)
_NO_ROWS = np.zeros(0, np.int64)

RowNumbers = np.ndarray[Any, np.dtype[np.uint32]]
TermCounts = np.ndarray[Any, Any]


@dataclass(frozen=True)
class InvertedIndex:
    """The terms of some rows."""

    words: pa.Array
    """The distinct terms, ascending."""
    offsets: Numbers
    rows: RowNumbers
    counts: TermCounts
    lengths: np.ndarray[Any, np.dtype[np.int32]]
    """The number of terms of each row; -1 for null."""

    @property
    def nbytes(self) -> int:
        """The size in memory; 0 for mapped arrays."""
        if isinstance(self.rows.base, np.memmap):
            return 0
        return int(sum(array.nbytes for array in (self.offsets, self.rows, self.counts, self.lengths, self.words)))

    def find(self, word: str) -> tuple[RowNumbers, TermCounts]:
        """Return the rows that contain a term, and how often."""
        low, high = 0, len(self.words)
        while low < high:
            middle = (low + high) // 2
            if self.words[middle].as_py() < word:
                low = middle + 1
            else:
                high = middle
        if low == len(self.words) or self.words[low].as_py() != word:
            return self.rows[:0], self.counts[:0]
        start, end = self.offsets[low], self.offsets[low + 1]
        return self.rows[start:end], self.counts[start:end]

    def near(self, wanted: list[str], edits: int) -> list[str]:
        """Return the terms within `edits` edits of one of the wanted words."""
        lengths = pc.utf8_length(self.words).to_numpy(zero_copy_only=False)
        found: list[str] = []
        for word in dict.fromkeys(wanted):
            checkpoint()
            close = self.words.take(pa.array(np.flatnonzero(np.abs(lengths - len(word)) <= edits))).to_pylist()
            found += [close[at] for at in np.flatnonzero(all_within(close, word, edits)).tolist()]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class TextIndex:
    """The inverted index of a text column at one version."""

    view: SegmentView[InvertedIndex]

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return self.view.nbytes + sum(part.nbytes for part in self.view.bodies) + 16 * len(self._lengths)

    @cached_property
    def _parts(self) -> list[tuple[InvertedIndex, RowPositions | None]]:
        """Each segment with the current rows of its rows: -1 for deleted rows, None if they are unchanged."""
        found: list[tuple[InvertedIndex, RowPositions | None]] = []
        row_of = self.view.row_of
        for part, start in zip(self.view.bodies, self.view.starts, strict=True):
            end = start + len(part.lengths)
            if row_of is not None:
                found.append((part, row_of[start:end]))
            else:
                found.append((part, np.arange(start, end, dtype=np.int32) if start else None))
        return found

    @cached_property
    def _lengths(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        lengths = np.concatenate([part.lengths for part in self.view.bodies])
        stored_of = self.view.stored_of
        return lengths if stored_of is None else lengths[stored_of]

    @cached_property
    def texts(self) -> int:
        """The number of rows that are not null."""
        return int(np.count_nonzero(self._lengths >= 0))

    @cached_property
    def _norms(self) -> Scores:
        """The part of the BM25 denominator that depends on the length of the row only."""
        mean = self._lengths[self._lengths > 0].sum() / self.texts if self.texts else 0.0
        norms: Scores = _K1 * (1 - _B + _B * self._lengths / (mean or 1.0))
        return norms

    def _find(self, word: str) -> list[tuple[RowNumbers, TermCounts, RowPositions | None]]:
        """Return for each segment that contains a term: (rows of the segment, counts, current rows)."""
        found = [(*part.find(word), places) for part, places in self._parts]
        return [one for one in found if len(one[0])]

    def holding_all(self, words: Iterable[str]) -> Mask:
        """Return a mask of the rows that contain all words; no row if there are no words."""
        mask: Mask | None = None
        for word in paced(list(dict.fromkeys(words))):
            held = self.matching([word])
            mask = held if mask is None else mask & held
            if not mask.any():
                return mask
        return mask if mask is not None else np.zeros(len(self._lengths), bool)

    def matching(self, words: Iterable[str]) -> Mask:
        """Return a mask of the rows that contain at least one of the words."""
        mask = np.zeros(len(self._lengths), bool)
        for word in paced(dict.fromkeys(words)):
            for rows, _, places in self._find(word):
                mask[_live(rows, places)] = True
        return mask

    def fuzzy(self, words: Iterable[str], edits: int) -> Mask:
        """Return a mask of the rows that contain a term within `edits` edits of one of the words."""
        wanted = list(words)
        near = [word for part in self.view.bodies for word in part.near(wanted, edits)]
        return self.matching(dict.fromkeys(near))

    def bm25(self, words: Iterable[str]) -> Scores:
        """Return the BM25 score of every row; 0 without a matching term."""
        return self.scored(words)[0]

    def scored(self, words: Iterable[str]) -> tuple[Scores, Numbers]:
        """Return the BM25 score of every row, and the rows with a score above 0, ascending."""
        scores = np.zeros(len(self._lengths))
        loops = kernels.find("bm25")
        touched: Numbers = np.empty(len(scores) if loops is not None else 0, np.int64)
        size = 0
        for word in paced(dict.fromkeys(words)):
            found = self._find(word)
            holding = sum(len(_live(rows, places)) for rows, _, places in found)
            if not holding:
                continue
            add_note(f"'{word}' in {holding:,} rows")
            idf = math.log(1 + (self.texts - holding + 0.5) / (holding + 0.5))
            weight = idf * (_K1 + 1)
            for rows, counts, places in found:
                if loops is None:
                    _add(scores, rows, counts, self._norms, weight, places)
                    continue
                there = _NO_PLACES if places is None else places
                size = int(loops.add(scores, (rows, counts), self._norms, weight, there, touched, size))
        if loops is None or size * 8 > len(scores):
            return scores, np.flatnonzero(scores)
        return scores, np.sort(touched[:size])


def _live(rows: RowNumbers, places: RowPositions | None) -> Any:
    """Return the current rows of rows of a segment, without deleted ones."""
    if places is None:
        return rows
    there = places[rows]
    return there[there >= 0]


def _add(
    scores: Scores, rows: RowNumbers, counts: TermCounts, norms: Scores, weight: float, places: RowPositions | None
) -> None:
    """Add the score of one term to the rows that contain it."""
    with kernels.timed_fallback():
        there = rows if places is None else places[rows]
        if places is not None:
            left = there >= 0
            there, counts = there[left], counts[left]
        scores[there] += weight * counts / (counts + norms[there])


def best(scores: Scores, numbers: Numbers | None, wanted: int) -> Numbers:
    """Return the positions in `numbers` (None: all rows) with a score above 0 among the best `wanted`, with ties."""
    count = len(scores) if numbers is None else len(numbers)
    if not wanted or not count:
        return _NO_ROWS
    loops = kernels.find("bm25")
    if loops is not None:
        chosen = _NO_ROWS if numbers is None else numbers
        found: Numbers = interruptible(lambda: loops.best(scores, chosen, numbers is None, min(wanted, count)), count)
        return found
    with kernels.timed_fallback():
        some = scores if numbers is None else scores[numbers]
        places = np.flatnonzero(some > 0)
        if len(places) > wanted:
            last = np.partition(some[places], len(places) - wanted)[len(places) - wanted]
            places = places[some[places] >= last]
        return places


def rank_counts(scores: Scores, numbers: Numbers | None, wanted: Scores) -> tuple[Numbers, Numbers]:
    """Return for each wanted score how many scores of `numbers` (None: all rows) are higher, and how many are equal."""
    loops = kernels.find("bm25")
    if loops is not None:
        found: tuple[Numbers, Numbers] = loops.rank_counts(
            scores, _NO_ROWS if numbers is None else numbers, numbers is None, wanted
        )
        return found
    with kernels.timed_fallback():
        ascending = np.sort(scores if numbers is None else scores[numbers])
        up_to = np.searchsorted(ascending, wanted, side="right")
        return len(ascending) - up_to, up_to - np.searchsorted(ascending, wanted, side="left")


# -- building ----------------------------------------------------------------------------------------


def index_of(data: ColumnSource, name: str) -> TextIndex:
    """Return the index of a column at a version; it reuses the segments of earlier versions."""
    if data.union is not None:
        members = data.union.members
        views = [index_of(member, name).view for member in members]
        if not views:
            return build_index(data.column(name))
        return data.derived(f"words:{data.union.column_key(name)}", lambda: TextIndex(joined_segments(views, members)))
    if isinstance(data, TableData):
        return _stored_index(data, name)
    return data.derived(f"words:{name}", lambda: build_index(data.column(name)))


def _stored_index(data: TableData, name: str) -> TextIndex:
    def make(fragments: Sequence[int] | None) -> InvertedIndex:
        return build_inverted_index(data.stream(name, fragments))

    def write(fragments: Sequence[int] | None, writer: disk_cache.EntryWriter) -> None:
        for label, array in _arrays(make(fragments)).items():
            writer.put(label, array)

    builder = SegmentBuilder(WORDS, tuning.current.postings_disk_rows_min, make, write, _read_index)
    return data.derived(f"words:{data.field_id(name)}", lambda: TextIndex(segments_of(data, name, builder)))


def build_index(column: pa.Array) -> TextIndex:
    """Build the index of a text column."""
    return TextIndex(SegmentView((build_inverted_index([column]),), (0,)))


def build_inverted_index(chunks: Iterable[pa.Array]) -> InvertedIndex:
    """Build the inverted index of a text column; each distinct run of letters is analysed once."""
    codes: dict[str, int] = {}
    tokens: list[RowNumbers] = []
    rows: list[RowNumbers] = []
    lengths: list[np.ndarray[Any, np.dtype[np.int32]]] = []
    start = 0
    for texts in _merged_chunks(chunks):
        checkpoint()
        found, places = _words(texts, codes)
        count = np.bincount(places, minlength=len(texts)).astype(np.int32)
        count[np.asarray(texts.is_null().to_numpy(zero_copy_only=False), dtype=bool)] = -1
        tokens.append(found.astype(np.uint32))
        rows.append((places + start).astype(np.uint32))
        lengths.append(count)
        start += len(texts)
    words = interruptible(lambda: sorted(codes), len(codes))
    rank = np.empty(len(words), np.uint64)
    rank[[codes[word] for word in words]] = np.arange(len(words), dtype=np.uint64)
    packed = _concat([rank[found] << np.uint64(32) for found in tokens], np.uint64)
    packed |= _concat(rows, np.uint32)
    interruptible(packed.sort, len(packed))
    first_of = np.flatnonzero(np.concatenate([np.ones(min(len(packed), 1), bool), packed[1:] != packed[:-1]]))
    counts = np.diff(first_of, append=len(packed))
    kind = np.uint16 if counts.max(initial=0) < 1 << 16 else np.uint32
    pairs = packed[first_of]
    offsets = np.searchsorted(pairs, np.arange(len(words) + 1, dtype=np.uint64) << np.uint64(32))
    posted = (pairs & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return InvertedIndex(
        pa.array(words, pa.utf8()), offsets.astype(np.int64), posted, counts.astype(kind), _concat(lengths, np.int32)
    )


def _words(texts: pa.Array, codes: dict[str, int]) -> tuple[Numbers, Numbers]:
    """Return (term code, row) for every term of some texts; new terms are added to `codes`."""
    runs, which, rows = split_runs(texts)
    used = np.zeros(len(runs), bool)
    used[which] = True
    # The terms of all runs, concatenated, and the offset of each run.
    words: list[int] = []
    starts, counts = np.zeros(len(runs), np.int64), np.zeros(len(runs), np.int64)
    for code in paced(np.flatnonzero(used).tolist()):
        found = analyse_run(runs[code].as_py())
        starts[code], counts[code] = len(words), len(found)
        words += [codes.setdefault(word, len(codes)) for word in found]
    per_token = counts[which]
    first = np.repeat(starts[which] - (np.cumsum(per_token) - per_token), per_token)
    return np.array(words, np.int64)[first + np.arange(len(first))], np.repeat(rows, per_token)


def _merged_chunks(chunks: Iterable[pa.Array]) -> Iterator[pa.Array]:
    """Combine chunks until they are large enough to process together."""
    waiting: list[pa.Array] = []
    for chunk in chunks:
        waiting.append(chunk)
        if sum(part.nbytes for part in waiting) >= tuning.current.postings_chunk_bytes:
            yield pa.concat_arrays(waiting)
            waiting = []
    if waiting:
        yield pa.concat_arrays(waiting)


def _concat(parts: list[Any], kind: type[np.generic]) -> np.ndarray[Any, Any]:
    return np.concatenate([*parts, np.zeros(0, kind)]).astype(kind, copy=False)


def _arrays(index: InvertedIndex) -> dict[str, np.ndarray[Any, Any]]:
    text = index.words.cast(pa.large_utf8())
    _, ends, letters = text.buffers()
    return {
        "letters": np.frombuffer(letters, np.uint8) if letters is not None else np.zeros(0, np.uint8),
        "ends": np.frombuffer(ends, np.int64)[: len(text) + 1],
        "offsets": index.offsets,
        "rows": index.rows,
        "counts": index.counts,
        "lengths": index.lengths,
    }


def _read_index(entry: disk_cache.CacheEntry, row_count: int) -> InvertedIndex:
    arrays = entry.arrays
    ends = arrays["ends"]
    disk_cache.check(ends.dtype == np.int64 and len(ends) > 0, "'ends' is malformed")
    disk_cache.check(arrays["counts"].shape == arrays["rows"].shape, "'counts' and 'rows' have different lengths")
    disk_cache.check(arrays["lengths"].shape == (row_count,), "'lengths' has a wrong number of rows")
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(arrays["letters"])]
    words = pa.Array.from_buffers(pa.large_utf8(), len(ends) - 1, buffers)
    if not entry.trusted:
        disk_cache.check_offsets(ends, len(ends) - 1, len(arrays["letters"]), "ends")
        disk_cache.check_offsets(arrays["offsets"], len(ends) - 1, len(arrays["rows"]), "offsets")
        disk_cache.check_within(arrays["rows"], row_count, "rows")
        words.validate(full=True)
    return InvertedIndex(words, *(arrays[name] for name in ("offsets", "rows", "counts", "lengths")))
