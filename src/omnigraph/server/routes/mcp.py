"""The Model Context Protocol: one message of a client, answered by the endpoint of its graph."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from omnigraph.errors import NotFound
from omnigraph.mcp.packages import mcp_packages
from omnigraph.mcp.rights import GraphRights
from omnigraph.mcp.session import McpSettings, Session
from omnigraph.mcp.tool import Answer
from omnigraph.mcp.tools import find_tool
from omnigraph.server.caller import Caller
from omnigraph.server.messages.answers import Content
from omnigraph.wire.mcp import McpMessage

_CALL = "tools/call"


def answer_message(caller: Caller, body: McpMessage) -> Content:
    """Answer one message; a notification has no answer."""
    _check_enabled(caller)
    with mcp_packages():
        from omnigraph.mcp.serve import answer_http  # noqa: PLC0415 (the SDK is optional and large)

    answers: list[Answer] = []
    found = answer_http(_session(caller, answers), caller.headers, caller.raw)
    commit = next((each.commit for each in answers if each.commit is not None), None)
    return Content(found.body, found.media_type or "", status=found.status, commit=commit)


def is_write(caller: Caller, body: McpMessage, path: Mapping[str, str]) -> bool:
    """Return True if a message calls a tool that changes the graph."""
    _check_enabled(caller)
    name = (body.params or {}).get("name")
    if body.method != _CALL or not isinstance(name, str) or not caller.state.settings.mcp.write:
        return False
    found = find_tool(_session(caller, []), name, {}, records=False)
    return found is not None and found[0].writes


def _check_enabled(caller: Caller) -> None:
    if not caller.state.settings.mcp.enabled:
        raise NotFound("there is no such path", code="no_such_path", hint="'server.mcp.enabled' is false")


def _session(caller: Caller, answers: list[Answer]) -> Session:
    settings = caller.state.settings.mcp
    return Session(
        caller.graph,
        McpSettings(settings.write, settings.adhoc, settings.branches, settings.result_tokens),
        caller.limits,
        write_timeout_s=caller.long_timeout_s,
        idempotency_key=caller.idempotency_key,
        if_commit=caller.if_commit,
        rights=GraphRights(caller.access),
        list_graphs=partial(_graphs, caller) if _may_list(caller) else None,
        on_source=partial(caller.audit.__setitem__, "source"),
        on_answer=partial(_note, caller, answers),
    )


def _note(caller: Caller, answers: list[Answer], answer: Answer) -> None:
    """Keep the answer of a tool for the response and the audit record."""
    answers.append(answer)
    if "row_count" in answer.structured:
        caller.audit["rows"] = answer.structured["row_count"]


def _may_list(caller: Caller) -> bool:
    return caller.state.server_access(caller.principal).decide("graph_list").allowed


def _graphs(caller: Caller) -> list[str]:
    return [graph.graph_id for graph in caller.state.graphs.values() if graph.is_ready]
