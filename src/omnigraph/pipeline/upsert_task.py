"""Tasks of a merge that apply records to rows, one bucket at a time.

`match` assigns ids to edges without one. `complete` collects all records of a bucket of ids and the committed rows with
these ids, makes one row per id (`engine.write.upsert`), writes the rows as fragments of their tables and shuffles the
keys that `validate` reads. Columns that are absent from a record come with the committed rows from `scan`, which reads
them fragment by fragment. Without an id filter, they are read by row id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine import tuning
from omnigraph.engine.write.delta import MADE
from omnigraph.engine.write.fill_vectors import fill_vectors
from omnigraph.engine.write.upsert import MergedRows, Positions, merge_records, with_ids
from omnigraph.errors import OmniGraphError
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.shuffle import Shuffle, read_bucket, write_buckets
from omnigraph.pipeline.stage_task import (
    LOOSE,
    MASK,
    POSITION,
    RECORDS,
    add_shuffles,
    list_files,
    new_ids,
    row_violations,
    shuffle_records,
    shuffle_rows,
)
from omnigraph.pipeline.validate_task import (
    ADDRESS,
    MATCHES,
    ROW_ID,
    STORED,
    VALUE,
    RoundPlan,
    in_order,
    read_plan,
    write_replaced,
)
from omnigraph.pipeline.violations import LocatedViolation, PackedError
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.storage.lance.fragments import NewFragment, RowIds, write_new_fragments
from omnigraph.table_key import TableKey


@dataclass
class CompletedTable:
    """The rows of one table in one bucket.

    `origins` names the file with, for each row of `fragments` in order, its position, the row id of the row it replaces
    and the positions of all its records; it is written only if rows can be set aside. `replaced` names the file with
    the addresses of replaced rows. `lacking` has, for each row without a required property, the positions of its
    records, the property and the id of the row.
    """

    fragments: list[NewFragment] = field(default_factory=list)
    origins: str | None = None
    replaced: str | None = None
    lacking: list[tuple[list[int], str, str]] = field(default_factory=list)
    embedded: int = 0
    waiting: int = 0
    existing: int = 0
    """The number of rows that replace committed ones."""
    examples: list[str] = field(default_factory=list)
    """The first three of their ids in order."""


@dataclass
class Completed:
    """Result of `complete`."""

    tables: dict[str, CompletedTable] = field(default_factory=dict)
    shuffles: dict[Shuffle, list[str]] = field(default_factory=dict)
    violations: list[LocatedViolation] = field(default_factory=list)
    unembedded: PackedError | None = None


def match(job: Job, work: tuple[int, str]) -> dict[Shuffle, list[str]]:
    """Assign ids to the edges of a bucket that have none, and shuffle them by id."""
    number, name = work
    plan = read_plan(job, name)
    shuffles = dict(plan.shuffles)
    made: dict[Shuffle, list[str]] = {}
    for shuffle, names in shuffles.items():
        if shuffle.kind != LOOSE:
            continue
        batches = [pa.Table.from_batches([batch]) for batch in read_bucket(job, names, number)]
        if not batches:
            continue
        columns = list(dict.fromkeys(["id", *shuffle.by]))
        stored = read_bucket(job, shuffles.get(Shuffle(STORED, shuffle.table_key, shuffle.by), ()), number)
        committed = pa.Table.from_batches(stored).select(columns) if stored else batches[0].slice(0, 0).select(columns)
        # Files differ in their columns: a column that all records of a file lack is absent.
        records = pa.concat_tables(batches, promote_options="default")
        for mask in (column for column in records.column_names if column.startswith(MASK)):
            index = records.schema.get_field_index(mask)
            records = records.set_column(index, mask, pc.fill_null(records[mask], True))
        records = with_ids(records.combine_chunks(), shuffle.by, committed, new_ids)
        add_shuffles(made, shuffle_records(job, shuffle.table_key, records))
    return made


def complete(job: Job, work: tuple[int, str]) -> Completed:
    """Make and write the rows of a bucket."""
    number, name = work
    plan = read_plan(job, name)
    done = Completed()
    for key in plan.named:
        bucket = _BucketMerge(job, number, plan, key)
        if bucket.records.num_rows:
            done.tables[key] = bucket.complete(done)
    return done


class _BucketMerge:
    """The records of one table in one bucket, and the committed rows with the same ids."""

    def __init__(self, job: Job, number: int, plan: RoundPlan, key: str) -> None:
        self.job = job
        self.key = key
        kind, name = TableKey.parse(key).parts
        self.type: NodeType | EdgeType = job.catalog.nodes[name] if kind == "node" else job.catalog.edges[name]
        shuffles = dict(plan.shuffles)
        self.made: pa.Array | None = None
        self.records, self.given, self.positions = self._read(shuffles.get(Shuffle(RECORDS, key, ("id",)), ()), number)
        matches = read_bucket(job, shuffles.get(Shuffle(MATCHES, key, ("id",)), ()), number)
        empty = pa.table({"id": pa.array([], pa.utf8()), **{n: pa.array([], pa.uint64()) for n in (ROW_ID, ADDRESS)}})
        self.matches = pa.Table.from_batches(matches) if matches else empty
        self.wanted = frozenset(plan.written)

    def _read(self, names: Sequence[str], number: int) -> tuple[pa.Table, dict[str, pa.Array], Positions]:
        schema = pa.schema([column.with_nullable(True) for column in table_schema(self.type)])
        parts = [pa.Table.from_batches([batch]) for batch in read_bucket(self.job, names, number)]
        if not parts:
            return schema.empty_table(), {}, np.array([], np.int64)
        found = in_order(pa.concat_tables(parts, promote_options="default").combine_chunks())
        if MADE in found.column_names:
            self.made = one_array(pc.fill_null(found[MADE], False))
        given = {
            column.removeprefix(MASK): one_array(pc.fill_null(found[column], True))
            for column in found.column_names
            if column.startswith(MASK)
        }
        return found.select(schema.names).cast(schema), given, found[POSITION].to_numpy()

    def complete(self, done: Completed) -> CompletedTable:
        """Apply the records, write the rows and shuffle their keys."""
        folded = merge_records(self.type, self.records, self.given, self._committed)
        made = CompletedTable()
        for row, name in folded.lacking:
            id_ = folded.table["id"][row].as_py()
            made.lacking.append((self.positions[folded.records_of(row)].tolist(), name, id_))
        if made.lacking and not self.job.collect:
            return made
        folded = folded.complete()
        positions = self.positions[folded.last]
        done.violations += row_violations(self.job, self.type, folded.table, positions)
        rows = folded.table
        if self.made is not None:
            rows = rows.append_column(MADE, self.made.take(pa.array(folded.last)))
        add_shuffles(done.shuffles, shuffle_rows(self.job, self.type, rows, positions, fresh=False, wanted=self.wanted))
        self._write(done, made, folded, positions)
        return made

    def _committed(self, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The committed rows with some ids; other rows may be among them."""
        if all(f"{VALUE}{name}" in self.matches.column_names for name in columns):
            return pa.table({"id": self.matches["id"], **{name: self.matches[f"{VALUE}{name}"] for name in columns}})
        rows = self.matches.filter(pc.is_in(self.matches["id"], value_set=ids))
        return self.job.table(self.key).take_rows(rows[ROW_ID].to_pylist(), list(dict.fromkeys(["id", *columns])))

    def _write(self, done: Completed, made: CompletedTable, folded: MergedRows, positions: Positions) -> None:
        rows = folded.table
        if isinstance(self.type, NodeType) and self.type.embeds:
            try:
                rows, made.embedded, made.waiting = fill_vectors(self.type, rows, self.job.column_embedder())
            except OmniGraphError as error:
                # Violations are reported before embedding errors, so the error is kept until validation has passed.
                done.unembedded = done.unembedded or PackedError.of(error)
                return
        found = pc.index_in(one_array(rows["id"]), value_set=one_array(self.matches["id"]))
        replaces = np.asarray(pc.is_valid(found))
        made.existing = int(replaces.sum())
        ids = one_array(rows["id"]).filter(pa.array(replaces))
        made.examples = ids.take(pc.bottom_k_unstable(ids, k=3)).to_pylist()
        # Only the first rows of a fragment can take over row ids.
        order = np.concatenate([np.flatnonzero(replaces), np.flatnonzero(~replaces)])
        hits = self.matches.take(one_array(found.take(pa.array(order[: replaces.sum()]))))
        row_ids = hits[ROW_ID].to_numpy()
        table = self.job.table(self.key)
        step = tuning.current.staged_rows
        for start in range(0, len(order), step):
            some = rows.take(pa.array(order[start : start + step]))
            fragments = write_new_fragments(table, some, row_ids[start : start + step])
            list_files(self.job, self.key, fragments)
            made.fragments += fragments
        if self.job.collect:
            made.origins = self._write_origins(folded, positions, order, row_ids)
        made.replaced = write_replaced(self.job, hits[ADDRESS], pa.chunked_array([positions[order[: len(row_ids)]]]))

    def _write_origins(self, folded: MergedRows, positions: Positions, order: Positions, row_ids: RowIds) -> str | None:
        records = pa.nulls(len(order), pa.list_(pa.int64()))
        if folded.records is not None:
            taken = folded.records.take(pa.array(order))
            records = pa.ListArray.from_arrays(taken.offsets, pa.array(self.positions[taken.flatten().to_numpy()]))
        columns = {
            POSITION: pa.array(positions[order]),
            ROW_ID: pa.concat_arrays([pa.array(row_ids), pa.nulls(len(order) - len(row_ids), pa.uint64())]),
            RECORDS: records,
        }
        return write_buckets(self.job, "origins", pa.table(columns), np.zeros(len(order), np.int64))


def read_origins(job: Job, name: str) -> pa.Table:
    """Read the file that maps the rows of a bucket's fragments to their records."""
    return pa.Table.from_batches(read_bucket(job, [name], 0))
