"""Loads in memory under rules for rows and properties.

Records are read with the catalog of what is visible: hidden types and properties do not exist for them. A record refers
to a visible row, or to none: values of hidden rows are not read, and edges are matched by visible values. Withheld
properties that are absent from a record keep their values. The integrity rules check the rows (`GuardedWrite`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine.ingest.records import AnyType, LoadedRows, RecordSet, WithheldProperties
from omnigraph.engine.write.overlay import CommittedRows, WriteOverlay
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.schema.catalog import Catalog, NodeType
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.engine.write.row_guard import GuardedWrite
    from omnigraph.query.visibility import Visibility


def guarded_load(request: LoadRequest, snapshot: Snapshot, catalog: Catalog) -> GuardedLoad | None:
    """Return the rules that limit a load onto a snapshot; None if there are none."""
    rules = request.guard(snapshot)
    if rules is None:
        return None
    from omnigraph.engine.write.row_guard import GuardedWrite  # noqa: PLC0415 (only for a guard)

    write = GuardedWrite(rules, catalog, WriteOverlay(snapshot))
    nulls_absent = request.mode == "merge" and not request.keeps
    return GuardedLoad(write, CommittedRows(snapshot), catalog, nulls_absent)


def with_whole_types(records: Mapping[str, list[RecordSet]], catalog: Catalog) -> dict[str, list[RecordSet]]:
    """Return records that were read with the visible catalog as records of the types with all properties."""
    types: dict[str, AnyType] = {str(type_.table_key): type_ for type_ in catalog.tables()}
    return {key: [replace(part, type=types[key]) for part in parts] for key, parts in records.items()}


@dataclass(frozen=True)
class GuardedLoad:
    """A guard, applied to one attempt of a load."""

    write: GuardedWrite
    committed: CommittedRows
    catalog: Catalog
    nulls_absent: bool = False
    """True if properties that are absent from a record of an existing row are set to null."""

    @property
    def visibility(self) -> Visibility:
        """The rows and values that the caller may see."""
        return self.write.guard.visibility

    @cached_property
    def _withheld(self) -> dict[str, WithheldProperties]:
        found: dict[str, WithheldProperties] = {}
        for (key, name), condition in self.visibility.properties.items():
            one = found.get(key, WithheldProperties())
            if condition is None:
                found[key] = replace(one, hidden=one.hidden | {name})
            else:
                found[key] = replace(one, masked=one.masked | {name})
        return found

    def withheld(self, table_key: str) -> WithheldProperties:
        """Return the properties of a table that the caller cannot read, or not in every row."""
        return self._withheld.get(table_key, WithheldProperties())

    def embedded(self, type_: NodeType) -> list[str]:
        """Return the vector properties that the load may compute: hidden texts are not sent to a provider.

        A vector that is required has a text in the records, if it is missing.
        """
        kept = self.withheld(type_.table_key).kept
        return [
            target
            for target, embed in type_.embeds.items()
            if embed.source not in kept or not type_.properties[target].type.nullable
        ]

    def assigned(self, rows: LoadedRows) -> None:
        """Record the properties that records assign to their rows. The records must have ids."""
        type_, table = rows.type, rows.table
        for name in self.write.guarded_properties(type_):
            mask = rows.present.get(name)
            self.write.assigned(type_, [name], table if mask is None else table.filter(mask))
            if mask is not None and self.nulls_absent and name not in self.withheld(type_.table_key).kept:
                absent = one_array(table.filter(pc.invert(mask))["id"])
                self.write.assigned(type_, [name], self.rows_with_ids(type_, absent, ["id"]))

    def rows_with_ids(self, type_: AnyType, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Read `id` and some columns of the visible rows with some ids, with their stored values."""
        needed = self.write.needed(type_, columns)
        rows = self._visible(type_, self.committed.rows_with_ids(type_.table_key, ids, needed))
        return rows.select(list(dict.fromkeys(["id", *columns])))

    def visible_ids(self, type_: AnyType, ids: pa.Array) -> pa.Array:
        """Return those of some ids that are ids of visible rows."""
        return one_array(self.rows_with_ids(type_, ids, ["id"])["id"])

    def visible_nodes(self, table_key: str, ids: pa.Array) -> pa.Array:
        """Return those of some ids, which can be null, that are ids of visible nodes of a table."""
        return self.visible_ids(self.catalog.nodes[TableKey.parse(table_key).type_name], pc.unique(ids).drop_null())

    def edges_from(self, type_: AnyType, sources: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Read the visible edges from some nodes. Masked values are null."""
        needed = self.write.needed(type_, columns)
        rows = self._visible(type_, self.committed.rows_among(type_.table_key, "src", sources, needed))
        return self.write.masked(type_, rows).select([*columns])

    def _visible(self, type_: AnyType, rows: pa.Table) -> pa.Table:
        return rows.filter(pa.array(self.write.sees(type_, rows, self._read)))

    def _read(self, key: str, values: pa.Array, columns: Sequence[str], column: str) -> pa.Table:
        return self.committed.rows_among(key, column, values, columns)
