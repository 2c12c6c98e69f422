"""Tables as DataFrames: workers read the fragments of a pinned version and evaluate predicates while reading.

A scan runs one task per fragment (small fragments share a task) on a DataFrame of numbers, which costs less to plan
than a data source. The evaluator of the engine evaluates the predicates.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from omnigraph.errors import Denied
from omnigraph.pipeline.job import Job
from omnigraph.query.visibility import Visibility
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.spark.arrow_interop import quoted, spark_ddl, to_wire
from omnigraph.spark.runner import prepare_worker
from omnigraph.spark.visible_batches import TableRules, guarded_ends, table_rules
from omnigraph.storage.lance.fragments import read_fragment, stored_fragments
from omnigraph.storage.lance.tables import FRAGMENT_ROWS
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import Repository

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.spark.arrow_udfs import ScanPredicates

FragmentRefs = tuple[tuple[int, int], ...]
"""Fragments of a table, each with the number of its first row."""


class ScanValue(Protocol):
    """A float that the workers compute from a stored column."""

    @property
    def prop(self) -> str:
        """The stored column."""

    def compute(self, column: pa.Array) -> pa.Array:
        """Return the value of every row."""


def job_of(repository: Repository, snapshot: Snapshot, visibility: Visibility | None = None) -> Job:
    """Return the job description with which tasks read a snapshot, or what is visible of it."""
    if visibility is not None and visibility.audit is not None:
        raise Denied(
            "the policy audits the rows that you read, and rows that Spark reads cannot be audited",
            hint="use engine='memory'",
        )
    pins = {key: table.open_args for key, table in snapshot.tables.items()}
    return Job(snapshot.commit_id, repository.location, snapshot.schema.ir, pins, visibility=visibility)


@dataclass(frozen=True)
class Scan:
    """A scan of a table at its pin: of what the visibility of the job shows.

    `columns` maps stored columns to columns of the DataFrame. `filter` is SQL over stored columns; it would read hidden
    values, so it is not used with a visibility.
    """

    job: Job
    key: str
    columns: Mapping[str, str]
    filter: str | None = None
    conditions: ScanPredicates | None = None
    numbers: tuple[str, int] | None = None
    """Name of a column of row numbers, and the number of the first row of the table."""
    values: Mapping[str, ScanValue] = field(default_factory=dict)
    """Name and value of columns that are computed from stored ones."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the DataFrame in their stored types."""
        stored = self.job.table(self.key).schema
        fields = [stored.field(name).with_name(given) for name, given in self.columns.items()]
        fields += [pa.field(name, pa.float64()) for name in self.values]
        return pa.schema([*fields, *([pa.field(self.numbers[0], pa.int64())] if self.numbers else [])])

    @cached_property
    def _rules(self) -> TableRules | None:
        return table_rules(self.job.visibility, self.key, self.job.table(self.key).schema)

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a DataFrame, in no particular order."""
        ends = guarded_ends(self.job, self.key)
        if not ends:
            return self.own_frame(spark)
        from pyspark.sql import functions as f  # noqa: PLC0415

        # An edge is visible only if both its ends are.
        named = {column: self.columns.get(column, f"#{column}") for column in ends}
        frame = replace(self, columns={**self.columns, **named}).own_frame(spark)
        for column, node in ends.items():
            visible = Scan(self.job, node.table_key, {node.end_column: "#end"}).own_frame(spark)
            frame = frame.join(visible, f.col(quoted(named[column])) == f.col(quoted("#end")), "left_semi")
        return frame.drop(*(name for column, name in named.items() if column not in self.columns))

    def joined_frame(self, spark: SparkSession) -> DataFrame:
        """Return the edges of a hop: their ends are the ids of the rows that they join."""
        return joined_periods(self, spark) if has_period_ends(self.job, self.key) else self.frame(spark)

    def own_frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows that the conditions on the table itself show."""
        inputs = task_inputs(stored_fragments(self.job.table(self.key)), self.numbers[1] if self.numbers else 0)
        tasks = _ScanTasks(pickle.dumps(self), inputs)
        numbers = spark.range(0, len(inputs), 1, max(len(inputs), 1))
        return numbers.mapInArrow(tasks, spark_ddl(self.schema))

    def read(self, fragments: FragmentRefs) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some fragments in their Spark representation."""
        tested = self.conditions.columns if self.conditions else ()
        wanted = list(dict.fromkeys([*self.columns, *tested, *(value.prop for value in self.values.values())]))
        for fragment, first in fragments:
            for batch in self.stored(fragment, wanted):
                kept = batch
                if self.conditions is not None:
                    mask = self.conditions.mask(batch, self.job)
                    kept = batch if mask.all() else batch.take(pa.array(np.flatnonzero(mask)))
                if kept.num_rows:
                    columns = [to_wire(kept.column(name)) for name in self.columns]
                    columns += [value.compute(kept.column(value.prop)) for value in self.values.values()]
                    if self.numbers is not None:
                        columns.append(pa.array(np.arange(first, first + kept.num_rows)))
                        first += kept.num_rows
                    yield pa.record_batch(columns, names=self.schema.names)

    def stored(self, fragment: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the visible rows of a fragment in their stored types, with at least the named columns."""
        table, rules = self.job.table(self.key), self._rules
        if rules is None:
            yield from read_fragment(table, fragment, names, filter=self.filter)
            return
        if self.filter is not None or self.numbers is not None:
            raise LookupError("a filter and row numbers would contain hidden rows")
        rules.check_columns(names)
        for batch in read_fragment(table, fragment, list(dict.fromkeys([*names, *rules.columns]))):
            yield rules.shown(batch)


def has_period_ends(job: Job, key: str) -> bool:
    """True if a table holds edges of which an end is a node type with periods."""
    table = TableKey.parse(key)
    return table.kind == "edge" and job.catalog.joins_periods(job.catalog.edges[table.type_name])


def _end_types(job: Job, name: str) -> tuple[NodeType, NodeType]:
    edge = job.catalog.edges[name]
    return job.catalog.nodes[edge.from_type], job.catalog.nodes[edge.to_type]


def joined_periods(scan: Scan, spark: SparkSession) -> DataFrame:
    """Return the edges of a scan with the ids of the rows that they join in place of the keys at their ends.

    An edge joins the visible rows of both ends that share an instant with it and with each other.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    name = TableKey.parse(scan.key).type_name
    edge, nodes = scan.job.catalog.edges[name], _end_types(scan.job, name)
    given = {column: scan.columns.get(column, f"#{column}") for column in ("src", "dst")}
    period = {} if edge.valid is None else {edge.valid.start: "#from", edge.valid.end: "#to"}
    stored = {column: scan.columns.get(column, new) for column, new in {**given, **period}.items()}
    frame = replace(scan, columns={**scan.columns, **stored}).own_frame(spark)
    periods = [_milliseconds(f, edge, [stored[column] for column in period])] if period else []
    for column, node in zip(("src", "dst"), nodes, strict=True):
        id_, end = f"#{column} id", f"#{column} end"
        columns = {"id": id_} if node.end_column == "id" else {"id": id_, node.end_column: end}
        bounds: list[Any] = []
        if node.valid is not None:
            named = [f"#{column} from", f"#{column} to"]
            columns |= dict(zip((node.valid.start, node.valid.end), named, strict=True))
            bounds = _milliseconds(f, node, named)
        rows = Scan(scan.job, node.table_key, columns).own_frame(spark)
        meets = f.col(quoted(given[column])) == f.col(quoted(columns[node.end_column]))
        for other in periods if bounds else ():
            meets = meets & _overlap(f, bounds, other)
        if bounds:
            periods.append(bounds)
        frame = frame.join(rows, meets).withColumn(given[column], f.col(quoted(id_)))
    return frame.select(*(quoted(new) for new in scan.schema.names))


def _milliseconds(f: Any, type_: NodeType | EdgeType, columns: Sequence[str]) -> list[Any]:
    """Return the start and the end of a period in milliseconds. The time zone of the session does not matter."""
    assert type_.valid is not None
    if type_.properties[type_.valid.start].type.scalar == "Date":
        return [f.unix_date(f.col(quoted(name))).cast("long") * 86_400_000 for name in columns]
    return [f.unix_millis(f.col(quoted(name))) for name in columns]


def _overlap(f: Any, one: Sequence[Any], other: Sequence[Any]) -> Any:
    """Return the condition that two periods share an instant; null is open."""

    def before(start: Any, end: Any) -> Any:
        return f.coalesce(start < end, f.lit(True))

    return before(one[0], other[1]) & before(other[0], one[1])


class _ScanTasks:
    """A pickled scan, run by Spark tasks; each task reads the fragments of its number."""

    def __init__(self, scan: bytes, inputs: Sequence[FragmentRefs]) -> None:
        self._scan = scan
        self._inputs = inputs

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the fragments of the task."""
        prepare_worker()
        scan: Any = pickle.loads(self._scan)  # noqa: S301 (made by the driver of this job)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from scan.read(self._inputs[number])


def task_inputs(fragments: Sequence[tuple[int, int]], first: int) -> list[FragmentRefs]:
    """Group fragments until each group has enough rows for a task."""
    inputs: list[FragmentRefs] = []
    held: list[tuple[int, int]] = []
    rows = 0
    for number, count in fragments:
        held.append((number, first))
        rows += count
        first += count
        if rows >= FRAGMENT_ROWS:
            inputs.append(tuple(held))
            held, rows = [], 0
    return [*inputs, tuple(held)] if held else inputs
