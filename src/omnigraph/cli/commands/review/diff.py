"""`omnigraph diff`: compare two points of history."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli import completion
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Invocation, Json, is_graph, takes_graph
from omnigraph.cli.io.change_output import OPS, Kinds, Limit, Ops, Types, change_lines, check_filters
from omnigraph.cli.io.colours import Colours, colours
from omnigraph.cli.io.output import plural, print_json
from omnigraph.cli.io.pager import print_paged
from omnigraph.cli.io.points import point
from omnigraph.wire.json_values import json_value

if TYPE_CHECKING:
    from omnigraph.versioning.compare.changeset import ChangeSet


@takes_graph
def diff_command(
    run: Invocation,
    from_: Annotated[
        str,
        typer.Argument(
            metavar="FROM",
            help="A branch, tag, commit id, manifest version or time; or both points as FROM..TO or FROM...TO.",
            autocompletion=completion.points,
        ),
    ],
    to: Annotated[
        str | None,
        typer.Argument(
            metavar="TO",
            help="The point to compare with; a row that exists only there is an insert.",
            autocompletion=completion.points,
        ),
    ] = None,
    kinds: Kinds = None,
    types: Types = None,
    ops: Ops = None,
    limit: Limit = None,
    stat: Annotated[bool, typer.Option("--stat", help="Show only counts per table.")] = False,
    as_json: Json = False,
) -> None:
    """Show every node and edge whose values differ between two points.

    FROM...TO shows only the changes on TO since the newest common commit of FROM and TO.

    omnigraph diff main review/may ./my.omni
    """
    from omnigraph.graph_history import read_range

    check_filters(kinds, ops)
    if stat and limit is not None:
        raise UsageFault("--stat and --limit exclude each other")
    if run.uri is not None and to is not None and is_graph(from_) and not is_graph(run.uri):
        # The graph is the first argument.
        from_, to, run.uri = to, run.uri, from_
    both = read_range(from_)
    if both is None:
        if to is None:
            raise UsageFault("missing argument 'TO'; give two points, or FROM..TO")
    elif to is not None:
        # A range names both points, so the next argument is the graph.
        if run.uri is not None:
            raise UsageFault(f"unexpected argument '{to}': '{from_}' names both points")
        run.uri, to = to, None
    found = run.open(read_only=True).diff(point(from_), point(to), kinds=kinds, types=types, ops=ops)
    if stat:
        _print_counts(found, as_json=as_json)
        return
    first, last = (from_, to) if both is None else (both.first, both.last)
    print_diff(found, {"from": first, "to": last}, limit, as_json=as_json)


def print_diff(found: ChangeSet, points: dict[str, Any], limit: int | None, *, as_json: bool) -> None:
    """Print the changes of a diff; `points` names both points in the JSON form."""
    if as_json:
        _print_changes(found, points, limit)
    else:
        print_paged(_diff_lines(found, limit, colours()))


def _diff_lines(found: ChangeSet, limit: int | None, paint: Colours) -> Iterator[str]:
    yield from (f"schema: {step}" for step in found.schema_steps)
    yield from (f"alias: {line}" for line in found.aliases)
    changes = iter(found)
    count = 0
    for change in islice(changes, limit):
        count += 1
        yield from change_lines(change, paint)
    rest = sum(1 for _ in changes) if limit is not None else 0
    yield f"{count} of {plural(count + rest, 'change')}" if rest else plural(count, "change")


def _print_changes(found: ChangeSet, points: dict[str, Any], limit: int | None) -> None:
    from omnigraph.wire.changes import DiffDocument

    changes = [json_value(change.to_json()) for change in islice(found, None if limit is None else limit + 1)]
    aliases = {"aliases": list(found.aliases)} if found.aliases else {}
    document = {**points, "schema_steps": found.schema_steps, **aliases, "changes": changes[:limit]}
    print_json(DiffDocument.of({**document, "truncated": len(changes) > limit} if limit is not None else document))


def _print_counts(changes: ChangeSet, *, as_json: bool) -> None:
    counts: dict[str, dict[str, int]] = {}
    for change in changes:
        table = counts.setdefault(change.table_key, dict.fromkeys(OPS, 0))
        table[change.op] += 1
    if as_json:
        from omnigraph.wire.changes import DiffCountsDocument

        tables = [{"table_key": key, **table} for key, table in sorted(counts.items())]
        print_json(DiffCountsDocument.of({"schema_steps": changes.schema_steps, "tables": tables}))
        return
    for step in changes.schema_steps:
        print(f"schema: {step}")
    for key, table in sorted(counts.items()):
        print(f"{key}  +{table['insert']} ~{table['update']} -{table['delete']}")
    print(plural(sum(sum(table.values()) for table in counts.values()), "change"))
