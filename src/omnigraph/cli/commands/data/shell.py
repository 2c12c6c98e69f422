"""`omnigraph shell`: an interactive session on a graph."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from omnigraph.cli.errors import FAILED
from omnigraph.cli.invocation import Branch, Invocation, takes_graph
from omnigraph.operator_config import home


@takes_graph
def shell_command(
    run: Invocation,
    branch: Branch = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Reject changes.")] = False,
) -> None:
    """Query and change a graph interactively, with completion and history.

    Input from a pipe is executed as if typed; the exit code is 1 if any statement failed.

    omnigraph shell ./my.omni < session.txt
    """
    from omnigraph.cli.io.result_output import table_style
    from omnigraph.cli.shell.session import Session, lines_of
    from omnigraph.cli.shell.statements import inputs

    graph = run.open(branch=run.branch(branch), read_only=read_only)
    style = table_style(run, on_terminal=sys.stdout.isatty())
    session = Session(graph, style=style, format=run.config.get("cli.output_format"))
    if not sys.stdin.isatty():
        session.timing = False
        for line in lines_of(session, inputs(sys.stdin)):
            print(line, flush=True)
        if session.failures:
            raise typer.Exit(FAILED)
        return
    from omnigraph.cli.shell.terminal import interact

    interact(session, history=home(os.environ) / "history")
