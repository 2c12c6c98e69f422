"""Errors as exit codes, as text on stderr and, with `--json`, as an error object on stdout."""

from __future__ import annotations

import sys
from typing import Any

import typer

from omnigraph.cli.io.colours import colours
from omnigraph.cli.io.output import print_json
from omnigraph.cli.io.terminal_text import visible
from omnigraph.errors import CompileError, OmniGraphError, PreconditionFailed, hint_for
from omnigraph.suggestions import did_you_mean

FAILED, USAGE, LOST_PRECONDITION, INTERRUPTED, BROKEN_PIPE = 1, 2, 4, 130, 141


class UsageFault(typer.BadParameter):
    """An invalid command line; nothing was executed."""

    def __init__(self, message: str, *, hint: str | None = None, ctx: Any = None) -> None:
        super().__init__(message, ctx=ctx)
        self.hint = hint

    def format_message(self) -> str:
        """Return the message unchanged."""
        return self.message


def report(error: OmniGraphError, *, as_json: bool) -> int:
    """Print the error and return the exit code."""
    if isinstance(error, CompileError):
        text = error.render("cli")
    else:
        hint = hint_for(error.hint, "cli")
        text = error.message + (f"\nhint: {hint}" if hint else "")
    print(colours(sys.stderr).diagnostic(visible(f"error: {text}")), file=sys.stderr)
    if as_json:
        from omnigraph.wire.errors import printed_error

        print_json(printed_error(error, "cli"))
    return LOST_PRECONDITION if isinstance(error, PreconditionFailed) else FAILED


def report_usage(error: typer.TyperException) -> int:
    """Print an error of the command line and the usage of the command."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        # For a group without a subcommand, the message is the help text.
        print(error.format_message(), file=sys.stderr)
        return USAGE
    paint = colours(sys.stderr)
    option = getattr(error, "option_name", None)
    message, hint = error.format_message(), getattr(error, "hint", None)
    if context is not None and option is not None and type(error).__name__ == "NoSuchOption":
        message, hint = f"there is no option '{option}'", _option_hint(context, option)
    print(paint.diagnostic(f"error: {message}"), file=sys.stderr)
    if context is not None:
        print(context.get_usage().replace("Usage:", "usage:"), file=sys.stderr)
        hint = hint or f"run '{context.command_path} --help' for the options"
        print(paint.diagnostic(f"hint: {hint}"), file=sys.stderr)
    return USAGE


_ADDRESS_OPTIONS = frozenset({"--uri", "--target", "--server", "--graph", "--graph-id", "--store", "--profile"})
_STORAGE_HINT = "the command works in storage; give a folder or s3://bucket/prefix as its argument"
_OPTION_HINTS = {
    **{(command, option): _STORAGE_HINT for command in ("init", "serve") for option in _ADDRESS_OPTIONS},
    ("serve", "--port"): "write the address and the port as --bind 127.0.0.1:PORT",
    ("serve", "--host"): "write the address and the port as --bind ADDRESS:PORT",
    **{
        ("profile", option): "the profile of a query is that of 'omnigraph explain --profile -q FILE'"
        for option in ("-q", "--query", "-e")
    },
    ("load", "--type"): "the file name is the type (Film.csv); a JSONL record names its type",
    ("ingest", "--type"): "the file name is the type (Film.csv); a JSONL record names its type",
}


def _option_hint(context: Any, option: str) -> str | None:
    known = [name for parameter in context.command.params for name in parameter.opts if name.startswith("--")]
    hint = _OPTION_HINTS.get((context.info_name, option)) or did_you_mean(option, known)
    if hint is None and option in _ADDRESS_OPTIONS:
        return f"'{context.command_path}' addresses no graph"
    return hint


def report_defect(error: Exception, *, as_json: bool) -> int:
    """Print an unexpected exception as an error."""
    if isinstance(error, OSError):
        where = f"'{error.filename}': " if error.filename else ""
        known = OmniGraphError(f"io: {where}{error.strerror or error}", code="io_error")
    else:
        known = OmniGraphError(
            f"internal error: {type(error).__name__}: {error}",
            code="internal",
            hint="this is a bug; OMNIGRAPH_DEBUG=1 shows the traceback",
        )
    return report(known, as_json=as_json)
