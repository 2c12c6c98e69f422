"""Revert of one commit, as a new commit. The history and all later changes stay.

A revert is a merge in which the commit is the base and its first parent is the source. It restores the rows that the
commit changed. If a later commit changed the same rows or depends on them, that is a conflict, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.errors import InputError
from omnigraph.operations.authorization.difference_rights import DifferenceCheck
from omnigraph.operations.merge.conflict_rules import ConflictRules, Resolve
from omnigraph.operations.merge.guarded_merge import MergeRowRules
from omnigraph.operations.merge.merge import (
    check_merged_queries,
    check_merged_rights,
    check_merged_schema,
    conflict_error,
    preview_of,
    publish_schema_copy,
)
from omnigraph.operations.merge.merge_plan import MergePlan, plan_snapshots
from omnigraph.operations.merge.merge_preview import MergePreview
from omnigraph.versioning.feed.commit_changes import commit_pair
from omnigraph.versioning.model.ancestry import reachable
from omnigraph.versioning.model.manifest_objects import Commit
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.idempotency import Earlier, once
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write_once

if TYPE_CHECKING:
    from omnigraph.policy.breakage import SchemaCheck


@dataclass(frozen=True)
class RevertResult:
    """The result of a revert. `commit_id` is None if there was nothing to restore."""

    reverted: str
    branch: str
    commit_id: str | None

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {"reverted_commit_id": self.reverted, "branch": self.branch, "commit_id": self.commit_id}


def revert_commit(
    repository: Repository,
    commit_id: Callable[[], str],
    options: WriteOptions,
    check_difference: DifferenceCheck,
    *,
    resolve: Resolve = None,
    check_schema: SchemaCheck | None = None,
    row_rules: MergeRowRules | None = None,
) -> RevertResult:
    """Revert a commit of a branch, or raise `MergeConflict` with all conflicts.

    `check_difference` refuses changes that the caller may not make, and `check_schema` schemas that the policy does not
    permit. A repetition with the same idempotency key returns the result of the first call. A revert that restores
    nothing is evaluated again.
    """
    return once(
        repository,
        options.request_key,
        lambda: _revert(repository, commit_id(), options, check_difference, resolve, check_schema, row_rules),
        lambda earlier: _restore(options.branch, earlier),
        lambda result: result.commit_id is not None,
    )


def _revert(
    repository: Repository,
    commit_id: str,
    options: WriteOptions,
    check_difference: DifferenceCheck,
    resolve: Resolve,
    check_schema: SchemaCheck | None,
    row_rules: MergeRowRules | None,
) -> RevertResult:
    commit = _commit(repository, commit_id, options.branch)
    plan: MergePlan | None = None

    def prepare(transaction: Transaction) -> None:
        nonlocal plan
        plan = _plan(repository, commit, transaction.snapshot, resolve, row_rules)
        if plan.has_conflicts:
            raise conflict_error(plan, f"commit {commit.id} cannot be reverted")
        check_merged_rights(plan, transaction.snapshot, check_difference)
        check_merged_schema(plan, transaction.snapshot, check_schema)
        check_merged_queries(plan, transaction.snapshot)
        plan.stage(transaction, repository.snapshot(at=commit.parent_id))

    message = options.message or f"revert {commit.message or commit.id}"
    metadata = {**options.metadata, "reverts": commit.id}
    options = replace(options, kind="revert", message=message, metadata=metadata, result={"reverted": commit.id})
    written = write_once(repository, prepare, options)
    if written.earlier is not None:
        return _restore(options.branch, written.earlier)
    if written.commit is not None and plan is not None:
        publish_schema_copy(repository, plan, options.branch)
    return RevertResult(commit.id, options.branch, written.commit.id if written.commit is not None else None)


def _restore(branch: str, earlier: Earlier) -> RevertResult:
    """The result of an earlier revert with the same idempotency key."""
    return RevertResult(earlier.result["reverted"], branch, earlier.commit.id if earlier.commit is not None else None)


def preview_revert(
    repository: Repository,
    commit_id: str,
    branch: str,
    resolve: Resolve = None,
    row_rules: MergeRowRules | None = None,
    check_schema: SchemaCheck | None = None,
) -> MergePreview:
    """Plan a revert, with its conflicts and the rules of the policy that it would break. Nothing is written."""
    commit, ours = _commit(repository, commit_id, branch), repository.snapshot(branch)
    return preview_of(_plan(repository, commit, ours, resolve, row_rules), ours, check_schema)


def _commit(repository: Repository, commit_id: str, branch: str) -> Commit:
    """Get a commit in the history of the branch."""
    commit = repository.get_commit(commit_id)
    # The head is read before the commits: a concurrent writer may add a commit in between.
    head = repository.state().get_head(branch).commit_id
    commits = repository.all_commits()
    if commit_id not in reachable(head, lambda one: commits[one].parents):
        raise InputError(
            f"commit {commit_id} is not in the history of branch '{branch}'", hint="revert it on a branch that has it"
        )
    return commit


def _plan(
    repository: Repository, commit: Commit, ours: Snapshot, resolve: Resolve, row_rules: MergeRowRules | None = None
) -> MergePlan:
    before, after = commit_pair(repository, commit)

    return interruptible(
        partial(
            plan_snapshots,
            "merged",
            [after],
            ours,
            before,
            partial(ConflictRules, resolve),
            row_rules=row_rules,
            restores=True,
        )
    )
