"""Export as a job: one task per stored fragment writes a file that can be loaded.

Files are named after their type (`Person.00003.parquet`), so that their folder can be loaded as it is. The summary is
written last, under a name that a load ignores. An export without a summary did not finish.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.exec.view import View
from omnigraph.engine.ingest.csv_text import csv_lines
from omnigraph.errors import InputError
from omnigraph.operations.export import chosen_types, records_of
from omnigraph.operations.formats.graph_writer import GRAPH_FORMATS, GraphFormat
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import Runner
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.files.location import Location, locate
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.files.objects import object_store
from omnigraph.storage.lance.fragments import read_fragment, stored_fragments
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import Repository

Format = Literal["jsonl", "parquet", "csv", "arrow"]
FORMATS: tuple[Format, ...] = ("jsonl", "parquet", "csv", "arrow")
ExportFormat = Format | Literal["duckdb"] | GraphFormat
"""All formats of `Graph.export`; a DuckDB file and the graph formats are not written by this job."""
EXPORT_FORMATS: tuple[ExportFormat, ...] = (*FORMATS, "duckdb", *GRAPH_FORMATS)
SUMMARY = "_export.json"
_PART_ROWS = 262_144
"""Rows of a file of an export under rules for rows."""
_TIMES = {
    pa.date64(): pa.timestamp("ms", "UTC"),
    pa.list_(pa.field("item", pa.date64())): pa.list_(pa.field("item", pa.timestamp("ms", "UTC"))),
}


@dataclass(frozen=True)
class ExportRequest:
    """An export to the new folder `out`: one file per fragment if partitioned, else one per table.

    Without `types`, all types are exported.
    """

    out: str
    format: Format
    types: Sequence[str] | None = None
    partitioned: bool = True


@dataclass(frozen=True)
class ExportResult:
    """Result of an export: rows by table key, and files relative to `out`."""

    out: str
    format: Format
    commit_id: str
    tables: tuple[tuple[str, int], ...]
    files: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Total number of rows."""
        return sum(rows for _, rows in self.tables)

    def to_json(self) -> dict[str, Any]:
        """The JSON form, also written as the summary."""
        return {
            "format": self.format,
            "commit_id": self.commit_id,
            "tables": [{"table_key": key, "rows": rows} for key, rows in self.tables],
            "files": list(self.files),
        }


@dataclass(frozen=True)
class ExportWork:
    """Fragments of a table that become one file."""

    table_key: str
    fragments: tuple[int, ...]
    out: Location
    name: str
    format: Format


def export_files(
    repository: Repository,
    runner: Runner,
    snapshot: Snapshot,
    catalog: Catalog,
    request: ExportRequest,
    environ: Mapping[str, str],
) -> ExportResult:
    """Write a snapshot to a new folder."""
    files = _new_folder(request, environ)
    chosen = chosen_types(catalog, request.types)
    target = locate(request.out, environ)
    job = Job(
        id=new_ulid(repository.clock()),
        location=repository.location,
        schema=snapshot.schema.ir,
        pins={key: table.open_args for key, table in snapshot.tables.items()},
    )
    work = [work for type_ in chosen for work in _plan(job, type_, target, request)]
    counts: dict[str, int] = {type_.table_key: 0 for type_ in chosen}
    try:
        for one, rows in zip(work, runner.run("export", export, job, work), strict=True):
            counts[one.table_key] += rows
    except BaseException:
        for one in work:
            files.delete(one.name)
        raise
    names = tuple(one.name for one in work)
    result = ExportResult(request.out, request.format, snapshot.commit_id, tuple(sorted(counts.items())), names)
    files.write(SUMMARY, json.dumps(result.to_json(), indent=1).encode())
    return result


def export_visible(snapshot: Snapshot, view: View, request: ExportRequest, environ: Mapping[str, str]) -> ExportResult:
    """Write what is visible of a snapshot to a new folder, as `export_files` does, in this process.

    The files of a table have equal numbers of rows: they do not depend on hidden rows.
    """
    files = _new_folder(request, environ)
    counts: dict[str, int] = {}
    names: list[str] = []
    try:
        for type_ in chosen_types(view.catalog, request.types):
            base, counts[type_.table_key] = _base_name(type_, view.catalog), 0
            for number, rows in enumerate(_visible_parts(view, type_, partitioned=request.partitioned)):
                part = f".{number:05}" if request.partitioned else ""
                names.append(f"{base}{part}.{request.format}")
                files.write(names[-1], _WRITERS[request.format](type_, rows))
                counts[type_.table_key] += rows.num_rows
    except BaseException:
        for name in names:
            files.delete(name)
        raise
    result = ExportResult(request.out, request.format, snapshot.commit_id, tuple(sorted(counts.items())), tuple(names))
    files.write(SUMMARY, json.dumps(result.to_json(), indent=1).encode())
    return result


def _visible_parts(view: View, type_: NodeType | EdgeType, *, partitioned: bool) -> Iterator[pa.Table]:
    """Yield the visible rows of a table in order of ids, a number of rows at a time if partitioned; at least once."""
    names = list(table_schema(type_).names)
    key = type_.table_key
    if type_.blobs or not partitioned:
        rows = view.read(key, names)
        # Sort indices: blob columns cannot be sorted.
        yield rows.take(pc.sort_indices(rows["id"]))
        return
    any_rows = False
    for rows in view.by_id(key, names, _PART_ROWS):
        any_rows = True
        yield rows
    if not any_rows:
        yield view.schema(key, names).empty_table()


def export_tables(
    request: ExportRequest,
    catalog: Catalog,
    commit_id: str,
    tables: Mapping[str, pa.Table],
    environ: Mapping[str, str],
) -> ExportResult:
    """Write tables by table key to a new folder, one file each, as `export_files` does."""
    files = _new_folder(request, environ)
    chosen = chosen_types(catalog, request.types)
    names = []
    try:
        for type_ in chosen:
            rows = tables[type_.table_key]
            names.append(f"{_base_name(type_, catalog)}.{request.format}")
            files.write(names[-1], _WRITERS[request.format](type_, rows.take(pc.sort_indices(rows["id"]))))
    except BaseException:
        for name in names:
            files.delete(name)
        raise
    counts = sorted((type_.table_key, int(tables[type_.table_key].num_rows)) for type_ in chosen)
    result = ExportResult(request.out, request.format, commit_id, tuple(counts), tuple(names))
    files.write(SUMMARY, json.dumps(result.to_json(), indent=1).encode())
    return result


def check_format(format: str) -> None:
    """Raise `InputError` if an export has no such format."""
    if format not in FORMATS:
        raise InputError(f"there is no format '{format}'", hint=f"the formats are {', '.join(EXPORT_FORMATS)}")


def _new_folder(request: ExportRequest, environ: Mapping[str, str]) -> ObjectStore:
    check_format(request.format)
    files = object_store(locate(request.out, environ))
    if not files.is_empty():
        raise InputError(f"'{request.out}' is not empty", code="not_empty", hint="export to a new folder")
    return files


def _base_name(type_: NodeType | EdgeType, catalog: Catalog) -> str:
    """Return the file name of a type; a graph may have a node type and an edge type of the same name."""
    return f"{type_.name}.edges" if type_.kind == "edge" and type_.name in catalog.nodes else type_.name


def _plan(job: Job, type_: NodeType | EdgeType, out: Location, request: ExportRequest) -> Iterator[ExportWork]:
    format = request.format
    fragments = tuple(fragment for fragment, _ in stored_fragments(job.table(type_.table_key)))
    base = _base_name(type_, job.catalog)
    if request.partitioned and fragments:
        for number, fragment in enumerate(fragments):
            yield ExportWork(type_.table_key, (fragment,), out, f"{base}.{number:05}.{format}", format)
    else:
        yield ExportWork(type_.table_key, fragments, out, f"{base}.{format}", format)


def export(job: Job, work: ExportWork) -> int:
    """Write one file with rows ordered by id. Return the number of rows. The task can be repeated."""
    kind, name = TableKey.parse(work.table_key).parts
    type_ = job.catalog.nodes[name] if kind == "node" else job.catalog.edges[name]
    table = job.table(work.table_key)
    names = table.schema.names
    batches = [batch for fragment in work.fragments for batch in read_fragment(table, fragment, names)]
    rows = pa.Table.from_batches(batches, table.schema) if batches else table.schema.empty_table()
    # Sort indices: blob columns cannot be sorted.
    data = interruptible(lambda: _WRITERS[work.format](type_, rows.take(pc.sort_indices(rows["id"]))), rows.num_rows)
    object_store(work.out).write(work.name, data)
    return int(rows.num_rows)


def _jsonl(type_: NodeType | EdgeType, rows: pa.Table) -> bytes:
    return msgspec.json.Encoder().encode_lines(records_of(type_, rows)) if rows.num_rows else b""


def _parquet(type_: NodeType | EdgeType, rows: pa.Table) -> bytes:
    import pyarrow.parquet as pq  # noqa: PLC0415

    sink = io.BytesIO()
    pq.write_table(_named(type_, rows), sink, compression="zstd")
    return sink.getvalue()


def _named(type_: NodeType | EdgeType, rows: pa.Table) -> pa.Table:
    """The columns under the names and types that a load expects."""
    rows = rows.select(["id", *(("src", "dst") if type_.kind == "edge" else ()), *type_.properties])
    fields = [pa.field(field.name, _TIMES.get(field.type, field.type), field.nullable) for field in rows.schema]
    ends = {"src": "from", "dst": "to"} if type_.kind == "edge" else {}
    return rows.cast(pa.schema(fields)).rename_columns([ends.get(name, name) for name in rows.column_names])


def _arrow(type_: NodeType | EdgeType, rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    table = _named(type_, rows)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _csv(type_: NodeType | EdgeType, rows: pa.Table) -> bytes:
    ends = ["from", "to"] if type_.kind == "edge" else []
    spell = {name: _spelling(type_, name) for name in type_.properties}

    def lines() -> Iterator[list[str | None]]:
        yield ["id", *ends, *type_.properties]
        for record in records_of(type_, rows):
            data = record["data"]
            cells = [None if data[name] is None else spell[name](data[name]) for name in type_.properties]
            yield [data["id"], *(record[end] for end in ends), *cells]

    return "".join(f"{line}\n" for line in csv_lines(lines())).encode()


def _spelling(type_: NodeType | EdgeType, name: str) -> Callable[[Any], str]:
    """Return the function that formats a cell so that a load reads it back."""
    property_type = type_.properties[name].type
    if property_type.is_list or property_type.scalar == "Vector":
        return lambda value: json.dumps(value, ensure_ascii=False)
    return str if property_type.is_float else property_type.kind.text


_WRITERS: Mapping[Format, Callable[[NodeType | EdgeType, pa.Table], bytes]] = {
    "jsonl": _jsonl,
    "parquet": _parquet,
    "csv": _csv,
    "arrow": _arrow,
}
