"""Inverted index of a text column: the rows that contain each term, and how often.

The index is built from the column, so a search returns the same rows and scores with or without an index on disk. It
consists of a sorted dictionary of terms, a compressed posting list per term (`posting_lists`) and the length of each
row. A large index is kept on disk and mapped: a query reads the lists of its terms. A small commit adds a segment with
its rows and skips deleted ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import kernels, tuning
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.entry_writer import EntryWriter
from omnigraph.engine.cache.row_mapping import RowPositions
from omnigraph.engine.cache.segments import SegmentBuilder, SegmentView, segments_of, without_rows
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData
from omnigraph.engine.cache.union_table import joined_segments
from omnigraph.engine.cache.visibility import VisibleTable
from omnigraph.engine.exec.cancellation import add_note, checkpoint, paced
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.search.analyzer import Scores
from omnigraph.engine.search.index_builder import Lengths, index_arrays, write_index
from omnigraph.engine.search.posting_lists import (
    BLOCK,
    BadPostings,
    RowNumbers,
    TermCounts,
)
from omnigraph.engine.search.term_postings import ARRAYS, RANGED, InvertedIndex, damaged, read_index

_K1, _B = 1.2, 0.75
WORDS = "postings"
"""The kind of the index in the disk cache. A change of the text analysis or of the format needs a new name."""
_NO_PLACES = np.zeros(0, np.int32)
_NO_ROWS = np.zeros(0, np.int64)
_FOUND_MAX = 1_024
"""Terms whose places and numbers of rows are kept."""
_SLACK = 1e-12
"""The share of all weights by which bounds are lowered: sums in different orders differ by rounding."""


@dataclass(frozen=True)
class _Part:
    """A segment, and the current rows of its rows."""

    index: InvertedIndex
    row_map: RowPositions | None
    """The current row of each row, -1 for deleted rows; None if only the number below is added."""
    first: int

    @property
    def place(self) -> tuple[RowPositions, int]:
        """The mapping as the kernels take it: an array, empty if there is none, and the number to add."""
        return (_NO_PLACES if self.row_map is None else self.row_map), self.first

    def live(self, rows: RowNumbers) -> Any:
        """Return the current rows of rows of the segment, without deleted ones."""
        if self.row_map is None:
            return rows.astype(np.int64) + self.first if self.first else rows
        there = self.row_map[rows]
        return there[there >= 0]


_Places = list[tuple[_Part, tuple[int, int]]]
"""The segments that contain a term, each with the place of its posting list."""


@dataclass(frozen=True)
class TermScores:
    """The scores of the rows with at least one of some terms. All other rows have a score of 0."""

    row_count: int
    held: Numbers
    """The rows; ascending unless `dense` is given."""
    values: Scores | None
    """The scores of these rows; None if `dense` is given."""
    dense: Scores | None = None
    """The scores of all rows."""

    @cached_property
    def rows(self) -> Numbers:
        """The rows with a score above 0, ascending."""
        if self.dense is None:
            return self.held
        return np.flatnonzero(self.dense) if len(self.held) * 8 > self.row_count else np.sort(self.held)

    def whole(self) -> Scores:
        """Return the score of every row."""
        if self.dense is not None:
            return self.dense
        scores = np.zeros(self.row_count)
        scores[self.held] = self.values
        return scores

    def of(self, numbers: Numbers) -> Scores:
        """Return the scores of some rows."""
        if self.dense is not None:
            return self.dense[numbers]
        assert self.values is not None
        scores = np.zeros(len(numbers))
        if len(self.held):
            at = np.searchsorted(self.held, numbers)
            at[at == len(self.held)] = 0
            known = self.held[at] == numbers
            scores[known] = self.values[at[known]]
        return scores

    def best_of(self, numbers: Numbers, wanted: int) -> tuple[Numbers, Scores]:
        """Return the positions of the best `wanted` of some rows, with ties, and their scores."""
        if self.dense is None:
            scores = self.of(numbers)
            found = best(scores, None, wanted)
            return found, scores[found]
        found = best(self.dense, numbers, wanted)
        return found, self.dense[numbers[found]]

    def best(self, wanted: int) -> tuple[Numbers, Scores]:
        """Return the rows among the best `wanted`, with ties, ascending, and their scores."""
        if self.dense is None:
            assert self.values is not None
            found = best(self.values, None, wanted)
            return self.held[found], self.values[found]
        rows = np.sort(self.held[best(self.dense, self.held, wanted)])
        return rows, self.dense[rows]


@dataclass(frozen=True)
class _Term:
    """A term of a query: its posting lists and the factor of its scores, which are below it."""

    places: _Places
    size: int
    """The number of its postings."""
    weight: float


@dataclass(frozen=True)
class TextStatistics:
    """The statistics of a text column on which scores depend."""

    texts: int
    """The number of rows that are not null."""
    terms: int
    """The number of their terms."""
    holding: Mapping[str, int]
    """Term → the number of rows that contain it."""


@dataclass(frozen=True)
class TextIndex:
    """The inverted index of a text column at one version."""

    view: SegmentView[InvertedIndex]
    given: TextStatistics | None = None
    """The statistics of the whole column, if the index covers only a part of it."""
    _found: dict[str, _Places] = field(init=False, default_factory=dict, repr=False, compare=False)
    """The places of the terms that queries used: a search of a dictionary compares many terms."""

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return self.view.nbytes + sum(part.nbytes for part in self.view.bodies) + self._norms.nbytes

    @cached_property
    def _parts(self) -> list[_Part]:
        row_of = self.view.row_of
        return [
            _Part(index, None if row_of is None else row_of[start : start + len(index.lengths)], start)
            for index, start in zip(self.view.bodies, self.view.starts, strict=True)
        ]

    @cached_property
    def row_count(self) -> int:
        """The number of rows."""
        stored_of = self.view.stored_of
        return sum(len(index.lengths) for index in self.view.bodies) if stored_of is None else len(stored_of)

    @cached_property
    def _totals(self) -> tuple[int, int]:
        """The number of rows that are not null, and the number of their terms."""
        if self.given is not None:
            return self.given.texts, self.given.terms
        texts = terms = 0
        for part in self._parts:
            if part.row_map is None:
                texts, terms = texts + int(part.index.totals[0]), terms + int(part.index.totals[1])
                continue
            lengths = part.index.lengths[part.row_map >= 0]
            known = int(np.count_nonzero(lengths))
            texts, terms = texts + known, terms + int(lengths.sum(dtype=np.int64)) - known
        return texts, terms

    @property
    def texts(self) -> int:
        """The number of rows that are not null."""
        return self._totals[0]

    def statistics(self, words: Iterable[str]) -> TextStatistics:
        """Return the statistics of some terms."""
        holding = {
            word: sum(self._holding(part, place) for part, place in self._find(word)) for word in self._prefetch(words)
        }
        return TextStatistics(*self._totals, holding)

    @cached_property
    def _norms(self) -> Scores:
        """The part of the BM25 denominator that depends on the length of a row, for each value of `lengths`."""
        texts, terms = self._totals
        mean = terms / texts if texts else 0.0
        longest = max((int(index.totals[2]) for index in self.view.bodies), default=0)
        lengths = np.arange(-1, longest, dtype=np.float64)
        norms: Scores = _K1 * (1 - _B + _B * lengths / (mean or 1.0))
        return norms

    def _find(self, word: str) -> _Places:
        """Return the segments that contain a term, each with the place of its posting list."""
        known = self._found.get(word)
        if known is None:
            found = [(part, part.index.find(word)) for part in self._parts]
            known = [(part, place) for part, place in found if place is not None]
            if len(self._found) >= _FOUND_MAX:
                self._found.clear()
            self._found[word] = known
        return known

    def _prefetch(self, words: Iterable[str]) -> list[str]:
        """Read what a search of some words needs from the object store; return each word once."""
        wanted = list(dict.fromkeys(words))
        for part in self._parts:
            part.index.prefetch([word for word in wanted if word not in self._found])
        return wanted

    def holding_all(self, words: Iterable[str]) -> Mask:
        """Return a mask of the rows that contain all words; no row if there are no words."""
        mask: Mask | None = None
        words = self._prefetch(words)
        for word in paced(words):
            held = self.matching([word])
            mask = held if mask is None else mask & held
            if not mask.any():
                return mask
        return mask if mask is not None else np.zeros(self.row_count, bool)

    def matching(self, words: Iterable[str]) -> Mask:
        """Return a mask of the rows that contain at least one of the words."""
        mask = np.zeros(self.row_count, bool)
        loops = kernels.find("postings")
        for word in paced(self._prefetch(words)):
            for part, place in self._find(word):
                if loops is None:
                    mask[part.live(part.index.postings(place)[0])] = True
                    continue
                part.index.count(place)
                if loops.mark((part.index.words_of(place), *place), len(part.index.lengths), part.place, mask) < 0:
                    raise damaged(BadPostings("a posting list has a row out of range"))
        return mask

    def fuzzy(self, words: Iterable[str], edits: int) -> Mask:
        """Return a mask of the rows that contain a term within `edits` edits of one of the words."""
        wanted = list(words)
        near = [word for index in self.view.bodies for word in index.near(wanted, edits)]
        return self.matching(dict.fromkeys(near))

    def bm25(self, words: Iterable[str]) -> Scores:
        """Return the BM25 score of every row; 0 without a matching term."""
        return self.scored(words).whole()

    def scored(self, words: Iterable[str]) -> TermScores:
        """Return the BM25 scores of the rows with at least one of the words."""
        found = [(word, places) for word in paced(self._prefetch(words)) if (places := self._find(word))]
        total = sum(part.index.count(place) for _, places in found for part, place in places)
        if total < self.row_count * tuning.current.postings_dense_share:
            return self._sparse_scores(found)
        loops = kernels.find("postings", total * tuning.current.postings_fallback_s)
        scores = np.zeros(self.row_count)
        if loops is None:
            for word, places in found:
                for rows, added in self._term_scores(word, places):
                    scores[rows] += added
            return TermScores(self.row_count, np.flatnonzero(scores), None, scores)
        touched = np.empty(min(total, self.row_count), np.int64)
        size = 0
        for word, places in found:
            weight = self._weight(word, sum(self._holding(part, place) for part, place in places))
            for part, place in places:
                size = self._add(loops, part, place, weight, scores, touched, size)
        return TermScores(self.row_count, touched[:size], None, scores)

    def _add(
        self,
        loops: Any,
        part: _Part,
        place: tuple[int, int],
        weight: float,
        scores: Scores,
        touched: Numbers,
        size: int,
    ) -> int:
        """Add the scores of a posting list to those of all rows; return the new number of touched rows."""
        where = (part.index.lengths_of(place), self._norms, weight, part.place)
        size = loops.score((part.index.words_of(place), *place), *where, scores, touched, size)
        if size < 0:
            raise damaged(BadPostings("a posting list has a row out of range"))
        return size

    def best(self, words: Iterable[str], wanted: int) -> tuple[Numbers, Scores]:
        """Return the rows with the best `wanted` scores, with ties, ascending, and their scores.

        The scores have the bits of `scored`, but not all rows are scored if there are many.
        """
        words = self._prefetch(words)
        loops = kernels.find("postings")
        found = [(word, places) for word in paced(words) if (places := self._find(word))]
        sizes = [sum(part.index.count(place) for part, place in places) for _, places in found]
        rows: Numbers | None = None
        some = len(found) == 1 or min(sizes, default=0) <= self.row_count * tuning.current.pruned_rows_share
        if loops is not None and wanted and found and some and sum(sizes) >= tuning.current.pruned_postings_min:
            terms = [
                _Term(places, size, self._weight(word, sum(self._holding(part, place) for part, place in places)))
                for (word, places), size in zip(found, sizes, strict=True)
            ]
            rows = self._best_of_one(loops, terms[0], wanted) if len(terms) == 1 else self._pruned(loops, terms, wanted)
        if rows is None:
            return self.scored(words).best(wanted)
        scores = np.zeros(len(rows))
        for term in terms:
            self._add_to(loops, rows, scores, term)
        chosen = best(scores, None, wanted)
        return rows[chosen], scores[chosen]

    def _best_of_one(self, loops: Any, term: _Term, wanted: int) -> Numbers:
        """Return the rows that can be among the best for one term, ascending; there is no array of all rows."""
        heap = np.zeros(wanted)
        held, scores = np.empty(term.size, np.int64), np.empty(term.size)
        size = 0
        for part, place in term.places:
            checkpoint()
            where = (part.index.lengths_of(place), self._norms, term.weight, part.place)
            size = loops.top((part.index.words_of(place), *place), *where, heap, (held, scores), size)
            if size < 0:
                raise damaged(BadPostings("a posting list has a row out of range"))
        return np.sort(held[:size][scores[:size] >= heap[0]])

    def _pruned(self, loops: Any, terms: list[_Term], wanted: int) -> Numbers | None:
        """Return the rows that can be among the best, ascending; None if it takes as long to score all rows.

        Terms are scored from the rarest on. When the others cannot lift a row that has none of the scored terms, only
        rows that can be among the best are looked up in the other lists, and after each list fewer are left.
        """
        ordered = sorted(terms, key=lambda term: term.size)
        slack = _SLACK * sum(term.weight for term in terms)
        reached = 0.0
        if wanted <= ordered[0].size <= self.row_count * tuning.current.pruned_first_share:
            rows, found = self._completed(loops, *self._rows_of(ordered[0]), ordered[1:], wanted, slack)
            reached = _least_of_best(found, wanted) - slack
            if reached > sum(term.weight for term in ordered[1:]):
                return rows[found >= reached]
        few = int(self.row_count * tuning.current.pruned_rows_share)
        scores = np.zeros(self.row_count)
        touched = np.empty(few, np.int64)
        size = 0
        while ordered:
            checkpoint()
            term = ordered.pop(0)
            if size + term.size > few:
                return None
            for part, place in term.places:
                size = self._add(loops, part, place, term.weight, scores, touched, size)
            rows = touched[:size]
            least = max(_least_of_best(scores[rows], wanted) - slack, reached)
            rest = sum(other.weight for other in ordered)
            if least > rest:
                rows = rows[scores[rows] + rest >= least]
                if len(rows) * BLOCK <= sum(other.size for other in ordered):
                    break
        rows = np.sort(rows)
        return self._completed(loops, rows, scores[rows], ordered, wanted, slack)[0]

    def _completed(
        self, loops: Any, rows: Numbers, scores: Scores, terms: list[_Term], wanted: int, slack: float
    ) -> tuple[Numbers, Scores]:
        """Add the scores of further terms to those of some rows, which are ascending; return the rows that can be among
        the best of them, with their scores.
        """
        for at, term in enumerate(terms):
            checkpoint()
            self._add_to(loops, rows, scores, term)
            least = _least_of_best(scores, wanted) - slack
            left = scores + sum(other.weight for other in terms[at + 1 :]) >= least
            rows, scores = rows[left], scores[left]
        return rows, scores

    def _rows_of(self, term: _Term) -> tuple[Numbers, Scores]:
        """Return the current rows of a term, ascending, and its part of their scores."""
        lists = [self._current(part, place) for part, place in term.places]
        rows = np.concatenate([rows for rows, _, _ in lists])
        scores = np.concatenate(
            [term.weight * counts / (counts + self._norms[lengths]) for _, counts, lengths in lists]
        )
        if len(rows) > 1 and (rows[1:] < rows[:-1]).any():
            order = np.argsort(rows)
            rows, scores = rows[order], scores[order]
        return rows, scores

    def _add_to(self, loops: Any, rows: Numbers, scores: Scores, term: _Term) -> None:
        """Add the scores of a term to those of some rows, which are ascending."""
        stored = rows if self.view.stored_of is None else self.view.stored_of[rows].astype(np.int64)
        for part, place in term.places:
            inside = np.flatnonzero((stored >= part.first) & (stored < part.first + len(part.index.lengths)))
            if self.view.stored_of is not None:
                inside = inside[np.argsort(stored[inside])]
            numbers = stored[inside] - part.first
            counts = np.zeros(len(numbers), np.int64)
            loops.counts_of(part.index.words_of(place), *place, numbers, len(numbers), counts)
            held = counts > 0
            inside, numbers, counts = inside[held], numbers[held], counts[held]
            scores[inside] += term.weight * counts / (counts + self._norms[part.index.lengths[numbers]])

    def _holding(self, part: _Part, place: tuple[int, int]) -> int:
        """Return the number of current rows of a posting list."""
        return part.index.count(place) if part.row_map is None else len(part.live(part.index.postings(place)[0]))

    def _weight(self, word: str, holding: int) -> float:
        if self.given is not None:
            holding = self.given.holding[word]
        if holding:
            add_note(f"'{word}' in {holding:,} rows")
        return math.log(1 + (self.texts - holding + 0.5) / (holding + 0.5)) * (_K1 + 1)

    def _sparse_scores(self, found: list[tuple[str, _Places]]) -> TermScores:
        """Score few rows without an array of all rows."""
        terms = [pair for word, places in found for pair in self._term_scores(word, places)]
        rows = np.unique(np.concatenate([*(rows for rows, _ in terms), _NO_ROWS]))
        scores = np.zeros(len(rows))
        for numbers, added in terms:
            scores[np.searchsorted(rows, numbers)] += added
        return TermScores(self.row_count, rows, scores)

    def _term_scores(self, word: str, places: _Places) -> list[tuple[Numbers, Scores]]:
        """Return the current rows of a term, segment by segment, and what it adds to their scores."""
        with kernels.timed_fallback():
            lists = [self._current(part, place) for part, place in places]
            weight = self._weight(word, sum(len(now) for now, _, _ in lists))
            return [(now, weight * counts / (counts + self._norms[lengths])) for now, counts, lengths in lists]

    @staticmethod
    def _current(part: _Part, place: tuple[int, int]) -> tuple[Numbers, TermCounts, Lengths]:
        """Return the current rows of a posting list, the occurrences of the term in them, and their lengths."""
        rows, counts = part.index.postings(place)
        lengths = part.index.lengths[rows]
        if part.row_map is None:
            return rows.astype(np.int64) + part.first, counts, lengths
        now = part.row_map[rows].astype(np.int64)
        left = now >= 0
        return now[left], counts[left], lengths[left]


def _least_of_best(scores: Scores, wanted: int) -> float:
    """Return the least of the best `wanted` scores; 0 if there are fewer."""
    found = best(scores, None, wanted)
    return float(scores[found].min()) if len(found) >= wanted else 0.0


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
        return data.derived(
            f"words:{data.field_id(name)}", lambda: TextIndex(segments_of(data, name, text_segments(data, name)))
        )
    if isinstance(data, VisibleTable):
        return _visible_index(data, name)
    return data.derived(f"words:{name}", lambda: build_index(_visible_texts(data, name)))


def _visible_index(data: VisibleTable, name: str) -> TextIndex:
    """Return the index of the visible texts of a column: the others are not there, in no statistics either."""
    every = index_of(data.base, name)
    seen = data.value_mask(name)
    if seen is None:
        return every
    return data.derived(f"words:{data.field_id(name)}", lambda: TextIndex(without_rows(every.view, seen)))


def _visible_texts(data: ColumnSource, name: str) -> pa.Array:
    """Return a column with null in place of the values of hidden rows."""
    column, seen = data.column(name), data.visible
    return column if seen is None else pc.if_else(pa.array(seen), column, pa.scalar(None, column.type))


def text_segments(data: TableData, name: str) -> SegmentBuilder[InvertedIndex]:
    """Return the builder of the segments of a text column."""

    def write(fragments: Sequence[int] | None, writer: EntryWriter) -> None:
        budget = data.cache.memory
        write_index(data.stream(name, fragments), writer, None if budget is None else budget.build_bytes)

    constants = tuning.current
    return SegmentBuilder(
        WORDS,
        constants.long_texts_disk_rows_min if data.has_long_values else constants.postings_disk_rows_min,
        lambda fragments: build_inverted_index(data.stream(name, fragments)),
        write,
        read_index,
        constants.long_texts_disk_rows_min if data.has_long_values else None,
        ranged=RANGED,
    )


def build_index(column: pa.Array, given: TextStatistics | None = None) -> TextIndex:
    """Build the index of a text column; with `given`, of a part of a column with these statistics."""
    return TextIndex(SegmentView((build_inverted_index([column]),), (0,)), given)


def build_inverted_index(chunks: Iterable[pa.Array]) -> InvertedIndex:
    """Build the inverted index of a text column in memory."""
    arrays = index_arrays(chunks)
    letters, ends, offsets, words, lengths, totals = (arrays[name] for name in ARRAYS)
    return InvertedIndex(letters, ends, offsets, words, lengths, totals)
