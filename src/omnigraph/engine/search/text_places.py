"""Places of terms in a text, for the marks of a search result."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator

from omnigraph.checkpoints import paced
from omnigraph.engine.search.analyzer import analyse_run

_RUN = re.compile(r"[^\W_]+")
PLACES_MAX = 100
"""Largest number of places that are reported of one text."""

Place = tuple[int, int]
"""The first character of a term in a text, and the first one after it."""


def find_places(text: str, terms: Container[str]) -> dict[str, list[Place]]:
    """Return the first places of terms in a text, by term, in characters."""
    found: dict[str, list[Place]] = {}
    count = 0
    for term, place in _terms_of(text):
        if term in terms:
            found.setdefault(term, []).append(place)
            count += 1
            if count == PLACES_MAX:
                break
    return found


def surface_words(text: str) -> dict[str, str]:
    """Return the terms of a text in order, each with the first word that it comes from."""
    words: dict[str, str] = {}
    for term, (start, end) in _terms_of(text):
        words.setdefault(term, text[start:end])
    return words


def _terms_of(text: str) -> Iterator[tuple[str, Place]]:
    """Yield the terms of a text, each with its place."""
    for run in paced(_RUN.finditer(text)):
        found = analyse_run(run[0])
        if len(found) == 1:
            yield found[0], run.span()
            continue
        # Bigrams of a run of Chinese, Japanese or Korean letters. If normalisation changes its length, the place of a
        # bigram is the whole run.
        plain = unicodedata.normalize("NFKC", run[0])
        same = len(plain) == len(run[0])
        at = 0
        for term in found:
            position = plain.find(term, at) if same else -1
            if position < 0:
                yield term, run.span()
                continue
            at = position
            yield term, (run.start() + position, run.start() + position + len(term))
