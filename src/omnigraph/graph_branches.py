"""`GraphBranches`: the methods of `Graph` that create, merge and delete branches, revert commits, and manage tags."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.graph_changes import GraphChanges
from omnigraph.operations.stoppable import stoppable
from omnigraph.versioning.model.manifest_objects import MAIN

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.operations.exploration.branch_status import BranchStatus
    from omnigraph.operations.merge.conflict_rules import Resolve
    from omnigraph.operations.merge.merge import MergeResult
    from omnigraph.operations.merge.merge_preview import MergePreview
    from omnigraph.operations.merge.revert import RevertResult
    from omnigraph.versioning.model.manifest_objects import Head, Tag
    from omnigraph.versioning.write.repository import At, Point


class GraphBranches(GraphChanges):
    """Branches and tags of a graph."""

    def branches(self) -> list[str]:
        """Return every branch except internal heads: main first, then by name. The list prints as a table."""
        return self._history.branches()

    def branch_status(self, base: str = MAIN) -> list[BranchStatus]:
        """Return every branch with its newest commit and the numbers of commits that only one of it and `base` has.

        One pass over the history compares all branches. Branches that the caller may not read are left out.
        """
        return self._history.branch_status(self._name(base))

    def branch_create(
        self,
        name: str,
        from_branch: str | None = None,
        at: At = None,
        *,
        description: str | None = None,
        expires_in: timedelta | None = None,
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> Head:
        """Create a branch at the head of another one, or at any point of its history; no data is copied.

        The actor owns the branch. After `expires_in`, the next cleanup deletes it, even if its commits are on no other
        branch. `idempotency_key` is as in `mutate`.
        """
        from omnigraph.versioning.write.branches import BranchAttributes
        from omnigraph.versioning.write.ref_changes import keyed

        request = keyed(
            self._ref_request(actor, message, idempotency_key),
            "branch_create",
            *(name, self._branch(from_branch), at, description, expires_in),
        )
        attributes = BranchAttributes.of(self._repository.clock, description, expires_in)
        return self._history.create_branch(self._name(name), self._branch(from_branch), at, attributes, request)

    def head(self, branch: str | None = None) -> Head:
        """Return the head of a branch: its commit, fork point, owner, description and expiry."""
        # Without `GraphHistory`, which imports merges and diffs: writers read the head before a conditional write.
        return self._context.head(self._branch(branch))

    def branch_update(
        self,
        name: str,
        *,
        description: str | None = None,
        expires_at: datetime | Literal["never"] | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> Head:
        """Set the description of a branch, or the time after which the next cleanup deletes it.

        An absent argument changes nothing. An empty description removes it. `main` cannot expire. `if_commit` and
        `idempotency_key` are as in `mutate`.
        """
        from omnigraph.versioning.write.branches import BranchAttributes
        from omnigraph.versioning.write.ref_changes import keyed

        request = keyed(
            self._ref_request(actor, message, idempotency_key), "branch_update", name, description, expires_at
        )
        attributes = BranchAttributes.of(self._repository.clock, description, expires_at)
        return self._history.update_branch(self._name(name), attributes, request, if_commit=if_commit)

    def branch_delete(
        self,
        name: str,
        *,
        force: bool = False,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Delete a branch, and with `force` also one with commits that are on no other branch and under no tag.

        With `if_commit`, the head of the branch must be that commit. A repeated call with the same `idempotency_key`
        succeeds, and deletes no branch that was created since.
        """
        request = self._ref_request(actor, message, idempotency_key)
        self._history.delete_branch(self._name(name), request, force=force, if_commit=if_commit)

    def merge(
        self,
        source: str,
        into: str | None = None,
        *,
        actor: str | None = None,
        message: str | None = None,
        resolve: Resolve = None,
        delete_branch: bool = False,
        allow_policy_breakage: bool = False,
        allow_query_breakage: bool = False,
        force: bool = False,
        if_commit: str | None = None,
        source_commit: str | None = None,
        idempotency_key: str | None = None,
        engine: str = "memory",
        spark: Any = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> MergeResult:
        """Merge a branch into `into`, by default the branch of this handle, as one commit.

        `MergeConflict` lists all conflicts. `resolve` resolves row conflicts: "ours", "theirs" or "columns" for all, or
        a dict by type (`{"Person": "theirs", "*": "columns"}`), by property (`{"Person.age": "ours"}`) or by the id of
        a conflict, which also takes values (`{"node:Person:ana": {"age": 31}}`) or None to delete the row. A merge that
        would make rules for rows of the policy invalid is refused, unless `allow_policy_breakage`, and one that would
        make stored queries invalid, unless `allow_query_breakage`. A branch whose rules need approvals or checks takes
        a proposal only; `force` merges past these rules, by the action `proposal_bypass` of the policy.
        With `engine="spark"`, tables with very many changed rows are merged on Spark; `spark` is as in `query`.
        `if_commit`, the head of `into`, and `idempotency_key` are as in `mutate`, `cancel` and `timeout` as in `load`.
        With `source_commit`, the head of the source must be that commit, too.
        """
        source = self._name(source)
        expected = {"if_commit": if_commit, "idempotency_key": idempotency_key}
        options = self._guarded_options(into, actor, message, action="branch_merge", source=source, **expected)
        self._history.check_proposal_rules(source, options.branch, force=force)
        if delete_branch:
            self._context.check("branch_delete", None, source)
        with stoppable("merge", cancel, timeout, writes=True):
            return self._history.merge(
                source,
                options,
                resolve,
                delete_branch=delete_branch,
                allow_policy_breakage=allow_policy_breakage,
                allow_query_breakage=allow_query_breakage,
                engine=engine,
                spark=spark,
                source_commit=source_commit,
            )

    def merge_preview(
        self,
        source: str,
        into: str | None = None,
        *,
        resolve: Resolve = None,
        source_commit: str | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> MergePreview:
        """Return the plan of a merge, with its conflicts; nothing is written.

        `settled` of the plan has the rows whose conflicts `resolve` settles. `source_commit` is as in `merge`.
        """
        with stoppable("preview", cancel, timeout):
            return self._history.preview_merge(self._name(source), self._branch(into), resolve, source_commit)

    def revert(
        self,
        commit_id: Point,
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        resolve: Resolve = None,
        allow_policy_breakage: bool = False,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> RevertResult:
        """Undo one commit as a new commit; `MergeConflict` lists what later commits changed or depend on.

        The commit is named by its id or any other point, such as a tag. A merge is reverted to its first parent. In
        `resolve`, "theirs" is the state before the commit. `allow_policy_breakage` is as in `merge`, `if_commit` and
        `idempotency_key` are as in `mutate`, `cancel` and `timeout` as in `load`.
        """
        options = self._guarded_options(branch, actor, message, if_commit=if_commit, idempotency_key=idempotency_key)
        with stoppable("revert", cancel, timeout, writes=True):
            return self._history.revert(commit_id, options, resolve, allow_policy_breakage=allow_policy_breakage)

    def revert_preview(
        self,
        commit_id: Point,
        *,
        branch: str | None = None,
        resolve: Resolve = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> MergePreview:
        """Return the plan of a revert, with its conflicts; nothing is written."""
        with stoppable("preview", cancel, timeout):
            return self._history.preview_revert(commit_id, self._branch(branch), resolve)

    def tag_create(
        self,
        name: str,
        at: At = None,
        *,
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> Tag:
        """Name a point of history, by default this branch's head. A cleanup keeps the data of every tag.

        `idempotency_key` is as in `mutate`.
        """
        return self._history.create_tag(name, self.branch, at, self._ref_request(actor, message, idempotency_key))

    def tags(self) -> list[Tag]:
        """Return every tag, by name. The list prints as a table."""
        return self._history.tags()

    def tag_delete(
        self,
        name: str,
        *,
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Delete a tag; its commit can be read by its id until a cleanup.

        A repeated call with the same `idempotency_key` succeeds, and deletes no tag that was created since.
        """
        self._history.delete_tag(name, self._ref_request(actor, message, idempotency_key))
