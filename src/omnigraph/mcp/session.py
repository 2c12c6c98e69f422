"""`Session`: the graph, the rights and the settings of one MCP client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnigraph.engine.exec.context import Limits
from omnigraph.graph import Graph
from omnigraph.graph_handle import context_of
from omnigraph.mcp.budget import Budget
from omnigraph.mcp.own_branches import OWN_BRANCHES, default_branch
from omnigraph.mcp.rights import GraphRights, Rights, ServerRights
from omnigraph.versioning.model.point_text import parse_point

if TYPE_CHECKING:
    from omnigraph.mcp.tool import Answer
    from omnigraph.versioning.write.repository import At

RESULT_TOKENS = 4_000
QUERY_S = 30.0
"""Time limit of a tool on stdio."""


@dataclass(frozen=True)
class McpSettings:
    """Settings of an MCP server."""

    write: bool = False
    """True if tools that change the graph are offered."""
    adhoc: bool = True
    """True if the tool `query` is offered; stored queries always are."""
    branches: tuple[str, ...] = OWN_BRANCHES
    """Patterns of the branches that tools may change; `<actor>` is the actor."""
    result_tokens: int = RESULT_TOKENS
    """The largest size of an answer, in tokens of 3.5 bytes."""


@dataclass(frozen=True)
class Session:
    """One client of one graph. The graph enforces the policy with the access of the actor."""

    graph: Graph
    settings: McpSettings = field(default_factory=McpSettings)
    limits: Limits = field(default_factory=lambda: Limits(timeout_s=QUERY_S))
    """Limits of a read, with the cancellation of the call."""
    write_timeout_s: float | None = None
    idempotency_key: str | None = None
    if_commit: str | None = None
    """The commit that the branch must be at for a write."""
    rights: Rights = field(default_factory=GraphRights)
    list_graphs: Callable[[], list[str]] | None = None
    """Returns the ids of the graphs of the server; None if there is no list."""
    on_source: Callable[[str], None] = lambda _: None
    """Receives the text of each query that runs, for the audit log."""
    on_answer: Callable[[Answer], None] = lambda _: None
    """Receives the answer of each tool."""

    @classmethod
    def of(cls, graph: Graph, settings: McpSettings, limits: Limits) -> Session:
        """Return the session of an embedded or remote graph, with the rights of its handle."""
        return cls(graph, settings, limits, rights=rights_of(graph))

    @property
    def budget(self) -> Budget:
        """The largest size of an answer."""
        return Budget.of_tokens(self.settings.result_tokens)

    @property
    def bounds(self) -> dict[str, Any]:
        """The arguments `cancel` and `timeout` of reads that take no `limits`."""
        return {"cancel": self.limits.cancellation, "timeout": self.limits.timeout_s}

    @property
    def write_bounds(self) -> dict[str, Any]:
        """The arguments `cancel`, `timeout` and `if_commit` of writes."""
        return {
            "cancel": self.limits.cancellation,
            "timeout": self.write_timeout_s,
            "if_commit": self.if_commit,
        }


def rights_of(graph: Graph) -> Rights:
    """Return the rights of a handle: by its access, or by the server of a remote graph."""
    handle: object = graph
    # A remote graph has the methods of `Graph`, but is none.
    if isinstance(handle, Graph):
        return GraphRights(context_of(handle).access)
    return ServerRights(graph, default_branch(graph.actor))


def point_of(text: str | None) -> At:
    """Return the point that an argument names; None is the newest commit of the branch."""
    return None if text is None else parse_point(text)
