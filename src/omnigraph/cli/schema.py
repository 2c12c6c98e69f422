"""`omnigraph schema check` and `omnigraph schema plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.files import read_text
from omnigraph.cli.output import plural, print_json

app = typer.Typer(no_args_is_help=True, help="Check schemas and plan changes of them.", rich_markup_mode=None)


@app.command("check")
def check_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The schema (.pg); '-' reads stdin.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Check that a schema is sound."""
    from omnigraph.schema.check import compile_schema
    from omnigraph.schema.identity import shape_hash

    catalog = compile_schema(read_text(file), file)
    nodes, edges, interfaces = len(catalog.nodes), len(catalog.edges), len(catalog.interfaces)
    if as_json:
        counts = {"interfaces": interfaces, "nodes": nodes, "edges": edges}
        print_json({"status": "ok", "path": file, **counts, "hash": shape_hash(catalog)})
        return
    counted = [plural(nodes, "node type"), plural(edges, "edge type"), plural(interfaces, "interface")]
    print(f"ok     {file}: {', '.join(counted)}")


@app.command("plan")
def plan_command(
    from_file: Annotated[str, typer.Option("--from", metavar="FILE", help="The schema as it is (.pg).")],
    to_file: Annotated[str, typer.Option("--to", metavar="FILE", help="The schema as it should be (.pg).")],
    allow_data_loss: Annotated[
        bool, typer.Option("--allow-data-loss", help="Plan drops that also remove old versions of the data.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Plan the steps from one schema to another; nothing is written.

    A plan that is not supported is an answer, not a failure: the exit code is 0.
    """
    from omnigraph.schema.check import compile_schema
    from omnigraph.schema.migrate import plan_between

    old = compile_schema(read_text(from_file), from_file)
    new = compile_schema(read_text(to_file), to_file)
    plan = plan_between(old, new, allow_data_loss=allow_data_loss)
    if as_json:
        print_json({"from": from_file, "to": to_file, **plan.to_json()})
        return
    print(f"schema plan {from_file} -> {to_file}")
    print(f"supported: {'yes' if plan.supported else 'no'}")
    for step in plan.steps:
        print(f"- {step.describe()}")
    if not plan.steps:
        print("nothing to change")
