"""Reads of tables and of the history that are repeated with the same arguments return what the first one read.

A version of a table never changes, so a read of it is a function of its arguments. Comparisons of many surfaces on the
same small graphs read the same rows again and again, and the start of a scan takes most of their time. Rules for rows
are applied to what a scan returns, or are part of its filter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import lance
import lance.file
import numpy as np
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


_KNOWN_OPTIONS = {
    "columns", "fragments", "filter", "batch_size", "batch_size_bytes", "batch_readahead", "fragment_readahead",
    "io_buffer_size",
}  # fmt: skip
"""The options of scans that are parts of a whole table."""


class WholeTable:
    """All rows of a table version, of which scans of columns without conditions on values are parts."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self.addresses: Any = rows["_rowaddr"].to_numpy()

    def part(self, options: dict[str, Any]) -> pa.Table | None:
        """Return the rows of a scan with some options; None if they are not known from this."""
        columns, filter = options.get("columns"), options.get("filter")
        if {name for name, value in options.items() if value is not None} - _KNOWN_OPTIONS:
            return None
        if not columns or not isinstance(columns, list) or not {*columns} <= {*self.rows.schema.names}:
            return None
        mask = np.ones(self.rows.num_rows, bool)
        if options.get("fragments") is not None:
            mask &= np.isin(self.addresses >> 32, [fragment.fragment_id for fragment in options["fragments"]])
        if filter is not None:
            found = re.fullmatch(r"_rowaddr (?:= |IN )\(?([\d, ]+)\)?", filter) if isinstance(filter, str) else None
            if found is None:
                return None
            mask &= np.isin(self.addresses, [*map(int, found[1].split(","))])
        rows = self.rows.select(columns)
        return rows if mask.all() else rows.filter(pa.array(mask))

    def rows_at(self, numbers: Any, columns: Any, fragment: int | None = None) -> pa.Table | None:
        """Return columns of rows by their numbers, in a fragment if one is given; None if they are not known."""
        if not isinstance(columns, list) or not {*columns} <= {*self.rows.schema.names}:
            return None
        first = 0 if fragment is None else int(np.searchsorted(self.addresses, fragment << 32))
        columns = [*dict.fromkeys(columns)]
        return self.rows.select(columns).take(pa.array(np.asarray(numbers, np.int64) + first)).combine_chunks()


class KnownScan:
    """A scan whose rows are known."""

    def __init__(self, rows: pa.Table, batch_size: int | None) -> None:
        self._rows = rows
        self._batch_size = batch_size

    def to_table(self) -> pa.Table:
        """Return all rows."""
        return self._rows

    def to_batches(self) -> list[pa.RecordBatch]:
        """Return the rows in batches."""
        return self._rows.to_batches(self._batch_size)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows."""
        return self._rows.to_reader(self._batch_size)


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
            return (value._ds.uri, value._ds.version, value.fragment_id)
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

    def whole(dataset: lance.LanceDataset) -> WholeTable:
        return remembered(
            lambda: ("whole", dataset.uri, dataset.version),
            lambda: WholeTable(new_scan(dataset, columns=[*dataset.schema.names, "_rowaddr"]).to_table()),
        )

    def scanner(dataset: lance.LanceDataset, *given: Any, **options: Any) -> Any:
        rows = None if given else whole(dataset).part(options)
        if rows is not None:
            return KnownScan(rows, options.get("batch_size"))
        return remembered(
            lambda: _named(("scan", dataset.uri, dataset.version), given, options),
            lambda: RememberedScan(new_scan(dataset, *given, **options)),
        )

    def taken(dataset: lance.LanceDataset, *given: Any, **options: Any) -> Any:
        rows = whole(dataset).rows_at(*given, **options) if len(given) == 1 and options.keys() == {"columns"} else None
        return take(dataset, *given, **options) if rows is None else rows

    def taken_of_fragment(fragment: lance.LanceFragment, numbers: Any, columns: Any = None) -> Any:
        rows = whole(fragment._ds).rows_at(numbers, columns, fragment.fragment_id)
        return take_of_fragment(fragment, numbers, columns) if rows is None else rows

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
