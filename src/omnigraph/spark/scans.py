"""Tables as frames: workers read the pieces of a pinned version themselves, and judge conditions as they go.

A scan is a task per piece (small ones are put together) on a frame of numbers, which costs less to plan than a data
source. Conditions are judged by the very evaluator of the engine, so they mean what they mean everywhere.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.pipeline.job import Job
from omnigraph.spark.arrow_interop import spark_ddl, to_wire
from omnigraph.spark.runner import use_one_thread
from omnigraph.storage.lance.fragments import read_stored, stored_fragments
from omnigraph.storage.lance.tables import FRAGMENT_ROWS
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import Repository

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.spark.arrow_udfs import Conditions

Pieces = tuple[tuple[int, int], ...]
"""Some pieces of a table, each with the number of its first row."""


def job_of(repository: Repository, snapshot: Snapshot) -> Job:
    """What tasks must know to read a snapshot."""
    pins = {key: table.open_args for key, table in snapshot.tables.items()}
    return Job(snapshot.commit_id, repository.location, snapshot.schema.ir, pins)


@dataclass(frozen=True)
class Scan:
    """The rows of a table at its pin: stored column → its name in the frame; `filter` is SQL over stored columns."""

    job: Job
    key: str
    columns: Mapping[str, str]
    filter: str | None = None
    conditions: Conditions | None = None
    numbers: tuple[str, int] | None = None
    """A further column, and what it has for the first row of the table: rows are numbered through."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the frame, as they are stored."""
        stored = self.job.table(self.key).schema
        fields = [stored.field(name).with_name(given) for name, given in self.columns.items()]
        return pa.schema([*fields, *([pa.field(self.numbers[0], pa.int64())] if self.numbers else [])])

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows, in no promised order."""
        parts = _parts(stored_fragments(self.job.table(self.key)), self.numbers[1] if self.numbers else 0)
        tasks = _Tasks(pickle.dumps(self), parts)
        numbers = spark.range(0, len(parts), 1, max(len(parts), 1))
        return numbers.mapInArrow(tasks, spark_ddl(self.schema))

    def read(self, pieces: Pieces) -> Iterator[pa.RecordBatch]:
        """The rows of some pieces, as they travel."""
        table = self.job.table(self.key)
        wanted = list(dict.fromkeys([*self.columns, *(self.conditions.columns if self.conditions else ())]))
        for piece, first in pieces:
            for batch in read_stored(table, piece, wanted, filter=self.filter):
                kept = batch
                if self.conditions is not None:
                    mask = self.conditions.mask(batch, self.job)
                    kept = batch if mask.all() else batch.take(pa.array(np.flatnonzero(mask)))
                if kept.num_rows:
                    columns = [to_wire(kept.column(name)) for name in self.columns]
                    if self.numbers is not None:
                        columns.append(pa.array(np.arange(first, first + kept.num_rows)))
                        first += kept.num_rows
                    yield pa.record_batch(columns, names=self.schema.names)


class _Tasks:
    """A scan on its way to the workers."""

    def __init__(self, scan: bytes, parts: Sequence[Pieces]) -> None:
        self._scan = scan
        self._parts = parts

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What a task of Spark does."""
        use_one_thread()
        scan: Any = pickle.loads(self._scan)  # noqa: S301 (made by the driver of this very job)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from scan.read(self._parts[number])


def _parts(pieces: Sequence[tuple[int, int]], first: int) -> list[Pieces]:
    """Pieces put together until they are worth a task."""
    parts: list[Pieces] = []
    held: list[tuple[int, int]] = []
    rows = 0
    for number, count in pieces:
        held.append((number, first))
        rows += count
        first += count
        if rows >= FRAGMENT_ROWS:
            parts.append(tuple(held))
            held, rows = [], 0
    return [*parts, tuple(held)] if held else parts
