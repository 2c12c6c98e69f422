"""A change of one table: staged on the version that its writer read, then committed as a numbered version.

No reader sees a numbered version until a pin refers to it, so a crash at any point leaves unreferenced files and
nothing else. The version must contain the rows that the writer read and its own, but no rows of other writers, and
Lance rebases a commit silently onto the newest version. There are two ways to prevent this:

- If the version that the writer read is the newest one, the change is committed in one step. It counts only if it
  became the next version and Lance names its transaction there. Otherwise another writer was faster, and the version
  that Lance made is never pinned.
- Else, or then, the change is committed *detached*, which never rebases, and promoted to a numbered version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checked, checkpoint, current
from omnigraph.errors import HeadMoved
from omnigraph.fast_dataclass import dataclass
from omnigraph.observer import timed
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files.layout import detached_manifest
from omnigraph.storage.lance.fragments import PreparedFragments, prepared_transaction, replace_fragments
from omnigraph.storage.lance.lance_errors import is_conflict, is_missing, lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.table_versions import restored
from omnigraph.storage.lance.tables import FRAGMENT_ROWS, Table, transaction_of
from omnigraph.storage.lance.version_files import finish_versions

_BATCH_ROWS = 65_536
"""Rows that Lance writes between two checkpoints."""


@dataclass(frozen=True)
class TableWrite:
    """A change to one table; `overwrite` excludes everything else.

    `append` adds rows whose ids are new, `upsert` adds rows or replaces those with the same id, `delete` removes ids.
    An id may occur in only one of them. `prepared` excludes the others: its rows are already written.
    """

    append: pa.Table | None = None
    upsert: pa.Table | None = None
    delete: Sequence[str] = ()
    overwrite: pa.Table | None = None
    prepared: PreparedFragments | None = None


@dataclass(frozen=True)
class Promoted:
    """A numbered version that nothing refers to yet."""

    version: int
    row_count: int
    transaction_uuid: str


@dataclass(frozen=True)
class StagedWrite:
    """A change that is written but belongs to no version yet."""

    base: Table
    transaction: lance.Transaction

    def promote(self, *, finish: bool = True) -> tuple[Table, Promoted]:
        """Create a numbered version with the change; nothing refers to it yet.

        With `finish`, its files are checked and flushed to disk; else the caller calls `finish_versions`.
        """
        base = self.base
        try:
            dataset, lost = self._next_version()
            if dataset is None:
                dataset = self._detached_and_promoted()
        except lance_errors() as error:
            if is_conflict(error):
                raise HeadMoved(
                    f"too many writers of table '{base.folder}' at once; nothing was written", hint="try again"
                ) from error
            raise storage_failure(
                error, base.store.location, f"a change of table '{base.folder}' cannot be written"
            ) from error
        base.store.saw(base.folder, dataset.version)
        table = Table(base.store, base.folder, dataset)
        table.is_new = True
        # A version that lost its race has the same files: if a cleanup removes it, they may be removed with it.
        table.built_on = (*base.built_on, *lost)
        if finish:
            finish_versions([(base, table)])
        reach("table.promoted")
        return table, Promoted(table.version, table.row_count, self.transaction.uuid)

    def _next_version(self) -> tuple[lance.LanceDataset | None, tuple[int, ...]]:
        """Commit the change as the version after its base; None if another writer took it.

        The second value is the version that Lance made instead, if any.
        """
        base = self.base
        if not base.store.may_be_newest(base):
            return None, ()
        reach("table.numbered")
        try:
            dataset = lance.LanceDataset.commit(base.dataset, self.transaction, max_retries=0)
        except lance_errors() as error:
            if is_conflict(error) or is_missing(error):
                base.store.record_lost_number(base.folder)
                return None, ()
            raise
        base.store.saw(base.folder, dataset.version)
        if dataset.version == base.version + 1 and transaction_of(dataset) == self.transaction.uuid:
            return dataset, ()
        base.store.record_lost_number(base.folder)
        return None, (dataset.version,)

    def _detached_and_promoted(self) -> lance.LanceDataset:
        """Commit the change without a number, which never rebases, and then as the next numbered version."""
        base = self.base
        detached = lance.LanceDataset.commit(base.dataset, self.transaction, detached=True)
        reach("table.detached")
        with base.store.locks.table_lock(base.folder):
            dataset = restored(base, detached.version, self.transaction.transaction_properties or {})
        path = base.store.location.path
        if path is not None:
            # The numbered version is complete without this file, which would only lengthen listings.
            (path / base.folder / detached_manifest(detached.version)).unlink(missing_ok=True)
        return dataset


@timed("storage", "table_write")
def stage(table: Table, change: TableWrite, properties: Mapping[str, str]) -> StagedWrite | None:
    """Write the files of a change without making them visible; return None if it changes nothing.

    Upserts keep the row ids of the rows they replace. `properties` become transaction properties.
    """
    try:
        transaction = _transaction(table, change)
    except lance_errors() as error:
        checkpoint()  # An operation that stops makes Lance's reader of its rows fail.
        raise storage_failure(
            error, table.store.location, f"a change of table '{table.folder}' cannot be staged"
        ) from error
    if transaction is None:
        return None
    transaction.transaction_properties = {**(transaction.transaction_properties or {}), **properties}
    reach("table.staged")
    return StagedWrite(table, transaction)


def _transaction(table: Table, change: TableWrite) -> lance.Transaction | None:
    if change.prepared is not None:
        return prepared_transaction(table, change.prepared)
    if change.overwrite is not None:
        return _overwrite_transaction(table, change.overwrite)
    if (change.upsert is None or not change.upsert.num_rows) and not change.delete:
        if change.append is None or not change.append.num_rows:
            return None
        return _write_transaction(table, change.append, "append")
    return _mixed_transaction(table, change)


def _overwrite_transaction(table: Table, rows: pa.Table) -> lance.Transaction | None:
    if not rows.num_rows and not table.row_count:
        return None
    if not rows.num_rows:
        return lance.Transaction(table.version, lance.LanceOperation.Overwrite(table.dataset.lance_schema, []))
    return _write_transaction(table, rows, "overwrite")


def _write_transaction(table: Table, rows: pa.Table, mode: Literal["append", "overwrite"]) -> lance.Transaction:
    transaction = lance.fragment.write_fragments(
        _checked_rows(table.aligned(rows)),
        table.writer,
        mode=mode,
        max_rows_per_file=FRAGMENT_ROWS,
        return_transaction=True,
    )
    operation = transaction.operation
    assert isinstance(operation, lance.LanceOperation.Append | lance.LanceOperation.Overwrite)
    table.remember_written(operation.fragments, rows)
    return transaction


def _checked_rows(rows: pa.Table) -> pa.Table | pa.RecordBatchReader:
    """Return rows to write; if the operation of this thread can be stopped, as a reader with checkpoints."""
    operation = current.get()
    if operation is None or not operation.limited or rows.num_rows <= _BATCH_ROWS:
        return rows
    return pa.RecordBatchReader.from_batches(rows.schema, checked(rows.to_batches(max_chunksize=_BATCH_ROWS)))


def _mixed_transaction(table: Table, change: TableWrite) -> lance.Transaction | None:
    """Build one transaction for upserts, inserts and deletes that keeps row ids and creation times.

    Replaced and deleted rows are marked as deleted in their fragments. New rows are written to new fragments; the first
    rows of these take the row ids of the rows they replace.
    """
    upsert = table.aligned(change.upsert) if change.upsert is not None else table.schema.empty_table()
    keys = pa.concat_arrays([one_array(upsert["id"]), pa.array(list(change.delete), pa.utf8())])
    hits = table.rows_of(keys.to_pylist(), ["id", "_rowid", "_rowaddr"])
    updated: list[lance.fragment.FragmentMetadata] = []
    removed: list[int] = []
    addresses = np.sort(hits["_rowaddr"].to_numpy().astype(np.uint64))
    for fragment_id, offsets in _by_fragment(addresses):
        fragment = table.writer.get_fragment(fragment_id)
        assert fragment is not None
        rest = fragment.delete_rows(offsets)
        if rest is None:
            removed.append(fragment_id)
        else:
            updated.append(rest)
    position = pc.index_in(upsert["id"], value_set=one_array(hits["id"]))
    replaced = upsert.filter(pc.is_valid(position))
    fresh = upsert.filter(pc.is_null(position))
    rows = pa.concat_tables([replaced, fresh])
    if change.append is not None:
        rows = pa.concat_tables([rows, table.aligned(change.append)])
    fragments: list[lance.fragment.FragmentMetadata] = []
    if rows.num_rows:
        written_rows = _checked_rows(rows.combine_chunks())
        fragments = lance.fragment.write_fragments(
            written_rows, table.writer, mode="append", max_rows_per_file=FRAGMENT_ROWS
        )
        table.remember_written(fragments, rows)
        row_ids = hits["_rowid"].take(pc.drop_null(position)).to_pylist()
        for written in fragments:
            kept, row_ids = row_ids[: written.physical_rows], row_ids[written.physical_rows :]
            if kept:
                written.row_id_meta = lance.fragment.RowIdSequence(kept).to_inline_metadata()
    if not fragments and not updated and not removed:
        return None
    operation = replace_fragments(table.dataset, removed=removed, updated=updated, new=fragments)
    return lance.Transaction(table.version, operation)


def _by_fragment(addresses: np.ndarray[Any, Any]) -> Iterable[tuple[int, list[int]]]:
    fragments = addresses >> np.uint64(32)
    for fragment in np.unique(fragments):
        chosen = addresses[fragments == fragment]
        yield int(fragment), [int(address) & 0xFFFFFFFF for address in chosen]
