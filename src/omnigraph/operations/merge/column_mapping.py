"""Mapping of the columns of one snapshot to those of another, by the identity of their properties."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from omnigraph.operations.migrate import read_ir
from omnigraph.schema.catalog import SYSTEM_FIELDS
from omnigraph.schema.document import IREdge, IRNode
from omnigraph.schema.identity import SchemaIR
from omnigraph.schema.migrate import plan_steps
from omnigraph.schema.migration_steps import UnsupportedChange
from omnigraph.versioning.compare.diff import Identity
from omnigraph.versioning.model.manifest_objects import SchemaRecord
from omnigraph.versioning.model.snapshot import Snapshot

TableNames = Mapping[Identity, Mapping[str, str]]
"""Table → column name here → column name there."""


@lru_cache(maxsize=64)
def document(record: SchemaRecord) -> SchemaIR:
    """Parse the document of a stored schema. The result is cached."""
    return read_ir(record)


def tables_of(ir: SchemaIR) -> dict[Identity, IRNode | IREdge]:
    """The types that have tables, by table identity."""
    types: list[IRNode | IREdge] = [*ir.nodes, *ir.edges]
    return {(type_.id, type_.incarnation_id): type_ for type_ in types}


def names_in(here: SchemaIR, there: SchemaIR) -> TableNames:
    """Map the columns of every table that both documents have. Columns that `there` dropped are left out."""
    later = tables_of(there)
    return {
        identity: {
            **{name: name for name in SYSTEM_FIELDS[type_.kind]},
            **_by_number(type_, later[identity]),
        }
        for identity, type_ in tables_of(here).items()
        if identity in later
    }


def shown_names(before: Snapshot, after: Snapshot) -> TableNames:
    """Map columns as `names_in` does, for display: a dropped column keeps its name, so that its values are shown."""
    return mapped_names(document(before.schema), document(after.schema))


def mapped_names(here: SchemaIR, there: SchemaIR) -> TableNames:
    """Map columns as `shown_names` does, from one document to another."""
    known = names_in(here, there)
    return {
        identity: {**_dropped_names(type_, known[identity]), **known[identity]}
        for identity, type_ in tables_of(here).items()
        if identity in known
    }


def _dropped_names(type_: IRNode | IREdge, kept: Mapping[str, str]) -> dict[str, str]:
    """Map the columns that are not kept to their own names; one whose name a kept column has now is marked."""
    taken = {*kept.values()}
    dropped = (property_.name for property_ in type_.properties if property_.name not in kept)
    return {name: f"{name} (dropped)" if name in taken else name for name in dropped}


def schema_difference(before: SchemaRecord, after: SchemaRecord) -> tuple[str, ...]:
    """Describe the differences between two schemas, one line for each change. Changes that cannot be migrated are only
    named.
    """
    return () if before.hash == after.hash else describe_steps(document(before), document(after))


def describe_steps(before: SchemaIR, after: SchemaIR) -> tuple[str, ...]:
    """Describe the differences between two documents, one line for each change."""
    return tuple(
        f"change {step.entity}" if isinstance(step, UnsupportedChange) else step.describe()
        for step in plan_steps(before, after)
    )


def _by_number(before: IRNode | IREdge, after: IRNode | IREdge) -> dict[str, str]:
    names = {property_.id: property_.name for property_ in after.properties}
    return {property_.name: names[property_.id] for property_ in before.properties if property_.id in names}
