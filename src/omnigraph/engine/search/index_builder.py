"""Building of inverted indexes in bounded memory.

Texts are split into runs of letters and digits, and each distinct run is analysed once. The postings of a limited
amount of text form a partial index: they are arranged by term with a counting sort and encoded. Partial indexes of
consecutive rows are merged by concatenating the lists of each term. An index for the disk cache keeps them in files
meanwhile. A second thread arranges and encodes one partial index while the next text is read and split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDone
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import kernels, tuning
from omnigraph.engine.cache.entry_writer import EntryWriter
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.cancellation import checkpoint, paced
from omnigraph.engine.search.analyzer import LETTERS, analyse, analyse_run, split_runs
from omnigraph.engine.search.posting_lists import PADDING, RowNumbers, TermCounts, Words, encode_lists

AnyArray = np.ndarray[Any, Any]
Lengths = np.ndarray[Any, Any]
"""The number of terms of each row plus one; 0 for null."""

GUIDED = 1_024
"""Of so many terms of the dictionary, the guide has one."""
_PARTIALS_HELD = 3
_INT32_MAX = np.iinfo(np.int32).max
_UINT16_MAX = np.iinfo(np.uint16).max
_UINT32_MAX = np.iinfo(np.uint32).max


@dataclass(frozen=True)
class PartialIndex:
    """The terms of some consecutive rows, ascending, and their posting lists."""

    terms: pa.Array
    offsets: Numbers
    """The first word of the list of each term, then the end of the last list."""
    words: Words


@dataclass(frozen=True)
class _Postings:
    """The postings of some consecutive rows, in the order of the rows."""

    start: int
    row_postings: Numbers
    terms: RowNumbers
    counts: TermCounts


# -- building ----------------------------------------------------------------------------------------


def index_arrays(chunks: Iterable[pa.Array]) -> dict[str, AnyArray]:
    """Return the arrays of the inverted index of a text column, built in memory."""
    build = IndexBuild(None)
    build.run(chunks)
    arrays: dict[str, list[AnyArray]] = {"letters": [], "ends": [], "offsets": [], "words": []}
    kinds = _dictionary_kinds(build.partials)
    for name, array in _merged_arrays(build.partials, kinds):
        arrays[name].append(array)
    found = {name: np.concatenate([*parts, np.zeros(0, kinds[name])]) for name, parts in arrays.items()}
    return {**found, **build.row_arrays()}


def write_index(chunks: Iterable[pa.Array], writer: EntryWriter, bytes_max: int | None = None) -> None:
    """Write the arrays of the inverted index of a text column to the disk cache.

    `bytes_max` bounds the memory for texts and postings; None uses the default.
    """
    build = IndexBuild(writer.scratch(), bytes_max)
    build.run(chunks)
    kinds = _dictionary_kinds(build.partials)
    with writer.streams(kinds) as files:
        for name, array in _merged_arrays(build.partials, kinds):
            files[name].write(np.ascontiguousarray(array).tobytes())
    for name, array in build.row_arrays().items():
        writer.put(name, array)
    for name, array in _guide(writer.read("letters"), writer.read("ends")).items():
        writer.put(name, array)


def _guide(letters: AnyArray, ends: AnyArray) -> dict[str, AnyArray]:
    """Return every `GUIDED`th term, from the first on, as bytes and ends like those of the dictionary."""
    places = np.arange(0, len(ends) - 1, GUIDED)
    terms = [letters[start:end] for start, end in zip(ends[places].tolist(), ends[places + 1].tolist(), strict=True)]
    return {
        "guide_letters": np.concatenate([*terms, np.zeros(0, np.uint8)]),
        "guide_ends": np.cumsum([0, *map(len, terms)], dtype=np.int64),
    }


class IndexBuild:
    """The build of one index: texts in, partial indexes out."""

    def __init__(self, folder: Path | None, bytes_max: int | None = None) -> None:
        self.partials: list[PartialIndex] = []
        self.partial_bytes = tuning.current.postings_partial_bytes
        """Bytes of text and postings that form a partial index. Another one is encoded at the same time, in a copy."""
        if bytes_max is not None:
            self.partial_bytes = min(self.partial_bytes, bytes_max // _PARTIALS_HELD)
        self._folder = folder
        self._lengths: list[Lengths] = []
        self._rows = 0
        self._bytes = 0

    def run(self, chunks: Iterable[pa.Array]) -> None:
        """Build the partial indexes of all texts."""
        splitter = _Splitter()
        postings: list[_Postings] = []
        held = 0
        with _Encoder() as encoder:
            for texts in _merged_chunks(chunks):
                checkpoint()
                self._bytes += texts.nbytes
                self._load_kernels()
                found, lengths = splitter.postings(texts, self._rows)
                lengths[np.asarray(texts.is_null().to_numpy(zero_copy_only=False), dtype=bool)] = -1
                self._lengths.append((lengths + 1).astype(np.uint32))
                self._rows += len(texts)
                postings.append(found)
                held += texts.nbytes + len(found.terms) * tuning.current.posting_bytes
                if held >= self.partial_bytes:
                    self._keep(encoder.result())
                    encoder.start(partial(_encoded, splitter.partial(), postings))
                    postings, held = [], 0
            self._keep(encoder.result())
            if postings:
                self._keep(_encoded(splitter.partial(), postings))

    def _load_kernels(self) -> None:
        """Load the kernels before a long build, even if they must be compiled: the fallbacks take far longer."""
        if self._bytes > tuning.current.postings_compile_bytes and kernels.find("postings") is None:
            kernels.load()

    def _keep(self, made: PartialIndex | None) -> None:
        if made is not None:
            self.partials.append(made if self._folder is None else _spilled(made, self._folder, len(self.partials)))

    def row_arrays(self) -> dict[str, AnyArray]:
        """Return the lengths of all rows, and the number of texts, of terms and of terms in the longest text."""
        lengths = np.concatenate([*self._lengths, np.zeros(0, np.uint32)])
        texts = int(np.count_nonzero(lengths))
        longest = int(lengths.max(initial=0))
        totals = [texts, int(lengths.sum(dtype=np.int64)) - texts, longest]
        kind = np.uint16 if longest <= _UINT16_MAX else np.uint32
        return {"lengths": lengths.astype(kind), "totals": np.array(totals, np.int64)}


class _Encoder:
    """A second thread, started when it is needed. It holds one partial index at a time."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._running: Future[PartialIndex] | None = None

    def __enter__(self) -> _Encoder:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def start(self, make: Callable[[], PartialIndex]) -> None:
        """Make a partial index in the other thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="omnigraph-postings")
        self._running = self._pool.submit(make)

    def result(self) -> PartialIndex | None:
        """Return the partial index that was started; None if none was. Checks the limits while waiting."""
        running, self._running = self._running, None
        while running is not None:
            checkpoint()
            try:
                return running.result(timeout=tuning.current.poll_s)
            except NotDone:
                if running.done():
                    raise
        return None


def _merged_chunks(chunks: Iterable[pa.Array]) -> Iterator[pa.Array]:
    """Combine chunks until they are large enough to process together; split larger ones."""
    limit = tuning.current.postings_chunk_bytes
    waiting: list[pa.Array] = []
    size = 0
    for chunk in chunks:
        step = max(len(chunk) * limit // max(chunk.nbytes, 1), 1)
        for start in range(0, len(chunk), step):
            part = chunk.slice(start, step)
            waiting.append(part)
            size += part.nbytes
            if size >= limit:
                yield pa.concat_arrays(waiting)
                waiting, size = [], 0
    if waiting:
        yield pa.concat_arrays(waiting)


# -- splitting ---------------------------------------------------------------------------------------


@dataclass
class _Growing:
    """An array that grows by doubling."""

    kind: type[np.generic]
    fill: int = 0
    size: int = 0
    array: AnyArray = field(init=False)

    def __post_init__(self) -> None:
        self.array = np.full(1024, self.fill, self.kind)

    def reserve(self, size: int) -> AnyArray:
        """Return the array with room for at least `size` values."""
        if size > len(self.array):
            grown = np.full(max(size, 2 * len(self.array)), self.fill, self.kind)
            grown[: len(self.array)] = self.array
            self.array = grown
        return self.array

    def extend(self, values: Sequence[int]) -> None:
        """Append values."""
        end = self.size + len(values)
        self.reserve(end)[self.size : end] = values
        self.size = end


class _Splitter:
    """Splits texts into terms. Distinct runs and their terms are kept from one chunk to the next."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._runs = _RunTable()
        self._codes: dict[str, int] = {}
        self._term_starts = _Growing(np.int64)
        self._term_starts.extend([0])
        self._terms = _Growing(np.uint32)
        self._most = 0
        """The largest number of terms of a run."""
        self._last_row = _Growing(np.int64, -1)
        self._last_place = _Growing(np.int64)
        self._holding = _Growing(np.int64)

    def postings(self, texts: pa.Array, start: int) -> tuple[_Postings, Numbers]:
        """Return the postings of texts, which begin at a row, and the number of terms of each."""
        loops = kernels.find("postings", texts.nbytes * tuning.current.split_fallback_s)
        if loops is None:
            with kernels.timed_fallback():
                return self._postings_numpy(texts, start)
        tokens, row_tokens = self._runs.split(loops, texts)
        self._analyse_new_runs()
        starts = self._term_starts.array
        room = len(tokens) if self._most <= 1 else int(np.diff(starts)[tokens].sum())
        terms, counts = np.empty(room, np.uint32), np.empty(room, np.uint32)
        lengths, row_postings = np.empty(len(texts), np.int64), np.empty(len(texts), np.int64)
        seen = [grown.reserve(len(self._codes)) for grown in (self._last_row, self._last_place, self._holding)]
        where = (tokens, row_tokens, start, len(texts), starts, self._terms.array, *seen)
        size = loops.collect(*where, terms, counts, lengths, row_postings)
        return _Postings(start, row_postings, terms[:size], counts[:size]), lengths

    def _analyse_new_runs(self) -> None:
        ends: list[int] = []
        terms: list[int] = []
        end = self._terms.size
        for run in paced(self._runs.new_runs()):
            found = analyse_run(run) if run.isascii() else analyse(run)
            end += len(found)
            self._most = max(self._most, len(found))
            ends.append(end)
            terms += [self._codes.setdefault(word, len(self._codes)) for word in found]
        self._terms.extend(terms)
        self._term_starts.extend(ends)

    def _postings_numpy(self, texts: pa.Array, start: int) -> tuple[_Postings, Numbers]:
        found, rows = _terms_numpy(texts, self._codes)
        lengths = np.bincount(rows, minlength=len(texts))
        pairs = (rows.astype(np.uint64) << np.uint64(32)) | found.astype(np.uint64)
        packed, counts = np.unique(pairs, return_counts=True)
        terms = (packed & np.uint64(_UINT32_MAX)).astype(np.uint32)
        holding = self._holding.reserve(len(self._codes))
        holding += np.bincount(terms, minlength=len(holding))
        row_postings = np.bincount((packed >> np.uint64(32)).astype(np.int64), minlength=len(texts))
        return _Postings(start, row_postings, terms, counts.astype(np.uint32)), lengths

    def partial(self) -> tuple[list[str], Numbers]:
        """Return all terms by code and the number of postings of each, and begin to count again.

        If there are many distinct runs, they are dropped.
        """
        codes = self._codes
        holding = self._holding.reserve(len(codes))[: len(codes)].copy()
        self._holding.array[:] = 0
        if max(len(codes), self._runs.count) > tuning.current.postings_runs_max:
            self._forget()
        return list(codes), holding


class _RunTable:
    """The distinct runs of letters and digits, in a hash table with open addressing."""

    def __init__(self) -> None:
        self.count = 0
        self._analysed = 0
        self._used = 0
        self._letters = _Growing(np.uint8)
        self._ends = _Growing(np.int64)
        self._slots = np.zeros(1 << 16, np.uint64)

    def split(self, loops: Any, texts: pa.Array) -> tuple[RowNumbers, Numbers]:
        """Return the code of every run of some texts, and the number of runs of each text."""
        data, starts = _text_buffers(texts)
        tokens = np.empty((int(starts[-1]) + len(texts)) // 2 + 1, np.uint32)
        row_tokens = np.empty(len(texts), np.int64)
        state = np.array([self.count, self._used, 0], np.int64)
        row = 0
        while row < len(texts):
            room = len(self._slots) // 2
            letters, ends = self._letters.array, self._ends.reserve(room + 1)
            where = (data, starts, row, len(texts), LETTERS, self._slots, len(self._slots))
            row = loops.split(*where, letters, len(letters), ends, room, state, tokens, row_tokens)
            self.count, self._used = int(state[0]), int(state[1])
            if row < len(texts):
                self._grow(loops, int(starts[row + 1] - starts[row]))
        return tokens[: int(state[2])], row_tokens

    def _grow(self, loops: Any, text_bytes: int) -> None:
        """Make room for more runs, at least for those of a text."""
        if self.count >= len(self._slots) // 2:
            self._slots = np.zeros(4 * len(self._slots), np.uint64)
            loops.rehash(self._slots, len(self._slots), self._letters.array, self._ends.array, self.count)
        else:
            self._letters.reserve(len(self._letters.array) + max(text_bytes, len(self._letters.array)))

    def new_runs(self) -> list[str]:
        """Return the runs that were not returned before, in the order of their codes."""
        first, self._analysed = self._analysed, self.count
        if first == self.count:
            return []
        ends = self._ends.array[first : self.count + 1]
        letters = self._letters.array[ends[0] : ends[-1]]
        buffers = [None, pa.py_buffer(np.ascontiguousarray(ends - ends[0])), pa.py_buffer(letters)]
        runs: list[str] = pa.Array.from_buffers(pa.large_utf8(), len(ends) - 1, buffers).to_pylist()
        return runs


def _text_buffers(texts: pa.Array) -> tuple[AnyArray, Numbers]:
    """Return the bytes of some texts and the offset of each; null has no bytes."""
    if texts.null_count:
        texts = pc.fill_null(texts, "")
    _, ends, letters = texts.buffers()
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    starts = np.frombuffer(ends, kind)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    data = np.frombuffer(letters, np.uint8) if letters is not None else np.zeros(0, np.uint8)
    return data[starts[0] : starts[-1]], starts - starts[0]


def _terms_numpy(texts: pa.Array, codes: dict[str, int]) -> tuple[Numbers, Numbers]:
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


# -- partial indexes ---------------------------------------------------------------------------------


def _encoded(known: tuple[list[str], Numbers], postings: list[_Postings]) -> PartialIndex:
    """Arrange postings by term and encode them."""
    names, holding = known
    used = np.flatnonzero(holding)
    every = pa.array(names, pa.large_utf8())
    terms = every.take(pa.array(used))
    order = np.asarray(pc.array_sort_indices(terms).to_numpy(zero_copy_only=False)).astype(np.int64)
    ranked = used[order]
    starts = np.concatenate([[0], np.cumsum(holding[ranked])]).astype(np.int64)
    places = np.zeros(len(names), np.int64)
    places[ranked] = starts[:-1]
    rows, counts = np.empty(int(starts[-1]), np.uint32), np.empty(int(starts[-1]), np.uint32)
    while postings:
        # Each part is freed when it is arranged.
        _arrange(postings.pop(0), places, rows, counts)
    words, offsets = encode_lists(rows, counts, starts)
    return PartialIndex(terms.take(pa.array(order)), offsets, words)


def _arrange(some: _Postings, places: Numbers, rows: RowNumbers, counts: TermCounts) -> None:
    """Copy postings to the next places of their terms."""
    loops = kernels.find("postings", len(some.terms) * tuning.current.postings_fallback_s)
    if loops is not None:
        where = (some.terms, some.counts, some.row_postings, some.start, len(some.row_postings))
        loops.arrange(*where, places, rows, counts)
        return
    with kernels.timed_fallback():
        by_term = np.argsort(some.terms, kind="stable")
        terms = some.terms[by_term]
        first = np.flatnonzero(np.diff(terms.astype(np.int64), prepend=-1))
        sizes = np.diff(first, append=len(terms))
        at = np.repeat(places[terms[first]] - first, sizes) + np.arange(len(terms))
        places[terms[first]] += sizes
        rows[at] = (some.start + np.repeat(np.arange(len(some.row_postings)), some.row_postings))[by_term]
        counts[at] = some.counts[by_term]


def _spilled(made: PartialIndex, folder: Path, number: int) -> PartialIndex:
    """Write a partial index to files and return it mapped."""

    def kept(label: str, array: AnyArray) -> AnyArray:
        if not array.nbytes:
            return array
        path = folder / f"{number}-{label}"
        array.tofile(path)
        return np.asarray(np.memmap(path, array.dtype, "r", shape=array.shape))

    letters, ends = _dictionary_arrays(made.terms)
    buffers = [None, pa.py_buffer(kept("ends", ends)), pa.py_buffer(kept("letters", letters))]
    terms = pa.Array.from_buffers(pa.large_utf8(), len(ends) - 1, buffers)
    return PartialIndex(terms, kept("offsets", made.offsets), kept("words", made.words))


def _dictionary_arrays(terms: pa.Array) -> tuple[AnyArray, Numbers]:
    """Return the bytes of terms of type large_utf8, and the offset of each with the end of the last."""
    _, ends, letters = terms.buffers()
    if ends is None:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    bounds = np.frombuffer(ends, np.int64)[terms.offset : terms.offset + len(terms) + 1]
    data = np.frombuffer(letters, np.uint8) if letters is not None else np.zeros(0, np.uint8)
    return data[bounds[0] : bounds[-1]], bounds - bounds[0]


# -- merging -----------------------------------------------------------------------------------------


def _dictionary_kinds(partials: list[PartialIndex]) -> dict[str, np.dtype[Any]]:
    """Return the types of the arrays of a merged index."""
    letters = sum(len(_dictionary_arrays(one.terms)[0]) for one in partials)
    words = sum(len(one.words) for one in partials)
    return {
        "letters": np.dtype(np.uint8),
        "ends": np.dtype(np.int32 if letters <= _INT32_MAX else np.int64),
        "offsets": np.dtype(np.uint32 if words <= _UINT32_MAX else np.int64),
        "words": np.dtype(np.uint32),
    }


def _merged_arrays(partials: list[PartialIndex], kinds: dict[str, np.dtype[Any]]) -> Iterator[tuple[str, AnyArray]]:
    """Yield the arrays of the merged index in parts: (name, part). Terms are merged range by range."""
    letters_size = words_size = 0
    yield "ends", np.zeros(1, kinds["ends"])
    yield "offsets", np.zeros(1, kinds["offsets"])
    for ranges in _term_ranges(partials):
        checkpoint()
        terms, words, sizes = _merged_range(partials, ranges)
        letters, ends = _dictionary_arrays(terms)
        yield "letters", letters
        yield "ends", (ends[1:] + letters_size).astype(kinds["ends"])
        yield "offsets", (np.cumsum(sizes) + words_size).astype(kinds["offsets"])
        letters_size += len(letters)
        for part in words:
            words_size += len(part)
            yield "words", part
    yield "words", np.zeros(PADDING, np.uint32)


def _term_ranges(partials: list[PartialIndex]) -> Iterator[list[tuple[int, int]]]:
    """Yield ranges of terms: of each partial index the first and the last position. A range has a limited size."""
    firsts = [0] * len(partials)
    ends = [len(one.terms) for one in partials]
    step = max(tuning.current.postings_merge_terms // max(len(partials), 1), 1)
    while firsts != ends:
        # The least of the terms that end a step of their partial index ends the range.
        bounds = [
            one.terms[first + step].as_py()
            for one, first, end in zip(partials, firsts, ends, strict=True)
            if first + step < end
        ]
        bound = min(bounds) if bounds else None
        stops = [
            end if bound is None else _position(one.terms, bound, first, end)
            for one, first, end in zip(partials, firsts, ends, strict=True)
        ]
        yield list(zip(firsts, stops, strict=True))
        firsts = stops


def _position(terms: pa.Array, word: str, low: int, high: int) -> int:
    """Return the position of the first term that is not less than a word."""
    while low < high:
        middle = (low + high) // 2
        if terms[middle].as_py() < word:
            low = middle + 1
        else:
            high = middle
    return low


def _merged_range(
    partials: list[PartialIndex], ranges: list[tuple[int, int]]
) -> tuple[pa.Array, Iterator[Words], Numbers]:
    """Return the terms of a range, the words of their lists in parts, and the number of words of each list."""
    if len(partials) == 1:
        ((start, stop),) = ranges
        offsets = partials[0].offsets[start : stop + 1]
        words = partials[0].words[offsets[0] : offsets[-1]]
        return partials[0].terms.slice(start, stop - start), iter([words]), np.diff(offsets)
    parts = [one.terms.slice(start, stop - start) for one, (start, stop) in zip(partials, ranges, strict=True)]
    encoded = pa.concat_arrays(parts).dictionary_encode()
    ascending = np.asarray(pc.array_sort_indices(encoded.dictionary).to_numpy(zero_copy_only=False)).astype(np.int64)
    rank = np.empty(len(ascending), np.int64)
    rank[ascending] = np.arange(len(ascending))
    ranks = rank[encoded.indices.to_numpy(zero_copy_only=False)]
    source = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    bounds = [one.offsets[start : stop + 1] for one, (start, stop) in zip(partials, ranges, strict=True)]
    begins = np.concatenate([bound[:-1] for bound in bounds])
    sizes = np.concatenate([np.diff(bound) for bound in bounds])
    # By term, then by partial index.
    order = np.argsort(ranks, kind="stable")
    lists = _gathered([one.words for one in partials], source[order], begins[order], sizes[order])
    totals = np.bincount(ranks, weights=sizes, minlength=len(ascending)).astype(np.int64)
    return encoded.dictionary.take(pa.array(ascending)), lists, totals


def _gathered(sources: list[Words], source: Numbers, begins: Numbers, sizes: Numbers) -> Iterator[Words]:
    """Yield the words of lists, given by source, first word and size, in parts of limited size."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        checkpoint()
        before = int(ends[first - 1]) if first else 0
        stop = max(first + 1, int(np.searchsorted(ends, before + tuning.current.postings_merge_words, side="right")))
        out = np.empty(int(ends[stop - 1]) - before, np.uint32)
        places = ends[first:stop] - sizes[first:stop] - before
        for number, words in enumerate(sources):
            chosen = np.flatnonzero(source[first:stop] == number)
            if len(chosen):
                _copy_ranges(words, begins[first:stop][chosen], sizes[first:stop][chosen], out, places[chosen])
        yield out
        first = stop


def _copy_ranges(words: Words, begins: Numbers, sizes: Numbers, out: Words, places: Numbers) -> None:
    total = int(sizes.sum())
    loops = kernels.find("postings", total * tuning.current.postings_fallback_s)
    if loops is not None:
        loops.copy(words, begins, sizes, len(sizes), out, places)
        return
    with kernels.timed_fallback():
        within = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        out[np.repeat(places, sizes) + within] = words[np.repeat(begins, sizes) + within]
