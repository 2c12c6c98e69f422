"""A generated corpus, and reference results by direct computation.

Posts have a day (0 to 99), a text of 40 words from a vocabulary of few frequent and many rare words, a unit vector near
one of several topics, and an author. This module is independent of the systems under test.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

WORDS = 20_000
LENGTH = 40
LIMIT = 10
DAYS = 10
"""Number of days (of 100) that a filter keeps."""
K = 60

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Question:
    """A query: a vector and words."""

    vector: Array
    words: tuple[int, ...]


@dataclass(frozen=True)
class Corpus:
    """Posts as arrays; post n has the key `s{n}`, author n the key `p{n}`."""

    tokens: Array
    vectors: Array
    days: Array
    authors: Array
    vocabulary: list[str]

    @property
    def count(self) -> int:
        return len(self.days)

    @cached_property
    def table(self) -> pa.Table:
        """The posts, id first, other columns in name order."""
        keys = pa.array([f"s{at}" for at in range(self.count)])
        words = np.array(self.vocabulary, object)
        flat = pa.array(self.vectors.reshape(-1), pa.float32())
        return pa.table(
            {
                "id": keys,
                "day": pa.array(self.days, pa.int32()),
                "key": keys,
                "text": pa.array([" ".join(row) for row in words[self.tokens]]),
                "vec": pa.FixedSizeListArray.from_arrays(flat, self.vectors.shape[1]),
            }
        )

    def text(self, question: Question) -> str:
        return " ".join(self.vocabulary[word] for word in question.words)

    # -- answers ---------------------------------------------------------------------------------

    def nearest(self, question: Question, limit: int, *, filtered: bool = False) -> list[int]:
        """The posts at the smallest cosine distance, ties by key."""
        vector = question.vector.astype(np.float64)
        wide = self.vectors.astype(np.float64)
        distance = 1 - wide @ vector / (np.linalg.norm(wide, axis=1) * np.linalg.norm(vector))
        posts = np.flatnonzero(self.days < DAYS) if filtered else np.arange(self.count)
        return _first(posts, distance[posts])[:limit]

    def relevant(self, question: Question) -> list[int]:
        """Every post with one of the words, by BM25, ties by key."""
        score = np.zeros(self.count)
        for word in dict.fromkeys(question.words):
            times = (self.tokens == word).sum(axis=1)
            holding = np.count_nonzero(times)
            idf = np.log(1 + (self.count - holding + 0.5) / (holding + 0.5))
            score += idf * times * 2.2 / (times + 1.2)  # all texts have the average length
        posts = np.flatnonzero(score)
        return _first(posts, -score[posts])

    def fused(self, question: Question) -> list[int]:
        """The fusion of both rankings, ties by the rank in the first."""
        near = {post: place for place, post in enumerate(self.nearest(question, LIMIT), 1)}
        words = {post: place for place, post in enumerate(self.relevant(question), 1)}
        score = dict.fromkeys((*near, *words), 0.0)
        for places in (near, words):
            for post, place in places.items():
                score[post] += 1 / (K + place)
        nowhere = self.count + 1
        return sorted(score, key=lambda p: (-score[p], near.get(p, nowhere), words.get(p, nowhere)))[:LIMIT]


def generate(posts: int, dim: int, seed: int = 3) -> Corpus:
    """A corpus of this many posts and half as many authors."""
    random = np.random.default_rng(seed)
    tokens = np.minimum(random.zipf(1.2, (posts, LENGTH)) - 1, 50 * WORDS) % WORDS
    topics = random.standard_normal((200, dim))
    vectors = topics[random.integers(0, len(topics), posts)] + 1.5 * random.standard_normal((posts, dim))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Corpus(
        tokens,
        vectors.astype(np.float32),
        random.integers(0, 100, posts),
        random.integers(0, posts // 2, posts),
        _vocabulary(random),
    )


def questions(corpus: Corpus, count: int, seed: int = 5) -> list[Question]:
    """Vectors near some post; a frequent, a common and a rare word."""
    random = np.random.default_rng(seed)
    found = []
    for post in random.integers(0, corpus.count, count):
        vector = corpus.vectors[post] + 0.05 * random.standard_normal(corpus.vectors.shape[1])
        words = (random.integers(5, 50), random.integers(50, 500), random.integers(500, 5_000))
        found.append(Question(vector.astype(np.float32), tuple(map(int, words))))
    return found


def _vocabulary(random: np.random.Generator) -> list[str]:
    """Distinct words that stemming does not change."""
    syllables = [a + b for a in "bdfgklmnprtvz" for b in "aou"]
    words: dict[str, None] = {}
    while len(words) < WORDS:
        parts = random.integers(0, len(syllables), random.integers(2, 5))
        words["".join(syllables[part] for part in parts) + "k"] = None
    return list(words)


def _first(posts: Array, score: Array) -> list[int]:
    order = np.argsort(score, kind="stable")[: max(1_000, len(posts))]
    keys = [f"s{post}" for post in posts[order]]
    return [int(posts[at]) for _, _, at in sorted(zip(score[order], keys, order, strict=True))]
