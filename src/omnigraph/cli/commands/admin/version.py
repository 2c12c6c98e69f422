"""`omnigraph version`: versions of the program and of the storage format."""

from __future__ import annotations

from omnigraph.cli.invocation import Json
from omnigraph.cli.io.output import print_json
from omnigraph.version import STORAGE_FORMAT, __version__


def version_text() -> str:
    """Return the version of the program and of its storage format."""
    return f"omnigraph {__version__}\ninternal-schema {STORAGE_FORMAT}"


def version_command(as_json: Json = False) -> None:
    """Show the version of the program and of the storage format."""
    if as_json:
        from omnigraph.wire.graph_state import VersionDocument

        print_json(VersionDocument(__version__, STORAGE_FORMAT))
    else:
        print(version_text())
