"""The route of the Model Context Protocol."""

from __future__ import annotations

from omnigraph.server.route import Gate, Route
from omnigraph.server.routes import mcp
from omnigraph.wire.mcp import McpAnswerDocument, McpMessage

ROUTES: tuple[Route, ...] = (
    Route(
        name="mcp",
        method="POST",
        path="/mcp",
        handler=mcp.answer_message,
        tag="agents",
        summary="Answer one message of the Model Context Protocol: streamable HTTP, stateless, with JSON.",
        input=McpMessage,
        answer=McpAnswerDocument,
        other_failure=McpAnswerDocument,
        # Each tool has an action of its own; an unknown tool and a denied one are the same error.
        gates=(Gate("read", unless=("method",)),),
        body="json",
        strict=False,
        writes_when=mcp.is_write,
        statuses_without_body=(202,),
    ),
)
