"""Content negotiation: the form of an answer by `Accept`, and the encoding of answers in each form.

Encoding runs in the thread of the call. Rows as NDJSON, Arrow and CSV are encoded batch by batch while they are sent;
JSON is one document and therefore bounded by `json_rows` and `json_bytes`.
"""

from __future__ import annotations

import io
import json
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import rows_within
from omnigraph.engine import tuning
from omnigraph.engine.result.csv_rows import csv_rows
from omnigraph.engine.result.parquet_rows import parquet_chunks
from omnigraph.engine.result.result import Result
from omnigraph.errors import LimitReached
from omnigraph.server.errors import RequestFault
from omnigraph.server.messages.answers import Chunk, Rows
from omnigraph.wire.document import Document, encoder
from omnigraph.wire.json_lines import EndDocument
from omnigraph.wire.queries import query_document, query_metadata

Form = Literal["json", "ndjson", "arrow", "csv", "parquet", "events", "problem", "octets", "html"]
MEDIA_TYPES: dict[Form, str] = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "arrow": "application/vnd.apache.arrow.stream",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "events": "text/event-stream",
    "problem": "application/problem+json",
    "octets": "application/octet-stream",
    "html": "text/html",
}
_FORMS = {media: form for form, media in MEDIA_TYPES.items()}
CONTENT_TYPES: dict[Form, str] = {
    **MEDIA_TYPES,
    "json": "application/json; charset=utf-8",
    "ndjson": "application/x-ndjson; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "events": "text/event-stream; charset=utf-8",
}
CHUNK_BYTES = 64 * 1024
"""Largest size of an NDJSON or CSV chunk; an Arrow chunk is one batch."""
GZIP_MIN_BYTES = 8 * 1024
BATCH_ROWS = 16_384
ARROW_BATCH_ROWS = 65_536
"""Rows of an Arrow batch. Each batch costs a change of thread, and a client reads large ones faster."""
BATCH_BYTES = 4 * 1024 * 1024
"""Largest size of an Arrow batch, unless one row is larger."""
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
_NUMBER_BYTES = 4
"""Least size of a number of a vector in JSON, with its separator, such as `0.0,`."""
_ROWS_HINT = "request application/x-ndjson or application/vnd.apache.arrow.stream, or pages with 'page'"
LIST_HINT = "request application/x-ndjson, or a part with 'limit'"
_CODECS = ("zstd", "lz4")
_GZIP_FORMS = frozenset({"json", "ndjson", "html"})
_TYPED_FORMS = frozenset({"json", "ndjson"})


@dataclass(frozen=True)
class Negotiated:
    """The chosen form of an answer, the codec of an Arrow stream, and how the body is written."""

    form: Form
    codec: str | None = None
    gzip: bool = False
    typed: bool = False
    """True if the values of rows in JSON keep their types."""

    @property
    def parts(self) -> tuple[str, ...]:
        """What distinguishes the bytes of answers with the same content."""
        return self.form, self.codec or "", "gzip" if self.compresses(None) else "", "typed" if self.typed else ""

    @property
    def content_type(self) -> str:
        """The media type of an answer with documents."""
        return f"{CONTENT_TYPES[self.form]}; values=typed" if self.typed else CONTENT_TYPES[self.form]

    def compresses(self, size: int | None) -> bool:
        """Return True if a body of this size (None: unknown) is compressed."""
        return self.gzip and self.form in _GZIP_FORMS and (size is None or size >= GZIP_MIN_BYTES)


DEFAULT = Negotiated("json")


def negotiate(accept: str | None, encoding: str | None, forms: Sequence[Form]) -> Negotiated:
    """Choose the form of an answer; a route that offers no requested form answers 406."""
    gzip = encoding is not None and _accepts_gzip(encoding)
    if accept is None or accept in ("*/*", "application/json"):
        return Negotiated(forms[0] if accept != "application/json" or "json" not in forms else "json", None, gzip)
    for media, parameters in _by_preference(accept):
        form = _match(media, forms)
        if form is not None:
            codec = parameters.get("codec") if form == "arrow" else None
            if codec is not None and codec not in _CODECS:
                raise RequestFault(
                    f"there is no codec '{codec}' for Arrow streams; the codecs are {', '.join(_CODECS)}",
                    status=406,
                    code="not_acceptable",
                )
            return Negotiated(form, codec, gzip, _is_typed(form, parameters))
        if media == MEDIA_TYPES["problem"] and "json" in forms:
            return Negotiated("json", None, gzip)
    offered = ", ".join(MEDIA_TYPES[form] for form in forms)
    raise RequestFault(
        f"this route does not answer in the form {accept!r}; it offers {offered}", status=406, code="not_acceptable"
    )


def _is_typed(form: Form, parameters: Mapping[str, str]) -> bool:
    """Return True if the values of rows are to keep their types: `values=typed`."""
    values = parameters.get("values") if form in _TYPED_FORMS else None
    if values not in (None, "typed"):
        raise RequestFault(
            f"there is no form of values '{values}'; the only one is typed", status=406, code="not_acceptable"
        )
    return values is not None


def wants_typed(accept: str | None) -> bool:
    """Return True if the values of rows in an error are to keep their types."""
    return accept is not None and any(
        media == MEDIA_TYPES["json"] and parameters.get("values") == "typed"
        for media, parameters in _by_preference(accept)
    )


def wants_problem(accept: str | None) -> bool:
    """Return True if an error is to be answered as `application/problem+json`."""
    return accept is not None and MEDIA_TYPES["problem"] in accept


def _match(media: str, forms: Sequence[Form]) -> Form | None:
    if media in ("*/*", "application/*") and forms[0] != "csv":
        return forms[0]
    if media == "text/*":
        return next((form for form in forms if MEDIA_TYPES[form].startswith("text/")), None)
    form = _FORMS.get(media)
    return form if form in forms else None


def _by_preference(accept: str) -> list[tuple[str, dict[str, str]]]:
    found: list[tuple[float, int, str, dict[str, str]]] = []
    for number, item in enumerate(accept.split(",")):
        media, *rest = (part.strip() for part in item.split(";"))
        parameters = {
            name.strip().lower(): value.strip().strip('"') for name, _, value in (p.partition("=") for p in rest)
        }
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        if quality > 0 and media:
            found.append((-quality, number, media.lower(), parameters))
    return [(media, parameters) for _, _, media, parameters in sorted(found, key=lambda entry: entry[:2])]


def _accepts_gzip(encoding: str) -> bool:
    for item in encoding.lower().split(","):
        name, _, weight = item.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


@dataclass(frozen=True)
class JsonBounds:
    """Largest number of rows and bytes of one JSON document."""

    rows: int
    bytes: int


def json_body(rows: Rows, bounds: JsonBounds) -> bytes:
    """Return the rows of a query as one JSON document; raise `LimitReached` if it is too large."""
    result = rows.result
    check_json("rows", len(result), bounds.rows)
    if len(result) > tuning.current.python_result_rows_max:
        check_json("bytes", _least_json_bytes(result.to_arrow()), bounds.bytes)
    document = query_document(result, rows.target, result.to_columns())
    document.elapsed_ms = round(result.elapsed_ms, 3)
    body = encoder.encode(document)
    check_json("bytes", len(body), bounds.bytes)
    return body


def _least_json_bytes(table: pa.Table) -> int:
    """Return a size that the vectors and texts of a table exceed as JSON; it is known without a conversion."""
    size = 0
    for column in table.columns:
        if pa.types.is_fixed_size_list(column.type):
            size += (len(column) - column.null_count) * column.type.list_size * _NUMBER_BYTES
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            size += pc.sum(pc.binary_length(column).cast(pa.int64())).as_py() or 0
    return size


def check_json(resource: Literal["rows", "bytes"], actual: int, limit: int, hint: str = _ROWS_HINT) -> None:
    """Raise `LimitReached` if a JSON document is too large."""
    if actual > limit:
        raise LimitReached(
            f"the result has {actual:,} {resource}; a JSON document has at most {limit:,}",
            code="json_too_large",
            hint=hint,
            resource=resource,
            limit=limit,
            actual=actual,
        )


def row_chunks(rows: Rows, chosen: Negotiated) -> Iterator[Chunk]:
    """Yield the rows of a query as chunks of the chosen form."""
    match chosen.form:
        case "ndjson":
            return split_blocks(_ndjson_blocks(rows))
        case "csv":
            return joined_lines(line.encode() for line in csv_rows(rows.result))
        case "arrow":
            count = rows_within(rows.result.schema, ARROW_BATCH_ROWS, BATCH_BYTES)
            return arrow_chunks(rows.result.schema, rows.result.batches(count), chosen, _arrow_metadata(rows.result))
        case "parquet":
            return parquet_chunks(rows.result.schema, rows.result.batches(ARROW_BATCH_ROWS))
        case "json" | "events" | "problem" | "octets" | "html":
            raise AssertionError(f"rows have no streamed form {chosen.form}")
        case _:
            assert_never(chosen.form)


def _ndjson_blocks(rows: Rows) -> Iterator[bytes]:
    result = rows.result
    names = result.columns
    metadata = query_metadata(result, rows.target)
    metadata.columns, metadata.graph_commit_id = names, result.commit_id
    yield encoder.encode(metadata) + b"\n"
    count = 0
    for columns in result.json_columns():
        objects = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        count += len(objects)
        yield encoder.encode_lines(objects)
    yield encoder.encode(EndDocument(rows=count, graph_commit_id=result.commit_id)) + b"\n"


def split_blocks(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Split blocks into chunks of at most 64 KiB."""
    for block in blocks:
        for start in range(0, len(block), CHUNK_BYTES):
            yield block[start : start + CHUNK_BYTES]


def line_chunks(
    metadata: Document, documents: Iterable[Document], end: Callable[[int], EndDocument]
) -> Iterator[bytes]:
    """Yield a list as JSON lines; `end` returns the last line for the number of documents."""

    def lines() -> Iterator[bytes]:
        yield encoder.encode(metadata)
        count = 0
        for document in documents:
            count += 1
            yield encoder.encode(document)
        yield encoder.encode(end(count))

    return joined_lines(lines())


def joined_lines(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Join lines to chunks of about 64 KiB; a longer line is a chunk of its own."""
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        if size and size + len(line) >= CHUNK_BYTES:
            yield b"\n".join(waiting) + b"\n"
            waiting, size = [], 0
        waiting.append(line)
        size += len(line) + 1
    if waiting:
        yield b"\n".join(waiting) + b"\n"


def _arrow_metadata(result: Result) -> dict[str, str]:
    members = {
        "query_name": result.query_name,
        "graph_commit_id": result.commit_id,
        "row_count": str(len(result)),
        "elapsed_ms": f"{result.elapsed_ms:.3f}",
        "shape": json.dumps(result.shape.to_json()),
    }
    return members if result.next is None else {**members, "next": result.next}


def arrow_chunks(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], chosen: Negotiated, metadata: dict[str, str]
) -> Iterator[Chunk]:
    """Yield an Arrow IPC stream, in chunks of at most one batch; the end-of-stream marker is in the last chunk."""
    schema = schema.with_metadata({**(schema.metadata or {}), **metadata})
    parts = _bounded(batches)
    if chosen.codec is None and not any(_has_dictionary(field.type) for field in schema):
        yield from _plain_messages(schema, parts)
    else:
        yield from _written_messages(schema, parts, chosen.codec)


def _has_dictionary(type_: pa.DataType) -> bool:
    """Return True if a type is or contains a dictionary, which a stream sends in messages of its own."""
    parts = (type_.field(number).type for number in range(type_.num_fields))
    return pa.types.is_dictionary(type_) or any(map(_has_dictionary, parts))


def _bounded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Split batches that are too large for a chunk."""
    for batch in batches:
        rows = _rows_of_part(batch)
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _plain_messages(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
    """Yield the messages of a stream without compression and dictionaries; each batch is copied once."""
    head: bytes | None = schema.serialize().to_pybytes()
    for batch in batches:
        if head is not None:
            # What can fail early fails with the first batch, before the headers of the response.
            yield head + batch.serialize()
            head = None
        else:
            yield memoryview(batch.serialize())
    yield (head or b"") + _END_OF_STREAM


def _written_messages(schema: pa.Schema, batches: Iterator[pa.RecordBatch], codec: str | None) -> Iterator[bytes]:
    """Yield the messages of any stream."""
    sink = io.BytesIO()
    writer = pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression=codec))
    try:
        for batch in batches:
            writer.write_batch(batch)
            yield _taken(sink)
    finally:
        writer.close()
    yield _taken(sink)


def arrow_body(result: Result, chosen: Negotiated) -> bytes | None:
    """Return the rows of a query as one Arrow IPC stream; None if they exceed the size of a chunk."""
    table = result.to_arrow()
    if table.nbytes > CHUNK_BYTES:
        return None
    sink = pa.BufferOutputStream()
    schema = table.schema.with_metadata({**(table.schema.metadata or {}), **_arrow_metadata(result)})
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression=chosen.codec)) as writer:
        writer.write_table(table)
    body: bytes = sink.getvalue().to_pybytes()
    return body


def _rows_of_part(batch: pa.RecordBatch) -> int:
    """Return how many rows of a batch form a chunk; long texts make a batch larger than its types tell."""
    parts = -(-int(batch.nbytes) // BATCH_BYTES)
    return max(1, -(-int(batch.num_rows) // max(parts, 1)))


def arrow_text(table: pa.Table) -> str:
    """Return a table as an Arrow IPC stream in base64, for a document."""
    return b64encode(b"".join(arrow_chunks(table.schema, iter(table.to_batches()), DEFAULT, {}))).decode()


def _taken(sink: io.BytesIO) -> bytes:
    data = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return data


def gzip_bytes(body: bytes) -> bytes:
    """Compress a body."""
    return zlib.compress(body, 1, wbits=zlib.MAX_WBITS | 16)


def gzip_chunks(chunks: Iterator[Chunk]) -> Iterator[bytes]:
    """Compress a stream; every chunk can be decompressed when it arrives."""
    compressor = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    for chunk in chunks:
        yield compressor.compress(chunk) + compressor.flush(zlib.Z_SYNC_FLUSH)
    yield compressor.flush()
