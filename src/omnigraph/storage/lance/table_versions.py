"""Numbered versions of a table: promotion, compaction and column changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from omnigraph.errors import HeadMoved
from omnigraph.storage.backoff import pause
from omnigraph.storage.lance.lance_errors import (
    is_conflict,
    is_missing,
    is_offset_overflow,
    lance_errors,
    storage_failure,
)
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.scan import smaller
from omnigraph.storage.lance.tables import DETACHED, FRAGMENT_ROWS, Table, stored_field
from omnigraph.storage.lance.version_files import finish_versions

FRAGMENTS_MAX = 64
"""A table with this many fragments more than its row count requires is compacted before the next change is staged on
it.
"""

_FRAGMENT_ROWS_MIN = 32_768
_FRAGMENTS_ENOUGH = 16

_PROMOTE_TRIES = 60


def restored(table: Table, version: int, properties: Mapping[str, str]) -> lance.LanceDataset:
    """Commit the state of a version, detached or not, as the next numbered version.

    Another writer may take the same number, or a cleanup may remove a version that Lance is reading. The commit is
    retried here, because Lance would wait up to half a minute between two attempts.
    """
    latest = table.store.newest(table)
    for attempt in range(_PROMOTE_TRIES):
        transaction = lance.Transaction(
            latest.version, lance.LanceOperation.Restore(version), transaction_properties=dict(properties)
        )
        try:
            return lance.LanceDataset.commit(latest.dataset, transaction, max_retries=0)
        except lance_errors() as error:
            latest = table  # A cleanup may have removed the newer version.
            if is_missing(error) and version >= DETACHED and not table.store.has_detached(table.folder, version):
                raise HeadMoved(
                    f"a cleanup removed an unpublished change of table '{table.folder}'; nothing was written",
                    hint="try again",
                ) from error
            if not (is_conflict(error) or is_missing(error)) or attempt == _PROMOTE_TRIES - 1:
                raise
            pause(attempt)
    raise AssertionError("the loop returns or raises")


def numbered(table: Table) -> Table:
    """Return the table itself, or a part of a version as an unpinned numbered version, on which changes can be staged.

    Raises `HeadMoved` if a cleanup removes the part in the meantime.
    """
    return table if table.part_of is None else renewed(table.part_of, table.version)


def renewed(table: Table, version: int) -> Table:
    """Commit the state of a version as the next numbered version, and check and flush its files."""
    try:
        again = restored(table, version, {})
    except lance_errors() as error:
        raise storage_failure(error, table.store.location, f"table '{table.folder}' cannot be changed") from error
    return _made_from(table, again.version, again)


def compacted(table: Table, *, always: bool = False) -> Table:
    """Return the same rows in fewer fragments, as an unpinned version; the table itself if there is nothing to gain.

    Losing a race against another writer of the table is not an error: the table stays as it is.
    """
    table = numbered(table)
    spare = table.fragment_count - FRAGMENTS_MAX
    if not always and (spare <= 0 or spare <= table.row_count // FRAGMENT_ROWS):
        return table
    try:
        target = _target_rows(table)
        if not lance.optimize.Compaction.plan(table.private(), {"target_rows_per_fragment": target}).num_tasks():
            return table
        first = restored(table, table.version, {}).version
        again = table.store.load(table.folder, first, writable=True)
        _compact(table, again, target)
        again = table.store.load(table.folder, again.version)
    except lance_errors() as error:
        if is_conflict(error):
            return table
        raise storage_failure(error, table.store.location, f"table '{table.folder}' cannot be compacted") from error
    return _made_from(table, first, again)


def _compact(table: Table, dataset: lance.LanceDataset, target: int) -> None:
    """Compact the fragments of a version, in smaller batches if one overflows."""
    rows = table.limit_batch(table.batch_rows(table.schema.names), table.schema.names)
    while True:
        try:
            dataset.optimize.compact_files(target_rows_per_fragment=target, batch_size=rows)
            return
        except lance_errors() as error:
            if not is_offset_overflow(error) or rows == 1:
                raise
            rows = smaller(rows)
            table.batch_overflowed(rows)


def _made_from(table: Table, first: int, dataset: lance.LanceDataset) -> Table:
    """Finish and return a version that was built in several steps; `first` is the version of the first step."""
    made = Table(table.store, table.folder, dataset)
    made.is_new = True
    made.built_on = (*table.built_on, *range(first, dataset.version + 1))
    finish_versions([(table, made)])
    return made


def _target_rows(table: Table) -> int:
    """Return the number of rows above which compaction leaves a fragment as it is.

    It is a share of the table, so the number of fragments stays small and a row is rewritten only a few times in all,
    however often the table is compacted. What readers have computed for a fragment (text index, vectors) stays valid as
    long as the fragment exists.
    """
    return min(FRAGMENT_ROWS, max(_FRAGMENT_ROWS_MIN, table.row_count // _FRAGMENTS_ENOUGH))


def evolved(table: Table, *, rename: Mapping[str, str], drop: Sequence[str], add: Sequence[pa.Field]) -> Table:
    """Return the same rows with other columns, as an unpinned version; no data is rewritten.

    Raises `HeadMoved` if another writer changed the table in the meantime.
    """
    table = numbered(table)
    try:
        again = restored(table, table.version, {})
        first = again.version
        if drop:
            again.drop_columns(list(drop))
        for old, new in rename.items():
            again.alter_columns({"path": old, "name": new})  # type: ignore[dict-item]
        if add:
            again.add_columns(pa.schema([stored_field(field.with_nullable(True)) for field in add]))
    except lance_errors() as error:
        if is_conflict(error):
            raise HeadMoved(f"table '{table.folder}' was changed by another writer", hint="try again") from error
        raise storage_failure(error, table.store.location, f"table '{table.folder}' cannot be changed") from error
    return _made_from(table, first, again)
