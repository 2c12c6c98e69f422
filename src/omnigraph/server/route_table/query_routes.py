"""Routes of reads: queries, plans and lint reports."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.server.route import READ, ROWS, Gate, Route
from omnigraph.server.routes import analyze, query, search
from omnigraph.wire.exploration import SearchDocument
from omnigraph.wire.queries import AnalysisDocument, ExplainDocument, QueryDocument
from omnigraph.wire.requests.exploration import ProjectionQuery, SearchRequest
from omnigraph.wire.requests.queries import AnalyzeRequest, ExplainRequest, LintRequest, ProfileRequest, ReadRequest
from omnigraph.wire.schemas import LintDocument


def _read_routes() -> Iterator[Route]:
    for name, path in (("read", "/read"), ("query", "/query")):
        yield Route(
            name=name,
            method="POST",
            path=path,
            handler=query.read,
            tag="queries",
            summary="Run a read query.",
            input=ReadRequest,
            answer=QueryDocument,
            gates=(READ,),
            body="json",
            forms=ROWS,
            strict=False,
            statuses=(410,),
        )


_PLANS = (
    Route(
        name="explain",
        method="POST",
        path="/explain",
        handler=query.explain,
        tag="queries",
        summary="Return the plan of a query as text.",
        input=ExplainRequest,
        answer=ExplainDocument,
        gates=(READ,),
        body="json",
    ),
    Route(
        name="profile",
        method="POST",
        path="/profile",
        handler=query.profile,
        tag="queries",
        summary="Run a read query and return its plan with actual rows and times.",
        input=ProfileRequest,
        answer=ExplainDocument,
        gates=(READ,),
        body="json",
    ),
    Route(
        name="lint",
        method="POST",
        path="/lint",
        handler=query.lint,
        tag="queries",
        summary="Check every query of a text against the schema of a branch.",
        input=LintRequest,
        answer=LintDocument,
        gates=(READ,),
        body="json",
    ),
)
_SEARCH = Route(
    name="search",
    method="POST",
    path="/search",
    handler=search.search,
    tag="queries",
    summary="Search the nodes of all types by words, by meaning, or by both.",
    input=SearchRequest,
    answer=SearchDocument,
    gates=(READ,),
    body="json",
)
_PROJECTION = Route(
    name="project",
    method="GET",
    path="/projection",
    handler=search.projection,
    tag="queries",
    summary="Return the vectors of a property in two dimensions: `id`, `x` and `y`.",
    input=ProjectionQuery,
    answer=QueryDocument,
    gates=(READ,),
    lane="slow",
    forms=ROWS,
)
_ANALYZE = Route(
    name="analyze",
    method="POST",
    path="/analyze",
    handler=analyze.analyze,
    tag="queries",
    summary="Run a graph algorithm; with `write`, store its values as one commit.",
    input=AnalyzeRequest,
    answer=AnalysisDocument,
    gates=(READ, Gate("change", branch="branch", given="write")),
    lane="slow",
    body="json",
    writes_if="write",
    statuses=(409,),
)

ROUTES: tuple[Route, ...] = (*_read_routes(), *_PLANS, _SEARCH, _PROJECTION, _ANALYZE)
