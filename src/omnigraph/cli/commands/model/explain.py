"""`omnigraph explain`: show the plan of a query, or explain an error code."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, takes_graph_by_option
from omnigraph.cli.io.files import STDIN, read_text
from omnigraph.cli.io.params import gather
from omnigraph.cli.io.query_input import (
    Assignments,
    Params,
    ParamsFile,
    QueryFile,
    QueryName,
    QueryText,
    SchemaFile,
    declared_types,
)
from omnigraph.error_page import error_pages
from omnigraph.errors import NotFound
from omnigraph.suggestions import did_you_mean


@takes_graph_by_option
def explain_command(
    run: Invocation,
    word: Annotated[
        str | None,
        typer.Argument(metavar="CODE|URI", help="An error code; with a query, the graph."),
    ] = None,
    query: QueryFile = None,
    text: QueryText = None,
    name: QueryName = None,
    schema: SchemaFile = None,
    branch: Branch = None,
    profile: Annotated[bool, typer.Option("--profile", help="Run the query and report each step.")] = False,
    params: Params = None,
    params_file: ParamsFile = None,
    assignments: Assignments = None,
) -> None:
    """Show the plan of a query, or explain an error code.

    omnigraph explain T7
    omnigraph explain -q people.gq -n adults ./my.omni
    """
    if query is None and text is None:
        if word is None:
            raise UsageFault("give an error code, or a query (--query FILE or -e TEXT)")
        sys.stdout.write(explain_code(word))
        return
    if query is not None and text is not None:
        raise UsageFault("--query and -e exclude each other")
    if schema is not None and (profile or word is not None):
        raise UsageFault("--schema excludes a graph and --profile")
    from omnigraph.query.compile import compile_query, pick_query
    from omnigraph.query.plan.explain import explain
    from omnigraph.query.syntax.parser import parse_queries
    from omnigraph.schema.check import compile_schema

    path = run.config.find_query(query) if query not in (None, STDIN) and query is not None else None
    source = read_text(STDIN) if query == STDIN else read_text(str(path)) if path is not None else text or ""
    if schema is not None:
        catalog = compile_schema(read_text(schema), schema)
        sys.stdout.write(explain(compile_query(catalog, source, name, source_name=str(path or "<query>"))))
        return
    run.uri = word
    graph = run.open_for_queries(branch=run.branch(branch))
    if not profile:
        sys.stdout.write(graph.explain(path or source, name))
        return
    picked = pick_query(parse_queries(source, str(path or "<query>")), name)
    given = gather(declared_types(picked), params=params, params_file=params_file, assignments=assignments or ())
    sys.stdout.write(graph.profile(path or source, picked.name.text, given))


def explain_code(code: str) -> str:
    """Return the explanation of an error code."""
    pages, words = error_pages()
    for known, text in pages.items():
        if known.lower() == code.lower():
            return f"{known}\n\n{_plain(text)}\n"
    for known, (class_, meaning) in words.items():
        if known.lower() == code.lower():
            return f"{known} ({class_})\n\n{meaning[0].upper()}{meaning[1:]}.\n"
    raise NotFound(
        f"there is no error code '{code}'",
        code="unknown_code",
        hint=(len(code) > 4 and did_you_mean(code, [*pages, *words]))
        or "codes look like S11, T7, OG-MF-103 or branch_not_found",
    )


def _plain(markdown: str) -> str:
    """Convert Markdown for a terminal: code is indented, links are reduced to their text."""
    lines: list[str] = []
    code = False
    for line in markdown.splitlines():
        if line.startswith("```"):
            code = not code
            continue
        lines.append(f"    {line}" if code else re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", line).replace("**", ""))
    return "\n".join(lines)
