"""`omnigraph explain`: show how a query will run."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from omnigraph.cli.files import read_text


def explain_command(
    schema: Annotated[str, typer.Option("--schema", metavar="FILE", help="The schema (.pg).")],
    query: Annotated[str, typer.Option("--query", metavar="FILE", help="The queries (.gq); '-' reads stdin.")],
    name: Annotated[str | None, typer.Option("--name", help="Which query; needed when there are several.")] = None,
) -> None:
    """Show the plan of a query as text."""
    from omnigraph.query.compile import compile_query
    from omnigraph.query.explain import explain
    from omnigraph.schema.check import compile_schema

    catalog = compile_schema(read_text(schema), schema)
    sys.stdout.write(explain(compile_query(catalog, read_text(query), name, source_name=query)))
