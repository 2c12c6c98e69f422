"""`omnigraph commit`, `history` and `blame`: what happened, to the graph and to one node or edge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.commands.data.query import commit_point, point
from omnigraph.cli.commands.review.changes import commit_changes_command, plain, property_lines, shown
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.help import Group
from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.colours import colours
from omnigraph.cli.io.output import print_json, utc
from omnigraph.errors import NotFound
from omnigraph.text_table import cell

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.versioning.model.manifest_objects import Commit

app = typer.Typer(cls=Group, no_args_is_help=True, help="List and show commits.", rich_markup_mode=None)
app.command("changes")(commit_changes_command)

TypeName = Annotated[str, typer.Argument(metavar="TYPE", help="A node or edge type.")]
RowId = Annotated[str, typer.Argument(metavar="ID", help="The id of the node or edge; of a keyed node, its key.")]
At = Annotated[
    str | None, typer.Option("--snapshot", "--at", metavar="POINT", help="A branch, tag, commit id, version or time.")
]


@app.command("list")
@takes_graph
def list_command(
    run: Invocation,
    branch: Branch = None,
    limit: Annotated[int | None, typer.Option("--limit", min=0, metavar="N", help="At most so many.")] = None,
    as_json: Json = False,
) -> None:
    """List the commits of a branch, newest first."""
    commits = run.open(branch=run.branch(branch), read_only=True).commits(limit=limit)
    if as_json:
        print_json({"commits": [commit.to_json() for commit in commits]})
        return
    for commit in commits:
        print(
            "  ".join([commit.id, utc(commit.created_us), f"{commit.branch}@{commit.manifest_version}", *_who(commit)])
        )


def _who(commit: Commit) -> list[str]:
    return [part for part in (commit.actor, commit.message or commit.kind) if part]


@app.command("show")
@takes_graph
def show_command(
    run: Invocation,
    id_: Annotated[str, typer.Argument(metavar="COMMIT", help="The commit: its id, a tag, or another point.")],
    as_json: Json = False,
) -> None:
    """Show one commit."""
    document = run.open(read_only=True).commit(commit_point(id_)).to_json()
    if as_json:
        print_json(document)
        return
    for key, value in document.items():
        if value not in (None, [], {}):
            print(f"{key}: {utc(value) if key == 'created_at' else cell(value)}")


def _open(run: Invocation, branch: str | None, at: str | None) -> Graph:
    if branch is not None and at is not None:
        raise UsageFault("--branch and --at (--snapshot) exclude each other")
    return run.open(branch=None if at else run.branch(branch), read_only=True)


@takes_graph
def history_command(
    run: Invocation,
    type_name: TypeName,
    id_: RowId,
    branch: Branch = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Show every change of one node or edge, newest first: who, when, and what.

    omnigraph history Person ana ./my.omni
    """
    changes = list(_open(run, branch, at).history(type_name, id_, at=point(at)))
    if not changes:
        raise _missing(type_name, id_)
    if as_json:
        documents = [plain(change.to_json()) for change in changes]
        print_json({"type_name": type_name, "id": id_, "changes": documents})
        return
    for change in changes:
        print("  ".join([change.commit.id, utc(change.commit.created_us), change.op, *_who(change.commit)]))
        for line in property_lines(change.before, change.after, change.properties, colours()):
            print(f"  {line}")


@takes_graph
def blame_command(
    run: Invocation,
    type_name: TypeName,
    id_: RowId,
    branch: Branch = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Show which commit last set each property of a node or edge.

    omnigraph blame Person ana ./my.omni
    """
    found = [blame for blame in _open(run, branch, at).blame(type_name, id_, at=point(at)) if blame.property != "id"]
    if not found:
        raise _missing(type_name, id_)
    if as_json:
        print_json({"type_name": type_name, "id": id_, "properties": [plain(blame.to_json()) for blame in found]})
        return
    width = max(len(blame.property) for blame in found)
    for blame in found:
        value = shown({blame.property: blame.value}, blame.property)
        since = "" if blame.known else "or earlier"
        parts = [blame.property.ljust(width), blame.commit.id, utc(blame.commit.created_us), *_who(blame.commit)]
        print("  ".join([*parts, *([since] if since else []), value]))


def _missing(type_name: str, id_: str) -> NotFound:
    return NotFound(
        f"there is no {type_name} '{id_}', and there never was here",
        code="entity_not_found",
        hint="ids are shown by 'omnigraph export'; the id of a keyed node is its key",
    )
