"""`omnigraph blame`: show which commit set each property of a node or edge."""

from __future__ import annotations

from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.change_output import shown
from omnigraph.cli.io.entity_arguments import RowId, TypeName, entity_not_found
from omnigraph.cli.io.output import commit_note, print_json, utc
from omnigraph.cli.io.points import At, open_at, point
from omnigraph.wire.json_values import json_value


@takes_graph
def blame_command(
    run: Invocation, type_name: TypeName, id_: RowId, branch: Branch = None, at: At = None, as_json: Json = False
) -> None:
    """Show which commit last set each property of a node or edge.

    omnigraph blame Person ana ./my.omni
    """
    found = [blame for blame in open_at(run, branch, at).blame(type_name, id_, at=point(at)) if blame.property != "id"]
    if not found:
        raise entity_not_found(type_name, id_)
    if as_json:
        from omnigraph.wire.changes import BlameDocument

        documents = [json_value(blame.to_json()) for blame in found]
        print_json(BlameDocument.of({"type_name": type_name, "id": id_, "properties": documents}))
        return
    width = max(len(blame.property) for blame in found)
    for blame in found:
        value = shown({blame.property: blame.value}, blame.property)
        since = [] if blame.known else ["or earlier"]
        parts = [blame.property.ljust(width), blame.commit.id, utc(blame.commit.created_us)]
        print("  ".join([*parts, *commit_note(blame.commit), *since, value]))
