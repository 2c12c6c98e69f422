"""`omnigraph webhook`: the webhooks of a server, and the verification of a signature."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Invocation, Json, takes_config, takes_graph
from omnigraph.cli.io.files import STDIN
from omnigraph.cli.io.output import print_json
from omnigraph.cli.io.result_output import table_style
from omnigraph.errors import InputError
from omnigraph.text_table import table_lines

app = command_group("List the webhooks of a server, and verify signatures.")
_COLUMNS = ("name", "graph", "origin", "state", "delivered", "dropped", "error")


@app.command("list")
@takes_graph
def list_command(run: Invocation, as_json: Json = False) -> None:
    """List the webhooks of a server and their progress. The token needs the action 'admin'.

    omnigraph webhook list --server https://graphs.example.com
    """
    address = run.server()
    from omnigraph.cli.remote import connection
    from omnigraph.client.server_connection import ServerConnection

    with ServerConnection(connection(address, run)) as server:
        found = server.webhooks()
    if as_json:
        print_json(found)
        return
    rows = [
        (each.name, each.graph_id, each.origin, each.state, each.delivered, each.dropped, _error(each.failure))
        for each in found.webhooks
    ]
    columns = [[row[position] for row in rows] for position in range(len(_COLUMNS))]
    for line in table_lines(_COLUMNS, columns, table_style(run, on_terminal=sys.stdout.isatty())):
        print(line.rstrip())


@app.command("verify")
@takes_config
def verify_command(
    _run: Invocation,
    body: Annotated[str, typer.Argument(metavar="FILE", help="The body of the request, or - for stdin.")],
    signature: Annotated[
        str, typer.Option("--signature", metavar="TEXT", help="The value of the header Omnigraph-Signature.")
    ],
    secret_env: Annotated[
        list[str], typer.Option("--secret-env", metavar="NAME", help="A variable that holds a secret; repeatable.")
    ],
    tolerance: Annotated[
        float, typer.Option("--tolerance", metavar="SECONDS", min=0, help="The age up to which it is accepted.")
    ] = 300,
    as_json: Json = False,
) -> None:
    """Verify the signature of a webhook; exits with 1 if it is not valid.

    omnigraph webhook verify body.json --signature "t=1790000000,v1=…" --secret-env HOOK_SECRET
    """
    from omnigraph.webhooks import verify_signature
    from omnigraph.wire.webhooks import WebhookVerifyDocument

    data = _read(body)
    at = verify_signature(data, signature, [_secret(name) for name in secret_env], tolerance_s=tolerance)
    event = _event(data)
    document = WebhookVerifyDocument(
        event_id=event.get("event_id"), kind=event.get("kind"), graph_id=event.get("graph_id"), signed_at=at
    )
    if as_json:
        print_json(document)
    else:
        print(f"valid: {document.kind} {document.event_id} of graph {document.graph_id}")


def _error(failure: Any) -> str | None:
    return failure.error if failure else None


def _read(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}", code="unreadable_file") from None


def _secret(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise UsageFault(f"the variable {name} of --secret-env is not set")
    return value


def _event(data: bytes) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise InputError("the signature is valid, but the body is not an event", code="bad_input")
    return event
