"""Migration of the schema of a branch: plan, evolve the tables, and publish schema and tables as one commit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import Conflict, Hint, SchemaChangeError
from omnigraph.operations.create import schema_record, table_specs
from omnigraph.operations.stored_queries import check_queries, queries_of
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.check import check_not_empty, compile_schema
from omnigraph.schema.identity import SchemaIR, catalog_of
from omnigraph.schema.migrate import SchemaPlan, plan_schema, refuse_losses, steps_to_json
from omnigraph.schema.migration_steps import (
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    RenameProperty,
    RenameType,
    Step,
)
from omnigraph.storage.files.input_files import read_source
from omnigraph.storage.lance.table_versions import evolved
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.manifest_objects import MAIN, SchemaRecord
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.idempotency import Earlier, hash_request
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write_once

if TYPE_CHECKING:
    from omnigraph.policy.breakage import SchemaCheck


@dataclass(frozen=True)
class SchemaApplyResult:
    """The result of a migration."""

    supported: bool
    applied: bool
    manifest_version: int
    commit_id: str | None
    steps: tuple[Step, ...]
    rename_hints: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    broken_rules: tuple[str, ...] = ()
    """Problems that the rules for rows of the policy have with the new schema."""

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        outcome = {"supported": self.supported, "applied": self.applied, "manifest_version": self.manifest_version}
        steps = steps_to_json(self.steps, self.rename_hints, self.losses, self.broken_rules)
        return {**outcome, "commit_id": self.commit_id, **steps}


def read_schema(source: str | Path) -> tuple[str, str]:
    """The text of a schema, given as text or as the path of a file, and its name in messages."""
    return read_source(source, "<schema>")


def plan_change(
    snapshot: Snapshot,
    text: str,
    *,
    name: str = "<schema>",
    allow_data_loss: bool = False,
    next_identity: int = 1,
    check: SchemaCheck | None = None,
) -> SchemaPlan:
    """The steps from a snapshot's schema to the one in `text`; `check` tells which rules of the policy they break.

    Drops that remove data are refused, unless `allow_data_loss`.
    """
    accepted = read_ir(snapshot.schema)
    # New identities come from the counter of the graph: another branch may already use the next ones of this schema.
    accepted = replace(accepted, next_id=max(accepted.next_id, next_identity))
    desired = compile_schema(text, name)
    check_not_empty(desired)
    plan = plan_schema(accepted, desired)
    lost = _lost_data(snapshot, plan.steps)
    kept = "older versions stay until they are cleaned up"
    losses = tuple(
        f"the change removes {amount} of {_name_of(step)} from the branch; {kept}" for step, amount in lost.items()
    )
    steps = plan.steps if allow_data_loss else tuple(refuse_losses(plan.steps, lost))
    broken = check.broken(catalog_of(plan.accepted), catalog_of(plan.desired)) if check and plan.steps else ()
    return replace(plan, steps=steps, losses=losses, broken_rules=broken)


def _name_of(drop: DropProperty | DropType) -> str:
    return drop.name if isinstance(drop, DropType) else f"{drop.type_name}.{drop.property_name}"


def _lost_data(snapshot: Snapshot, steps: Iterable[Step]) -> dict[DropProperty | DropType, str]:
    """The drops that remove data from the branch, each with the number of its rows or values."""
    lost: dict[DropProperty | DropType, str] = {}
    renamed = {(s.type_kind, s.new_name): s.old_name for s in steps if isinstance(s, RenameType)}
    for step in steps:
        if not isinstance(step, DropProperty | DropType) or step.type_kind == "interface":
            continue
        if isinstance(step, DropType):
            unit = "row"
            count = snapshot.table(TableKey.of(step.type_kind, step.name)).row_count
        else:
            unit = "value"
            old_name = renamed.get((step.type_kind, step.type_name), step.type_name)
            count = snapshot.table(TableKey.of(step.type_kind, old_name)).count_values(step.property_name)
        if count:
            lost[step] = f"{count} {unit}{'s' if count > 1 else ''}"
    return lost


def apply_change(
    repository: Repository,
    text: str,
    options: WriteOptions,
    *,
    name: str = "<schema>",
    allow_data_loss: bool = False,
    check: SchemaCheck | None = None,
    allow_query_breakage: bool = False,
) -> SchemaApplyResult:
    """Make `text` the schema of a branch, as one commit. Without changes there is no commit.

    `check` refuses schemas that the policy does not permit. A schema that drops data or breaks stored queries is
    refused, unless that is allowed. A repetition with the same idempotency key returns the result of the first call. A
    call without changes is evaluated again.
    """
    options = replace(options, request_hash=hash_request("schema_apply", options.branch, text, allow_data_loss))
    plan: SchemaPlan | None = None
    before: Snapshot | None = None

    def prepare(transaction: Transaction) -> None:
        nonlocal plan, before
        if before is not None and before.schema_hash != transaction.snapshot.schema_hash:
            # A plan against the new schema would undo the changes of the other migration.
            raise Conflict(
                f"the schema of branch '{options.branch}' changed in the meantime; nothing was written",
                code="schema_changed",
                hint="plan the change again on the current schema",
            )
        before = transaction.snapshot
        first = repository.state().next_identity
        plan = plan_change(transaction.snapshot, text, name=name, allow_data_loss=allow_data_loss, next_identity=first)
        if not plan.supported:
            raise refused(plan)
        if plan.steps and check is not None:
            broken = check.check(catalog_of(plan.accepted), catalog_of(plan.desired))
            plan = replace(plan, broken_rules=broken)
        if plan.steps and before.queries_hash and not allow_query_breakage:
            accepted, desired = catalog_of(plan.accepted), catalog_of(plan.desired)
            check_queries(before, accepted, queries_of(before), desired, what="the schema change")
        if plan.steps:
            _apply(transaction, plan, text, first)
        transaction.options = replace(transaction.options, result={"losses": list(plan.losses)})

    written = write_once(repository, prepare, replace(options, kind="schema_apply"))
    if written.earlier is not None:
        return _restore(repository, written.earlier, compile_schema(text, name))
    commit = written.commit
    assert plan is not None
    if commit is None:
        return SchemaApplyResult(True, False, repository.snapshot(options.branch).version, None, plan.steps)
    if options.branch == MAIN:
        repository.write_schema_copy(text)
    done = SchemaApplyResult(True, True, commit.manifest_version, commit.id, plan.steps)
    return replace(done, rename_hints=plan.rename_hints, losses=plan.losses, broken_rules=plan.broken_rules)


def _restore(repository: Repository, earlier: Earlier, desired: Catalog) -> SchemaApplyResult:
    """The result of an earlier migration with the same idempotency key; its steps follow from the stored schemas."""
    commit = earlier.commit
    assert commit is not None, "a recorded migration made a commit"
    assert commit.parent_id is not None, "a migration has a parent"
    accepted = read_ir(repository.schema(repository.get_commit(commit.parent_id).schema_hash))
    plan = plan_schema(accepted, desired)
    done = SchemaApplyResult(True, True, commit.manifest_version, commit.id, plan.steps)
    return replace(done, rename_hints=plan.rename_hints, losses=tuple(earlier.result["losses"]))


def read_ir(record: SchemaRecord) -> SchemaIR:
    """The document of a stored schema."""
    return SchemaIR.from_json(json.loads(record.ir))


def refused(plan: SchemaPlan) -> SchemaChangeError:
    """The error for a plan that cannot be applied, with all reasons."""
    reasons = "; ".join(step.describe() for step in plan.unsupported)
    renames = "".join(f"{hint}; " for hint in plan.rename_hints[:1])
    if all((step.code or "").startswith("OG-DS-") for step in plan.unsupported):
        python, cli = (f"{flag} permits the losses" for flag in ("allow_data_loss=True", "--allow-data-loss"))
    else:
        python, cli = "plan_schema shows every step", "'omnigraph schema plan' shows every step"
    return SchemaChangeError(
        f"the schema change is not supported: {reasons}; nothing was changed",
        code=next((step.code for step in plan.unsupported if step.code), "schema_change"),
        hint=Hint(f"{renames}{python}", cli=f"{renames}{cli}"),
    )


def _apply(transaction: Transaction, plan: SchemaPlan, text: str, first_identity: int) -> None:
    desired = plan.desired
    catalog = catalog_of(desired)
    specs = {spec.key: spec for spec in table_specs(catalog, desired)}
    renamed: dict[str, str] = {
        TableKey.of(step.type_kind, step.old_name): TableKey.of(step.type_kind, step.new_name)
        for step in plan.steps
        if isinstance(step, RenameType) and step.type_kind != "interface"
    }
    old_key = {new: old for old, new in renamed.items()}
    for step in plan.steps:
        if isinstance(step, AddType) and step.type_kind != "interface":
            transaction.create_table(specs[TableKey.of(step.type_kind, step.name)])
        elif isinstance(step, DropType) and step.type_kind != "interface":
            transaction.drop_table(TableKey.of(step.type_kind, step.name))
    for old, new in renamed.items():
        transaction.rename_table(old, new)
    for key, steps in _by_table(plan.steps).items():
        if key not in specs:
            continue
        kind, name = TableKey.parse(key).parts
        type_ = catalog.nodes[name] if kind == "node" else catalog.edges[name]
        table = evolved(
            transaction.snapshot.table(old_key.get(key, key)),
            rename={s.old_name: s.new_name for s in steps if isinstance(s, RenameProperty)},
            drop=[s.property_name for s in steps if isinstance(s, DropProperty)],
            add=[
                pa.field(s.property_name, arrow_type(type_.properties[s.property_name].type))
                for s in steps
                if isinstance(s, AddProperty)
            ],
        )
        transaction.set_version(old_key.get(key, key), table)
    _rename_embeddings(transaction, catalog, plan.steps, renamed)
    record = schema_record(text, desired)
    transaction.set_schema(record, first_identity=first_identity, next_identity=desired.next_id)


def _rename_embeddings(
    transaction: Transaction, catalog: Catalog, steps: Iterable[Step], renamed: Mapping[str, str]
) -> None:
    """Move the recorded vector spaces with their columns. Columns that are no longer embedded lose theirs."""
    columns: dict[tuple[str, str], str] = {
        (TableKey.of(step.type_kind, step.type_name), step.old_name): step.new_name
        for step in steps
        if isinstance(step, RenameProperty) and step.type_kind != "interface"
    }
    for key, table in transaction.snapshot.tables.items():
        if not table.pin.embeddings:
            continue
        new_key = renamed.get(key, key)
        node = catalog.nodes.get(TableKey.parse(new_key).type_name)
        kept = {columns.get((new_key, column), column): space for column, space in table.pin.embeddings}
        if node is not None:
            transaction.set_embeddings(key, {column: space for column, space in kept.items() if column in node.embeds})


def _by_table(steps: Iterable[Step]) -> dict[str, list[AddProperty | RenameProperty | DropProperty]]:
    tables: dict[str, list[AddProperty | RenameProperty | DropProperty]] = {}
    for step in steps:
        if isinstance(step, AddProperty | RenameProperty | DropProperty) and step.type_kind != "interface":
            tables.setdefault(TableKey.of(step.type_kind, step.type_name), []).append(step)
    return tables
