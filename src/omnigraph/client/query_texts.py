"""Query texts, parameters and limits in the form of requests."""

from __future__ import annotations

import datetime
from base64 import b64encode
from typing import Any

from omnigraph.engine.exec.context import NO_LIMITS, Limits
from omnigraph.wire.requests.queries import QueryLimits


def sent_params(params: Any) -> Any:
    """Return the parameters of a query as JSON values."""
    return _sent(params)


def _sent(value: Any) -> Any:
    match value:
        case dict():
            return {key: _sent(member) for key, member in value.items()}
        case list() | tuple():
            return [_sent(item) for item in value]
        case datetime.date():
            return value.isoformat()
        case bytes():
            return "base64:" + b64encode(value).decode()
    return value


def sent_limits(limits: Limits) -> QueryLimits | None:
    """Return the limits that differ from the defaults; the time limit travels as a header."""
    return QueryLimits(rows=limits.rows_max) if limits.rows_max != NO_LIMITS.rows_max else None
