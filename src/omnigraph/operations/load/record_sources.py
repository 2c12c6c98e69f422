"""Inputs of a load in memory: files, records in Python, or one Arrow table per type."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from omnigraph.engine import tuning
from omnigraph.engine.graph_files.graph_file import (
    graph_format_of,
    group_graph_files,
    is_graph_file_name,
    is_graphml_name,
)
from omnigraph.engine.ingest.record_reader import read_dicts, read_text
from omnigraph.engine.ingest.records import Faults, RecordSet
from omnigraph.engine.ingest.tabular import file_columns, property_columns, read_arrow, read_table_file
from omnigraph.errors import InputError, RecordError
from omnigraph.operations.load.reject_records import line_records, part_records
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.files.input_files import DataFile, find_files, inflate, is_compressed
from omnigraph.table_format import PLAIN, TableFormat
from omnigraph.text_files import NamedPath

_TABLE_ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".arrow", ".feather")

RecordTables = dict[str, list[RecordSet]]
"""Table key → records."""


@dataclass(frozen=True)
class RecordSource:
    """An input of a load. `read` returns its records; `originals` returns the original records of errors, in order."""

    read: Callable[[Catalog, Faults], RecordTables]
    originals: Callable[[Catalog, Sequence[RecordError]], Iterable[Any]]


class ExceedsMemory(Exception):
    """The decoded files of an input exceed `decoded_bytes_max` or the memory of the load."""


def open_source(
    data: Any, environ: Mapping[str, str], format: TableFormat = PLAIN, bytes_max: int | None = None
) -> RecordSource:
    """Open an input: paths or globs, an iterable of records, or tables or paths by type name.

    Reading files that are larger than `bytes_max` when decoded raises `ExceedsMemory`.
    """
    files = input_files(data, environ, format)
    if files is not None:
        return RecordSource(partial(_read_files, files, bytes_max), partial(_file_originals, files))
    if isinstance(data, Mapping) and not ("type" in data or "edge" in data):
        return _mapping_source(data, environ, format, bytes_max)
    kept = check_records(data)  # A write that starts over reads the records again.
    return RecordSource(
        lambda catalog, faults: {key: [records] for key, records in read_dicts(kept, catalog, faults).items()},
        lambda _, errors: [kept[error.line - 1] if error.line else None for error in errors],
    )


InputFiles = Sequence[DataFile]


def input_files(
    data: Any, environ: Mapping[str, str], format: TableFormat = PLAIN, *, grouped: bool = True
) -> InputFiles | None:
    """Return the files of an input that consists of paths or globs; None for another input.

    Files that are read together are grouped; without `grouped`, all files are returned.
    """
    patterns = paths_of(data)
    if patterns is None:
        if format.graph_format is not None:
            raise InputError(f"the format {format.graph_format} is one of files", hint="give the path of a file")
        return None
    files = find_input_files(patterns, environ, format, grouped=grouped)
    for file in files:
        known_kind(file)
    return files


def find_input_files(
    patterns: Sequence[str], environ: Mapping[str, str], format: TableFormat = PLAIN, *, grouped: bool = True
) -> list[DataFile]:
    """Return the files of paths, folders and patterns that a load reads."""
    chosen = format.graph_format

    def is_data(name: str) -> bool:
        return file_kind(name) is not None if chosen is None else is_graph_file_name(name, chosen)

    files = find_files(patterns, environ, is_data, format=format)
    return group_graph_files(files) if grouped else files


def paths_of(data: Any) -> list[str] | None:
    """Return the paths and patterns of an input, which may be given by type name; None for another input."""
    if isinstance(data, str | os.PathLike):
        return [_path(data)]
    if isinstance(data, list | tuple) and data and all(map(_is_path, data)):
        return [_path(item) for item in data]
    if isinstance(data, Mapping) and data and all(map(is_paths, data.values())) and not {"type", "edge"} & data.keys():
        return [path for name, value in data.items() for path in typed_paths(name, value)]
    return None


def is_paths(value: Any) -> bool:
    """Return True for a path or pattern, or a list of them."""
    return _is_path(value) or (isinstance(value, list | tuple) and bool(value) and all(map(_is_path, value)))


def typed_paths(type_name: str, value: Any) -> list[str]:
    """Return paths or patterns of files whose rows are of a type."""
    paths = [_path(item) for item in value] if isinstance(value, list | tuple) else [_path(value)]
    shown = [path.shown if isinstance(path, NamedPath) else path for path in paths]
    return [NamedPath(path, name, type_name) for path, name in zip(paths, shown, strict=True)]


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _path(value: Any) -> str:
    return value if isinstance(value, str) else os.fspath(value)


def check_records(data: Any) -> list[Any]:
    """Return an iterable of records as a list; raise `InputError` for a table without a type, or another value."""
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
    return list(data)


def _is_table(data: Any) -> bool:
    """True for an Arrow table and for a DataFrame of pandas, polars or Spark."""
    package = type(data).__module__.partition(".")[0]
    return package in ("pandas", "pyspark") or hasattr(data, "__arrow_c_stream__")


def _mapping_source(
    data: Mapping[str, Any], environ: Mapping[str, str], format: TableFormat, bytes_max: int | None
) -> RecordSource:
    """Open tables by type name; some of the values may be paths."""
    tables = {name: value for name, value in data.items() if not is_paths(value)}
    files = input_files({name: value for name, value in data.items() if is_paths(value)}, environ, format) or []

    def read(catalog: Catalog, faults: Faults) -> RecordTables:
        found = _by_type(tables, format, catalog, faults)
        for key, parts in _read_files(files, bytes_max, catalog, faults).items():
            found.setdefault(key, []).extend(parts)
        return found

    def originals(catalog: Catalog, errors: Sequence[RecordError]) -> Iterator[Any]:
        of_files = _file_originals(files, catalog, errors)
        of_tables = _table_originals(tables, format, catalog, errors)
        pairs = zip(errors, of_files, of_tables, strict=True)
        return (row if error.source is None else record for error, record, row in pairs)

    return RecordSource(read, originals)


def _read_files(files: Sequence[DataFile], bytes_max: int | None, catalog: Catalog, faults: Faults) -> RecordTables:
    tables: RecordTables = {}
    most = tuning.current.decoded_bytes_max
    most = most if bytes_max is None else min(most, bytes_max)
    size = 0
    for file in files:
        if known_kind(file) == "jsonl":
            size += file.size
            if size > most:
                raise ExceedsMemory
            for key, parts in read_text(_text(file), catalog, faults, file.name).items():
                tables.setdefault(key, []).extend(parts)
            continue
        for key, part in read_table_file(file, catalog, faults):
            tables.setdefault(key, []).append(part)
            size += part.size
            if size > most:
                raise ExceedsMemory
    return tables


def _file_originals(files: Sequence[DataFile], catalog: Catalog, errors: Sequence[RecordError]) -> Iterator[Any]:
    """The original records of errors. Only files with an error are read again; the errors learn their columns."""
    found: dict[tuple[str, str | None], dict[int, Any]] = {}
    for file in files:
        wanted = {error.line for error in errors if is_about(error, file) and error.line is not None}
        if wanted:
            found[file.name, file.type_name] = _originals_in(file, catalog, wanted)
            add_columns(errors, file, catalog)
    by_error = ((error, error.source or "", error.line or 0) for error in errors)
    return (
        (found.get((source, error.type_name)) or found.get((source, None)) or {}).get(line)
        for error, source, line in by_error
    )


def is_about(error: RecordError, file: DataFile) -> bool:
    """Return True if an error is about a record of a file; a file can be read for several types."""
    return error.source == file.name and file.type_name in (None, error.type_name)


def add_columns(errors: Sequence[RecordError], file: DataFile, catalog: Catalog) -> None:
    """Add the names of columns to the errors about a table file."""
    if known_kind(file) != "table":
        return
    columns = property_columns(file, catalog)
    for error in errors:
        if is_about(error, file) and error.property_name is not None:
            error.column = columns.get(error.property_name)


def _originals_in(file: DataFile, catalog: Catalog, wanted: Collection[int]) -> dict[int, Any]:
    if known_kind(file) == "jsonl":
        return line_records(_text(file), wanted)
    return part_records((part for _, part in read_table_file(file, catalog, Faults(collect=True))), wanted)


def file_kind(name: str) -> Literal["jsonl", "table"] | None:
    """The kind of a file by its name: JSONL, or a table of one type. Both may be compressed."""
    base = name.lower()
    if base.removesuffix(".gz").endswith((".jsonl", ".ndjson", ".json")):
        return "jsonl"
    return "table" if base.endswith(_TABLE_ENDINGS) or is_graphml_name(base) else None


def known_kind(file: DataFile) -> Literal["jsonl", "table"]:
    """The kind of a file. Raises `InputError` if it cannot be loaded."""
    kind = file_kind(file.base) if graph_format_of(file) is None else "table"
    if kind is None:
        hint = "load .jsonl, .parquet, .csv, .tsv, .arrow or .graphml files"
        if file.base.lower().endswith(".zip"):
            hint = f"unpack the archive: python -m zipfile -e {shlex.quote(file.name)} ."
        raise InputError(f"'{file.name}' has an unknown file type", hint=hint)
    if kind == "jsonl" and file.type_name is not None:
        raise InputError(
            f"'{file.name}' is a JSONL file, whose records name their types",
            hint=f"leave out the type '{file.type_name}'",
        )
    return kind


def _text(file: DataFile) -> bytes:
    if not is_compressed(file.base):
        return file.read()
    return b"".join(inflate(file, line_bytes_max=tuning.current.record_bytes_max))


def _by_type(data: Mapping[str, Any], format: TableFormat, catalog: Catalog, faults: Faults) -> RecordTables:
    tables: RecordTables = {}
    for name, table in data.items():
        for key, rows in read_arrow(name, table, catalog, faults, format=format).items():
            tables.setdefault(key, []).append(rows)
    return tables


def _table_originals(
    data: Mapping[str, Any], format: TableFormat, catalog: Catalog, errors: Sequence[RecordError]
) -> Iterator[Any]:
    wanted = {error.line for error in errors if error.line is not None}
    tables = _by_type(data, format, catalog, Faults(collect=True))
    found = {parts[0].type.name: part_records(parts, wanted) for parts in tables.values()}
    return (found.get(error.type_name or "", {}).get(error.line or 0) for error in errors)


def check_mapping(data: Any, environ: Mapping[str, str], format: TableFormat) -> None:
    """Raise `InputError` if the format maps a column that no table of the input has."""
    if not format.columns:
        return
    tables: list[tuple[str, Sequence[str]]] = []
    paths: Any = data
    if isinstance(data, Mapping):
        tables = [(name, _table_columns(table)) for name, table in data.items() if not is_paths(table)]
        paths = {name: value for name, value in data.items() if is_paths(value)}
    for file in input_files(paths, environ, format) or ():
        if graph_format_of(file) is not None:
            columns = file_columns(file)
            types = {name.partition(":")[0] for name, _ in format.columns}
            tables += [(type_, columns) for type_ in sorted(types)]
        elif known_kind(file) == "table":
            tables.append((file.type_name or file.stem, file_columns(file)))
    format.check_mapping(tables)


def _table_columns(table: Any) -> list[str]:
    names = getattr(table, "column_names", None)
    if names is None:
        names = getattr(table, "columns", None)
    if names is None and hasattr(table, "__arrow_c_stream__"):
        names = pa.table(table).column_names
    return [] if names is None else [str(name) for name in names]
