"""Older names of tools. They are answered and not listed.

Most are other names of a tool, with other names of some arguments; the rest are small reads of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from omnigraph.mcp.answers import item_answer
from omnigraph.mcp.read_tools import Branch, Point, commit_item
from omnigraph.mcp.session import Session, point_of
from omnigraph.mcp.tool import Answer, Tool, make_tool
from omnigraph.mcp.write_tools import DELETE_BRANCH
from omnigraph.version import __version__
from omnigraph.wire.requests.request import NAME_MAX, Request


@dataclass(frozen=True)
class Alias:
    """Another name of a tool."""

    tool: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Older name of an argument → its name."""


_QUERY_ARGUMENTS = {"query_source": "query", "query_name": "name", "snapshot": "at"}
ALIASES: Mapping[str, Alias] = {
    "read": Alias("query", _QUERY_ARGUMENTS),
    "mutate": Alias("change", _QUERY_ARGUMENTS),
    "ingest": Alias("load", {"data": "records"}),
    "schema_get": Alias("schema"),
    "branches_list": Alias("branches"),
    "commits_list": Alias("commits"),
    "branches_create": Alias("branch", {"name": "topic"}),
}


class NoInput(Request):
    """Arguments of a tool without arguments."""


class SnapshotInput(Request):
    """Arguments of `snapshot`."""

    branch: Branch | None = None
    at: Point | None = None


class CommitInput(Request):
    """Arguments of `commits_get`."""

    id: Annotated[str, Meta(min_length=1, max_length=NAME_MAX, description="The id of a commit.")]


def health(session: Session, given: NoInput) -> Answer:  # noqa: ARG001
    """Return that the server works."""
    return Answer({"status": "ok", "version": __version__}, f"ok, OmniGraph {__version__}")


def list_graphs(session: Session, given: NoInput) -> Answer:  # noqa: ARG001
    """Return the ids of the graphs of the server."""
    assert session.list_graphs is not None, "the tool is offered with a list only"
    graphs = session.list_graphs()
    return Answer({"graphs": graphs}, "\n".join(graphs))


def show_snapshot(session: Session, given: SnapshotInput) -> Answer:
    """Return the commit of a point and the number of rows of each table."""
    found = session.graph.snapshot(given.branch, point_of(given.at))
    tables = {str(key): table.pin.row_count for key, table in found.tables.items()}
    return item_answer(session, {"commit": found.commit_id, "tables": tables}, f"commit {found.commit_id}")


def show_commit(session: Session, given: CommitInput) -> Answer:
    """Return one commit."""
    return item_answer(session, commit_item(session.graph.commit(given.id)), f"commit {given.id}")


OLDER_TOOLS: tuple[Tool, ...] = (
    make_tool("health", "Health", "Return that the server works.", NoInput, health),
    make_tool("graphs_list", "Graphs", "List the graphs of the server.", NoInput, list_graphs),
    make_tool("snapshot", "Snapshot", "Return the commit and row counts of a point.", SnapshotInput, show_snapshot),
    make_tool("commits_get", "Commit", "Return one commit.", CommitInput, show_commit),
    DELETE_BRANCH,
)
