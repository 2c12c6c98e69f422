"""Rows whose conflicts and violations `resolve` settles, as a merge leaves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.operations.merge.merge_preview import SettledRow
from omnigraph.operations.merge.merge_schema import SchemaMerge
from omnigraph.versioning.compare.diff import Identity, by_identity
from omnigraph.versioning.compare.rows import to_dicts
from omnigraph.versioning.compare.three_way import Row, TableMerge
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.snapshot_view import PinnedTable

_ROWS_MAX = 1_000

ReadRows = Callable[[Snapshot, Identity, PinnedTable, Sequence[str]], Mapping[str, Row]]
"""Reads rows of a snapshot in the columns of the merged schema."""


def settled_rows(
    schema: SchemaMerge,
    ours: Snapshot,
    merges: Mapping[str, TableMerge],
    repaired: Mapping[str, Sequence[str]],
    read: ReadRows,
) -> tuple[SettledRow, ...]:
    """Return the first settled rows; `repaired` has the rows that resolve violations, by table."""
    found: list[SettledRow] = []
    for identity, merged_table in schema.merged_tables.items():
        key = merged_table.key
        merge, table = merges.get(key), by_identity(ours).get(identity)
        if merge is None or table is None:
            continue
        ids = list(dict.fromkeys([*merge.settled, *repaired.get(key, ())]))[: _ROWS_MAX - len(found)]
        if ids:
            put = merge.put.filter(pc.is_in(merge.put["id"], value_set=pa.array(ids, pa.utf8())))
            rows: dict[str, Row | None] = {**read(ours, identity, table, ids)}
            rows |= {row["id"]: row for row in to_dicts(put)}
            rows |= dict.fromkeys(set(merge.delete.to_pylist()).intersection(ids))
            found += [SettledRow(key, id_, rows.get(id_)) for id_ in ids]
    return tuple(found)
