"""`omnigraph history`: list the changes of one node or edge."""

from __future__ import annotations

from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.change_output import property_lines
from omnigraph.cli.io.colours import colours
from omnigraph.cli.io.entity_arguments import RowId, TypeName, entity_not_found
from omnigraph.cli.io.output import commit_note, print_json, utc
from omnigraph.cli.io.points import At, open_at, point
from omnigraph.wire.json_values import json_value


@takes_graph
def history_command(
    run: Invocation, type_name: TypeName, id_: RowId, branch: Branch = None, at: At = None, as_json: Json = False
) -> None:
    """Show every change of one node or edge, newest first, with its actor and time.

    omnigraph history Person ana ./my.omni
    """
    changes = list(open_at(run, branch, at).history(type_name, id_, at=point(at)))
    if not changes:
        raise entity_not_found(type_name, id_)
    if as_json:
        from omnigraph.wire.changes import HistoryDocument

        documents = [json_value(change.to_json()) for change in changes]
        print_json(HistoryDocument.of({"type_name": type_name, "id": id_, "changes": documents}))
        return
    for change in changes:
        print("  ".join([change.commit.id, utc(change.commit.created_us), change.op, *commit_note(change.commit)]))
        for line in property_lines(change.before, change.after, change.properties, colours()):
            print(f"  {line}")
