"""The tasks that make staged pieces final.

A staged piece is final as it is unless some of its rows were set aside or take the place of committed ones. In a
piece all of whose rows replace others only the description changes; any other is written again, replacing rows
first, because that is where a piece can say whose identity its rows take over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.pipeline.deals import read_parts
from omnigraph.pipeline.findings import place_of
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.judge import OFFSET, ROW_ID
from omnigraph.pipeline.stage import POSITION, note_pieces
from omnigraph.storage.fragments import NewPiece, read_piece, with_row_ids, without_rows, write_pieces


@dataclass(frozen=True)
class SettleWork:
    """The pieces of one table and split; `hits` names the files that say which rows replace which."""

    table_key: str
    split: int
    pieces: list[NewPiece]
    hits: list[str] = field(default_factory=list)
    excluded: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class LoseWork:
    """Stored pieces that lose rows; `lost` names the files that say which."""

    table_key: str
    pieces: list[int]
    lost: list[str]


@dataclass(frozen=True)
class Thinned:
    """What stored pieces became: those that have rows left, and those that have none."""

    changed: list[str]
    removed: list[int]


def finish(job: Job, work: SettleWork | LoseWork) -> list[NewPiece] | Thinned:
    """Both kinds of work in one go: new pieces become final, stored ones lose rows."""
    return settle(job, work) if isinstance(work, SettleWork) else lose(job, work)


def settle(job: Job, work: SettleWork) -> list[NewPiece]:
    """The pieces to publish; a piece that is not among them is not needed any more."""
    batches = read_parts(job, work.hits, work.split)
    hits = pa.Table.from_batches(batches) if batches else None
    places = np.array([], np.int64)
    row_ids = np.array([], np.uint64)
    if hits is not None:
        places = hits[POSITION].to_numpy() & 0xFFFFFFFF
        row_ids = hits[ROW_ID].to_numpy()
        order = np.argsort(places)
        places, row_ids = places[order], row_ids[order]
    out = np.array(sorted(place_of(position) for position in work.excluded), np.int64)
    done: list[NewPiece] = []
    first = 0
    for piece in work.pieces:
        last = first + piece.rows
        here = slice(*np.searchsorted(places, [first, last]))
        dropped = out[slice(*np.searchsorted(out, [first, last]))] - first
        done += _settle_piece(job, work.table_key, piece, places[here] - first, row_ids[here], dropped)
        first = last
    return done


def _settle_piece(
    job: Job,
    key: str,
    piece: NewPiece,
    places: np.ndarray[tuple[int], np.dtype[np.int64]],
    row_ids: np.ndarray[tuple[int], np.dtype[np.uint64]],
    dropped: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> Sequence[NewPiece]:
    if not len(places) and not len(dropped):
        return [piece]
    if len(places) == piece.rows:
        return [with_row_ids(piece, row_ids.tolist())]
    table = job.table(key)
    fresh = np.ones(piece.rows, np.bool_)
    fresh[places] = fresh[dropped] = False
    rows = read_piece(table, piece).take(pa.array(np.concatenate([places, np.flatnonzero(fresh)])))
    made = write_pieces(table, rows, row_ids.tolist())
    note_pieces(job, key, made)
    return made


def lose(job: Job, work: LoseWork) -> Thinned:
    """Take the rows that were replaced out of stored pieces."""
    done = Thinned([], [])
    for piece in work.pieces:
        offsets = np.concatenate([part[OFFSET].to_numpy() for part in read_parts(job, work.lost, piece)])
        left = without_rows(job.table(work.table_key), piece, np.sort(offsets).tolist())
        if left is None:
            done.removed.append(piece)
        else:
            done.changed.append(left)
    return done
