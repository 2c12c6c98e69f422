"""Findings about files in the formats of code review tools: GitHub workflow commands and SARIF 2.1.0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

import typer

from omnigraph.cli import completion
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.io.output import print_json
from omnigraph.errors import Diagnostic, hint_for
from omnigraph.fast_dataclass import dataclass
from omnigraph.version import __version__

if TYPE_CHECKING:
    from omnigraph.policy.yaml_nodes import PolicyProblem
    from omnigraph.query.lint import LintReport, Severity

ReportFormat = Literal["text", "json", "github", "sarif"]
_FORMATS: tuple[ReportFormat, ...] = ("text", "json", "github", "sarif")
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="|".join(_FORMATS),
        help="The output: text, JSON, workflow commands of GitHub, or SARIF 2.1.0.",
        autocompletion=completion.one_of(*_FORMATS),
    ),
]
_GITHUB_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}
_SARIF_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Annotation:
    """A finding about a place of a file; line and column count from 1, the column in characters."""

    severity: Severity
    code: str
    message: str
    path: str
    line: int | None = None
    column: int | None = None


def choose_report_format(format_: str | None, *, as_json: bool) -> ReportFormat:
    """Return the format that `--format` or `--json` names."""
    if as_json and format_ is not None:
        raise UsageFault("--json and --format exclude each other")
    for known in _FORMATS:
        if format_ == known:
            return known
    if format_ is not None:
        raise UsageFault(f"there is no format '{format_}'; the formats are {', '.join(_FORMATS)}")
    return "json" if as_json else "text"


def print_annotations(found: Iterable[Annotation], format_: Literal["github", "sarif"]) -> None:
    """Print annotations; equal ones are printed once."""
    distinct = list(dict.fromkeys(found))
    if format_ == "sarif":
        print_json(sarif_log(distinct))
        return
    for annotation in distinct:
        print(github_command(annotation))


def report_annotations(report: LintReport, text: str) -> Iterator[Annotation]:
    """Yield the findings of a lint report on a text.

    A warning of a query is placed at the name of the query. A finding about the schema is placed in the schema file.
    """
    names = list(_query_names(report, text))
    for result, (_, line, column) in zip(report.results, names, strict=True):
        yield from diagnostic_annotations(result.diagnostics)
        for warning in result.warnings:
            yield Annotation("warning", "query_warning", warning, report.query_path, line, column)
    for finding in report.findings:
        if finding.diagnostics:
            yield from diagnostic_annotations(finding.diagnostics, finding.severity)
            continue
        about = finding.severity, finding.code, finding.message
        queries = [(line, column) for name, line, column in names if name in finding.query_names]
        if queries:
            yield Annotation(*about, report.query_path, *queries[0])
        else:
            yield Annotation(*about, report.schema_source.get("path", report.query_path))


def diagnostic_annotations(diagnostics: Iterable[Diagnostic], severity: Severity = "error") -> Iterator[Annotation]:
    """Yield errors in source texts, each with its hint."""
    for one in diagnostics:
        hint = hint_for(one.hint, "cli")
        message = f"{one.message}\nhint: {hint}" if hint else one.message
        yield Annotation(severity, one.code, message, one.source_name, one.line, one.column)


def policy_annotations(
    path: Path, problems: Iterable[PolicyProblem] = (), warnings: Iterable[str] = ()
) -> Iterator[Annotation]:
    """Yield the problems and warnings of a policy that is given as a file or as a folder."""
    from omnigraph.policy.load import policy_path

    file = str(policy_path(path))
    for problem in problems:
        # `describe` without its line, which the annotation has.
        yield Annotation("error", "policy_invalid", replace(problem, line=None).describe(), file, problem.line)
    for warning in warnings:
        yield Annotation("warning", "policy_warning", warning, file)


def _query_names(report: LintReport, text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each query of a report with its line and column."""
    from omnigraph.lang.spans import Source
    from omnigraph.query.syntax.parser import parse_source

    if report.results:  # otherwise the text is a schema, or has a syntax error
        source = Source(text, report.query_path)
        for query in parse_source(source)[0].queries:
            yield query.name.text, *source.line_and_column(query.name.span.start)


# -- formats -----------------------------------------------------------------------------------------


def github_command(annotation: Annotation) -> str:
    """Return an annotation as a workflow command of GitHub."""
    values = {
        "file": _local_path(annotation.path).as_posix(),
        "line": annotation.line,
        "col": annotation.column,
        "title": annotation.code,
    }
    given = ",".join(f"{name}={_property(str(value))}" for name, value in values.items() if value is not None)
    return f"::{_GITHUB_COMMANDS[annotation.severity]} {given}::{_data(annotation.message)}"


def _data(text: str) -> str:
    """Escape the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape the value of a property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def sarif_log(annotations: list[Annotation]) -> dict[str, Any]:
    """Return annotations as a SARIF log with one run."""
    codes = dict.fromkeys(annotation.code for annotation in annotations)
    driver = {"name": "omnigraph", "version": __version__, "rules": [{"id": code} for code in codes]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(annotation) for annotation in annotations],
    }
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_result(annotation: Annotation) -> dict[str, Any]:
    path = _local_path(annotation.path)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    region = {"startLine": annotation.line, "startColumn": annotation.column}
    if annotation.line is not None:
        place["region"] = {name: value for name, value in region.items() if value is not None}
    return {
        "ruleId": annotation.code,
        "level": _SARIF_LEVELS[annotation.severity],
        "message": {"text": annotation.message},
        "locations": [{"physicalLocation": place}],
    }


def _local_path(path: str) -> Path:
    """Return a path relative to the working directory if it lies below it."""
    absolute = Path(path).absolute()
    return absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else absolute
