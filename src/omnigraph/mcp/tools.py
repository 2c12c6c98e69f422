"""The registry of tools: which tools a session has, and the tool of a name.

Merging, schema changes and maintenance are no tools. A tool that the actor may not call does not exist for the session:
it is not listed, and a call of it is the same error as a call of an unknown name.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.errors import Denied
from omnigraph.mcp.exploration_tools import EXPLORATION_TOOLS
from omnigraph.mcp.older_tools import ALIASES, OLDER_TOOLS
from omnigraph.mcp.proposal_tools import PROPOSAL_TOOLS
from omnigraph.mcp.read_tools import READ_TOOLS
from omnigraph.mcp.session import Session
from omnigraph.mcp.stored_query_tools import stored_query_tools
from omnigraph.mcp.tool import Arguments, Tool
from omnigraph.mcp.write_tools import WRITE_TOOLS

TOOLS: tuple[Tool, ...] = (*EXPLORATION_TOOLS, *READ_TOOLS, *WRITE_TOOLS, *PROPOSAL_TOOLS)
_RESERVED = frozenset({*(tool.name for tool in (*TOOLS, *OLDER_TOOLS)), *ALIASES})
"""Names that no stored query takes."""


def session_tools(session: Session) -> Iterator[Tool]:
    """Yield the tools that the actor of a session may call, in the order of their list."""
    yield from (tool for tool in TOOLS if _is_offered(session, tool))
    yield from _stored(session)


def find_tool(
    session: Session, name: str, arguments: Arguments, *, records: bool = True
) -> tuple[Tool, Arguments] | None:
    """Return the tool of a name and its arguments; None if the name is unknown or the actor may not call the tool.

    With `records`, the denial of a tool by the policy is recorded for the audit log.
    """
    alias = ALIASES.get(name)
    if alias is not None:
        name = alias.tool
        arguments = {alias.arguments.get(given, given): value for given, value in arguments.items()}
    for tool in (*TOOLS, *OLDER_TOOLS):
        if tool.name == name:
            return (tool, arguments) if _is_offered(session, tool, records=records) else None
    found = next((tool for tool in _stored(session) if tool.name == name), None)
    return None if found is None else (found, arguments)


def _is_offered(session: Session, tool: Tool, *, records: bool = False) -> bool:
    settings = session.settings
    if ((tool.writes or tool.needs_write) and not settings.write) or (tool.name == "query" and not settings.adhoc):
        return False
    if tool.name == "graphs_list" and session.list_graphs is None:
        return False
    return session.rights.may(tool.action, records=records)


def _stored(session: Session) -> Iterator[Tool]:
    """Yield the tools of stored queries; the graph lists those that the actor may call."""
    try:
        found = session.graph.queries()
    except Denied:
        return
    write = session.settings.write and session.rights.may("change")
    yield from stored_query_tools(found, _RESERVED, write=write)
