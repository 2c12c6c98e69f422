"""The task that stages a split: it writes fragments, shuffles keys and lists wrong records.

Rules about a single record (shape, types, ids, `@range`, `@check`, enums) are checked here. `validate` checks the rules
that compare records; it gets the required columns from the shuffles.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.engine.ingest.records import AnyType, Faults, LoadedRows, Records, RecordSet
from omnigraph.engine.ingest.table_columns import find_type
from omnigraph.engine.ingest.tabular import read_arrow, read_table_file
from omnigraph.engine.write.delta import MADE, Delta, TableDelta
from omnigraph.engine.write.fill_vectors import fill_vectors
from omnigraph.engine.write.upsert import Positions, committed_columns, match_columns, needs_matching, with_ids
from omnigraph.errors import Conflict, Damaged, OmniGraphError, RecordError, StorageError
from omnigraph.operations.load.load_rules import (
    NodeAliasArrays,
    node_aliases_of,
    resolve_aliases,
    rows_of,
    with_current_ids,
)
from omnigraph.operations.load.reject_records import line_records, part_records
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.shuffle import Shuffle, write_shuffle
from omnigraph.pipeline.splits import Split, SplitReader, count_lines, texts_of
from omnigraph.pipeline.violations import LocatedViolation, PackedError, RecordFault, position_of
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.storage.lance.fragments import NewFragment, delete_files, write_new_fragments
from omnigraph.versioning.model.ids import new_ulids, system_clock
from omnigraph.versioning.model.snapshot import Snapshot

WRITTEN = "written"
RECORDS = "records"
"""Shuffle kind: whole records of a merge, by id."""
LOOSE = "loose"
"""Shuffle kind: whole edge records of a merge without an id, by the tuple that identifies them."""
GIVEN_IDS = "ids"
"""Shuffle kind: the ids of the records of a merge."""
POSITION = "position"
MASK = "given:"
"""Prefix of the mask columns that mark the records that give a property."""


@dataclass
class StagedTable:
    """The rows of one table in one split."""

    rows: int = 0
    fragments: list[NewFragment] = field(default_factory=list)
    first_rows: list[int] = field(default_factory=list)
    """For each fragment, the number of its first row among the split's rows of the table."""
    fresh: bool = True
    adds_again: bool = False
    absent: set[str] = field(default_factory=set)
    """The columns that a merge takes from committed rows, because some records lack them."""
    embedded: int = 0
    waiting: int = 0
    aliases: list[tuple[str, str, int]] = field(default_factory=list)
    """(old spelling of an id, id, position of the row)."""


@dataclass
class StagedSplit:
    """Result of staging a split.

    `shape` is the first input that is not a record, or an error that concerns no record. `values` has the first wrong
    record of each table. If wrong records are set aside, `faults` has all of them instead. `unembedded` is the first
    error of the embedding provider.
    """

    split: int
    lines: int = 0
    tables: dict[str, StagedTable] = field(default_factory=dict)
    shuffles: dict[Shuffle, list[str]] = field(default_factory=dict)
    shape: RecordFault | PackedError | None = None
    values: dict[str, RecordFault] = field(default_factory=dict)
    faults: list[RecordFault] = field(default_factory=list)
    violations: list[LocatedViolation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unembedded: PackedError | None = None


def shuffles_of(type_: AnyType, *, fresh: bool) -> Iterator[tuple[Shuffle, list[str]]]:
    """Yield the shuffles of a type and the columns of each. Generated ids match nothing, so `fresh` rows are not
    shuffled by id.
    """
    key = type_.table_key
    if not fresh:
        yield Shuffle(WRITTEN, key, ("id",)), ["id"]
    named = ["src", "dst"] if isinstance(type_, EdgeType) else []
    named += period_columns(type_)
    for columns in type_.unique:
        yield Shuffle(WRITTEN, key, columns), list(dict.fromkeys(["id", *columns, *named]))
    if isinstance(type_, NodeType) and type_.has_periods and type_.key not in type_.unique:
        yield Shuffle(WRITTEN, key, type_.key), list(dict.fromkeys(["id", *type_.key, *named]))
    if isinstance(type_, EdgeType):
        yield Shuffle(WRITTEN, key, ("src",)), ["src"]
        yield Shuffle(WRITTEN, key, ("dst",)), ["dst"]


def period_columns(type_: AnyType) -> list[str]:
    """Return the columns that accompany rows that meet by other columns than the id: the period of the row."""
    return [] if type_.valid is None else [type_.valid.start, type_.valid.end]


def stage(job: Job, split: Split) -> StagedSplit:
    """Read a split, check each record and write the valid ones."""
    reading = SplitReader(job, split, Faults(collect=job.collect))
    return stage_chunks(job, split.number, reading.faults, reading.chunks(), lambda: reading.lines)


def stage_rows(job: Job, number: int, type_name: str, batches: Iterable[pa.RecordBatch]) -> StagedSplit:
    """Stage Arrow batches with rows of one type, numbered from 1."""
    faults = Faults(collect=job.collect)
    rows = 0

    def chunks() -> Iterator[dict[str, list[RecordSet]]]:
        nonlocal rows
        type_ = find_type(type_name, job.catalog)
        # Without rows the table is still part of the load.
        yield {type_.table_key: [Records(type_, None)]}
        for batch in batches:
            table = pa.Table.from_batches([batch])
            first, rows = rows + 1, rows + table.num_rows
            yield {key: [part] for key, part in read_arrow(type_name, table, job.catalog, faults, first=first).items()}

    return stage_chunks(job, number, faults, chunks(), lambda: rows)


def locate(job: Job, work: tuple[Split, str, Sequence[int], Collection[int]]) -> dict[int, tuple[str | None, int]]:
    """Map some rows of a table to their file and line within the split, by reading the split again.

    The wrong lines are known, so values are not checked again and references are not resolved.
    """
    split, key, wanted, wrong = work
    reading = SplitReader(job, split, Faults(collect=job.collect))
    found: dict[int, tuple[str | None, int]] = {}
    before = 0
    for parts in reading.chunks():
        for part in parts.get(key, ()):
            lines = [line for line in part.lines if line not in wrong] if wrong else part.lines
            for row in wanted:
                if before <= row < before + len(lines):
                    found[row] = (part.source, int(lines[row - before]))
            before += len(lines)
    return found


def originals(job: Job, work: tuple[Split, Collection[int]]) -> dict[int, Any]:
    """Line → original record, for some lines of a split."""
    split, wanted = work
    if split.table_split is not None:
        read = read_table_file(split.file, job.catalog, Faults(collect=True), split.table_split)
        return part_records((part for _, part in read), wanted)
    found: dict[int, Any] = {}
    first = 1
    for text in texts_of(split):
        found |= line_records(text, wanted, first)
        first += count_lines(text)
    return found


def stage_chunks(
    job: Job, number: int, faults: Faults, chunks: Iterable[dict[str, list[RecordSet]]], lines: Callable[[], int]
) -> StagedSplit:
    """Stage chunks of records. `lines` returns the number of lines read."""
    staging = _SplitStager(job, number)
    done = staging.done
    try:
        for parts in chunks:
            for key, some in parts.items():
                staging.take(key, some, faults)
        staging.finish(faults)
    except RecordError as error:
        done.shape = RecordFault.of(number, error)
    except _RETRIED:
        raise
    except OmniGraphError as error:
        done.shape = PackedError.of(error)
    job.check_open()
    done.lines = lines()
    done.faults = [RecordFault.of(number, error) for error in faults.found]
    done.notes = faults.notes
    return done


class _SplitStager:
    def __init__(self, job: Job, number: int) -> None:
        self.job = job
        self.number = number
        self.done = StagedSplit(number)
        self._aliases = _read_aliases(job)
        self._node_aliases = _read_node_aliases(job)
        self._held: dict[str, list[RecordSet]] = {}
        self._rows_max: dict[str, int] = {}
        self._bytes_limit = job.within_memory(tuning.current.staged_bytes, 8)

    def take(self, key: str, parts: list[RecordSet], faults: Faults) -> None:
        """Add records of one table. They are held in memory until they fill a fragment."""
        self.done.tables.setdefault(key, StagedTable())
        for part in parts:
            rest: RecordSet | None = part
            while rest is not None:
                rest = self._hold(key, rest)
                held = self._held[key]
                rows, size = sum(len(one.lines) for one in held), sum(one.size for one in held)
                if rows >= self._rows_limit(key, part.type) or size >= self._bytes_limit:
                    self._stage(key, self._held.pop(key), faults)

    def _hold(self, key: str, part: RecordSet) -> RecordSet | None:
        """Hold a part, or as much of it as fits in memory, and return the rest."""
        held = self._held.setdefault(key, [])
        room = self._rows_limit(key, part.type) - sum(len(one.lines) for one in held)
        if isinstance(part, Records) and len(part.lines) > room and self._fetches(part.type):
            part, rest = part.split_at(room)
            held.append(part)
            return rest
        held.append(part)
        return None

    def _fetches(self, type_: AnyType) -> bool:
        return self.job.fetch is not None and any(p.type.scalar == "Blob" for p in type_.properties.values())

    def _rows_limit(self, key: str, type_: AnyType) -> int:
        limits = tuning.current
        return self._rows_max.setdefault(key, limits.fetched_rows if self._fetches(type_) else limits.staged_rows)

    def finish(self, faults: Faults) -> None:
        """Stage the held records."""
        for key, parts in self._held.items():
            self._stage(key, parts, faults)

    def _stage(self, key: str, parts: list[RecordSet], faults: Faults) -> None:
        """Convert records to rows, check them, shuffle their keys and write them."""
        table = self.done.tables[key]
        if key in self.done.values:
            return
        try:
            rows = rows_of(parts, faults, new_ids, self.job.fetch, self.job.mode, keep=self.job.keep)
        except RecordError as error:
            # The first error of this table. The driver reports the first error in table order.
            self.done.values[key] = RecordFault.of(self.number, error)
            return
        first = table.rows
        count = rows.table.num_rows
        table.rows += count
        table.fresh = table.fresh and rows.fresh
        limits = tuning.current
        if count and self._rows_max[key] < limits.staged_rows:
            # The next values may be larger.
            fitting = limits.fetched_bytes * count // rows.table.nbytes
            self._rows_max[key] = max(1, min(limits.staged_rows, 2 * self._rows_max[key], fitting))
        for old, id_ in rows.aliases.items():
            row = rows.table["id"].index(id_).as_py()
            table.aliases.append((old, id_, position_of(self.number, first + row)))
        rows.table = with_current_ids(rows, self._aliases)
        resolve_aliases(rows, self._node_aliases)
        positions = np.arange(count) + position_of(self.number, first)
        if self.job.mode == "merge" and not rows.fresh:
            self._shuffle_records(table, rows, positions)
            return
        table.adds_again = table.adds_again or rows.adds_again
        self.done.violations += row_violations(self.job, rows.type, rows.table, positions)
        add_shuffles(
            self.done.shuffles, shuffle_rows(self.job, rows.type, rows.rule_input(), positions, fresh=rows.fresh)
        )
        self._write(key, table, rows, first)

    def _shuffle_records(self, table: StagedTable, rows: LoadedRows, positions: Positions) -> None:
        """Shuffle whole records. The records of one row are applied together by `complete`."""
        records = rows.rule_input().append_column(POSITION, pa.array(positions, pa.int64()))
        for name, mask in rows.given.items():
            records = records.append_column(MASK + name, mask)
        columns = match_columns(rows.type)
        table.absent |= committed_columns(rows.type, rows.given)
        table.adds_again = table.adds_again or rows.adds_again
        if columns is not None:
            loose = needs_matching(records, columns)
            add_shuffles(
                self.done.shuffles,
                [_shuffled(self.job, Shuffle(LOOSE, rows.type.table_key, columns), records.filter(loose))],
            )
            records = records.filter(pc.invert(loose))
            table.adds_again = table.adds_again or bool(records["id"].null_count)
            records = with_ids(records, columns, records.slice(0, 0), new_ids)
        add_shuffles(self.done.shuffles, shuffle_records(self.job, rows.type.table_key, records))

    def _write(self, key: str, table: StagedTable, rows: LoadedRows, first: int) -> None:
        written = rows.table
        if isinstance(rows.type, NodeType) and rows.type.embeds:
            try:
                written, embedded, waiting = fill_vectors(rows.type, written, self.job.column_embedder())
            except OmniGraphError as error:
                # Violations are reported before embedding errors, so the error is kept until validation has passed.
                self.done.unembedded = self.done.unembedded or PackedError.of(error)
                return
            table.embedded += embedded
            table.waiting += waiting
        fragments = write_new_fragments(self.job.table(key), written)
        list_files(self.job, key, fragments)
        for fragment in fragments:
            table.fragments.append(fragment)
            table.first_rows.append(first)
            first += fragment.rows


def shuffle_records(job: Job, key: str, records: pa.Table) -> Iterator[tuple[Shuffle, str | None]]:
    """Shuffle the records of a merge by id."""
    yield _shuffled(job, Shuffle(RECORDS, key, ("id",)), records)
    yield _shuffled(job, Shuffle(GIVEN_IDS, key, ("id",)), records.select(["id", POSITION]))


def shuffle_rows(
    job: Job,
    type_: AnyType,
    rows: pa.Table,
    positions: Positions,
    *,
    fresh: bool,
    wanted: Container[Shuffle] | None = None,
) -> Iterator[tuple[Shuffle, str | None]]:
    """Shuffle the columns that rules read; with `wanted`, only for some of the shuffles."""
    numbered = rows.append_column(POSITION, pa.array(positions, pa.int64()))
    if MADE not in rows.column_names:
        numbered = numbered.append_column(MADE, pa.repeat(False, rows.num_rows))
    for shuffle, columns in shuffles_of(type_, fresh=fresh):
        if wanted is not None and shuffle not in wanted:
            continue
        made = [MADE] if shuffle.by in type_.unique else []
        yield _shuffled(job, shuffle, numbered.select([*columns, POSITION, *made]))


def _shuffled(job: Job, shuffle: Shuffle, rows: pa.Table) -> tuple[Shuffle, str | None]:
    return shuffle, write_shuffle(job, shuffle, rows)


def add_shuffles(shuffles: dict[Shuffle, list[str]], made: Iterable[tuple[Shuffle, str | None]]) -> None:
    """Add the files of shuffles to `shuffles`. A shuffle without rows has no file."""
    for shuffle, name in made:
        if name is not None:
            shuffles.setdefault(shuffle, []).append(name)


def row_violations(job: Job, type_: AnyType, rows: pa.Table, positions: Positions) -> Iterator[LocatedViolation]:
    """Check the rules about single rows; without `collect`, only the first violation of each check is returned."""
    delta = Delta({type_.table_key: TableDelta(rows)}, _Nothing())
    for number, rule in enumerate(job.rules):
        if rule.table_key != type_.table_key:
            continue
        for step, checks in enumerate(rule.steps):
            for check_number, check in enumerate(checks):
                if check.by:
                    continue
                for violation in check.check(delta):
                    assert violation.position is not None
                    position = int(positions[violation.position])
                    located = replace(violation, position=position)
                    yield LocatedViolation((number, step, check_number), position, located)
                    if not job.collect:
                        break


_RETRIED = (StorageError, Damaged)
"""Errors that another attempt of the task may avoid."""


class _Nothing:
    """Committed rows for rules about single rows, which read none."""

    def rows_among(self, *_: object) -> pa.Table:
        """Fail: a rule about single rows does not read committed rows."""
        raise AssertionError("a rule of single rows asked for committed ones")

    read = rows_among


def list_files(job: Job, key: str, fragments: Sequence[NewFragment]) -> None:
    """List the data files that a task wrote, for the removal of its job. If the job has ended, remove them here."""
    files = [file for fragment in fragments for file in fragment.files]
    if not files:
        return
    folder = job.pins[key][0]
    job.files.write(job.new_name("pieces"), json.dumps({"table": folder, "files": files}).encode())
    try:
        job.check_open()
    except Conflict:
        delete_files(job.store, folder, files)
        raise


def new_ids(count: int) -> pa.Array:
    """Generate new ids."""
    return new_ulids(system_clock(), count)


def write_node_aliases(job: Job, snapshot: Snapshot) -> Job:
    """Write the aliases that the tasks of a job resolve, and return the job that names them."""
    known = node_aliases_of(snapshot, job.mode)
    if not known:
        return job
    name = job.new_name("node-aliases")
    both = {key: [array.to_pylist() for array in arrays] for key, arrays in known.items()}
    job.files.write(name, json.dumps(both).encode())
    return replace(job, node_aliases=name)


def _read_node_aliases(job: Job) -> NodeAliasArrays:
    data = job.files.read(job.node_aliases) if job.node_aliases is not None else None
    found: dict[str, list[list[str]]] = {} if data is None else json.loads(data)
    return {key: (pa.array(old, pa.utf8()), pa.array(kept, pa.utf8())) for key, (old, kept) in found.items()}


def _read_aliases(job: Job) -> dict[str, dict[str, str]]:
    if job.aliases is None:
        return {}
    data = job.files.read(job.aliases)
    assert data is not None, "the driver writes the aliases before it names them"
    found: dict[str, dict[str, str]] = json.loads(data)
    return found
