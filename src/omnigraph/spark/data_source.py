"""`format("omnigraph")`: tables of a graph as a data source of Spark.

    spark.dataSource.register(OmniGraphDataSource)
    spark.read.format("omnigraph").option("uri", uri).option("type", "Person").load()
    people.write.format("omnigraph").mode("append").option("uri", uri).option("type", "Person").save()

A frame is of one snapshot, chosen when it is made and kept with it. A partition is a piece of the table. Columns are
chosen by a schema and rows by the option `filter`: what Spark itself would push down it keeps for later queries of the
same frame, with wrong results in every release so far, so nothing is taken from it.

A write is one commit. The executors check rows, write pieces and deal keys; what rows mean together is judged where
Spark lets a write end, a process beside the driver that has no session: from the keys, a bucket at a time, by the same
rules as every other load.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

from omnigraph.errors import Conflict, InputError
from omnigraph.operations.load_request import LoadRequest, check_missing, check_mode
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.load import begin_job, load_source
from omnigraph.pipeline.orphan_jobs import discard
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.pipeline.stage_task import StagedSplit, stage_rows
from omnigraph.pipeline.staged_input import RowSource
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.spark.arrow_interop import as_given, spark_ddl, spark_name
from omnigraph.spark.reads import check_columns
from omnigraph.spark.runner import use_one_thread
from omnigraph.spark.scans import Scan, job_of
from omnigraph.storage.lance.fragments import stored_fragments
from omnigraph.suggestions import did_you_mean
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

READ_OPTIONS = ("uri", "type", "branch", "at", "filter")
WRITE_OPTIONS = ("uri", "type", "branch", "mode", "missing", "actor", "message", "job_id")
_WRITE_SECONDS_MAX = 24 * 3600.0


class OmniGraphDataSource(DataSource):
    """A type of a graph, read at a snapshot or written as one commit.

    Options of a read: `uri`, `type`, `branch`, `at` (a commit, tag, version or time), `filter` (SQL over stored
    columns). Of a write: `uri`, `type`, `branch`, `mode` (`merge`, where Spark's own modes say less), `missing`
    (`keep` or `null`, for properties the frame does not have), `actor`, `message`, and `job_id`, which makes a second
    run a no-op.
    """

    def __init__(self, options: Any) -> None:
        use_one_thread()
        self._options = {str(key).lower(): str(value) for key, value in options.items()}
        for name in self._options:
            if name not in READ_OPTIONS and name not in WRITE_OPTIONS and name != "path":
                raise InputError(
                    f"the data source 'omnigraph' has no option '{name}'",
                    hint=did_you_mean(name, {*READ_OPTIONS, *WRITE_OPTIONS}),
                )
        self._options.setdefault("uri", self._options.get("path", ""))
        self._pinned: _Pinned | None = None
        # Spark keeps the object with the frame: what is settled here holds for every query of it.
        self._pin()

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "omnigraph"

    def schema(self) -> str:
        """All columns of the type."""
        return spark_ddl(self._pin().schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads the columns of a schema."""
        return _Reader(self._pin(), schema, self._options.get("filter"))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002 (rows say what they are)
        """Writes rows as one commit."""
        given = self._options.get("mode")
        if overwrite and given not in (None, "overwrite"):
            raise InputError(f"the write is an overwrite and the option 'mode' says '{given}'", hint="leave one out")
        return _Writer(self._options, self._pin().key, "overwrite" if overwrite else given or "append")

    def _pin(self) -> _Pinned:
        if self._pinned is None:
            self._pinned = _Pinned.of(self._options)
        return self._pinned


@dataclass(frozen=True)
class _Pinned:
    """One type at one snapshot."""

    job: Job
    key: str
    schema: pa.Schema

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _Pinned:
        """What the options name."""
        for name in ("uri", "type"):
            if not options.get(name):
                raise InputError(f"the data source 'omnigraph' needs the option '{name}'")
        repository = Repository.open(options["uri"], read_only=True, environ=os.environ)
        snapshot = repository.snapshot(options.get("branch", MAIN), _point(options.get("at")))
        job = job_of(repository, snapshot)
        written = options["type"]
        name = written.rpartition(":")[2]
        tables: dict[str, NodeType | EdgeType] = {type_.table_key: type_ for type_ in job.catalog.tables()}
        candidates = [written] if ":" in written else [TableKey.node(name), TableKey.edge(name)]
        keys = [key for key in candidates if key in tables]
        if not keys:
            known = [type_.name for type_ in tables.values()]
            raise InputError(
                f"type '{options['type']}' does not exist at commit {snapshot.commit_id}",
                hint=did_you_mean(name, known),
            )
        return cls(job, keys[0], table_schema(tables[keys[0]]))


def _point(at: str | None) -> str | int | datetime | None:
    """A commit, a tag, a version or a time, as text has them."""
    if at is None or not at[:1].isdigit():
        return at
    if at.isdigit():
        return int(at)
    try:
        return datetime.fromisoformat(at)
    except ValueError:
        return at


class _Reader(DataSourceReader):
    def __init__(self, pinned: _Pinned, wanted: StructType, filter: str | None) -> None:
        names = wanted.fieldNames()
        check_columns(pinned.key, names, pinned.schema.names)
        for field in wanted.fields:
            held = spark_name(pinned.schema.field(field.name).type)
            if field.dataType.simpleString() != held:
                raise InputError(
                    f"column '{field.name}' is {held} in Spark, not {field.dataType.simpleString()}",
                    hint="read it as it is, and cast the frame",
                )
        self._scan = Scan(pinned.job, pinned.key, {name: name for name in names}, filter=filter)

    def partitions(self) -> Sequence[InputPartition]:
        """One for each piece of the table."""
        use_one_thread()
        pieces = stored_fragments(self._scan.job.table(self._scan.key))
        return [InputPartition(piece) for piece, _ in pieces] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a piece."""
        use_one_thread()
        return iter(()) if partition.value is None else self._scan.read(((partition.value, 0),))


@dataclass
class _Written(WriterCommitMessage):
    """What became of a partition."""

    staged: bytes


class _Writer(DataSourceArrowWriter):
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
        """In a task: check the rows of a partition, and write those that are sound."""
        from pyspark import TaskContext  # noqa: PLC0415

        use_one_thread()
        context = TaskContext.get()
        assert context is not None
        batches = as_given(iterator, self._type_name, self._job.catalog)
        staged = stage_rows(self._job, context.partitionId(), self._type_name, batches)
        return _Written(pickle.dumps(staged))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver, once all partitions are written: judge them together, and publish."""
        staged = [pickle.loads(message.staged) for message in messages if isinstance(message, _Written)]  # noqa: S301
        source = RowSource(0, lambda job: self._again(job, staged))
        options = WriteOptions(
            branch=self._branch,
            actor=self._options.get("actor"),
            message=self._options.get("message"),
            idempotency_key=self._options.get("job_id"),
        )
        request = LoadRequest(check_mode(self._mode), options, check_missing(self._missing), environ=os.environ)
        load_source(self._repository(), InlineRunner(), source, request, staged_job=self._job)

    def _again(self, job: Job, staged: Sequence[StagedSplit]) -> Sequence[StagedSplit]:
        if job.schema != self._job.schema:
            raise Conflict(
                f"the schema of branch '{self._branch}' changed while rows were written",
                code="schema_changed",
                hint="write them again",
            )
        # A frame without partitions is a load of nothing, which names its table all the same.
        return sorted(staged, key=lambda one: one.split) or [stage_rows(self._job, 0, self._type_name, ())]

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 (the notes know them all)
        """On the driver, when it will not be published: remove every file."""
        discard(self._repository(), self._job.id)
