"""`omnigraph ingest`: load files onto a branch and create the branch if it is missing."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.invocation import Branch, Invocation, Json, Message, takes_graph_by_option
from omnigraph.cli.io.load_input import (
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
def ingest_command(
    run: Invocation,
    words: Words = None,
    data: Data = None,
    branch: Branch = None,
    from_branch: Annotated[
        str | None, typer.Option("--from", metavar="BASE", help="The start of a new branch.")
    ] = None,
    mode: Annotated[str, typer.Option("--mode", metavar="MODE", help="merge, append or overwrite.")] = "merge",
    missing: Missing = "keep",
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
    """Load files onto a branch, which is created if it is missing.

    omnigraph ingest may.jsonl --branch intake/may ./my.omni
    """
    from omnigraph.table_format import read_columns

    files = input_files(run, words, data)
    on, base = run.branch(branch), run.branch(from_branch)
    spark = spark_options(engine, master, remote, conf)
    columns = read_columns(column or ())
    tables = TableOptions(delimiter, null or (), date_format, columns, skip_null_ends, format_, array_delimiter)
    options = LoadOptions(
        mode, missing, on, rejects, embed, job_id, message, tables, engine, spark, dry_run=dry_run, from_branch=base
    )
    address = run.address()
    run.announce(address)
    graph = run.open(address, spark=True)
    result = load_files(run, graph, files, options, as_json=as_json)
    if as_json:
        from omnigraph.wire.loads import LoadTarget, ingest_document

        target = LoadTarget(address.uri, on, mode, graph.actor)
        commit = commit_document(graph, result.commit_id)
        print_json(ingest_document(target, base, result, commit, embeds=not dry_run and embeds(graph, result)))
        return
    life = "new branch" if result.branch_created else "existing branch"
    print(f"ingest {address.uri} branch={on} base={base} mode={mode} ({life})")
    for key, rows in sorted(result.tables):
        print(f"  {key} {plural(rows, 'row')}")
    if graph.actor:
        print(f"actor: {graph.actor}")
