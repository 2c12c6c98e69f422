"""Tokens of the values of one property, as sparse rows with weights.

A value is normalised (NFKD without marks, lower case) and split into words of letters and digits. The weight of a token
is its inverse document frequency, so that a rare word counts more than a frequent one.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checkpoint

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Scores = np.ndarray[Any, np.dtype[np.float64]]
_BATCH = 65_536


@dataclass(frozen=True)
class TokenRows:
    """The distinct tokens of each row: those of row `r` are `tokens[starts[r]:starts[r + 1]]`, in ascending order."""

    words: pa.Array
    """The token of each number, in order of their UTF-8 bytes."""
    starts: Numbers
    tokens: Numbers
    values: Numbers
    """A number for each row: equal for equal normalised values, -1 for null."""
    texts: pa.Array
    """The normalised value of each number."""

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.starts) - 1

    @cached_property
    def frequencies(self) -> Numbers:
        """The number of rows that contain each token."""
        return np.bincount(self.tokens, minlength=len(self.words))

    @cached_property
    def rows(self) -> Numbers:
        """The row of each entry of `tokens`."""
        return np.repeat(np.arange(self.count), np.diff(self.starts))

    @cached_property
    def scored(self) -> TokenScores:
        """The tokens with their weights."""
        weights = token_weights(self.frequencies, self.count)
        totals = np.bincount(self.rows, weights[self.tokens], minlength=self.count).astype(np.float64)
        return TokenScores(self.starts, self.tokens, weights, totals, self.values >= 0)

    def jaccard(self, left: Numbers, right: Numbers) -> Scores:
        """Return the weighted Jaccard similarity of pairs of rows; 0 if a row has no tokens."""
        return self.scored.jaccard(left, right)


def token_weights(frequencies: Numbers, count: int) -> Scores:
    """Return the inverse document frequency of tokens in a number of rows."""
    return np.asarray(np.log1p(count / np.maximum(frequencies, 1)), np.float64)


@dataclass(frozen=True)
class TokenScores:
    """The tokens of rows with the weight of each token, and the sum of the weights of each row."""

    starts: Numbers
    tokens: Numbers
    weights: Scores
    totals: Scores
    known: np.ndarray[Any, np.dtype[np.bool_]]
    """The rows that have a value."""

    def scores(self, left: Numbers, right: Numbers) -> Scores:
        """Return the similarity of pairs of rows; NaN if one has no value."""
        return np.where(self.known[left] & self.known[right], self.jaccard(left, right), np.nan)

    def jaccard(self, left: Numbers, right: Numbers) -> Scores:
        """Return the weighted Jaccard similarity of pairs of rows; 0 if a row has no tokens."""
        shared = np.zeros(len(left), np.float64)
        for first in range(0, len(left), _BATCH):
            checkpoint()
            part = slice(first, first + _BATCH)
            shared[part] = self._shared(left[part], right[part])
        union = self.totals[left] + self.totals[right] - shared
        found: Scores = np.divide(shared, union, out=np.zeros(len(left)), where=union > 0)
        return found

    def _shared(self, left: Numbers, right: Numbers) -> Scores:
        """Return the weight of the common tokens of pairs."""
        pairs, common = common_entries(self.starts, self.tokens, left, right)
        return np.bincount(pairs, self.weights[common], minlength=len(left)).astype(np.float64)


def common_entries(starts: Numbers, entries: Numbers, left: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
    """Return the entries that both rows of a pair have, and the number of the pair: entries that occur twice."""
    pair, found = [], []
    for rows in (left, right):
        lengths = starts[rows + 1] - starts[rows]
        offsets = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        pair.append(np.repeat(np.arange(len(rows)), lengths))
        found.append(entries[np.repeat(starts[rows], lengths) + offsets])
    size = int(max(map(np.max, found if len(found[0]) and len(found[1]) else [np.zeros(1)]))) + 1
    keys = np.sort(np.concatenate(pair) * size + np.concatenate(found))
    common = keys[1:][keys[1:] == keys[:-1]]
    return common // size, common % size


def distinct(numbers: Numbers) -> Numbers:
    """Return the distinct numbers, ascending. Sorting is several times faster than the hash table of `np.unique`."""
    found = np.sort(numbers)
    return found[np.diff(found, prepend=found[0] - 1) != 0] if len(found) else found


def normalised(values: pa.Array) -> pa.Array:
    """Return texts in lower case without marks, words separated by one space; null for null and empty texts."""
    texts = values if pa.types.is_string(values.type) else _texts(values)
    ascii_only = pc.equal(pc.binary_length(texts), pc.utf8_length(texts))
    if not pc.all(pc.fill_null(ascii_only, True)).as_py():
        plain = pc.fill_null(ascii_only, True).to_pylist()
        texts = pa.array(
            [
                text if same or text is None else unicodedata.normalize("NFKD", text)
                for text, same in zip(texts.to_pylist(), plain, strict=True)
            ],
            pa.utf8(),
        )
        texts = pc.replace_substring_regex(texts, r"\p{M}+", "")
    words = pc.replace_substring_regex(pc.utf8_lower(texts), r"[^\pL\pN]+", " ")
    words = pc.utf8_trim(words, " ")
    return pc.if_else(pc.equal(words, ""), None, words)


def _texts(values: pa.Array) -> pa.Array:
    """Return values as texts; the items of a list are separated by spaces."""
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        items = pa.ListArray.from_arrays(values.offsets, values.values.cast(pa.utf8()), mask=pc.is_null(values))
        return pc.binary_join(items, " ")
    return values.cast(pa.utf8())


def token_rows(values: pa.Array | pa.ChunkedArray) -> TokenRows:
    """Split the values of a property into tokens."""
    texts = normalised(one_array(values))
    coded = texts.dictionary_encode()
    value_codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    # Equal values are split once.
    split = pc.split_pattern(coded.dictionary, " ")
    flat = split.flatten().dictionary_encode()
    order = pc.array_sort_indices(flat.dictionary).to_numpy()
    words = flat.dictionary.take(order)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    starts = np.asarray(split.offsets).astype(np.int64)
    owner = np.repeat(np.arange(len(split)), np.diff(starts))
    count = max(len(words), 1)
    keys = distinct(owner * count + number[flat.indices.to_numpy()])
    of_value, of_token = np.divmod(keys, count)
    first = np.searchsorted(of_value, np.arange(len(split) + 1))
    known = value_codes >= 0
    lengths = np.where(known, (first[1:] - first[:-1])[value_codes] if len(split) else 0, 0)
    ends = np.concatenate(([0], np.cumsum(lengths)))
    offsets = np.arange(int(ends[-1])) - np.repeat(ends[:-1], lengths)
    from_ = np.repeat(np.where(known, first[value_codes] if len(split) else 0, 0), lengths)
    tokens = of_token[from_ + offsets] if len(of_token) else np.zeros(0, np.int64)
    return TokenRows(words, ends.astype(np.int64), tokens, value_codes, coded.dictionary)
