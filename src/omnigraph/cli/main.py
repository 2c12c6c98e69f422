"""One run of the program: the command, the handling of its errors, and its exit code."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from typing import Any, TextIO, cast

import typer

from omnigraph.cli.completion import VARIABLE as COMPLETION_VARIABLE
from omnigraph.cli.completion import prepare_completion
from omnigraph.cli.errors import BROKEN_PIPE, FAILED, INTERRUPTED, report, report_defect, report_usage
from omnigraph.cli.io.terminal_text import visible
from omnigraph.cli.process_end import end_process
from omnigraph.cli.process_settings import own_process, start_wanted_server
from omnigraph.cli.program import build_program
from omnigraph.errors import OmniGraphError


def main() -> None:
    """Run the program and end the process with its exit code."""
    own_process()
    try:
        code = run(sys.argv[1:])
        start_wanted_server()
    except KeyboardInterrupt:
        # The interrupt arrived while another failure was being reported.
        code = INTERRUPTED
    end_process(code)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    prepare_completion()
    with redirect_stdout(cast(TextIO, _Stdout(sys.stdout))):
        code = _run_command(arguments)
        try:
            sys.stdout.flush()
        except SystemExit as exit_:
            code = exit_.code
    if code == BROKEN_PIPE:
        # The interpreter flushes stdout once more at exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(code or 0)


def _run_command(arguments: list[str]) -> Any:
    """Run one command and report its errors; return the exit code as Typer does: None for success."""
    try:
        # The words of a completion are in a variable: every command may be asked for.
        app = build_program(None if os.environ.get(COMPLETION_VARIABLE) else arguments)
        return app(arguments, prog_name="omnigraph", standalone_mode=False)
    except SystemExit as exit_:
        return exit_.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    except typer.Abort:
        return FAILED
    except typer.TyperException as error:
        return report_usage(error)
    except Exception as error:
        return _report_failure(error, as_json="--json" in arguments)


def _report_failure(error: Exception, *, as_json: bool) -> int:
    if _debugging():
        raise error
    if isinstance(error, OmniGraphError):
        return report(error, as_json=as_json)
    return report_defect(error, as_json=as_json)


def _debugging() -> bool:
    return os.environ.get("OMNIGRAPH_DEBUG") == "1"


class _Stdout:
    """Wrapper of stdout that ends the program silently when the reader closes the pipe.

    On a terminal, control characters in the output have no effect.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.filters = stream.isatty()
        """True if control characters are replaced."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(visible(text) if self.filters else text)
        except BrokenPipeError:
            raise SystemExit(BROKEN_PIPE) from None

    def flush(self) -> None:
        if self._stream.closed:  # by the end of the input of the language server
            return
        try:
            self._stream.flush()
        except BrokenPipeError:
            raise SystemExit(BROKEN_PIPE) from None
