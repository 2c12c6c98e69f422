"""The target of a merge, as the integrity rules read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from omnigraph.engine.write.overlay import CommittedRows
from omnigraph.operations.merge.merge_schema import SchemaMerge
from omnigraph.versioning.compare.diff import by_identity
from omnigraph.versioning.model.snapshot import Snapshot


class MergeTarget:
    """The committed rows of the target, under the table and column names of the merged schema."""

    def __init__(self, ours: Snapshot, schema: SchemaMerge) -> None:
        self._rows = CommittedRows(ours)
        self._tables: dict[str, tuple[str, dict[str, str]]] = {}
        """Merged key → the target's key, and merged column name → the target's column name."""
        self._types = {
            merged_table.key: {field.name: field.type for field in merged_table.columns}
            for merged_table in schema.merged_tables.values()
        }
        for identity, table in by_identity(ours).items():
            if identity in schema.merged_tables:
                names = schema.names(ours, identity)
                known = names if names is not None else {name: name for name in ours.open(table).schema.names}
                self._tables[schema.merged_tables[identity].key] = (
                    table.pin.key,
                    {new: old for old, new in known.items()},
                )

    def rows_among(self, table_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows whose `column` is one of `values`."""
        key, old = self._tables.get(table_key, ("", {}))
        if column not in old:
            return self._shown(None, table_key, old, columns)
        known = [old[name] for name in columns if name in old]
        return self._shown(self._rows.rows_among(key, old[column], values, known), table_key, old, columns)

    def read(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """All rows of a table."""
        key, old = self._tables.get(table_key, ("", {}))
        rows = self._rows.read(key, [old[name] for name in columns if name in old]) if old else None
        return self._shown(rows, table_key, old, columns)

    def _shown(self, rows: pa.Table | None, table_key: str, old: Mapping[str, str], columns: Sequence[str]) -> pa.Table:
        """Rows under the merged names. A column that the target lacks is null; a table that it lacks is empty."""
        types = self._types[table_key]
        count = rows.num_rows if rows is not None else 0
        return pa.table(
            {
                name: rows[old[name]] if rows is not None and name in old else pa.nulls(count, types[name])
                for name in columns
            }
        )
