"""The query log: one line per executed query."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from omnigraph.server.caller import Caller
from omnigraph.server.observability.log import QueryLogEntry
from omnigraph.wire.requests.queries import NamedQuery


def query_hash(source: str) -> str:
    """Return the hash of a query text that logs and audit records show."""
    return hashlib.sha256(source.encode(errors="backslashreplace")).hexdigest()[:24]


def query_entry(caller: Caller, query: NamedQuery, commit: str | None, seconds: Mapping[str, float]) -> QueryLogEntry:
    """Return the line of a query; `seconds` are the times of its phases."""
    return QueryLogEntry(
        request_id=caller.request_id,
        actor=caller.actor,
        graph=caller.served.graph_id if caller.served is not None else "",
        branch=getattr(query, "branch", None),
        commit=commit,
        query=query.selected,
        query_hash=query_hash(query.source),
        params=query.params or {},
        rows=caller.audit.get("rows"),
        ms={phase: time * 1000 for phase, time in seconds.items()},
    )
