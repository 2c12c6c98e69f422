"""Decoding of Parquet files in bounded memory.

A small file can contain a large table: a value of a dictionary page is stored once for any number of rows. Text columns
are read as dictionaries and decoded in batches of bounded size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.errors import InputError


def open_parquet(source: pa.NativeFile, name: str) -> Any:
    """Open a file with its text columns as dictionaries; raise `InputError` if a column chunk is too large."""
    import pyarrow.parquet as pq  # noqa: PLC0415 (slow to import, and only needed here)

    # `read_table` is not used: it treats a folder named `x=1` as a partition column.
    file = pq.ParquetFile(source)
    metadata = file.metadata
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            size = metadata.row_group(group).column(place).total_uncompressed_size
            if size > tuning.current.parquet_chunk_bytes_max:
                raise InputError(
                    f"'{name}' cannot be read: row group {group} decompresses to {size:,} bytes in one column, and the "
                    f"limit is {tuning.current.parquet_chunk_bytes_max:,}",
                    code="unreadable_file",
                    hint="write smaller row groups",
                )
    texts = [field.name for field in file.schema_arrow if _is_text(field.type)]
    return pq.ParquetFile(source, metadata=metadata, read_dictionary=texts) if texts else file


def decoded_bytes(file: Any) -> int:
    """Return a lower bound of the size of the decoded table."""
    metadata = file.metadata
    stored = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    return max(int(stored), int(metadata.num_rows) * int(metadata.num_columns))


def read_batches(file: Any, group: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a row group."""
    for batch in file.iter_batches(batch_size=tuning.current.parquet_batch_rows, row_groups=[group]):
        coded = [pa.types.is_dictionary(type_) for type_ in batch.schema.types]
        if not any(coded):
            yield batch
            continue
        sizes = sum(_sizes(column) for column, is_coded in zip(batch.columns, coded, strict=True) if is_coded)
        ends = np.cumsum(sizes)
        start = 0
        while start < batch.num_rows:
            before = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + tuning.current.parquet_batch_bytes, side="right")))
            yield _decoded(batch.slice(start, stop - start))
            start = stop


def _sizes(column: pa.DictionaryArray) -> Any:
    """Return the number of bytes of each value."""
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return pc.fill_null(lengths.take(column.indices), 0).to_numpy(zero_copy_only=False)


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns
    ]
    fields = [field.with_type(column.type) for field, column in zip(batch.schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, batch.schema.metadata))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
