"""`omnigraph resolve`: find nodes of one entity, and write a branch on which they are unified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.commands.data.unify import EdgeRules, Rules, assigned
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, Message, takes_graph
from omnigraph.cli.io.output import plural, print_json
from omnigraph.cli.io.progress import progress_bar
from omnigraph.cli.io.spark_options import Engine, Master, Remote, check_engine, spark_options
from omnigraph.text_table import table_lines

if TYPE_CHECKING:
    from omnigraph.operations.resolution.resolve import Resolution


@takes_graph
def resolve_command(
    run: Invocation,
    type_name: Annotated[str, typer.Argument(metavar="TYPE", help="The node type.")],
    by: Annotated[
        list[str],
        typer.Option("--by", metavar="PROPERTIES", help="Properties to compare, separated by commas."),
    ],
    similar: Annotated[float, typer.Option("--similar", metavar="S", help="The least score of a pair, up to 1.")] = 0.9,
    weights: Annotated[
        list[str] | None,
        typer.Option("--weight", metavar="PROPERTY=W", help="The weight of a property in the score; may be repeated."),
    ] = None,
    block: Annotated[
        int, typer.Option("--block", min=2, metavar="N", help="The most nodes that share a value or token.")
    ] = 50,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="The number of pairs to show.")] = 20,
    into: Annotated[
        str | None,
        typer.Option("--into", metavar="BRANCH", help="The branch to create; by default resolve/ and the type."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the pairs, and write no branch.")] = False,
    rules: Rules = None,
    edge_rules: EdgeRules = None,
    branch: Branch = None,
    engine: Engine = "auto",
    master: Master = None,
    remote: Remote = None,
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Find nodes that denote one entity, show their scores, and unify them on a new branch for review.

    omnigraph resolve Person --by full,email --similar 0.8 ./my.omni
    """
    if dry_run and into is not None:
        raise UsageFault("--dry-run and --into exclude each other")
    check_engine(engine)
    spark = spark_options(engine, master, remote)
    on = run.branch(branch)
    graph = run.open(branch=on, spark=engine == "spark" or spark is not None)
    with progress_bar("resolve", wanted=not (as_json or run.options.quiet)) as watch:
        found = graph.resolve(
            type_name,
            [name for text in by for name in text.split(",") if name],
            similar=similar,
            weights=_weights(weights),
            block=block,
            into=None if dry_run else into or f"resolve/{type_name.lower()}",
            rules=assigned(rules, "--rule"),
            edges=assigned(edge_rules, "--edge-rule"),
            message=message,
            engine=engine,
            spark=spark,
            watch=watch,
        )
    if as_json:
        from omnigraph.wire.queries import ResolutionDocument

        data = found.to_json()
        print_json(ResolutionDocument.of({**data, "pairs": data["pairs"][:limit], "found": len(found.pairs)}))
        return
    _print(found, limit)


def _print(found: Resolution, limit: int) -> None:
    shown = found.pairs[:limit]
    if shown:
        names = [*shown[0].scores]
        columns = [
            [f"{pair.score:.2f}" for pair in shown],
            [pair.keep for pair in shown],
            [pair.drop for pair in shown],
            *([_shown(pair.scores[name]) for pair in shown] for name in names),
            ["; ".join(_explained(name, both) for name, both in pair.values.items()) for pair in shown],
        ]
        for line in table_lines(["score", "keep", "drop", *names, "values"], columns):
            print(line)
    more = len(found.pairs) - len(shown)
    where = " on Spark" if found.engine == "spark" else ""
    hidden = f", {more:,} not shown" if more else ""
    print(f"{plural(len(found.pairs), 'pair')} of {found.compared:,} compared{where}{hidden}")
    if found.branch is not None:
        unified = found.written.unified if found.written is not None else None
        dropped = 0 if unified is None else unified.nodes
        print(f"branch {found.branch}: {plural(dropped, 'node')} unified; review it, then merge it")


def _shown(score: float | None) -> str:
    return "-" if score is None else f"{score:.2f}"


def _explained(name: str, values: tuple[object, object]) -> str:
    first, second = ("-" if value is None else str(value) for value in values)
    return f"{name}: {first}" if first == second else f"{name}: {first} / {second}"


def _weights(given: list[str] | None) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, text in assigned(given, "--weight").items():
        try:
            found[name] = float(text)
        except ValueError:
            raise UsageFault(f"--weight takes PROPERTY=NUMBER (got '{name}={text}')") from None
    return found
