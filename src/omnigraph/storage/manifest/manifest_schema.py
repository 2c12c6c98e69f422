"""Rows of the manifest: their columns, their types, and filters over them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from omnigraph.fast_dataclass import dataclass
from omnigraph.storage.lance.tables import PRIMARY_KEY, sql_text

Row = dict[str, Any]

STAMP_KEY = "omnigraph:internal_schema_version"
POSITION_ID = "log_position"
PURGE_EPOCH_ID = "purge_epoch"
STATE_TYPES = (
    "table", "graph_head", "graph_tag", "graph_abort", "graph_identity", "graph_purge", "schema", POSITION_ID,
)  # fmt: skip
"""The row types that are state; all other types are history. Schemas are never removed, but are needed to open a graph.
"""

SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.utf8(), nullable=False, metadata=PRIMARY_KEY),
        pa.field("object_type", pa.utf8(), nullable=False),
        pa.field("location", pa.utf8()),
        pa.field("metadata", pa.utf8()),
        pa.field("base_objects", pa.list_(pa.utf8())),
        pa.field("table_key", pa.utf8(), nullable=False),
        pa.field("stable_table_id", pa.uint64()),
        pa.field("table_incarnation_id", pa.uint64()),
        pa.field("table_version", pa.uint64()),
        pa.field("table_branch", pa.utf8()),
        pa.field("row_count", pa.uint64()),
    ]
)


def to_rows(rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table with the columns of the manifest."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def to_row(object_id: str, object_type: str, **columns: Any) -> Row:
    """Return a row; columns that are not given are null."""
    return {"object_id": object_id, "object_type": object_type, "table_key": "", **columns}


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """Selects history rows, in the checkpoint and in memory alike."""

    object_type: str
    above: int | None = None
    """Lower bound of `table_version`, exclusive. It is the manifest version of a commit."""
    up_to: int | None = None
    """Upper bound of `table_version`, inclusive."""
    branches: tuple[str | None, ...] | None = None
    """Values of `table_branch`; None selects all."""
    id_below: str | None = None
    """Upper bound of `object_id`, exclusive."""

    def to_sql(self) -> str:
        """Return the condition on the rows of the checkpoint."""
        parts = [f"object_type = {sql_text(self.object_type)}"]
        if self.above is not None:
            parts.append(f"table_version > {self.above}")
        if self.up_to is not None:
            parts.append(f"table_version <= {self.up_to}")
        if self.branches is not None:
            names = ["IS NULL" if name is None else f"= {sql_text(name)}" for name in self.branches]
            parts.append(f"({' OR '.join(f'table_branch {name}' for name in names)})")
        if self.id_below is not None:
            parts.append(f"object_id < {sql_text(self.id_below)}")
        return " AND ".join(parts)

    def selects(self, row: Row) -> bool:
        """Return True if a row satisfies the filter."""
        version = row.get("table_version")
        return (
            row["object_type"] == self.object_type
            and (self.above is None or (version is not None and version > self.above))
            and (self.up_to is None or (version is not None and version <= self.up_to))
            and (self.branches is None or row.get("table_branch") in self.branches)
            and (self.id_below is None or row["object_id"] < self.id_below)
        )
