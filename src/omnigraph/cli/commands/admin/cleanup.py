"""`omnigraph cleanup`: remove old versions."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.errors import FAILED, UsageFault
from omnigraph.cli.invocation import Invocation, Json, takes_graph
from omnigraph.cli.io.durations import read_duration
from omnigraph.cli.io.output import plural, print_json, remark
from omnigraph.cli.io.progress import progress_bar


@takes_graph
def cleanup_command(
    run: Invocation,
    keep: Annotated[
        int | None, typer.Option("--keep", min=0, metavar="N", help="Keep the newest N commits of every branch.")
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Keep versions younger than AGE: 90s, 15m, 12h, 7d, 2w."),
    ] = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Remove the versions; without it, only show them.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed (default).")] = False,
    as_json: Json = False,
) -> None:
    """Remove old versions that no branch, tag or kept commit references.

    omnigraph cleanup --keep 10 --older-than 7d ./my.omni
    """
    if keep is None and older_than is None:
        raise UsageFault("a cleanup requires --keep N, --older-than AGE, or both")
    if confirm and dry_run:
        raise UsageFault("--confirm and --dry-run exclude each other")
    age = read_duration(older_than) if older_than is not None else None
    address = run.address()
    words = [f"keep {plural(keep, 'commit')} of each branch"] if keep is not None else []
    words += [f"remove versions older than {older_than}"] if older_than is not None else []
    policy = ", ".join(words)
    if confirm:
        run.confirm(address, as_json=as_json)
        run.announce(address)
    graph = run.open(address)
    with progress_bar("cleaning up", wanted=not (as_json or run.options.quiet)):
        tables = graph.cleanup(keep=keep, older_than=age, confirm=confirm)
    if as_json:
        from omnigraph.wire.maintenance import cleanup_document

        documents = [table.to_json() for table in tables]
        print_json(cleanup_document(address.uri, keep, age, documents, confirmed=confirm))
    if not confirm:
        going = sum(table.old_versions_removed for table in tables)
        remark(
            f"cleanup preview for {address.uri}",
            f"{policy}; {plural(going, 'version')} would be removed; run again with --confirm",
        )
        return
    failed = [table for table in tables if table.error is not None]
    if not as_json:
        versions = sum(table.old_versions_removed for table in tables)
        size = sum(table.bytes_removed for table in tables)
        touched = plural(len(tables), "table")
        print(f"cleanup {address.uri}: {versions} versions, {size} bytes removed from {touched} ({policy})")
    for table in failed:
        remark("warning", f"{table.table_key} was not cleaned up: {table.error}")
    if failed:
        raise typer.Exit(FAILED)
