"""Reads: queries, plans and lint reports."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.engine.exec.context import Limits
from omnigraph.operations.requests import source_text
from omnigraph.query.lint import with_utf16_offsets
from omnigraph.server.caller import Caller, point_of
from omnigraph.server.messages.answers import Rows
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.queries import ExplainDocument, TargetDocument
from omnigraph.wire.requests.queries import ExplainRequest, LintRequest, ProfileRequest, QueryLimits, ReadRequest
from omnigraph.wire.schemas import LintDocument


def read(caller: Caller, body: ReadRequest) -> Rows:
    """Run a read query."""
    result = caller.graph.query(
        source_text(body.source),
        body.selected,
        caller.given_params(body.params),
        branch=body.branch,
        at=point_of(body.point),
        limits=narrowed(caller.limits, body.limits),
        engine="memory",
        page=body.page,
        after=body.after,
    )
    return Rows(result, target_of(body))


def explain(caller: Caller, body: ExplainRequest) -> ExplainDocument:
    """Return the plan of a query."""
    text = caller.graph.explain(
        source_text(body.source),
        body.selected,
        caller.given_params(body.params),
        branch=body.branch,
        at=point_of(body.point),
    )
    return ExplainDocument.of({"text": text, "plan_hash": text.plan_hash, "plan": text.tree})


def profile(caller: Caller, body: ProfileRequest) -> ExplainDocument:
    """Run a query and return its plan with actual rows and times."""
    text = caller.graph.profile(
        source_text(body.source),
        body.selected,
        caller.given_params(body.params),
        branch=body.branch,
        at=point_of(body.point),
        limits=narrowed(caller.limits, body.limits),
    )
    return ExplainDocument.of({"text": text, "plan_hash": text.plan_hash, "plan": text.tree})


def lint(caller: Caller, body: LintRequest) -> LintDocument:
    """Check every query of a text against the schema of a branch."""
    text = source_text(body.source)
    report = caller.graph.lint(text, branch=body.branch, language=body.language)
    if body.offsets == "utf16":
        report = with_utf16_offsets(report, text)
    return LintDocument.of({**report.to_dict(), "schema_source": {"kind": "graph", "uri": caller.uri}})


def target_of(body: ExplainRequest) -> TargetDocument:
    """Return the branch or the point that a request reads."""
    return TargetDocument(None, body.point) if body.point is not None else TargetDocument(body.branch or MAIN, None)


def narrowed(limits: Limits, given: QueryLimits | None) -> Limits:
    """Return the limits of the server, narrowed by those of the request."""
    if given is None:
        return limits
    seconds = limits.timeout_s if given.timeout_ms is None else min(limits.timeout_s or 1e9, given.timeout_ms / 1000)
    rows, size = given.rows or limits.rows_max, given.bytes or limits.bytes_max
    return replace(
        limits, timeout_s=seconds, rows_max=min(limits.rows_max, rows), bytes_max=min(limits.bytes_max, size)
    )
