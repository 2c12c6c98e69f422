"""How changes are shown, and `omnigraph diff`, `commit changes` and `changes`, which show them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli import completion
from omnigraph.cli.commands.data.query import commit_point, point
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.help import Group
from omnigraph.cli.invocation import Branch, Invocation, Json, is_graph, takes_graph
from omnigraph.cli.io.colours import PLAIN, Colours, colours
from omnigraph.cli.io.files import writing
from omnigraph.cli.io.output import plural, print_json, utc
from omnigraph.cli.io.pager import print_paged
from omnigraph.text_table import compact

if TYPE_CHECKING:
    from omnigraph.versioning.compare.changeset import ChangeSet
    from omnigraph.versioning.compare.diff import RowChange
    from omnigraph.versioning.feed.commit_changes import CommitBlock
    from omnigraph.versioning.feed.feed import ChangePage

app = typer.Typer(
    cls=Group, no_args_is_help=True, help="Follow a branch: every change since a cursor.", rich_markup_mode=None
)

KINDS, OPS = ("node", "edge"), ("insert", "update", "delete")
Kinds = Annotated[list[str] | None, typer.Option("--kind", metavar="KIND", help="Only node, or only edge.")]
Types = Annotated[list[str] | None, typer.Option("--type", metavar="NAME", help="Only this type; may be repeated.")]
Ops = Annotated[
    list[str] | None, typer.Option("--op", metavar="OP", help="Only insert, update or delete; may be repeated.")
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="At most so many changes.")]


# -- showing -----------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A stored value as JSON can hold it."""
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, float) and not math.isfinite(value):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    return value


def change_lines(change: RowChange, paint: Colours = PLAIN) -> Iterator[str]:
    """A change for people: what, which, and the properties concerned."""
    colour = {"insert": paint.added, "delete": paint.removed}.get(change.op, paint.changed)
    kind, _, type_name = change.table_key.partition(":")
    head = f"{change.op} {kind} {type_name} {change.id}"
    if kind == "edge":
        ends = [f"{row['src']} -> {row['dst']}" for row in (change.before, change.after) if row is not None]
        head += " " + " to ".join(dict.fromkeys(ends))
    yield colour(head)
    for line in property_lines(change.before, change.after, change.properties, paint):
        yield f"  {line}"


def property_lines(
    before: dict[str, Any] | None, after: dict[str, Any] | None, properties: Iterable[str], paint: Colours = PLAIN
) -> Iterator[str]:
    """`+ k: v`, `- k: v` or `k: old -> new` for each property that differs."""
    for name in properties:
        if name in ("id", "src", "dst"):
            continue
        if before is None:
            if after is not None and after.get(name) is not None:
                yield paint.added(f"+ {name}: {shown(after, name)}")
        elif after is None:
            if before.get(name) is not None:
                yield paint.removed(f"- {name}: {shown(before, name)}")
        else:
            yield f"{name}: {paint.removed(shown(before, name))} -> {paint.added(shown(after, name))}"


def shown(row: dict[str, Any], name: str) -> str:
    """A value of a row in one line; what is null or not there cannot be mistaken for a text."""
    if name not in row:
        return "<absent>"
    if row[name] is None:
        return "<null>"
    value = plain(row[name])
    text = value if isinstance(value, str) else compact(value)
    return text if len(text) <= 120 else text[:119] + "…"


def check_filters(kinds: Iterable[str] | None, ops: Iterable[str] | None) -> None:
    """Refuse words that no change has."""
    for word, given, known in (("--kind", kinds, KINDS), ("--op", ops, OPS)):
        for value in given or ():
            if value not in known:
                raise UsageFault(f"{word} is one of {', '.join(known)}, not '{value}'")


# -- between two points ------------------------------------------------------------------------------


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
            metavar="TO", help="The same; what is new there is an insert.", autocompletion=completion.points
        ),
    ] = None,
    kinds: Kinds = None,
    types: Types = None,
    ops: Ops = None,
    limit: Limit = None,
    stat: Annotated[bool, typer.Option("--stat", help="Only count, per table.")] = False,
    as_json: Json = False,
) -> None:
    """Show every node and edge that differs between two points, by value.

    FROM...TO shows only the changes made on TO since it left FROM: those since the newest common commit.

    omnigraph diff main review/may ./my.omni
    """
    from omnigraph.graph_history import read_range

    check_filters(kinds, ops)
    if stat and limit is not None:
        raise UsageFault("--stat counts every change; it cannot be combined with --limit")
    if run.uri is not None and to is not None and is_graph(from_) and not is_graph(run.uri):
        # The graph was typed first.
        from_, to, run.uri = to, run.uri, from_
    both = read_range(from_)
    if both is None:
        if to is None:
            raise UsageFault("missing argument 'TO'; name two points, or write FROM..TO")
    elif to is not None:
        # A range is one word, so the word behind it is the graph.
        if run.uri is not None:
            raise UsageFault(f"'{from_}' names both points, and '{to}' is one more")
        run.uri, to = to, None
    found = run.open(read_only=True).diff(point(from_), point(to), kinds=kinds, types=types, ops=ops)
    if stat:
        _count(found, as_json=as_json)
    elif as_json:
        first, last = (from_, to) if both is None else (both.first, both.last)
        changes = [plain(change.to_json()) for change in islice(found, None if limit is None else limit + 1)]
        document: dict[str, Any] = {"from": first, "to": last, "schema_steps": list(found.schema_steps)}
        document["changes"] = changes[:limit]
        print_json({**document, "truncated": len(changes) > limit} if limit is not None else document)
    else:
        print_paged(_diff_lines(found, limit, colours()))


def _diff_lines(found: ChangeSet, limit: int | None, paint: Colours) -> Iterator[str]:
    yield from (f"schema: {step}" for step in found.schema_steps)
    changes = iter(found)
    count = 0
    for change in islice(changes, limit):
        count += 1
        yield from change_lines(change, paint)
    rest = sum(1 for _ in changes) if limit is not None else 0
    yield f"{count} of {plural(count + rest, 'change')}" if rest else plural(count, "change")


def _count(changes: ChangeSet, *, as_json: bool) -> None:
    counts: dict[str, dict[str, int]] = {}
    for change in changes:
        table = counts.setdefault(change.table_key, dict.fromkeys(OPS, 0))
        table[change.op] += 1
    if as_json:
        tables = [{"table_key": key, **table} for key, table in sorted(counts.items())]
        print_json({"schema_steps": list(changes.schema_steps), "tables": tables})
        return
    for step in changes.schema_steps:
        print(f"schema: {step}")
    for key, table in sorted(counts.items()):
        print(f"{key}  +{table['insert']} ~{table['update']} -{table['delete']}")
    print(plural(sum(sum(table.values()) for table in counts.values()), "change"))


# -- of one commit -----------------------------------------------------------------------------------


@takes_graph
def commit_changes_command(
    run: Invocation,
    id_: Annotated[str, typer.Argument(metavar="COMMIT", help="The commit: its id, a tag, or another point.")],
    kinds: Kinds = None,
    types: Types = None,
    ops: Ops = None,
    limit: Limit = None,
    page: Annotated[
        str | None, typer.Option("--page-token", metavar="TOKEN", help="Go on from an earlier, limited answer.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show exactly what one commit changed, against its first parent."""
    check_filters(kinds, ops)
    graph = run.open(read_only=True)
    block = graph.commit_changes(commit_point(id_), kinds=kinds, types=types, ops=ops, changes_max=limit, page=page)
    if as_json:
        print_json(plain({**block.to_json(), "page": block.page}))
        return
    _print_block(block)
    if block.page is not None:
        print(f"page: {block.page}")


def _print_block(block: CommitBlock) -> None:
    commit = block.commit
    members = {
        "commit": commit.id,
        "branch": commit.branch,
        "parent": commit.parent_id,
        "merged_parent": commit.merged_parent_id,
        "actor": commit.actor,
        "authored_at": utc(commit.created_us),
        "message": commit.message,
    }
    for name, value in members.items():
        if value is not None:
            print(f"{name}: {value}")
    for change in block.changes:
        for line in change_lines(change.row, colours()):
            print(line)


# -- the feed ----------------------------------------------------------------------------------------


@app.command("poll")
@takes_graph
def poll_command(
    run: Invocation,
    branch: Branch = None,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="CURSOR", help="Where an earlier poll ended.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="WHERE", help="Without a cursor: now, beginning or after:ID.")
    ] = None,
    kinds: Kinds = None,
    types: Types = None,
    ops: Ops = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="How many changes one page may hold.")
    ] = 1_000,
    as_json: Json = False,
) -> None:
    """Show the commits of a branch since a cursor, and the cursor to go on from.

    Keep the cursor after the changes were worked off, and every commit is seen at least once.
    """
    check_filters(kinds, ops)
    if cursor is not None and start is not None:
        raise UsageFault("--cursor and --start exclude each other")
    graph = run.open(branch=run.branch(branch), read_only=True)
    wanted = {"kinds": kinds, "types": types, "ops": ops}
    page: ChangePage = graph.changes(cursor, start=start or "now", changes_max=limit, **wanted)  # type: ignore[arg-type]
    blocks: list[Any] = []
    count = 0
    while True:
        for block in page:
            count += 1
            if as_json:
                blocks.append(plain(block.to_json()))
            else:
                _print_block(block)
                print()
        if page.page is None:
            break
        page = graph.changes(page=page.page, changes_max=limit, **wanted)  # type: ignore[arg-type]
    if as_json:
        print_json({**page.to_json(), "blocks": blocks})
        return
    if not count:
        print("(no new commits)")
    print(f"cursor: {page.cursor}")
    print(f"caught_up: {'true' if page.caught_up else 'false'}")


@app.command("baseline")
@takes_graph
def baseline_command(
    run: Invocation,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Where the records go.")],
    branch: Branch = None,
    kinds: Kinds = None,
    types: Types = None,
    as_json: Json = False,
) -> None:
    """Write the records of a branch's head to a file, and show the cursor that goes on from there.

    The cursor is shown once the file is whole and on disk.
    """
    check_filters(kinds, None)
    on = run.branch(branch)
    graph = run.open(branch=on, read_only=True)
    last: dict[str, Any] = {}
    rows = 0
    with writing(out) as file:
        for record in graph.changes_baseline(kinds=kinds, types=types):
            if "baseline" in record:
                last = record["baseline"]
            else:
                rows += 1
                file.write(compact(record).encode() + b"\n")
    if as_json:
        print_json({"branch": on, "path": out, "rows": rows, **last})
        return
    print(f"baseline {out}: {plural(rows, 'row')} of branch {on} at {last['snapshot_commit_id']}")
    print(f"cursor: {last['resume_cursor']}")
