"""The check that refuses to write purged rows again, whatever writes them: a mutation, a load, a merge or a revert."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.errors import Conflict, Hint
from omnigraph.storage.lance.fragments import read_new_ids
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.versioning.model.purges import PurgeRecord, purged_among
from omnigraph.versioning.model.snapshot import Snapshot

_SHOWN_MAX = 3


def check_purged(records: Sequence[PurgeRecord], snapshot: Snapshot, key: str, change: TableWrite) -> None:
    """Refuse a change that writes a row whose id was purged. Deletions are not checked."""
    pin = snapshot.tables[key].pin
    identity = (pin.table_id, pin.incarnation)
    known = [record for record in records if any(target.table == identity for target in record.targets)]
    if not known:
        return
    for ids in _written_ids(snapshot, key, change):
        purged = purged_among(known, identity, set(ids))
        if purged:
            raise purged_error(key, purged)


def purged_error(key: str, ids: Sequence[str]) -> Conflict:
    """Return the error of a write that would bring purged rows back."""
    type_name = key.partition(":")[2]
    shown = ", ".join(f"'{id_}'" for id_ in ids[:_SHOWN_MAX])
    more = f" and {len(ids) - _SHOWN_MAX} more" if len(ids) > _SHOWN_MAX else ""
    return Conflict(
        f"{shown}{more} of type '{type_name}' was purged and cannot be written again; nothing was written",
        code="purged_id",
        hint=Hint(
            f"leave the row out, or permit it: graph.purge_allow({type_name!r}, [{ids[0]!r}])",
            cli=f"leave the row out, or permit it: omnigraph purge allow {type_name} {ids[0]}",
        ),
    )


def _written_ids(snapshot: Snapshot, key: str, change: TableWrite) -> Iterator[Iterable[str]]:
    for rows in (change.append, change.upsert, change.overwrite):
        if rows is not None and rows.num_rows:
            yield _texts(rows["id"])
    if change.prepared is not None:
        table = snapshot.table(key)
        for fragment in change.prepared.new:
            yield _texts(read_new_ids(table, fragment))


def _texts(values: pa.Array | pa.ChunkedArray) -> list[str]:
    return [value for value in one_array(values).to_pylist() if value is not None]
