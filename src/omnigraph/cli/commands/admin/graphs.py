"""`omnigraph graphs`: list the graphs of a server."""

from __future__ import annotations

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Invocation, Json, takes_graph
from omnigraph.cli.io.output import print_json

app = command_group("List the graphs of a server.")


@app.command("list")
@takes_graph
def list_command(run: Invocation, as_json: Json = False) -> None:
    """List the graphs of a server that you may see.

    omnigraph graphs list --server reading-room
    """
    from omnigraph.cli.remote import list_graphs

    if run.graph_id is not None:
        raise UsageFault("--graph names one graph, and 'graphs list' lists those of the server; omit --graph")
    address = run.server()
    graphs = list_graphs(address, run)
    if as_json:
        from omnigraph.wire.server_state import GraphListDocument

        print_json(GraphListDocument(graphs))
        return
    for graph in graphs:
        print(f"{graph.graph_id}\t{graph.uri}" if graph.uri else graph.graph_id)
