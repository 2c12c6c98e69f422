"""`omnigraph load`: load files as one commit."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli import completion
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, Message, takes_graph_by_option
from omnigraph.cli.io.load_input import (
    MODES,
    ArrayDelimiter,
    Column,
    Data,
    DateFormat,
    Delimiter,
    DryRun,
    Embed,
    Format,
    JobId,
    LoadOptions,
    Missing,
    Null,
    Rejects,
    SkipNullEnds,
    TableOptions,
    Words,
    embeds,
    input_files,
    load_files,
)
from omnigraph.cli.io.output import commit_document, plural, print_json
from omnigraph.cli.io.spark_options import Conf, Engine, Master, Remote, spark_options


@takes_graph_by_option
def load_command(
    run: Invocation,
    words: Words = None,
    data: Data = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="merge (add or update), append (add only), overwrite (replace whole types).",
            autocompletion=completion.one_of(*MODES),
        ),
    ] = None,
    missing: Missing = "keep",
    branch: Branch = None,
    from_branch: Annotated[
        str | None, typer.Option("--from", metavar="BASE", help="Create a missing branch from this one.")
    ] = None,
    rejects: Rejects = None,
    embed: Embed = "fill",
    engine: Engine = "auto",
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    job_id: JobId = None,
    delimiter: Delimiter = None,
    null: Null = None,
    date_format: DateFormat = None,
    column: Column = None,
    skip_null_ends: SkipNullEnds = False,
    format_: Format = None,
    array_delimiter: ArrayDelimiter = ";",
    dry_run: DryRun = False,
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Load files onto a branch as one atomic commit.

    omnigraph load people.jsonl --mode merge ./my.omni
    """
    from omnigraph.table_format import read_columns
    from omnigraph.wire.loads import LoadTarget, load_document

    files = input_files(run, words, data)
    if mode is None:
        raise UsageFault("--mode is required: merge (add or update), append (add only) or overwrite")
    spark = spark_options(engine, master, remote, conf)
    on = run.branch(branch)
    columns = read_columns(column or ())
    tables = TableOptions(delimiter, null or (), date_format, columns, skip_null_ends, format_, array_delimiter)
    options = LoadOptions(
        mode,
        missing,
        on,
        rejects,
        embed,
        job_id,
        message,
        tables,
        engine,
        spark,
        dry_run=dry_run,
        from_branch=from_branch,
    )
    address = run.address()
    if mode == "overwrite" and not dry_run:
        run.confirm(address, as_json=as_json)
    run.announce(address)
    graph = run.open(address, spark=True)
    result = load_files(run, graph, files, options, as_json=as_json)
    commit = commit_document(graph, result.commit_id) if as_json else None
    target = LoadTarget(address.uri, on, mode, graph.actor)
    done = load_document(target, result, commit, embeds=as_json and not dry_run and embeds(graph, result))
    if as_json:
        print_json(done)
        return
    nodes = f"{plural(done.nodes_loaded, 'node')} in {plural(done.node_types_loaded, 'type')}"
    edges = f"{plural(done.edges_loaded, 'edge')} in {plural(done.edge_types_loaded, 'type')}"
    word = "dry run" if dry_run else "load"
    print(f"{word} {address.uri} branch={on} mode={mode}: {nodes}, {edges}")
