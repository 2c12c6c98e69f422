"""Merge of one branch into another: find the base, plan, and publish one commit with two parents.

All conflicts are reported at once, and nothing is written while there is one. A revert uses the same plan: the commit
is the base and its first parent is the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.errors import (
    BranchNotFound,
    Hint,
    InputError,
    MergeConflict,
    OmniGraphError,
    PreconditionFailed,
    SchemaChangeError,
)
from omnigraph.errors import Conflict as ConflictError
from omnigraph.operations.authorization.difference_rights import DifferenceCheck
from omnigraph.operations.merge.column_mapping import document
from omnigraph.operations.merge.conflict_rules import ConflictRules, Resolve
from omnigraph.operations.merge.guarded_merge import MergeRowRules
from omnigraph.operations.merge.merge_plan import MergePlan, plan_snapshots
from omnigraph.operations.merge.merge_preview import MergeOutcome, MergePreview
from omnigraph.operations.merge.merge_schema import SchemaMerge
from omnigraph.operations.merge.merge_tasks import RunRanges
from omnigraph.operations.stored_queries import check_queries
from omnigraph.schema.identity import catalog_of
from omnigraph.text_table import brief_repr
from omnigraph.versioning.compare.diff import Identity, by_identity
from omnigraph.versioning.compare.rows import to_dicts
from omnigraph.versioning.compare.three_way import ConflictDetail, Resolution, Row, VirtualBase, decide_row
from omnigraph.versioning.model.ancestry import merge_bases, reachable
from omnigraph.versioning.model.manifest_objects import MAIN, Commit
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.branches import delete_branch
from omnigraph.versioning.write.idempotency import Earlier, hash_request, once
from omnigraph.versioning.write.ref_changes import RefRequest
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write_once

if TYPE_CHECKING:
    from omnigraph.policy.breakage import SchemaCheck

HIDDEN_CONFLICTS_HINT = "ask an actor who can read the rows to merge"
_RESOLUTIONS: tuple[Resolution, ...] = ("ours", "theirs", "columns")


@dataclass(frozen=True)
class MergeResult:
    """The result of a merge."""

    source: str
    target: str
    outcome: MergeOutcome
    commit_id: str | None
    actor: str | None = None
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None
    schema_steps: tuple[str, ...] = ()
    """The changes of the target's schema, one line each."""

    def __repr__(self) -> str:
        return brief_repr(self)

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        data: dict[str, Any] = {
            "source": self.source,
            "target": self.target,
            "outcome": self.outcome,
            "commit_id": self.commit_id,
            "actor_id": self.actor,
        }
        if self.schema_steps:
            data["schema_steps"] = list(self.schema_steps)
        if self.branch_deleted is not None:
            data["branch_deleted"] = self.branch_deleted
        if self.branch_delete_error is not None:
            data["branch_delete_error"] = self.branch_delete_error
        return data


@dataclass(frozen=True)
class MergeRequest:
    """A merge of `source` into the branch of `options`."""

    source: str
    options: WriteOptions
    check_difference: DifferenceCheck
    """Refuses changes of the target's schema and stored queries that the caller may not make."""
    resolve: Resolve = None
    delete_branch: bool = False
    """Delete the source branch after the merge."""
    row_rules: MergeRowRules | None = None
    """The rules for rows and properties of the caller; None if there are none."""
    run_ranges: RunRanges | None = None
    """Distributes large tables over other processes. Without it, this process decides all ranges."""
    check_schema: SchemaCheck | None = None
    """Refuses changes of the target's schema that the policy does not permit."""
    allow_query_breakage: bool = False
    """Permits that stored queries do not fit the merged schema."""
    source_commit: str | None = None
    """The commit at which the head of the source must be; None is any."""

    @property
    def keyed_options(self) -> WriteOptions:
        """The options with the hash of the request."""
        arguments: tuple[Any, ...] = self.source, self.options.branch, self.resolve, self.delete_branch
        if self.source_commit is not None:
            arguments = *arguments, self.source_commit
        return replace(self.options, request_hash=hash_request("merge", *arguments))


def merge_branch(repository: Repository, request: MergeRequest) -> MergeResult:
    """Merge a branch into another one, or raise `MergeConflict` with all conflicts.

    A repetition with the same idempotency key returns the result of the first call. It deletes the source branch if
    the first call merged it and could not delete it. A merge that is already up to date is evaluated again.
    """
    key = request.keyed_options.request_key
    return once(
        repository,
        key,
        lambda: _merge(repository, request),
        lambda earlier: _restore(repository, request, earlier),
        lambda result: result.commit_id is not None,
    )


def _merge(repository: Repository, request: MergeRequest) -> MergeResult:
    source, options = request.source, request.keyed_options
    theirs = _source(repository, source, options.branch, request.source_commit)
    ours = repository.snapshot(options.branch)
    if options.if_commit not in (None, ours.commit_id):
        raise PreconditionFailed(options.branch, expected=options.if_commit, actual=ours.commit_id)
    incarnation = repository.state().get_head(source).incarnation
    result = MergeResult(source, options.branch, "already_up_to_date", None, options.actor)
    plan: MergePlan | None = None

    def prepare(transaction: Transaction) -> None:
        nonlocal plan, result
        plan = plan_merge(
            repository, transaction.snapshot, theirs, request.resolve, request.run_ranges, request.row_rules
        )
        if plan.has_conflicts:
            raise conflict_error(plan, f"'{source}' cannot be merged into '{options.branch}'")
        check_merged_rights(plan, transaction.snapshot, request.check_difference)
        check_merged_schema(plan, transaction.snapshot, request.check_schema)
        if not request.allow_query_breakage:
            check_merged_queries(plan, transaction.snapshot)
        if plan.outcome != "already_up_to_date":
            plan.stage(transaction, theirs)
        named = plan.schema is not None and not plan.guarded
        steps = tuple(step.describe() for step in plan.schema.steps) if plan.schema is not None and named else ()
        result = replace(result, outcome=plan.outcome, schema_steps=steps)
        recorded = {"outcome": result.outcome, "schema_steps": list(steps), "source_incarnation": incarnation}
        transaction.options = replace(transaction.options, result=recorded)

    if not _is_ancestor(repository, theirs.commit_id, ours.commit_id):
        pinned = replace(options, kind="merge", merged_parent=theirs.commit_id)
        written = write_once(repository, prepare, pinned)
        if written.earlier is not None:
            return _restore(repository, request, written.earlier)
        assert plan is not None
        assert written.commit is not None
        publish_schema_copy(repository, plan, options.branch)
        result = replace(result, commit_id=written.commit.id)
    return _delete(repository, request, result) if request.delete_branch else result


def check_merged_rights(plan: MergePlan, ours: Snapshot, check: DifferenceCheck) -> None:
    """Refuse a plan whose difference to the target the caller may not make."""
    if plan.schema is not None:
        check(ours, plan.schema.record or ours.schema, plan.queries)


def check_merged_schema(plan: MergePlan, ours: Snapshot, check: SchemaCheck | None) -> None:
    """Refuse a plan whose change of the target's schema the policy does not permit."""
    if check is not None and plan.schema is not None and plan.schema.record is not None:
        check.check(catalog_of(document(ours.schema)), plan.schema.catalog)


def preview_of(plan: MergePlan, ours: Snapshot, check: SchemaCheck | None) -> MergePreview:
    """Return the preview of a plan, with the rules of the policy that it would break."""
    preview, schema = plan.preview(), plan.schema
    if check is None or plan.guarded or schema is None or schema.record is None:
        return preview
    return replace(preview, broken_rules=check.broken(catalog_of(document(ours.schema)), schema.catalog))


def check_merged_queries(plan: MergePlan, ours: Snapshot) -> None:
    """Refuse a plan that breaks stored queries, by its schema or because they do not fit it."""
    schema = plan.schema
    if schema is None or (schema.record is None and plan.queries.hash == ours.queries_hash):
        return
    try:
        check_queries(ours, catalog_of(document(ours.schema)), plan.queries, schema.catalog, what="the merge")
    except SchemaChangeError as error:
        if not plan.guarded:
            raise
        # The texts of queries can contain names that the caller cannot see.
        raise SchemaChangeError(
            "the merge would break stored queries; nothing was changed", code=error.code, hint=error.hint
        ) from None


def _restore(repository: Repository, request: MergeRequest, earlier: Earlier) -> MergeResult:
    """The result of an earlier merge with the same idempotency key."""
    options, recorded = request.options, earlier.result
    commit_id = earlier.commit.id if earlier.commit is not None else None
    steps = tuple(recorded["schema_steps"])
    result = MergeResult(
        request.source, options.branch, recorded["outcome"], commit_id, options.actor, schema_steps=steps
    )
    if not request.delete_branch:
        return result
    head = repository.state().find_head(request.source)
    if head is None or head.incarnation != recorded["source_incarnation"]:
        return replace(result, branch_deleted=True)
    return _delete(repository, request, result)


def preview_merge(
    repository: Repository,
    source: str,
    target: str,
    resolve: Resolve = None,
    row_rules: MergeRowRules | None = None,
    source_commit: str | None = None,
    check_schema: SchemaCheck | None = None,
) -> MergePreview:
    """Plan a merge, with its conflicts and the rules of the policy that it would break. Nothing is written."""
    theirs = _source(repository, source, target, source_commit)
    ours = repository.snapshot(target)
    return preview_of(plan_merge(repository, ours, theirs, resolve, row_rules=row_rules), ours, check_schema)


def plan_merge(
    repository: Repository,
    ours: Snapshot,
    theirs: Snapshot,
    resolve: Resolve,
    run_ranges: RunRanges | None = None,
    row_rules: MergeRowRules | None = None,
    rules: type[ConflictRules] = ConflictRules,
) -> MergePlan:
    """Plan the merge of two snapshots."""
    commits = repository.all_commits()
    bases = _ordered_bases(commits, ours.commit_id, theirs.commit_id)
    if not bases:
        raise ConflictError("the branches have no common history")
    if theirs.commit_id in bases:
        return MergePlan("already_up_to_date", theirs.commit_id)
    outcome: MergeOutcome = "fast_forward" if ours.commit_id in bases else "merged"
    snapshots = [repository.snapshot(at=commit_id) for commit_id in bases]
    plan = partial(
        plan_snapshots,
        outcome,
        snapshots,
        ours,
        theirs,
        partial(rules, resolve),
        _VirtualBases(repository, commits, bases).of,
        run_ranges,
        row_rules,
    )
    return interruptible(plan)


def conflict_error(plan: MergePlan, what: str) -> MergeConflict:
    """The error with all visible conflicts. Its message shows the first three, and counts the hidden ones."""
    conflicts = plan.conflicts
    shown = ", ".join(f"{conflict.id} ({conflict.kind})" for conflict in conflicts[:3])
    more = f" and {len(conflicts) - 3} more" if len(conflicts) > 3 else ""
    found = [f"{shown}{more}"] if conflicts else []
    hint = resolution_hint(conflicts)
    if plan.hidden_conflicts:
        found.append(hidden_conflicts_text(plan.hidden_conflicts))
        if not conflicts:
            hint = Hint(HIDDEN_CONFLICTS_HINT, cli=HIDDEN_CONFLICTS_HINT)
    return MergeConflict(f"{what}: {'; '.join(found)}; the target is unchanged", conflicts, hint=hint)


def hidden_conflicts_text(count: int) -> str:
    """The number of conflicts that the caller cannot see, in words."""
    return "1 conflict is hidden from you" if count == 1 else f"{count} conflicts are hidden from you"


def resolution_hint(conflicts: Sequence[ConflictDetail]) -> Hint:
    """A hint with the resolutions that apply to these conflicts, for each interface."""
    rows: list[tuple[Resolution, ...]] = [conflict.resolutions for conflict in conflicts if conflict.resolutions]
    words = [word for word in _RESOLUTIONS if all(word in resolutions for resolutions in rows)]
    by_id = next((conflict.id for conflict in conflicts if conflict.row_id and not conflict.resolutions), None)
    python, cli = [], []
    if rows:
        them = "it" if len(rows) == 1 else "them"
        python.append(f"resolve={' or '.join(repr(word) for word in words)} resolves {them}, by type or one by one")
        cli.append(f"--resolve {'|'.join(words)} resolves {them}")
    if by_id is not None:
        python.append(f"resolve={{'{by_id}': …}} names one row: 'ours', 'theirs', values, or None to delete it")
        cli.append(f"--resolve '{by_id}=HOW' names one row: ours, theirs, values, or null to delete it")
    if any("columns" in resolutions for resolutions in rows):
        python.append("'merge { properties: combine }' in the schema combines edits of different properties")
        cli.append(python[-1])
    if any(conflict.kind == "schema_conflict" for conflict in conflicts):
        python.append("change the schema of one branch: a schema conflict has no resolution")
        cli.append(python[-1])
    if not python:
        python.append("change one of the branches")
        cli.append(python[-1])
    shell = "resolve the conflicts with 'omnigraph branch merge --resolve', or change one of the branches"
    return Hint("; ".join(python), cli="; ".join(cli), in_shell=shell)


def publish_schema_copy(repository: Repository, plan: MergePlan, branch: str) -> None:
    """Update the readable copy of main's schema."""
    if branch == MAIN and plan.schema is not None and plan.schema.record is not None:
        repository.write_schema_copy(plan.schema.record.source)


# -- base --------------------------------------------------------------------------------------------


def _ordered_bases(commits: Mapping[str, Commit], ours: str, theirs: str) -> list[str]:
    """All lowest common ancestors, newest first."""
    bases = merge_bases(ours, theirs, commits)
    return sorted(bases, key=lambda commit_id: commits[commit_id].manifest_version, reverse=True)


@dataclass(frozen=True)
class _VirtualBases:
    """The virtual base of several common ancestors: their own merge, computed row by row on demand.

    Where the ancestors disagree, the row of their own base is used. Then neither side counts as unchanged, and a
    difference is a conflict: it is reported twice rather than lost.
    """

    repository: Repository
    commits: Mapping[str, Commit]
    bases: Sequence[str]

    def of(self, identity: Identity, schema: SchemaMerge) -> VirtualBase | None:
        """The rows of one table in the columns of the merged schema; None if there is only one ancestor."""
        if len(self.bases) == 1:
            return None
        return lambda ids: self._rows(self.bases, identity, schema, ids)

    def _rows(
        self, bases: Sequence[str], identity: Identity, schema: SchemaMerge, ids: pa.Array
    ) -> dict[str, Row | None]:
        first, *others = bases
        merged = self._read(first, identity, schema, ids)
        for other in others:
            theirs = self._read(other, identity, schema, ids)
            meeting = _ordered_bases(self.commits, first, other)
            older = self._rows(meeting, identity, schema, ids) if meeting else dict.fromkeys(merged)
            for id_, row in merged.items():
                agreed, decided = decide_row(older[id_], row, theirs[id_])
                merged[id_] = decided if agreed else older[id_]
        return merged

    def _read(self, commit_id: str, identity: Identity, schema: SchemaMerge, ids: pa.Array) -> dict[str, Row | None]:
        rows: dict[str, Row | None] = dict.fromkeys(ids.to_pylist())
        snapshot = self.repository.snapshot(at=commit_id)
        table = by_identity(snapshot).get(identity)
        if table is None:
            return rows
        names = schema.names(snapshot, identity)
        for row in to_dicts(snapshot.open(table).rows_of(list(rows))):
            renamed = row if names is None else {names[name]: value for name, value in row.items() if name in names}
            rows[row["id"]] = renamed
        return rows


# -- helpers -----------------------------------------------------------------------------------------


def _source(repository: Repository, source: str, target: str, expected: str | None) -> Snapshot:
    """Return the head of the source, which must be an expected commit if one is given."""
    if source == target:
        raise InputError("a merge needs two different branches")
    found = repository.snapshot(source)
    if expected not in (None, found.commit_id):
        assert expected is not None
        raise PreconditionFailed(source, expected=expected, actual=found.commit_id)
    return found


def _is_ancestor(repository: Repository, commit_id: str, head_id: str) -> bool:
    commits = repository.all_commits()
    return commit_id in reachable(head_id, lambda one: commits[one].parents)


def _delete(repository: Repository, request: MergeRequest, result: MergeResult) -> MergeResult:
    """Delete the source branch. A failure is reported in the result and does not undo the merge.

    If the merge made no commit, the deletion records the idempotency key.
    """
    options = request.keyed_options
    key = options.request_key if result.commit_id is None else None
    by = RefRequest(options.actor, options.message, options.metadata, key)
    recorded: dict[str, Any] = {"outcome": result.outcome, "schema_steps": [], "source_incarnation": None}
    try:
        delete_branch(repository, result.source, force=False, request=by, result=recorded)
    except BranchNotFound:
        # Another call deleted it in the meantime.
        return replace(result, branch_deleted=True)
    except OmniGraphError as error:
        return replace(result, branch_deleted=False, branch_delete_error=error.message)
    return replace(result, branch_deleted=True)
