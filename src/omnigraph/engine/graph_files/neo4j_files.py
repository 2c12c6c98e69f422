"""The files of an import of Neo4j: which are headers, and which data files belong to them.

`people-header.csv` is the header of `people.csv`, `people-part1.csv` and `people_2.csv`: names are equal without the
word `header` and without numbers of parts. A file without such a header begins with its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from omnigraph.engine.graph_files.neo4j_header import Header, parse_header
from omnigraph.engine.ingest.csv_table import file_delimiter, open_csv_text
from omnigraph.engine.ingest.csv_text import CsvReader
from omnigraph.errors import InputError
from omnigraph.storage.files.input_files import DataFile, FileGroup

_WORDS = re.compile(r"[-_.]+")
_PART = re.compile(r"(?:part)?[0-9]*")
_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


def is_neo4j_file(name: str) -> bool:
    """Return True if a file of a folder can be a part of an import of Neo4j."""
    return name.lower().endswith(_ENDINGS)


def group_files(files: Sequence[DataFile]) -> list[DataFile]:
    """Return the data files with their headers, and with the files of nodes that relationships refer to."""
    headers = {_group_name(file): file for file in files if _is_header(file)}
    data = [file for file in files if not _is_header(file)]
    found: list[DataFile] = []
    used: set[tuple[str, ...]] = set()
    for file in data:
        name = _group_name(file)
        used.add(name)
        found.append(replace(file, group=FileGroup(headers.get(name))))
    for name, header in headers.items():
        if name not in used:
            raise InputError(
                f"'{header.name}' is a header without a data file",
                code="no_such_file",
                hint=f"its data files are named {'-'.join(name)}.csv or {'-'.join(name)}-part1.csv",
            )
    nodes = tuple(file for file in found if not read_header(file).is_edges)
    memo: dict[str, object] = {}
    return [
        replace(file, group=FileGroup(file.group.header if file.group is not None else None, nodes, memo))
        for file in found
    ]


def read_header(file: DataFile) -> Header:
    """Return the header of a data file."""
    with open_rows(file) as (_, header):
        return header


@contextmanager
def open_rows(file: DataFile) -> Iterator[tuple[CsvReader, Header]]:
    """Open a data file; yields the reader of its rows, and its header."""
    own = file.group.header if file.group is not None else None
    if own is None:
        with _open(file) as reader:
            yield reader, parse_header(reader.header or (), file.name)
        return
    with _open(own) as reader:
        header, delimiter = parse_header(reader.header or (), own.name), reader.delimiter
    with open_csv_text(file) as stream:
        yield CsvReader(stream, file.name, delimiter, file.format.nulls, has_header=False), header


@contextmanager
def _open(file: DataFile) -> Iterator[CsvReader]:
    with open_csv_text(file) as stream:
        reader = CsvReader(stream, file.name, file.format.delimiter or file_delimiter(file), file.format.nulls)
        if reader.header is None:
            raise InputError(f"'{file.name}' is empty", code="unreadable_file", hint="its first line is the header")
        yield reader


def base_words(file: DataFile) -> list[str]:
    """Return the words of a file name that name its content: `nodes-Person-part1.csv` is nodes, Person."""
    stem = re.sub(r"\.(?:csv|tsv)(?:\.gz)?$", "", file.base, flags=re.IGNORECASE)
    words = [word for word in _WORDS.split(stem) if word]
    kept = [word for word in words if word.lower() != "header" and not _PART.fullmatch(word.lower())]
    return kept or words


def _group_name(file: DataFile) -> tuple[str, ...]:
    folder = file.name[: len(file.name) - len(file.base)]
    return (folder, *(word.lower() for word in base_words(file)))


def _is_header(file: DataFile) -> bool:
    stem = re.sub(r"\.(?:csv|tsv)(?:\.gz)?$", "", file.base, flags=re.IGNORECASE)
    return "header" in [word.lower() for word in _WORDS.split(stem)]
