"""Sizes of Arrow messages before they are decoded, and of arrays without dictionaries."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from omnigraph.server.messages.arrow_sizes import decoded_sizes, plain_size

TABLES = {
    "numbers": pa.table({"a": list(range(1000)), "b": [None, 1.5] * 500}),
    "texts": pa.table({"a": ["x" * 1000, "", None] * 50}),
    "lists": pa.table({"a": [[1, 2], None, []] * 100, "v": pa.array([[0.0] * 8] * 300, pa.list_(pa.float32(), 8))}),
    "dictionary": pa.table({"a": pa.array(["x" * 500, "y"] * 100).dictionary_encode()}),
    "no rows": pa.table({"a": pa.array([], pa.int64())}),
    "no columns": pa.table({}),
}


def stream(table: pa.Table, codec: str | None) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def buffers_of(array: pa.Array) -> int:
    held = sum(buffer.size for buffer in array.buffers() if buffer is not None)
    return held + (buffers_of(array.dictionary) if pa.types.is_dictionary(array.type) else 0)


@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
@pytest.mark.parametrize("name", TABLES)
def test_the_size_is_that_of_the_decoded_buffers(name: str, codec: str | None) -> None:
    data = stream(TABLES[name], codec)
    decoded = pa.ipc.open_stream(data).read_all()
    expected = sum(buffers_of(chunk) for column in decoded.columns for chunk in column.chunks)
    # A buffer that the format pads is up to 64 bytes larger.
    assert abs(sum(decoded_sizes(pa.BufferReader(data))) - expected) <= 64 * 8


def test_a_compressed_stream_states_its_size() -> None:
    data = stream(pa.table({"a": ["x" * 50_000_000]}), "zstd")
    assert len(data) < 100_000
    assert sum(decoded_sizes(pa.BufferReader(data))) >= 50_000_000


def test_streams_one_behind_the_other_are_read_one_by_one() -> None:
    one, two = stream(TABLES["numbers"], None), stream(TABLES["texts"], "zstd")
    file = pa.BufferReader(one + two)
    list(decoded_sizes(file))
    assert file.tell() == len(one)
    list(decoded_sizes(file))
    assert file.tell() == len(one) + len(two)


def test_a_value_of_a_dictionary_counts_for_every_row() -> None:
    coded = pa.array(["x" * 1000] * 5000).dictionary_encode()
    assert coded.nbytes < 50_000
    assert plain_size(coded) >= 5_000_000
    nested = pa.ListArray.from_arrays([0, 2500, 5000], coded)
    assert plain_size(nested) >= 5_000_000
    assert plain_size(pa.array([1, None, 2])) == pa.array([1, None, 2]).nbytes
    assert plain_size(pa.array([1, 1, None]).dictionary_encode()) > 0
