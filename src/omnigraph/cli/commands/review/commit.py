"""`omnigraph commit`: list commits, show one, and show its changes."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.change_output import Kinds, Limit, Ops, Types, check_filters, print_block
from omnigraph.cli.io.output import commit_note, print_json, utc
from omnigraph.text_table import cell
from omnigraph.versioning.model.point_text import parse_point
from omnigraph.wire.json_values import json_value

app = command_group("List and show commits.")

CommitPoint = Annotated[str, typer.Argument(metavar="COMMIT", help="The commit: its id, a tag or another point.")]


@app.command("list")
@takes_graph
def list_command(
    run: Invocation,
    branch: Branch = None,
    limit: Annotated[int | None, typer.Option("--limit", min=0, metavar="N", help="At most N commits.")] = None,
    as_json: Json = False,
) -> None:
    """List the commits of a branch, newest first."""
    commits = run.open(branch=run.branch(branch), read_only=True).commits(limit=limit)
    if as_json:
        from omnigraph.wire.commits import CommitListDocument

        print_json(CommitListDocument.of({"commits": [commit.to_json() for commit in commits]}))
        return
    for commit in commits:
        parts = [commit.id, utc(commit.created_us), f"{commit.branch}@{commit.manifest_version}"]
        print("  ".join([*parts, *commit_note(commit)]))


@app.command("show")
@takes_graph
def show_command(run: Invocation, id_: CommitPoint, as_json: Json = False) -> None:
    """Show one commit."""
    document = run.open(read_only=True).commit(parse_point(id_)).to_json()
    if as_json:
        from omnigraph.wire.commits import CommitDocument

        print_json(CommitDocument.of(document))
        return
    for key, value in document.items():
        if value not in (None, [], {}):
            print(f"{key}: {utc(value) if key == 'created_at' else cell(value)}")


@app.command("changes")
@takes_graph
def changes_command(
    run: Invocation,
    id_: CommitPoint,
    kinds: Kinds = None,
    types: Types = None,
    ops: Ops = None,
    limit: Limit = None,
    page: Annotated[str | None, typer.Option("--page-token", metavar="TOKEN", help="Continue an earlier page.")] = None,
    as_json: Json = False,
) -> None:
    """Show the changes of one commit relative to its first parent."""
    check_filters(kinds, ops)
    graph = run.open(read_only=True)
    block = graph.commit_changes(parse_point(id_), kinds=kinds, types=types, ops=ops, changes_max=limit, page=page)
    if as_json:
        from omnigraph.wire.changes import CommitChangesDocument

        print_json(CommitChangesDocument.of(json_value({**block.to_json(), "page": block.page})))
        return
    print_block(block)
    if block.page is not None:
        print(f"page: {block.page}")
