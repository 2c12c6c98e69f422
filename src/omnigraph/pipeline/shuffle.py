"""Shuffled rows: rows are partitioned into buckets and kept in files until a task reads a bucket.

A shuffle is a set of rows of one table, partitioned by some of its columns. Rows with equal values in these columns are
in the same bucket, whichever task wrote them. A task writes one file per shuffle, with one record batch for each bucket
that has rows, so that reading a bucket reads little else. Rows of a bucket keep the order in which they were written.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.engine.write.key_tuples import tuples_of
from omnigraph.hashing import hash_texts
from omnigraph.pipeline.job import Job

_BUCKETS = b"omnigraph:buckets"


@dataclass(frozen=True, slots=True, order=True)
class Shuffle:
    """The rows of one shuffle: the kind of rows, their table and the columns that determine the bucket."""

    kind: str
    table_key: str
    by: tuple[str, ...]


class IdFilter:
    """Hash filter on ids: passes every known id and at most one in 256 of the others.

    Two tables of marks are indexed by different bits of the hash. The second one is read for ids in the first one only.
    """

    def __init__(self, ids: pa.Array) -> None:
        bits = max(1, (16 * len(ids)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._mask = np.uint64((1 << bits) - 1)
        self._first, self._second = np.zeros((2, 1 << bits), np.bool_)
        hashes = hash_texts(ids)
        self._first[hashes >> self._shift] = True
        self._second[hashes & self._mask] = True

    def is_known(self, ids: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each id, whether it may be known."""
        hashes = hash_texts(ids)
        found: np.ndarray[Any, np.dtype[np.bool_]] = self._first[hashes >> self._shift]
        places = np.flatnonzero(found)
        found[places] = self._second[hashes[places] & self._mask]
        return found


def buckets_of(rows: pa.Table, by: Sequence[str], buckets: int) -> tuple[pa.Table, np.ndarray[Any, Any]]:
    """Return the rows that can match and the bucket of each. Rows with a null in `by` are dropped: null matches
    nothing.
    """
    if len(by) == 1 and pa.types.is_string(rows.schema.field(by[0]).type) and not rows[by[0]].null_count:
        keys = rows[by[0]]
    else:
        tuples = tuples_of(rows.append_column("id", rows[by[0]]) if "id" not in rows.column_names else rows, by)
        rows, keys = rows.take(tuples["position"]), tuples["key"]
    return rows, (hash_texts(one_array(keys)) % np.uint64(buckets)).astype(np.int64)


def write_shuffle(job: Job, shuffle: Shuffle, rows: pa.Table) -> str | None:
    """Shuffle rows into a new file and return its name; None if there are no rows."""
    rows, numbers = buckets_of(rows, shuffle.by, job.buckets)
    return write_buckets(job, shuffle.kind, rows, numbers)


def write_buckets(job: Job, kind: str, rows: pa.Table, numbers: np.ndarray[Any, Any]) -> str | None:
    """Write rows to a new file, partitioned by the bucket number of each row."""
    if not rows.num_rows:
        return None
    # A stable sort of 16-bit numbers takes linear time.
    order = np.argsort(numbers.astype(np.uint16) if numbers.max() < 1 << 16 else numbers, kind="stable")
    bucket_of_row = numbers[order]
    rows = rows.take(pa.array(order)).combine_chunks()
    firsts = np.flatnonzero(np.concatenate(([True], bucket_of_row[1:] != bucket_of_row[:-1])))
    lasts = np.append(firsts[1:], len(bucket_of_row))
    schema = rows.schema.with_metadata({_BUCKETS: ",".join(map(str, bucket_of_row[firsts].tolist())).encode()})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, schema) as writer:
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            for batch in rows.slice(first, last - first).to_batches():
                writer.write_batch(batch)
    name = job.new_name(kind)
    job.files.write(name, sink.getvalue())
    return name


def read_bucket(job: Job, names: Iterable[str], number: int) -> list[pa.RecordBatch]:
    """Read one bucket of some files."""
    found: list[pa.RecordBatch] = []
    for name in names:
        reader = pa.ipc.open_file(job.files.open(name))
        stored = (reader.schema.metadata or {})[_BUCKETS].decode().split(",")
        if str(number) in stored:
            found.append(reader.get_batch(stored.index(str(number))).replace_schema_metadata(None))
    return found


def bucket_numbers(job: Job, names: Iterable[str]) -> set[int]:
    """The numbers of the buckets that have rows in some files."""
    found: set[int] = set()
    for name in names:
        schema = pa.ipc.open_file(job.files.open(name)).schema
        found.update(map(int, (schema.metadata or {})[_BUCKETS].decode().split(",")))
    return found
