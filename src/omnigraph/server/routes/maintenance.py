"""Maintenance: compaction, indexes, cleanup, recovery, verification and vectors. All of it runs in the background.

With `Prefer: wait` the answer is sent at the end of the work, with its result.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.errors import Cancelled
from omnigraph.operations.stoppable import stoppable
from omnigraph.server.caller import Caller
from omnigraph.server.messages.answers import Background
from omnigraph.server.messages.preconditions import expect_head, refuse_if_match
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.upkeep.maintenance import TableStats, check_retention
from omnigraph.wire.durations import parse_duration
from omnigraph.wire.loads import EmbedDocument
from omnigraph.wire.maintenance import (
    CleanupDocument,
    OptimizeDocument,
    ProblemDocument,
    RecoverDocument,
    VerifyDocument,
    cleanup_document,
    verify_document,
)
from omnigraph.wire.requests.maintenance import (
    CleanupRequest,
    EmbedRequest,
    IndicesRequest,
    OptimizeRequest,
    RecoverRequest,
    VerifyRequest,
)


def optimize(caller: Caller, body: OptimizeRequest) -> Background:
    """Compact the tables of a branch, update its indexes and build its search structures."""
    branch = body.branch or MAIN
    expect_head(caller, branch)

    def work() -> OptimizeDocument:
        with stoppable("optimization", caller.cancel, None, writes=True):
            tables = caller.graph.optimize(branch, message=body.message, idempotency_key=caller.idempotency_key)
        return _optimized(caller, branch, tables)

    return Background(work)


def build_indices(caller: Caller, body: IndicesRequest) -> Background:
    """Build the indexes and search structures that the tables lack."""
    branch = body.branch or MAIN
    expect_head(caller, branch)

    def work() -> OptimizeDocument:
        with stoppable("indexing", caller.cancel, None, writes=True):
            tables = caller.graph.ensure_indices(branch, message=body.message, idempotency_key=caller.idempotency_key)
        return _optimized(caller, branch, tables)

    return Background(work)


def cleanup(caller: Caller, body: CleanupRequest) -> Background:
    """Remove old versions that no branch, tag or kept commit uses; without `confirm`, list them."""
    refuse_if_match(caller)
    age = parse_duration(body.older_than) if body.older_than is not None else None
    check_retention(body.keep, age)

    def work() -> CleanupDocument:
        _check_start(caller, "cleanup")
        tables = caller.graph.cleanup(keep=body.keep, older_than=age, confirm=body.confirm, message=body.message)
        documents = [{**table.to_json(), "folder": table.folder} for table in tables]
        return cleanup_document(caller.uri, body.keep, age, documents, confirmed=body.confirm)

    return Background(work)


def recover(caller: Caller, body: RecoverRequest) -> Background:
    """Complete or roll back interrupted writes."""
    refuse_if_match(caller)

    def work() -> RecoverDocument:
        _check_start(caller, "recovery")
        outcomes = caller.graph.recover()
        return RecoverDocument.of({"uri": caller.uri, "settled": [outcome.to_json() for outcome in outcomes]})

    return Background(work)


def verify(caller: Caller, body: VerifyRequest) -> Background:
    """Read the whole graph and check every invariant."""
    refuse_if_match(caller)

    def work() -> VerifyDocument:
        with stoppable("verification", caller.cancel, None):
            found = caller.graph.verify(deep=body.deep)
        problems = [ProblemDocument(problem.where, problem.what) for problem in found if problem.damage]
        remarks = [ProblemDocument(problem.where, problem.what) for problem in found if not problem.damage]
        return verify_document(caller.uri, problems, remarks, deep=body.deep)

    return Background(work)


def embed(caller: Caller, body: EmbedRequest) -> Background:
    """Compute the missing vectors of texts as one commit."""
    branch = body.branch or MAIN
    expect_head(caller, branch)

    def work() -> EmbedDocument:
        with stoppable("embedding", caller.cancel, None, writes=True):
            result = caller.graph.embed(
                types=body.types,
                again=body.again,
                branch=branch,
                message=body.message,
                if_commit=caller.if_commit,
                idempotency_key=caller.idempotency_key,
            )
        document = EmbedDocument.of({"uri": caller.uri, **result.to_json(), "actor_id": caller.actor})
        document.commit = caller.commit_document(result.commit_id)
        return document

    return Background(work)


def _optimized(caller: Caller, branch: str, tables: Sequence[TableStats]) -> OptimizeDocument:
    documents = [
        {**table.to_json(), "fragments_before": table.fragments_before, "fragments_after": table.fragments_after}
        for table in tables
    ]
    return OptimizeDocument.of({"uri": caller.uri, "branch": branch, "tables": documents})


def _check_start(caller: Caller, name: str) -> None:
    """Raise `Cancelled` before work that runs to its end once it has started."""
    if caller.cancel.cancelled:
        raise Cancelled(f"the {name} was cancelled; nothing was changed")
