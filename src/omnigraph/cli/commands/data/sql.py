"""`omnigraph sql`: run a SELECT on the types of a graph."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated, Any

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.files import read_text
from omnigraph.cli.io.formats import ReadTarget
from omnigraph.cli.io.points import At, check_branch_or_at, point
from omnigraph.cli.io.query_input import Assignments
from omnigraph.cli.io.result_output import Format, Out, choose_format, write_rows


@takes_graph
def sql_command(
    run: Invocation,
    text: Annotated[str | None, typer.Option("-e", "--sql-string", metavar="SQL", help="The statement.")] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-q", metavar="FILE", help="A file with the statement; '-' reads stdin.")
    ] = None,
    assignments: Assignments = None,
    blobs: Annotated[
        list[str] | None, typer.Option("--blob", metavar="TYPE.PROPERTY", help="Include this Blob; may be repeated.")
    ] = None,
    branch: Branch = None,
    at: At = None,
    format_: Format = None,
    out: Out = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", min=0.001, metavar="SECONDS", help="Cancel the statement after this time."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run one SELECT by DuckDB; each node and edge type is a view, edges with src and dst.

    omnigraph sql -e 'select name, age from Person where age > $n' -p n=30 ./my.omni

    omnigraph sql -q report.sql --at v1 ./my.omni
    """
    check_branch_or_at(branch, at)
    if (text is None) == (file is None):
        raise UsageFault("give the statement with -e SQL or with --file FILE")
    statement = text if text is not None else read_text(file or "")
    chosen = choose_format(run, None, format_, out, as_json=as_json)
    on = run.branch(branch)
    graph = run.open_for_queries(branch=None if at else on)
    params = _params(assignments or ())
    result = graph.sql(statement, params or None, blobs=blobs or (), at=point(at), timeout=timeout)
    write_rows(run, result, ReadTarget(None, at) if at else ReadTarget(on), chosen, out)


def _params(assignments: list[str] | tuple[()]) -> dict[str, Any]:
    """Return the parameters; a value that is JSON is that value, any other is a text."""
    found: dict[str, Any] = {}
    for word in assignments:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageFault(f"'{word}' is not NAME=VALUE")
        found[name.removeprefix("$")] = value
        with suppress(ValueError):
            found[name.removeprefix("$")] = json.loads(value)
    return found
