"""`omnigraph login` and `omnigraph logout`: store and remove the token of a server."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from omnigraph.cli import completion
from omnigraph.cli.invocation import Invocation, Json, takes_config
from omnigraph.cli.io.output import print_json, remark
from omnigraph.credentials import credentials_path, remove_token, store_token
from omnigraph.errors import InputError

ServerName = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The name of the server in the operator file.", autocompletion=completion.servers
    ),
]


@takes_config
def login_command(
    run: Invocation,
    name: ServerName,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", metavar="TOKEN", help="The token; other users of the machine can see it. Default: from stdin."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Store the token of a server for later commands.

    The token is read from stdin, on a terminal without echo. It is stored in ~/.omnigraph/credentials with mode 0600
    and sent only to this server.

    omnigraph login reading-room < token.txt
    """
    if "://" in name:
        raise InputError(
            "a token is stored under the name of a server, not under its address",
            code="bad_server_name",
            hint=f"name the server under 'servers:' in {run.config.operator.path}",
        )
    given = token.strip() if token is not None else _read_token(name)
    path = credentials_path(run.environ)
    store_token(path, name, given)
    _report(run, name, f"token of {name} stored in {path}", as_json=as_json)


@takes_config
def logout_command(run: Invocation, name: ServerName, as_json: Json = False) -> None:
    """Remove the stored token of a server; the server itself is not contacted.

    omnigraph logout reading-room
    """
    path = credentials_path(run.environ)
    removed = remove_token(path, name)
    done = f"token of {name} removed from {path}" if removed else f"there is no token of {name} in {path}"
    _report(run, name, done, as_json=as_json)


def _read_token(name: str) -> str:
    """Read one line from stdin, without echo on a terminal."""
    if sys.stdin.isatty():
        from getpass import getpass

        return getpass(f"token of {name}: ").strip()
    return sys.stdin.readline().strip()


def _report(run: Invocation, name: str, done: str, *, as_json: bool) -> None:
    operator = run.config.operator
    declared = name in operator.servers
    if not declared and run.command == "login":
        remark("warning", f"{operator.path} names no server '{name}'; add: servers: {{ {name}: {{ url: https://… }} }}")
    if as_json:
        from omnigraph.wire.operators import CredentialsDocument

        print_json(CredentialsDocument(name, str(credentials_path(run.environ)), declared))
        return
    print(done)
