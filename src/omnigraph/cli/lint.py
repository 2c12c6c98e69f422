"""`omnigraph lint`: check a file of queries against a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.errors import FAILED
from omnigraph.cli.files import read_text
from omnigraph.cli.output import plural, print_json

if TYPE_CHECKING:
    from omnigraph.query.lint import LintReport


def lint_command(
    schema: Annotated[str, typer.Option("--schema", metavar="FILE", help="The schema (.pg).")],
    query: Annotated[str, typer.Option("--query", metavar="FILE", help="The queries (.gq); '-' reads stdin.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check every query of a file against a schema.

    Exits with 1 when something is wrong; warnings are no mistakes.
    """
    from omnigraph.query.lint import lint
    from omnigraph.schema.check import compile_schema

    catalog = compile_schema(read_text(schema), schema)
    report = lint(catalog, read_text(query), query_path=query, schema_source={"kind": "file", "path": schema})
    if as_json:
        print_json(report.to_dict())
    else:
        _print(report)
    if not report.ok:
        raise typer.Exit(FAILED)


def _print(report: LintReport) -> None:
    for result in report.results:
        if result.diagnostics:
            first, *more = result.diagnostics
            print(f"error  {result.name}: {first.render()}")
            for diagnostic in more:
                print(diagnostic.render())
        else:
            print(f"ok     {result.name} ({result.kind})")
        for warning in result.warnings:
            print(f"warn   {result.name}: {warning}")
    for finding in report.findings:
        print(f"{finding.severity}  {finding.code} {finding.message}")
        for diagnostic in finding.diagnostics:
            print(diagnostic.render())
    queries = plural(len(report.results), "query", "queries")
    errors, warnings, infos = report.errors, report.warnings, report.infos
    print(f"lint: {queries}, {plural(errors, 'error')}, {plural(warnings, 'warning')}, {plural(infos, 'info')}")
