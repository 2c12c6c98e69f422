"""Row changes as text and JSON, and the options that select changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.io.colours import PLAIN, Colours, colours
from omnigraph.cli.io.output import utc
from omnigraph.table_key import TableKey
from omnigraph.text_table import compact
from omnigraph.wire.json_values import json_value

if TYPE_CHECKING:
    from omnigraph.versioning.compare.diff import RowChange
    from omnigraph.versioning.feed.commit_changes import CommitBlock


KINDS, OPS = ("node", "edge"), ("insert", "update", "delete")
Kinds = Annotated[
    list[str] | None, typer.Option("--kind", metavar="KIND", help="Only nodes (node) or only edges (edge).")
]
Types = Annotated[list[str] | None, typer.Option("--type", metavar="NAME", help="Only this type; may be repeated.")]
Ops = Annotated[
    list[str] | None, typer.Option("--op", metavar="OP", help="Only insert, update or delete; may be repeated.")
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="At most N changes.")]


def change_lines(change: RowChange, paint: Colours = PLAIN) -> Iterator[str]:
    """Describe a change: the operation, the node or edge, and its properties."""
    colour = {"insert": paint.added, "delete": paint.removed}.get(change.op, paint.changed)
    kind, type_name = TableKey.parse(change.table_key).parts
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
    """Yield `+ k: v`, `- k: v` or `k: old -> new` for each property that differs."""
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
    """Format a value of a row in one line; `<null>` and `<absent>` differ from any text."""
    if name not in row:
        return "<absent>"
    if row[name] is None:
        return "<null>"
    value = json_value(row[name])
    text = value if isinstance(value, str) else compact(value)
    return text if len(text) <= 120 else text[:119] + "…"


def check_filters(kinds: Iterable[str] | None, ops: Iterable[str] | None) -> None:
    """Reject unknown values of `--kind` and `--op`."""
    for word, given, known in (("--kind", kinds, KINDS), ("--op", ops, OPS)):
        for value in given or ():
            if value not in known:
                raise UsageFault(f"{word} must be one of {', '.join(known)}, not '{value}'")


def print_block(block: CommitBlock) -> None:
    """Print the head of a commit and its changes."""
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
