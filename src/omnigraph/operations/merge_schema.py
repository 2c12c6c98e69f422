"""The schema of a merge: whose it is, how the target's tables get its columns, and what is in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from omnigraph.operations.column_mapping import TableNames, document, names_in, tables_of
from omnigraph.operations.create import schema_record
from omnigraph.schema.arrow import arrow_type, table_schema
from omnigraph.schema.catalog import Catalog, constraint_columns
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
    """The schema the merged graph has."""

    ir: SchemaIR
    record: SchemaRecord | None = None
    """What the target must take over; None when it keeps its own."""
    steps: tuple[Step, ...] = ()
    """From the target's schema to this one."""
    conflicts: tuple[ConflictDetail, ...] = ()
    _names: dict[str, TableNames] = field(default_factory=dict)

    @cached_property
    def catalog(self) -> Catalog:
        """What it means."""
        return catalog_of(self.ir)

    @cached_property
    def layouts(self) -> dict[Identity, MergedTable]:
        """Every table, by identity."""
        columns = {type_.table_key: table_schema(type_) for type_ in self.catalog.tables()}
        keys = {identity: TableKey.of(type_.kind, type_.name) for identity, type_ in tables_of(self.ir).items()}
        return {identity: MergedTable(key, columns[key]) for identity, key in keys.items()}

    def judged(self, layout: MergedTable) -> pa.Schema:
        """The columns of a table that rules look at."""
        kind, name = TableKey.parse(layout.key).parts
        type_ = self.catalog.nodes[name] if kind == "node" else self.catalog.edges[name]
        wanted = {"id", "src", "dst", *(column for c in type_.constraints for column in constraint_columns(c))}
        wanted |= {p.name for p in type_.properties.values() if p.type.enum_values is not None}
        return pa.schema([field for field in layout.columns if field.name in wanted])

    def names(self, snapshot: Snapshot, identity: Identity) -> dict[str, str] | None:
        """A snapshot's columns of a table under the names they have here; None when nothing is called otherwise."""
        there = document(snapshot.schema)
        if there == self.ir:
            return None
        if snapshot.schema_hash not in self._names:
            self._names[snapshot.schema_hash] = names_in(there, self.ir)
        names = self._names[snapshot.schema_hash].get(identity)
        return dict(names) if names is not None else None

    def evolved(self, key: str, table: Table) -> Table | None:
        """The target's table under the merged columns, as a version nobody pins; None when it has them already."""
        kind, name = TableKey.parse(key).parts
        steps = [
            step
            for step in self.steps
            if isinstance(step, AddProperty | RenameProperty | DropProperty)
            and (step.type_kind, step.type_name) == (kind, name)
        ]
        if not steps:
            return None
        return evolved(
            table,
            rename={s.old_name: s.new_name for s in steps if isinstance(s, RenameProperty)},
            drop=[s.property_name for s in steps if isinstance(s, DropProperty)],
            add=[pa.field(s.property_name, arrow_type(s.property_type)) for s in steps if isinstance(s, AddProperty)],
        )


def decide_schema(bases: Sequence[Snapshot], ours: Snapshot, theirs: Snapshot) -> SchemaMerge:
    """Take over a schema only one side changed; where both did, merge them or say what clashes."""
    known = [base.schema_hash for base in bases]
    here = document(ours.schema)
    if theirs.schema_hash in (ours.schema_hash, *known):
        return SchemaMerge(here)
    there = document(theirs.schema)
    if ours.schema_hash in known:
        # Only who drew a number gives it out again, so the counter alone is no difference.
        return SchemaMerge(there, theirs.schema, *_plan(here, there))
    merged = merge_schemas(document(bases[0].schema), here, there)
    if isinstance(merged, MergedSchema):
        return SchemaMerge(merged.ir, schema_record(merged.text, merged.ir), *_plan(here, merged.ir))
    return SchemaMerge(here, conflicts=tuple(_conflict(clash.entity, clash.message) for clash in merged))


def _plan(here: SchemaIR, desired: SchemaIR) -> tuple[tuple[Step, ...], tuple[ConflictDetail, ...]]:
    steps = tuple(plan_steps(here, desired))
    refused = [step for step in steps if isinstance(step, UnsupportedChange)]
    return steps, tuple(_conflict(step.entity, step.reason) for step in refused)


def _conflict(entity: str, message: str) -> ConflictDetail:
    return ConflictDetail(entity if ":" in entity else "schema", None, "schema_conflict", f"{entity}: {message}")
