"""The tasks of a merge that apply records to rows, one bucket at a time.

`match` gives edges without an id the id of the edge they mean. `complete` collects all records of a bucket of ids and
the committed rows with these ids, makes one row of each id (`engine.write.upsert`), writes the rows as pieces of their
tables and deals their keys for `judge`. Only columns that are absent from a record are read from committed rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.write.delta import MADE, one_array
from omnigraph.engine.write.fill_vectors import fill_vectors
from omnigraph.engine.write.upsert import Folded, Places, fold, with_ids
from omnigraph.errors import OmniGraphError
from omnigraph.pipeline import stage_task
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.shuffle import Deal, read_parts, write_parts
from omnigraph.pipeline.stage_task import (
    LOOSE,
    MASK,
    POSITION,
    RECORDS,
    add_deals,
    deal_records,
    deal_rows,
    made_ids,
    note_pieces,
    row_findings,
)
from omnigraph.pipeline.validate_task import ADDRESS, MET, ROW_ID, STORED, Sheet, in_order, read_sheet, write_lost
from omnigraph.pipeline.violations import Finding, Raised
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.storage.lance.fragments import NewFragment, write_new_fragments


@dataclass
class CompletedTable:
    """The rows of one table in one bucket.

    `placed` names the file that has, for each row of `pieces` in order, its position, the identity of the row it
    replaces and the positions of all its records. `lost` names the file with the places of replaced rows. `lacking`
    has the positions of the records of each row without a required property, the property and the id of the row.
    """

    pieces: list[NewFragment] = field(default_factory=list)
    placed: str | None = None
    lost: str | None = None
    lacking: list[tuple[list[int], str, str]] = field(default_factory=list)
    embedded: int = 0
    waiting: int = 0


@dataclass
class Completed:
    """What became of a bucket of records."""

    tables: dict[str, CompletedTable] = field(default_factory=dict)
    deals: dict[Deal, list[str]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    unembedded: Raised | None = None


def match(job: Job, work: tuple[int, str]) -> dict[Deal, list[str]]:
    """Give the edges of a bucket that have no id one, and deal them by it."""
    number, name = work
    sheet = read_sheet(job, name)
    deals = dict(sheet.deals)
    made: dict[Deal, list[str]] = {}
    for deal, names in deals.items():
        if deal.what != LOOSE:
            continue
        batches = [pa.Table.from_batches([batch]) for batch in read_parts(job, names, number)]
        if not batches:
            continue
        columns = list(dict.fromkeys(["id", *deal.by]))
        stored = read_parts(job, deals.get(Deal(STORED, deal.table_key, deal.by), ()), number)
        committed = pa.Table.from_batches(stored).select(columns) if stored else batches[0].slice(0, 0).select(columns)
        # Files differ in the columns that some of their records lack.
        records = pa.concat_tables(batches, promote_options="default")
        for mask in (column for column in records.column_names if column.startswith(MASK)):
            place = records.schema.get_field_index(mask)
            records = records.set_column(place, mask, pc.fill_null(records[mask], True))
        records = with_ids(records.combine_chunks(), deal.by, committed, made_ids)
        add_deals(made, deal_records(job, deal.table_key, records))
    return made


def complete(job: Job, work: tuple[int, str]) -> Completed:
    """Make the rows of a bucket."""
    number, name = work
    sheet = read_sheet(job, name)
    done = Completed()
    for key in sheet.named:
        bucket = _Bucket(job, number, sheet, key)
        if bucket.records.num_rows:
            done.tables[key] = bucket.complete(done)
    return done


class _Bucket:
    """The records of one table in one bucket, and the committed rows with their ids."""

    def __init__(self, job: Job, number: int, sheet: Sheet, key: str) -> None:
        self.job = job
        self.key = key
        kind, _, name = key.partition(":")
        self.type: NodeType | EdgeType = job.catalog.nodes[name] if kind == "node" else job.catalog.edges[name]
        deals = dict(sheet.deals)
        self.made: pa.Array | None = None
        self.records, self.given, self.positions = self._read(deals.get(Deal(RECORDS, key, ("id",)), ()), number)
        met = read_parts(job, deals.get(Deal(MET, key, ("id",)), ()), number)
        empty = pa.table({"id": pa.array([], pa.utf8()), **{n: pa.array([], pa.uint64()) for n in (ROW_ID, ADDRESS)}})
        self.met = pa.Table.from_batches(met).select(["id", ROW_ID, ADDRESS]) if met else empty

    def _read(self, names: Sequence[str], number: int) -> tuple[pa.Table, dict[str, pa.Array], Places]:
        schema = pa.schema([column.with_nullable(True) for column in table_schema(self.type)])
        parts = [pa.Table.from_batches([batch]) for batch in read_parts(self.job, names, number)]
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
        """Apply the records; write the rows, and deal their keys."""
        folded = fold(self.type, self.records, self.given, self._committed)
        made = CompletedTable()
        for row, name in folded.lacking:
            id_ = folded.table["id"][row].as_py()
            made.lacking.append((self.positions[folded.records_of(row)].tolist(), name, id_))
        if made.lacking and not self.job.collect:
            return made
        folded = folded.complete()
        positions = self.positions[folded.last]
        done.findings += row_findings(self.job, self.type, folded.table, positions)
        rows = folded.table
        if self.made is not None:
            rows = rows.append_column(MADE, self.made.take(pa.array(folded.last)))
        add_deals(done.deals, deal_rows(self.job, self.type, rows, positions, fresh=False))
        self._write(done, made, folded, positions)
        return made

    def _committed(self, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        rows = self.met.filter(pc.is_in(self.met["id"], value_set=ids))
        return self.job.table(self.key).take_rows(rows[ROW_ID].to_pylist(), list(dict.fromkeys(["id", *columns])))

    def _write(self, done: Completed, made: CompletedTable, folded: Folded, positions: Places) -> None:
        rows = folded.table
        if isinstance(self.type, NodeType) and self.type.embeds:
            try:
                rows, made.embedded, made.waiting = fill_vectors(self.type, rows, self.job.column_embedder())
            except OmniGraphError as error:
                # Wrong records come first; if there are none, this is what failed.
                done.unembedded = done.unembedded or Raised.of(error)
                return
        place = pc.index_in(one_array(rows["id"]), value_set=one_array(self.met["id"]))
        replaces = np.asarray(pc.is_valid(place))
        # A piece can take over the identity of rows for its first rows only.
        order = np.concatenate([np.flatnonzero(replaces), np.flatnonzero(~replaces)])
        hits = self.met.take(one_array(place.take(pa.array(order[: replaces.sum()]))))
        row_ids = hits[ROW_ID].to_pylist()
        table = self.job.table(self.key)
        for start in range(0, len(order), stage_task.PIECE_ROWS):
            some = rows.take(pa.array(order[start : start + stage_task.PIECE_ROWS]))
            pieces = write_new_fragments(table, some, row_ids[start : start + stage_task.PIECE_ROWS])
            note_pieces(self.job, self.key, pieces)
            made.pieces += pieces
        made.placed = self._placed(folded, positions, order, row_ids)
        made.lost = write_lost(self.job, hits[ADDRESS], pa.chunked_array([positions[order[: len(row_ids)]]]))

    def _placed(self, folded: Folded, positions: Places, order: Places, row_ids: list[int]) -> str | None:
        fresh: list[int | None] = [None] * (len(order) - len(row_ids))
        records = pa.nulls(len(order), pa.list_(pa.int64()))
        if folded.records is not None:
            taken = folded.records.take(pa.array(order))
            records = pa.ListArray.from_arrays(taken.offsets, pa.array(self.positions[taken.flatten().to_numpy()]))
        columns = {
            POSITION: pa.array(positions[order]),
            ROW_ID: pa.array([*row_ids, *fresh], pa.uint64()),
            RECORDS: records,
        }
        return write_parts(self.job, "placed", pa.table(columns), np.zeros(len(order), np.int64))


def read_placed(job: Job, name: str) -> pa.Table:
    """The file that says which rows the pieces of a bucket have."""
    return pa.Table.from_batches(read_parts(job, [name], 0))
