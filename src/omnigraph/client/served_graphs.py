"""The graphs of a server."""

from __future__ import annotations

from omnigraph.client.call import Call
from omnigraph.client.messages import Request
from omnigraph.client.transport.address import Settings
from omnigraph.client.transport.sync_loop import SyncLoop
from omnigraph.wire.server_state import GraphDocument, GraphListDocument


def served_graphs(settings: Settings) -> list[GraphDocument]:
    """Return the graphs that a server serves, by id; the caller needs the action `graph_list`."""
    loop = SyncLoop(settings)
    try:
        return loop.run(_list_graphs())
    finally:
        loop.close()


def _list_graphs() -> Call[list[GraphDocument]]:
    answer = yield Request(method="GET", path="/graphs", scope="server")
    return answer.document(GraphListDocument).graphs
