"""`omnigraph lint`: check files of queries against a schema or a graph, and files of schemas."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.errors import FAILED, UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, is_graph, takes_graph_by_option
from omnigraph.cli.io.annotations import (
    Annotation,
    FormatOption,
    choose_report_format,
    diagnostic_annotations,
    print_annotations,
    report_annotations,
)
from omnigraph.cli.io.files import STDIN, read_text
from omnigraph.cli.io.output import plural, print_json
from omnigraph.cli.io.query_input import SchemaFile
from omnigraph.errors import CompileError

if TYPE_CHECKING:
    from omnigraph.query.lint import LintReport
    from omnigraph.schema.catalog import Catalog


@takes_graph_by_option
def lint_command(
    run: Invocation,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]... [URI]",
            help="Files of queries (.gq) and schemas (.pg), and the graph; '-' reads queries from stdin.",
            show_default=False,
        ),
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", "-q", metavar="FILE", help="The file of queries, as an option.")
    ] = None,
    schema: SchemaFile = None,
    branch: Branch = None,
    format_: FormatOption = None,
    as_json: Json = False,
) -> None:
    """Check every query of files against a schema or a graph, and files of schemas.

    Without --schema and a graph, the schema of a query file is the one that an editor uses, such as the only .pg file
    beside it. Exits with 1 if there are errors; warnings do not count.

    omnigraph lint --schema schema.pg people.gq places.gq
    """
    chosen = choose_report_format(format_, as_json=as_json)
    files = _files(run, words or [], query)
    schemas = _Schemas(run, schema, branch)
    reports: list[LintReport] = []
    annotations: list[Annotation] = []
    invalid_schema = False
    for path in files:
        text = read_text(path)
        try:
            report = schemas.check(path, text)
        except CompileError as error:  # of the schema that the queries use
            if chosen not in ("github", "sarif"):
                raise
            annotations += diagnostic_annotations(error.diagnostics)
            invalid_schema = True
            continue
        reports.append(report)
        annotations += report_annotations(report, text)
    if chosen == "json":
        _print_json(reports)
    elif chosen == "text":
        _print_text(reports)
    else:
        print_annotations(annotations, chosen)
    if invalid_schema or not all(report.ok for report in reports):
        raise typer.Exit(FAILED)


def _files(run: Invocation, words: list[str], query: str | None) -> list[str]:
    """Return the paths of the files; sets the graph from the last argument unless it has the form of a file."""
    if query is not None:
        if len(words) > 1:
            raise UsageFault(f"unexpected argument '{words[0]}': with --query, the only argument is the graph")
        run.uri = words[0] if words else None
        words = [query]
    elif len(words) > 1 and not _is_file(words[-1]):
        *words, run.uri = words
    if not words:
        raise UsageFault("no file was given; write: omnigraph lint FILE [URI]")
    if len(words) > 1 and is_graph(words[0]):
        raise UsageFault(f"the graph comes last: omnigraph lint {' '.join(words[1:])} {words[0]}")
    return [word if _is_schema(word) or word == STDIN else str(run.config.find_query(word)) for word in words]


def _is_file(word: str) -> bool:
    return word == STDIN or word.endswith(".gq") or _is_schema(word)


def _is_schema(path: str) -> bool:
    return path.endswith(".pg")


class _Schemas:
    """The schemas of query files, each compiled once."""

    def __init__(self, run: Invocation, schema: str | None, branch: str | None) -> None:
        self._run = run
        self._schema = schema
        self._branch = branch
        self._found: dict[str, Catalog] = {}

    def check(self, path: str, text: str) -> LintReport:
        """Check a file; raises `CompileError` if the schema of a query file is not valid."""
        from omnigraph.query.lint import lint, lint_schema

        if _is_schema(path):
            return lint_schema(text, query_path=path, schema_source={"kind": "file", "path": path})
        catalog, source = self._of_queries(path, text)
        return lint(catalog, text, query_path=path, schema_source=source)

    def _of_queries(self, path: str, text: str) -> tuple[Catalog, dict[str, str]]:
        if self._schema is not None or self._run.has_address:
            return self._given
        from omnigraph.lsp.documents import Documents
        from omnigraph.schema.check import compile_schema

        found = Documents().schema_of(Path(path).resolve(), text)
        if found is None:
            return self._given
        name = found.graph or os.path.relpath(str(found.path))
        if name not in self._found:
            self._found[name] = compile_schema(found.text, name)
        return self._found[name], {"kind": "graph", "uri": name} if found.graph else {"kind": "file", "path": name}

    @cached_property
    def _given(self) -> tuple[Catalog, dict[str, str]]:
        """The schema that --schema or the graph gives."""
        from omnigraph.schema.check import compile_schema

        if self._schema is not None:
            return compile_schema(read_text(self._schema), self._schema), {"kind": "file", "path": self._schema}
        address = self._run.address()
        graph = self._run.open(address, branch=self._run.branch(self._branch), read_only=True)
        return graph.catalog(), {"kind": "graph", "uri": address.uri}


def _print_json(reports: list[LintReport]) -> None:
    """Print the report of one file, or those of several."""
    from omnigraph.wire.schemas import LintDocument

    documents = [LintDocument.of(report.to_dict()) for report in reports]
    if len(documents) == 1:
        print_json(documents[0])
    else:
        print_json({"status": "ok" if all(report.ok for report in reports) else "error", "files": documents})


def _print_text(reports: list[LintReport]) -> None:
    for report in reports:
        if len(reports) > 1:
            print(f"{report.query_path}:")
        _print(report)
    counts = [plural(len(reports), "file")] if len(reports) > 1 else []
    counts += [
        plural(sum(len(report.results) for report in reports), "query", "queries"),
        plural(sum(report.errors for report in reports), "error"),
        plural(sum(report.warnings for report in reports), "warning"),
        plural(sum(report.infos for report in reports), "info"),
    ]
    print(f"lint: {', '.join(counts)}")


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
    if _is_schema(report.query_path) and report.ok:
        print(f"ok     {report.query_path} (schema)")
    for finding in report.findings:
        texts = [diagnostic.render("cli") for diagnostic in finding.diagnostics] or [finding.message]
        print(f"{finding.severity}  {finding.code} {texts[0]}")
        for text in texts[1:]:
            print(text)
