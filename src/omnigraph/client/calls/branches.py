"""Calls of branches, merges and reverts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET

from omnigraph.client.call import Call
from omnigraph.client.calls.handle import CallHandle, at_text
from omnigraph.client.failures import unreadable
from omnigraph.client.local_only import local_parameter
from omnigraph.client.messages import TYPED_JSON
from omnigraph.client.results.history import commit_of, head_of
from omnigraph.client.results.merges import merge_result_of, preview_of, revert_result_of
from omnigraph.errors import InputError
from omnigraph.listing import Listing
from omnigraph.operations.exploration.branch_status import BranchStatus
from omnigraph.operations.merge.conflict_rules import Resolve, check_resolution
from omnigraph.operations.merge.merge import MergeResult
from omnigraph.operations.merge.merge_preview import MergePreview
from omnigraph.operations.merge.revert import RevertResult
from omnigraph.operations.requests import check_seconds
from omnigraph.policy.rules import branch_name
from omnigraph.versioning.compare.rows import to_plain
from omnigraph.versioning.model.ids import system_clock
from omnigraph.versioning.model.manifest_objects import MAIN, Head
from omnigraph.versioning.model.point_text import point_text
from omnigraph.versioning.write.branches import BranchAttributes
from omnigraph.versioning.write.ref_names import check_branch_name
from omnigraph.wire.branches import (
    BranchCreatedDocument,
    BranchDocument,
    BranchListDocument,
    MergeDocument,
    MergePreviewDocument,
    RevertDocument,
    RevertPreviewDocument,
)
from omnigraph.wire.durations import duration_text
from omnigraph.wire.requests.branches import (
    BranchCreateRequest,
    BranchDeleteQuery,
    BranchListQuery,
    BranchMergePreviewRequest,
    BranchMergeRequest,
    BranchQuery,
    BranchUpdateRequest,
    RevertPreviewRequest,
    RevertRequest,
)

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.versioning.write.repository import At, Point


class BranchCalls(CallHandle):
    """Calls of branches, merges and reverts."""

    def branches(self) -> Call[list[str]]:
        """Return every branch except internal heads: main first, then by name. The list prints as a table."""
        answer = yield self._get("branches", accept=TYPED_JSON)
        names = answer.document(BranchListDocument).branches
        return Listing(sorted(names, key=lambda name: (name != MAIN, name)), lambda name: {"branch": name})

    def branch_status(self, base: str = MAIN) -> Call[list[BranchStatus]]:
        """Return every branch with its newest commit and the numbers of commits that only one of it and `base` has."""
        request = self._get("branches", input=BranchListQuery(compare=branch_name(base)), accept=TYPED_JSON)
        found = (yield request).document(BranchListDocument).statuses
        if found is UNSET:
            raise unreadable("it has no statuses")
        return [_status_of(each) for each in found]

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
    ) -> Call[Head]:
        """Create a branch at the head of another one, or at any point of its history; no data is copied.

        The actor owns the branch. After `expires_in`, the next cleanup deletes it, even if its commits are on no other
        branch. `idempotency_key` is as in `mutate`.
        """
        self._check_actor("branch_create", actor)
        BranchAttributes.of(system_clock, description, expires_in)
        input = BranchCreateRequest(
            name=check_branch_name(branch_name(name)),
            from_=self._branch(from_branch),
            at=at_text(at),
            description=description,
            expires_in=None if expires_in is None else duration_text(expires_in),
            message=message,
        )
        answer = yield self._write("branches", input=input, key=idempotency_key, accept=TYPED_JSON)
        return head_of(answer.document(BranchCreatedDocument).branch)

    def head(self, branch: str | None = None) -> Call[Head]:
        """Return the head of a branch: its commit, fork point, owner, description and expiry."""
        request = self._get("branches", self._branch(branch), input=BranchQuery(), accept=TYPED_JSON)
        return head_of((yield request).document(BranchDocument))

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
    ) -> Call[Head]:
        """Set the description of a branch, or the time after which the next cleanup deletes it.

        An absent argument changes nothing. An empty description removes it. `main` cannot expire. `if_commit` and
        `idempotency_key` are as in `mutate`.
        """
        self._check_actor("branch_update", actor)
        name = branch_name(name)
        BranchAttributes.of(system_clock, description, expires_at)
        input = BranchUpdateRequest(description=description, expires_at=time_text(expires_at), message=message)
        request = self._write(
            *("branches", name),
            input=input,
            method="PATCH",
            key=idempotency_key,
            if_commit=if_commit,
            accept=TYPED_JSON,
        )
        return head_of((yield request).document(BranchDocument))

    def branch_delete(
        self,
        name: str,
        *,
        force: bool = False,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[None]:
        """Delete a branch, and with `force` also one with commits that are on no other branch and under no tag.

        With `if_commit`, the head of the branch must be that commit. A repeated call with the same `idempotency_key`
        succeeds, and deletes no branch that was created since.
        """
        self._check_actor("branch_delete", actor)
        name = branch_name(name)
        input = BranchDeleteQuery(force=force, message=message)
        yield self._write(
            *("branches", name),
            input=input,
            method="DELETE",
            key=idempotency_key,
            if_commit=if_commit,
            accept=TYPED_JSON,
        )

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
    ) -> Call[MergeResult]:
        """Merge a branch into `into`, by default the branch of this handle, as one commit.

        Arguments and conflicts are as in `Graph.merge`; the server merges in its memory.
        """
        self._check_actor("merge", actor)
        _check_merge_engine(engine, spark)
        source = branch_name(source)
        input = BranchMergeRequest(
            source=source,
            target=self._branch(into),
            resolve=_resolve(resolve),
            message=message,
            delete_branch=delete_branch,
            allow_policy_breakage=allow_policy_breakage,
            allow_query_breakage=allow_query_breakage,
            force=force,
            source_commit=source_commit,
        )
        request = self._write(
            *("branches", "merge"),
            input=input,
            key=idempotency_key,
            if_commit=if_commit,
            timeout=seconds(timeout),
            cancel=cancel,
            accept=TYPED_JSON,
        )
        return merge_result_of((yield request).document(MergeDocument))

    def merge_preview(
        self,
        source: str,
        into: str | None = None,
        *,
        resolve: Resolve = None,
        source_commit: str | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[MergePreview]:
        """Return the plan of a merge, with its conflicts; nothing is written.

        Arguments are as in `Graph.merge_preview`.
        """
        source = branch_name(source)
        input = BranchMergePreviewRequest(
            source=source, target=self._branch(into), resolve=_resolve(resolve), source_commit=source_commit
        )
        path = ("branches", "merge", "preview")
        request = self._post(*path, input=input, accept=TYPED_JSON, timeout=seconds(timeout), cancel=cancel)
        return preview_of((yield request).document(MergePreviewDocument))

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
    ) -> Call[RevertResult]:
        """Undo one commit as a new commit; `MergeConflict` lists what later commits changed or depend on.

        Arguments are as in `Graph.revert`.
        """
        self._check_actor("revert", actor)
        input = RevertRequest(
            branch=self._branch(branch),
            resolve=_resolve(resolve),
            message=message,
            allow_policy_breakage=allow_policy_breakage,
        )
        request = self._write(
            *("commits", point_text(commit_id), "revert"),
            input=input,
            key=idempotency_key,
            if_commit=if_commit,
            timeout=seconds(timeout),
            cancel=cancel,
            accept=TYPED_JSON,
        )
        return revert_result_of((yield request).document(RevertDocument))

    def revert_preview(
        self,
        commit_id: Point,
        *,
        branch: str | None = None,
        resolve: Resolve = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[MergePreview]:
        """Return the plan of a revert, with its conflicts; nothing is written."""
        input = RevertPreviewRequest(branch=self._branch(branch), resolve=_resolve(resolve))
        path = ("commits", point_text(commit_id), "revert", "preview")
        request = self._post(*path, input=input, accept=TYPED_JSON, timeout=seconds(timeout), cancel=cancel)
        return preview_of((yield request).document(RevertPreviewDocument))


def seconds(timeout: float | None) -> float | None:
    """Return a time limit; raise `InputError` if it is not a number of seconds."""
    if timeout is not None:
        check_seconds(timeout)
    return timeout


def _resolve(resolve: Resolve) -> Any:
    """Return the resolutions of conflicts as JSON values."""
    if resolve is None or isinstance(resolve, str):
        return None if resolve is None else check_resolution(resolve)
    return {name: to_plain(dict(choice)) if isinstance(choice, Mapping) else choice for name, choice in resolve.items()}


def _check_merge_engine(engine: str, spark: Any) -> None:
    if engine == "spark":
        raise local_parameter("merge", "engine='spark'")
    if engine != "memory":
        raise InputError(f"there is no engine '{engine}' for a merge", hint="the engines are memory and spark")
    if spark is not None:
        raise local_parameter("merge", "spark")


def time_text(time: date | Literal["never"] | None) -> str | None:
    """Return a time as requests contain it; without a zone it is in UTC."""
    if not isinstance(time, datetime):
        return None if time is None else str(time)
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).isoformat()


def _status_of(document: BranchDocument) -> BranchStatus:
    compared = document.compared
    if compared is UNSET:
        raise unreadable("a branch is not compared")
    return BranchStatus(head_of(document), commit_of(document.head), compared.name, compared.ahead, compared.behind)
