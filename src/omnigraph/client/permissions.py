"""The actions that a server allows the actor of a token on a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from omnigraph.client.call import Call
from omnigraph.client.messages import Request
from omnigraph.client.remote_graph import RemoteGraph
from omnigraph.http_address import graph_of_url
from omnigraph.wire.server_state import MeDocument

if TYPE_CHECKING:
    from omnigraph.graph import Graph


def allowed_actions(graph: Graph, branch: str) -> frozenset[str]:
    """Return the actions that are allowed on the graph, on a listed branch, or on a branch that may not exist yet."""
    remote = cast("RemoteGraph", graph)
    graph_id = graph_of_url(remote.uri)
    found: set[str] = set()
    for asked in (None, branch):
        for each in remote._loop.run(_me(asked)).graphs:
            if graph_id in (None, each.graph_id):
                found.update(each.actions, *(allowed.actions for allowed in each.branches))
    return frozenset(found)


def _me(branch: str | None) -> Call[MeDocument]:
    parameters = {} if branch is None else {"branch": branch}
    answer = yield Request(method="GET", path="/me", scope="server", parameters=parameters)
    return answer.document(MeDocument)
