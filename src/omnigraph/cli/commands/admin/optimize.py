"""`omnigraph optimize`: compact tables and update indexes."""

from __future__ import annotations

from omnigraph.cli.invocation import Branch, Invocation, Json, takes_graph
from omnigraph.cli.io.output import plural, print_json, remark
from omnigraph.cli.io.progress import progress_bar


@takes_graph
def optimize_command(run: Invocation, branch: Branch = None, as_json: Json = False) -> None:
    """Compact the tables of a branch and update its indexes, as one commit.

    omnigraph optimize ./my.omni
    """
    address = run.address()
    on = run.branch(branch)
    run.announce(address)
    graph = run.open(address)
    with progress_bar("optimizing", wanted=not (as_json or run.options.quiet)):
        tables = graph.optimize(on)
    if as_json:
        from omnigraph.wire.maintenance import OptimizeDocument

        documents = [table.to_json() for table in tables]
        print_json(OptimizeDocument.of({"uri": address.uri, "branch": on, "tables": documents}))
        return
    print(f"optimize {address.uri}: {plural(len(tables), 'table')}")
    for table in tables:
        change = f"-{table.fragments_before} +{table.fragments_after} fragments" if table.committed else "unchanged"
        print(f"  {table.table_key} {change}")
        for pending in table.pending:
            remark("note", f"no index on {table.table_key}.{pending.column} yet: {pending.reason}")
