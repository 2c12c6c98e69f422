"""Graph algorithms."""

from __future__ import annotations

from omnigraph.operations.analysis.request import Analysis
from omnigraph.server.caller import Caller, point_of
from omnigraph.server.messages.answers import Answer
from omnigraph.server.messages.content_negotiation import arrow_text
from omnigraph.wire.json_values import row_value
from omnigraph.wire.queries import AnalysisDocument
from omnigraph.wire.requests.queries import AnalyzeRequest


def analyze(caller: Caller, body: AnalyzeRequest) -> Answer:
    """Run an algorithm; with `write`, its values become properties of nodes as one commit."""
    analysis = caller.graph.analyze(
        body.algorithm,
        nodes=body.nodes,
        edges=body.edges,
        weight=body.weight,
        damping=body.damping,
        parameters=body.parameters,
        write=body.write,
        branch=body.branch,
        at=point_of(body.at),
        message=body.message,
        if_commit=caller.if_commit if caller.writes else None,
        idempotency_key=caller.idempotency_key if caller.writes else None,
        cancel=caller.cancel,
        timeout=caller.timeout_s,
    )
    document = AnalysisDocument.of({**analysis.to_json(), "top": _top(analysis, body.top)})
    if caller.negotiated.typed:
        document.tables_arrow = {name: arrow_text(table) for name, table in analysis.tables.items()}
    if caller.writes:
        document.commit = caller.commit_document(analysis.commit_id)
    return Answer(document, commit=analysis.commit_id)


def _top(analysis: Analysis, count: int) -> dict[str, list[dict[str, object]]]:
    return {name: row_value(analysis.top(name, count)) for name in analysis.tables}
