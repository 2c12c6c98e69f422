"""`omnigraph branch`: create, list, delete, merge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.ask import point
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Invocation, Json, Message, takes_graph
from omnigraph.cli.output import plural, print_json, remark
from omnigraph.cli.progress import working
from omnigraph.errors import MergeConflict

if TYPE_CHECKING:
    from omnigraph.operations.merge_plan import MergePlan

RESOLUTIONS = ("ours", "theirs", "columns")

app = typer.Typer(no_args_is_help=True, help="Create, list, delete and merge branches.", rich_markup_mode=None)


@app.command("create")
@takes_graph
def create_command(
    run: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new branch.")],
    from_branch: Annotated[str | None, typer.Option("--from", metavar="BRANCH", help="Where it starts.")] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="POINT", help="A commit id, manifest version or time to start at.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a branch; nothing is copied."""
    address = run.storage()
    base = run.branch(from_branch)
    run.announce(address)
    graph = run.open(address)
    head = graph.branch_create(name, base, at=point(at))
    if as_json:
        document = {"uri": address.uri, "from": base, "name": head.branch, "actor_id": run.actor}
        print_json({**document, "graph_commit_id": head.commit_id})
        return
    print(f"branch {head.branch} created at {at or base}")


@app.command("list")
@takes_graph
def list_command(run: Invocation, as_json: Json = False) -> None:
    """List the branches."""
    names = sorted(name for name in run.open(read_only=True).branches() if not name.startswith("__"))
    if as_json:
        print_json({"branches": names})
        return
    for name in names:
        print(name)


@app.command("delete")
@takes_graph
def delete_command(
    run: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The branch to delete.")],
    as_json: Json = False,
) -> None:
    """Delete a branch; its commits stay readable by their ids until a cleanup."""
    address = run.storage()
    run.consent(address, as_json=as_json)
    run.announce(address)
    run.open(address).branch_delete(name)
    if as_json:
        print_json({"uri": address.uri, "name": name, "actor_id": run.actor})
        return
    print(f"branch {name} deleted")


@app.command("merge")
@takes_graph
def merge_command(
    run: Invocation,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The branch whose changes are wanted.")],
    into: Annotated[str | None, typer.Option("--into", metavar="TARGET", help="The branch that gets them.")] = None,
    resolve: Annotated[
        list[str] | None,
        typer.Option(
            "--resolve",
            metavar="HOW",
            help="ours, theirs or columns for conflicting rows; Type=HOW for one type; may be repeated.",
        ),
    ] = None,
    delete_branch: Annotated[bool, typer.Option("--delete-branch", help="Delete SOURCE once it is merged.")] = False,
    preview: Annotated[
        bool, typer.Option("--preview", "--dry-run", help="Say what would happen; write nothing.")
    ] = False,
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Merge a branch into another as one commit, or show every conflict and write nothing.

    omnigraph branch merge review/may --into main ./my.omni
    """
    target = run.branch(into)
    how = resolutions(resolve or [])
    address = run.storage()
    if preview:
        plan = run.open(address, read_only=True).merge_preview(source, target, resolve=how)
        if as_json:
            print_json({"source": source, "target": target, **plan.to_json()})
        else:
            _show(plan, source, target)
        return
    run.announce(address)
    graph = run.open(address)
    try:
        with working(f"merging {source}", wanted=not (as_json or run.options.quiet)):
            result = graph.merge(source, target, message=message, resolve=how, delete_branch=delete_branch)
    except MergeConflict as error:
        error.hint = f"--preview shows every conflict; --resolve {'|'.join(RESOLUTIONS)} settles them"
        raise
    if result.branch_delete_error is not None:
        remark("warning", f"branch '{source}' was merged and not deleted: {result.branch_delete_error}")
    if as_json:
        print_json({**result.to_json(), "actor_id": run.actor})
        return
    print(f"merge {source} -> {target}: {result.outcome}")


def resolutions(given: list[str]) -> Any:
    """`theirs`, or `Person=theirs` for each type: what the library takes."""
    chosen: dict[str, str] = {}
    for word in given:
        type_name, equals, how = word.rpartition("=")
        if how not in RESOLUTIONS:
            raise UsageFault(f"--resolve takes {', '.join(RESOLUTIONS)}, or Type=one of them; not '{word}'")
        if not equals:
            if len(given) > 1:
                raise UsageFault(f"--resolve {word} is for all types; give it alone, or name the types")
            return word
        chosen[type_name] = how
    return chosen or None


def _show(plan: MergePlan, source: str, target: str) -> None:
    print(f"merge preview {source} -> {target}: {plan.outcome}; nothing was written")
    shown = plan.to_json()
    for key, table in shown["tables"].items():
        taken = f", taken over from {source}" if table["adopted"] else ""
        counts = f"{table['inserted']} inserted, {table['updated']} updated, {table['deleted']} deleted"
        print(f"  {key}: {counts}{taken}")
    for step in shown["schema_steps"]:
        print(f"  schema: {step}")
    for conflict in plan.conflicts:
        print(f"conflict  {conflict.id} ({conflict.kind}) {conflict.message}")
    if plan.conflicts:
        print(f"{plural(len(plan.conflicts), 'conflict')}; settle them with --resolve {'|'.join(RESOLUTIONS)}")
