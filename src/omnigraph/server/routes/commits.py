"""Commits: their list, one commit, its changes, and its revert."""

from __future__ import annotations

from msgspec import UNSET

from omnigraph.operations.exploration.branch_status import EVERY_BRANCH
from omnigraph.server.audit import read_time
from omnigraph.server.caller import Caller
from omnigraph.server.messages.answers import Answer, Chunks
from omnigraph.server.messages.content_negotiation import LIST_HINT, check_json, line_chunks
from omnigraph.server.messages.details import commit_detail, commit_document, typed_members
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.model.point_text import parse_point
from omnigraph.wire.branches import RevertDocument, RevertPreviewDocument
from omnigraph.wire.change_feed import commit_changes_document
from omnigraph.wire.changes import CommitChangesDocument
from omnigraph.wire.commits import CommitListDocument
from omnigraph.wire.json_lines import EndDocument, StreamMetadataDocument
from omnigraph.wire.requests.branches import RevertPreviewRequest, RevertRequest
from omnigraph.wire.requests.commits import CommitChangesQuery, CommitListQuery, CommitQuery


def list_commits(caller: Caller, body: CommitListQuery) -> Answer | Chunks:
    """List the commits of a branch, newest first."""
    branch, limit = body.branch or MAIN, body.limit
    newest = caller.graph.commits(branch, 1)
    head = newest[0].id if newest else None
    more = None if limit is None else limit + 1
    found = caller.graph.commits(
        branch,
        more,
        after=body.start,
        actor=body.actor,
        kind=body.kind,
        types=body.type,
        text=body.text,
        since=None if body.since is None else read_time(body.since),
        until=None if body.until is None else read_time(body.until),
    )
    page = found[:limit]
    next_ = page[-1].id if len(page) < len(found) else UNSET
    if caller.negotiated.form == "ndjson":
        metadata = StreamMetadataDocument(content="commits", branch=branch, graph_commit_id=head)
        documents = (commit_document(caller, commit) for commit in page)
        chunks = line_chunks(
            metadata, documents, lambda count: EndDocument(rows=count, graph_commit_id=head, next=next_)
        )
        return Chunks(chunks, caller.negotiated.content_type, commit=head)
    check_json("rows", len(page), caller.state.settings.limits.json_rows, LIST_HINT)
    document = CommitListDocument([commit_document(caller, commit) for commit in page], next_)
    if branch == EVERY_BRANCH:
        access = caller.access
        readable = [name for name in caller.graph.branches() if access is None or access.decide("read", name).allowed]
        document.heads = {name: caller.graph.head(name).commit_id for name in readable}
        document.tags = {tag.name: tag.commit_id for tag in caller.graph.tags()}
    return Answer(document, commit=head)


def get_commit(caller: Caller, body: CommitQuery, commit_id: str) -> Answer:
    """Return one commit."""
    commit = caller.graph.on(body.branch or MAIN).commit(parse_point(commit_id))
    return Answer(commit_document(caller, commit), commit=commit.id)


def get_commit_changes(caller: Caller, body: CommitChangesQuery, commit_id: str) -> Answer:
    """Return the changes of one commit relative to its first parent."""
    block = caller.graph.on(body.branch or MAIN).commit_changes(
        parse_point(commit_id),
        kinds=body.kind,
        types=body.type,
        ops=body.op,
        changes_max=body.changes_max,
        page=body.page_token,
        cancel=caller.cancel,
        timeout=caller.timeout_s,
    )
    changes = CommitChangesDocument.of({**block.to_json(caller.row_value), "page": block.page})
    changes.cause.commit = commit_detail(caller, block.commit)
    return Answer(commit_changes_document(changes), commit=block.commit.id)


def revert_commit(caller: Caller, body: RevertRequest, commit_id: str) -> Answer:
    """Undo one commit by a new commit."""
    result = caller.graph.revert(
        parse_point(commit_id),
        branch=body.branch,
        message=body.message,
        resolve=body.resolve,
        allow_policy_breakage=body.allow_policy_breakage,
        if_commit=caller.if_commit,
        idempotency_key=caller.idempotency_key,
        cancel=caller.cancel,
        timeout=caller.long_timeout_s,
    )
    document = RevertDocument.of({**result.to_json(), "actor_id": caller.actor})
    document.commit = caller.commit_document(result.commit_id)
    return Answer(document, commit=result.commit_id)


def preview_revert(caller: Caller, body: RevertPreviewRequest, commit_id: str) -> Answer:
    """Plan a revert, with all conflicts."""
    reverted = caller.graph.snapshot(body.branch, parse_point(commit_id)).commit_id
    plan = caller.graph.revert_preview(
        reverted, branch=body.branch, resolve=body.resolve, cancel=caller.cancel, timeout=caller.timeout_s
    )
    details = typed_members(caller, source_commit=plan.source_commit, renamed_tables=plan.renamed)
    members = {"reverted_commit_id": reverted, "branch": body.branch, **plan.to_json(caller.row_value), **details}
    return Answer(RevertPreviewDocument.of(members))
