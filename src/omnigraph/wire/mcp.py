"""Messages of the Model Context Protocol over HTTP: JSON-RPC 2.0."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from omnigraph.wire.document import Document
from omnigraph.wire.requests.request import NAME_MAX, Request


class McpMessage(Request):
    """A message of a client: a request, or without `id` a notification."""

    jsonrpc: Literal["2.0"]
    method: Annotated[str, Meta(min_length=1, max_length=NAME_MAX, description="The method.", examples=["tools/call"])]
    id: Annotated[str, Meta(max_length=NAME_MAX)] | int | None = None
    params: Annotated[dict[str, Any], Meta(description="The parameters of the method.")] | None = None


class McpErrorDocument(Document):
    """The error of a request."""

    code: int
    message: str
    data: Any | UnsetType = UNSET


class McpAnswerDocument(Document, kw_only=True):
    """The answer to a request: `result` or `error`."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: str | int | None
    result: dict[str, Any] | UnsetType = UNSET
    error: McpErrorDocument | UnsetType = UNSET
