"""`omnigraph export`: write a snapshot to files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, takes_graph
from omnigraph.cli.io.files import writing
from omnigraph.cli.io.output import plural, remark
from omnigraph.cli.io.points import At, check_branch_or_at, point
from omnigraph.cli.io.progress import progress_bar
from omnigraph.cli.io.spark_options import Engine, Master, Remote, spark_options
from omnigraph.errors import TypeNotFound
from omnigraph.suggestions import did_you_mean
from omnigraph.table_key import TableKey

_WRITTEN_HERE = ("neo4j", "graphml", "gexf")
FORMATS = ("jsonl", "parquet", "csv", "arrow", "duckdb", *_WRITTEN_HERE)


@takes_graph
def export_command(
    run: Invocation,
    branch: Branch = None,
    snapshot: At = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="NAME", help="Only this node or edge type; may be repeated.")
    ] = None,
    tables: Annotated[
        list[str] | None, typer.Option("--table", metavar="KEY", help="Only this table, as node:Name or edge:Name.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="A file; a new folder for --partitioned and for parquet, csv, arrow and neo4j.",
        ),
    ] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help="jsonl, duckdb, graphml or gexf: a file; parquet, csv, arrow or neo4j: a folder with files per type.",
        ),
    ] = "jsonl",
    partitioned: Annotated[
        bool, typer.Option("--partitioned", help="Write one file per fragment of a table, in parallel.")
    ] = False,
    engine: Engine = "auto",
    master: Master = None,
    remote: Remote = None,
    jsonl: Annotated[bool, typer.Option("--jsonl", hidden=True)] = False,
) -> None:
    """Write a snapshot to files that can be loaded into an equal graph.

    omnigraph export ./my.omni > everything.jsonl

    omnigraph export --format parquet --out everything/ ./my.omni

    omnigraph export --format duckdb --out everything.duckdb ./my.omni

    omnigraph export --format graphml --out everything.graphml ./my.omni
    """
    check_branch_or_at(branch, snapshot)
    if format_ not in FORMATS:
        raise UsageFault(f"there is no format '{format_}'; the formats are {', '.join(FORMATS)}")
    files = format_ != "jsonl" or partitioned
    if files and (out is None or tables):
        raise UsageFault(f"the format {format_} requires --out, and selects types by --type, not --table")
    if jsonl:
        remark("note", "--jsonl is ignored: jsonl is the default format")
    on = run.branch(branch)
    on_spark = files and format_ not in _WRITTEN_HERE
    graph = run.open(branch=None if snapshot else on, read_only=True, spark=on_spark)
    at = point(snapshot)
    chosen = _selected_tables(graph.snapshot(at=at).tables, types or (), tables or ())
    names = None if chosen is None else sorted({TableKey.parse(key).type_name for key in chosen})
    if files:
        spark = spark_options(engine, master, remote)
        with progress_bar("exporting", wanted=not run.options.quiet) as watch:
            chosen_format: Any = format_
            options: dict[str, Any] = {"partitioned": partitioned, "engine": engine, "spark": spark, "watch": watch}
            rows = graph.export(out, types=names, at=at, format=chosen_format, **options)
        assert isinstance(rows, int)
        remark("note", f"{plural(rows, 'row')} written to {out}")
        return
    records = graph.export(types=names, at=at)
    assert not isinstance(records, int)
    with progress_bar("exporting", wanted=out is not None and not run.options.quiet), writing(out) as file:
        for record in records:
            key = TableKey.edge(record["edge"]) if "edge" in record else TableKey.node(record["type"])
            if chosen is None or key in chosen:
                file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")


def _selected_tables(known: Any, types: Sequence[str], tables: Sequence[str]) -> set[str] | None:
    """Return the selected table keys; None means all."""
    if not types and not tables:
        return None
    chosen: set[str] = set()
    for name in types:
        found = {key for key in known if TableKey.parse(key).type_name == name}
        if not found:
            names = {TableKey.parse(key).type_name for key in known}
            raise TypeNotFound(f"there is no node or edge type '{name}'", hint=did_you_mean(name, names))
        chosen |= found
    for key in tables:
        if key not in known:
            raise TypeNotFound(
                f"there is no table '{key}'", hint=did_you_mean(key, known) or "write node:Name or edge:Name"
            )
        chosen.add(key)
    return chosen
