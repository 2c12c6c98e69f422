"""Tasks that validate the rules that compare rows, one bucket at a time.

`scan` shuffles the keys of committed rows as `stage` shuffles those of written rows. `validate` reads one bucket of all
shuffles and runs the functions of the rules on it as on a small write. Each rule declares the columns by which its rows
meet. `validate` also finds ids that cannot be admitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.decodable import decodable
from omnigraph.engine import tuning
from omnigraph.engine.write.delta import Delta, RuleCheck, TableDelta, Violation
from omnigraph.engine.write.upsert import Positions
from omnigraph.operations.load.load_rules import RejectReason, refused_ids, repeated_records
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.shuffle import IdFilter, Shuffle, read_bucket, write_buckets, write_shuffle
from omnigraph.pipeline.stage_task import POSITION, WRITTEN, add_shuffles, period_columns
from omnigraph.pipeline.violations import COMMITTED, LocatedViolation, position_of
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.storage.lance.fragments import read_fragment
from omnigraph.table_key import TableKey

STORED = "stored"
REPLACED = "replaced"
MATCHES = "matches"
"""Shuffle kind: committed rows that may have the id of a written row."""

ROW_ID, ADDRESS, OFFSET = "_rowid", "_rowaddr", "offset"
VALUE = "value:"
"""Prefix of the columns of committed rows that a merge keeps."""
_IS_REPLACED = "is_replaced"
_OFFSET_MASK = 0xFFFFFFFF
CheckId = tuple[int, int, int]


@dataclass(frozen=True)
class RoundPlan:
    """Instructions for all tasks of one round. They are kept in a file because they name many other files."""

    shuffles: list[tuple[Shuffle, list[str]]]
    named: list[str]
    excluded: dict[str, list[int]] = field(default_factory=dict)
    checks: list[CheckId] = field(default_factory=list)
    repeats: list[str] = field(default_factory=list)
    admit: list[str] = field(default_factory=list)
    """Tables whose written ids must be new."""
    written: list[Shuffle] = field(default_factory=list)
    """The shuffles of the rows of a merge that checks read."""


@dataclass(frozen=True)
class ScanWork:
    """Stored fragments (id, index in the table) and the columns to shuffle their rows by.

    `replaced` names the files that list replaced rows; a row whose replacement is in `excluded` stays. With
    `all_replaced` all rows are replaced. `among` names files of written ids: rows with other ids are mostly filtered
    out. The columns `values` of the other rows are shuffled with them.
    """

    table_key: str
    fragments: list[tuple[int, int]]
    by: list[tuple[str, ...]]
    kind: str = STORED
    replaced: list[str] = field(default_factory=list)
    excluded: list[int] = field(default_factory=list)
    all_replaced: bool = False
    among: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)


@dataclass
class ValidationResult:
    """Result of validating one bucket."""

    violations: list[LocatedViolation] = field(default_factory=list)
    refused: list[LocatedViolation] = field(default_factory=list)
    repeats: dict[str, dict[int, RejectReason]] = field(default_factory=dict)
    """Table key → position → reason, for records with the id of an earlier record."""
    replaced: dict[str, str] = field(default_factory=dict)
    """Table key → the file that lists the stored rows with the id of a written row."""


def _plain_text(value: Any) -> str:
    """Return a table key as plain text: msgspec does not encode subclasses of `str`."""
    assert isinstance(value, TableKey)
    return str(value)


def write_plan(job: Job, plan: RoundPlan) -> str:
    """Write the plan of a round to a file and return its name."""
    name = job.new_name("plan")
    job.files.write(name, msgspec.msgpack.encode(plan, enc_hook=_plain_text))
    return name


# -- committed rows ----------------------------------------------------------------------------------


def scan(job: Job, work: ScanWork) -> dict[Shuffle, list[str]]:
    """Shuffle the rows of stored fragments: those that stay and, where known, those that are replaced."""
    among = IdFilter(one_array(pa.concat_tables(_whole_files(job, work.among))["id"])) if work.among else None
    made: dict[Shuffle, list[str]] = {}
    held: list[pa.Table] = []
    for fragment_id, number in work.fragments:
        rows = _stored_rows(job, work, fragment_id, among)
        if rows.num_rows:
            held.append(_with_positions(job, work, rows, fragment_id, number))
        if sum(some.nbytes for some in held) >= tuning.current.staged_bytes:
            _shuffle_stored(job, work, held, made)
            held = []
    if held:
        _shuffle_stored(job, work, held, made)
    return made


def _stored_rows(job: Job, work: ScanWork, fragment_id: int, among: IdFilter | None) -> pa.Table:
    """The columns of a fragment that are shuffled, with the address of each row."""
    table = job.table(work.table_key)
    extra = [ROW_ID] if work.kind == MATCHES else []
    compared = [column for by in work.by for column in (*by, *_period(job, work.table_key, by))]
    columns = [*dict.fromkeys(["id", *compared]), ADDRESS, *extra]
    batches = read_fragment(table, fragment_id, columns)
    if among is None:
        return _as_table(batches, columns)
    known: list[np.ndarray[Any, np.dtype[np.bool_]]] = []
    hits: list[pa.RecordBatch] = []
    for batch in batches:
        known.append(among.is_known(batch["id"]))
        hits.append(batch.filter(pa.array(known[-1])))
    rows = _as_table(hits, columns)
    if not work.values or not rows.num_rows:
        return rows
    is_hit = np.concatenate(known)
    if rows.num_rows * tuning.current.scanned_rows_per_hit < len(is_hit):
        taken = table.take_rows(rows[ROW_ID].to_pylist(), [*work.values, ROW_ID])
        order = pc.index_in(rows[ROW_ID], value_set=one_array(taken[ROW_ID]))
        values = taken.take(order)
    else:
        values = _filtered(
            read_fragment(table, fragment_id, work.values, batch_size=table.batch_rows(work.values)), is_hit
        )
    for name in work.values:
        rows = rows.append_column(f"{VALUE}{name}", values[name])
    return rows


def _as_table(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> pa.Table:
    found = list(batches)
    return pa.Table.from_batches(found) if found else pa.table({name: pa.array([], pa.null()) for name in columns})


def _filtered(batches: Iterable[pa.RecordBatch], is_hit: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Table:
    """The rows of a fragment that are hits."""
    found: list[pa.RecordBatch] = []
    start = 0
    for batch in batches:
        found.append(batch.filter(pa.array(is_hit[start : start + batch.num_rows])))
        start += batch.num_rows
    assert start == len(is_hit), "both scans of a fragment read the same rows"
    return pa.Table.from_batches(found)


def _with_positions(job: Job, work: ScanWork, rows: pa.Table, fragment_id: int, number: int) -> pa.Table:
    """Add the position of each row and whether it is replaced."""
    offsets = (rows[ADDRESS].to_numpy() & np.uint64(_OFFSET_MASK)).astype(np.int64)
    is_replaced = np.full(len(offsets), work.all_replaced)
    replaced = read_replaced(job, work.replaced, fragment_id, work.excluded)
    if len(replaced):
        is_replaced = np.isin(offsets, replaced)
    positions = pa.array(offsets + (COMMITTED + position_of(number, 0)), pa.int64())
    return rows.append_column(POSITION, positions).append_column(_IS_REPLACED, pa.array(is_replaced))


def _shuffle_stored(job: Job, work: ScanWork, found: list[pa.Table], made: dict[Shuffle, list[str]]) -> None:
    rows = pa.concat_tables(found)
    is_replaced = rows[_IS_REPLACED]
    any_replaced = pc.any(is_replaced).as_py()
    for by in work.by:
        identity = [ROW_ID, ADDRESS] if work.kind == MATCHES else []
        values = [f"{VALUE}{name}" for name in work.values]
        compared = dict.fromkeys(["id", *by, *_period(job, work.table_key, by)])
        taken = rows.select([*compared, POSITION, *identity, *values])
        shuffle = Shuffle(work.kind, work.table_key, by)
        remaining = taken.filter(pc.invert(is_replaced)) if any_replaced else taken
        add_shuffles(made, [(shuffle, write_shuffle(job, shuffle, remaining))])
        if any_replaced:
            replaced = Shuffle(REPLACED, work.table_key, by)
            add_shuffles(made, [(replaced, write_shuffle(job, replaced, taken.filter(is_replaced)))])


def _type_of(job: Job, key: str) -> NodeType | EdgeType:
    kind, name = TableKey.parse(key).parts
    return job.catalog.nodes[name] if kind == "node" else job.catalog.edges[name]


def _period(job: Job, key: str, by: Sequence[str]) -> list[str]:
    """The columns of the period that accompany rows that meet by other columns than the id."""
    return [] if tuple(by) == ("id",) else period_columns(_type_of(job, key))


def write_replaced(job: Job, addresses: pa.ChunkedArray, positions: pa.ChunkedArray) -> str | None:
    """Write a file with the offsets of replaced rows and the positions of their replacements, by fragment."""
    rows = addresses.to_numpy()
    replaced = pa.table({OFFSET: pa.array((rows & np.uint64(_OFFSET_MASK)).astype(np.int64)), POSITION: positions})
    return write_buckets(job, "replaced", replaced, (rows >> np.uint64(32)).astype(np.int64))


def read_replaced(job: Job, names: Sequence[str], fragment: int, excluded: Sequence[int]) -> Positions:
    """The offsets of the replaced rows of a stored fragment, without rows whose replacement was set aside."""
    found = [np.array([], np.int64)]
    for part in read_bucket(job, names, fragment):
        kept = ~np.isin(part[POSITION].to_numpy(), np.array(excluded, np.int64))
        found.append(part[OFFSET].to_numpy()[kept])
    return np.concatenate(found)


def _whole_files(job: Job, names: Sequence[str]) -> Iterator[pa.Table]:
    """Read all rows of some files."""
    for name in names:
        reader = pa.ipc.open_file(job.files.open(name))
        yield reader.read_all().replace_schema_metadata(None)


# -- validation --------------------------------------------------------------------------------------


def validate(job: Job, work: tuple[int, str]) -> ValidationResult:
    """Validate one bucket according to a plan."""
    number, plan = work
    return _BucketValidation(job, number, read_plan(job, plan)).validate()


@dataclass(frozen=True)
class _BucketDelta(Delta):
    """One bucket of a write. The rows that stay and those that are replaced are given."""

    surviving_rows: Mapping[str, pa.Table] = field(default_factory=dict)
    replaced_rows: Mapping[str, pa.Table] = field(default_factory=dict)

    def surviving(
        self, table_key: str, columns: Sequence[str], column: str | None = None, values: pa.Array | None = None
    ) -> pa.Table:
        """The given rows that stay, filtered by the values of a column."""
        rows = self.surviving_rows[table_key]
        if column is not None:
            rows = rows.filter(pc.is_in(rows[column], value_set=values))
        return rows.select([*columns])

    def replaced(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """The given rows that are replaced."""
        return self.replaced_rows[table_key].select([*columns])


class _BucketValidation:
    def __init__(self, job: Job, number: int, plan: RoundPlan) -> None:
        self.job = job
        self.number = number
        self.plan = plan
        self._shuffles = dict(plan.shuffles)
        self._excluded = {key: pa.array(positions, pa.int64()) for key, positions in plan.excluded.items()}
        self._read: dict[Shuffle, pa.Table] = {}
        self.done = ValidationResult()

    def validate(self) -> ValidationResult:
        """Do everything the plan lists."""
        for key in self.plan.repeats:
            rows = self.rows(WRITTEN, key, ("id",))
            repeats = repeated_records(rows["id"])
            if repeats:
                positions = rows[POSITION].to_pylist()
                self.done.repeats[key] = {positions[row]: reason for row, reason in repeats.items()}
        for order, key in enumerate(self.plan.admit):
            self._admit(order, key)
        for check_id in self.plan.checks:
            rule, step, number = check_id
            self._check(check_id, self.job.rules[rule].steps[step][number])
        return self.done

    def rows(self, kind: str, key: str, by: tuple[str, ...]) -> pa.Table:
        """One bucket of a shuffle, ordered by position, without rows that were set aside."""
        shuffle = Shuffle(kind, key, by)
        if shuffle not in self._read:
            batches = read_bucket(self.job, self._shuffles.get(shuffle, ()), self.number)
            rows = in_order(pa.Table.from_batches(batches)) if batches else self._empty(key, by)
            if kind == WRITTEN and key in self._excluded:
                rows = rows.filter(pc.invert(pc.is_in(rows[POSITION], value_set=self._excluded[key])))
            if "id" not in rows.column_names:
                rows = rows.append_column("id", pa.nulls(rows.num_rows, pa.utf8()))
            self._read[shuffle] = rows
        return self._read[shuffle]

    def _empty(self, key: str, by: tuple[str, ...]) -> pa.Table:
        columns = table_schema(self._type(key))
        fields = [columns.field(name) for name in dict.fromkeys(["id", *by, *_period(self.job, key, by)])]
        numbers = [pa.field(POSITION, pa.int64()), pa.field(ROW_ID, pa.uint64()), pa.field(ADDRESS, pa.uint64())]
        return pa.schema([*fields, *numbers]).empty_table()

    def _type(self, key: str) -> NodeType | EdgeType:
        return _type_of(self.job, key)

    def _admit(self, order: int, key: str) -> None:
        """Find written ids that cannot be admitted."""
        rows = self.rows(WRITTEN, key, ("id",))
        ids = one_array(rows["id"])
        existing = pa.array([], pa.utf8())
        if self.job.mode == "append":
            matches = self.rows(MATCHES, key, ("id",))
            found = one_array(pc.index_in(matches["id"], value_set=ids))
            hits = matches.filter(pc.is_valid(found))
            existing = one_array(hits["id"])
            name = write_replaced(self.job, hits[ADDRESS], rows[POSITION].take(pc.drop_null(found)))
            if name is not None:
                self.done.replaced[key] = name
        found = refused_ids(self._type(key), ids, existing)
        self._report((order, 0, 0), found, rows, self.done.refused)

    def _check(self, check_id: CheckId, check: RuleCheck) -> None:
        tables: dict[str, TableDelta] = {}
        surviving_rows: dict[str, pa.Table] = {}
        replaced_rows: dict[str, pa.Table] = {}
        for key, by in check.by.items():
            replaces = self.job.mode == "overwrite"
            if key in self.plan.named:
                tables[key] = TableDelta(self.rows(WRITTEN, key, by), replaces=replaces)
            if key in check.stored:
                surviving_rows[key] = self.rows(STORED, key, by)
            if key in check.lost:
                replaced_rows[key] = self.rows(REPLACED, key, by)
        delta = _BucketDelta(tables, _NoRows(), surviving_rows, replaced_rows)
        table_key = self.job.rules[check_id[0]].table_key
        rows = tables[table_key].rows if table_key in tables else None
        self._report(
            check_id,
            check.check(delta),
            rows,
            self.done.violations,
            surviving_rows.get(table_key),
            replaced_rows.get(table_key),
        )

    def _report(
        self,
        check_id: CheckId,
        found: Iterable[Violation],
        rows: pa.Table | None,
        into: list[LocatedViolation],
        surviving_rows: pa.Table | None = None,
        replaced_rows: pa.Table | None = None,
    ) -> None:
        """Give each violation its position in the input. Without `collect`, only the first one is needed.

        The first violation of a cardinality rule does not have the smallest position, so all of a bucket are compared.
        """
        made: list[LocatedViolation] = []
        for violation in found:
            order, located = self._located(violation, rows, surviving_rows, replaced_rows)
            made.append(LocatedViolation(check_id, order, located))
            if not self.job.collect and violation.rule != "cardinality":
                break
        into += made if self.job.collect else sorted(made, key=lambda one: one.order)[:1]

    def _located(
        self,
        violation: Violation,
        rows: pa.Table | None,
        surviving_rows: pa.Table | None,
        replaced_rows: pa.Table | None,
    ) -> tuple[int, Violation]:
        """The order of a violation, and the violation with positions in the input."""
        if violation.position is not None:
            assert rows is not None
            position = rows[POSITION][violation.position].as_py()
            return position, replace(violation, position=position)
        if violation.rule == "cardinality":
            assert rows is not None
            surplus = tuple(rows[POSITION][row].as_py() for row in violation.surplus)
            first = pc.index(rows["src"], pa.scalar(violation.row_id, pa.utf8())).as_py()
            if first >= 0:
                return rows[POSITION][first].as_py(), replace(violation, surplus=surplus)
            assert replaced_rows is not None
            return _first(replaced_rows, "src", violation.row_id), replace(violation, surplus=())
        assert surviving_rows is not None
        return _first(surviving_rows, "id", violation.row_id), violation


def in_order(rows: pa.Table) -> pa.Table:
    """Order rows by position."""
    positions = rows[POSITION].to_numpy()
    if (positions[1:] >= positions[:-1]).all():
        return rows
    return rows.take(pa.array(np.argsort(positions, kind="stable")))


def _first(rows: pa.Table, column: str, value: str) -> int:
    row = pc.index(rows[column], pa.scalar(value, pa.utf8())).as_py()
    position: int = rows[POSITION][row].as_py()
    return position


class _NoRows:
    """Committed rows of a bucket. They are read from its shuffles only."""

    def rows_among(self, *_: object) -> pa.Table:
        """Fail: the rows are given by the shuffles."""
        raise AssertionError("a bucket was asked for rows outside it")

    read = rows_among


_PLANS: dict[str, RoundPlan] = {}


def read_plan(job: Job, name: str) -> RoundPlan:
    """Read a plan. A process caches the latest one."""
    if name not in _PLANS:
        data = job.files.read(name)
        assert data is not None, "the driver writes a plan before it names it"
        _PLANS.clear()
        _PLANS[name] = msgspec.msgpack.decode(data, type=decodable(RoundPlan))
    return _PLANS[name]
