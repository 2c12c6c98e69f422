"""`omnigraph branch`: create, list, delete and merge branches."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli import completion
from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Invocation, Json, Message, takes_graph
from omnigraph.cli.io.conflicts import Preview, Resolve, print_plan, resolutions
from omnigraph.cli.io.output import print_json, remark
from omnigraph.cli.io.points import point
from omnigraph.cli.io.progress import progress_bar

app = command_group("Create, list, delete and merge branches.")


@app.command("create")
@takes_graph
def create_command(
    run: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new branch.")],
    from_branch: Annotated[
        str | None, typer.Option("--from", metavar="BRANCH", help="The branch to start from.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="POINT", help="The point to start from: a branch, tag, commit id, version or time."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a branch without copying data."""
    address = run.storage()
    base = run.branch(from_branch)
    run.announce(address)
    graph = run.open(address)
    head = graph.branch_create(name, base, at=point(at))
    if as_json:
        from omnigraph.wire.branches import BranchCreatedDocument

        document = {"uri": address.uri, "from": base, "name": head.branch, "actor_id": run.actor}
        print_json(BranchCreatedDocument.of({**document, "graph_commit_id": head.commit_id}))
        return
    print(f"branch {head.branch} created at {at or base}")


@app.command("list")
@takes_graph
def list_command(run: Invocation, as_json: Json = False) -> None:
    """List the branches."""
    names = sorted(run.open(read_only=True).branches())
    if as_json:
        from omnigraph.wire.branches import BranchListDocument

        print_json(BranchListDocument(names))
        return
    for name in names:
        print(name)


@app.command("delete")
@takes_graph
def delete_command(
    run: Invocation,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The branch to delete.", autocompletion=completion.branches)
    ],
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Delete it even if it has commits that are on no other branch.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Delete a branch; its commits remain readable by id until a cleanup."""
    address = run.storage()
    run.confirm(address, as_json=as_json)
    run.announce(address)
    run.open(address).branch_delete(name, force=force)
    if as_json:
        from omnigraph.wire.branches import RefDeletedDocument

        print_json(RefDeletedDocument(address.uri, name, run.actor))
        return
    print(f"branch {name} deleted")


@app.command("merge")
@takes_graph
def merge_command(
    run: Invocation,
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="The branch to merge from.", autocompletion=completion.branches),
    ],
    into: Annotated[str | None, typer.Option("--into", metavar="TARGET", help="The branch to merge into.")] = None,
    resolve: Resolve = None,
    delete_branch: Annotated[bool, typer.Option("--delete-branch", help="Delete SOURCE after the merge.")] = False,
    preview: Preview = False,
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Merge a branch into another as one commit; on conflicts, report all of them and write nothing.

    omnigraph branch merge review/may --into main ./my.omni
    """
    target = run.branch(into)
    how = resolutions(resolve or [])
    address = run.storage()
    if preview:
        plan = run.open(address, read_only=True).merge_preview(source, target, resolve=how)
        if as_json:
            from omnigraph.wire.branches import MergePreviewDocument

            print_json(MergePreviewDocument.of({"source": source, "target": target, **plan.to_json()}))
        else:
            print_plan(plan, f"merge preview {source} -> {target}", source, "merge")
        return
    run.announce(address)
    graph = run.open(address)
    with progress_bar(f"merging {source}", wanted=not (as_json or run.options.quiet)):
        result = graph.merge(source, target, message=message, resolve=how, delete_branch=delete_branch)
    if result.branch_delete_error is not None:
        remark("warning", f"branch '{source}' was merged but not deleted: {result.branch_delete_error}")
    if as_json:
        from omnigraph.wire.branches import MergeDocument

        print_json(MergeDocument.of({**result.to_json(), "actor_id": run.actor}))
        return
    print(f"merge {source} -> {target}: {result.outcome}")
    for step in result.schema_steps:
        print(f"  schema: {step}")
