"""`omnigraph log`: list commits, with their branches and tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.colours import Colours, colours
from omnigraph.cli.io.commit_graph import graph_lines
from omnigraph.cli.io.output import print_json, utc
from omnigraph.cli.io.pager import print_paged

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.versioning.model.manifest_objects import Commit


@takes_graph
def log_command(
    run: Invocation,
    branch: Branch = None,
    graph_: Annotated[bool, typer.Option("--graph", help="Draw branches and merges next to the commits.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="Show the commits of all branches.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, metavar="N", help="At most N commits.")] = None,
    as_json: Json = False,
) -> None:
    """Show the commits of a branch, newest first, with the branches and tags that point to them.

    omnigraph log --graph --all ./my.omni
    """
    graph = run.open(branch=run.branch(branch), read_only=True)
    commits = _commits(graph, None if all_ else [graph.branch])[:limit]
    if as_json:
        from omnigraph.wire.commits import CommitListDocument

        print_json(CommitListDocument.of({"commits": [commit.to_json() for commit in commits]}))
        return
    paint = colours()
    by_id = {commit.id: commit for commit in commits}
    names = _names(graph)
    lines = graph_lines((commit.id, commit.parents) for commit in commits) if graph_ else (("", id_) for id_ in by_id)
    print_paged(_log_line(prefix, by_id.get(id_ or ""), names, paint) for prefix, id_ in lines)


def _commits(graph: Graph, branches: list[str] | None) -> list[Commit]:
    """Return the commits of some or all branches: newest first, every commit before its parents."""
    found: dict[str, Commit] = {}
    for name in graph.branches() if branches is None else branches:
        found.update((commit.id, commit) for commit in graph.commits(name))
    return sorted(found.values(), key=lambda commit: (commit.manifest_version, commit.id), reverse=True)


def _names(graph: Graph) -> Mapping[str, list[str]]:
    """Map commit ids to the branches and tags that point to them."""
    names: dict[str, list[str]] = {}
    for branch in graph.branches():
        names.setdefault(graph.head(branch).commit_id, []).append(branch)
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
