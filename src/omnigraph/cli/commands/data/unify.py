"""`omnigraph unify`: make nodes of one entity a single node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, Message, takes_graph
from omnigraph.cli.io.output import commit_document, plural, print_json

Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="PROPERTY=RULE",
        help="ours, theirs, newest, longest or union; may be repeated. The default is ours.",
    ),
]
EdgeRules = Annotated[
    list[str] | None,
    typer.Option(
        "--edge-rule",
        metavar="TYPE=RULE",
        help="Fold edges of this type with equal ends: ours, theirs, newest or keep; may be repeated.",
    ),
]


@takes_graph
def unify_command(
    run: Invocation,
    type_name: Annotated[str, typer.Argument(metavar="TYPE", help="The node type.")],
    keep: Annotated[str | None, typer.Option("--keep", metavar="ID", help="The node that stays.")] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="ID", help="A node that becomes an alias of it; may be repeated."),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", metavar="FILE", help="A CSV file with the columns keep and drop, instead of both."),
    ] = None,
    rules: Rules = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--value", metavar="PROPERTY=VALUE", help="A value, as JSON or as text; may be repeated."),
    ] = None,
    edge_rules: EdgeRules = None,
    branch: Branch = None,
    if_commit: Annotated[
        str | None,
        typer.Option(
            "--if-commit", metavar="ID", help="Only if the head of the branch is this commit; otherwise exit with 4."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, write nothing, and show what would change.")
    ] = False,
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Unify nodes as one commit: dropped ids become aliases of the kept node, and their edges lead to it.

    omnigraph unify Person --keep ana-b --drop ana-bell --rule email=theirs ./my.omni
    """
    if (pairs is None) == (keep is None or not drop):
        raise UsageFault("give --keep and --drop, or --pairs")
    on = run.branch(branch)
    graph = run.open(branch=on)
    result = graph.unify(
        type_name,
        keep,
        drop,
        pairs=None if pairs is None else read_pairs(pairs),
        rules={**assigned(rules, "--rule"), **_values(values)},
        edges=assigned(edge_rules, "--edge-rule"),
        message=message,
        if_commit=if_commit,
        dry_run=dry_run,
    )
    if as_json:
        from omnigraph.wire.queries import change_document

        commit = commit_document(graph, result.commit_id)
        print_json(change_document(result, branch=on, query_name="unify", actor=graph.actor, commit=commit))
        return
    report = result.unified
    if report is None:
        print(f"unify {type_name} branch={on}: nothing to unify")
        return
    edges = f"{plural(report.repointed, 'edge')} re-pointed, {report.folded:,} folded"
    print(f"unify {type_name} branch={on}: {plural(report.nodes, 'node')} dropped, {edges}{' (dry run)' * dry_run}")
    for type_, id_, node in report.loops:
        print(f"  self-loop: {type_} '{id_}' at '{node}'")
    if report.self_loops > len(report.loops):
        print(f"  and {report.self_loops - len(report.loops):,} more self-loops")


def assigned(given: list[str] | None, option: str) -> dict[str, Any]:
    """Return the names and rules of an option."""
    found: dict[str, Any] = {}
    for text in given or ():
        name, separator, rule = text.partition("=")
        if not separator or not name or not rule:
            raise UsageFault(f"{option} takes NAME=RULE (got '{text}')")
        found[name] = rule
    return found


def _values(given: list[str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in assigned(given, "--value").items():
        try:
            found[name] = {"value": json.loads(text)}
        except ValueError:
            found[name] = {"value": text}
    return found


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Return the pairs of a CSV file."""
    import csv

    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageFault(f"'{path}' cannot be read: {error}") from None
    if not rows or not {"keep", "drop"} <= rows[0].keys():
        raise UsageFault(f"'{path}' needs the columns keep and drop, and at least one row")
    return [(row["keep"], row["drop"]) for row in rows]
