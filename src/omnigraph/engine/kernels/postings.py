"""Splitting of texts into runs, coding and scoring of postings.

The numpy fallbacks are in `engine.search.index_builder`, `posting_lists` and `inverted_index`; `posting_lists`
describes the format of a list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from omnigraph.engine.kernels.heaps import replace_least
from omnigraph.engine.kernels.native_library import Loop, NativeLibrary
from omnigraph.engine.kernels.packed_bits import HEAD_WORDS, bits_at, block_at, mask_of

RUN_BYTES_MAX = 40
"""Longer runs of ASCII letters and digits have no term."""


def _split(
    data: Any,
    starts: Any,
    first: int,
    count: int,
    lower: Any,
    slots: Any,
    slot_count: int,
    letters: Any,
    letters_max: int,
    ends: Any,
    runs_max: int,
    state: Any,
    tokens: Any,
    row_tokens: Any,
) -> int:
    runs, used, size = state[0], state[1], state[2]
    mask = np.uint64(slot_count - 1)
    full = False
    row = first
    while row < count and not full:
        at, end = np.int64(starts[row]), np.int64(starts[row + 1])
        begin_size = size
        while at < end:
            if lower[data[at]] == 0:
                at += 1
                continue
            begin = at
            plain = True
            while at < end and lower[data[at]] != 0:
                if data[at] >= 128:
                    plain = False
                at += 1
            length = at - begin
            if plain and length > RUN_BYTES_MAX:
                continue
            code = np.uint64(14695981039346656037)
            for place in range(begin, at):
                letter = lower[data[place]] if plain else data[place]
                code = (code ^ np.uint64(letter)) * np.uint64(1099511628211)
            code = code ^ (code >> np.uint64(29))
            tag = code >> np.uint64(32)
            slot = code & mask
            known = np.int64(-1)
            while slots[slot] != np.uint64(0):
                held = slots[slot]
                if held >> np.uint64(32) == tag:
                    candidate = np.int64(held & np.uint64(0xFFFFFFFF)) - 1
                    start = np.int64(ends[candidate])
                    if np.int64(ends[candidate + 1]) - start == length:
                        same = True
                        for place in range(length):
                            letter = lower[data[begin + place]] if plain else data[begin + place]
                            if letters[start + place] != letter:
                                same = False
                                break
                        if same:
                            known = candidate
                            break
                slot = (slot + np.uint64(1)) & mask
            if known < 0:
                if runs >= runs_max or used + length > letters_max:
                    full = True
                    break
                for place in range(length):
                    letters[used + place] = lower[data[begin + place]] if plain else data[begin + place]
                used += length
                known = runs
                runs += 1
                ends[runs] = used
                slots[slot] = (tag << np.uint64(32)) | np.uint64(runs)
            tokens[size] = known
            size += 1
        if full:
            size = begin_size
        else:
            row_tokens[row] = size - begin_size
            row += 1
    state[0], state[1], state[2] = runs, used, size
    return row


def _rehash(slots: Any, slot_count: int, letters: Any, ends: Any, runs: int) -> int:
    mask = np.uint64(slot_count - 1)
    for run in range(runs):
        code = np.uint64(14695981039346656037)
        for place in range(np.int64(ends[run]), np.int64(ends[run + 1])):
            code = (code ^ np.uint64(letters[place])) * np.uint64(1099511628211)
        code = code ^ (code >> np.uint64(29))
        slot = code & mask
        while slots[slot] != np.uint64(0):
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = ((code >> np.uint64(32)) << np.uint64(32)) | np.uint64(run + 1)
    return runs


def _collect(
    tokens: Any,
    row_tokens: Any,
    start: int,
    count: int,
    term_starts: Any,
    terms: Any,
    last_row: Any,
    last_place: Any,
    holding: Any,
    posted: Any,
    counts: Any,
    lengths: Any,
    row_postings: Any,
) -> int:
    size = 0
    at = 0
    for place in range(count):
        row = start + place
        begin = size
        total = np.int64(0)
        for _ in range(row_tokens[place]):
            run = tokens[at]
            at += 1
            for each in range(term_starts[run], term_starts[run + 1]):
                term = terms[each]
                total += 1
                if last_row[term] == row:
                    counts[last_place[term]] += 1
                else:
                    last_row[term] = row
                    last_place[term] = size
                    posted[size] = term
                    counts[size] = 1
                    holding[term] += 1
                    size += 1
        lengths[place] = total
        row_postings[place] = size - begin
    return size


def _arrange(
    posted: Any, counts: Any, row_postings: Any, start: int, count: int, places: Any, rows: Any, arranged: Any
) -> int:
    at = 0
    for row in range(count):
        for _ in range(row_postings[row]):
            place = places[posted[at]]
            places[posted[at]] = place + 1
            rows[place] = start + row
            arranged[place] = counts[at]
            at += 1
    return at


def _encode(rows: Any, counts: Any, starts: Any, lists: int, block: int, words: Any, offsets: Any) -> int:
    size = 0
    for number in range(lists):
        offsets[number] = size
        first = starts[number]
        while first < starts[number + 1]:
            stop = min(first + block, starts[number + 1])
            gaps = np.uint64(0)
            extra = np.uint64(counts[first]) - np.uint64(1)
            for at in range(first + 1, stop):
                gaps |= np.uint64(rows[at]) - np.uint64(rows[at - 1]) - np.uint64(1)
                extra |= np.uint64(counts[at]) - np.uint64(1)
            gap_bits, count_bits = np.int64(0), np.int64(0)
            while gaps != np.uint64(0):
                gap_bits += 1
                gaps >>= np.uint64(1)
            while extra != np.uint64(0):
                count_bits += 1
                extra >>= np.uint64(1)
            words[size] = (stop - first - 1) | (gap_bits << 8) | (count_bits << 16)
            words[size + 1] = rows[first]
            size += 2
            held, fill = np.uint64(0), np.int64(0)
            for at in range(first + 1, stop):
                held |= (np.uint64(rows[at]) - np.uint64(rows[at - 1]) - np.uint64(1)) << np.uint64(fill)
                fill += gap_bits
                if fill >= 32:
                    words[size] = held & np.uint64(0xFFFFFFFF)
                    size += 1
                    held >>= np.uint64(32)
                    fill -= 32
            for at in range(first, stop):
                held |= (np.uint64(counts[at]) - np.uint64(1)) << np.uint64(fill)
                fill += count_bits
                if fill >= 32:
                    words[size] = held & np.uint64(0xFFFFFFFF)
                    size += 1
                    held >>= np.uint64(32)
                    fill -= 32
            if fill > 0:
                words[size] = held & np.uint64(0xFFFFFFFF)
                size += 1
            first = stop
    offsets[lists] = size
    return size


def _copy(words: Any, begins: Any, sizes: Any, count: int, out: Any, places: Any) -> int:
    for number in range(count):
        begin, place = begins[number], places[number]
        for at in range(sizes[number]):
            out[place + at] = words[begin + at]
    return count


def _count(words: Any, start: int, stop: int) -> int:
    found = 0
    at = start
    while at < stop:
        count, gap_bits, count_bits, at = block_at(words, at)
        if gap_bits > 32 or count_bits > 32 or at > stop:
            return -1
        found += count
    return found


def _decode(words: Any, start: int, stop: int, row_count: int, rows: Any, counts: Any) -> int:
    found = 0
    at = start
    while at < stop:
        row, begin = np.int64(words[at + 1]), at + HEAD_WORDS
        count, gap_bits, count_bits, at = block_at(words, at)
        mask, count_mask = mask_of(gap_bits), mask_of(count_bits)
        bit, count_bit = np.int64(0), (count - 1) * gap_bits
        for place in range(count):
            if place > 0:
                row += bits_at(words, begin, bit, mask) + 1
                bit += gap_bits
            rows[found] = row
            counts[found] = bits_at(words, begin, count_bit, count_mask) + 1
            count_bit += count_bits
            found += 1
        if row >= row_count:
            return -1
    return found


def _score(
    words: Any,
    start: int,
    stop: int,
    row_count: int,
    lengths: Any,
    norms: Any,
    weight: float,
    row_map: Any,
    moved: int,
    first: int,
    scores: Any,
    touched: Any,
    touched_count: int,
) -> int:
    size_of_touched = touched_count
    at = start
    while at < stop:
        row, begin = np.int64(words[at + 1]), at + HEAD_WORDS
        count, gap_bits, count_bits, at = block_at(words, at)
        mask, count_mask = mask_of(gap_bits), mask_of(count_bits)
        bit, count_bit = np.int64(0), (count - 1) * gap_bits
        for place in range(count):
            if place > 0:
                row += bits_at(words, begin, bit, mask) + 1
                bit += gap_bits
            times = np.float64(bits_at(words, begin, count_bit, count_mask) + 1)
            count_bit += count_bits
            if row >= row_count:
                return -1
            now = np.int64(row_map[row]) if moved else row + first
            if now >= 0:
                if scores[now] == 0:
                    touched[size_of_touched] = now
                    size_of_touched += 1
                scores[now] += weight * times / (times + norms[lengths[row]])
    return size_of_touched


def _mark(words: Any, start: int, stop: int, row_count: int, row_map: Any, moved: int, first: int, mask: Any) -> int:
    at = start
    while at < stop:
        row, begin = np.int64(words[at + 1]), at + HEAD_WORDS
        count, gap_bits, _, at = block_at(words, at)
        low = mask_of(gap_bits)
        bit = np.int64(0)
        for place in range(count):
            if place > 0:
                row += bits_at(words, begin, bit, low) + 1
                bit += gap_bits
            if row >= row_count:
                return -1
            now = np.int64(row_map[row]) if moved else row + first
            if now >= 0:
                mask[now] = 1
    return 0


def _top(
    words: Any,
    start: int,
    stop: int,
    row_count: int,
    lengths: Any,
    norms: Any,
    weight: float,
    row_map: Any,
    moved: int,
    first: int,
    heap: Any,
    wanted: int,
    rows: Any,
    scores: Any,
    size: int,
) -> int:
    found = size
    at = start
    while at < stop:
        row, begin = np.int64(words[at + 1]), at + HEAD_WORDS
        count, gap_bits, count_bits, at = block_at(words, at)
        mask, count_mask = mask_of(gap_bits), mask_of(count_bits)
        bit, count_bit = np.int64(0), (count - 1) * gap_bits
        for place in range(count):
            if place > 0:
                row += bits_at(words, begin, bit, mask) + 1
                bit += gap_bits
            times = np.float64(bits_at(words, begin, count_bit, count_mask) + 1)
            count_bit += count_bits
            if row >= row_count:
                return -1
            now = np.int64(row_map[row]) if moved else row + first
            if now >= 0:
                score = weight * times / (times + norms[lengths[row]])
                if score >= heap[0]:
                    rows[found] = now
                    scores[found] = score
                    found += 1
                    if score > heap[0]:
                        replace_least(heap, wanted, score)
    return found


def _counts_of(words: Any, start: int, stop: int, rows: Any, row_total: int, counts: Any) -> int:
    at = start
    wanted = 0
    while at < stop and wanted < row_total:
        row, begin = np.int64(words[at + 1]), at + HEAD_WORDS
        count, gap_bits, count_bits, at = block_at(words, at)
        while wanted < row_total and rows[wanted] < row:
            wanted += 1
        if wanted == row_total or (at < stop and rows[wanted] >= np.int64(words[at + 1])):
            continue
        mask, count_mask = mask_of(gap_bits), mask_of(count_bits)
        bit, count_bit = np.int64(0), (count - 1) * gap_bits
        for place in range(count):
            if place > 0:
                row += bits_at(words, begin, bit, mask) + 1
                bit += gap_bits
            while wanted < row_total and rows[wanted] < row:
                wanted += 1
            if wanted == row_total:
                break
            if rows[wanted] == row:
                counts[wanted] = bits_at(words, begin, count_bit + place * count_bits, count_mask) + 1
                wanted += 1
    return wanted


_SCORE = ("float64*", "float64", "int32*", "int64", "int64", "float64&", "int64&", "int64")
_TOP = (*("float64*", "float64", "int32*", "int64", "int64", "float64&", "int64", "int64&", "float64&", "int64"),)
LOOPS = {
    "postings_split": Loop(
        _split,
        (
            *("uint8*", "int64*", "int64", "int64", "uint8*", "uint64&", "int64", "uint8&", "int64", "int64&"),
            *("int64", "int64&", "uint32&", "int64&"),
        ),
    ),
    "postings_rehash": Loop(_rehash, ("uint64&", "int64", "uint8*", "int64*", "int64")),
    "postings_collect": Loop(
        _collect,
        (
            *("uint32*", "int64*", "int64", "int64", "int64*", "uint32*", "int64&", "int64&", "int64&"),
            *("uint32&", "uint32&", "int64&", "int64&"),
        ),
    ),
    "postings_arrange": Loop(
        _arrange, ("uint32*", "uint32*", "int64*", "int64", "int64", "int64&", "uint32&", "uint32&")
    ),
    "postings_encode": Loop(_encode, ("uint32*", "uint32*", "int64*", "int64", "int64", "uint32&", "int64&")),
    "postings_copy": Loop(_copy, ("uint32*", "int64*", "int64*", "int64", "uint32&", "int64*")),
    "postings_count": Loop(_count, ("uint32*", "int64", "int64")),
    "postings_decode": Loop(_decode, ("uint32*", "int64", "int64", "int64", "uint32&", "uint32&")),
    "postings_score_16": Loop(_score, ("uint32*", "int64", "int64", "int64", "uint16*", *_SCORE)),
    "postings_score_32": Loop(_score, ("uint32*", "int64", "int64", "int64", "uint32*", *_SCORE)),
    "postings_mark": Loop(_mark, ("uint32*", "int64", "int64", "int64", "int32*", "int64", "int64", "uint8&")),
    "postings_top_16": Loop(_top, ("uint32*", "int64", "int64", "int64", "uint16*", *_TOP)),
    "postings_top_32": Loop(_top, ("uint32*", "int64", "int64", "int64", "uint32*", *_TOP)),
    "postings_counts_of": Loop(_counts_of, ("uint32*", "int64", "int64", "int64*", "int64", "int64&")),
}


class Kernels:
    """Calls of the compiled loops."""

    def __init__(self, library: NativeLibrary) -> None:
        def loop(name: str) -> Callable[..., int]:
            return library.function(f"postings_{name}", LOOPS[f"postings_{name}"])

        self.split, self.rehash, self.collect = loop("split"), loop("rehash"), loop("collect")
        self.arrange, self.encode, self.copy = loop("arrange"), loop("encode"), loop("copy")
        self.count, self.decode, self.counts_of = loop("count"), loop("decode"), loop("counts_of")
        self._mark = loop("mark")
        self._tops = {np.dtype(np.uint16): loop("top_16"), np.dtype(np.uint32): loop("top_32")}
        self._scores = {np.dtype(np.uint16): loop("score_16"), np.dtype(np.uint32): loop("score_32")}

    def score(
        self,
        postings: tuple[Any, int, int],
        lengths: Any,
        norms: Any,
        weight: float,
        place: tuple[Any, int],
        scores: Any,
        touched: Any,
        size: int,
    ) -> int:
        """Add the score of one term to the rows of a posting list; append rows that had no score to `touched`.

        `postings` are the words of all lists, and the first word and the end of the list. `norms` contains the norm of
        each length. `place` maps rows of the segment to current rows: an array, empty if they differ by a number only,
        and that number. Returns the new size of `touched`; -1 for a list with a row outside the segment.
        """
        words, start, stop = postings
        row_map, first = place
        where = (words, start, stop, len(lengths), lengths, norms, weight, row_map, len(row_map) > 0, first)
        return self._scores[lengths.dtype](*where, scores, touched, size)

    def mark(self, postings: tuple[Any, int, int], row_count: int, place: tuple[Any, int], mask: Any) -> int:
        """Set the mask of the current rows of a posting list; -1 for a list with a row outside the segment."""
        row_map, first = place
        return self._mark(*postings, row_count, row_map, len(row_map) > 0, first, mask.view(np.uint8))

    def top(
        self,
        postings: tuple[Any, int, int],
        lengths: Any,
        norms: Any,
        weight: float,
        place: tuple[Any, int],
        heap: Any,
        found: tuple[Any, Any],
        size: int,
    ) -> int:
        """Append the rows of a list whose score reaches the least score of the heap, and their scores.

        The heap contains the best scores so far and is updated. The other parameters are those of `score`.
        """
        words, start, stop = postings
        row_map, first = place
        where = (words, start, stop, len(lengths), lengths, norms, weight, row_map, len(row_map) > 0, first)
        return self._tops[lengths.dtype](*where, heap, len(heap), *found, size)
