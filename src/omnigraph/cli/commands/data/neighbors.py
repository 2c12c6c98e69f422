"""`omnigraph neighbors`: list the neighbours of a node."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.entity_arguments import RowId, TypeName
from omnigraph.cli.io.output import print_json, remark
from omnigraph.cli.io.points import At, open_at, point
from omnigraph.text_table import record_table
from omnigraph.wire.json_values import row_value


@takes_graph
def neighbors_command(
    run: Invocation,
    type_name: TypeName,
    id_: RowId,
    edge: Annotated[str | None, typer.Option("--edge", "-e", metavar="TYPE", help="Only this edge type.")] = None,
    direction: Annotated[
        str | None,
        typer.Option("--direction", metavar="DIRECTION", help="out (outgoing edges) or in (incoming edges)."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="Neighbours of a page.")
    ] = 20,
    after: Annotated[
        str | None, typer.Option("--after", metavar="CURSOR", help="Continue after an earlier page.")
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Show the numbers of edges only.")] = False,
    branch: Branch = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Show the edges of a node and the nodes at their other ends.

    omnigraph neighbors Person ana ./my.omni

    omnigraph neighbors Person ana --edge Wrote --direction out ./my.omni
    """
    graph = open_at(run, branch, at)
    if count:
        if edge is not None or direction is not None or after is not None:
            raise UsageFault("--count excludes --edge, --direction and --after")
        degrees = [degree.to_json() for degree in graph.degrees(type_name, id_, at=point(at))]
        if as_json:
            print_json({"type": type_name, "id": id_, "degrees": degrees})
        else:
            print(record_table(degrees))
        return
    found = graph.neighbors(type_name, id_, edge, direction, limit=limit, after=after, at=point(at))
    if as_json:
        from omnigraph.wire.exploration import NeighborListDocument

        print_json(NeighborListDocument.of(found.to_json(row_value)))
        return
    rows = [{"edge": each.edge, "direction": each.direction, "type": each.type, **each.row} for each in found.neighbors]
    if rows:
        print(record_table([{name: row.get(name) for name in ("edge", "direction", "type", "id")} for row in rows]))
    else:
        remark("note", "it has no such edges")
    if found.next is not None:
        remark("next", found.next)
