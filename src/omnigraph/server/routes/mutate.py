"""Changes: mutation queries."""

from __future__ import annotations

from omnigraph.operations.requests import source_text
from omnigraph.server.caller import Caller
from omnigraph.server.messages.answers import Answer
from omnigraph.server.messages.content_negotiation import arrow_text
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
        caller.given_params(body.params),
        branch=branch,
        message=body.message,
        if_commit=caller.if_commit,
        idempotency_key=caller.idempotency_key,
        dry_run=body.dry_run,
        cancel=caller.cancel,
        timeout=caller.long_timeout_s,
    )
    commit = caller.commit_document(result.commit_id)
    name = result.rows.query_name or body.selected or ""
    document = change_document(result, branch=branch, query_name=name, actor=caller.actor, commit=commit)
    if caller.negotiated.typed and result.rows.columns:
        document.rows_arrow = arrow_text(result.rows.to_arrow())
    return Answer(document, commit=result.commit_id)
