"""Routes of the services of editors."""

from __future__ import annotations

from omnigraph.server.route import Gate, Route
from omnigraph.server.routes import editor
from omnigraph.wire.editor import CompletionDocument, FormatDocument, HoverDocument
from omnigraph.wire.requests.editor import EditorRequest, FormatRequest

_READ = Gate("read", branch="branch")

ROUTES: tuple[Route, ...] = (
    Route(
        name="complete",
        method="POST",
        path="/complete",
        handler=editor.complete,
        tag="queries",
        summary="Return the words that can stand at a position of a query or schema text.",
        input=EditorRequest,
        answer=CompletionDocument,
        gates=(_READ,),
        body="json",
    ),
    Route(
        name="hover",
        method="POST",
        path="/hover",
        handler=editor.hover,
        tag="queries",
        summary="Describe the word at a position of a query or schema text.",
        input=EditorRequest,
        answer=HoverDocument,
        gates=(_READ,),
        body="json",
    ),
    Route(
        name="format",
        method="POST",
        path="/format",
        handler=editor.format_source,
        tag="queries",
        summary="Return a query or schema text in the standard layout.",
        input=FormatRequest,
        answer=FormatDocument,
        gates=(Gate("read"),),
        body="json",
    ),
)
