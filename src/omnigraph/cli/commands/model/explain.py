"""`omnigraph explain`: show the plan of a query, or explain an error code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph_by_option
from omnigraph.cli.io.files import STDIN, read_text
from omnigraph.cli.io.output import print_json
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
    parameter_hints,
)
from omnigraph.error_page import explain_code

if TYPE_CHECKING:
    from omnigraph.notebook.tables import PlanText


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
    as_json: Json = False,
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
    from omnigraph.notebook.tables import PlanText
    from omnigraph.query.compile import compile_query, pick_query
    from omnigraph.query.inline import inline_params
    from omnigraph.query.params import bind_params
    from omnigraph.query.plan.explain import explain
    from omnigraph.query.plan.plan_hash import plan_hash
    from omnigraph.query.plan.plan_tree import plan_tree
    from omnigraph.query.syntax.parser import parse_queries
    from omnigraph.schema.check import compile_schema

    path = run.config.find_query(query) if query not in (None, STDIN) and query is not None else None
    source = read_text(STDIN) if query == STDIN else read_text(str(path)) if path is not None else text or ""
    picked = pick_query(parse_queries(source, str(path or "<query>")), name)
    given = gather(
        declared_types(picked),
        params=params,
        params_file=params_file,
        assignments=assignments or (),
        bare=picked.is_bare,
    )
    if schema is not None:
        catalog = compile_schema(read_text(schema), schema)
        plan = compile_query(
            catalog, source, name, source_name=str(path or "<query>"), declared=inline_params(source, given)
        )
        if given:
            bind_params(plan.params, given)
        _write(PlanText(explain(plan), plan_hash(plan), plan_tree(plan)), as_json=as_json)
        return
    run.uri = word
    graph = run.open_for_queries(branch=run.branch(branch))
    with parameter_hints():
        if profile:
            shown = graph.profile(path or source, picked.name.text, given)
        else:
            # Without parameters their values are not checked.
            shown = graph.explain(path or source, picked.name.text, given or None)
    _write(shown, as_json=as_json)


def _write(plan: PlanText, *, as_json: bool) -> None:
    """Print a plan as text or as a document."""
    if not as_json:
        sys.stdout.write(plan)
        return
    from omnigraph.wire.queries import ExplainDocument

    print_json(ExplainDocument.of({"text": plan, "plan_hash": plan.plan_hash, "plan": plan.tree}))
