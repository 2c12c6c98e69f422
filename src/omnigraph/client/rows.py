"""Rows of a query from an Arrow stream, which are read while they arrive."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice

import pyarrow as pa

from omnigraph.client.decoders import ArrowDecoder, read_arrow
from omnigraph.client.failures import reading, unreadable
from omnigraph.client.messages import Request, Response
from omnigraph.engine.result.result import Result
from omnigraph.engine.result.result_graph import ResultGraph, read_result_graph

KEPT_BYTES = 64 * 1024 * 1024
"""Rows that stay in memory for a second pass; the query of a larger result is repeated for it."""
_METADATA = (b"query_name", b"graph_commit_id", b"next", b"row_count", b"elapsed_ms", b"shape")


@reading
def result_of(response: Response, again: Callable[[str], Request]) -> Result:
    """Return the result of an answer; `again` returns the request of the same query at a commit."""
    if response.rest is None:
        table = read_arrow(response.body)
        rows: pa.Table | StreamedRows = table.replace_schema_metadata(_without_answer(table.schema).metadata)
        return _result(rows, table.schema)
    return _streamed_result(response, response.rest, again)


def _result(rows: pa.Table | StreamedRows, schema: pa.Schema) -> Result:
    """Return a result with the properties that the metadata of a schema describe."""
    told = schema.metadata or {}
    cursor = told.get(b"next")
    return Result(
        rows,
        query_name=told.get(b"query_name", b"").decode(),
        commit_id=told[b"graph_commit_id"].decode(),
        elapsed_ms=float(told.get(b"elapsed_ms", 0)),
        shape=partial(_shape_of, told.get(b"shape")),
        next=None if cursor is None else cursor.decode(),
    )


@reading
def _shape_of(text: bytes | None) -> ResultGraph:
    """Return the shape that the metadata describe; an older server sends none."""
    return ResultGraph() if text is None else read_result_graph(json.loads(text))


def _streamed_result(response: Response, rest: Iterator[bytes], again: Callable[[str], Request]) -> Result:
    decoder = ArrowDecoder()
    batches = decoder.feed(response.body)
    while decoder.schema is None and (chunk := next(rest, None)) is not None:
        batches += decoder.feed(chunk)
    if decoder.schema is None:
        raise unreadable("the Arrow stream has no schema")
    resend = response.resend
    assert resend is not None, "a streamed answer can be requested again"
    schema, told = _without_answer(decoder.schema), decoder.schema.metadata
    count = int(told[b"row_count"])
    restart = partial(_restarted, resend, again(told[b"graph_commit_id"].decode()), schema, count)
    rows = StreamedRows(schema, count, _arriving(decoder, batches, rest, schema, count), restart)
    return _result(rows, decoder.schema)


class StreamedRows:
    """Rows that arrive batch by batch.

    The batches of a result of up to 64 MiB are kept. A larger one is read once; a second pass repeats the query at the
    same commit.
    """

    def __init__(
        self,
        schema: pa.Schema,
        count: int,
        arriving: Iterator[pa.RecordBatch],
        again: Callable[[], Iterator[pa.RecordBatch]],
    ) -> None:
        self.schema = schema
        self._count = count
        self._arriving: Iterator[pa.RecordBatch] | None = arriving
        self._again = again
        self._kept: list[pa.RecordBatch] = []
        self._bytes = 0

    def __len__(self) -> int:
        return self._count

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches of at most `rows` rows."""
        for batch in self._batches():
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)

    @property
    def _too_large(self) -> bool:
        return self._bytes > KEPT_BYTES

    def _batches(self) -> Iterator[pa.RecordBatch]:
        position = 0
        while not self._too_large:
            if position < len(self._kept):
                yield self._kept[position]
                position += 1
                continue
            batch = self._next()
            if batch is None:
                self._arriving = None
                return
            self._bytes += batch.nbytes
            self._kept.append(batch)
        rest = self._remaining(position)
        yield from rest

    def _next(self) -> pa.RecordBatch | None:
        """Return the next batch that arrives. If it is lost, a later pass continues here with the query repeated."""
        if self._arriving is None:
            return None
        try:
            return next(self._arriving, None)
        except BaseException:
            self._arriving = self._from(len(self._kept))
            raise

    def _from(self, position: int) -> Iterator[pa.RecordBatch]:
        yield from islice(self._again(), position, None)

    def _remaining(self, position: int) -> Iterator[pa.RecordBatch]:
        """Return the batches from a position of a result that is too large to be kept."""
        kept, arriving = self._kept, self._arriving
        self._kept, self._arriving = [], None
        if arriving is None:
            return self._from(position)
        return chain(kept[position:], arriving)


def _arriving(
    decoder: ArrowDecoder, batches: list[pa.RecordBatch], rest: Iterator[bytes], schema: pa.Schema, count: int
) -> Iterator[pa.RecordBatch]:
    found = 0
    for batch in chain(batches, (batch for chunk in rest for batch in decoder.feed(chunk))):
        found += batch.num_rows
        yield _plain(batch, schema)
    decoder.finish()
    if found != count:
        raise unreadable(f"it has {found} rows and states {count}")


def _restarted(
    resend: Callable[[Request], Iterator[bytes]], request: Request, schema: pa.Schema, count: int
) -> Iterator[pa.RecordBatch]:
    return _arriving(ArrowDecoder(), [], resend(request), schema, count)


def _without_answer(schema: pa.Schema) -> pa.Schema:
    """Return the schema without the metadata that describe the answer."""
    kept = {key: value for key, value in (schema.metadata or {}).items() if key not in _METADATA}
    return schema.with_metadata(kept or None)


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return batch.replace_schema_metadata(schema.metadata)
