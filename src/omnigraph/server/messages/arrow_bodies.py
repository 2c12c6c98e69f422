"""Request bodies of Arrow streams: one or several IPC streams, one behind the other, each with the rows of one type.

The file is mapped into memory. Every array is validated before it is used, because the engine trusts the offsets of an
array.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from omnigraph.arrays import validate_fully
from omnigraph.errors import InputError, LimitReached
from omnigraph.server.messages.arrow_sizes import decoded_sizes, plain_size

TYPE_KEY = b"omnigraph.type"
"""Key in the metadata of a schema that names the type of the rows."""


def read_streams(path: Path, type_name: str | None, *, bytes_max: int) -> dict[str, pa.Table]:
    """Return the rows by type; `type_name` is the type of a stream that names none."""
    found: dict[str, list[pa.Table]] = {}
    size = 0
    with _arrow_errors(), pa.memory_map(str(path)) as file:
        while file.tell() < file.size() or not found:
            start = file.tell()
            _check_sizes(file, size, bytes_max)
            file.seek(start)
            name, table, size = _read_stream(file, type_name, size, bytes_max)
            found.setdefault(name, []).append(table)
    return {name: _joined(name, tables) for name, tables in found.items()}


def _check_sizes(file: pa.MemoryMappedFile, size: int, bytes_max: int) -> None:
    """Refuse a stream whose batches are too large, before one of them is decoded."""
    for batch_size in decoded_sizes(file):
        size += batch_size
        if size > bytes_max:
            raise _too_large(bytes_max, size)


def _too_large(bytes_max: int, size: int) -> LimitReached:
    return LimitReached(
        f"the Arrow streams have more than {bytes_max:,} bytes without compression",
        resource="bytes",
        limit=bytes_max,
        actual=size,
        hint="load the rows in several requests",
    )


def _read_stream(
    file: pa.MemoryMappedFile, type_name: str | None, size: int, bytes_max: int
) -> tuple[str, pa.Table, int]:
    """Return the type and the rows of a stream, and the size of all rows so far."""
    with pa.ipc.open_stream(file) as reader:
        name = _type_of(reader.schema, type_name)
        batches: list[pa.RecordBatch] = []
        for batch in reader:
            batch.validate()
            for column in batch.columns:
                validate_fully(column)
            batches.append(batch)
            size += sum(map(plain_size, batch.columns))
            if size > bytes_max:
                raise _too_large(bytes_max, size)
        schema = reader.schema.remove_metadata()
    table = pa.Table.from_batches(batches, reader.schema).cast(schema) if batches else schema.empty_table()
    return name, table, size


def _type_of(schema: pa.Schema, type_name: str | None) -> str:
    named = (schema.metadata or {}).get(TYPE_KEY)
    name = named.decode() if named is not None else type_name
    if not name:
        raise InputError(
            "an Arrow stream does not name the type of its rows",
            code="no_type",
            hint="set 'omnigraph.type' in the metadata of the schema, or the parameter 'type'",
        )
    return name


def _joined(name: str, tables: list[pa.Table]) -> pa.Table:
    if any(table.schema != tables[0].schema for table in tables):
        raise InputError(
            f"the Arrow streams of type '{name}' have different schemas",
            code="bad_arrow",
            hint="send all rows of a type with the same columns",
        )
    return pa.concat_tables(tables)


@contextmanager
def _arrow_errors() -> Iterator[None]:
    """Turn the errors of a wrong stream into `InputError`."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, MemoryError, struct.error) as error:
        text = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(
            f"the body is not a valid Arrow stream: {text}",
            code="bad_arrow",
            hint="send one or several Arrow IPC streams, not a file of the format Arrow IPC file",
        ) from None
