"""The schema of a merge: its origin, the evolution of the target's tables, and schema conflicts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from omnigraph.operations.create import schema_record
from omnigraph.operations.merge.column_mapping import TableNames, document, names_in, tables_of
from omnigraph.schema.arrow import arrow_type, table_schema
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.constraints import constraint_columns
from omnigraph.schema.identity import SchemaIR, catalog_of
from omnigraph.schema.merge import MergedSchema, merge_schemas
from omnigraph.schema.migrate import plan_steps
from omnigraph.schema.migration_steps import AddProperty, DropProperty, RenameProperty, Step, UnsupportedChange
from omnigraph.storage.lance.table_versions import evolved
from omnigraph.storage.lance.tables import Table
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.diff import Identity
from omnigraph.versioning.compare.three_way import ConflictDetail
from omnigraph.versioning.model.manifest_objects import SchemaRecord
from omnigraph.versioning.model.snapshot import Snapshot


@dataclass(frozen=True)
class MergedTable:
    """A table of the merged graph: its key and its columns."""

    key: str
    columns: pa.Schema


@dataclass(frozen=True)
class SchemaMerge:
    """The schema of the merged graph."""

    ir: SchemaIR
    record: SchemaRecord | None = None
    """The new schema of the target; None if it keeps its schema."""
    steps: tuple[Step, ...] = ()
    """The steps from the target's schema to this one."""
    conflicts: tuple[ConflictDetail, ...] = ()
    _names: dict[str, TableNames] = field(default_factory=dict)

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog of the schema."""
        return catalog_of(self.ir)

    @cached_property
    def merged_tables(self) -> dict[Identity, MergedTable]:
        """Every table, by identity."""
        columns = {type_.table_key: table_schema(type_) for type_ in self.catalog.tables()}
        keys = {identity: TableKey.of(type_.kind, type_.name) for identity, type_ in tables_of(self.ir).items()}
        return {identity: MergedTable(key, columns[key]) for identity, key in keys.items()}

    def type_of(self, merged_table: MergedTable) -> NodeType | EdgeType:
        """The type of a table."""
        kind, name = TableKey.parse(merged_table.key).parts
        return self.catalog.nodes[name] if kind == "node" else self.catalog.edges[name]

    def checked_columns(self, merged_table: MergedTable, more: Collection[str] = ()) -> pa.Schema:
        """The columns of a table that rules read, and some more."""
        type_ = self.type_of(merged_table)
        wanted = {*more, "id", "src", "dst", *(column for c in type_.constraints for column in constraint_columns(c))}
        wanted |= {p.name for p in type_.properties.values() if p.type.enum_values is not None}
        return pa.schema([field for field in merged_table.columns if field.name in wanted])

    def names(self, snapshot: Snapshot, identity: Identity) -> dict[str, str] | None:
        """Column name in a snapshot → column name here; None if no name differs."""
        there = document(snapshot.schema)
        if there == self.ir:
            return None
        if snapshot.schema_hash not in self._names:
            self._names[snapshot.schema_hash] = names_in(there, self.ir)
        names = self._names[snapshot.schema_hash].get(identity)
        return dict(names) if names is not None else None

    def column_steps(self, key: str) -> list[AddProperty | RenameProperty | DropProperty]:
        """The steps that change the columns of the target's table."""
        return [
            step
            for step in self.steps
            if isinstance(step, AddProperty | RenameProperty | DropProperty)
            and (step.type_kind, step.type_name) == TableKey.parse(key).parts
        ]

    def new_columns(self, key: str) -> frozenset[str]:
        """The columns that the target's table does not have."""
        return frozenset(step.property_name for step in self.column_steps(key) if isinstance(step, AddProperty))

    def evolved(self, key: str, table: Table) -> Table | None:
        """The target's table with the merged columns, as an unpinned version; None if it already has these columns."""
        steps = self.column_steps(key)
        if not steps:
            return None
        return evolved(
            table,
            rename={s.old_name: s.new_name for s in steps if isinstance(s, RenameProperty)},
            drop=[s.property_name for s in steps if isinstance(s, DropProperty)],
            add=[pa.field(s.property_name, arrow_type(s.property_type)) for s in steps if isinstance(s, AddProperty)],
        )


def decide_schema(bases: Sequence[Snapshot], ours: Snapshot, theirs: Snapshot) -> SchemaMerge:
    """Adopt the schema if only one side changed it; otherwise merge the schemas or report the conflicts."""
    known = [base.schema_hash for base in bases]
    here = document(ours.schema)
    if theirs.schema_hash in (ours.schema_hash, *known):
        return SchemaMerge(here)
    there = document(theirs.schema)
    if ours.schema_hash in known:
        # Identity numbers are never reused, so a difference of the counter alone is no change.
        return SchemaMerge(there, theirs.schema, *_plan(here, there))
    merged = merge_schemas(document(bases[0].schema), here, there)
    if isinstance(merged, MergedSchema):
        return SchemaMerge(merged.ir, schema_record(merged.text, merged.ir), *_plan(here, merged.ir))
    return SchemaMerge(here, conflicts=tuple(_conflict(clash.entity, clash.message) for clash in merged))


def _plan(here: SchemaIR, desired: SchemaIR) -> tuple[tuple[Step, ...], tuple[ConflictDetail, ...]]:
    steps = tuple(plan_steps(here, desired, with_values=True))
    refused = [step for step in steps if isinstance(step, UnsupportedChange)]
    return steps, tuple(_conflict(step.entity, step.reason) for step in refused)


def _conflict(entity: str, message: str) -> ConflictDetail:
    return ConflictDetail(entity if ":" in entity else "schema", None, "schema_conflict", f"{entity}: {message}")
