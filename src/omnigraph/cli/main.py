"""The program: all commands, and what every one of them does about errors."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from typing import Annotated, Any, TextIO, cast

import typer

from omnigraph.cli import explain, fmt, lint, schema
from omnigraph.cli.errors import BROKEN_PIPE, INTERRUPTED, report
from omnigraph.cli.output import print_json
from omnigraph.errors import OmniGraphError
from omnigraph.version import __version__

app = typer.Typer(
    name="omnigraph",
    help="A typed property graph you can branch, query by meaning, and review like code.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
query_app = typer.Typer(no_args_is_help=True, help="Check query files.", rich_markup_mode=None)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"omnigraph {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool, typer.Option("-v", "--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command("version")
def version_command(as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """Show the version."""
    if as_json:
        print_json({"version": __version__})
    else:
        _version(True)


for name in ("lint", "check"):
    app.command(name, hidden=name == "check")(lint.lint_command)
    query_app.command(name, hidden=name == "check")(lint.lint_command)
app.command("explain")(explain.explain_command)
app.command("fmt")(fmt.fmt_command)
app.add_typer(schema.app, name="schema")
app.add_typer(query_app, name="query")


def main() -> None:
    """Run the program and end the process with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    with redirect_stdout(cast(TextIO, _Stdout(sys.stdout))):
        try:
            code = app(arguments, standalone_mode=True)
        except SystemExit as exit_:
            code = exit_.code
        except OmniGraphError as error:
            if os.environ.get("OMNIGRAPH_DEBUG") == "1":
                raise
            code = report(error, as_json="--json" in arguments)
        except KeyboardInterrupt:
            code = INTERRUPTED
        try:
            sys.stdout.flush()
        except SystemExit as exit_:
            code = exit_.code
    if code == BROKEN_PIPE:
        # The interpreter flushes once more at exit; give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(code or 0)


class _Stdout:
    """Stdout that ends the program, silently, when its reader has gone away."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            raise SystemExit(BROKEN_PIPE) from None

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            raise SystemExit(BROKEN_PIPE) from None
