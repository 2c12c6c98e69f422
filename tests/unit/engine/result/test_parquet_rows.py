"""Rows as Parquet: moments keep their time of day, and several batches are one file."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.engine.result.parquet_rows import parquet_chunks

SCHEMA = pa.schema(
    [
        ("at", pa.date64()),
        ("node", pa.struct([("id", pa.string()), ("at", pa.date64()), ("v", pa.list_(pa.float32(), 2))])),
        ("all", pa.list_(pa.date64())),
        ("n", pa.int64()),
    ]
)
NOON = datetime(2026, 3, 4, 12, 30, tzinfo=UTC)


def batch(numbers: list[int]) -> pa.RecordBatch:
    ms = int(NOON.timestamp() * 1000)
    rows = [{"at": ms, "node": {"id": str(n), "at": ms, "v": [n, 0.5]}, "all": [ms], "n": n} for n in numbers]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def test_moments_keep_their_time_of_day() -> None:
    body = b"".join(parquet_chunks(SCHEMA, iter([batch([1, 2]), batch([3])])))
    rows = pq.read_table(io.BytesIO(body)).to_pylist()
    assert [row["n"] for row in rows] == [1, 2, 3]
    assert rows[2] == {"at": NOON, "node": {"id": "3", "at": NOON, "v": [3.0, 0.5]}, "all": [NOON], "n": 3}


def test_no_rows_are_a_file_with_columns() -> None:
    body = b"".join(parquet_chunks(SCHEMA, iter(())))
    assert pq.read_table(io.BytesIO(body)).column_names == SCHEMA.names
