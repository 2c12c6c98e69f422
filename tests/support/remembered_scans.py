"""Reads of tables and of the history that are repeated with the same arguments return what the first one read.

A version of a table never changes, so a read of it is a function of its arguments. Comparisons of many surfaces on the
same small graphs read the same rows again and again, and the start of a scan takes most of their time. Rules for rows
are applied to what a scan returns, or are part of its filter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import lance
import lance.file
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.repository import Repository


class RememberedScan:
    """A scan whose rows are read once."""

    def __init__(self, scanner: Any) -> None:
        self._scanner = scanner
        self._read: pa.Table | None = None
        self._batches: list[pa.RecordBatch] = []

    def _rows(self) -> pa.Table:
        if self._read is None:
            reader = self._scanner.to_reader()
            self._batches = list(reader)
            self._read = pa.Table.from_batches(self._batches, reader.schema)
        return self._read

    def to_table(self) -> pa.Table:
        """Return all rows."""
        return self._rows()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the batches in which they were read."""
        self._rows()
        yield from self._batches

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows."""
        return pa.RecordBatchReader.from_batches(self._rows().schema, self._batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scanner, name)


class RememberedFile:
    """A data file some columns of which are read once."""

    def __init__(self, reader: Any) -> None:
        self._read: pa.Table = reader.read_all().to_table()

    def read_all(self, *, batch_size: int | None = None) -> RememberedFile:
        """Return the rows; they are in one batch, whatever size is asked for."""
        del batch_size
        return self

    def to_table(self) -> pa.Table:
        """Return all rows."""
        return self._read

    def to_batches(self) -> list[pa.RecordBatch]:
        """Return the rows in batches."""
        return self._read.to_batches()


class _Unknown(Exception):
    """An argument whose value has no key."""


def _key(value: Any) -> Hashable:
    match value:
        case None | bool() | int() | str():
            return value
        case pa.Array():
            return tuple(value.to_pylist())
        case list() | tuple():
            return tuple(map(_key, value))
        case pc.Expression():
            return str(value)
        case lance.LanceFragment():
            metadata = value.metadata
            return (value.fragment_id, tuple(file.path for file in metadata.files), str(metadata.deletion_file))
    raise _Unknown


def _named(of: Hashable, given: tuple[Any, ...], options: dict[str, Any]) -> Hashable:
    return (of, _key(given), tuple((name, _key(value)) for name, value in sorted(options.items())))


@contextmanager
def remembered_scans() -> Iterator[dict[Hashable, Any]]:
    """Remember the reads of tables of this process until the end of the block; yield them by their arguments."""
    known: dict[Hashable, Any] = {}
    new_scan, take, take_of_fragment = lance.LanceDataset.scanner, lance.LanceDataset.take, lance.LanceFragment.take
    all_pins, new_reader = Repository.all_pins, lance.file.LanceFileReader

    def remembered(key_of: Callable[[], Hashable], read: Callable[[], Any]) -> Any:
        try:
            key = key_of()
        except _Unknown:
            return read()
        if key not in known:
            known[key] = read()
        return known[key]

    def scanner(dataset: lance.LanceDataset, *given: Any, **options: Any) -> Any:
        return remembered(
            lambda: _named(("scan", dataset.uri, dataset.version), given, options),
            lambda: RememberedScan(new_scan(dataset, *given, **options)),
        )

    def taken(dataset: lance.LanceDataset, *given: Any, **options: Any) -> Any:
        return remembered(
            lambda: _named(("take", dataset.uri, dataset.version), given, options),
            lambda: take(dataset, *given, **options),
        )

    def taken_of_fragment(fragment: lance.LanceFragment, *given: Any, **options: Any) -> Any:
        return remembered(
            lambda: _named(("take", _key(fragment)), given, options),
            lambda: take_of_fragment(fragment, *given, **options),
        )

    def reader(path: str, *, columns: list[str] | None = None, **options: Any) -> Any:
        if columns != ["id"]:
            return new_reader(path, columns=columns, **options)
        return remembered(lambda: ("ids", path), lambda: RememberedFile(new_reader(path, columns=columns, **options)))

    def remembered_pins(repository: Repository, state: State) -> Any:
        key = ("pins", str(repository.location), state.version)
        return remembered(lambda: key, lambda: all_pins(repository, state))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lance.LanceDataset, "scanner", scanner)
        patch.setattr(lance.LanceDataset, "take", taken)
        patch.setattr(lance.LanceFragment, "take", taken_of_fragment)
        patch.setattr(lance.file, "LanceFileReader", reader)
        patch.setattr(Repository, "all_pins", remembered_pins)
        yield known
