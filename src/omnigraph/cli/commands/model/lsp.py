"""`omnigraph lsp`: the language server for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.invocation import Invocation, takes_config
from omnigraph.errors import MissingPackage


@takes_config
def lsp_command(
    run: Invocation,  # noqa: ARG001 (every command takes it)
    stdio: Annotated[bool, typer.Option("--stdio", hidden=True)] = True,  # noqa: ARG001 (editors pass it)
) -> None:
    """Serve an editor over stdin and stdout: diagnostics, completion and more for .pg and .gq files.

    omnigraph lsp
    """
    try:
        from omnigraph.lsp.server import serve
    except ImportError as error:
        raise MissingPackage("'pygls' is not installed", hint="install it: pip install 'omnigraph[lsp]'") from error
    serve()
