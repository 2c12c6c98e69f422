"""Arguments that name one node or edge: its type and its id."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.errors import NotFound

TypeName = Annotated[str, typer.Argument(metavar="TYPE", help="A node or edge type.")]
RowId = Annotated[str, typer.Argument(metavar="ID", help="The id of the node or edge; for a keyed node, its key.")]


def entity_not_found(type_name: str, id_: str) -> NotFound:
    """Error for a node or edge that has no history at the point that was read."""
    return NotFound(
        f"{type_name} '{id_}' does not exist and has no history here",
        code="entity_not_found",
        hint="'omnigraph export' shows ids; the id of a keyed node is its key",
    )
