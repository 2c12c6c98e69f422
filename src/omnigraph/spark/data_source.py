"""`format("omnigraph")`: tables of a graph as a Spark data source.

    spark.dataSource.register(OmniGraphDataSource)
    spark.read.format("omnigraph").option("uri", uri).option("type", "Person").load()
    people.write.format("omnigraph").mode("append").option("uri", uri).option("type", "Person").save()

A DataFrame reads one snapshot, which is pinned when the DataFrame is created. A partition is a fragment of the table.
Columns are selected by a schema and rows by the option `filter`. Filter pushdown is not implemented: in every release
so far, Spark reuses pushed filters for later queries of the same DataFrame, which gives wrong results.

A write is one commit. The executors check rows, write fragments and shuffle keys. Constraints between rows are
validated at the commit of the write, which Spark runs in a process next to the driver without a session: bucket by
bucket, from the keys, by the same rules as every other load.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

from omnigraph.errors import Conflict, Denied, InputError
from omnigraph.operations.authorization.access import Access
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.load.load_request import LoadRequest, check_missing, check_mode
from omnigraph.operations.store_statistics import store_load_statistics
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.load import begin_job, load_source
from omnigraph.pipeline.orphan_jobs import discard
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.pipeline.stage_task import StagedSplit, stage_rows
from omnigraph.pipeline.staged_input import RowSource
from omnigraph.policy.decide import load_policy
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.spark.arrow_interop import restore_unsigned, spark_ddl, spark_name
from omnigraph.spark.reads import check_columns
from omnigraph.spark.runner import prepare_worker
from omnigraph.spark.scans import Scan, job_of
from omnigraph.spark.visible_batches import guarded_ends
from omnigraph.storage.lance.fragments import stored_fragments
from omnigraph.suggestions import did_you_mean
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

READ_OPTIONS = ("uri", "type", "branch", "at", "filter", "policy", "actor")
WRITE_OPTIONS = ("uri", "type", "branch", "mode", "missing", "actor", "message", "job_id")
_WRITE_SECONDS_MAX = 24 * 3600.0


class OmniGraphDataSource(DataSource):
    """A type of a graph, read at a snapshot or written as one commit.

    Read options: `uri`, `type`, `branch`, `at` (a commit, tag, version or time), `filter` (SQL over stored columns),
    `policy` (a file) and `actor`, which limit the DataFrame to what the policy lets the actor export.
    Write options: `uri`, `type`, `branch`, `mode` (such as `merge`, which Spark's save modes do not have), `missing`
    (`keep` or `null`, for properties that the DataFrame does not have), `actor`, `message`, and `job_id`, which makes
    a second run a no-op.
    """

    def __init__(self, options: Any) -> None:
        prepare_worker()
        self._options = {str(key).lower(): str(value) for key, value in options.items()}
        for name in self._options:
            if name not in READ_OPTIONS and name not in WRITE_OPTIONS and name != "path":
                raise InputError(
                    f"the data source 'omnigraph' has no option '{name}'",
                    hint=did_you_mean(name, {*READ_OPTIONS, *WRITE_OPTIONS}),
                )
        self._options.setdefault("uri", self._options.get("path", ""))
        self._pinned: _PinnedTable | None = None
        # Spark keeps this object with the DataFrame, so the pin holds for all its queries.
        self._pin()

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "omnigraph"

    def schema(self) -> str:
        """Return the DDL of all columns of the type."""
        return spark_ddl(self._pin().schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the columns of a schema."""
        return _TableReader(self._pin(), schema, self._options.get("filter"))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002 (batches have their own schema)
        """Return a writer that publishes all rows as one commit."""
        if "policy" in self._options:
            raise InputError(
                "a write of the data source applies no policy",
                hint="open the graph with the policy and load frame.toArrow()",
            )
        given = self._options.get("mode")
        if overwrite and given not in (None, "overwrite"):
            raise InputError(
                f"the save mode is overwrite, but the option 'mode' is '{given}'", hint="give only one of them"
            )
        return _TableWriter(self._options, self._pin().key, "overwrite" if overwrite else given or "append")

    def _pin(self) -> _PinnedTable:
        if self._pinned is None:
            self._pinned = _PinnedTable.of(self._options)
        return self._pinned


@dataclass(frozen=True)
class _PinnedTable:
    """One type at one snapshot."""

    job: Job
    key: str
    schema: pa.Schema

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _PinnedTable:
        """Resolve the options to a table of a snapshot."""
        for name in ("uri", "type"):
            if not options.get(name):
                raise InputError(f"the data source 'omnigraph' requires the option '{name}'")
        job, catalog = _open(options)
        written = options["type"]
        name = written.rpartition(":")[2]
        tables: dict[str, NodeType | EdgeType] = {type_.table_key: type_ for type_ in catalog.tables()}
        candidates = [written] if ":" in written else [TableKey.node(name), TableKey.edge(name)]
        keys = [key for key in candidates if key in tables]
        if not keys:
            known = [type_.name for type_ in tables.values()]
            raise InputError(
                f"type '{options['type']}' does not exist at commit {job.id}",
                hint=did_you_mean(name, known),
            )
        if guarded_ends(job, keys[0]):
            # A reader runs without a session, so it cannot join the edges with the visible nodes.
            raise Denied(
                f"the policy hides nodes at the ends of '{name}', and the data source does not join",
                hint=f"read it with Graph.to_spark('{name}')",
            )
        return cls(job, keys[0], table_schema(tables[keys[0]]))


def _open(options: Mapping[str, str]) -> tuple[Job, Catalog]:
    """Pin the snapshot of the options; with a policy, what it lets the actor export. Also return its catalog."""
    repository = Repository.open(options["uri"], read_only=True, environ=os.environ)
    branch, at = options.get("branch", MAIN), _point(options.get("at"))
    if "policy" not in options:
        job = job_of(repository, repository.snapshot(branch, at))
        return job, job.catalog
    if "filter" in options:
        raise InputError(
            "the option 'filter' reads stored values, which a policy can hide",
            hint="leave the option out and use DataFrame.filter",
        )
    access = Access(load_policy(Path(options["policy"])), options.get("actor"))
    context = GraphContext.of(repository, os.environ, ()).with_access(access)
    snapshot = context.snapshot(branch, at, "export")
    return job_of(repository, snapshot, context.visibility_of(snapshot)), context.catalog(snapshot)


def _point(at: str | None) -> str | int | datetime | None:
    """Parse a point: a version number, a time, or else a commit id or tag."""
    if at is None or not at[:1].isdigit():
        return at
    if at.isdigit():
        return int(at)
    try:
        return datetime.fromisoformat(at)
    except ValueError:
        return at


class _TableReader(DataSourceReader):
    """Reads columns of a pinned table."""

    def __init__(self, pinned: _PinnedTable, wanted: StructType, filter: str | None) -> None:
        names = wanted.fieldNames()
        check_columns(pinned.key, names, pinned.schema.names)
        for field in wanted.fields:
            held = spark_name(pinned.schema.field(field.name).type)
            if field.dataType.simpleString() != held:
                raise InputError(
                    f"column '{field.name}' is {held} in Spark, not {field.dataType.simpleString()}",
                    hint="read it as it is, and cast the DataFrame",
                )
        self._scan = Scan(pinned.job, pinned.key, {name: name for name in names}, filter=filter)

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition per fragment of the table."""
        prepare_worker()
        fragments = stored_fragments(self._scan.job.table(self._scan.key))
        return [InputPartition(fragment) for fragment, _ in fragments] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a fragment."""
        prepare_worker()
        return iter(()) if partition.value is None else self._scan.read(((partition.value, 0),))


@dataclass
class _PartitionWritten(WriterCommitMessage):
    """The staged result of one partition, pickled."""

    staged: bytes


class _TableWriter(DataSourceArrowWriter):
    """Stages the rows of partitions in tasks, and publishes them as one commit."""

    def __init__(self, options: Mapping[str, str], key: str, mode: str) -> None:
        self._options = dict(options)
        self._type_name = TableKey.parse(key).type_name
        self._mode = mode
        self._branch = options.get("branch", MAIN)
        self._missing = options.get("missing", "keep")
        self._job = begin_job(
            self._repository(),
            self._branch,
            mode,
            os.environ,
            missing=self._missing,
            seconds_max=_WRITE_SECONDS_MAX,
        )

    def _repository(self) -> Repository:
        return Repository.open(self._options["uri"], environ=os.environ)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Check the rows of a partition and write the valid ones; runs in a task."""
        from pyspark import TaskContext  # noqa: PLC0415

        prepare_worker()
        context = TaskContext.get()
        assert context is not None
        batches = restore_unsigned(iterator, self._type_name, self._job.catalog)
        staged = stage_rows(self._job, context.partitionId(), self._type_name, batches)
        return _PartitionWritten(pickle.dumps(staged))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Validate all partitions together and publish them; runs after all tasks."""
        staged = [pickle.loads(message.staged) for message in messages if isinstance(message, _PartitionWritten)]  # noqa: S301
        source = RowSource(0, lambda job: self._restaged(job, staged))
        options = WriteOptions(
            branch=self._branch,
            actor=self._options.get("actor"),
            message=self._options.get("message"),
            idempotency_key=self._options.get("job_id"),
        )
        request = LoadRequest(check_mode(self._mode), options, check_missing(self._missing), environ=os.environ)
        repository = self._repository()
        result = load_source(repository, InlineRunner(), source, request, staged_job=self._job)
        store_load_statistics(repository, result)

    def _restaged(self, job: Job, staged: Sequence[StagedSplit]) -> Sequence[StagedSplit]:
        """Return the staged rows for another attempt of the commit; they fit only the schema they were written for."""
        if job.schema != self._job.schema:
            raise Conflict(
                f"the schema of branch '{self._branch}' changed while rows were written",
                code="schema_changed",
                hint="run the write again",
            )
        # A DataFrame without partitions is a load of no rows into the named table.
        return sorted(staged, key=lambda one: one.split) or [stage_rows(self._job, 0, self._type_name, ())]

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 (the job folder holds all files)
        """Remove all files of a write that is not published."""
        discard(self._repository(), self._job.id)
