"""`omnigraph lint`: check a file of queries against a schema or a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.errors import FAILED, UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.files import STDIN, read_text
from omnigraph.cli.io.output import plural, print_json
from omnigraph.cli.io.query_input import SchemaFile

if TYPE_CHECKING:
    from omnigraph.query.lint import LintReport


@takes_graph
def lint_command(
    run: Invocation,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A file of queries (.gq); '-' reads stdin.", show_default=False)
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", "-q", metavar="FILE", help="The file of queries, as an option.")
    ] = None,
    schema: SchemaFile = None,
    branch: Branch = None,
    as_json: Json = False,
) -> None:
    """Check every query of a file against a schema or a graph.

    Exits with 1 if there are errors; warnings do not count.
    """
    from omnigraph.query.lint import lint
    from omnigraph.schema.check import compile_schema

    if query is not None:
        if file is not None and run.uri is not None:
            raise UsageFault(f"unexpected argument '{file}': with --query, the only argument is the graph")
        run.uri = run.uri or file
    elif file is None:
        raise UsageFault("no file was given; write: omnigraph lint FILE [URI]")
    else:
        query = file
    path = query if query == STDIN else str(run.config.find_query(query))
    text = read_text(path)
    if schema is not None:
        catalog, source = compile_schema(read_text(schema), schema), {"kind": "file", "path": schema}
    else:
        address = run.address()
        catalog = run.open(address, branch=run.branch(branch), read_only=True).catalog()
        source = {"kind": "graph", "uri": address.uri}
    report = lint(catalog, text, query_path=path, schema_source=source)
    if as_json:
        from omnigraph.wire.schemas import LintDocument

        print_json(LintDocument.of(report.to_dict()))
    else:
        _print(report)
    if not report.ok:
        raise typer.Exit(FAILED)


def _print(report: LintReport) -> None:
    for result in report.results:
        if result.diagnostics:
            first, *more = result.diagnostics
            print(f"error  {result.name}: {first.render('cli')}")
            for diagnostic in more:
                print(diagnostic.render("cli"))
        else:
            print(f"ok     {result.name} ({result.kind})")
        for warning in result.warnings:
            print(f"warn   {result.name}: {warning}")
    for finding in report.findings:
        texts = [diagnostic.render("cli") for diagnostic in finding.diagnostics] or [finding.message]
        print(f"{finding.severity}  {finding.code} {texts[0]}")
        for text in texts[1:]:
            print(text)
    queries = plural(len(report.results), "query", "queries")
    errors, warnings, infos = report.errors, report.warnings, report.infos
    print(f"lint: {queries}, {plural(errors, 'error')}, {plural(warnings, 'warning')}, {plural(infos, 'info')}")
