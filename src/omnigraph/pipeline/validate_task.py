"""The tasks that look across rows, one bucket at a time.

`scan` deals the keys of committed rows as `stage` deals those of written ones. `judge` collects a bucket of everything
and runs the rules' own functions on it, as if it were a small write: which rows meet, they said themselves. Along the
way it finds which ids cannot be admitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.write.delta import Delta, Part, TableDelta, Violation
from omnigraph.engine.write.upsert import Places
from omnigraph.operations.load import not_admitted, repeated_ids
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.shuffle import Deal, Sieve, read_parts, write_deal, write_parts
from omnigraph.pipeline.stage_task import POSITION, WRITTEN
from omnigraph.pipeline.violations import COMMITTED, Finding, position_of
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.storage.lance.fragments import read_stored

STORED = "stored"
REPLACED = "replaced"
MET = "met"
"""Committed rows that may have the id of a written one."""

ROW_ID, ADDRESS, OFFSET = "_rowid", "_rowaddr", "offset"
_GOES = "goes"
_OFFSET_MASK = 0xFFFFFFFF
PartPlace = tuple[int, int, int]


@dataclass(frozen=True)
class Sheet:
    """Instructions for all judges of a round, kept in a file because they name many others."""

    deals: list[tuple[Deal, list[str]]]
    named: list[str]
    excluded: dict[str, list[int]] = field(default_factory=dict)
    parts: list[PartPlace] = field(default_factory=list)
    repeats: list[str] = field(default_factory=list)
    admit: list[str] = field(default_factory=list)
    """Tables whose written ids must be new; in an append that meets committed rows, rules do not see those rows."""


@dataclass(frozen=True)
class ScanWork:
    """Stored pieces, each with its place in the table, and how to deal their rows.

    `lost` names the files that say which of them are replaced, unless by a row at a position in `excluded`; with
    `all_lost` all of them are. `among` names files of written ids: hardly any rows but those with one of these are
    dealt.
    """

    table_key: str
    pieces: list[tuple[int, int]]
    by: list[tuple[str, ...]]
    what: str = STORED
    lost: list[str] = field(default_factory=list)
    excluded: list[int] = field(default_factory=list)
    all_lost: bool = False
    among: list[str] = field(default_factory=list)


@dataclass
class Judged:
    """What a bucket shows."""

    findings: list[Finding] = field(default_factory=list)
    refused: list[Finding] = field(default_factory=list)
    repeats: dict[str, dict[int, str]] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    """Table key → the file that says which stored rows have the id of a written one."""


def write_sheet(job: Job, sheet: Sheet) -> str:
    """Put instructions where the judges find them."""
    name = job.new_name("sheet")
    job.files.write(name, msgspec.msgpack.encode(sheet))
    return name


# -- committed rows ----------------------------------------------------------------------------------


def scan(job: Job, work: ScanWork) -> dict[Deal, list[str]]:
    """Deal the rows of some stored pieces: those that stay, and, where it is known, those that are replaced."""
    among = Sieve(_one(pa.concat_tables(_whole_files(job, work.among))["id"])) if work.among else None
    dealt: dict[Deal, list[str]] = {}
    found = [rows for piece in work.pieces if (rows := _stored_rows(job, work, *piece, among)) is not None]
    if not found:
        return dealt
    rows = pa.concat_tables(found)
    goes = rows[_GOES]
    for by in work.by:
        identity = [ROW_ID, ADDRESS] if work.what == MET else []
        taken = rows.select([*dict.fromkeys(["id", *by]), POSITION, *identity])
        deal = Deal(work.what, work.table_key, by)
        _note(dealt, deal, write_deal(job, deal, taken.filter(pc.invert(goes))))
        gone = Deal(REPLACED, work.table_key, by)
        _note(dealt, gone, write_deal(job, gone, taken.filter(goes)))
    return dealt


def _stored_rows(job: Job, work: ScanWork, fragment_id: int, number: int, among: Sieve | None) -> pa.Table | None:
    """The columns of a piece that are dealt, the position of each row, and whether it goes."""
    columns = dict.fromkeys(["id", *(column for by in work.by for column in by), ADDRESS])
    extra = [ROW_ID] if work.what == MET else []
    batches = list(read_stored(job.table(work.table_key), fragment_id, [*columns, *extra]))
    if not batches:
        return None
    rows = pa.Table.from_batches(batches if among is None else [among.sift(batch) for batch in batches])
    offsets = (rows[ADDRESS].to_numpy() & np.uint64(_OFFSET_MASK)).astype(np.int64)
    goes = np.full(len(offsets), work.all_lost)
    lost = read_lost(job, work.lost, fragment_id, work.excluded)
    if len(lost):
        goes = np.isin(offsets, lost)
    positions = pa.array(offsets + (COMMITTED + position_of(number, 0)), pa.int64())
    return rows.append_column(POSITION, positions).append_column(_GOES, pa.array(goes))


def write_lost(job: Job, addresses: pa.ChunkedArray, positions: pa.ChunkedArray) -> str | None:
    """Write which stored rows are replaced, and by which written ones, by piece."""
    places = addresses.to_numpy()
    lost = pa.table({OFFSET: pa.array((places & np.uint64(_OFFSET_MASK)).astype(np.int64)), POSITION: positions})
    return write_parts(job, "lost", lost, (places >> np.uint64(32)).astype(np.int64))


def read_lost(job: Job, names: Sequence[str], piece: int, excluded: Sequence[int]) -> Places:
    """The places of the rows of a stored piece that are replaced, unless by a row that was set aside."""
    found = [np.array([], np.int64)]
    for part in read_parts(job, names, piece):
        kept = ~np.isin(part[POSITION].to_numpy(), np.array(excluded, np.int64))
        found.append(part[OFFSET].to_numpy()[kept])
    return np.concatenate(found)


def _whole_files(job: Job, names: Sequence[str]) -> Iterator[pa.Table]:
    """Everything some files hold."""
    for name in names:
        reader = pa.ipc.open_file(job.files.open(name))
        yield reader.read_all().replace_schema_metadata(None)


def _note(dealt: dict[Deal, list[str]], deal: Deal, name: str | None) -> None:
    if name is not None:
        dealt.setdefault(deal, []).append(name)


# -- judging -----------------------------------------------------------------------------------------


def judge(job: Job, work: tuple[int, str]) -> Judged:
    """Look at one bucket as a sheet says."""
    number, sheet = work
    return _Bucket(job, number, read_sheet(job, sheet)).judge()


@dataclass(frozen=True)
class _BucketDelta(Delta):
    """A bucket of a write: what stays and what is replaced was found out before."""

    stays: Mapping[str, pa.Table] = field(default_factory=dict)
    gone: Mapping[str, pa.Table] = field(default_factory=dict)

    def surviving(
        self, table_key: str, columns: Sequence[str], column: str | None = None, values: pa.Array | None = None
    ) -> pa.Table:
        """See `Delta`."""
        rows = self.stays[table_key]
        if column is not None:
            rows = rows.filter(pc.is_in(rows[column], value_set=values))
        return rows.select([*columns])

    def replaced(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """See `Delta`."""
        return self.gone[table_key].select([*columns])


class _Bucket:
    def __init__(self, job: Job, number: int, sheet: Sheet) -> None:
        self.job = job
        self.number = number
        self.sheet = sheet
        self._deals = dict(sheet.deals)
        self._excluded = {key: pa.array(positions, pa.int64()) for key, positions in sheet.excluded.items()}
        self._read: dict[Deal, pa.Table] = {}
        self.done = Judged()

    def judge(self) -> Judged:
        """Everything the sheet asks for."""
        for key in self.sheet.repeats:
            rows = self.rows(WRITTEN, key, ("id",))
            repeats = repeated_ids(rows["id"])
            if repeats:
                positions = rows[POSITION].to_pylist()
                self.done.repeats[key] = {positions[place]: id_ for place, id_ in repeats.items()}
        for order, key in enumerate(self.sheet.admit):
            self._admit(order, key)
        for place in self.sheet.parts:
            rule, step, part = place
            self._part(place, self.job.rules[rule].steps[step][part])
        return self.done

    def rows(self, what: str, key: str, by: tuple[str, ...]) -> pa.Table:
        """A bucket of a deal, in order, without what was set aside."""
        deal = Deal(what, key, by)
        if deal not in self._read:
            batches = read_parts(self.job, self._deals.get(deal, ()), self.number)
            rows = in_order(pa.Table.from_batches(batches)) if batches else self._empty(key, by)
            if what == WRITTEN and key in self._excluded:
                rows = rows.filter(pc.invert(pc.is_in(rows[POSITION], value_set=self._excluded[key])))
            if "id" not in rows.column_names:
                rows = rows.append_column("id", pa.nulls(rows.num_rows, pa.utf8()))
            self._read[deal] = rows
        return self._read[deal]

    def _empty(self, key: str, by: tuple[str, ...]) -> pa.Table:
        columns = table_schema(self._type(key))
        fields = [columns.field(name) for name in dict.fromkeys(["id", *by])]
        numbers = [pa.field(POSITION, pa.int64()), pa.field(ROW_ID, pa.uint64()), pa.field(ADDRESS, pa.uint64())]
        return pa.schema([*fields, *numbers]).empty_table()

    def _type(self, key: str) -> NodeType | EdgeType:
        kind, _, name = key.partition(":")
        return self.job.catalog.nodes[name] if kind == "node" else self.job.catalog.edges[name]

    def _admit(self, order: int, key: str) -> None:
        """Ids that may not be written."""
        rows = self.rows(WRITTEN, key, ("id",))
        ids = _one(rows["id"])
        there = pa.array([], pa.utf8())
        if self.job.mode == "append":
            met = self.rows(MET, key, ("id",))
            place = _one(pc.index_in(met["id"], value_set=ids))
            hits = met.filter(pc.is_valid(place))
            there = _one(hits["id"])
            name = write_lost(self.job, hits[ADDRESS], rows[POSITION].take(pc.drop_null(place)))
            if name is not None:
                self.done.lost[key] = name
        found = not_admitted(self._type(key), ids, there)
        self._report((order, 0, 0), found, rows, self.done.refused)

    def _part(self, place: PartPlace, part: Part) -> None:
        tables: dict[str, TableDelta] = {}
        stays: dict[str, pa.Table] = {}
        gone: dict[str, pa.Table] = {}
        for key, by in part.by.items():
            replaces = self.job.mode == "overwrite"
            if key in self.sheet.named:
                tables[key] = TableDelta(self.rows(WRITTEN, key, by), replaces=replaces)
            if key in part.stored:
                stays[key] = self.rows(STORED, key, by)
            if key in part.lost:
                gone[key] = self.rows(REPLACED, key, by)
        delta = _BucketDelta(tables, _NoRows(), stays, gone)
        table_key = self.job.rules[place[0]].table_key
        rows = tables[table_key].rows if table_key in tables else None
        self._report(place, part.check(delta), rows, self.done.findings, stays.get(table_key), gone.get(table_key))

    def _report(
        self,
        place: PartPlace,
        found: Iterable[Violation],
        rows: pa.Table | None,
        into: list[Finding],
        stays: pa.Table | None = None,
        gone: pa.Table | None = None,
    ) -> None:
        """Give each finding its position in the input; only the first is needed unless all are set aside.

        Of a cardinality the first is not the one with the smallest position, so all of a bucket are looked at.
        """
        made: list[Finding] = []
        for violation in found:
            order, position, also = self._position(violation, rows, stays, gone)
            made.append(Finding.of(place, violation, order, position, also))
            if not self.job.collect and violation.rule != "cardinality":
                break
        into += made if self.job.collect else sorted(made, key=lambda finding: finding.order)[:1]

    def _position(
        self, violation: Violation, rows: pa.Table | None, stays: pa.Table | None, gone: pa.Table | None
    ) -> tuple[int, int | None, tuple[int, ...]]:
        """Where a finding stands in the order, the written row it is about, and all rows that fall with it."""
        if violation.position is not None:
            assert rows is not None
            position = rows[POSITION][violation.position].as_py()
            return position, position, ()
        if violation.rule == "cardinality":
            assert rows is not None
            surplus = tuple(rows[POSITION][place].as_py() for place in violation.surplus)
            first = pc.index(rows["src"], pa.scalar(violation.row_id, pa.utf8())).as_py()
            if first >= 0:
                return rows[POSITION][first].as_py(), surplus[0] if surplus else None, surplus
            assert gone is not None
            return _first(gone, "src", violation.row_id), None, ()
        assert stays is not None
        return _first(stays, "id", violation.row_id), None, ()


def in_order(rows: pa.Table) -> pa.Table:
    """Rows by their positions."""
    positions = rows[POSITION].to_numpy()
    if (positions[1:] >= positions[:-1]).all():
        return rows
    return rows.take(pa.array(np.argsort(positions, kind="stable")))


def _first(rows: pa.Table, column: str, value: str) -> int:
    place = pc.index(rows[column], pa.scalar(value, pa.utf8())).as_py()
    position: int = rows[POSITION][place].as_py()
    return position


class _NoRows:
    """The committed rows of a bucket are in its deals."""

    def rows_among(self, *_: object) -> pa.Table:
        """See `Committed`."""
        raise AssertionError("a bucket was asked for rows outside it")

    read = rows_among


_SHEETS: dict[str, Sheet] = {}


def read_sheet(job: Job, name: str) -> Sheet:
    """The instructions; a process that judges many buckets reads them once."""
    if name not in _SHEETS:
        data = job.files.read(name)
        assert data is not None, "the driver writes a sheet before it names it"
        _SHEETS.clear()
        _SHEETS[name] = msgspec.msgpack.decode(data, type=Sheet)
    return _SHEETS[name]


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
