"""Arrow arrays."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph import arrays
from omnigraph.arrays import one_array, rows_within


@pytest.mark.parametrize("chunks", [[], [[1, 2]], [[1], [2, 3], []]])
def test_chunks_become_one_array(chunks):
    column = pa.chunked_array(chunks, pa.int64())
    assert one_array(column).to_pylist() == [value for chunk in chunks for value in chunk]
    assert one_array(column).type == pa.int64()


def test_single_chunk_and_array_are_not_copied():
    array = pa.array([1, 2])
    assert one_array(array) is array
    assert one_array(pa.chunked_array([array])).buffers()[1].address == array.buffers()[1].address


def test_wide_rows_make_small_batches() -> None:
    wide = pa.schema([("v", pa.list_(pa.float32(), 3072)), ("name", pa.string())])
    assert rows_within(wide, 16_384, 4 << 20) == (4 << 20) // (3072 * 4 + 16)
    narrow = pa.schema([("n", pa.int64()), ("b", pa.bool_()), ("s", pa.struct([("x", pa.int8()), ("y", pa.int8())]))])
    assert rows_within(narrow, 16_384, 4 << 20) == 16_384
    assert rows_within(wide, 10, 1) == 1
    assert rows_within(pa.schema([]), 10, 1) == 1


# -- texts of more than 2 GiB ------------------------------------------------------------------------


@pytest.fixture
def wide_texts(monkeypatch):
    """Texts of more than 64 bytes get 64-bit offsets."""
    monkeypatch.setattr(arrays, "TEXT_BYTES_MAX", 64)


LISTS = [["ab", None], None, [], ["c" * 50]] * 3
TEXTS = ["a" * 30, None, "", "ä" * 20] * 3


@pytest.mark.parametrize(("values", "narrow"), [(TEXTS, pa.utf8()), (LISTS, pa.list_(pa.utf8()))], ids=["text", "list"])
def test_many_texts_get_wide_offsets_and_back(wide_texts, values, narrow):
    chunked = pa.chunked_array([pa.array(values[:5], narrow), pa.array(values[5:], narrow)])
    whole = arrays.one_array(chunked)
    assert whole.type == arrays.with_wide_text(narrow) != narrow
    assert whole.to_pylist() == values
    assert arrays.with_narrow_text(whole).type == whole.type, "it has too many bytes"
    few = arrays.with_narrow_text(whole.slice(8, 2))
    assert (few.type, few.to_pylist()) == (narrow, values[8:10])
    chunks = arrays.narrow_chunks(whole)
    assert chunks.type == narrow
    assert chunks.to_pylist() == values


def test_arrays_are_concatenated_with_the_offsets_they_need(wide_texts):
    some, wide = pa.array(["a" * 20]), pa.array(["b"], pa.large_utf8())
    assert arrays.concatenate([some, some]).type == pa.utf8()
    assert arrays.concatenate([some, wide]).to_pylist() == ["a" * 20, "b"]
    assert arrays.concatenate([some] * 4).type == pa.large_utf8()
    assert arrays.concatenate([pa.array(range(99)), pa.array([1])]).type == pa.int64()


def test_other_arrays_stay_as_they_are(wide_texts):
    numbers = pa.chunked_array([pa.array(range(99)), pa.array([1])])
    assert arrays.one_array(numbers).type == pa.int64()
    assert arrays.narrow_chunks(pa.array(range(99))).type == pa.int64()
