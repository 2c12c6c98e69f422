"""Rows dealt into buckets, kept in files until another task collects a bucket.

A deal is a set of rows of one table dealt by some of its columns; rows that agree there are in the same bucket,
whoever dealt them. A task writes one file per deal, with a part for each bucket that has rows, so that reading one
bucket reads little else. Within a bucket rows stay in the order they were dealt.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.write.constraints import tuples_of
from omnigraph.pipeline.job import Job

_BUCKETS = b"omnigraph:buckets"
_C1, _C2, _C3 = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


_HASHED_BYTES = 512
_KEPT = np.array([(1 << 8 * length) - 1 for length in range(9)], np.uint64)
"""Which bits of eight bytes belong to a text of a length."""


@dataclass(frozen=True, slots=True, order=True)
class Deal:
    """Which rows, by which columns; `what` tells the written ones from the committed ones."""

    what: str
    table_key: str
    by: tuple[str, ...]


def hash_texts(texts: pa.Array) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A number for each text; equal ones have equal numbers, in every process and release.

    It looks at the length, the last eight bytes and the first 512, eight at a time. Texts that differ nowhere else
    share a bucket, which costs time, never truth.
    """
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    starts, lengths = offsets[:-1], np.diff(offsets)
    end = int(offsets[-1]) if len(texts) else 0
    data = np.zeros(end + 8, np.uint8)
    if end:
        data[:end] = np.frombuffer(texts.buffers()[2], np.uint8)[:end]
    # Eight bytes from every place on.
    words: np.ndarray[Any, np.dtype[np.uint64]] = np.ndarray((end + 1,), np.uint64, data.data, 0, (1,))
    room = np.maximum(lengths - 8, 0)
    found = lengths.astype(np.uint64) * _C1
    first, last = words[starts], words[starts + room]
    if len(lengths) and lengths.min() < 8:
        kept = _KEPT[np.minimum(lengths, 8)]
        first, last = first & kept, last & kept
    with np.errstate(over="ignore"):
        found = _mixed(_mixed(found, first), last)
        longest = int(lengths.max()) if len(lengths) else 0
        for place in range(8, min(longest - 8, _HASHED_BYTES), 8):
            long = np.flatnonzero(lengths > place + 8)
            found[long] = _mixed(found[long], words[starts[long] + place])
        found *= _C3
        found ^= found >> np.uint64(32)
    return found


def _mixed(
    found: np.ndarray[Any, np.dtype[np.uint64]], word: np.ndarray[Any, np.dtype[np.uint64]]
) -> np.ndarray[Any, np.dtype[np.uint64]]:
    found = (found ^ word) * _C2
    found ^= found >> np.uint64(29)
    return found


class Sieve:
    """Lets through the rows whose id may be among some, at a fraction of what a look at all of them would cost.

    Of those whose id is not among them it lets through one in sixteen at most.
    """

    def __init__(self, ids: pa.Array) -> None:
        bits = max(1, (16 * len(ids)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._known = np.zeros(1 << bits, np.bool_)
        self._known[hash_texts(ids) >> self._shift] = True

    def sift(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Some of the rows, in order."""
        return rows.filter(pa.array(self._known[hash_texts(rows["id"]) >> self._shift]))


def buckets_of(rows: pa.Table, by: Sequence[str], buckets: int) -> tuple[pa.Table, np.ndarray[Any, Any]]:
    """The rows that take part, and the bucket of each; a row with a null among `by` meets nobody and takes no part."""
    if len(by) == 1 and pa.types.is_string(rows.schema.field(by[0]).type) and not rows[by[0]].null_count:
        keys = rows[by[0]]
    else:
        tuples = tuples_of(rows.append_column("id", rows[by[0]]) if "id" not in rows.column_names else rows, by)
        rows, keys = rows.take(tuples["position"]), tuples["key"]
    return rows, (hash_texts(_one(keys)) % np.uint64(buckets)).astype(np.int64)


def write_deal(job: Job, deal: Deal, rows: pa.Table) -> str | None:
    """Deal rows into a new file and return its name; None when there is nothing to deal."""
    rows, numbers = buckets_of(rows, deal.by, job.buckets)
    return write_parts(job, deal.what, rows, numbers)


def write_parts(job: Job, kind: str, rows: pa.Table, numbers: np.ndarray[Any, Any]) -> str | None:
    """Write rows by the number given for each."""
    if not rows.num_rows:
        return None
    order = np.argsort(numbers, kind="stable")
    dealt = numbers[order]
    rows = rows.take(pa.array(order)).combine_chunks()
    firsts = np.flatnonzero(np.concatenate(([True], dealt[1:] != dealt[:-1])))
    lasts = np.append(firsts[1:], len(dealt))
    schema = rows.schema.with_metadata({_BUCKETS: ",".join(map(str, dealt[firsts].tolist())).encode()})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, schema) as writer:
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            for batch in rows.slice(first, last - first).to_batches():
                writer.write_batch(batch)
    name = job.new_name(kind)
    job.files.write(name, sink.getvalue())
    return name


def read_parts(job: Job, names: Iterable[str], number: int) -> list[pa.RecordBatch]:
    """What was dealt to one bucket, file by file."""
    found: list[pa.RecordBatch] = []
    for name in names:
        reader = pa.ipc.open_file(job.files.open(name))
        dealt = (reader.schema.metadata or {})[_BUCKETS].decode().split(",")
        if str(number) in dealt:
            found.append(reader.get_batch(dealt.index(str(number))).replace_schema_metadata(None))
    return found


def numbers_in(job: Job, names: Iterable[str]) -> set[int]:
    """The buckets some files have rows for."""
    found: set[int] = set()
    for name in names:
        schema = pa.ipc.open_file(job.files.open(name)).schema
        found.update(map(int, (schema.metadata or {})[_BUCKETS].decode().split(",")))
    return found


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
