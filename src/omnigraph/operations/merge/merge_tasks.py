"""Tasks of a merge: each decides one id range of one table from plain data and can run in any process.

A `MergeJob` names three versions of a table and the columns and rules of the merge. It is sent to a process together
with an id range. `decide_range` opens the versions there, reads the rows that differ in the range and decides them. A
caller with several machines passes the planner a `run` function that distributes the ranges. Without it, ranges are
decided one after the other in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.storage.files.location import Location
from omnigraph.storage.lance.store_pool import pooled_store
from omnigraph.storage.lance.table_store import TableStore
from omnigraph.storage.lance.tables import Table
from omnigraph.storage.lance.version_diff import IdRange
from omnigraph.versioning.compare.diff import Names, TableDiff, split_ids
from omnigraph.versioning.compare.three_way import MergeRule, TableMerge, VirtualBase, merge_changes, take_changes


@dataclass(frozen=True)
class Side:
    """A version of the table, and the names of its columns in the merged schema."""

    version: int
    transaction: str = ""
    names: Names = None


@dataclass(frozen=True)
class MergeJob:
    """The merge of one table that both sides changed."""

    location: Location
    folder: str
    key: str
    base: Side | None
    ours: Side
    theirs: Side
    columns: pa.Schema
    rule: MergeRule

    def diffs(self, store: TableStore) -> tuple[TableDiff, TableDiff]:
        """The changes of each side since the base."""
        base = self._open(store, self.base) if self.base is not None else None
        names = self.base.names if self.base is not None else None
        ours, theirs = (
            TableDiff(self.key, base, self._open(store, side), names, side.names) for side in (self.ours, self.theirs)
        )
        return ours, theirs

    def _open(self, store: TableStore, side: Side) -> Table:
        return store.open(self.folder, side.version, side.transaction)


RunRanges = Callable[[Callable[[MergeJob, IdRange], TableMerge], MergeJob, Sequence[IdRange]], Iterator[TableMerge]]
"""Executes a task for each range and returns the results in the order of the ranges."""


def decide_range(job: MergeJob, within: IdRange) -> TableMerge:
    """Decide one range. The process needs only the location of the graph."""
    return _decide(job, *job.diffs(pooled_store(job.location)), within)


def decide_table(
    job: MergeJob, store: TableStore, virtual: VirtualBase | None = None, run: RunRanges | None = None
) -> Iterator[TableMerge]:
    """Decide a table by ranges, with `run` if there is more than one range."""
    ours, theirs = job.diffs(store)
    ranges = split_ids([*ours.sides, *theirs.sides])
    if run is not None and virtual is None and len(ranges) > 1:
        yield from run(decide_range, job, ranges)
        return
    for within in ranges:
        yield _decide(job, ours, theirs, within, virtual)


def _decide(
    job: MergeJob, ours: TableDiff, theirs: TableDiff, within: IdRange, virtual: VirtualBase | None = None
) -> TableMerge:
    changes = theirs.changes(within)
    if virtual is None and not ours.touches(changes.ids, within):
        # The sides changed different rows, which is the common case: the target's rows are not read.
        return take_changes(changes, job.columns)
    return merge_changes(ours.changes(within), changes, job.columns, job.rule, virtual)
