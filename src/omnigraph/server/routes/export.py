"""Exports: the records of a snapshot as JSON lines that a load reads, or one type as an Arrow stream."""

from __future__ import annotations

from omnigraph.errors import InputError
from omnigraph.server.caller import Caller, point_of
from omnigraph.server.messages.answers import Chunks
from omnigraph.server.messages.content_negotiation import joined_lines
from omnigraph.server.routes.tables import table_chunks
from omnigraph.table_key import TableKey
from omnigraph.wire.document import encoder
from omnigraph.wire.requests.tables import ExportRequest
from omnigraph.wire.typed_values import typed_value


def export(caller: Caller, body: ExportRequest) -> Chunks:
    """Send the records of a snapshot in order of tables and ids."""
    types = None if body.type_names is None and body.table_keys is None else [*_names(body)]
    if caller.negotiated.form == "arrow":
        return _arrow(caller, body, types or [])
    records = caller.graph.export(
        types=types, branch=body.branch, at=point_of(body.at), cancel=caller.cancel, timeout=caller.long_timeout_s
    )
    assert not isinstance(records, int)
    if caller.negotiated.typed:
        records = map(typed_value, records)
    return Chunks(joined_lines(map(encoder.encode, records)), caller.negotiated.content_type)


def _names(body: ExportRequest) -> list[str]:
    return [*(body.type_names or ()), *(body.table_keys or ())]


def _arrow(caller: Caller, body: ExportRequest, types: list[str]) -> Chunks:
    if len(types) != 1:
        raise InputError(
            "an Arrow stream has the rows of one type",
            code="bad_member",
            hint="give one type in 'type_names', or request application/x-ndjson",
        )
    try:
        key = TableKey.parse(types[0])
    except ValueError:
        return table_chunks(caller, body, types[0])
    return table_chunks(caller, body, key.type_name, kind=key.kind)
