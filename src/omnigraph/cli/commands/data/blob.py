"""`omnigraph blob`: read the Blob properties of nodes and edges."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.help import Group
from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.entity_arguments import RowId, TypeName
from omnigraph.cli.io.files import writing
from omnigraph.cli.io.output import print_json
from omnigraph.cli.io.points import At, open_at, point
from omnigraph.table_key import TypeKind

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Read Blob properties: their bytes, size and tag.",
    rich_markup_mode=None,
)

Property = Annotated[str, typer.Argument(metavar="PROPERTY", help="A Blob property of the type.")]

Kind = Annotated[
    str | None,
    typer.Option("--kind", metavar="KIND", help="node or edge, for a name that is both a node and an edge type."),
]

_SIZE_HINT = "'omnigraph blob stat' shows the size"
_RANGE = re.compile(r"(\d*)-(\d*)", re.ASCII)


@app.command("get")
@takes_graph
def get_command(
    run: Invocation,
    type_name: TypeName,
    id_: RowId,
    property_: Property,
    branch: Branch = None,
    at: At = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="A file for the bytes (default: stdout).")
    ] = None,
    range_: Annotated[
        str | None,
        typer.Option(
            "--range",
            metavar="A-B",
            help="Only the bytes A to B, counted from 0, both included; A- to the end, -N the last N bytes.",
        ),
    ] = None,
    offset: Annotated[
        int | None, typer.Option("--offset", min=0, metavar="N", help="Begin after N bytes; excludes --range.")
    ] = None,
    length: Annotated[
        int | None, typer.Option("--length", min=1, metavar="N", help="At most N bytes; excludes --range.")
    ] = None,
    kind: Kind = None,
) -> None:
    """Write the bytes of a Blob property to a file or to stdout.

    omnigraph blob get Photo sunset data --out sunset.jpg ./my.omni

    omnigraph blob get Photo sunset data --range 0-1023 ./my.omni > head.bin
    """
    from omnigraph.blob import range_within

    bounds = _bounds(range_, offset, length)
    blob = open_at(run, branch, at).blob(type_name, id_, property_, at=point(at), kind=_check_kind(kind))
    start, count = (0, blob.size) if bounds is None else range_within(*bounds, blob.size, hint=_SIZE_HINT)
    with writing(out) as file:
        for chunk in blob.stream(offset=start, length=count):
            file.write(chunk)


@app.command("stat")
@takes_graph
def stat_command(
    run: Invocation,
    type_name: TypeName,
    id_: RowId,
    property_: Property,
    branch: Branch = None,
    at: At = None,
    kind: Kind = None,
    as_json: Json = False,
) -> None:
    """Show the size and the tag of a Blob property; equal tags mean equal bytes.

    omnigraph blob stat Photo sunset data ./my.omni
    """
    blob = open_at(run, branch, at).blob(type_name, id_, property_, at=point(at), kind=_check_kind(kind))
    if as_json:
        named = {"type_name": type_name, "id": id_, "property": property_}
        print_json({**named, "size": blob.size, "etag": blob.etag, "commit_id": blob.commit_id})
        return
    print(f"size    {blob.size}")
    print(f"etag    {blob.etag}")
    print(f"commit  {blob.commit_id}")


def _check_kind(text: str | None) -> TypeKind | None:
    match text:
        case None | "node" | "edge":
            return text
        case _:
            raise UsageFault(f"--kind must be node or edge (got '{text}')")


def _bounds(range_: str | None, offset: int | None, length: int | None) -> tuple[int | None, int | None] | None:
    """Return the first and the last byte to read; None reads all."""
    if offset is None and length is None:
        return _parse_range(range_)
    if range_ is not None:
        raise UsageFault("--range excludes --offset and --length")
    first = offset or 0
    return first, None if length is None else first + length - 1


def _parse_range(text: str | None) -> tuple[int | None, int | None] | None:
    """Return the first and the last byte of a range; an omitted bound is None."""
    if text is None:
        return None
    found = _RANGE.fullmatch(text)
    first, last = (int(bound) if bound else None for bound in found.groups()) if found else (None, None)
    if (first is None and last is None) or (first is not None and last is not None and last < first):
        raise UsageFault(f"--range must be A-B, A- or -N with A not above B (got '{text}')")
    return first, last
