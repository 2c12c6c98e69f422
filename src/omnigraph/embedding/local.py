"""The local provider: vectors computed in this process, without a key, a download or a network.

Similar wordings give similar vectors. There are two models; the name identifies the model of a vector:

- `local-hashed-ngrams-v1` is independent of the language. A text is the sum of its words, a word the sum of
  itself and of its n-grams of three to five letters, each hashed to a few signed components of the vector.
- `local-words-<name>-v1` sums static word vectors of an installed package (see `static_vectors`), so that
  different words of similar meaning are close too. Words without a vector are hashed as above.

Texts are lower-cased and stripped of accents first. Sums run in a fixed order and use only operations
that IEEE arithmetic rounds exactly, so a text has the same vector on every machine, independent of the
other texts of a batch.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from omnigraph.embedding.mock import mock_vectors
from omnigraph.embedding.static_vectors import installed_word_vectors, read_word_vectors
from omnigraph.embedding.vectors import NORM_MIN, Vectors, normalised, norms
from omnigraph.errors import EmbeddingError
from omnigraph.hashing import fnv1a, mix

HASHED_MODEL = "local-hashed-ngrams-v1"

_COMPONENTS = 4
"""Number of components per feature; more components reduce accidental similarity."""

_NGRAMS_TO_WORD = 3.0
"""Total squared weight of the n-grams of a word, relative to the weight 1 of the word."""

_SHORT_WORD_WEIGHT = 0.5
"""Weight of words of up to three letters: most of them (the, of, der, les) carry little meaning."""

_WORD_LETTERS_MAX = 64
_BLOCK_WORDS = 10_000
_BLOCK_NUMBERS = 1 << 21

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_IDEOGRAPHS_FROM = "\u2e80"

Components = tuple[NDArray[np.int64], NDArray[np.float64]]


def words_model(name: str) -> str:
    """Return the name of the model that uses the installed word vectors of this name."""
    return f"local-words-{name}-v1"


def choose_model(wanted: str | None) -> str:
    """Return the model to use: the requested one if it is installed, otherwise word vectors if there are any, otherwise
    hashing.
    """
    available = [*map(words_model, installed_word_vectors()), HASHED_MODEL]
    if wanted is None:
        return available[0]
    if wanted not in available:
        raise EmbeddingError(
            f"provider 'local' has no model '{wanted[:120]}'; it has " + ", ".join(f"'{name}'" for name in available),
            hint="install the package that ships these word vectors, or unset OMNIGRAPH_EMBED_MODEL",
        )
    return wanted


class LocalVectors:
    """Embeds with one local model; word vectors are read on first use. Thread-safe."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._words: _WordVectors | None = None

    def embed(self, texts: Sequence[str], dim: int) -> Vectors:
        """Return one vector of length 1 per text."""
        known = self._known_words()
        vectors = np.empty((len(texts), dim), np.float32)
        rows_max = max(1, _BLOCK_NUMBERS // dim)
        start, words, block = 0, 0, list[Counter[str]]()
        for end, text in enumerate(texts, 1):
            block.append(_words_of(text))
            words += len(block[-1])
            if end == len(texts) or words >= _BLOCK_WORDS or len(block) >= rows_max:
                vectors[start:end] = _embed_block(texts[start:end], block, known, dim)
                start, words, block = end, 0, []
        return vectors

    def _known_words(self) -> _WordVectors | None:
        if self._model == HASHED_MODEL:
            return None
        with self._lock:
            if self._words is None:
                offered = {words_model(name): point for name, point in installed_word_vectors().items()}
                if self._model not in offered:
                    raise EmbeddingError(
                        f"the word vectors of model '{self._model}' are not installed",
                        hint="install the package that ships them",
                    )
                self._words = _WordVectors(*read_word_vectors(offered[self._model]))
            return self._words


class _WordVectors:
    """Words, normalised by `_plain`, and their unit vectors."""

    def __init__(self, words: Sequence[str], vectors: NDArray[np.float32]) -> None:
        lengths = norms(vectors)
        self.rows: dict[str, int] = {}
        for row, word in enumerate(words):
            if lengths[row] > NORM_MIN:
                # Of several words with the same normalised form, the first is the most frequent one.
                self.rows.setdefault(_plain(word), row)
        self._vectors = vectors
        self._lengths = lengths

    def take(self, rows: Sequence[int]) -> NDArray[np.float64]:
        return self._vectors[rows].astype(np.float64) / self._lengths[rows, np.newaxis]

    @property
    def width(self) -> int:
        return int(self._vectors.shape[1])


def _embed_block(texts: Sequence[str], counts: Sequence[Counter[str]], known: _WordVectors | None, dim: int) -> Vectors:
    sums = np.zeros((len(texts), dim))
    if known is not None:
        sums += _sum_known(counts, known, dim)
        counts = [Counter({word: n for word, n in one.items() if word not in known.rows}) for one in counts]
    sums += _sum_hashed(counts, dim)
    raw = sums.astype(np.float32)
    # Signs can cancel in a very short vector; then a fixed direction is used.
    lost = np.flatnonzero(norms(raw) <= NORM_MIN)
    if lost.size:
        raw[lost] = mock_vectors([texts[int(row)] for row in lost], dim)
    return normalised(raw)


# -- words -------------------------------------------------------------------------------------------


def _words_of(text: str) -> Counter[str]:
    plain = _plain(text)
    if plain.isascii():
        words = _ASCII_WORD.findall(plain)
    else:
        words = "".join(letter if _in_word(letter) else " " for letter in plain).split()
    # A text without letters is one word, so that it has a vector too.
    return Counter(word[:_WORD_LETTERS_MAX] for word in words) or Counter({plain.strip()[:_WORD_LETTERS_MAX]: 1})


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", folded)))


@lru_cache(maxsize=4_096)
def _in_word(letter: str) -> bool:
    # Vowel signs of many scripts are marks, not letters, but are parts of words.
    return letter.isalnum() or unicodedata.category(letter).startswith("M")


def _weight(word: str, count: int) -> float:
    # The square root, because a word that occurs four times is not four times as important; unlike a logarithm it is
    # the same number on every machine.
    damped = float(np.sqrt(count))
    return damped * _SHORT_WORD_WEIGHT if len(word) <= 3 and word.isascii() and not word.isdigit() else damped


# -- hashed n-grams ----------------------------------------------------------------------------------


def _sum_hashed(counts: Sequence[Counter[str]], dim: int) -> NDArray[np.float64]:
    distinct = {word: number for number, word in enumerate(dict.fromkeys(word for one in counts for word in one))}
    sums = np.zeros(len(counts) * dim)
    if distinct:
        features = [_features(word) for word in distinct]
        sizes = np.fromiter(map(len, features), np.int64, len(features))
        firsts = np.cumsum(sizes) - sizes
        feature_weights = np.repeat(np.sqrt(_NGRAMS_TO_WORD / np.maximum(sizes - 1, 1)), sizes)
        feature_weights[firsts] = 1
        # One entry per word of a text, then one per n-gram of that word.
        words = np.array([distinct[word] for one in counts for word in one], np.int64)
        weights = np.array([_weight(word, count) for one in counts for word, count in one.items()])
        rows = np.repeat(np.arange(len(counts)), [len(one) for one in counts])
        spread = sizes[words]
        which = np.repeat(firsts[words] - (np.cumsum(spread) - spread), spread) + np.arange(spread.sum())
        offsets = np.repeat(rows, spread) * dim
        amounts = np.repeat(weights, spread) * feature_weights[which]
        hashes = fnv1a([feature for one in features for feature in one])
        for number in range(_COMPONENTS):
            components, signs = _components(hashes, number, dim)
            sums += np.bincount(offsets + components[which], amounts * signs[which], minlength=sums.size)
    return sums.reshape(len(counts), dim)


def _features(word: str) -> list[bytes]:
    """Return the word itself, then its n-grams; `<` and `>` mark its ends."""
    marked = f"<{word}>"
    # An ideograph carries as much information as several letters.
    sizes = (3, 4, 5) if word[:1] < _IDEOGRAPHS_FROM else (1, 2, 3)
    ngrams = [marked[at : at + size] for size in sizes for at in range(len(marked) - size + 1)]
    return [b"w" + word.encode(), *(b"p" + ngram.encode() for ngram in ngrams)]


def _components(hashes: NDArray[np.uint64], number: int, dim: int) -> Components:
    """Return the component and the sign of the n-th hash of a feature."""
    mixed = mix(hashes + np.uint64(number * 0x632BE59BD9B4E019 & (2**64 - 1)))
    components = (mixed >> np.uint64(32)) * np.uint64(dim) >> np.uint64(32)
    signs = 1.0 - 2.0 * (mixed & np.uint64(1)).astype(np.float64)
    # Scaled so that a feature keeps its length when it is spread over its components.
    return components.astype(np.int64), signs / np.sqrt(_COMPONENTS)


# -- word vectors ------------------------------------------------------------------------------------


def _sum_known(counts: Sequence[Counter[str]], known: _WordVectors, dim: int) -> NDArray[np.float64]:
    sums = np.zeros((len(counts), known.width))
    for row, one in enumerate(counts):
        found = [(known.rows[word], _weight(word, count)) for word, count in one.items() if word in known.rows]
        if found:
            weighted = (
                known.take([place for place, _ in found]) * np.array([weight for _, weight in found])[:, np.newaxis]
            )
            sums[row] = np.add.accumulate(weighted, axis=0)[-1]
    # A known word has the same weight as a hashed word with its n-grams.
    sums *= np.sqrt(1 + _NGRAMS_TO_WORD)
    if known.width == dim:
        return sums
    # For another dimension, hash the components, which preserves angles on average.
    projected = np.zeros((dim, len(counts)))
    components = mix(np.arange(known.width, dtype=np.uint64))
    for number in range(_COMPONENTS):
        targets, signs = _components(components, number, dim)
        np.add.at(projected, targets, (sums * signs).T)
    return projected.T
