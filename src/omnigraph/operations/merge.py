"""Merges one branch into another: find the base, decide, judge the result, publish one commit with two parents.

A table changed on one side only is adopted by its version, without copying a row; its changes are still judged,
because two valid sides can make an invalid graph. Row conflicts of all tables come back at once; only a merge
without them is judged, and then all violations come back at once. Nothing is written in either case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

from omnigraph.engine.constraints import Delta, TableDelta, Violation, violations
from omnigraph.engine.pending import CommittedRows
from omnigraph.errors import Conflict as ConflictError
from omnigraph.errors import InputError, MergeConflict, OmniGraphError
from omnigraph.operations.catalogs import Catalogs
from omnigraph.storage.tables import Change, Table
from omnigraph.versioning.diff import RowChange, TableDiff
from omnigraph.versioning.history import merge_bases, reachable
from omnigraph.versioning.merge import Conflict, ConflictKind, Resolution, Row, TableMerge, decide_table
from omnigraph.versioning.records import Pin, SchemaRecord
from omnigraph.versioning.repository import Repository
from omnigraph.versioning.rows import from_dicts, to_dicts
from omnigraph.versioning.snapshot import PinnedTable, Snapshot
from omnigraph.versioning.transaction import Transaction, WriteOptions, write

MergeOutcome = Literal["already_up_to_date", "fast_forward", "merged"]
Resolve = Resolution | Mapping[str, Resolution] | None

_KINDS: dict[str, ConflictKind] = {
    "range": "value_constraint_violation",
    "check": "value_constraint_violation",
    "enum": "value_constraint_violation",
    "unique": "unique_violation",
    "endpoint": "orphan_edge",
    "orphan": "orphan_edge",
    "cardinality": "cardinality_violation",
}


@dataclass(frozen=True)
class MergeResult:
    """What a merge did."""

    source: str
    target: str
    outcome: MergeOutcome
    commit_id: str | None
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The form surfaces show."""
        data: dict[str, Any] = {
            "source": self.source,
            "target": self.target,
            "outcome": self.outcome,
            "commit_id": self.commit_id,
        }
        if self.branch_deleted is not None:
            data["branch_deleted"] = self.branch_deleted
        if self.branch_delete_error is not None:
            data["branch_delete_error"] = self.branch_delete_error
        return data


@dataclass
class MergePlan:
    """What a merge would do; nothing of it is written."""

    outcome: MergeOutcome
    source_commit: str
    tables: dict[str, TableMerge] = field(default_factory=dict)
    adopted: dict[str, PinnedTable] = field(default_factory=dict)
    new: list[Pin] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    schema: SchemaRecord | None = None
    conflicts: list[Conflict] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The form a preview is shown in."""
        return {
            "outcome": self.outcome,
            "tables": {
                key: {"put": len(merge.put), "deleted": len(merge.delete), "adopted": key in self.adopted}
                for key, merge in sorted(self.tables.items())
            },
            "schema_changes": self.schema is not None,
            "conflicts": [conflict.to_json() for conflict in self.conflicts],
        }


def merge_branch(
    repository: Repository,
    catalogs: Catalogs,
    source: str,
    options: WriteOptions,
    *,
    resolve: Resolve = None,
    delete_branch: bool = False,
) -> MergeResult:
    """Merge `source` into the branch of `options`, or raise `MergeConflict` with everything in the way."""
    theirs = _source(repository, source, options.branch)
    plan: MergePlan | None = None

    def prepare(transaction: Transaction) -> None:
        nonlocal plan
        plan = plan_merge(repository, catalogs, transaction.snapshot, theirs, resolve)
        if plan.conflicts:
            raise conflict_error(plan.conflicts, source, options.branch)
        if plan.outcome != "already_up_to_date":
            _stage(transaction, plan, theirs)

    pinned = replace(options, kind="merge", merged_parent=theirs.commit_id)
    if _is_ancestor(repository, theirs.commit_id, repository.snapshot(options.branch).commit_id):
        result = MergeResult(source, options.branch, "already_up_to_date", None)
    else:
        commit = write(repository, prepare, pinned)
        assert plan is not None
        result = MergeResult(source, options.branch, plan.outcome, commit.id if commit else None)
    return _delete(repository, result) if delete_branch else result


def preview_merge(
    repository: Repository, catalogs: Catalogs, source: str, target: str, resolve: Resolve = None
) -> MergePlan:
    """What merging would do, conflicts included; nothing is written."""
    theirs = _source(repository, source, target)
    return plan_merge(repository, catalogs, repository.snapshot(target), theirs, resolve)


def plan_merge(
    repository: Repository, catalogs: Catalogs, ours: Snapshot, theirs: Snapshot, resolve: Resolve
) -> MergePlan:
    """Decide a merge of two snapshots."""
    commits = repository.all_commits()
    bases = merge_bases(ours.commit_id, theirs.commit_id, lambda commit_id: commits[commit_id].parents)
    if not bases:
        raise ConflictError("the branches have no common history")
    if theirs.commit_id in bases:
        return MergePlan("already_up_to_date", theirs.commit_id)
    ordered = sorted(bases, key=lambda commit_id: commits[commit_id].manifest_version, reverse=True)
    snapshots = [repository.snapshot(at=commit_id) for commit_id in ordered]
    outcome: MergeOutcome = "fast_forward" if ours.commit_id in bases else "merged"
    plan = MergePlan(outcome, theirs.commit_id)
    if not _merge_schema(plan, snapshots[0], ours, theirs):
        return plan
    deltas: dict[str, TableDelta] = {}
    for triple in _triples(snapshots[0], ours, theirs):
        _merge_table(plan, triple, snapshots, ours, theirs, resolve, deltas)
    if not plan.conflicts:
        _judge(plan, catalogs, ours, theirs, deltas)
    return plan


# -- schema and tables -------------------------------------------------------------------------------


def _merge_schema(plan: MergePlan, base: Snapshot, ours: Snapshot, theirs: Snapshot) -> bool:
    """Take over a schema only one side changed; a conflict when both did."""
    if theirs.schema_hash in (ours.schema_hash, base.schema_hash):
        return True
    if ours.schema_hash == base.schema_hash:
        plan.schema = theirs.schema
        return True
    message = "both branches changed the schema; apply one side's schema to the other branch first"
    plan.conflicts.append(Conflict("schema", None, "schema_conflict", message))
    return False


@dataclass(frozen=True)
class _Triple:
    """One table in the base, ours and theirs, matched by identity."""

    base: PinnedTable | None
    ours: PinnedTable | None
    theirs: PinnedTable | None


def _triples(base: Snapshot, ours: Snapshot, theirs: Snapshot) -> list[_Triple]:
    sides = [{(t.pin.table_id, t.pin.incarnation): t for t in s.tables.values()} for s in (base, ours, theirs)]
    identities = sorted({**sides[0], **sides[1], **sides[2]})
    return [_Triple(*(side.get(identity) for side in sides)) for identity in identities]


def _merge_table(
    plan: MergePlan,
    triple: _Triple,
    bases: list[Snapshot],
    ours: Snapshot,
    theirs: Snapshot,
    resolve: Resolve,
    deltas: dict[str, TableDelta],
) -> None:
    b, t, s = triple.base, triple.ours, triple.theirs
    if s is None:
        if b is not None and t is not None and plan.schema is not None:
            plan.dropped.append(t.pin.key)
        return
    if t is None:
        if b is None:
            plan.new.append(s.pin)
            deltas[s.pin.key] = _delta(theirs.open(s), _changes(s.pin.key, None, theirs.open(s)))
        return
    key = s.pin.key if plan.schema is not None else t.pin.key
    if key != t.pin.key:
        plan.renamed[t.pin.key] = key
    base_version = b.pin.lance_version if b is not None else None
    if s.pin.lance_version in (t.pin.lance_version, base_version):
        return
    base_table = bases[0].open(b) if b is not None else None
    changes = _changes(key, base_table, theirs.open(s))
    if t.pin.lance_version == base_version:
        plan.adopted[t.pin.key] = s
        merge = TableMerge()
        merge.put = [change.after for change in changes if change.after is not None]
        merge.delete = [change.id for change in changes if change.after is None]
    else:
        mine = {change.id: change for change in _changes(key, base_table, ours.open(t))}
        others = _other_bases(bases, t) if len(bases) > 1 else None
        merge = decide_table(key, mine, {c.id: c for c in changes}, _resolution(resolve, key), others)
        plan.conflicts += merge.conflicts
    plan.tables[t.pin.key] = merge
    table = ours.open(t) if t.pin.key not in plan.adopted else theirs.open(s)
    deltas[key] = TableDelta(from_dicts(merge.put, _loose(table.schema)), pa.array(merge.delete, pa.utf8()))


def _other_bases(bases: list[Snapshot], table: PinnedTable) -> Callable[[str], list[Row | None]]:
    """The row in every further base: a side that equals one of them did not really change."""
    opened = [
        snapshot.open(pinned)
        for snapshot in bases[1:]
        for pinned in snapshot.tables.values()
        if (pinned.pin.table_id, pinned.pin.incarnation) == (table.pin.table_id, table.pin.incarnation)
    ]

    def rows(id_: str) -> list[Row | None]:
        found = [to_dicts(other.rows_of([id_])) for other in opened]
        return [row[0] if row else None for row in found]

    return rows


def _changes(key: str, before: Table | None, after: Table) -> list[RowChange]:
    return [row for changes in TableDiff(key, before, after).ranges() for row in changes.rows()]


def _delta(table: Table, changes: list[RowChange]) -> TableDelta:
    return TableDelta(from_dicts([c.after for c in changes if c.after is not None], _loose(table.schema)))


def _loose(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_nullable(True) for f in schema])


def _resolution(resolve: Resolve, key: str) -> Resolution | None:
    if resolve is None or isinstance(resolve, str):
        found = resolve
    else:
        found = resolve.get(key.partition(":")[2], resolve.get("*"))
    if found not in (None, "ours", "theirs", "columns"):
        raise InputError(f"there is no resolution '{found}'", hint="the resolutions are ours, theirs and columns")
    return found


# -- judging and staging -----------------------------------------------------------------------------


def _judge(
    plan: MergePlan, catalogs: Catalogs, ours: Snapshot, theirs: Snapshot, deltas: Mapping[str, TableDelta]
) -> None:
    """Apply every rule to what the merge brings to the target."""
    catalog = catalogs.of(theirs if plan.schema is not None else ours)
    committed = _Renamed(CommittedRows(ours), {new: old for old, new in plan.renamed.items()}, plan.new)
    for violation in violations(catalog, Delta(deltas, committed)):
        plan.conflicts.append(_conflict(violation))


class _Renamed:
    """The target's rows under the names the merged schema gives their tables."""

    def __init__(self, rows: CommittedRows, old_key: Mapping[str, str], new: list[Pin]) -> None:
        self._rows = rows
        self._old_key = old_key
        self._new = {pin.key for pin in new}

    def rows_among(self, table_key: str, column: str, values: pa.Array, columns: Any) -> pa.Table:
        """See `Committed`."""
        if table_key in self._new:
            return pa.table({name: pa.array([], pa.utf8()) for name in columns})
        return self._rows.rows_among(self._old_key.get(table_key, table_key), column, values, columns)

    def read(self, table_key: str, columns: Any) -> pa.Table:
        """See `Committed`."""
        if table_key in self._new:
            return pa.table({name: pa.array([], pa.utf8()) for name in columns})
        return self._rows.read(self._old_key.get(table_key, table_key), columns)


def _conflict(violation: Violation) -> Conflict:
    kind = _KINDS[violation.rule]
    named = kind in ("orphan_edge", "unique_violation")
    return Conflict(violation.table_key, violation.row_id if named else None, kind, violation.message)


def _stage(transaction: Transaction, plan: MergePlan, theirs: Snapshot) -> None:
    for key, merge in plan.tables.items():
        if key in plan.adopted:
            transaction.set_version(key, theirs.open(plan.adopted[key]))
        elif merge.put or merge.delete:
            schema = transaction.snapshot.table(key).schema
            transaction.change(key, Change(upsert=from_dicts(merge.put, _loose(schema)), delete=merge.delete))
    for pin in plan.new:
        transaction.adopt_table(pin)
    for key in plan.dropped:
        transaction.drop_table(key)
    for old, new in plan.renamed.items():
        transaction.rename_table(old, new)
    if plan.schema is not None:
        transaction.take_schema(plan.schema)


def conflict_error(conflicts: list[Conflict], source: str, target: str) -> MergeConflict:
    """The error that carries every conflict and shows the first three."""
    shown = ", ".join(f"{c.table_key}:{c.row_id} ({c.kind})" for c in conflicts[:3])
    more = f" and {len(conflicts) - 3} more" if len(conflicts) > 3 else ""
    return MergeConflict(
        f"'{source}' cannot be merged into '{target}': {shown}{more}; the target is unchanged",
        conflicts,
        hint="merge with resolve='ours', 'theirs' or 'columns', or change one of the branches",
    )


def _source(repository: Repository, source: str, target: str) -> Snapshot:
    if source == target:
        raise InputError("a merge needs two different branches")
    return repository.snapshot(source)


def _is_ancestor(repository: Repository, commit_id: str, head_id: str) -> bool:
    commits = repository.all_commits()
    return commit_id in reachable(head_id, lambda one: commits[one].parents)


def _delete(repository: Repository, result: MergeResult) -> MergeResult:
    """A branch that cannot be deleted does not undo its merge."""
    try:
        repository.delete_branch(result.source)
    except OmniGraphError as error:
        return replace(result, branch_deleted=False, branch_delete_error=error.message)
    return replace(result, branch_deleted=True)
