"""`omnigraph change`: run a mutation query as one commit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, cast

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, Message, takes_graph_by_option
from omnigraph.cli.io.files import writing
from omnigraph.cli.io.formats import ReadTarget
from omnigraph.cli.io.output import commit_document, json_text, plural
from omnigraph.cli.io.query_input import (
    AliasName,
    Assignments,
    Params,
    ParamsFile,
    QueryFile,
    QueryName,
    QueryOptions,
    QueryText,
    StoredRequest,
    Words,
    find_request,
    parameter_hints,
)
from omnigraph.cli.io.result_output import Format, Out, choose_format, write_rows

if TYPE_CHECKING:
    from omnigraph.operations.mutate import MutationResult


@takes_graph_by_option
def change_command(
    run: Invocation,
    words: Words = None,
    query: QueryFile = None,
    text: QueryText = None,
    alias: AliasName = None,
    name: QueryName = None,
    params: Params = None,
    params_file: ParamsFile = None,
    assignments: Assignments = None,
    branch: Branch = None,
    message: Message = None,
    if_commit: Annotated[
        str | None,
        typer.Option(
            "--if-commit", metavar="ID", help="Only if the head of the branch is this commit; otherwise exit with 4."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Run and check the statements, write nothing, and show what would change.")
    ] = False,
    format_: Format = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Run a mutation query, or a stored one by its name, as one commit and show its rows; 'mutate' is a synonym.

    omnigraph change -q people.gq -n rename -p email=bo@x -p name=Bob ./my.omni

    omnigraph change rename -p email=bo@x -p name=Bob ./my.omni
    """
    options = QueryOptions(query, text, alias, name, params, params_file, assignments)
    request = find_request(run, options, words, changes=True)
    if dry_run and isinstance(request, StoredRequest):
        raise UsageFault("a stored query has no dry run; give its text with -q or -e")
    chosen = choose_format(run, request.format, format_, out, as_json=as_json)
    on = run.branch(branch, request.alias.branch if request.alias else None)
    graph = run.open(request.address, branch=on)
    with parameter_hints():
        if isinstance(request, StoredRequest):
            found = graph.invoke(
                request.name, request.params, expect_mutation=True, message=message, if_commit=if_commit
            )
            result = cast("MutationResult", found)
        else:
            result = graph.mutate(
                request.source, request.name, request.params, message=message, if_commit=if_commit, dry_run=dry_run
            )
    returns = bool(result.rows.columns)
    if as_json or (returns and chosen == "json"):
        from omnigraph.wire.queries import change_document

        commit = commit_document(graph, result.commit_id)
        done = change_document(result, branch=on, query_name=request.name, actor=graph.actor, commit=commit)
        with writing(out) as file:
            file.write(json_text(done).encode() + b"\n")
        return
    if returns:
        write_rows(run, result.rows, ReadTarget(on), chosen, out)
    # Returned rows are the output; the summary then goes to stderr.
    summary = sys.stderr if returns else sys.stdout
    counted = f"{plural(result.affected_nodes, 'node')}, {plural(result.affected_edges, 'edge')} affected"
    print(f"change {request.name} branch={on}: {counted}{' (dry run)' if dry_run else ''}", file=summary)
    for key, counts in (result.tables or {}).items():
        print(f"  {key}: {', '.join(f'{count:,} {op}' for op, count in counts.items() if count)}", file=summary)
    if graph.actor:
        print(f"actor: {graph.actor}", file=summary)
