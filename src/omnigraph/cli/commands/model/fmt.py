"""`omnigraph fmt`: format schema and query files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.errors import FAILED, report
from omnigraph.cli.io.files import STDIN, read_text, replace_text
from omnigraph.cli.io.output import plural
from omnigraph.errors import InputError, OmniGraphError

_SUFFIXES = (".pg", ".gq")


def fmt_command(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files (.pg, .gq) or directories; '-' formats stdin to stdout."),
    ],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 if a file would change.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Write nothing; show the differences.")] = False,
    language: Annotated[
        str | None, typer.Option("--lang", metavar="pg|gq", help="The language of stdin (default: by file name).")
    ] = None,
) -> None:
    """Format schema and query files; comments are kept.

    A file with syntax errors is reported and not changed.
    """
    if language is not None and f".{language}" not in _SUFFIXES:
        raise typer.BadParameter("the languages are pg and gq", param_hint="--lang")
    changed = failed = seen = 0
    for path in _expand(files):
        seen += 1
        try:
            text = read_text(path)
            formatted = _formatter(path, language)(text, path)
            if path == STDIN and not (check or diff):
                sys.stdout.write(formatted)
            elif formatted != text:
                changed += 1
                _handle(path, text, formatted, check=check, diff=diff)
        except OmniGraphError as error:
            failed += 1
            report(error, as_json=False)
    if files != [STDIN]:
        word = "would change" if check or diff else "changed"
        note = f", {failed} failed" if failed else ""
        print(f"fmt: {plural(seen, 'file')}, {changed} {word}{note}", file=sys.stderr)
    if failed or (changed and (check or diff)):
        raise typer.Exit(FAILED)


def _expand(files: list[str]) -> list[str]:
    paths: list[str] = []
    for name in files:
        path = Path(name)
        if name != STDIN and path.is_dir():
            paths += sorted(str(p) for suffix in _SUFFIXES for p in path.rglob(f"*{suffix}") if p.is_file())
        else:
            paths.append(name)
    return paths


def _formatter(path: str, language: str | None) -> Callable[[str, str], str]:
    from omnigraph.query.syntax.format import format_queries
    from omnigraph.schema.format import format_schema

    suffix = f".{language}" if language else Path(path).suffix
    if suffix in _SUFFIXES:
        return format_schema if suffix == ".pg" else format_queries
    if path == STDIN:
        raise InputError("the language of stdin is not known", hint="add --lang pg or --lang gq")
    raise InputError(f"'{path}' is neither a schema (.pg) nor a query file (.gq)")


def _handle(path: str, text: str, formatted: str, *, check: bool, diff: bool) -> None:
    if diff:
        import difflib

        old, new = text.splitlines(keepends=True), formatted.splitlines(keepends=True)
        sys.stdout.writelines(difflib.unified_diff(old, new, path, f"{path} (formatted)"))
    elif check:
        print(f"would change {path}")
    else:
        replace_text(Path(path), formatted)
        print(f"formatted {path}")
