"""Words of texts: one analysis for stored text and for queries, and an index of a column in memory.

A text is cut into runs of letters and digits; runs of more than 40 bytes are dropped; the rest is put in
lower case, stemmed (English, Porter 2), dropped if it is a stop word, and folded to plain letters. The
index is built from the column itself, so a search gives the same rows and scores whether or not the table
has a text index.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import snowballstemmer  # type: ignore[import-untyped]

from omnigraph.engine.data import Numbers
from omnigraph.storage.indexes import STOP_WORDS

_NOT_A_WORD = r"[^\p{L}\p{N}]+"
_BYTES_MAX = 40
_K1, _B = 1.2, 0.75
_STOP = frozenset(STOP_WORDS)
_stemmer = snowballstemmer.stemmer("english")
_stemming = Lock()
"""The stemmer keeps the word it works on in itself."""

Scores = np.ndarray[Any, np.dtype[np.float64]]


def analyse(text: str) -> list[str]:
    """The words of a text, in order."""
    runs = pc.split_pattern_regex(pa.array([text], pa.utf8()), pattern=_NOT_A_WORD)[0].as_py()
    words = (analyse_word(run) for run in runs if run)
    return [word for word in words if word is not None]


@lru_cache(maxsize=200_000)
def analyse_word(word: str) -> str | None:
    """What a run of letters and digits counts as; None when it is dropped."""
    if len(word.encode()) > _BYTES_MAX:
        return None
    with _stemming:
        stem = str(_stemmer.stemWord(word.lower()))
    if not stem or stem in _STOP:
        return None
    return stem if stem.isascii() else _fold(stem)


def _fold(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


@dataclass(frozen=True)
class TextIndex:
    """Which rows of a column hold which words, and how often."""

    words: dict[str, int]
    offsets: Numbers
    rows: Numbers
    counts: Numbers
    lengths: Numbers
    texts: int
    """How many rows have a text at all."""

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return int(
            self.offsets.nbytes + self.rows.nbytes + self.counts.nbytes + self.lengths.nbytes + 80 * len(self.words)
        )

    def postings(self, code: int) -> tuple[Numbers, Numbers]:
        """The rows that hold a word, and how often."""
        start, end = self.offsets[code], self.offsets[code + 1]
        return self.rows[start:end], self.counts[start:end]

    def matching(self, words: Iterable[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which rows hold at least one of the words."""
        mask = np.zeros(len(self.lengths), bool)
        for word in words:
            code = self.words.get(word)
            if code is not None:
                mask[self.postings(code)[0]] = True
        return mask

    def fuzzy(self, words: Iterable[str], edits: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which rows hold a word within some edits of one of the words."""
        wanted = list(words)
        near = [known for known in self.words if any(within(known, word, edits) for word in wanted)]
        return self.matching(near)

    def bm25(self, words: Iterable[str]) -> Scores:
        """The relevance of every row; 0 where no word is held."""
        scores = np.zeros(len(self.lengths))
        mean = self.lengths.sum() / self.texts if self.texts else 0.0
        for word in dict.fromkeys(words):
            code = self.words.get(word)
            if code is None:
                continue
            rows, counts = self.postings(code)
            idf = math.log(1 + (self.texts - len(rows) + 0.5) / (len(rows) + 0.5))
            norm = _K1 * (1 - _B + _B * self.lengths[rows] / mean)
            scores[rows] += idf * counts * (_K1 + 1) / (counts + norm)
        return scores


def build_index(column: pa.Array) -> TextIndex:
    """Index a column of texts; each distinct run of letters is analysed once."""
    parts = pc.split_pattern_regex(column, pattern=_NOT_A_WORD)
    rows = pc.list_parent_indices(parts).to_numpy(zero_copy_only=False).astype(np.int64)
    encoded = pc.list_flatten(parts).dictionary_encode()
    runs = encoded.dictionary.to_pylist()
    words: dict[str, int] = {}
    meaning = np.full(len(runs) + 1, -1, np.int64)
    for code, run in enumerate(runs):
        word = analyse_word(run) if run else None
        if word is not None:
            meaning[code] = words.setdefault(word, len(words))
    codes = meaning[encoded.indices.to_numpy(zero_copy_only=False)] if len(rows) else np.zeros(0, np.int64)
    kept = codes >= 0
    codes, rows = codes[kept], rows[kept]
    lengths = np.bincount(rows, minlength=len(column)).astype(np.int64)
    pairs, counts = np.unique((codes.astype(np.uint64) << np.uint64(32)) | rows.astype(np.uint64), return_counts=True)
    offsets = np.searchsorted((pairs >> np.uint64(32)).astype(np.int64), np.arange(len(words) + 1))
    posted = (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return TextIndex(words, offsets, posted, counts.astype(np.int64), lengths, len(column) - column.null_count)


def within(a: str, b: str, edits: int) -> bool:
    """Whether the Levenshtein distance of two words is at most `edits`."""
    if abs(len(a) - len(b)) > edits:
        return False
    if edits == 0 or a == b:
        return a == b
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        current = [i]
        for j, y in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[-1] + 1, previous[j - 1] + (x != y)))
        if min(current) > edits:
            return False
        previous = current
    return previous[-1] <= edits
