"""Inputs of a load in memory: files, records in Python, or one Arrow table per type."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from omnigraph.engine import tuning
from omnigraph.engine.ingest.record_reader import read_dicts, read_text
from omnigraph.engine.ingest.records import Faults, RecordSet
from omnigraph.engine.ingest.tabular import read_arrow, read_table_file
from omnigraph.errors import InputError, RecordError
from omnigraph.operations.load.reject_records import line_records, part_records
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.files.input_files import DataFile, find_files, inflate, is_compressed

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
    data: Any, environ: Mapping[str, str], delimiter: str | None = None, bytes_max: int | None = None
) -> RecordSource:
    """Open an input: paths or globs, an iterable of records, or one table per type name.

    Reading files that are larger than `bytes_max` when decoded raises `ExceedsMemory`.
    """
    if isinstance(data, str | os.PathLike):
        return _file_source([os.fspath(data)], environ, delimiter, bytes_max)
    if isinstance(data, Mapping) and not ("type" in data or "edge" in data):
        return RecordSource(partial(_by_type, data), partial(_table_originals, data))
    if isinstance(data, list | tuple) and data and all(isinstance(item, str | os.PathLike) for item in data):
        return _file_source([os.fspath(item) for item in data], environ, delimiter, bytes_max)
    kept = check_records(data)  # A write that starts over reads the records again.
    return RecordSource(
        lambda catalog, faults: {key: [records] for key, records in read_dicts(kept, catalog, faults).items()},
        lambda _, errors: [kept[error.line - 1] if error.line else None for error in errors],
    )


InputFiles = Sequence[DataFile]


def input_files(data: Any, environ: Mapping[str, str], delimiter: str | None = None) -> InputFiles | None:
    """Return the files of an input that consists of paths or globs; None for another input."""
    if isinstance(data, str | os.PathLike):
        patterns = [os.fspath(data)]
    elif isinstance(data, list | tuple) and data and all(isinstance(item, str | os.PathLike) for item in data):
        patterns = [os.fspath(item) for item in data]
    else:
        return None
    files = find_files(patterns, environ, lambda name: file_kind(name) is not None, delimiter=delimiter)
    for file in files:
        known_kind(file)
    return files


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


def _file_source(
    patterns: list[str], environ: Mapping[str, str], delimiter: str | None, bytes_max: int | None
) -> RecordSource:
    files = find_files(patterns, environ, lambda name: file_kind(name) is not None, delimiter=delimiter)
    return RecordSource(partial(_read_files, files, bytes_max), partial(_file_originals, files))


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
    """The original records of errors. Only files with an error are read again."""
    found: dict[str | None, dict[int, Any]] = {}
    for file in files:
        wanted = {error.line for error in errors if error.source == file.name and error.line is not None}
        if wanted:
            found[file.name] = _originals_in(file, catalog, wanted)
    return (found.get(error.source, {}).get(error.line or 0) for error in errors)


def _originals_in(file: DataFile, catalog: Catalog, wanted: Collection[int]) -> dict[int, Any]:
    if known_kind(file) == "jsonl":
        return line_records(_text(file), wanted)
    return part_records((part for _, part in read_table_file(file, catalog, Faults(collect=True))), wanted)


def file_kind(name: str) -> Literal["jsonl", "table"] | None:
    """The kind of a file by its name: JSONL, or a table of one type. Both may be compressed."""
    base = name.lower()
    if base.removesuffix(".gz").endswith((".jsonl", ".ndjson", ".json")):
        return "jsonl"
    return "table" if base.endswith((".parquet", ".csv", ".csv.gz", ".arrow", ".feather")) else None


def known_kind(file: DataFile) -> Literal["jsonl", "table"]:
    """The kind of a file. Raises `InputError` if it cannot be loaded."""
    kind = file_kind(file.base)
    if kind is None:
        raise InputError(f"'{file.name}' has an unknown file type", hint="load .jsonl, .parquet, .csv or .arrow files")
    return kind


def _text(file: DataFile) -> bytes:
    if not is_compressed(file.base):
        return file.read()
    return b"".join(inflate(file, line_bytes_max=tuning.current.record_bytes_max))


def _by_type(data: Mapping[str, Any], catalog: Catalog, faults: Faults) -> RecordTables:
    tables: RecordTables = {}
    for name, table in data.items():
        for key, rows in read_arrow(name, table, catalog, faults).items():
            tables.setdefault(key, []).append(rows)
    return tables


def _table_originals(data: Mapping[str, Any], catalog: Catalog, errors: Sequence[RecordError]) -> Iterator[Any]:
    wanted = {error.line for error in errors if error.line is not None}
    tables = _by_type(data, catalog, Faults(collect=True))
    found = {parts[0].type.name: part_records(parts, wanted) for parts in tables.values()}
    return (found.get(error.type_name or "", {}).get(error.line or 0) for error in errors)
