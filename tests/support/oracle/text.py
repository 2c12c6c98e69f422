"""Tokens, stemming, BM25 and edit distance, from the specification (`query-language.md` §8.1)."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby, pairwise

import snowballstemmer

from support.oracle.unions import (
    Key,
)

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by for if in into is it no not of on or such that the "
        "their then there these they this to was will with",
    )
)


_stem = cache(snowballstemmer.stemmer("english").stemWord)


def tokens(text: str | None) -> list[str]:
    """The tokens of a text, with repetitions."""
    return [token for run in re.findall(r"[^\W_]+", text or "") for token in _tokens_of_run(run)]


def _tokens_of_run(run: str) -> list[str]:
    if any(map(is_cjk, run)):
        found: list[str] = []
        for cjk, letters in groupby(unicodedata.normalize("NFKC", run), is_cjk):
            part = "".join(letters)
            if cjk:
                found += [_fold(a + b) for a, b in pairwise(part)] or [_fold(part)]
            else:
                found += _tokens_of_run(part)
        return found
    if len(run.encode()) > 40:
        return []
    stem = _stem(run.lower())
    return [_fold(stem)] if stem not in STOP_WORDS else []


def is_cjk(letter: str) -> bool:
    """True if a letter belongs to a script written without spaces, by its Unicode name."""
    name = unicodedata.name(letter, "").removeprefix("HALFWIDTH ")
    scripts = ("CJK UNIFIED", "CJK COMPAT", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "HENTAIGANA")
    marks = tuple(f"IDEOGRAPHIC {mark}" for mark in ("ITERATION", "CLOSING", "NUMBER", "ANNOTATION"))
    return name.startswith((*scripts, *marks)) and letter.isalnum() and not name.endswith("VOICED SOUND MARK")


def _fold(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def levenshtein(a: str, b: str) -> int:
    if not a or not b:
        return len(a) or len(b)
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        above, row = row, [i]
        for j, right in enumerate(b, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (left != right)))
    return row[-1]


def bm25(corpus: Mapping[Key, list[str]], node: Key, query: str | None) -> float:
    """The BM25 score of one text within the non-null texts of its types."""
    words = corpus.get(node)
    if not words:
        return 0.0
    average = sum(map(len, corpus.values())) / len(corpus)
    score = 0.0
    for token in sorted(set(tokens(query))):
        holding = sum(token in other for other in corpus.values())
        idf = math.log(1 + (len(corpus) - holding + 0.5) / (holding + 0.5))
        count = words.count(token)
        score += idf * count * 2.2 / (count + 1.2 * (1 - 0.75 + 0.75 * len(words) / average))
    return score


def cosine_distance(a: Sequence[float], b: Sequence[float]) -> float:
    norms = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b))
    return 1.0 - sum(x * y for x, y in zip(a, b, strict=True)) / norms if norms else 1.0
