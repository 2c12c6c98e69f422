"""Loads records: read, type, embed, judge, publish; all or nothing, as one commit.

`overwrite` replaces each table the input names, `append` adds rows whose ids are new, `merge` adds rows or sets
the given properties of those with the same id (`engine.write.upsert`). Asked to set wrong records aside, a load takes
the rest, and whatever is wrong only because of what was set aside goes with it. A load without records makes no commit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine import tuning
from omnigraph.engine.ingest.record_reader import read_dicts, read_text
from omnigraph.engine.ingest.records import Faults, LoadedRows, NewIds, RecordSet
from omnigraph.engine.ingest.row_builder import build_rows
from omnigraph.engine.ingest.tabular import read_arrow, read_table_file
from omnigraph.engine.write.constraints import first_failure, violations
from omnigraph.engine.write.delta import Delta, TableDelta, Violation
from omnigraph.engine.write.fill_vectors import CachingEmbedder, Embedder, fill_vectors
from omnigraph.engine.write.overlay import CommittedRows
from omnigraph.engine.write.upsert import match_columns, merge_records, needs_matching, with_ids
from omnigraph.errors import BranchNotFound, InputError, KeyConflict, OmniGraphError, RecordError
from omnigraph.operations.catalog_cache import CatalogCache
from omnigraph.operations.embedder import ColumnEmbedder
from omnigraph.operations.load_request import LoadRequest, Mode
from omnigraph.operations.load_result import LoadResult, Reject, finished, load_notes, record_result
from omnigraph.operations.originals import line_records, part_records
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.files.input_files import DataFile, find_files, inflate, is_compressed
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.values import Fetch
from omnigraph.versioning.model.ids import new_ulids
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction, write

Tables = dict[str, list[RecordSet]]


@dataclass(frozen=True)
class RecordSource:
    """An input: `read` gives its records by table, `originals` some of them as they were given, by their errors."""

    read: Callable[[Catalog, Faults], Tables]
    originals: Callable[[Catalog, Sequence[RecordError]], Iterable[Any]]


DECODED_BYTES_MAX = 256 << 20
"""How large the tables of an input may be to be loaded in one go."""


def load(
    repository: Repository, catalogs: CatalogCache, data: Any, request: LoadRequest, embedder: Embedder | None = None
) -> LoadResult:
    """Load records onto a branch as one commit."""
    mode, options = request.mode, request.options
    source = open_source(data, request.environ, request.delimiter)
    embedder = CachingEmbedder(embedder) if embedder is not None and request.embed else None
    created = ensure_branch(repository, request)
    result: LoadResult | None = None
    attempt: Transaction | None = None

    def prepare(transaction: Transaction) -> None:
        nonlocal result, attempt
        attempt = transaction
        catalog = catalogs.of(transaction.snapshot)
        committed = CommittedRows(transaction.snapshot)
        faults = Faults(collect=request.set_aside)
        renew = mode == "overwrite"
        embedding = ColumnEmbedder(embedder, transaction.snapshot.embedding, catalog, renew=renew) if embedder else None
        reader = _RowBuilder(catalog, faults, lambda count: new_ulids(repository.clock(), count), request)
        tables = reader.tables(source.read(catalog, faults))
        for key, rows in tables.items():
            if mode == "merge":
                _apply(key, rows, committed, faults, reader.new_ids)
            else:
                _without_repeats(rows, faults)
        _judge(catalog, tables, mode, committed, faults)
        loaded = tuple((key, rows.record_count) for key, rows in sorted(tables.items()))
        again = [key for key, rows in tables.items() if mode == "merge" and rows.adds_again and rows.table.num_rows]
        embedded = waiting = 0
        for key, rows in tables.items():
            table = rows.table
            if isinstance(rows.type, NodeType) and rows.type.embeds:
                table, done, left = fill_vectors(rows.type, table, embedding)
                embedded, waiting = embedded + done, waiting + left
            transaction.change(key, _change(table, "append" if rows.fresh and mode == "merge" else mode))
        if embedding is not None:
            embedding.record(transaction)
        rejects = _rejects(faults, source, catalog)
        result = LoadResult(
            options.branch,
            mode,
            None,
            loaded,
            rejects,
            embedded,
            waiting,
            rejected_count=len(rejects),
            notes=(*faults.notes, *load_notes(loaded, again)),
        )
        record_result(transaction, result)

    with on_new_branch(request, created):
        commit = write(repository, prepare, replace(options, kind="load"))
    made = result if attempt is not None and not attempt.is_repeated else None
    return finished(made, commit, request, created=created)


@contextmanager
def on_new_branch(request: LoadRequest, created: bool) -> Iterator[None]:
    """Around a load: if it fails, say that the branch made for it stays."""
    try:
        yield
    except OmniGraphError as error:
        if created:
            branch, base = request.options.branch, request.from_branch
            say(error, f"{error.message}; branch '{branch}' was created from '{base}' and stays there")
        raise


def ensure_branch(repository: Repository, request: LoadRequest) -> bool:
    """Create the branch of a load from `from_branch` if it does not exist. Return True if it was created."""
    base, options = request.from_branch, request.options
    if base is None or repository.state().find_head(options.branch) is not None:
        return False
    if repository.state().find_head(base) is None:
        raise BranchNotFound(f"there is no branch '{base}' to start from")
    repository.create_branch(options.branch, from_branch=base, owner=options.actor)
    return True


# -- sources -----------------------------------------------------------------------------------------


def open_source(data: Any, environ: Mapping[str, str], delimiter: str | None = None) -> RecordSource:
    """What to read: paths or globs, a stream of record dicts, or a table per type name."""
    if isinstance(data, str | os.PathLike):
        return _files([os.fspath(data)], environ, delimiter)
    if isinstance(data, Mapping) and not ("type" in data or "edge" in data):
        return RecordSource(partial(_by_type, data), partial(_table_originals, data))
    if isinstance(data, list | tuple) and data and all(isinstance(item, str | os.PathLike) for item in data):
        return _files([os.fspath(item) for item in data], environ, delimiter)
    if _is_table(data):
        raise InputError(
            f"cannot load a {type(data).__name__} without the name of its type",
            hint="name the type: load({'Person': data}, …)",
        )
    if not isinstance(data, Iterable) or isinstance(data, bytes | Mapping):
        raise InputError(
            f"cannot load a {type(data).__name__}",
            hint="give a path, a list of paths, an iterable of records, or a table for each type name",
        )
    kept = list(data)  # A write that has to start over reads its records again.
    return RecordSource(
        lambda catalog, faults: {key: [records] for key, records in read_dicts(kept, catalog, faults).items()},
        lambda _, errors: [kept[error.line - 1] if error.line else None for error in errors],
    )


def _is_table(data: Any) -> bool:
    """Whether data is an Arrow table, or a frame of pandas, polars or Spark."""
    package = type(data).__module__.partition(".")[0]
    return package in ("pandas", "pyspark") or hasattr(data, "__arrow_c_stream__")


class ExceedsMemory(Exception):
    """The tables of an input are larger than their files, and too large to be read in one go."""


def _files(patterns: list[str], environ: Mapping[str, str], delimiter: str | None) -> RecordSource:
    files = find_files(patterns, environ, lambda name: file_kind(name) is not None, delimiter=delimiter)

    def read(catalog: Catalog, faults: Faults) -> Tables:
        tables: Tables = {}
        size = 0
        for file in files:
            if known_kind(file) == "jsonl":
                for key, parts in read_text(_text(file), catalog, faults, file.name).items():
                    tables.setdefault(key, []).extend(parts)
            else:
                for key, part in read_table_file(file, catalog, faults):
                    tables.setdefault(key, []).append(part)
                    size += part.size
                    if size > DECODED_BYTES_MAX:
                        raise ExceedsMemory
        return tables

    def originals(catalog: Catalog, errors: Sequence[RecordError]) -> Iterator[Any]:
        found: dict[str | None, dict[int, Any]] = {}
        for file in files:
            name = file.name
            wanted = {error.line for error in errors if error.source == name and error.line is not None}
            if not wanted:
                continue
            if known_kind(file) == "jsonl":
                found[name] = line_records(_text(file), wanted)
            else:
                parts = (part for _, part in read_table_file(file, catalog, Faults(collect=True)))
                found[name] = part_records(parts, wanted)
        return (found.get(error.source, {}).get(error.line or 0) for error in errors)

    return RecordSource(read, originals)


def file_kind(name: str) -> Literal["jsonl", "table"] | None:
    """What a file holds, by its name: lines of JSON, or a table of one type; both may be compressed."""
    base = name.lower()
    if base.removesuffix(".gz").endswith((".jsonl", ".ndjson", ".json")):
        return "jsonl"
    return "table" if base.endswith((".parquet", ".csv", ".csv.gz", ".arrow", ".feather")) else None


def known_kind(file: DataFile) -> Literal["jsonl", "table"]:
    """What a file holds; one that cannot be loaded is refused."""
    kind = file_kind(file.base)
    if kind is None:
        raise InputError(f"'{file.name}' is of no known kind", hint="load .jsonl, .parquet, .csv or .arrow files")
    return kind


def _text(file: DataFile) -> bytes:
    if not is_compressed(file.base):
        return file.read()
    return b"".join(inflate(file, line_bytes_max=tuning.current.record_bytes_max))


def _by_type(data: Mapping[str, Any], catalog: Catalog, faults: Faults) -> Tables:
    tables: Tables = {}
    for name, table in data.items():
        for key, rows in read_arrow(name, table, catalog, faults).items():
            tables.setdefault(key, []).append(rows)
    return tables


def _table_originals(data: Mapping[str, Any], catalog: Catalog, errors: Sequence[RecordError]) -> Iterator[Any]:
    wanted = {error.line for error in errors if error.line is not None}
    tables = _by_type(data, catalog, Faults(collect=True))
    found = {parts[0].type.name: part_records(parts, wanted) for parts in tables.values()}
    return (found.get(error.type_name or "", {}).get(error.line or 0) for error in errors)


@dataclass(frozen=True)
class _RowBuilder:
    """Makes rows of records, as the mode of a load needs them."""

    catalog: Catalog
    faults: Faults
    new_ids: NewIds
    request: LoadRequest

    def tables(self, parts: Mapping[str, list[RecordSet]]) -> dict[str, LoadedRows]:
        """One set of rows per table, types by name; edge ends written in old spellings are put right."""
        request = self.request
        tables: dict[str, LoadedRows] = {}
        for key in sorted(parts, key=lambda key: (parts[key][0].type.name, key)):
            tables[key] = rows_of(
                parts[key], self.faults, self.new_ids, request.fetch, request.mode, keep=request.keeps
            )
        for rows in tables.values():
            if isinstance(rows.type, EdgeType):
                for column, node in (("src", rows.type.from_type), ("dst", rows.type.to_type)):
                    named = tables.get(self.catalog.nodes[node].table_key)
                    if named is not None and named.aliases:
                        rows.table = renamed(rows.table, column, named.aliases)
        return tables


def rows_of(
    parts: Sequence[RecordSet], faults: Faults, new_ids: NewIds, fetch: Fetch | None, mode: Mode, *, keep: bool
) -> LoadedRows:
    """The rows of one type's records, as the mode of a load needs them."""
    merges = mode == "merge"
    match = merges and match_columns(parts[0].type) is not None
    return build_rows(parts, faults, new_ids, fetch, keep=merges and keep, match=match)


def renamed(table: pa.Table, column: str, aliases: Mapping[str, str]) -> pa.Table:
    """The edges, with ends that are written in an old spelling put right."""
    new = pa.array([aliases.get(value, value) for value in table[column].to_pylist()], pa.utf8())
    return table.set_column(table.schema.get_field_index(column), table.schema.field(column), new)


# -- judging -----------------------------------------------------------------------------------------


def _apply(key: str, rows: LoadedRows, committed: CommittedRows, faults: Faults, new_ids: NewIds) -> None:
    """Make one row of the records for one id and the committed row; rows without a required property are wrong."""
    if rows.fresh:
        return
    columns = match_columns(rows.type)
    if columns is not None:
        loose = rows.table.filter(needs_matching(rows.table, columns))
        rows.adds_again = loose.num_rows < rows.table["id"].null_count
        sources = one_array(pc.unique(loose["src"]))
        known = committed.rows_among(key, "src", sources, list(dict.fromkeys(["id", *columns])))
        rows.table = with_ids(rows.table, columns, known, new_ids)
    folded = merge_records(rows.type, rows.table, rows.given, partial(committed.rows_with_ids, key))
    rows.table, rows.given, rows.records = folded.table, {}, folded.records
    rows.made = None if rows.made is None else rows.made.take(pa.array(folded.last))
    for position, name in folded.lacking:
        reason = lacks(rows.type, name, rows.table["id"][position].as_py())
        errors = rows.faults(position, reason, name, "required")
        # The last record of a row stands for it.
        for error in errors if faults.collect else errors[-1:]:
            faults.add(error)
    if folded.lacking:
        wrong = {position for position, _ in folded.lacking}
        rows.keep(pa.array([position not in wrong for position in range(rows.table.num_rows)]))


def lacks(type_: NodeType | EdgeType, name: str, id_: str) -> str:
    """Why a row of a merge without a required property is wrong; the id of an edge may be a generated one."""
    property_ = type_.properties[name]
    if property_.embed is not None:  # An existing row lacks it, too, when its text is set to null.
        return f"{type_.name}.{name} is required ({property_.type})"
    row = f"{type_.name} '{id_}'" if isinstance(type_, NodeType) else f"an edge {type_.name}"
    return f"{row} is new and needs {name} ({property_.type})"


def _without_repeats(rows: LoadedRows, faults: Faults) -> None:
    """Set aside the later records of an explicit id that is given twice; a key given twice violates a rule."""
    if rows.fresh or is_keyed(rows.type) or not faults.collect:
        return
    repeats = repeated_ids(rows.table["id"])
    for place, id_ in repeats.items():
        for error in rows.faults(place, given_twice(id_), "id", "unique"):
            faults.add(error)
    if repeats:
        rows.keep(pa.array([place not in repeats for place in range(rows.table.num_rows)]))


def repeated_ids(ids: pa.ChunkedArray) -> dict[int, str]:
    """Place → id of every record whose id an earlier one has."""
    if pc.count_distinct(ids).as_py() == len(ids):
        return {}
    places = list(enumerate(ids.to_pylist()))
    first = set({id_: place for place, id_ in reversed(places)}.values())
    return {place: id_ for place, id_ in places if place not in first}


def given_twice(id_: str) -> str:
    """Why a record was set aside."""
    return f"the id '{id_}' is given twice"


def is_keyed(type_: NodeType | EdgeType) -> bool:
    """Whether ids of a type are made from a key."""
    return isinstance(type_, NodeType) and bool(type_.key)


def _judge(
    catalog: Catalog, tables: dict[str, LoadedRows], mode: str, committed: CommittedRows, faults: Faults
) -> None:
    """Apply every rule; with wrong records set aside, again until what is left is sound."""
    while True:
        delta = Delta(
            {key: TableDelta(rows.judged(), replaces=mode == "overwrite") for key, rows in tables.items()}, committed
        )
        if not faults.collect:
            for violation in violations(catalog, delta):
                raise _placed(violation, tables)
            _admit(tables, mode, committed)
            return
        # Rows that cannot be admitted go first: they are no part of the graph the rules look at.
        found = list(_not_admitted(tables, mode, committed)) or first_failure(catalog, delta)
        if not found:
            return
        if not _set_aside(found, tables, faults):
            raise _placed(found[0], tables)


def _admit(tables: Mapping[str, LoadedRows], mode: str, committed: CommittedRows) -> None:
    """Refuse ids that are given twice, or that an append finds there already; in a merge they mean a row."""
    for violation in _not_admitted(tables, mode, committed):
        raise at_line(admission_error(violation), tables[violation.table_key], violation.position)


def admission_error(violation: Violation) -> KeyConflict:
    """An id that cannot be admitted, as an error."""
    error = KeyConflict(violation.table_key, violation.row_id, f"{violation.message}; nothing was written")
    if violation.other_id is None:
        error.hint = "load with mode 'merge' to update it"
    return error


def _not_admitted(tables: Mapping[str, LoadedRows], mode: str, committed: CommittedRows) -> Iterator[Violation]:
    for key, rows in tables.items() if mode != "merge" else ():
        if not rows.fresh:
            ids = one_array(rows.table["id"])
            there = committed.ids_among(key, ids) if mode == "append" else pa.array([], pa.utf8())
            yield from not_admitted(rows.type, ids, there)


def not_admitted(type_: NodeType | EdgeType, ids: pa.Array, there: pa.Array) -> Iterator[Violation]:
    """The ids of written rows that are among those there already, or given twice; a key twice is a rule's."""
    if not len(there) and (is_keyed(type_) or pc.count_distinct(ids).as_py() == len(ids)):
        return
    taken, seen = set(there.to_pylist()), set[str]()
    for position, id_ in enumerate(ids.to_pylist()):
        if id_ in seen or id_ in taken:
            what, other = ("is given twice", id_) if id_ in seen else ("exists already", None)
            message = f"{type_.name}: the id '{id_}' {what}"
            yield Violation("unique", type_.table_key, id_, message, "id", other, position)
        if not is_keyed(type_):
            seen.add(id_)


def _set_aside(found: list[Violation], tables: Mapping[str, LoadedRows], faults: Faults) -> int:
    """Take the rows of the first table concerned that break a rule out of the load and note why; how many went."""
    key = found[0].table_key
    rows = tables.get(key)
    if rows is None:
        return 0
    why: dict[int, Violation] = {}
    for violation in found:
        if violation.table_key == key:
            places = violation.surplus if violation.position is None else (violation.position,)
            for position in places:
                why.setdefault(position, violation)
    for position, violation in sorted(why.items()):
        for error in rows.faults(position, violation.message, violation.property, violation.rule):
            faults.add(error)
    rows.keep(pa.array([position not in why for position in range(rows.table.num_rows)], pa.bool_()))
    return len(why)


def _placed(violation: Violation, tables: Mapping[str, LoadedRows]) -> OmniGraphError:
    """The violation as an error that names the line, when the row came from this input."""
    position = violation.surplus[0] if violation.surplus else violation.position
    return at_line(violation.error(), tables.get(violation.table_key), position)


def at_line(error: OmniGraphError, rows: LoadedRows | None, position: int | None) -> OmniGraphError:
    """The error, naming the line its row came from."""
    if rows is None or position is None:
        return error
    return at_place(error, *rows.place_of(position))


def at_place(error: OmniGraphError, source: str | None, line: int) -> OmniGraphError:
    """The error, naming a line."""
    say(error, f"{source}, line {line}: {error.message}" if source else f"line {line}: {error.message}")
    return error


def say(error: OmniGraphError, message: str) -> None:
    """Give an error another message."""
    error.message = message
    error.args = (message,)


def _change(table: pa.Table, mode: str) -> TableWrite:
    if mode == "overwrite":
        return TableWrite(overwrite=table)
    return TableWrite(append=table) if mode == "append" else TableWrite(upsert=table)


def _rejects(faults: Faults, source: RecordSource, catalog: Catalog) -> tuple[Reject, ...]:
    """What was set aside, file by file in the order of lines, with the records as they were given."""
    found = sorted(faults.found, key=lambda error: (error.source or "", error.line or 0))
    if found:
        for error, record in zip(found, source.originals(catalog, found), strict=True):
            error.record = record if error.record is None else error.record
    return tuple(map(Reject.of, found))
