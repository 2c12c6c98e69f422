"""`omnigraph status`: summarize the state of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.colours import Colours, colours
from omnigraph.cli.io.output import plural, print_json, utc
from omnigraph.cli.io.pager import print_paged
from omnigraph.redaction import redact_uri
from omnigraph.table_key import TableKey
from omnigraph.text_table import table_lines

if TYPE_CHECKING:
    from omnigraph.graph import Graph


_BRANCHES_SHOWN = 20


@takes_graph
def status_command(run: Invocation, branch: Branch = None, as_json: Json = False) -> None:
    """Show the graph, its branch and head, the rows of each type, and the other branches."""
    address = run.address()
    on = run.branch(branch)
    graph = run.open(address, branch=on, read_only=True)
    document = {"uri": redact_uri(address.uri), "storage": address.kind, **_status(graph)}
    if as_json:
        from omnigraph.wire.graph_state import StatusDocument

        print_json(StatusDocument.of(document))
        return
    print_paged(_status_lines(document, colours()))


def _status(graph: Graph) -> dict[str, Any]:
    snapshot = graph.snapshot()
    ours = {commit.id for commit in graph.commits()}
    branches = []
    for name in graph.branches():
        if name == graph.branch:
            continue
        theirs = {commit.id for commit in graph.commits(name)}
        branches.append({"name": name, "ahead": len(theirs - ours), "behind": len(ours - theirs)})
    return {
        "branch": graph.branch,
        "head": graph.commit(snapshot.commit_id).to_json(),
        "commits": len(ours),
        "manifest_version": snapshot.version,
        "merge_properties": graph.catalog().merge_properties,
        "tables": [{"table_key": key, "row_count": table.pin.row_count} for key, table in snapshot.tables.items()],
        "branches": branches,
        "tags": [tag.name for tag in graph.tags()],
    }


def _status_lines(document: dict[str, Any], paint: Colours) -> Iterator[str]:
    head = document["head"]
    yield f"graph {document['uri']} ({document['storage']})"
    yield (
        f"on branch {paint.name(document['branch'])}, {plural(document['commits'], 'commit')}, "
        f"manifest version {document['manifest_version']}"
    )
    who = f" by {head['actor_id']}" if head["actor_id"] else ""
    yield f"head {paint.commit(head['graph_commit_id'])}  {utc(head['created_at'])}{who}"
    yield f"     {head['message'] or head['kind']}"
    if document["merge_properties"] == "combine":
        yield "merges combine edits of different properties"
    yield ""
    names = [TableKey.parse(table["table_key"]).type_name for table in document["tables"]]
    kinds = [TableKey.parse(table["table_key"]).kind for table in document["tables"]]
    rows = [table["row_count"] for table in document["tables"]]
    yield from (line.rstrip() for line in table_lines(["kind", "type", "rows"], [kinds, names, rows]))
    others = document["branches"]
    if others:
        yield ""
        yield f"{plural(len(others), 'other branch', 'other branches')}:"
        for other in others[:_BRANCHES_SHOWN]:
            yield f"  {paint.name(other['name'])}  {other['ahead']} ahead, {other['behind']} behind"
        if len(others) > _BRANCHES_SHOWN:
            yield f"  … {len(others) - _BRANCHES_SHOWN} more ('omnigraph branch list')"
    if document["tags"]:
        yield ""
        yield f"tags: {', '.join(document['tags'])}"
