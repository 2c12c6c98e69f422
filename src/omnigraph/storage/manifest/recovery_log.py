"""The recovery log `_graph_commit_recoveries.lance`: created by the first recovery, meant for people."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.storage.files import layout
from omnigraph.storage.files.location import Location
from omnigraph.storage.files.new_files import finish_tree
from omnigraph.storage.lance.create_once import create_once
from omnigraph.storage.lance.lance_errors import is_missing, lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.tables import PRIMARY_KEY, sql_text

_SCHEMA = pa.schema(
    [
        pa.field("graph_commit_id", pa.utf8(), nullable=False),
        pa.field("recovery_kind", pa.utf8(), nullable=False),
        pa.field("recovery_for_actor", pa.utf8()),
        pa.field("operation_id", pa.utf8(), nullable=False, metadata=PRIMARY_KEY),
        pa.field("sidecar_writer_kind", pa.utf8(), nullable=False),
        pa.field("per_table_outcomes_json", pa.utf8(), nullable=False),
        pa.field("created_at", pa.timestamp("us"), nullable=False),
    ]
)

_TRIES = 50


class RecoveryLog:
    """Appends and reads rows of the recovery log."""

    def __init__(self, location: Location, *, sync: bool) -> None:
        self._location = location
        self._sync = sync
        self._uri = location.writable_child(layout.RECOVERY_LOG)
        self._options = location.storage_options

    def add_once(
        self,
        *,
        operation_id: str,
        commit_id: str,
        kind: str,
        actor: str | None,
        writer_kind: str,
        outcomes: str,
        at: int,
    ) -> None:
        """Add a row unless this operation has one."""
        row = {
            "graph_commit_id": commit_id,
            "recovery_kind": kind,
            "recovery_for_actor": actor,
            "operation_id": operation_id,
            "sidecar_writer_kind": writer_kind,
            "per_table_outcomes_json": outcomes,
            "created_at": at,
        }
        rows = pa.Table.from_pylist([row], schema=_SCHEMA)
        try:
            if not self._create(rows):
                self._insert(rows, operation_id)
            if self._location.path is not None:
                finish_tree(self._location.path / layout.RECOVERY_LOG, sync=self._sync)
        except lance_errors() as error:
            raise storage_failure(error, self._location, "the recovery log cannot be written") from error

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows, oldest first."""
        try:
            dataset = self._open()
            rows: list[dict[str, Any]] = [] if dataset is None else dataset.to_table().sort_by("created_at").to_pylist()
        except lance_errors() as error:
            raise storage_failure(error, self._location, "the recovery log cannot be read") from error
        return rows

    def _open(self) -> lance.LanceDataset | None:
        try:
            return lance.dataset(self._uri, storage_options=self._options)
        except lance_errors() as error:
            if is_missing(error):
                return None
            raise

    def _create(self, rows: pa.Table) -> bool:
        """Create the table with these rows; return False if it exists."""
        if self._open() is not None:
            return False
        try:
            create_once(self._uri, self._options, rows)
        except FileExistsError:
            return False
        return True

    def _insert(self, rows: pa.Table, operation_id: str) -> None:
        dataset = self._open()
        assert dataset is not None
        if not dataset.count_rows(filter=f"operation_id = {sql_text(operation_id)}"):
            # Two processes may recover the same intent: with a keyed insert the second finds the row of the first.
            insert = dataset.merge_insert("operation_id").when_not_matched_insert_all()
            insert.conflict_retries(_TRIES).execute(rows)
