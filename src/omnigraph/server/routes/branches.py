"""Branches and merges."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import UNSET

from omnigraph.server.audit import read_time
from omnigraph.server.caller import Caller, point_of
from omnigraph.server.messages.answers import Answer
from omnigraph.server.messages.details import commit_document, head_details, typed_members
from omnigraph.server.messages.preconditions import expected_start
from omnigraph.versioning.model.manifest_objects import MAIN, Head
from omnigraph.wire.branches import (
    BranchCreatedDocument,
    BranchDocument,
    BranchListDocument,
    ComparedBranchDocument,
    MergeDocument,
    MergePreviewDocument,
    RefDeletedDocument,
    branch_document,
)
from omnigraph.wire.durations import parse_duration
from omnigraph.wire.requests.branches import (
    BranchCreateRequest,
    BranchDeleteQuery,
    BranchListQuery,
    BranchMergePreviewRequest,
    BranchMergeRequest,
    BranchQuery,
    BranchUpdateRequest,
)
from omnigraph.wire.requests.request import exclude


def list_branches(caller: Caller, body: BranchListQuery) -> BranchListDocument:
    """List the names of the branches; with `compare`, also their newest commits and the commits that differ."""
    if body.compare is not None:
        return _statuses(caller, body, body.compare)
    names = [name for name in sorted(caller.graph.branches()) if body.after is None or name > body.after]
    page = names if body.limit is None else names[: body.limit]
    return BranchListDocument(page, page[-1] if len(page) < len(names) else UNSET)


def _statuses(caller: Caller, body: BranchListQuery, base: str) -> BranchListDocument:
    exclude({"compare": base, "limit": body.limit})
    exclude({"compare": base, "after": body.after})
    documents = []
    for each in caller.graph.branch_status(base):
        compared = ComparedBranchDocument(each.base, each.ahead, each.behind)
        document = branch_document(each.head, commit_document(caller, each.commit), compared)
        document.details = head_details(caller, each.head)
        documents.append(document)
    return BranchListDocument([document.name for document in documents], statuses=documents)


def create_branch(caller: Caller, body: BranchCreateRequest) -> Answer:
    """Create a branch at the head of another one, or at a point of its history."""
    base, name = body.from_ or MAIN, body.name.strip()
    exists = caller.if_commit is not None and name in caller.graph.branches()
    head = caller.graph.branch_create(
        name,
        base,
        expected_start(caller, base, point_of(body.at), exists=exists),
        description=body.description,
        expires_in=parse_duration(body.expires_in) if body.expires_in is not None else None,
        message=body.message,
        idempotency_key=caller.idempotency_key,
    )
    document = BranchCreatedDocument(
        uri=caller.uri, from_=base, name=head.branch, actor_id=caller.actor, graph_commit_id=head.commit_id
    )
    if caller.negotiated.typed:
        document.branch = _branch(caller, head)
    return Answer(document, commit=head.commit_id)


def get_branch(caller: Caller, body: BranchQuery, branch: str) -> Answer:
    """Return the head and the attributes of a branch."""
    head = caller.graph.head(branch)
    document = branch_document(head, commit_document(caller, caller.graph.commit(head.commit_id)))
    document.details = head_details(caller, head)
    if body.compare is not None:
        document.compared = _compared(caller, head.branch, body.compare)
    return Answer(document, commit=head.commit_id)


def update_branch(caller: Caller, body: BranchUpdateRequest, branch: str) -> Answer:
    """Change the description of a branch, or the time at which it expires."""
    head = caller.graph.branch_update(
        branch,
        description=body.description,
        expires_at=_time(body.expires_at),
        message=body.message,
        if_commit=caller.if_commit,
        idempotency_key=caller.idempotency_key,
    )
    return Answer(_branch(caller, head), commit=head.commit_id)


def delete_branch(caller: Caller, body: BranchDeleteQuery, branch: str) -> RefDeletedDocument:
    """Delete a branch; its commits remain readable by id until a cleanup."""
    caller.graph.branch_delete(
        branch,
        force=body.force,
        message=body.message,
        if_commit=caller.if_commit,
        idempotency_key=caller.idempotency_key,
    )
    return RefDeletedDocument(caller.uri, branch.strip(), caller.actor)


def merge_branches(caller: Caller, body: BranchMergeRequest) -> Answer:
    """Merge a branch into another as one commit."""
    result = caller.graph.merge(
        body.source,
        body.target,
        message=body.message,
        resolve=body.resolve,
        delete_branch=body.delete_branch,
        allow_policy_breakage=body.allow_policy_breakage,
        allow_query_breakage=body.allow_query_breakage,
        force=body.force,
        if_commit=caller.if_commit,
        source_commit=body.source_commit,
        idempotency_key=caller.idempotency_key,
        cancel=caller.cancel,
        timeout=caller.long_timeout_s,
    )
    document = MergeDocument.of({**result.to_json(), "actor_id": caller.actor})
    document.commit = caller.commit_document(result.commit_id)
    return Answer(document, commit=result.commit_id)


def preview_merge(caller: Caller, body: BranchMergePreviewRequest) -> MergePreviewDocument:
    """Plan a merge, with all conflicts."""
    plan = caller.graph.merge_preview(
        body.source,
        body.target,
        resolve=body.resolve,
        source_commit=body.source_commit,
        cancel=caller.cancel,
        timeout=caller.timeout_s,
    )
    details = typed_members(caller, source_commit=plan.source_commit, renamed_tables=plan.renamed)
    members = {"source": body.source, "target": body.target, **plan.to_json(caller.row_value), **details}
    return MergePreviewDocument.of(members)


def _branch(caller: Caller, head: Head) -> BranchDocument:
    """Return the document of a branch that this request wrote; the right to write suffices to see it."""
    commit = caller.commit_document(head.commit_id)
    assert commit is not None
    document = branch_document(head, commit)
    document.details = head_details(caller, head)
    return document


def _compared(caller: Caller, branch: str, other: str) -> ComparedBranchDocument:
    ours = {commit.id for commit in caller.graph.commits(branch)}
    theirs = {commit.id for commit in caller.graph.commits(other)}
    return ComparedBranchDocument(other.strip(), len(ours - theirs), len(theirs - ours))


def _time(text: str | None) -> datetime | Literal["never"] | None:
    if text is None:
        return None
    return "never" if text == "never" else read_time(text)
