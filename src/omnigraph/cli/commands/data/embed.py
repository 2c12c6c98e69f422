"""`omnigraph embed`: compute embeddings for a JSONL file or a graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, Message, takes_graph
from omnigraph.cli.io.output import print_json
from omnigraph.cli.io.progress import progress_bar
from omnigraph.cli.io.spark_options import Conf, Engine, Master, Remote, check_engine, spark_options

if TYPE_CHECKING:
    from omnigraph.embedding.offline import RequestedMode


@takes_graph
def embed_command(
    run: Invocation,
    in_graph: Annotated[
        bool, typer.Option("--in-graph", help="Compute the missing vectors of a graph instead, as one commit.")
    ] = False,
    branch: Branch = None,
    message: Message = None,
    seed: Annotated[
        str | None, typer.Option("--seed", metavar="MANIFEST", help="A manifest (.yaml) of files and fields.")
    ] = None,
    source: Annotated[str | None, typer.Option("--input", metavar="IN.jsonl", help="The input file.")] = None,
    output: Annotated[str | None, typer.Option("--output", metavar="OUT.jsonl", help="The output file.")] = None,
    spec: Annotated[str | None, typer.Option("--spec", metavar="SPEC.json", help="The fields of each vector.")] = None,
    reembed_all: Annotated[bool, typer.Option("--reembed-all", help="Also replace existing vectors.")] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Remove the vectors instead.")] = False,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="NAME", help="Only this type; may be repeated.")
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="[TYPE:]FIELD=VALUE",
            help="Recompute the vectors of matching rows only; may be repeated.",
        ),
    ] = None,
    engine: Engine = "auto",
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Compute the embeddings of a JSONL file, or the missing embeddings of a graph.

    omnigraph embed --input notes.jsonl --output notes.embedded.jsonl --spec embed.json

    omnigraph embed --in-graph ./my.omni
    """
    if in_graph:
        if any((seed, source, output, spec, clean, select, master, remote, conf)) or engine != "auto":
            raise UsageFault("--in-graph allows only --type and --reembed-all")
        _embed_graph(run, run.branch(branch), types, reembed_all, message, as_json=as_json)
        return
    if not run.given.is_empty or branch:
        raise UsageFault("a graph requires --in-graph; files are embedded without a graph")
    from omnigraph.bulk_options import BulkOptions
    from omnigraph.embedding.jsonl_rows import parse_selector
    from omnigraph.embedding.specification import SeedFiles, read_manifest, read_specification
    from omnigraph.engine_choice import embed_file
    from omnigraph.pipeline.embed import EmbedRequest

    if reembed_all and clean:
        raise UsageFault("--reembed-all and --clean exclude each other")
    check_engine(engine)
    if seed is not None:
        if any((source, output, spec)):
            raise UsageFault("--seed excludes --input, --output and --spec")
        files = read_manifest(Path(seed))
    else:
        if source is None or output is None or spec is None:
            raise UsageFault(
                "give --seed, or --input, --output and --spec together, or --in-graph",
                hint="--in-graph computes the missing vectors of a graph; the other options are those of files",
            )
        files = SeedFiles(Path(source), Path(output), read_specification(Path(spec)))
    mode: RequestedMode = "clean" if clean else "reembed_all" if reembed_all else "fill"
    where = spark_options(engine, master, remote, conf)
    with progress_bar("embedding", wanted=not (as_json or run.options.quiet)) as watch:
        selectors = tuple(parse_selector(text) for text in select or ())
        request = EmbedRequest(files.output, files.specification, mode, frozenset(types or ()), selectors)
        report = embed_file(files.input, request, BulkOptions(engine, where, watch), run.environ)
    if as_json:
        print_json(report.to_json())
    else:
        print(report.describe())


def _embed_graph(
    run: Invocation, branch: str, types: list[str] | None, again: bool, message: str | None, *, as_json: bool
) -> None:
    address = run.address()
    run.announce(address)
    graph = run.open(address, branch=branch, spark=True)
    with progress_bar("embedding", wanted=not (as_json or run.options.quiet)):
        result = graph.embed(types=types, again=again, message=message)
    if as_json:
        from omnigraph.wire.loads import EmbedDocument

        print_json(EmbedDocument.of({"uri": address.uri, **result.to_json(), "actor_id": graph.actor}))
        return
    counts = ", ".join(f"{count} {name}" for name, count in result.embedded) or "nothing to do"
    print(f"embed {address.uri} branch={branch}: {counts}")
