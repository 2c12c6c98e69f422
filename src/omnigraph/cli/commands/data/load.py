"""`omnigraph load`: load files as one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import completion
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, Message, takes_graph_by_option
from omnigraph.cli.io.load_input import (
    MODES,
    Data,
    Delimiter,
    Embed,
    JobId,
    LoadOptions,
    Missing,
    Rejects,
    Words,
    input_files,
    load_files,
    result_members,
)
from omnigraph.cli.io.output import plural, print_json
from omnigraph.cli.io.spark_options import Conf, Engine, Master, Remote, spark_options
from omnigraph.table_key import TableKey

if TYPE_CHECKING:
    from omnigraph.operations.load.load_result import LoadResult


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
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Load files onto a branch as one atomic commit.

    omnigraph load people.jsonl --mode merge ./my.omni
    """
    files = input_files(run, words, data)
    if mode is None:
        raise UsageFault("--mode is required: merge (add or update), append (add only) or overwrite")
    spark = spark_options(engine, master, remote, conf)
    on = run.branch(branch)
    options = LoadOptions(
        mode, missing, on, rejects, embed, job_id, message, delimiter, engine, spark, from_branch=from_branch
    )
    address = run.storage()
    if mode == "overwrite":
        run.confirm(address, as_json=as_json)
    run.announce(address)
    graph = run.open(address)
    result = load_files(run, graph, files, options, as_json=as_json)
    counts = _counts(result)
    if as_json:
        from omnigraph.wire.loads import LoadDocument

        document = {"uri": address.uri, "branch": on, "mode": mode, **counts, **result_members(run, graph, result)}
        print_json(LoadDocument.of(document))
        return
    nodes = f"{plural(counts['nodes_loaded'], 'node')} in {plural(counts['node_types_loaded'], 'type')}"
    edges = f"{plural(counts['edges_loaded'], 'edge')} in {plural(counts['edge_types_loaded'], 'type')}"
    print(f"load {address.uri} branch={on} mode={mode}: {nodes}, {edges}")


def _counts(result: LoadResult) -> dict[str, int]:
    counts: dict[str, int] = {}
    for kind in ("node", "edge"):
        rows = [rows for key, rows in result.tables if TableKey.parse(key).kind == kind]
        counts[f"{kind}s_loaded"] = sum(rows)
        counts[f"{kind}_types_loaded"] = len(rows)
    return counts
