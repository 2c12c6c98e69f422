"""Calls that read without a query: single rows, tables, exports and Blob values."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.client.call import Call, Stream
from omnigraph.client.calls.handle import at_text
from omnigraph.client.calls.schemas import SchemaCalls
from omnigraph.client.decoders import ArrowDecoder, LineDecoder, read_arrow
from omnigraph.client.failures import reading, unreadable
from omnigraph.client.local_only import check_engine, local_parameter
from omnigraph.client.messages import ARROW, NDJSON, OCTETS, TYPED_JSON, TYPED_NDJSON, Request, Response
from omnigraph.errors import InputError, NotFound, RemoteError
from omnigraph.graph_tables import row_id
from omnigraph.operations.export import chosen_types
from omnigraph.operations.formats.graph_writer import GraphFormat, GraphWriter, open_writer
from omnigraph.operations.memory_graphs import rustworkx_of, sparse_edge, sparse_of
from omnigraph.operations.networkx_export import NetworkTypes, network_of
from omnigraph.operations.pyg_export import TensorTypes, check_pyg, hetero_data
from omnigraph.operations.requests import check_seconds
from omnigraph.pipeline.export import ExportFormat, ExportRequest, check_format, export_tables
from omnigraph.schema.catalog import Catalog
from omnigraph.wire.entities import EntityDocument
from omnigraph.wire.requests.tables import BlobQuery, GetQuery, TableQuery
from omnigraph.wire.requests.tables import ExportRequest as ExportInput
from omnigraph.wire.typed_values import untyped_value

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.table_key import TypeKind
    from omnigraph.versioning.write.repository import At

COMMIT_KEY = b"graph_commit_id"
_PARTIAL = 206


class TableCalls(SchemaCalls):
    """Calls that read without a query."""

    def get(
        self,
        type_name: str,
        id: str | int,
        *,
        branch: str | None = None,
        at: At = None,
        kind: TypeKind | None = None,
    ) -> Call[dict[str, Any] | None]:
        """Return one node or edge by its id, None if it does not exist. The id of a keyed node is its key.

        Arguments are as in `Graph.get`.
        """
        input = GetQuery(branch=self._branch(branch), at=at_text(at), entity=_kind(kind))
        try:
            answer = yield self._get("entities", type_name, row_id(id), input=input, accept=TYPED_JSON)
        except NotFound as error:
            if error.code != "entity_not_found":
                raise
            return None
        found = answer.document(EntityDocument)
        with reading:
            return {"id": found.id, **{name: untyped_value(value) for name, value in found.data.items()}}

    def entity_at(self, type_name: str, id: str | int, at: At) -> Call[dict[str, Any] | None]:
        """Return one node or edge at a point in time, None if it did not exist."""
        return self.get(type_name, id, at=at)

    def to_batches(
        self,
        type_name: str,
        *,
        columns: Sequence[str] | None = None,
        branch: str | None = None,
        at: At = None,
        kind: TypeKind | None = None,
        batch_rows: int = 65_536,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Stream[pa.RecordBatch]:
        """Return a reader of the rows of `to_arrow` in batches; a few batches are in memory at a time.

        Arguments are as in `Graph.to_batches`.
        """
        if type(batch_rows) is not int or batch_rows < 1:
            raise InputError(f"batch_rows must be a positive integer (got {str(batch_rows)[:40]})")
        request = self._table(type_name, columns, branch, at, kind, cancel, timeout)
        return Stream(replace(request, streamed=True), lambda: BatchDecoder(batch_rows))

    def to_arrow(
        self,
        type_name: str,
        *,
        columns: Sequence[str] | None = None,
        branch: str | None = None,
        at: At = None,
        kind: TypeKind | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[pa.Table]:
        """Return all rows of a type as an Arrow table; by default all columns, ids first, then properties by name.

        Arguments are as in `Graph.to_arrow`.
        """
        answer = yield self._table(type_name, columns, branch, at, kind, cancel, timeout)
        return _table_of(answer.body)

    def to_networkx(self, types: Sequence[str] | None = None, *, branch: str | None = None, at: At = None) -> Call[Any]:
        """Return the graph as a `networkx.MultiDiGraph` of (type, id) nodes, with properties as attributes."""
        point = (yield from self.snapshot(branch, at)).point
        catalog = yield from self.catalog(at=point)
        chosen = NetworkTypes.of(catalog, types)
        nodes = yield from self._records(chosen.nodes, point)
        edges = yield from self._records(chosen.edges, point)
        return network_of(catalog, nodes, edges)

    def to_rustworkx(
        self, types: Sequence[str] | None = None, *, branch: str | None = None, at: At = None
    ) -> Call[tuple[Any, dict[tuple[str, str], int]]]:
        """Return the graph as a `rustworkx.PyDiGraph` with properties as payloads, and the index of each (type, id)."""
        point = (yield from self.snapshot(branch, at)).point
        catalog = yield from self.catalog(at=point)
        chosen = NetworkTypes.of(catalog, types)
        nodes = yield from self._records(chosen.nodes, point)
        edges = yield from self._records(chosen.edges, point)
        return rustworkx_of(catalog, nodes, edges)

    def to_sparse(
        self, edge: str, *, weight: str | None = None, branch: str | None = None, at: At = None
    ) -> Call[tuple[Any, pa.Array, pa.Array]]:
        """Return the edges of a type as a `scipy.sparse.csr_array`, with the ids of its rows and columns.

        Arguments are as in `Graph.to_sparse`.
        """
        point = (yield from self.snapshot(branch, at)).point
        type_ = sparse_edge((yield from self.catalog(at=point)), edge, weight)
        ids: dict[str, pa.Array] = {}
        for name in {type_.from_type, type_.to_type}:
            found = yield from self.to_arrow(name, columns=["id"], at=point, kind="node")
            ids[name] = found["id"].combine_chunks()
        columns = ["src", "dst", *([weight] if weight else [])]
        rows = yield from self.to_arrow(edge, columns=columns, at=point, kind="edge")
        return sparse_of(rows, ids[type_.from_type], ids[type_.to_type], weight)

    def to_pyg(
        self,
        types: Sequence[str] | None = None,
        *,
        features: Mapping[str, Sequence[str]] | None = None,
        labels: Mapping[str, str] | None = None,
        branch: str | None = None,
        at: At = None,
    ) -> Call[Any]:
        """Return the graph as `HeteroData` of PyTorch Geometric.

        Arguments are as in `Graph.to_pyg`.
        """
        point = (yield from self.snapshot(branch, at)).point
        chosen = TensorTypes.of((yield from self.catalog(at=point)), types, features, labels)
        check_pyg()
        tables = []
        for name, kind, columns in chosen.tables():
            tables.append((yield from self.to_arrow(name, columns=columns, at=point, kind=kind)))
        return hetero_data(chosen, tables)

    def export_stream(
        self,
        types: Sequence[str] | None,
        branch: str | None,
        at: At,
        cancel: Cancellation | None,
        timeout: float | None,
    ) -> Stream[dict[str, Any]]:
        """Return the stream of the records of a snapshot."""
        request = self._export(types, branch, at, cancel, timeout, accept=TYPED_NDJSON)
        return Stream(request, RecordDecoder)

    def export_lines(
        self,
        types: Sequence[str] | None,
        branch: str | None,
        at: At,
        cancel: Cancellation | None,
        timeout: float | None,
    ) -> Stream[bytes]:
        """Return the stream of the records of a snapshot as JSON lines."""
        return Stream(self._export(types, branch, at, cancel, timeout, accept=NDJSON), PlainDecoder)

    def export_point(self, branch: str | None, at: At) -> Call[tuple[Catalog, str]]:
        """Return the types of a snapshot and its point, which later requests name."""
        point = (yield from self.snapshot(branch, at)).point
        return (yield from self.catalog(at=point)), point

    def graph_streams(
        self, writer: GraphWriter, point: str, cancel: Cancellation | None, timeout: float | None
    ) -> list[Stream[dict[str, Any]]]:
        """Return the streams of the records that a writer takes: nodes, then edges."""
        tables = [[type_.table_key for type_ in writer.nodes], [type_.table_key for type_ in writer.edges]]
        return [self.export_stream(keys, None, point, cancel, timeout) for keys in tables if keys]

    def export_files(
        self,
        request: ExportRequest,
        branch: str | None,
        at: At,
        cancel: Cancellation | None,
        timeout: float | None,
        environ: Mapping[str, str],
    ) -> Call[int]:
        """Write the tables of a snapshot to a new folder, one file for each type; return the number of rows."""
        snapshot = yield from self.snapshot(branch, at)
        catalog = yield from self.catalog(at=snapshot.point)
        tables: dict[str, pa.Table] = {}
        for type_ in chosen_types(catalog, request.types):
            answer = yield self._table(type_.name, None, branch, snapshot.point, type_.kind, cancel, timeout)
            tables[type_.table_key] = _table_of(answer.body)
        return export_tables(request, catalog, snapshot.commit_id, tables, environ).rows

    def blob(
        self,
        type_name: str,
        id: str | int,
        property: str,
        *,
        branch: str | None = None,
        at: At = None,
        kind: TypeKind | None = None,
    ) -> Call[BlobAddress]:
        """Return a Blob value, which is read in ranges; `NotFound` if the row does not exist or the value is null.

        Arguments are as in `Graph.blob`.
        """
        names: dict[str, Any] = {"type": type_name, "id": row_id(id), "property_": property, "entity": _kind(kind)}
        input = BlobQuery(**names, branch=self._branch(branch), at=at_text(at))
        request = self._get("blob", input=input, accept=OCTETS)
        try:
            answer = yield replace(request, method="HEAD")
        except RemoteError:
            # The answer to HEAD has no body, and so no error.
            answer = yield replace(request, headers={"Range": "bytes=0-0"})
        with reading:
            etag = answer.headers["etag"].strip('"')
            commit_id = answer.headers["omnigraph-snapshot-id"]
            size = _size_of(answer)
        fixed = self._get("blob", input=BlobQuery(**names, snapshot=commit_id), accept=OCTETS)
        return BlobAddress(fixed, size, etag, commit_id)

    def _table(
        self,
        type_name: str,
        columns: Sequence[str] | None,
        branch: str | None,
        at: At,
        kind: TypeKind | None,
        cancel: Cancellation | None,
        timeout: float | None,
    ) -> Request:
        check_timeout(timeout)
        named = None if columns is None else list(columns)
        input = TableQuery(columns=named, branch=self._branch(branch), at=at_text(at), entity=_kind(kind))
        return self._get("tables", type_name, input=input, accept=ARROW, cancel=cancel, timeout=timeout, unlimited=True)

    def _export(
        self,
        types: Sequence[str] | None,
        branch: str | None,
        at: At,
        cancel: Cancellation | None,
        timeout: float | None,
        *,
        accept: str,
    ) -> Request:
        check_timeout(timeout)
        named = None if types is None else list(types)
        input = ExportInput(type_names=named, branch=self._branch(branch), at=at_text(at))
        return self._post(
            "export", input=input, accept=accept, cancel=cancel, timeout=timeout, unlimited=True, streamed=True
        )

    def _records(self, types: Sequence[str], point: str) -> Call[list[dict[str, Any]]]:
        """Return the records of some types."""
        if not types:
            return []
        answer = yield replace(self._export(types, None, point, None, None, accept=TYPED_NDJSON), streamed=False)
        decoder = RecordDecoder()
        records = decoder.feed(answer.body)
        decoder.finish()
        return records


@dataclass(frozen=True)
class BlobAddress:
    """A Blob value of a server: its size, tag and commit, and the requests of its ranges."""

    request: Request
    size: int
    etag: str
    commit_id: str

    def range(self, offset: int, length: int) -> Call[bytes]:
        """Return the bytes of a range within the value."""
        headers = {"Range": f"bytes={offset}-{offset + length - 1}", "If-Match": f'"{self.etag}"'}
        answer = yield replace(self.request, headers=headers)
        if len(answer.body) != length:
            raise unreadable(f"it has {len(answer.body)} bytes of a range of {length}")
        return answer.body


class BatchDecoder:
    """Batches of at most `rows` rows from an Arrow stream; their schema names the commit."""

    def __init__(self, rows: int) -> None:
        self._decoder = ArrowDecoder()
        self._rows = rows
        self.schema: pa.Schema | None = None

    @reading
    def feed(self, data: bytes) -> list[pa.RecordBatch]:
        """Return the batches that these bytes complete."""
        found = self._decoder.feed(data)
        if self.schema is None and self._decoder.schema is not None:
            told = self._decoder.schema.metadata
            self.schema = self._decoder.schema.with_metadata({COMMIT_KEY: told[COMMIT_KEY]})
        return [part for batch in found for part in self._parts(batch)]

    def finish(self) -> None:
        """Raise `RemoteError` if the schema or the end-of-stream marker is missing."""
        self._decoder.finish()
        if self.schema is None:
            raise unreadable("the Arrow stream has no schema")

    def _parts(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        assert self.schema is not None, "the schema precedes the batches"
        batch = batch.replace_schema_metadata(self.schema.metadata)
        for start in range(0, batch.num_rows, self._rows):
            yield batch.slice(start, self._rows)


class RecordDecoder:
    """Records of an export."""

    def __init__(self) -> None:
        self._lines: LineDecoder[Any] = LineDecoder(enveloped=False)

    @reading
    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Return the records that these bytes complete."""
        return [untyped_value(record) for record in self._lines.feed(data)]

    def finish(self) -> None:
        """Raise `RemoteError` if the last line is not complete."""
        self._lines.finish()


class PlainDecoder:
    """The bytes of a body."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return these bytes."""
        return [data] if data else []

    def finish(self) -> None:
        """Do nothing: a body that is cut off raises an error by itself."""


def check_timeout(timeout: float | None) -> None:
    """Raise `InputError` if a timeout is not a number of seconds."""
    if timeout is not None:
        check_seconds(timeout)


@dataclass(frozen=True)
class GraphExport:
    """An export in a format of other graph programs."""

    format: GraphFormat
    out: str
    types: Sequence[str] | None

    def writer(self, catalog: Catalog) -> GraphWriter:
        """Return the writer of the file or folder."""
        return open_writer(self.format, self.out, catalog, self.types, os.environ)


def export_request(
    out: str | os.PathLike[str] | None,
    types: Sequence[str] | None,
    format: ExportFormat,
    partitioned: bool,
    engine: str,
    spark: Any,
) -> ExportRequest | GraphExport | None:
    """Return the destination of an export; None for an iterator of records."""
    check_engine("export", engine, spark)
    if out is None:
        return None
    if partitioned:
        raise local_parameter("export", "partitioned")
    match format:
        case "duckdb":
            raise local_parameter("export", "format='duckdb'")
        case "neo4j" | "graphml" | "gexf":
            return GraphExport(format, os.fspath(out), types)
        case _:
            check_format(format)
            return ExportRequest(os.fspath(out), format, types, partitioned)


def _kind(kind: TypeKind | None) -> TypeKind | None:
    if kind is not None and kind not in ("node", "edge"):
        raise InputError(f"there is no kind '{str(kind)[:40]}'", hint="the kinds are node and edge")
    return kind


def _size_of(answer: Response) -> int:
    """Return the size of the value whose head or first byte an answer has."""
    if answer.status == _PARTIAL:
        return int(answer.headers["content-range"].rpartition("/")[2])
    return int(answer.headers["content-length"])


def _table_of(body: bytes) -> pa.Table:
    return read_arrow(body).replace_schema_metadata(None)
