"""Bodies of loads: records as JSON lines, tables as Arrow streams, files as a tar archive.

A body is produced while it is sent, and from the beginning again if the request is repeated.
"""

from __future__ import annotations

import datetime
import io
import math
import tarfile
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from omnigraph.client.local_only import local_parameter
from omnigraph.client.messages import ARROW, NDJSON, TAR, Chunks
from omnigraph.engine.ingest.tabular import table_of
from omnigraph.errors import InputError, OmniGraphError, RecordError
from omnigraph.models.objects import as_records
from omnigraph.operations.load.record_sources import InputFiles, check_records, input_files
from omnigraph.schema.catalog import Catalog
from omnigraph.table_format import TableFormat
from omnigraph.wire.document import encoder
from omnigraph.wire.loads import TYPE_RECORD

if TYPE_CHECKING:
    from omnigraph.pipeline.runner import Watch

CHUNK_BYTES = 1024 * 1024
_RECORDS_AT_ONCE = 1_000
_BODY = "body.jsonl"
"""The name of a body of JSON lines in the errors of a server."""
_TYPE_KEY = "omnigraph.type"
_BLOCK = 512


@dataclass(frozen=True)
class LoadBody:
    """The body of a load: the last segment of its route, its media type, and its chunks."""

    route: str
    media_type: str
    chunks: Chunks
    records: Sequence[Any] | None = None
    """The records, if they are given as Python values."""
    size: int | None = None
    """The number of bytes of the files, if the body consists of files."""

    def watched(self, watch: Watch) -> Chunks:
        """Return the chunks; `watch` is called with the number of KiB that were sent, if the size is known."""
        if self.size is None:
            return self.chunks
        from omnigraph.pipeline.runner import Progress  # noqa: PLC0415 (only if progress is shown)

        size = self.size

        def sent() -> Iterator[bytes]:
            done = 0
            for chunk in self.chunks():
                yield chunk
                done += len(chunk)
                watch(Progress("sending KiB", min(done, size) >> 10, size >> 10))

        return sent

    def original(self, error: RecordError) -> RecordError:
        """Return the error of a record with the place that the caller knows."""
        if self.records is None or error.source != _BODY:
            return error
        made = RecordError(
            error.reason,
            line=error.line,
            type_name=error.type_name,
            property_name=error.property_name,
            rule=error.rule,
            hint=error.hint,
        )
        made.record = self.record(error.line) if error.record is not None else None
        made.column = error.column
        made.code = error.code
        return made

    def record(self, line: int | None) -> Any:
        """Return the record with a number, as it was given."""
        assert self.records is not None
        return self.records[line - 1] if line is not None and 0 < line <= len(self.records) else None

    def renamed(self, error: OmniGraphError) -> OmniGraphError:
        """Return the error of a load; its message names the records of a list as an embedded graph does."""
        if self.records is not None and f"{_BODY}, line " in error.message:
            error.message = error.message.replace(f"{_BODY}, line ", "line ")
            error.args = (error.message,)
        return error

    def source(self, name: str | None) -> str | None:
        """Return the name of an input as the caller knows it."""
        return None if name == _BODY else name


def needs_catalog(data: Any) -> bool:
    """Return True if the schema is required to convert tables: pandas has no integers next to missing values."""
    return isinstance(data, Mapping) and any(
        type(table).__module__.partition(".")[0] == "pandas" for table in data.values()
    )


def load_body(data: Any, environ: Mapping[str, str], format: TableFormat, catalog: Catalog | None) -> LoadBody:
    """Return the body of a load: paths or patterns, an iterable of records, or one table per type name."""
    files = input_files(data, environ, format, grouped=False)
    if files is not None:
        return LoadBody("files", TAR, lambda: _archive(files), size=sum(file.size for file in files))
    if isinstance(data, Mapping) and not ("type" in data or "edge" in data):
        tables = {name: _sent_table(name, table, catalog, format) for name, table in data.items()}
        return LoadBody("arrow", ARROW, lambda: _streams(tables))
    records = check_records(as_records(data))
    return LoadBody("ndjson", NDJSON, lambda: _lines(records), records)


def _lines(records: Sequence[Any]) -> Iterator[bytes]:
    remaining = iter(records)
    while block := list(islice(remaining, _RECORDS_AT_ONCE)):
        try:
            yield encoder.encode_lines([_plain(record) for record in block])
        except (TypeError, NotImplementedError, OverflowError, ValueError, msgspec.MsgspecError) as error:
            raise InputError(
                f"a record cannot be sent to a server: {error}", hint="use numbers, texts, booleans, dates and lists"
            ) from error


def _plain(value: Any) -> Any:
    """Convert the values of a record to JSON values that a load reads as the same values."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case dict():
            return {key: _plain(member) for key, member in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case datetime.date():
            return value.isoformat()
        case bytes():
            return "base64:" + b64encode(value).decode()
    return value


def _sent_table(name: str, data: Any, catalog: Catalog | None, format: TableFormat) -> pa.Table:
    if type(data).__module__.startswith("pyspark."):
        raise local_parameter("load", "data")
    found = table_of(name, data, catalog, format)
    if found.values:
        raise InputError(
            f"column '{next(iter(found.values))}' of '{name}' has values of several types, which Arrow cannot hold",
            code="not_remote",
            hint="give the column one type, or load a list of records",
        )
    return found.table


def _streams(tables: Mapping[str, pa.Table]) -> Iterator[bytes]:
    for name, table in tables.items():
        sink = io.BytesIO()
        schema = table.schema.with_metadata({**(table.schema.metadata or {}), _TYPE_KEY: name})
        writer = pa.ipc.new_stream(sink, schema)
        for batch in table.to_batches(max_chunksize=16_384):
            writer.write_batch(batch)
            yield _taken(sink)
        writer.close()
        yield _taken(sink)


def _taken(sink: io.BytesIO) -> bytes:
    data = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return data


def _archive(files: InputFiles) -> Iterator[bytes]:
    for file in files:
        info = tarfile.TarInfo(file.name)
        info.size = file.size
        if file.type_name is not None:
            info.pax_headers = {TYPE_RECORD: file.type_name}
        yield info.tobuf(tarfile.PAX_FORMAT)
        for start in range(0, file.size, CHUNK_BYTES):
            data = file.read(start, min(start + CHUNK_BYTES, file.size))
            if len(data) != min(CHUNK_BYTES, file.size - start):
                raise InputError(f"'{file.name}' changed while it was sent", code="unreadable_file")
            yield data
        yield b"\0" * (-file.size % _BLOCK)
    yield b"\0" * (2 * _BLOCK)
