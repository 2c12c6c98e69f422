"""Hashes of texts."""

from __future__ import annotations

from zlib import crc32

import pyarrow as pa
import pytest

from omnigraph import hashing
from omnigraph.hashing import crc32_text, crc32_texts, hash_text, hash_texts

TEXTS = ["", "a", "b", "ab", "ba", "ä", "日本", "x" * 63, "x" * 64, "x" * 65, "x" * 66, "x" * 64 + "y", "0", "00"]


@pytest.mark.parametrize("start", [0, 3])
def test_crc32_texts_equals_zlib(start):
    column = pa.array(TEXTS).slice(start)
    assert crc32_texts(column, 64).tolist() == [crc32_text(text, 64) for text in TEXTS[start:]]


def test_crc32_of_a_long_text_covers_its_ends():
    prefix = "https://example.org/" * 5
    assert crc32_text(prefix + "a", 64) != crc32_text(prefix + "b", 64)
    assert crc32_text("a" + prefix, 64) != crc32_text("b" + prefix, 64)
    assert crc32_text("a" * 64, 64) == crc32(b"a" * 64)
    assert crc32_text("a" * 100 + "b" + "c" * 64, 64) == crc32(b"a" * 64 + b"c" * 64)


def test_columns_without_bytes():
    assert crc32_texts(pa.array([""]), 64).tolist() == [crc32(b"")]
    assert crc32_texts(pa.array([], pa.utf8()), 64).tolist() == []
    assert len(hash_texts(pa.array(["", ""]))) == 2


def test_hash_of_one_text_equals_that_of_a_column():
    texts = ["", "a", "1234567", "12345678", "123456789", "x" * 15, "x" * 16, "x" * 17, "y" * 24, "ü" * 300, "z" * 2000]
    texts += ["z" * length for length in range(515, 540)]
    assert [hash_text(text) for text in texts] == hash_texts(pa.array(texts)).tolist()


def test_hashes_do_not_depend_on_the_batch(monkeypatch):
    texts = [str(number) * (number % 7) for number in range(100)]
    column = pa.array(["before", *texts]).slice(1)
    expected = [hash_text(text) for text in texts]
    for rows in (1, 33, 100, 101):
        monkeypatch.setattr(hashing, "_BATCH_ROWS", rows)
        assert hash_texts(column).tolist() == expected
