"""Routes of reads: queries, plans and lint reports."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.server.route import READ, ROWS, Route
from omnigraph.server.routes import query
from omnigraph.wire.queries import QueryDocument
from omnigraph.wire.requests.queries import ReadRequest


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


ROUTES: tuple[Route, ...] = (*_read_routes(),)
