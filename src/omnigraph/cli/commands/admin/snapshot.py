"""`omnigraph snapshot`: list the tables of a branch."""

from __future__ import annotations

from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.output import print_json


@takes_graph
def snapshot_command(run: Invocation, branch: Branch = None, as_json: Json = False) -> None:
    """Show the tables of a branch with their versions and row counts."""
    on = run.branch(branch)
    graph = run.open(branch=on, read_only=True)
    document = graph.snapshot().to_json()
    if as_json:
        from omnigraph.wire.graph_state import SnapshotDocument

        print_json(SnapshotDocument.of(document))
        return
    version, format_ = document["manifest_version"], document["internal_schema_version"]
    print(f"branch {on}, manifest version {version}, storage format {format_}")
    for table in document["tables"]:
        parts = f"version={table['table_version']}  branch={table['table_branch'] or 'main'}  rows={table['row_count']}"
        print(f"{table['table_key']}  {parts}")
