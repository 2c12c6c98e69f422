"""Query texts, parameters and limits in the form of requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.client.call import Call
from omnigraph.client.messages import Request, Response
from omnigraph.engine.exec.context import NO_LIMITS, Limits
from omnigraph.errors import CompileError
from omnigraph.operations.requests import QueryText
from omnigraph.wire.requests.queries import QueryLimits
from omnigraph.wire.typed_values import typed_value

_UNNAMED = "<query>"
"""The name of a text that is not a file; that of every text of a request."""


def sent_params(params: Any) -> Any:
    """Return the parameters of a query as typed JSON values."""
    return {name: typed_value(value) for name, value in params.items()} if isinstance(params, Mapping) else params


def sent_limits(limits: Limits) -> QueryLimits | None:
    """Return the limits that differ from the defaults; the time limit travels as a header."""
    rows = limits.rows_max if limits.rows_max != NO_LIMITS.rows_max else None
    size = limits.bytes_max if limits.bytes_max != NO_LIMITS.bytes_max else None
    return None if rows is None and size is None else QueryLimits(rows=rows, bytes=size)


def answered(request: Request, query: QueryText) -> Call[Response]:
    """Return the answer to a request with a query text; errors in the text name its file."""
    try:
        return (yield request)
    except CompileError as error:
        if query.source_name == _UNNAMED:
            raise
        named = [
            replace(diagnostic, source_name=query.source_name) if diagnostic.source_name == _UNNAMED else diagnostic
            for diagnostic in error.diagnostics
        ]
        raise type(error)(named) from None
