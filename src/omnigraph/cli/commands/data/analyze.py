"""`omnigraph analyze`: run an algorithm on a whole graph; show the values or store them."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from omnigraph.cli import completion
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, Message, takes_graph
from omnigraph.cli.io.output import print_json
from omnigraph.cli.io.points import At, check_branch_or_at, point
from omnigraph.cli.io.progress import progress_bar
from omnigraph.cli.io.spark_options import Master, Remote, spark_options
from omnigraph.text_table import TableStyle, table_lines

ALGORITHMS = (
    "pagerank",
    "components",
    "degrees",
    "betweenness",
    "closeness",
    "communities",
    "label_propagation",
    "cores",
    "topological_order",
    "spanning_tree",
    "similarity",
    "embeddings",
)


@takes_graph
def analyze_command(
    run: Invocation,
    algorithm: Annotated[
        str,
        typer.Argument(
            metavar="ALGORITHM", help=f"{', '.join(ALGORITHMS)}.", autocompletion=completion.one_of(*ALGORITHMS)
        ),
    ],
    nodes: Annotated[
        list[str] | None, typer.Option("--node", metavar="TYPE", help="Only this node type; may be repeated.")
    ] = None,
    edges: Annotated[
        list[str] | None, typer.Option("--edge", metavar="TYPE", help="Only this edge type; may be repeated.")
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option("--weight", metavar="PROPERTY", help="The edge property that holds the weight."),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the algorithm; may be repeated."),
    ] = None,
    write: Annotated[
        list[str] | None,
        typer.Option(
            "--write",
            metavar="PROPERTY",
            help="Store the values in this property, as one commit; with several columns, COLUMN=PROPERTY.",
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, metavar="N", help="The number of nodes to show per type.")] = 10,
    branch: Branch = None,
    at: At = None,
    engine: Annotated[str, typer.Option("--engine", metavar="ENGINE", help="memory or spark.")] = "memory",
    master: Master = None,
    remote: Remote = None,
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Run a graph algorithm on all nodes; show the values or store them in a property.

    omnigraph analyze pagerank --edge Cites --write rank ./my.omni
    """
    if algorithm not in ALGORITHMS:
        raise UsageFault(f"there is no algorithm '{algorithm}'; the algorithms are {', '.join(ALGORITHMS)}")
    check_branch_or_at(branch, at)
    address = run.address()
    on = None if at else run.branch(branch)
    if write:
        run.announce(address)
    spark_runs = engine != "memory"
    if write:
        graph = run.open(address, branch=on, spark=spark_runs)
    else:
        graph = run.open_for_queries(address, branch=on, spark=spark_runs)
    spark = spark_options(engine, master, remote)
    with progress_bar(algorithm, wanted=not (as_json or run.options.quiet)) as watch:
        analysis = graph.analyze(
            algorithm,
            nodes=nodes,
            edges=edges,
            weight=weight,
            parameters=_parameters(given or []),
            write=_targets(write or []),
            at=point(at),
            message=message,
            engine=engine,
            spark=spark,
            watch=watch,
        )
    if as_json:
        from omnigraph.wire.queries import AnalysisDocument

        ranked = {name: analysis.top(name, top) for name in analysis.tables}
        print_json(AnalysisDocument.of({**analysis.to_json(), "top": ranked}))
        return
    for name in analysis.tables:
        rows = analysis.top(name, top)
        print(f"{name}: {_counted(analysis.tables[name].num_rows, algorithm)}")
        if rows:
            columns = [[row[column] for row in rows] for column in rows[0]]
            for line in table_lines(list(rows[0]), columns, TableStyle()):
                print(line)
    if write:
        print(f"{_counted(analysis.rows_written, algorithm)} written, commit {analysis.commit_id or '-'}")


def _counted(count: int, algorithm: str) -> str:
    """Return the number of rows of a result."""
    return f"{count} {_SUBJECTS.get(algorithm, 'nodes')}"


_SUBJECTS = {"spanning_tree": "edges", "similarity": "pairs"}


def _parameters(given: list[str]) -> dict[str, Any]:
    """Parse --set: values are JSON, or else text."""
    found: dict[str, Any] = {}
    for word in given:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise UsageFault(f"'{word}' is not of the form NAME=VALUE")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def _targets(write: list[str]) -> Any:
    """Parse --write: one property, or a mapping of columns to properties."""
    if not write:
        return None
    if len(write) == 1 and "=" not in write[0]:
        return write[0]
    pairs = [word.partition("=") for word in write]
    if not all(equals and column and name for column, equals, name in pairs):
        raise UsageFault("write --write PROPERTY once, or --write COLUMN=PROPERTY for each column")
    return {column: name for column, _, name in pairs}
