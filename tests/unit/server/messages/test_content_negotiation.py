"""Content negotiation: the choice of a form, and chunks of rows."""

from __future__ import annotations

import contextlib
import gzip
import io
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.engine.result.result import Result
from omnigraph.errors import LimitReached
from omnigraph.server.errors import RequestFault
from omnigraph.server.messages.answers import Rows
from omnigraph.server.messages.content_negotiation import (
    BATCH_BYTES,
    CHUNK_BYTES,
    JsonBounds,
    Negotiated,
    arrow_chunks,
    gzip_chunks,
    joined_lines,
    json_body,
    negotiate,
    row_chunks,
)
from omnigraph.wire.queries import TargetDocument

FORMS = ("json", "ndjson", "arrow", "csv")


def rows(count: int) -> Rows:
    table = pa.table({"n": list(range(count)), "text": [f"text {n}" for n in range(count)]})
    result = Result(table, query_name="q", commit_id="01C", elapsed_ms=1.0)
    return Rows(result, TargetDocument("main", None))


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, "json"),
        ("*/*", "json"),
        ("application/json", "json"),
        ("application/x-ndjson", "ndjson"),
        ("text/csv;q=0.5, application/x-ndjson;q=0.8", "ndjson"),
        ("text/html, */*;q=0.1", "json"),
        ("application/vnd.apache.arrow.stream;codec=zstd", "arrow"),
        ("text/*", "csv"),
        ("application/problem+json", "json"),
        ("application/json;q=0, text/csv", "csv"),
    ],
)
def test_accept_selects_the_form(accept: str | None, form: str) -> None:
    assert negotiate(accept, None, FORMS).form == form


@pytest.mark.parametrize("accept", ["text/html", "image/*", "application/vnd.apache.arrow.stream;codec=snappy", ";;,"])
def test_an_unknown_form_is_406(accept: str) -> None:
    with pytest.raises(RequestFault) as caught:
        negotiate(accept, None, FORMS)
    assert (caught.value.status, caught.value.code) == (406, "not_acceptable")


@given(st.text(max_size=60))
def test_any_accept_header_is_a_form_or_406(accept: str) -> None:
    with contextlib.suppress(RequestFault):
        assert negotiate(accept, accept, FORMS).form in FORMS


def test_ndjson_has_metadata_and_an_end_line() -> None:
    text = b"".join(row_chunks(rows(10_000), Negotiated("ndjson")))
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[0]["kind"] == "metadata"
    assert lines[0]["columns"] == ["n", "text"]
    assert lines[-1] == {"kind": "end", "rows": 10_000, "graph_commit_id": "01C"}
    assert [int(line["n"]) for line in lines[1:-1]] == list(range(10_000))


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_chunks_are_bounded(form: str) -> None:
    assert max(map(len, row_chunks(rows(10_000), Negotiated(form)))) <= CHUNK_BYTES  # type: ignore[arg-type]


@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_an_arrow_stream_has_metadata_and_its_end(codec: str | None) -> None:
    data = b"".join(row_chunks(rows(40_000), Negotiated("arrow", codec)))
    reader = pa.ipc.open_stream(io.BytesIO(data))
    members = {b"query_name": b"q", b"graph_commit_id": b"01C", b"row_count": b"40000", b"elapsed_ms": b"1.000"}
    assert reader.schema.metadata == {**members, b"shape": b'{"columns": [], "hops": []}'}
    assert reader.read_all().column("n").to_pylist() == list(range(40_000))
    assert data.endswith(b"\xff\xff\xff\xff\x00\x00\x00\x00")


@pytest.mark.parametrize("bounds", [JsonBounds(rows=9, bytes=10_000), JsonBounds(rows=100, bytes=50)])
def test_a_json_document_is_bounded(bounds: JsonBounds) -> None:
    with pytest.raises(LimitReached) as caught:
        json_body(rows(10), bounds)
    assert caught.value.resource in ("rows", "bytes")
    assert "application/x-ndjson" in str(caught.value.hint)


def test_lines_are_joined_and_compressed_without_loss() -> None:
    lines = [b"x" * n for n in (10, 70_000, 0, 65_535, 3)]
    whole = b"".join(line + b"\n" for line in lines)
    assert b"".join(joined_lines(iter(lines))) == whole
    assert gzip.decompress(b"".join(gzip_chunks(iter([whole, b"end"])))) == whole + b"end"


@pytest.mark.parametrize("codec", [None, "zstd"])
@pytest.mark.parametrize("kind", ["plain", "dictionary", "nested", "empty"])
def test_an_arrow_stream_has_every_type(kind: str, codec: str | None) -> None:
    table = pa.table({"n": [1, None, 3], "t": ["a", None, "ccc"], "l": [[1], None, [2, 3]]})
    if kind == "dictionary":
        table = table.set_column(1, "t", table["t"].dictionary_encode())
    if kind == "nested":
        items = pa.array(["x", "y", "x"]).dictionary_encode()
        table = table.set_column(2, "l", pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), items))
    table = table.slice(1, 0 if kind == "empty" else 2)
    chunks = arrow_chunks(table.schema, iter(table.to_batches()), Negotiated("arrow", codec=codec), {"k": "v"})
    data = b"".join(chunks)
    read = pa.ipc.open_stream(io.BytesIO(data))
    assert read.schema.metadata == {b"k": b"v"}
    assert read.read_all().to_pylist() == table.to_pylist()
    assert data.endswith(b"\xff\xff\xff\xff\x00\x00\x00\x00")


@pytest.mark.parametrize("column", ["vectors", "texts"])
def test_arrow_chunks_of_wide_rows_are_bounded(column: str) -> None:
    count = 5000
    vectors = pa.array([[0.5] * 1024] * count, pa.list_(pa.float32(), 1024))
    values = vectors if column == "vectors" else pa.array(["x" * 4000] * count)
    result = Result(pa.table({"a": values}), query_name="q", commit_id="01C", elapsed_ms=1.0)
    chunks = list(row_chunks(Rows(result, TargetDocument("main", None)), Negotiated("arrow")))
    assert len(chunks) > 4
    assert max(map(len, chunks)) < BATCH_BYTES * 1.1
    assert pa.ipc.open_stream(io.BytesIO(b"".join(chunks))).read_all().num_rows == count


def test_a_large_json_document_is_refused_before_it_is_made() -> None:
    vectors = pa.array([[0.5] * 1000] * 2000, pa.list_(pa.float32(), 1000))
    result = Result(pa.table({"a": vectors}), query_name="q", commit_id="01C", elapsed_ms=1.0)
    with pytest.raises(LimitReached) as caught:
        json_body(Rows(result, TargetDocument("main", None)), JsonBounds(rows=10_000, bytes=7_000_000))
    assert caught.value.actual == 8_000_000
    assert caught.value.resource == "bytes"
