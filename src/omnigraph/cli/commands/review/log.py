"""`omnigraph log` and `omnigraph status`: the history of a graph at a glance, and its current state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.colours import Colours, colours
from omnigraph.cli.io.commit_graph import graph_lines
from omnigraph.cli.io.output import plural, print_json, utc
from omnigraph.cli.io.pager import print_paged
from omnigraph.redaction import redact_uri
from omnigraph.text_table import table_lines

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.versioning.model.manifest_objects import Commit

_BRANCHES_SHOWN = 20


@takes_graph
def log_command(
    run: Invocation,
    branch: Branch = None,
    graph_: Annotated[bool, typer.Option("--graph", help="Draw branches and merges beside the commits.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="The commits of all branches.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, metavar="N", help="At most N commits.")] = None,
    as_json: Json = False,
) -> None:
    """Show the commits of a branch, newest first, with the branches and tags that point to them.

    omnigraph log --graph --all ./my.omni
    """
    graph = run.open(branch=run.branch(branch), read_only=True)
    commits = _commits(graph, None if all_ else [graph.branch])[:limit]
    if as_json:
        print_json({"commits": [commit.to_json() for commit in commits]})
        return
    paint = colours()
    by_id = {commit.id: commit for commit in commits}
    names = _names(graph)
    lines = graph_lines((commit.id, commit.parents) for commit in commits) if graph_ else (("", id_) for id_ in by_id)
    print_paged(_log_line(prefix, by_id.get(id_ or ""), names, paint) for prefix, id_ in lines)


def _commits(graph: Graph, branches: list[str] | None) -> list[Commit]:
    """The commits of some branches, or of all: newest first, every commit before its parents."""
    found: dict[str, Commit] = {}
    for name in graph.branches() if branches is None else branches:
        found.update((commit.id, commit) for commit in graph.commits(name))
    return sorted(found.values(), key=lambda commit: (commit.manifest_version, commit.id), reverse=True)


def _names(graph: Graph) -> Mapping[str, list[str]]:
    """Commit id → the branches and tags that point to it."""
    names: dict[str, list[str]] = {}
    for branch in graph.branches():
        names.setdefault(graph.snapshot(branch).commit_id, []).append(branch)
    for tag in graph.tags():
        names.setdefault(tag.commit_id, []).append(f"tag: {tag.name}")
    return names


def _log_line(prefix: str, commit: Commit | None, names: Mapping[str, list[str]], paint: Colours) -> str:
    lane = f"{prefix} " if prefix else ""
    if commit is None:
        return paint.muted(prefix)
    parts = [paint.commit(commit.id), utc(commit.created_us)]
    if commit.id in names:
        parts.append(paint.name(f"({', '.join(names[commit.id])})"))
    parts += [commit.actor or ""] if commit.actor else []
    parts.append(commit.message or paint.muted(commit.kind))
    return lane + "  ".join(parts)


@takes_graph
def status_command(run: Invocation, branch: Branch = None, as_json: Json = False) -> None:
    """Show the graph, its branch and head, the rows of each type, and the other branches."""
    address = run.storage()
    on = run.branch(branch)
    graph = run.open(address, branch=on, read_only=True)
    document = {"uri": redact_uri(address.uri), "storage": address.kind, **_status(graph)}
    if as_json:
        print_json(document)
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
    yield ""
    names = [table["table_key"].partition(":")[2] for table in document["tables"]]
    kinds = [table["table_key"].partition(":")[0] for table in document["tables"]]
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
