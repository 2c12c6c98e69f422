"""Whole tables as Arrow streams, JSON lines or CSV. A few batches are in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from omnigraph.engine.result.csv_rows import csv_lines
from omnigraph.engine.result.result import batch_values
from omnigraph.server.caller import Caller, point_of
from omnigraph.server.messages.answers import Chunk, Chunks
from omnigraph.server.messages.content_negotiation import (
    ARROW_BATCH_ROWS,
    BATCH_ROWS,
    CONTENT_TYPES,
    arrow_chunks,
    joined_lines,
    split_blocks,
)
from omnigraph.table_key import TypeKind
from omnigraph.wire.document import encoder
from omnigraph.wire.json_lines import EndDocument, StreamMetadataDocument
from omnigraph.wire.requests.tables import PointQuery, TableQuery

COMMIT_KEY = b"graph_commit_id"
"""Key in the metadata of a table's schema that names the commit."""


def read_table(caller: Caller, body: TableQuery, type: str) -> Chunks:
    """Send all rows of a type."""
    return table_chunks(caller, body, type, columns=body.columns, kind=body.entity)


def table_chunks(
    caller: Caller,
    point: PointQuery,
    type_name: str,
    *,
    columns: Sequence[str] | None = None,
    kind: TypeKind | None = None,
) -> Chunks:
    """Return the rows of a type in the form of the request."""
    reader = caller.graph.to_batches(
        type_name,
        columns=columns,
        branch=point.branch,
        at=point_of(point.at),
        kind=kind,
        batch_rows=ARROW_BATCH_ROWS if caller.negotiated.form == "arrow" else BATCH_ROWS,
        cancel=caller.cancel,
        timeout=caller.long_timeout_s,
    )
    commit = reader.schema.metadata[COMMIT_KEY].decode()
    form = caller.negotiated.form
    chunks: Iterator[Chunk]
    if form == "ndjson":
        chunks = split_blocks(_ndjson_blocks(reader, type_name, commit))
    elif form == "csv":
        chunks = joined_lines(line.encode() for line in csv_lines(reader.schema.names, _values(reader)))
    else:
        metadata = {"omnigraph.type": type_name, COMMIT_KEY.decode(): commit}
        chunks = arrow_chunks(reader.schema, _batches(reader), caller.negotiated, metadata)
    return Chunks(chunks, CONTENT_TYPES[form], commit=commit)


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    with reader:
        yield from reader


def _values(reader: pa.RecordBatchReader) -> Iterator[list[list[object]]]:
    for batch in _batches(reader):
        yield batch_values(batch)


def _ndjson_blocks(reader: pa.RecordBatchReader, type_name: str, commit: str) -> Iterator[bytes]:
    names = reader.schema.names
    metadata = StreamMetadataDocument(content="table", type_name=type_name, graph_commit_id=commit)
    yield encoder.encode(metadata) + b"\n"
    count = 0
    for columns in _values(reader):
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        count += len(rows)
        yield encoder.encode_lines(rows)
    yield encoder.encode(EndDocument(rows=count, graph_commit_id=commit)) + b"\n"
