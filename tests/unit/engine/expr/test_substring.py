"""Substring tests: equal to Arrow's for every column, offset, null and pattern."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.engine.expr import substring
from omnigraph.engine.expr.substring import contains_text

PATTERNS = ["a", "ab", "ba", "aab", "ä", "日本", "b" * 7, "", "x", "a" * 40]


@pytest.fixture(autouse=True)
def search_small_texts(monkeypatch):
    monkeypatch.setattr(substring, "_BYTES_MIN", 1)


def texts(seed: int) -> list[str | None]:
    choose = random.Random(seed)
    return [
        None if choose.random() < 0.1 else "".join(choose.choices("aabä日本", k=choose.randrange(0, 30)))
        for _ in range(choose.randrange(1, 400))
    ]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("type_", [pa.utf8(), pa.large_utf8()], ids=str)
def test_the_result_equals_that_of_arrow(monkeypatch, tune, seed, type_):
    tune(batch_bytes=200)
    if seed % 2:
        monkeypatch.setattr(substring, "_HITS_MAX", 3)
    column = pa.array(texts(seed), type_)
    for some in (column, column.slice(len(column) // 3), column.slice(1, len(column) // 2)):
        for pattern in PATTERNS:
            assert contains_text(some, pattern).equals(pc.match_substring(some, pattern=pattern)), pattern


def test_a_hit_across_two_rows_is_no_hit():
    column = pa.array(["xxa", "byy", "", "a", "", "b", "ab"])
    assert contains_text(column, "ab").to_pylist() == [False] * 6 + [True]


def test_a_row_after_a_hit_across_rows_is_found():
    column = pa.array(["..ab", "abab", "bab"])
    assert contains_text(column, "abb").to_pylist() == [False, False, False]
    assert contains_text(column, "bab").to_pylist() == [False, True, True]
