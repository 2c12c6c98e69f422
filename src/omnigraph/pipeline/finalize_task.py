"""The tasks that make staged pieces final.

A staged piece is final as it is unless some of its rows were set aside; then it is written again, rows that replace
committed ones first, because that is where a piece can say whose identity its rows take over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.pipeline.complete_task import read_placed
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.stage_task import POSITION, note_pieces
from omnigraph.pipeline.validate_task import ROW_ID, read_lost
from omnigraph.pipeline.violations import place_of
from omnigraph.storage.lance.fragments import NewFragment, read_new_fragment, without_rows, write_new_fragments


@dataclass(frozen=True)
class SettleWork:
    """The pieces of one table, of a split or of a bucket of a merge, and the positions that were set aside.

    `placed` names the file that has the positions of a bucket's rows; `firsts` has the place of the first row of
    each piece of a split.
    """

    table_key: str
    pieces: list[NewFragment]
    excluded: list[int]
    firsts: list[int] = field(default_factory=list)
    placed: str | None = None


@dataclass(frozen=True)
class LoseWork:
    """Stored pieces that lose rows; `lost` names the files that say which, unless to a row that was set aside."""

    table_key: str
    pieces: list[int]
    lost: list[str]
    excluded: list[int]


@dataclass(frozen=True)
class Thinned:
    """What stored pieces became: those that have rows left, and those that have none."""

    changed: list[str]
    removed: list[int]


def finish(job: Job, work: SettleWork | LoseWork) -> list[NewFragment] | Thinned:
    """Both kinds of work in one go: new pieces become final, stored ones lose rows."""
    return settle(job, work) if isinstance(work, SettleWork) else lose(job, work)


def settle(job: Job, work: SettleWork) -> list[NewFragment]:
    """The pieces to publish; a piece that is not among them is not needed any more."""
    done: list[NewFragment] = []
    if work.placed is None:
        places = np.array([place_of(position) for position in work.excluded], np.int64)
        for piece, first in zip(work.pieces, work.firsts, strict=True):
            dropped = np.isin(np.arange(first, first + piece.rows), places)
            done += _settle_piece(job, work.table_key, piece, [None] * piece.rows, dropped)
        return done
    placed = read_placed(job, work.placed)
    row_ids = placed[ROW_ID].to_pylist()
    excluded = np.isin(placed[POSITION].to_numpy(), np.array(work.excluded, np.int64))
    first = 0
    for piece in work.pieces:
        here = slice(first, first + piece.rows)
        done += _settle_piece(job, work.table_key, piece, row_ids[here], excluded[here])
        first += piece.rows
    return done


def _settle_piece(
    job: Job,
    key: str,
    piece: NewFragment,
    row_ids: Sequence[int | None],
    dropped: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> Sequence[NewFragment]:
    if not dropped.any():
        return [piece]
    table = job.table(key)
    kept = np.flatnonzero(~dropped)
    rows = read_new_fragment(table, piece).take(pa.array(kept))
    made = write_new_fragments(
        table, rows, [row_id for place in kept.tolist() if (row_id := row_ids[place]) is not None]
    )
    note_pieces(job, key, made)
    return made


def lose(job: Job, work: LoseWork) -> Thinned:
    """Take the rows that were replaced out of stored pieces."""
    done = Thinned([], [])
    for piece in work.pieces:
        offsets = read_lost(job, work.lost, piece, work.excluded)
        if not len(offsets):
            continue
        left = without_rows(job.table(work.table_key), piece, np.sort(offsets).tolist())
        if left is None:
            done.removed.append(piece)
        else:
            done.changed.append(left)
    return done
