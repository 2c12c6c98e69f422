"""Values that a mask takes away are in no buffer of the result."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.arrays import with_nulls

SECRET, NUMBER = "zebraword", 1_234_567
TEXTS = [f"{SECRET}{at}" if at % 3 else "shown" for at in range(12)]
NUMBERS = [NUMBER if at % 3 else 7 for at in range(12)]
KEPT = np.array([at % 3 == 0 for at in range(12)])

COLUMNS = {
    "text": pa.array(TEXTS),
    "long text": pa.array(TEXTS, pa.large_utf8()),
    "bytes": pa.array([text.encode() for text in TEXTS]),
    "list": pa.array([[text, None] for text in TEXTS]),
    "struct": pa.array([{"a": text} for text in TEXTS]),
    "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(NUMBERS, 3), pa.float32()), 3),
    "bool": pa.array([bool(at % 2) for at in range(12)]),
    **{
        str(type_): pa.array(NUMBERS, pa.int64()).cast(type_)
        for type_ in (pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.timestamp("us"))
    },
    "date": pa.array(NUMBERS, pa.int32()).cast(pa.date32()),
}


def bytes_of(column: pa.Array | pa.ChunkedArray) -> Iterator[bytes]:
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        for buffer in chunk.buffers():
            if buffer is not None:
                yield buffer.to_pybytes()


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("form", ["whole", "slice", "chunks", "with nulls"])
def test_no_buffer_has_a_removed_value(name: str, form: str) -> None:
    column, kept = COLUMNS[name], KEPT
    if form == "slice":
        column, kept = column.slice(2, 7), kept[2:9]
    elif form == "chunks":
        column = pa.chunked_array([column.slice(0, 5), column.slice(5)])
    elif form == "with nulls":
        column = column.take(pa.array([None, *range(1, 12)]))
    expected = [value if keep else None for value, keep in zip(column.to_pylist(), kept, strict=True)]
    found = with_nulls(column, kept)
    assert found.to_pylist() == expected
    assert found.type == column.type
    for chunk in found.chunks if isinstance(found, pa.ChunkedArray) else [found]:
        chunk.validate(full=True)
    stored = b"".join(bytes_of(found))
    secrets = [SECRET.encode(), *(np.array([NUMBER], kind).tobytes() for kind in ("<i4", "<i8", "<f4", "<f8"))]
    assert name == "bool" or any(secret in b"".join(bytes_of(COLUMNS[name])) for secret in secrets)
    assert not any(secret in stored for secret in secrets)


def test_a_column_without_removed_values_is_returned() -> None:
    column = COLUMNS["text"]
    assert with_nulls(column, np.ones(12, bool)) is column
    assert len(with_nulls(column.slice(0, 0), np.ones(0, bool))) == 0
    assert len(with_nulls(pa.chunked_array([], pa.int64()), np.ones(0, bool))) == 0
    assert with_nulls(
        pa.chunked_array([pa.array([], pa.int64()), pa.array([1, 2])]), np.array([True, False])
    ).to_pylist() == [1, None]
