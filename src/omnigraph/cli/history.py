"""`omnigraph commit` and `omnigraph diff`: what happened, and what differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.ask import point
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.formats import cell
from omnigraph.cli.invocation import Invocation, Json, takes_graph
from omnigraph.cli.output import compact, plural, print_json, utc

if TYPE_CHECKING:
    from omnigraph.versioning.diff import RowChange
    from omnigraph.versioning.records import Commit

app = typer.Typer(no_args_is_help=True, help="Look at commits.", rich_markup_mode=None)

KINDS, OPS = ("node", "edge"), ("insert", "update", "delete")
Kind = Annotated[list[str] | None, typer.Option("--kind", metavar="node|edge", help="Only nodes, or only edges.")]
Type = Annotated[list[str] | None, typer.Option("--type", metavar="NAME", help="Only this type; may be repeated.")]
Op = Annotated[
    list[str] | None, typer.Option("--op", metavar="OP", help="Only insert, update or delete; may be repeated.")
]
Limit = Annotated[int | None, typer.Option("--limit", min=0, metavar="N", help="At most so many.")]


@app.command("list")
@takes_graph
def list_command(
    run: Invocation,
    branch: Annotated[str | None, typer.Option("--branch", "-b", metavar="NAME", help="The branch.")] = None,
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """List the commits of a branch, newest first."""
    graph = run.open(branch=run.branch(branch), read_only=True)
    commits = graph.commits(limit=limit)
    if as_json:
        print_json({"commits": [commit.to_json() for commit in commits]})
        return
    for commit in commits:
        print(_line(commit))


def _line(commit: Commit) -> str:
    parts = [commit.id, utc(commit.created_at), f"{commit.branch}@{commit.manifest_version}"]
    parts += [part for part in (commit.actor, commit.message or commit.kind) if part]
    return "  ".join(parts)


@app.command("show")
@takes_graph
def show_command(
    run: Invocation,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The commit.")],
    as_json: Json = False,
) -> None:
    """Show one commit."""
    document = run.open(read_only=True).commit(id_).to_json()
    if as_json:
        print_json(document)
        return
    for key, value in document.items():
        if value not in (None, [], {}):
            print(f"{key}: {cell(value)}")


@takes_graph
def diff_command(
    run: Invocation,
    from_: Annotated[str, typer.Argument(metavar="FROM", help="A branch, commit id, manifest version or time.")],
    to: Annotated[str, typer.Argument(metavar="TO", help="The same; what is new there is an insert.")],
    kinds: Kind = None,
    types: Type = None,
    ops: Op = None,
    limit: Limit = None,
    stat: Annotated[bool, typer.Option("--stat", help="Only count, per table.")] = False,
    as_json: Json = False,
) -> None:
    """Show every node and edge that differs between two points, by value.

    omnigraph diff main review/may ./my.omni
    """
    check_filters(kinds, ops)
    graph = run.open(read_only=True)
    found = graph.diff(point(from_), point(to), kinds=kinds, types=types, ops=ops)
    changes = islice(found, limit)
    if stat:
        _count(changes, as_json=as_json)
    elif as_json:
        print_json({"from": from_, "to": to, "changes": [change_json(change) for change in changes]})
    else:
        count = 0
        for change in changes:
            count += 1
            for line in change_lines(change):
                print(line)
        print(plural(count, "change"))


def check_filters(kinds: Iterable[str] | None, ops: Iterable[str] | None) -> None:
    """Refuse words that no change has."""
    for word, given, known in (("--kind", kinds, KINDS), ("--op", ops, OPS)):
        for value in given or ():
            if value not in known:
                raise UsageFault(f"{word} is one of {', '.join(known)}, not '{value}'")


def change_json(change: RowChange) -> dict[str, Any]:
    """A change as JSON: dates as text."""
    return {key: plain(value) for key, value in change.to_json().items()}


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    import datetime
    import math

    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def change_lines(change: RowChange) -> Iterator[str]:
    """A change for people: what, which, and the properties concerned."""
    before, after = plain(change.before), plain(change.after)
    kind, _, type_name = change.table_key.partition(":")
    head = f"{change.op} {kind} {type_name} {change.id}"
    if kind == "edge":
        ends = [f"{row['src']} -> {row['dst']}" for row in (before, after) if row is not None]
        head += " " + " to ".join(dict.fromkeys(ends))
    yield head
    for name in change.properties:
        if name in ("id", "src", "dst"):
            continue
        if before is None:
            if after[name] is not None:
                yield f"  + {name}: {_shown(after, name)}"
        elif after is None:
            if before[name] is not None:
                yield f"  - {name}: {_shown(before, name)}"
        else:
            yield f"  {name}: {_shown(before, name)} -> {_shown(after, name)}"


def _shown(row: dict[str, Any], name: str) -> str:
    if name not in row:
        return "<absent>"
    value = row[name]
    if value is None:
        return "<null>"
    text = value if isinstance(value, str) else compact(value)
    return text if len(text) <= 120 else text[:119] + "…"


def _count(changes: Iterable[RowChange], *, as_json: bool) -> None:
    counts: dict[str, dict[str, int]] = {}
    for change in changes:
        table = counts.setdefault(change.table_key, dict.fromkeys(OPS, 0))
        table[change.op] += 1
    if as_json:
        print_json({"tables": [{"table_key": key, **table} for key, table in sorted(counts.items())]})
        return
    for key, table in sorted(counts.items()):
        print(f"{key}  +{table['insert']} ~{table['update']} -{table['delete']}")
    print(plural(sum(sum(table.values()) for table in counts.values()), "change"))
