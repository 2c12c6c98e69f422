"""Arrow arrays."""

from __future__ import annotations

import pyarrow as pa
import pytest

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
