"""`omnigraph changes`: poll the change feed of a branch, or export a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.change_output import Kinds, Ops, Types, check_filters, print_block
from omnigraph.cli.io.files import writing
from omnigraph.cli.io.output import plural, print_json
from omnigraph.text_table import compact
from omnigraph.wire.json_values import json_value

if TYPE_CHECKING:
    from omnigraph.versioning.feed.feed import ChangePage


app = command_group("Follow the changes of a branch from a cursor.")


@app.command("poll")
@takes_graph
def poll_command(
    run: Invocation,
    branch: Branch = None,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="CURSOR", help="The cursor that an earlier poll returned.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="WHERE", help="Without a cursor: now, beginning or after:ID.")
    ] = None,
    kinds: Kinds = None,
    types: Types = None,
    ops: Ops = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="The maximum number of changes per page.")
    ] = 1_000,
    as_json: Json = False,
) -> None:
    """Show the commits of a branch since a cursor, and the next cursor.

    Store the cursor after processing the changes: every commit is then delivered at least once.
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
                blocks.append(json_value(block.to_json()))
            else:
                print_block(block)
                print()
        if page.page is None:
            break
        page = graph.changes(page=page.page, changes_max=limit, **wanted)  # type: ignore[arg-type]
    if as_json:
        from omnigraph.wire.changes import FeedPageDocument

        print_json(FeedPageDocument.of({**json_value(page.to_json()), "blocks": blocks}))
        return
    if not count:
        print("(no new commits)")
    print(f"cursor: {page.cursor}")
    print(f"caught_up: {'true' if page.caught_up else 'false'}")


@app.command("baseline")
@takes_graph
def baseline_command(
    run: Invocation,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The output file.")],
    branch: Branch = None,
    kinds: Kinds = None,
    types: Types = None,
    as_json: Json = False,
) -> None:
    """Write all records at the head of a branch to a file, and show the cursor that continues from there.

    The cursor is printed after the file is complete and synced to disk.
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
        from omnigraph.wire.changes import BaselineDocument

        print_json(BaselineDocument.of({"branch": on, "path": out, "rows": rows, **last}))
        return
    print(f"baseline {out}: {plural(rows, 'row')} of branch {on} at {last['snapshot_commit_id']}")
    print(f"cursor: {last['resume_cursor']}")
