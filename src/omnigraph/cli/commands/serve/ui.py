"""`omnigraph ui`: open a graph in the web explorer, for one user of this machine.

The command is a server of one graph on a free loopback port, in this process. Its token is random, lives as long as the
process, and is in the fragment of the printed address, which browsers send to no server.
"""

from __future__ import annotations

import sys
import webbrowser
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, urlencode

import typer

from omnigraph.cli import completion
from omnigraph.cli.addresses import Address
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, takes_graph
from omnigraph.errors import InputError
from omnigraph.large_modules import importing_large_modules
from omnigraph.redaction import redact_uri

if TYPE_CHECKING:
    from omnigraph.server.deployment.settings import ServerSettings
    from omnigraph.server.deployment.state_builder import StartOptions

_BIND = "127.0.0.1:0"
_MAIN = "main"


@takes_graph
def ui_command(
    run: Invocation,
    branch: Branch = None,
    query: Annotated[
        str | None, typer.Option("--query", "-n", metavar="NAME", help="Open the workspace with a stored query.")
    ] = None,
    merge: Annotated[
        str | None,
        typer.Option(
            "--merge",
            metavar="SOURCE",
            help="Open the review of a merge of this branch into --branch.",
            autocompletion=completion.branches,
        ),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every change.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address and open no browser.")] = False,
) -> None:
    """Open a graph in the web explorer.

    The explorer is served on a free port of 127.0.0.1, to the owner of the printed token only. Ctrl+C stops it.
    A browser is opened if the output is a terminal.

    omnigraph ui ./my.omni

    omnigraph ui ./my.omni --branch review --read-only
    """
    if query is not None and merge is not None:
        raise UsageFault("--query and --merge open different screens; give one of them")
    address = _address(run)
    with importing_large_modules(freeze=True):
        from omnigraph.server.auth.modes import LOCAL_ACTOR
        from omnigraph.server.auth.tokens import new_token
        from omnigraph.server.deployment.state_builder import StartOptions
        from omnigraph.server.main import serve
        from omnigraph.storage.lance.lance_module import load_lance

        load_lance()
    flags = {"bind": _BIND, "local": True, "log.level": "warn"}
    options = StartOptions(
        uris=() if address.name is not None else (address.uri,),
        config=run.options.config,
        flags=flags if address.name is None else {**flags, "graph": address.name},
        local_token=new_token(),
        local_actor=run.actor or LOCAL_ACTOR,
        private=True,
        read_only=read_only,
    )
    place = screen_link(run.branch(branch), query=query, merge=merge)
    opens = sys.stdout.isatty() and not no_browser

    def announce(listens_on: str, options: StartOptions, _: ServerSettings) -> None:
        members = {"token": options.local_token, "to": place} if place else {"token": options.local_token}
        link = f"http://{listens_on}/ui/#{urlencode(members, quote_via=quote)}"
        print(f"{redact_uri(address.uri)} on {link}", flush=True)
        print("for this machine and its user only; Ctrl+C stops it", file=sys.stderr)
        if opens:
            webbrowser.open(link)

    raise typer.Exit(serve(options, announce))


def screen_link(branch: str, *, query: str | None = None, merge: str | None = None) -> str:
    """Return the place of a screen: branch, screen and parameters, as the fragment of the explorer has them."""
    ref = quote(branch, safe="")
    if query is not None:
        return f"{ref}/query?{urlencode({'name': query}, quote_via=quote)}"
    if merge is not None:
        return f"{ref}/merge?{urlencode({'source': merge}, quote_via=quote)}"
    return ref if branch != _MAIN else ""


def _address(run: Invocation) -> Address:
    if not run.has_address:
        raise InputError(
            "'omnigraph ui' requires a graph",
            code="no_graph",
            hint="give its address: omnigraph ui ./my.omni; 'omnigraph demo' builds an example graph to look at",
        )
    address = run.address()
    if address.is_server:
        raise InputError(
            f"'{redact_uri(address.uri)}' is a server, which has an explorer of its own",
            code="needs_storage",
            hint="open the address of the server with /ui/ at its end",
        )
    return address
