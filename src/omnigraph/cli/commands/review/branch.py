"""`omnigraph branch`: create, list, describe, delete and merge branches."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from omnigraph.cli import completion
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Invocation, Json, Message, takes_graph
from omnigraph.cli.io.conflicts import Preview, Resolve, print_plan, resolutions
from omnigraph.cli.io.durations import read_duration
from omnigraph.cli.io.output import commit_document, print_json, remark
from omnigraph.cli.io.points import point
from omnigraph.cli.io.progress import progress_bar
from omnigraph.cli.io.query_input import PolicyBreakage, QueryBreakage
from omnigraph.cli.schema_rules import open_for_schema_change, remark_on_rules

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.versioning.model.manifest_objects import Head

Name = Annotated[str, typer.Argument(metavar="NAME", help="The branch.", autocompletion=completion.branches)]
Description = Annotated[
    str | None, typer.Option("--description", metavar="TEXT", help="The description of the branch; '' removes it.")
]

app = command_group("Create, list, describe, delete and merge branches.")


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
    description: Description = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="AGE", help="The time until a cleanup deletes it: 12h, 14d, 4w."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a branch without copying data."""
    expires_in = read_duration(expires) if expires is not None else None
    address = run.address()
    base = run.branch(from_branch)
    run.announce(address)
    graph = run.open(address)
    head = graph.branch_create(name, base, at=point(at), description=description, expires_in=expires_in)
    if as_json:
        from omnigraph.wire.branches import BranchCreatedDocument

        document = {"uri": address.uri, "from": base, "name": head.branch, "actor_id": graph.actor}
        print_json(BranchCreatedDocument.of({**document, "graph_commit_id": head.commit_id}))
        return
    print(f"branch {head.branch} created at {at or base}")


@app.command("list")
@takes_graph
def list_command(
    run: Invocation,
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="BRANCH",
            help="Show how many commits each branch and this one have alone.",
            autocompletion=completion.branches,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the branches."""
    graph = run.open(read_only=True)
    from omnigraph.wire.branches import BranchListDocument, ComparedBranchDocument, branch_document
    from omnigraph.wire.commits import CommitDocument

    if compare is None:
        names = sorted(graph.branches())
        if as_json:
            print_json(BranchListDocument(names))
            return
        for name in names:
            print(name)
        return
    found = graph.branch_status(compare)
    if as_json:
        documents = [
            branch_document(
                each.head,
                CommitDocument.of(each.commit.to_json()),
                ComparedBranchDocument(each.base, each.ahead, each.behind),
            )
            for each in found
        ]
        print_json(BranchListDocument([each.name for each in found], statuses=documents))
        return
    for each in found:
        print(f"{each.name}  {each.ahead} ahead, {each.behind} behind {each.base}  {each.commit.id}")


@app.command("show")
@takes_graph
def show_command(run: Invocation, name: Name, as_json: Json = False) -> None:
    """Show the newest commit, the owner, the description and the expiry of a branch."""
    graph = run.open(read_only=True)
    _print_branch(graph, graph.head(name), as_json=as_json)


@app.command("update")
@takes_graph
def update_command(
    run: Invocation,
    name: Name,
    description: Description = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="AGE", help="The time until a cleanup deletes it: 12h, 14d, 4w, or 'never'."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Set the description of a branch, or the time at which it expires.

    omnigraph branch update review/may --expires never ./my.omni
    """
    if description is None and expires is None:
        raise UsageFault("give --description or --expires")
    end: datetime | Literal["never"] | None = None
    if expires is not None:
        end = "never" if expires == "never" else datetime.now(UTC) + read_duration(expires)
    address = run.address()
    run.announce(address)
    graph = run.open(address)
    _print_branch(graph, graph.branch_update(name, description=description, expires_at=end), as_json=as_json)


def _print_branch(graph: Graph, head: Head, *, as_json: bool) -> None:
    commit = commit_document(graph, head.commit_id)
    assert commit is not None
    if as_json:
        from omnigraph.wire.branches import branch_document

        print_json(branch_document(head, commit))
        return
    print(f"branch {head.branch} at {head.commit_id}")
    for label, value in (("owner", head.owner), ("description", head.description), ("expires", head.expires_at)):
        if value is not None:
            print(f"{label}: {value}")


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
    address = run.address()
    run.confirm(address, as_json=as_json)
    run.announce(address)
    graph = run.open(address)
    graph.branch_delete(name, force=force)
    if as_json:
        from omnigraph.wire.branches import RefDeletedDocument

        print_json(RefDeletedDocument(address.uri, name, graph.actor))
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
    allow_policy_breakage: PolicyBreakage = False,
    allow_query_breakage: QueryBreakage = False,
    force: Annotated[
        bool, typer.Option("--force", help="Merge past the rules for proposals to TARGET, if the policy permits it.")
    ] = False,
    source_commit: Annotated[
        str | None,
        typer.Option("--source-commit", metavar="ID", help="Only if the head of SOURCE is this commit."),
    ] = None,
    preview: Preview = False,
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Merge a branch into another as one commit; on conflicts, report all of them and write nothing.

    omnigraph branch merge review/may --into main ./my.omni
    """
    target = run.branch(into)
    how = resolutions(resolve or [])
    address = run.address()
    if preview:
        graph = open_for_schema_change(run, address, read_only=True)
        plan = graph.merge_preview(source, target, resolve=how, source_commit=source_commit)
        remark_on_rules(plan.broken_rules)
        if as_json:
            from omnigraph.wire.branches import MergePreviewDocument

            print_json(MergePreviewDocument.of({"source": source, "target": target, **plan.to_json()}))
        else:
            print_plan(plan, f"merge preview {source} -> {target}", source, "merge")
        return
    run.announce(address)
    graph = open_for_schema_change(run, address)
    with progress_bar(f"merging {source}", wanted=not (as_json or run.options.quiet)):
        result = graph.merge(
            source,
            target,
            message=message,
            resolve=how,
            delete_branch=delete_branch,
            allow_policy_breakage=allow_policy_breakage,
            allow_query_breakage=allow_query_breakage,
            force=force,
            source_commit=source_commit,
        )
    if result.branch_delete_error is not None:
        remark("warning", f"branch '{source}' was merged but not deleted: {result.branch_delete_error}")
    if as_json:
        from omnigraph.wire.branches import MergeDocument

        print_json(MergeDocument.of({**result.to_json(), "actor_id": graph.actor}))
        return
    print(f"merge {source} -> {target}: {result.outcome}")
    for step in result.schema_steps:
        print(f"  schema: {step}")
