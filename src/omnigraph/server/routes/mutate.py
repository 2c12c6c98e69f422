"""Changes: mutation queries."""

from __future__ import annotations

from omnigraph.server.answers import Answer
from omnigraph.server.caller import Caller, source_text
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.queries import change_document
from omnigraph.wire.requests.queries import ChangeRequest


def change(caller: Caller, body: ChangeRequest) -> Answer:
    """Run a mutation query as one commit."""
    branch, source = body.branch or MAIN, body.source
    caller.audit["source"] = source
    result = caller.graph.mutate(
        source_text(source),
        body.selected,
        body.params,
        branch=branch,
        message=body.message,
        if_commit=caller.if_commit,
        idempotency_key=caller.idempotency_key,
    )
    commit = caller.commit_document(result.commit_id)
    name = result.rows.query_name or body.selected or ""
    document = change_document(result, branch=branch, query_name=name, actor=caller.actor, commit=commit)
    return Answer(document, commit=result.commit_id)
