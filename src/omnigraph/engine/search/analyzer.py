"""Text analysis: terms of stored text and of queries.

A text is split into runs of letters and digits. Chinese, Japanese and Korean letters inside a run, which are written
without spaces, are split into bigrams. Of the other runs, those of more than 40 bytes are dropped; the rest are
lowercased, stemmed (English, Porter 2), dropped if they are stop words, and folded to plain letters.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.checkpoints import checkpoint, paced
from omnigraph.engine import tuning
from omnigraph.engine.cache.table_cache import Numbers

_NOT_A_WORD = r"[^\p{L}\p{N}]+"
_BYTES_MAX = 40
_CJK_LETTERS = (
    "\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e"
    "\u3192-\u319f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uf900-\ufaff"
    "\uff66-\uff9d\uffa0-\uffdc\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
"""Hangul, kana, bopomofo and Han."""
_CJK = re.compile(f"[{_CJK_LETTERS}]")
_CJK_PARTS = re.compile(f"[{_CJK_LETTERS}]+|[^{_CJK_LETTERS}]+")
_IS_LETTER = np.array([chr(code).isalnum() and code < 128 for code in range(256)])
_LOWER = np.array([ord(chr(code).lower()) if code < 128 else code for code in range(256)], np.uint8)
LETTERS = np.where(_IS_LETTER | (np.arange(256) >= 128), _LOWER, 0).astype(np.uint8)
"""The lower-case form of each ASCII letter or digit, itself for each byte of another character, and 0 for the rest."""
_STOP = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "  # noqa: SIM905
    "this to was will with".split()
)
_UNCHANGED_ENDS = frozenset("0123456789abcfhjkopquvwxz")
"""The stemmer removes or replaces a suffix, and no suffix ends with one of these."""


def _english_stemmer() -> Any:
    """Return the English stemmer. Its package imports those of all languages, which takes longer than a search."""
    found = find_spec("snowballstemmer")
    if found is not None and find_spec("Stemmer") is None:
        package = ModuleType("omnigraph_snowball")
        package.__path__ = list(found.submodule_search_locations or ())
        sys.modules[package.__name__] = package
        try:
            return import_module(f"{package.__name__}.english_stemmer").EnglishStemmer()
        except (ImportError, AttributeError):
            # Another release of the package has other modules.
            del sys.modules[package.__name__]
    return import_module("snowballstemmer").stemmer("english")


_stemmer = _english_stemmer()
_stemming = Lock()
"""The stemmer keeps the current word as state and is not thread-safe."""

Scores = np.ndarray[Any, np.dtype[np.float64]]


def analyse(text: str) -> list[str]:
    """Return the terms of a text, in order."""
    runs = "".join(_spaced(text[start : start + tuning.current.text_batch_chars]) for start in _starts(text)).split()
    return [word for run in paced(runs) for word in analyse_run(run)]


def analyse_run(run: str) -> list[str]:
    """Return the terms of a run of letters and digits, in order."""
    if run.isascii() or _CJK.search(run) is None:
        word = analyse_word(run)
        return [] if word is None else [word]
    found: list[str] = []
    # NFKC maps half-width and decomposed letters to their standard forms.
    for part in _CJK_PARTS.findall(unicodedata.normalize("NFKC", run)):
        if _CJK.match(part):
            found += [_fold(part[at : at + 2]) for at in paced(range(len(part) - 1))] or [_fold(part)]
        else:
            found += analyse_run(part)
    return found


def _spaced(text: str) -> str:
    """Replace every character that is neither letter nor digit by a space."""
    return "".join(letter if letter.isalnum() else " " for letter in text)


def _starts(text: str) -> Iterator[int]:
    for start in range(0, len(text), tuning.current.text_batch_chars):
        checkpoint()
        yield start


@lru_cache(maxsize=200_000)
def analyse_word(word: str) -> str | None:
    """Return the term of a run of letters and digits; None if it is dropped."""
    if len(word.encode()) > _BYTES_MAX:
        return None
    stem = word.lower()
    if stem[-1:] not in _UNCHANGED_ENDS:
        with _stemming:
            stem = str(_stemmer.stemWord(stem))
    if not stem or stem in _STOP:
        return None
    return stem if stem.isascii() else _fold(stem)


def _fold(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def split_runs(texts: pa.Array) -> tuple[pa.Array, Numbers, Numbers]:
    """Split texts into runs of letters and digits: (distinct runs, index of each run among them, row of each run).

    Runs of ASCII texts are lowercased: they are found by scanning bytes, several times faster.
    """
    texts = pc.fill_null(texts.cast(pa.utf8()), "")
    plain = np.asarray(pc.string_is_ascii(texts).to_numpy(zero_copy_only=False), dtype=bool)
    if plain.all():
        return _split_ascii(texts)
    if not plain.any():
        return _split_unicode(texts)
    rows = np.flatnonzero(plain), np.flatnonzero(~plain)
    some, which, at = _split_ascii(texts.take(pa.array(rows[0])))
    others, which_other, at_other = _split_unicode(texts.take(pa.array(rows[1])))
    return (
        pa.concat_arrays([some, others]),
        np.concatenate([which, which_other + len(some)]),
        np.concatenate([rows[0][at], rows[1][at_other]]),
    )


def _split_unicode(texts: pa.Array) -> tuple[pa.Array, Numbers, Numbers]:
    parts = pc.split_pattern_regex(texts, pattern=_NOT_A_WORD)
    rows = pc.list_parent_indices(parts).to_numpy(zero_copy_only=False).astype(np.int64)
    runs = pc.list_flatten(parts)
    some = np.asarray(pc.not_equal(runs, "").to_numpy(zero_copy_only=False), dtype=bool)
    encoded = runs.filter(pa.array(some)).dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), rows[some]


def _split_ascii(texts: pa.Array) -> tuple[pa.Array, Numbers, Numbers]:
    _, ends, letters = texts.buffers()
    starts = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    size = int(starts[-1] - starts[0]) if len(texts) else 0
    if not size:
        return pa.array([], pa.utf8()), np.zeros(0, np.int64), np.zeros(0, np.int64)
    data = np.frombuffer(letters, np.uint8)[starts[0] : starts[-1]]
    starts = starts - starts[0]
    inside = _IS_LETTER[data]
    begins, stops = inside.copy(), inside.copy()
    begins[1:] &= ~inside[:-1]
    stops[:-1] &= ~inside[1:]
    # A run ends at the end of its text.
    at = starts[:-1][starts[:-1] < size]
    begins[at] = inside[at]
    at = starts[1:][starts[1:] > 0] - 1
    stops[at] = inside[at]
    places = np.flatnonzero(begins)
    if not len(places):
        return pa.array([], pa.utf8()), np.zeros(0, np.int64), np.zeros(0, np.int64)
    # Runs and the gaps between them form one string array over the existing buffer, without a copy.
    bounds = np.empty(2 * len(places), np.int32)
    bounds[0::2], bounds[1::2] = places, np.flatnonzero(stops) + 1
    lower = pa.py_buffer(_LOWER[data])
    runs = pa.StringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds), lower)
    encoded = runs.dictionary_encode()
    which = encoded.indices.to_numpy(zero_copy_only=False)[0::2].astype(np.int64)
    rows = np.repeat(np.arange(len(texts)), np.diff(np.searchsorted(places, starts)))
    return encoded.dictionary, which, rows


def within(a: str, b: str, edits: int) -> bool:
    """Return True if the Levenshtein distance of two words is at most `edits`."""
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


def all_within(words: list[str], word: str, edits: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """`within` for many words: one table of distances whose cells are columns over all words."""
    if len(words) < tuning.current.edit_distance_words_min:
        return np.array([within(known, word, edits) for known in words], bool)
    lengths = np.array([len(known) for known in words])
    width = int(lengths.max())
    letters = np.array(words, f"U{max(width, 1)}").view(np.uint32).reshape(len(words), -1).T.copy()
    previous = [np.full(len(words), column, np.int16) for column in range(width + 1)]
    for row, letter in enumerate(word, 1):
        checkpoint()
        current = [np.full(len(words), row, np.int16)]
        for column in range(1, width + 1):
            replaced = previous[column - 1] + (letters[column - 1] != ord(letter))
            current.append(np.minimum(np.minimum(previous[column], current[-1]) + 1, replaced).astype(np.int16))
        previous = current
    near: np.ndarray[Any, np.dtype[np.bool_]] = np.stack(previous)[lengths, np.arange(len(words))] <= edits
    return near
