"""Decoders of streamed bodies: any division into chunks gives the same items."""

from __future__ import annotations

import io
import struct
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.client.decoders import ArrowDecoder, LineDecoder, read_arrow
from omnigraph.errors import RemoteError

TABLE = pa.table(
    {
        "n": pa.array(range(100)),
        "t": pa.array([f"text {n}" for n in range(100)]).dictionary_encode(),
        "v": pa.array([[1.0, 2.0]] * 100, pa.list_(pa.float32(), 2)),
    }
)


def arrow_body(table: pa.Table = TABLE, rows: int = 30, codec: str | None = None) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


@settings(max_examples=40, deadline=None)
@given(cuts=st.lists(st.integers(0, len(arrow_body())), max_size=20), codec=st.sampled_from([None, "zstd"]))
def test_arrow_batches(cuts, codec):
    body = arrow_body(codec=codec)
    bounds = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    decoder = ArrowDecoder()
    batches = [b for low, high in pairwise(bounds) for b in decoder.feed(body[low:high])]
    decoder.finish()
    assert pa.Table.from_batches(batches, decoder.schema).equals(TABLE)


def test_an_empty_arrow_stream():
    decoder = ArrowDecoder()
    assert decoder.feed(arrow_body(TABLE.slice(0, 0))) == []
    decoder.finish()
    assert decoder.schema == TABLE.schema


@pytest.mark.parametrize("missing", [1, 8, 20, 900])
def test_a_cut_arrow_stream(missing):
    decoder = ArrowDecoder()
    decoder.feed(arrow_body()[:-missing])
    with pytest.raises(RemoteError, match="end marker") as caught:
        decoder.finish()
    assert caught.value.code == "incomplete_answer"


def test_a_body_that_is_not_arrow():
    with pytest.raises(RemoteError, match="not an Arrow stream"):
        ArrowDecoder().feed(b"<html><body>hello</body></html>")


LINES = b'{"kind":"metadata","content":"diff"}\n{"a":1}\n{"a":2}\n{"kind":"end","rows":2,"next":"x"}\n'


@given(cuts=st.lists(st.integers(0, len(LINES)), max_size=10))
def test_lines(cuts):
    bounds = [0, *sorted(cuts), len(LINES)]
    decoder: LineDecoder[dict] = LineDecoder()
    items = [item for low, high in pairwise(bounds) for item in decoder.feed(LINES[low:high])]
    decoder.finish()
    assert items == [{"a": 1}, {"a": 2}]
    assert (decoder.metadata, decoder.end) == (
        {"kind": "metadata", "content": "diff"},
        {"kind": "end", "rows": 2, "next": "x"},
    )


@pytest.mark.parametrize("body", [b"", LINES[:-1], LINES[:60]])
def test_cut_lines(body):
    decoder: LineDecoder[dict] = LineDecoder()
    decoder.feed(body)
    with pytest.raises(RemoteError, match="last line"):
        decoder.finish()


@pytest.mark.parametrize("offsets", [(0, 10**8, 2 * 10**9, 6), (0, 5, 3, 6), (-9, 3, 5, 6), (0, 3, 5, 2**31 - 1)])
def test_offsets_beyond_the_values(offsets):
    table = pa.table({"t": ["abc", "de", "f"]})
    valid = struct.pack("<4i", 0, 3, 5, 6)
    body = arrow_body(table)
    assert body.count(valid) == 1
    damaged = body.replace(valid, struct.pack("<4i", *offsets))
    with pytest.raises(RemoteError):
        read_arrow(damaged)
    with pytest.raises(RemoteError):
        ArrowDecoder().feed(damaged)


def test_texts_that_are_not_utf8():
    damaged = arrow_body(pa.table({"t": ["abc", "de", "f"]})).replace(b"abcdef", b"ab\xff\xfeef")
    with pytest.raises(RemoteError, match="UTF"):
        read_arrow(damaged)


def test_times_are_valid():
    """A `DateTime` is a date64 with milliseconds."""
    times = pa.array([1_769_862_600_001, None]).view(pa.date64())
    lists = pa.ListArray.from_arrays([0, 1, 2], times)
    fixed = pa.FixedSizeListArray.from_arrays(times, 1)
    nested = pa.StructArray.from_arrays([lists, times], ["l", "t"])
    table = pa.table({"t": times, "l": lists, "f": fixed, "s": nested})
    assert read_arrow(arrow_body(table)).equals(table)
    assert pa.Table.from_batches(ArrowDecoder().feed(arrow_body(table))).equals(table)
    assert read_arrow(arrow_body(table.slice(1))).equals(table.slice(1))
