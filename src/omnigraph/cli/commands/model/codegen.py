"""`omnigraph codegen`: write a typed client of the stored queries of a graph, or classes of its types."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, takes_graph
from omnigraph.cli.io.files import replace_text
from omnigraph.cli.io.output import plural
from omnigraph.cli.io.points import At, open_at, point


@takes_graph
def codegen_command(
    run: Invocation,
    language: Annotated[
        Literal["python", "typescript", "models"],
        typer.Argument(metavar="python|typescript|models", help="A client, or Python classes of the types."),
    ],
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="The file to write; by default stdout.")
    ] = None,
    asynchronous: Annotated[
        bool, typer.Option("--async", help="Python: functions for AsyncGraph and AsyncRemoteGraph.")
    ] = False,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", help="models: pydantic (default), dataclass, msgspec or typeddict."),
    ] = None,
    branch: Branch = None,
    at: At = None,
) -> None:
    """Write a client with one typed function per stored query that the caller may call, or a class per type.

    omnigraph codegen python ./my.omni -o my_queries.py

    omnigraph codegen models --kind dataclass ./my.omni -o my_types.py
    """
    if kind is not None and language != "models":
        raise UsageFault("--kind is for models")
    if asynchronous and language != "python":
        raise UsageFault("--async is for Python; calls in TypeScript always return promises")
    from omnigraph.codegen import python_client, typescript_client
    from omnigraph.codegen.client_model import build_model

    if language == "models":
        _write_models(run, kind or "pydantic", out, branch, at)
        return
    graph = open_at(run, branch, at)
    reserved = (python_client if language == "python" else typescript_client).RESERVED
    model = build_model(graph.catalog(at=point(at)), graph.queries(at=point(at)), reserved)
    if language == "python":
        text = python_client.python_client(model, asynchronous=asynchronous)
    else:
        text = typescript_client.typescript_client(model)
    if out is None:
        sys.stdout.write(text)
        return
    replace_text(Path(out), text)
    print(f"wrote {out}: {plural(len(model.records), 'type')}, {plural(len(model.calls), 'query', 'queries')}")


def _write_models(run: Invocation, kind: str, out: str | None, branch: str | None, at: str | None) -> None:
    from omnigraph.codegen.python_models import KINDS, models_of

    if kind not in KINDS:
        raise UsageFault(f"there is no kind '{kind}'; the kinds are {', '.join(KINDS)}")
    catalog = open_at(run, branch, at).catalog(at=point(at))
    text = models_of(catalog, kind)
    if out is None:
        sys.stdout.write(text)
        return
    replace_text(Path(out), text)
    print(f"wrote {out}: {plural(sum(1 for _ in catalog.tables()), 'type')}")
