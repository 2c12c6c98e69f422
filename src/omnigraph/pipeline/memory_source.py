"""Records and tables that the caller holds in memory, or yields, as the input of a job.

The input is divided into parts, which tasks in this process convert and write one after the other. The memory of a load
then does not depend on the size of its input. An attempt to publish may read the records again, so those of an iterator
are written to files if they are large.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.engine.ingest.record_reader import read_dicts
from omnigraph.engine.ingest.records import Faults, RecordSet
from omnigraph.engine.ingest.tabular import read_arrow
from omnigraph.errors import RecordError, StorageError
from omnigraph.operations.load.load_rules import SourceLine
from omnigraph.operations.load.reject_records import part_records
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import Runner
from omnigraph.pipeline.stage_task import StagedSplit, stage_chunks
from omnigraph.pipeline.staged_input import StagedInput, by_split
from omnigraph.pipeline.violations import row_of
from omnigraph.schema.catalog import Catalog
from omnigraph.table_format import PLAIN, TableFormat

_SAMPLE_RECORDS = 100
"""Records from which the size of a list of records is estimated."""


@dataclass(frozen=True)
class MemoryPart:
    """Consecutive rows of a table, or consecutive records; `first` is the number of the first one."""

    number: int
    type_name: str | None
    """The type of the rows of a table; None for records."""
    first: int
    rows: Any
    format: TableFormat = PLAIN

    @property
    def records(self) -> Sequence[Any]:
        """The records, read from their file if they are in one."""
        found: Sequence[Any] = self.rows.load() if isinstance(self.rows, SpilledRecords) else self.rows
        return found

    def read(self, catalog: Catalog, faults: Faults) -> dict[str, list[RecordSet]]:
        """Return table key → records."""
        if self.type_name is None:
            records = read_dicts(self.records, catalog, faults, first=self.first)
            return {key: [part] for key, part in records.items()}
        rows = read_arrow(self.type_name, self.rows, catalog, faults, first=self.first, format=self.format)
        return {key: [part] for key, part in rows.items()}


@dataclass(frozen=True)
class MemorySource:
    """Records or tables in memory, divided into parts."""

    bytes: int
    parts: tuple[MemoryPart, ...]

    def stage(self, runner: Runner, job: Job) -> Iterator[StagedSplit]:
        """Stage the parts, one task per part."""
        return runner.run("read", _stage, job, self.parts)

    def locations(self, staging: StagedInput, key: str, positions: Iterable[int]) -> dict[int, SourceLine]:
        """Position → number of the row or record, by reading the affected parts again."""
        found: dict[int, SourceLine] = {}
        for split, those in by_split(positions).items():
            wrong = {fault.line for fault in staging.splits[split].faults}
            records = self.parts[split].read(staging.job.catalog, Faults(collect=True)).get(key, [])
            lines = [int(line) for part in records for line in part.lines if line not in wrong]
            found |= {position: (None, lines[row_of(position)]) for position in those}
        return found

    def lines_before(self, splits: Mapping[int, StagedSplit]) -> dict[int, int]:
        """0 for every part: rows are numbered over all parts."""
        return dict.fromkeys(splits, 0)

    def originals(self, staging: StagedInput, errors: Sequence[RecordError]) -> None:
        """Add the original records to errors by reading the affected parts again."""
        for part in self.parts:
            mine = {
                error.line: error
                for error in errors
                if error.record is None
                and error.line is not None
                and part.first <= error.line < part.first + len(part.rows)
                and part.type_name in (None, error.type_name)
            }
            if mine and part.type_name is None:
                records = part.records
                for line, error in mine.items():
                    error.record = records[line - part.first]
            elif mine:
                read = part.read(staging.job.catalog, Faults(collect=True))
                found = part_records([one for some in read.values() for one in some], mine)
                for line, error in mine.items():
                    error.record = found.get(line)


@dataclass(frozen=True)
class SpilledRecords:
    """Records in a file of this process."""

    path: Path
    count: int

    def __len__(self) -> int:
        return self.count

    def load(self) -> list[Any]:
        """Read the records."""
        with self.path.open("rb") as file:
            found: list[Any] = pickle.load(file)  # noqa: S301 (written by this process, readable by its user only)
        return found


@contextmanager
def held_records(data: Any, bytes_max: int | None, part_bytes: int, folder: Path | None) -> Iterator[Any]:
    """Yield the records of an iterator as a list or, if they need more than `bytes_max`, as parts in files.

    The files are below `folder`, or where temporary files are if it is None. Another input is yielded as it is.
    """
    if bytes_max is None or not isinstance(data, Iterator) or hasattr(data, "__arrow_c_stream__"):
        yield data
        return
    if folder is not None:
        folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as temporary:
        chunks = _chunks(data, part_bytes)
        held: list[list[Any]] = []
        size = 0
        for chunk, taken in chunks:
            held.append(chunk)
            size += taken
            if size > bytes_max:
                break
        else:
            yield [record for chunk in held for record in chunk]
            return
        parts: list[MemoryPart] = []
        first = 1
        while held:
            chunk = held.pop(0)
            parts.append(MemoryPart(len(parts), None, first, _spill(chunk, Path(temporary) / str(len(parts)))))
            first += len(chunk)
            if not held:
                following = next(chunks, None)
                if following is not None:
                    held.append(following[0])
                    size += following[1]
        yield MemorySource(size, tuple(parts))


def _chunks(records: Iterator[Any], part_bytes: int) -> Iterator[tuple[list[Any], int]]:
    """Yield consecutive records of about a size, with their approximate size."""
    chunk: list[Any] = []
    size = 0
    while some := list(islice(records, _SAMPLE_RECORDS)):
        chunk += some
        size += len(repr(some[0])) * len(some)
        if size >= part_bytes:
            yield chunk, size
            chunk, size = [], 0
    if chunk:
        yield chunk, size


def _spill(records: list[Any], path: Path) -> SpilledRecords | list[Any]:
    """Write records to a file; return them as they are if they cannot be written in a form that is read again."""
    try:
        with path.open("wb") as file:
            pickle.dump(records, file, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError):
        return records
    except OSError as error:
        raise StorageError(
            f"the records cannot be written to '{path.parent}': {error.strerror}",
            code="io_error",
            hint="free disk space, or load the records from files",
        ) from error
    return SpilledRecords(path, len(records))


def _stage(job: Job, part: MemoryPart) -> StagedSplit:
    faults = Faults(collect=job.collect)

    def chunks() -> Iterator[dict[str, list[RecordSet]]]:
        yield part.read(job.catalog, faults)

    return stage_chunks(job, part.number, faults, chunks(), lambda: 0)


def memory_bytes(data: Any) -> int | None:
    """Return the approximate size of records or of a table for each type name; None for another input."""
    if isinstance(data, Mapping):
        sizes = [_table_bytes(table) for table in data.values()]
        return sum(size for size in sizes if size is not None) if data and None not in sizes else None
    if isinstance(data, list | tuple) and data and all(type(one) is dict for one in data[:_SAMPLE_RECORDS]):
        sample = data[:: max(1, len(data) // _SAMPLE_RECORDS)]
        return sum(len(repr(one)) for one in sample) * len(data) // len(sample)
    return None


def divide(data: Any, part_bytes: int, format: TableFormat = PLAIN) -> MemorySource:
    """Divide an input of known size into parts of about a size."""
    size = memory_bytes(data)
    assert size is not None, "the size of the input is known"
    parts: list[MemoryPart] = []
    tables = data.items() if isinstance(data, Mapping) else [(None, data)]
    for name, rows in tables:
        taken = _table_bytes(rows) if name is not None else size
        at_once = max(1, len(rows) * part_bytes // max(taken or 0, 1))
        for start in range(0, max(len(rows), 1), at_once):
            parts.append(MemoryPart(len(parts), name, start + 1, _slice(rows, start, start + at_once), format))
    return MemorySource(size, tuple(parts))


def _table_bytes(table: Any) -> int | None:
    """Return the size of an Arrow table, or of a DataFrame of pandas or polars; None for another object."""
    if isinstance(table, pa.Table | pa.RecordBatch):
        return int(table.nbytes)
    match type(table).__module__.partition(".")[0], type(table).__name__:
        case "polars", "DataFrame":
            return int(table.estimated_size())
        case "pandas", "DataFrame":
            return int(table.memory_usage(deep=True).sum())
        case _:
            return None


def _slice(rows: Any, start: int, end: int) -> Any:
    if isinstance(rows, list | tuple):
        return rows[start:end]
    return rows.iloc[start:end] if hasattr(rows, "iloc") else rows.slice(start, end - start)
