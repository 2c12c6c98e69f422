"""`omnigraph queries`: the queries that are stored with a graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.errors import FAILED, UsageFault
from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Branch, Invocation, Json, Message, is_address, takes_graph, takes_graph_by_option
from omnigraph.cli.io.files import STDIN, read_text
from omnigraph.cli.io.output import commit_document, plural, print_json
from omnigraph.cli.io.points import At, open_at, point
from omnigraph.cli.io.query_input import SchemaFile

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.operations.stored_queries import QueryChange

app = command_group("Store queries with a graph, list, show, validate and delete them.")

QueryName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the stored query.")]
IfCommit = Annotated[
    str | None,
    typer.Option(
        "--if-commit", metavar="ID", help="Only if the head of the branch is this commit; otherwise exit with 4."
    ),
]


@app.command("push")
@takes_graph_by_option
def push_command(
    run: Invocation,
    words: Annotated[
        list[str],
        typer.Argument(metavar="FILE… [URI]", help="Files of queries (.gq), '-' for stdin, then the graph."),
    ],
    branch: Branch = None,
    message: Message = None,
    if_commit: IfCommit = None,
    as_json: Json = False,
) -> None:
    """Store every query of some files as one commit; a stored query of the same name is replaced.

    omnigraph queries push reports.gq ./my.omni
    """
    files = _without_address(run, words, lambda word: not word.endswith(".gq") and word != STDIN)
    if not files:
        raise UsageFault("no file of queries was given; write: omnigraph queries push FILE… [URI]")
    address = run.address()
    run.announce(address)
    graph = run.open(address, branch=run.branch(branch))
    sources = [read_text(STDIN) if file == STDIN else Path(run.config.find_query(file)) for file in files]
    _report(graph, graph.store_query(*sources, message=message, if_commit=if_commit), as_json=as_json)


@app.command("list")
@takes_graph
def list_command(run: Invocation, branch: Branch = None, at: At = None, as_json: Json = False) -> None:
    """List the stored queries that the caller may call."""
    found = open_at(run, branch, at).queries(at=point(at))
    if as_json:
        from omnigraph.wire.stored_queries import StoredQueryListDocument

        print_json(StoredQueryListDocument.of({"queries": [query.to_json(source=False) for query in found]}))
        return
    width = max((len(query.head) for query in found), default=0)
    for query in found:
        kind = "mutation" if query.is_mutation else "read"
        print(f"{query.head:<{width}}  {kind:<8}  {query.description or ''}".rstrip())


@app.command("show")
@takes_graph
def show_command(run: Invocation, name: QueryName, branch: Branch = None, at: At = None, as_json: Json = False) -> None:
    """Show the text of a stored query."""
    from omnigraph.query.stored_queries import QuerySet

    found = open_at(run, branch, at).queries(at=point(at))
    query = QuerySet({each.name: each for each in found}).get(name)
    if as_json:
        from omnigraph.wire.stored_queries import StoredQueryDocument

        print_json(StoredQueryDocument.of(query.to_json()))
        return
    print(query.source)


@app.command("validate")
@takes_graph
def validate_command(
    run: Invocation, schema: SchemaFile = None, branch: Branch = None, at: At = None, as_json: Json = False
) -> None:
    """Check the stored queries against the schema of the graph, or against another one; exit with 1 if one fails.

    omnigraph queries validate --schema next.pg ./my.omni
    """
    from omnigraph.operations.requests import source_text
    from omnigraph.wire.stored_queries import QueryValidationDocument

    graph = open_at(run, branch, at)
    text = source_text(read_text(STDIN)) if schema == STDIN else None if schema is None else Path(schema)
    found = graph.validate_queries(text, at=point(at))
    if as_json:
        print_json(QueryValidationDocument.of(found.to_json()))
    else:
        for each in found.broken:
            print(f"{each.name}: {each.message}")
        for warning in found.warnings:
            print(f"warning: {warning}")
        print(f"{plural(found.queries, 'stored query', 'stored queries')}, {len(found.broken)} broken")
    if not found.ok:
        raise typer.Exit(FAILED)


@app.command("delete")
@takes_graph_by_option
def delete_command(
    run: Invocation,
    words: Annotated[
        list[str], typer.Argument(metavar="NAME… [URI]", help="The names of stored queries, then the graph.")
    ],
    branch: Branch = None,
    message: Message = None,
    if_commit: IfCommit = None,
    as_json: Json = False,
) -> None:
    """Delete stored queries as one commit; older commits keep them.

    omnigraph queries delete adults ./my.omni
    """
    names = _without_address(run, words, is_address)
    if not names:
        raise UsageFault("no stored query was given; write: omnigraph queries delete NAME… [URI]")
    address = run.address()
    run.announce(address)
    graph = run.open(address, branch=run.branch(branch))
    _report(graph, graph.delete_query(*names, message=message, if_commit=if_commit), as_json=as_json)


def _without_address(run: Invocation, words: list[str], is_graph: Callable[[str], bool]) -> list[str]:
    """Return the words without the last one if it is the address of the graph."""
    if words and is_graph(words[-1]):
        run.uri = words[-1]
        return words[:-1]
    return words


def _report(graph: Graph, change: QueryChange, *, as_json: bool) -> None:
    if as_json:
        from omnigraph.wire.stored_queries import QueryChangeDocument

        document = QueryChangeDocument(
            branch=graph.branch,
            stored=list(change.stored),
            deleted=list(change.deleted),
            unchanged=list(change.unchanged),
            actor_id=graph.actor,
            commit=commit_document(graph, change.commit_id),
        )
        print_json(document)
        return
    for label, names in (("stored", change.stored), ("deleted", change.deleted), ("unchanged", change.unchanged)):
        for name in names:
            print(f"{label} {name}")
