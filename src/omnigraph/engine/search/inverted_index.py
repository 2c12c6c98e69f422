"""An index of words: which rows of a text column hold which words, and how often.

It is built from the column itself, so a search gives the same rows and scores whether or not the table has a text
index. Postings are arrays, word by word in the order of words, rows ascending. A large index is kept on disk and
mapped; a small commit adds its rows beside it and leaves out those that are gone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import kernels, tuning
from omnigraph.engine.cache import disk_cache
from omnigraph.engine.cache.row_mapping import RowPositions
from omnigraph.engine.cache.segments import SegmentBuilder, SegmentView, segments_of
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData
from omnigraph.engine.cache.union_table import joined_segments
from omnigraph.engine.exec.cancellation import checkpoint, paced, say
from omnigraph.engine.exec.native import stoppable
from omnigraph.engine.search.analyzer import Scores, all_within, analyse_run, cut

_K1, _B = 1.2, 0.75
WORDS = "bigrams"
"""What the kept index is called: another name for every other way to cut texts into words."""
_NO_PLACES = np.zeros(0, np.int32)
_NO_ROWS = np.zeros(0, np.int64)

RowNumbers = np.ndarray[Any, np.dtype[np.uint32]]
TermCounts = np.ndarray[Any, Any]


@dataclass(frozen=True)
class InvertedIndex:
    """The words of some rows."""

    words: pa.Array
    """Every word once, ascending."""
    offsets: Numbers
    rows: RowNumbers
    counts: TermCounts
    lengths: np.ndarray[Any, np.dtype[np.int32]]
    """How many words each row has; -1 where there is no text."""

    @property
    def nbytes(self) -> int:
        """What it takes in memory; what is mapped takes none of its own."""
        if isinstance(self.rows.base, np.memmap):
            return 0
        return int(sum(array.nbytes for array in (self.offsets, self.rows, self.counts, self.lengths, self.words)))

    def find(self, word: str) -> tuple[RowNumbers, TermCounts]:
        """The rows that hold a word, and how often."""
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
        """The words within some edits of one of the wanted."""
        lengths = pc.utf8_length(self.words).to_numpy(zero_copy_only=False)
        found: list[str] = []
        for word in dict.fromkeys(wanted):
            checkpoint()
            close = self.words.take(pa.array(np.flatnonzero(np.abs(lengths - len(word)) <= edits))).to_pylist()
            found += [close[at] for at in np.flatnonzero(all_within(close, word, edits)).tolist()]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class TextIndex:
    """A text column at one version."""

    view: SegmentView[InvertedIndex]

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return self.view.nbytes + sum(part.nbytes for part in self.view.bodies) + 16 * len(self._lengths)

    @cached_property
    def _parts(self) -> list[tuple[InvertedIndex, RowPositions | None]]:
        """Every part, and which rows of this version its rows are: -1 for one that is no more, None for no change."""
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
        """How many rows have a text at all."""
        return int(np.count_nonzero(self._lengths >= 0))

    @cached_property
    def _norms(self) -> Scores:
        """The part of a score's divisor that only the row's length decides."""
        mean = self._lengths[self._lengths > 0].sum() / self.texts if self.texts else 0.0
        norms: Scores = _K1 * (1 - _B + _B * self._lengths / (mean or 1.0))
        return norms

    def _find(self, word: str) -> list[tuple[RowNumbers, TermCounts, RowPositions | None]]:
        """The rows that hold a word, part by part: in the numbers of the part, how often, and which rows they are."""
        found = [(*part.find(word), places) for part, places in self._parts]
        return [one for one in found if len(one[0])]

    def holding_all(self, words: Iterable[str]) -> Mask:
        """Which rows hold every one of the words; none if there are no words."""
        mask: Mask | None = None
        for word in paced(list(dict.fromkeys(words))):
            held = self.matching([word])
            mask = held if mask is None else mask & held
            if not mask.any():
                return mask
        return mask if mask is not None else np.zeros(len(self._lengths), bool)

    def matching(self, words: Iterable[str]) -> Mask:
        """Which rows hold at least one of the words."""
        mask = np.zeros(len(self._lengths), bool)
        for word in paced(dict.fromkeys(words)):
            for rows, _, places in self._find(word):
                mask[_left(rows, places)] = True
        return mask

    def fuzzy(self, words: Iterable[str], edits: int) -> Mask:
        """Which rows hold a word within some edits of one of the words."""
        wanted = list(words)
        near = [word for part in self.view.bodies for word in part.near(wanted, edits)]
        return self.matching(dict.fromkeys(near))

    def bm25(self, words: Iterable[str]) -> Scores:
        """The relevance of every row; 0 where no word is held."""
        return self.scored(words)[0]

    def scored(self, words: Iterable[str]) -> tuple[Scores, Numbers]:
        """The relevance of every row, and the rows where it is above 0, ascending."""
        scores = np.zeros(len(self._lengths))
        loops = kernels.find("bm25")
        touched: Numbers = np.empty(len(scores) if loops is not None else 0, np.int64)
        size = 0
        for word in paced(dict.fromkeys(words)):
            found = self._find(word)
            holding = sum(len(_left(rows, places)) for rows, _, places in found)
            if not holding:
                continue
            say(f"'{word}' in {holding:,} rows")
            idf = math.log(1 + (self.texts - holding + 0.5) / (holding + 0.5))
            weight = idf * (_K1 + 1)
            for rows, counts, places in found:
                if loops is None:
                    _add(scores, rows, counts, self._norms, weight, places)
                    continue
                moved, there = places is not None, _NO_PLACES if places is None else places
                size = int(loops.add(scores, rows, counts, self._norms, weight, there, moved, touched, size))
        if loops is None or size * 8 > len(scores):
            return scores, np.flatnonzero(scores)
        return scores, np.sort(touched[:size])


def _left(rows: RowNumbers, places: RowPositions | None) -> Any:
    """Where the rows of a part are, those that are no more left out."""
    if places is None:
        return rows
    there = places[rows]
    return there[there >= 0]


def _add(
    scores: Scores, rows: RowNumbers, counts: TermCounts, norms: Scores, weight: float, places: RowPositions | None
) -> None:
    """Add what one word is worth to the scores of the rows that hold it."""
    with kernels.twin():
        there = rows if places is None else places[rows]
        if places is not None:
            left = there >= 0
            there, counts = there[left], counts[left]
        scores[there] += weight * counts / (counts + norms[there])


def best(scores: Scores, numbers: Numbers | None, wanted: int) -> Numbers:
    """The places in `numbers` (all rows without) whose score is above 0 and among the best `wanted`, ties included."""
    count = len(scores) if numbers is None else len(numbers)
    if not wanted or not count:
        return _NO_ROWS
    loops = kernels.find("bm25")
    if loops is not None:
        chosen = _NO_ROWS if numbers is None else numbers
        found: Numbers = stoppable(lambda: loops.best(scores, chosen, numbers is None, min(wanted, count)), count)
        return found
    with kernels.twin():
        some = scores if numbers is None else scores[numbers]
        places = np.flatnonzero(some > 0)
        if len(places) > wanted:
            last = np.partition(some[places], len(places) - wanted)[len(places) - wanted]
            places = places[some[places] >= last]
        return places


def standing(scores: Scores, numbers: Numbers | None, wanted: Scores) -> tuple[Numbers, Numbers]:
    """For each of a few scores how many of those of `numbers` (all rows without) are above it, and how many equal."""
    loops = kernels.find("bm25")
    if loops is not None:
        found: tuple[Numbers, Numbers] = loops.standing(
            scores, _NO_ROWS if numbers is None else numbers, numbers is None, wanted
        )
        return found
    with kernels.twin():
        ascending = np.sort(scores if numbers is None else scores[numbers])
        up_to = np.searchsorted(ascending, wanted, side="right")
        return len(ascending) - up_to, up_to - np.searchsorted(ascending, wanted, side="left")


# -- building ----------------------------------------------------------------------------------------


def index_of(data: TableData, name: str) -> TextIndex:
    """The index of a column, made once per version on top of what was made before."""

    def make(fragments: Sequence[int] | None) -> InvertedIndex:
        return build_inverted_index(data.stream(name, fragments))

    def write(fragments: Sequence[int] | None, maker: disk_cache.EntryWriter) -> None:
        for label, array in _arrays(make(fragments)).items():
            maker.put(label, array)

    if data.union is not None:
        members = data.union.members
        views = [index_of(member, name).view for member in members]
        if not views:
            return build_index(data.column(name))
        return data.derived(f"words:{data.column_key(name)}", lambda: TextIndex(joined_segments(views, members)))
    recipe = SegmentBuilder(WORDS, tuning.current.postings_disk_rows_min, make, write, _read_index)
    return data.derived(f"words:{data.field_id(name)}", lambda: TextIndex(segments_of(data, name, recipe)))


def build_index(column: pa.Array) -> TextIndex:
    """The index of a column of texts."""
    return TextIndex(SegmentView((build_inverted_index([column]),), (0,)))


def build_inverted_index(chunks: Iterable[pa.Array]) -> InvertedIndex:
    """The words of a column of texts; each distinct run of letters is analysed once."""
    codes: dict[str, int] = {}
    tokens: list[RowNumbers] = []
    rows: list[RowNumbers] = []
    lengths: list[np.ndarray[Any, np.dtype[np.int32]]] = []
    start = 0
    for texts in _larger(chunks):
        checkpoint()
        found, places = _words(texts, codes)
        count = np.bincount(places, minlength=len(texts)).astype(np.int32)
        count[np.asarray(texts.is_null().to_numpy(zero_copy_only=False), dtype=bool)] = -1
        tokens.append(found.astype(np.uint32))
        rows.append((places + start).astype(np.uint32))
        lengths.append(count)
        start += len(texts)
    words = stoppable(lambda: sorted(codes), len(codes))
    rank = np.empty(len(words), np.uint64)
    rank[[codes[word] for word in words]] = np.arange(len(words), dtype=np.uint64)
    packed = _concat([rank[found] << np.uint64(32) for found in tokens], np.uint64)
    packed |= _concat(rows, np.uint32)
    stoppable(packed.sort, len(packed))
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
    """(which word, in which row) for every word of some texts; `codes` learns the new ones."""
    runs, which, rows = cut(texts)
    used = np.zeros(len(runs), bool)
    used[which] = True
    # The words of each run one after the other, and where those of a run begin.
    words: list[int] = []
    starts, counts = np.zeros(len(runs), np.int64), np.zeros(len(runs), np.int64)
    for code in paced(np.flatnonzero(used).tolist()):
        found = analyse_run(runs[code].as_py())
        starts[code], counts[code] = len(words), len(found)
        words += [codes.setdefault(word, len(codes)) for word in found]
    per_token = counts[which]
    first = np.repeat(starts[which] - (np.cumsum(per_token) - per_token), per_token)
    return np.array(words, np.int64)[first + np.arange(len(first))], np.repeat(rows, per_token)


def _larger(chunks: Iterable[pa.Array]) -> Iterator[pa.Array]:
    """Chunks put together until they are worth the effort."""
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


def _read_index(arrays: Mapping[str, np.ndarray[Any, Any]], row_count: int) -> InvertedIndex:
    ends = arrays["ends"]
    disk_cache.check(ends.dtype == np.int64 and len(ends) > 0, "'ends' is malformed")
    disk_cache.check_offsets(ends, len(ends) - 1, len(arrays["letters"]), "ends")
    disk_cache.check_offsets(arrays["offsets"], len(ends) - 1, len(arrays["rows"]), "offsets")
    disk_cache.check_within(arrays["rows"], row_count, "rows")
    disk_cache.check(arrays["counts"].shape == arrays["rows"].shape, "'counts' has another length than 'rows'")
    disk_cache.check(arrays["lengths"].shape == (row_count,), "'lengths' has another number of rows")
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(arrays["letters"])]
    words = pa.Array.from_buffers(pa.large_utf8(), len(ends) - 1, buffers)
    words.validate(full=True)
    return InvertedIndex(words, *(arrays[name] for name in ("offsets", "rows", "counts", "lengths")))
