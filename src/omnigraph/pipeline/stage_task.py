"""The task that reads: a split becomes pieces of tables, dealt keys, and a list of what is wrong.

What a record must be by itself (shape, types, ids, `@range`, `@check`, enums) is decided here. What records mean
together is left to `judge`, which gets the columns it needs by way of deals.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.ingest.records import AnyType, Faults, LoadedRows, Records, RecordSet
from omnigraph.engine.ingest.tabular import find_type, read_arrow, read_table_file
from omnigraph.engine.write.delta import MADE, Delta, TableDelta
from omnigraph.engine.write.fill_vectors import fill_vectors
from omnigraph.engine.write.upsert import Places, is_loose, match_columns, with_ids
from omnigraph.errors import Conflict, Damaged, OmniGraphError, RecordError, StorageError
from omnigraph.operations.load import renamed, rows_of
from omnigraph.operations.originals import line_records, part_records
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.shuffle import Deal, write_deal
from omnigraph.pipeline.splits import Reading, Split, count_lines, texts_of
from omnigraph.pipeline.violations import Fault, Finding, Raised, position_of
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.storage.lance.fragments import NewFragment, delete_files, write_new_fragments
from omnigraph.versioning.model.ids import new_ulids, system_clock

WRITTEN = "written"
RECORDS = "records"
"""Whole records of a merge, by id."""
LOOSE = "loose"
"""Whole edge records of a merge that have no id, by the tuple that identifies them."""
GIVEN_IDS = "ids"
"""The ids of the records of a merge."""
POSITION = "position"
MASK = "given:"
"""Prefix of the columns that say which records give a property."""
PIECE_ROWS = 262_144
"""From how many rows on a table gets a piece."""
_HELD_BYTES = 64 << 20
"""From how many bytes on a table gets a piece, however few rows they are."""
_FETCHED_ROWS = 64
_FETCHED_BYTES = 64 << 20
"""About how much is in memory of what references stand for; how large those are is known once they are followed."""


@dataclass
class StagedTable:
    """The rows of one table in one split."""

    rows: int = 0
    pieces: list[NewFragment] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    """The place of the first row of each piece among the split's rows of the table."""
    fresh: bool = True
    adds_again: bool = False
    embedded: int = 0
    waiting: int = 0
    aliases: list[tuple[str, str, int]] = field(default_factory=list)
    """Old spellings of ids, each with the id and the row it was found in."""


@dataclass
class Staged:
    """What became of a split.

    `shape` is the first record that is none; `values` the first wrong one of each table; when wrong records are set
    aside, all of them are in `faults` instead. `failed` is an error that is not about a record.
    """

    split: int
    lines: int = 0
    tables: dict[str, StagedTable] = field(default_factory=dict)
    deals: dict[Deal, list[str]] = field(default_factory=dict)
    shape: Fault | Raised | None = None
    values: dict[str, Fault] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unembedded: Raised | None = None


def deals_of(type_: AnyType, *, fresh: bool) -> Iterator[tuple[Deal, list[str]]]:
    """How the rows of a type are dealt, and which of their columns go along; made-up ids meet nobody."""
    key = type_.table_key
    if not fresh:
        yield Deal(WRITTEN, key, ("id",)), ["id"]
    named = ["src", "dst"] if isinstance(type_, EdgeType) else []
    for columns in type_.unique:
        yield Deal(WRITTEN, key, columns), list(dict.fromkeys(["id", *columns, *named]))
    if isinstance(type_, EdgeType):
        yield Deal(WRITTEN, key, ("src",)), ["src"]
        yield Deal(WRITTEN, key, ("dst",)), ["dst"]


def stage(job: Job, split: Split) -> Staged:
    """Read a split, check each record, write what is sound."""
    reading = Reading(job, split, Faults(collect=job.collect))
    return stage_chunks(job, split.number, reading.faults, reading.chunks(), lambda: reading.lines)


def stage_rows(job: Job, number: int, type_name: str, batches: Iterable[pa.RecordBatch]) -> Staged:
    """The same for rows of one type that come as Arrow batches; they are numbered as they come, from 1."""
    faults = Faults(collect=job.collect)
    rows = 0

    def chunks() -> Iterator[dict[str, list[RecordSet]]]:
        nonlocal rows
        type_ = find_type(type_name, job.catalog)
        # No rows at all are a load, too: the table is named.
        yield {type_.table_key: [Records(type_, None)]}
        for batch in batches:
            table = pa.Table.from_batches([batch])
            first, rows = rows + 1, rows + table.num_rows
            yield {key: [part] for key, part in read_arrow(type_name, table, job.catalog, faults, first=first).items()}

    return stage_chunks(job, number, faults, chunks(), lambda: rows)


def locate(job: Job, work: tuple[Split, str, Sequence[int], Collection[int]]) -> dict[int, tuple[str | None, int]]:
    """Place → the file and the line within the split of some rows of a table: the split is read once more.

    The lines that were wrong are known, so no value is looked at again, and no reference followed.
    """
    split, key, wanted, wrong = work
    reading = Reading(job, split, Faults(collect=job.collect))
    found: dict[int, tuple[str | None, int]] = {}
    before = 0
    for parts in reading.chunks():
        for part in parts.get(key, ()):
            lines = [line for line in part.lines if line not in wrong] if wrong else part.lines
            for place in wanted:
                if before <= place < before + len(lines):
                    found[place] = (part.source, int(lines[place - before]))
            before += len(lines)
    return found


def originals(job: Job, work: tuple[Split, Collection[int]]) -> dict[int, Any]:
    """Line → record, of some lines of a split as they were given."""
    split, wanted = work
    if split.stretch is not None:
        read = read_table_file(split.file, job.catalog, Faults(collect=True), split.stretch)
        return part_records((part for _, part in read), wanted)
    found: dict[int, Any] = {}
    first = 1
    for text in texts_of(split):
        found |= line_records(text, wanted, first)
        first += count_lines(text)
    return found


def stage_chunks(
    job: Job, number: int, faults: Faults, chunks: Iterable[dict[str, list[RecordSet]]], lines: Callable[[], int]
) -> Staged:
    """Stage records as they are read; `lines` says how many there were in the end."""
    staging = _Staging(job, number)
    done = staging.done
    try:
        for parts in chunks:
            for key, some in parts.items():
                staging.take(key, some, faults)
        staging.finish(faults)
    except RecordError as error:
        done.shape = Fault.of(number, error)
    except _RETRIED:
        raise
    except OmniGraphError as error:
        done.shape = Raised.of(error)
    job.check_open()
    done.lines = lines()
    done.faults = [Fault.of(number, error) for error in faults.found]
    done.notes = faults.notes
    return done


class _Staging:
    def __init__(self, job: Job, number: int) -> None:
        self.job = job
        self.number = number
        self.done = Staged(number)
        self._aliases = _read_aliases(job)
        self._held: dict[str, list[RecordSet]] = {}
        self._rows_max: dict[str, int] = {}

    def take(self, key: str, parts: list[RecordSet], faults: Faults) -> None:
        """Records of one table; few are held until there are more, because a piece of a table should not be small."""
        self.done.tables.setdefault(key, StagedTable())
        for part in parts:
            rest: RecordSet | None = part
            while rest is not None:
                rest = self._hold(key, rest)
                held = self._held[key]
                rows, size = sum(len(one.lines) for one in held), sum(one.size for one in held)
                if rows >= self._most(key, part.type) or size >= _HELD_BYTES:
                    self._stage(key, self._held.pop(key), faults)

    def _hold(self, key: str, part: RecordSet) -> RecordSet | None:
        """Hold a part, or as much of it as may be in memory at once; the rest."""
        held = self._held.setdefault(key, [])
        room = self._most(key, part.type) - sum(len(one.lines) for one in held)
        if isinstance(part, Records) and len(part.lines) > room and self._fetches(part.type):
            part, rest = part.cut(room)
            held.append(part)
            return rest
        held.append(part)
        return None

    def _fetches(self, type_: AnyType) -> bool:
        return self.job.fetch is not None and any(p.type.scalar == "Blob" for p in type_.properties.values())

    def _most(self, key: str, type_: AnyType) -> int:
        return self._rows_max.setdefault(key, _FETCHED_ROWS if self._fetches(type_) else PIECE_ROWS)

    def finish(self, faults: Faults) -> None:
        """Stage what is still held."""
        for key, parts in self._held.items():
            self._stage(key, parts, faults)

    def _stage(self, key: str, parts: list[RecordSet], faults: Faults) -> None:
        """Type records, check them, deal their keys, write them."""
        table = self.done.tables[key]
        if key in self.done.values:
            return
        try:
            rows = rows_of(parts, faults, made_ids, self.job.fetch, self.job.mode, keep=self.job.keep)
        except RecordError as error:
            # The first of its table; a table that is earlier in the order may still have one.
            self.done.values[key] = Fault.of(self.number, error)
            return
        first = table.rows
        count = rows.table.num_rows
        table.rows += count
        table.fresh = table.fresh and rows.fresh
        if count and self._rows_max[key] < PIECE_ROWS:
            # What comes next may be larger than what came so far.
            fitting = _FETCHED_BYTES * count // rows.table.nbytes
            self._rows_max[key] = max(1, min(PIECE_ROWS, 2 * self._rows_max[key], fitting))
        for old, id_ in rows.aliases.items():
            place = rows.table["id"].index(id_).as_py()
            table.aliases.append((old, id_, position_of(self.number, first + place)))
        self._rename(rows)
        positions = np.arange(count) + position_of(self.number, first)
        if self.job.mode == "merge" and not rows.fresh:
            self._deal_records(table, rows, positions)
            return
        table.adds_again = table.adds_again or rows.adds_again
        self.done.findings += row_findings(self.job, rows.type, rows.table, positions)
        add_deals(self.done.deals, deal_rows(self.job, rows.type, rows.judged(), positions, fresh=rows.fresh))
        self._write(key, table, rows, first)

    def _rename(self, rows: LoadedRows) -> None:
        """Put right the ends that are written in an old spelling of an id."""
        if isinstance(rows.type, EdgeType):
            for column, node in (("src", rows.type.from_type), ("dst", rows.type.to_type)):
                aliases = self._aliases.get(f"node:{node}")
                if aliases:
                    rows.table = renamed(rows.table, column, aliases)

    def _deal_records(self, table: StagedTable, rows: LoadedRows, positions: Places) -> None:
        """Deal whole records: those for one row are applied together once all are there."""
        records = rows.judged().append_column(POSITION, pa.array(positions, pa.int64()))
        for name, mask in rows.given.items():
            records = records.append_column(MASK + name, mask)
        columns = match_columns(rows.type)
        table.adds_again = table.adds_again or rows.adds_again
        if columns is not None:
            loose = is_loose(records, columns)
            add_deals(
                self.done.deals, [_dealt(self.job, Deal(LOOSE, rows.type.table_key, columns), records.filter(loose))]
            )
            records = records.filter(pc.invert(loose))
            table.adds_again = table.adds_again or bool(records["id"].null_count)
            records = with_ids(records, columns, records.slice(0, 0), made_ids)
        add_deals(self.done.deals, deal_records(self.job, rows.type.table_key, records))

    def _write(self, key: str, table: StagedTable, rows: LoadedRows, first: int) -> None:
        written = rows.table
        if isinstance(rows.type, NodeType) and rows.type.embeds:
            try:
                written, embedded, waiting = fill_vectors(rows.type, written, self.job.column_embedder())
            except OmniGraphError as error:
                # Wrong records come first; if there are none, this is what failed.
                self.done.unembedded = self.done.unembedded or Raised.of(error)
                return
            table.embedded += embedded
            table.waiting += waiting
        pieces = write_new_fragments(self.job.table(key), written)
        note_pieces(self.job, key, pieces)
        for piece in pieces:
            table.pieces.append(piece)
            table.firsts.append(first)
            first += piece.rows


def deal_records(job: Job, key: str, records: pa.Table) -> Iterator[tuple[Deal, str | None]]:
    """Deal the records of a merge, which have ids now."""
    yield _dealt(job, Deal(RECORDS, key, ("id",)), records)
    yield _dealt(job, Deal(GIVEN_IDS, key, ("id",)), records.select(["id", POSITION]))


def deal_rows(
    job: Job, type_: AnyType, rows: pa.Table, positions: Places, *, fresh: bool
) -> Iterator[tuple[Deal, str | None]]:
    """Deal the columns of rows that rules look at."""
    numbered = rows.append_column(POSITION, pa.array(positions, pa.int64()))
    if MADE not in rows.column_names:
        numbered = numbered.append_column(MADE, pa.repeat(False, rows.num_rows))
    for deal, columns in deals_of(type_, fresh=fresh):
        made = [MADE] if deal.by in type_.unique else []
        yield _dealt(job, deal, numbered.select([*columns, POSITION, *made]))


def _dealt(job: Job, deal: Deal, rows: pa.Table) -> tuple[Deal, str | None]:
    return deal, write_deal(job, deal, rows)


def add_deals(deals: dict[Deal, list[str]], made: Iterable[tuple[Deal, str | None]]) -> None:
    """Note the files of deals; a deal without rows has none."""
    for deal, name in made:
        if name is not None:
            deals.setdefault(deal, []).append(name)


def row_findings(job: Job, type_: AnyType, rows: pa.Table, positions: Places) -> Iterator[Finding]:
    """What the rules that look at one row only find; the first of each part, unless wrong rows are set aside."""
    delta = Delta({type_.table_key: TableDelta(rows)}, _Nothing())
    for number, rule in enumerate(job.rules):
        if rule.table_key != type_.table_key:
            continue
        for step, parts in enumerate(rule.steps):
            for part_number, part in enumerate(parts):
                if part.by:
                    continue
                for violation in part.check(delta):
                    assert violation.position is not None
                    position = int(positions[violation.position])
                    yield Finding.of((number, step, part_number), violation, position, position)
                    if not job.collect:
                        break


_RETRIED = (StorageError, Damaged)
"""What another attempt of the task may get over."""


class _Nothing:
    """Rules that look at one row never ask what is committed."""

    def rows_among(self, *_: object) -> pa.Table:
        """See `Committed`."""
        raise AssertionError("a rule of single rows asked for committed ones")

    read = rows_among


def note_pieces(job: Job, key: str, pieces: Sequence[NewFragment]) -> None:
    """Record the files of a task for the removal of its job. If the job has ended, remove them here."""
    files = [file for piece in pieces for file in piece.files]
    if not files:
        return
    folder = job.pins[key][0]
    job.files.write(job.new_name("pieces"), json.dumps({"table": folder, "files": files}).encode())
    try:
        job.check_open()
    except Conflict:
        delete_files(job.store, folder, files)
        raise


def made_ids(count: int) -> pa.Array:
    """New ids."""
    return new_ulids(system_clock(), count)


def _read_aliases(job: Job) -> dict[str, dict[str, str]]:
    if job.aliases is None:
        return {}
    data = job.files.read(job.aliases)
    assert data is not None, "the driver writes the aliases before it names them"
    found: dict[str, dict[str, str]] = json.loads(data)
    return found
