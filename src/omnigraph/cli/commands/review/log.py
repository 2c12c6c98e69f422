"""`omnigraph log`: list commits, with their branches and tags."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
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
    actor: Annotated[str | None, typer.Option("--actor", metavar="ACTOR", help="Only commits of ACTOR.")] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only commits that changed TYPE; repeatable.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Only commits whose message contains TEXT.")
    ] = None,
    since: Annotated[
        datetime | None, typer.Option("--since", metavar="TIME", help="Only commits at or after TIME (UTC).")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--until", metavar="TIME", help="Only commits before TIME (UTC).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the commits of a branch, newest first, with the branches and tags that point to them.

    omnigraph log --graph --all ./my.omni

    omnigraph log --type Person --since 2026-01-31 ./my.omni
    """
    from omnigraph.operations.exploration.branch_status import EVERY_BRANCH

    graph = run.open(branch=run.branch(branch), read_only=True)
    selected = graph.commits(
        EVERY_BRANCH if all_ else graph.branch, actor=actor, types=types, text=text, since=since, until=until
    )
    # Every commit stands before its parents.
    commits = sorted(selected, key=lambda commit: (commit.manifest_version, commit.id), reverse=True)[:limit]
    if as_json:
        from omnigraph.wire.commits import CommitListDocument

        print_json(CommitListDocument.of({"commits": [commit.to_json() for commit in commits]}))
        return
    paint = colours()
    by_id = {commit.id: commit for commit in commits}
    names = _names(graph)
    lines = graph_lines((commit.id, commit.parents) for commit in commits) if graph_ else (("", id_) for id_ in by_id)
    print_paged(_log_line(prefix, by_id.get(id_ or ""), names, paint) for prefix, id_ in lines)


def _names(graph: Graph) -> Mapping[str, list[str]]:
    """Map commit ids to the branches and tags that point to them."""
    names: dict[str, list[str]] = {}
    for status in graph.branch_status():
        names.setdefault(status.head.commit_id, []).append(status.name)
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
