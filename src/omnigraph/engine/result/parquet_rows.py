"""Rows of a read as Parquet. Parquet has no date with milliseconds: a DateTime is written as a timestamp in UTC."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MOMENT = pa.timestamp("ms", "UTC")


def parquet_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of the file: every DateTime, also one in a list or a node, is a timestamp."""
    return pa.schema([_field(field) for field in schema], metadata=schema.metadata)


def parquet_chunks(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Yield a Parquet file, one row group per batch; the last chunk is its footer."""
    target = parquet_schema(schema)
    sink = _Sink()
    with pq.ParquetWriter(pa.PythonFile(sink, "w"), target) as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch]).cast(target))
            yield sink.take()
    yield sink.take()


class _Sink(io.RawIOBase):
    """A file whose content is taken while it is written; positions count everything that was written."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._waiting.append(bytes(data))
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def take(self) -> bytes:
        """Return what was written since the last call."""
        data = b"".join(self._waiting)
        self._waiting.clear()
        return data


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(_type(field.type))


def _type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_date64(type_):
        return MOMENT
    if pa.types.is_struct(type_):
        return pa.struct([_field(type_.field(number)) for number in range(type_.num_fields)])
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(_field(type_.value_field), type_.list_size)
    if pa.types.is_list(type_):
        return pa.list_(_field(type_.value_field))
    return type_
