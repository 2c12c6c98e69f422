from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

import pytest

from omnigraph.suggestions import closest, did_you_mean, listing

NEAR = {
    "one letter wrong": ("titel", "title"),
    "one letter missing": ("titl", "title"),
    "one letter more": ("titlee", "title"),
    "neighbours swapped": ("tilte", "title"),
    "other case": ("TITLE", "title"),
    "underscores do not count": ("published_at", "publishedAt"),
    "two in a long name": ("descriptoin2", "description"),
    "three in a very long name": ("dscrption_of_ti", "descriptionOfIt"),
    "a short name": ("ag", "age"),
}
CANDIDATES = ("title", "age", "publishedAt", "description", "descriptionOfIt", "weight")


@pytest.mark.parametrize(("name", "expected"), NEAR.values(), ids=NEAR)
def test_near_names_are_suggested(name: str, expected: str) -> None:
    assert closest(name, CANDIDATES) == expected


@pytest.mark.parametrize("name", ["tie", "xyz", "ghtwei", "descript", "a", "wait", "title" * 20])
def test_distant_names_are_not_suggested(name: str) -> None:
    assert closest(name, CANDIDATES) is None


def test_no_candidates() -> None:
    assert closest("title", ()) is None


def test_nearest_wins_and_ties_are_alphabetical() -> None:
    assert closest("abcdef", ["abcxyf", "abcdxf", "abxdef"]) == "abcdxf"
    assert closest("abcdef", ["abzdef", "abxdef"]) == "abxdef"
    assert closest("abcdef", ["abcdee", "AB_CDEF"]) == "AB_CDEF"


def osa(a: str, b: str) -> int:
    """Return the optimal string alignment distance by its recursive definition."""

    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        best = min(distance(i - 1, j) + 1, distance(i, j - 1) + 1, distance(i - 1, j - 1) + (a[i - 1] != b[j - 1]))
        if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
            best = min(best, distance(i - 2, j - 2) + 1)
        return best

    return distance(len(a), len(b))


def test_distance_equals_its_definition() -> None:
    random = Random(7)

    def word() -> str:
        return "".join(random.choices("abc", k=random.randint(1, 12)))

    found = 0
    for _ in range(3_000):
        name, candidates = word(), [word() for _ in range(3)]
        limit = min(3, max(1, len(name) // 3))
        near = sorted((osa(name, c), c) for c in candidates if osa(name, c) <= limit)
        assert closest(name, candidates) == (near[0][1] if near else None), (name, candidates)
        found += bool(near)
    assert found > 300


def test_only_the_first_candidates_are_considered() -> None:
    def endless() -> Iterator[str]:
        number = 0
        while True:
            number += 1
            yield f"w{number}"

    assert closest("title", endless()) is None


def test_did_you_mean() -> None:
    assert did_you_mean("titel", CANDIDATES) == "did you mean 'title'?"
    assert did_you_mean("titel", CANDIDATES, prefix="$") == "did you mean '$title'?"
    assert did_you_mean("xyz", CANDIDATES) is None


def test_listing() -> None:
    assert listing([]) == ""
    assert listing(["b", "a"]) == "'a', 'b'"
    assert listing("hgfedcba") == "'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'"
    assert listing("ihgfedcba", most=2) == "'a', 'b' and 7 more"
