"""`omnigraph profile`: show the profiles of the operator file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import completion
from omnigraph.cli.addresses import PROFILE_VARIABLE, GivenAddress, find_address
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Invocation, Json, takes_config
from omnigraph.cli.io.output import print_json
from omnigraph.redaction import redact_uri

if TYPE_CHECKING:
    from omnigraph.wire.operators import ProfileDocument

app = command_group("Show the profiles of the operator file.")


@app.command("list")
@takes_config
def list_command(run: Invocation, as_json: Json = False) -> None:
    """List the profiles and the graphs that they name."""
    found = [_document(run, name) for name in run.config.operator.profiles]
    if as_json:
        from omnigraph.wire.operators import ProfileListDocument

        print_json(ProfileListDocument(found))
        return
    width = max((len(profile.name) for profile in found), default=0)
    for profile in found:
        print(f"{profile.name:<{width}}  {profile.uri}")


@app.command("show")
@takes_config
def show_command(
    run: Invocation,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help=f"The profile (default: {PROFILE_VARIABLE}).", autocompletion=completion.profiles
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show one profile. Commands select it with --profile NAME or OMNIGRAPH_PROFILE."""
    name = name or run.environ.get(PROFILE_VARIABLE, "").strip()
    if not name:
        raise UsageFault(f"no profile was given, and {PROFILE_VARIABLE} is not set")
    document = _document(run, name)
    if as_json:
        print_json(document)
        return
    for key, value in document.to_json().items():
        if value is not None:
            print(f"{key}: {value}")


def _document(run: Invocation, name: str) -> ProfileDocument:
    from omnigraph.wire.operators import ProfileDocument

    profile = run.config.operator.get_profile(name)
    address = find_address(GivenAddress(profile=name), run)
    assert address is not None
    return ProfileDocument(name, profile.store, profile.server, profile.default_graph, redact_uri(address.uri))
