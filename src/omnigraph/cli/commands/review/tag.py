"""`omnigraph tag`: names for commits, which a cleanup keeps."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Branch, Invocation, Json, Message, takes_graph
from omnigraph.cli.io.output import print_json, utc
from omnigraph.cli.io.points import point

app = command_group("Create, list and delete tags. A cleanup keeps tagged commits.")

TagName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the tag.")]


@app.command("create")
@takes_graph
def create_command(
    run: Invocation,
    name: TagName,
    branch: Branch = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="POINT", help="A branch, tag, commit id, version or time (default: the head of the branch)."
        ),
    ] = None,
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Create a tag, which can be used wherever a point is expected.

    omnigraph tag create release-1 ./my.omni
    """
    address = run.address()
    run.announce(address)
    graph = run.open(address, branch=run.branch(branch))
    tag = graph.tag_create(name, point(at) if at else graph.branch, message=message)
    if as_json:
        from omnigraph.wire.branches import TagCreatedDocument

        print_json(TagCreatedDocument.of({"uri": address.uri, **tag.to_json()}))
    else:
        print(f"tag {tag.name} names {tag.commit_id}")


@app.command("list")
@takes_graph
def list_command(run: Invocation, as_json: Json = False) -> None:
    """List the tags."""
    tags = run.open(read_only=True).tags()
    if as_json:
        from omnigraph.wire.branches import TagListDocument

        print_json(TagListDocument.of({"tags": [tag.to_json() for tag in tags]}))
        return
    width = max((len(tag.name) for tag in tags), default=0)
    for tag in tags:
        about = [part for part in (tag.actor, tag.message) if part]
        print("  ".join([f"{tag.name:<{width}}", tag.commit_id, utc(tag.created_us), *about]))


@app.command("delete")
@takes_graph
def delete_command(
    run: Invocation,
    name: TagName,
    as_json: Json = False,
) -> None:
    """Delete a tag; the commit remains readable by id until a cleanup."""
    address = run.address()
    run.confirm(address, as_json=as_json)
    run.announce(address)
    graph = run.open(address)
    graph.tag_delete(name)
    if as_json:
        from omnigraph.wire.branches import RefDeletedDocument

        print_json(RefDeletedDocument(address.uri, name, graph.actor))
    else:
        print(f"tag {name} deleted")
