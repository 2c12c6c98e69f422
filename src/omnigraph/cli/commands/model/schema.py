"""`omnigraph schema`: check, show, plan and apply schemas."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Branch, Invocation, Json, Message, is_graph, takes_graph
from omnigraph.cli.io.files import read_text
from omnigraph.cli.io.output import plural, print_json, remark
from omnigraph.cli.io.points import At, open_at, point
from omnigraph.cli.io.query_input import DataLoss, PolicyBreakage, QueryBreakage
from omnigraph.cli.schema_rules import open_for_schema_change, remark_on_rules, rules_for_rows

if TYPE_CHECKING:
    from omnigraph.operations.migrate import SchemaApplyResult
    from omnigraph.schema.catalog import Catalog
    from omnigraph.schema.migrate import SchemaPlan
    from omnigraph.schema.migration_steps import Step

app = command_group("Check and show schemas; plan and apply schema changes.")

File = Annotated[
    str | None, typer.Argument(metavar="FILE", help="The schema (.pg), instead of --schema.", show_default=False)
]


@app.command("check")
def check_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The schema (.pg); '-' reads stdin.")],
    as_json: Json = False,
) -> None:
    """Check that a schema is valid."""
    from omnigraph.schema.check import check_not_empty, compile_schema
    from omnigraph.schema.identity import shape_hash
    from omnigraph.schema.warnings import unknown_annotations

    catalog = compile_schema(read_text(file), file)
    check_not_empty(catalog)
    nodes, edges, interfaces = len(catalog.nodes), len(catalog.edges), len(catalog.interfaces)
    if as_json:
        from omnigraph.wire.schemas import SchemaCheckDocument

        warnings = [found.message for found in unknown_annotations(catalog)]
        print_json(SchemaCheckDocument("ok", file, interfaces, nodes, edges, shape_hash(catalog), warnings))
        return
    warn_of_annotations(catalog)
    counted = [plural(nodes, "node type"), plural(edges, "edge type"), plural(interfaces, "interface")]
    print(f"ok     {file}: {', '.join(counted)}")


@app.command("get", hidden=True)
@app.command("show")
@takes_graph
def show_command(run: Invocation, branch: Branch = None, at: At = None, as_json: Json = False) -> None:
    """Show the schema of a branch, or of a point of history."""
    source = open_at(run, branch, at).snapshot(at=point(at)).schema.source
    if as_json:
        from omnigraph.wire.schemas import SchemaDocument

        print_json(SchemaDocument(source))
    else:
        sys.stdout.write(source if source.endswith("\n") else source + "\n")


@app.command("plan")
@takes_graph
def plan_command(
    run: Invocation,
    file: File = None,
    schema: Annotated[str | None, typer.Option("--schema", "-s", metavar="FILE", help="The new schema (.pg).")] = None,
    from_file: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="Without a graph: the current schema (.pg).")
    ] = None,
    to_file: Annotated[
        str | None, typer.Option("--to", metavar="FILE", help="Without a graph: the new schema (.pg).")
    ] = None,
    branch: Branch = None,
    allow_data_loss: DataLoss = False,
    as_json: Json = False,
) -> None:
    """Show the steps of a migration to another schema; nothing is written.

    The exit code is 0 even if the migration is not supported. Rules of the configured policy that the new schema would
    make invalid are listed as warnings.
    """
    from omnigraph.schema.check import check_not_empty, compile_schema
    from omnigraph.schema.migrate import plan_between

    about: dict[str, Any]
    if from_file is None and to_file is None:
        schema = _schema_file(run, file, schema)
    if from_file is not None and to_file is not None and schema is None:
        old, new = compile_schema(read_text(from_file), from_file), compile_schema(read_text(to_file), to_file)
        warn_of_annotations(new)
        check_not_empty(new)
        plan = plan_between(old, new)
        policy = rules_for_rows(run, None)
        if policy is not None:
            from omnigraph.policy.breakage import broken_rules

            plan = replace(plan, broken_rules=tuple(broken_rules(policy, old, new)))
        about, title = {"from": from_file, "to": to_file}, f"{from_file} -> {to_file}"
    elif schema is not None and from_file is None and to_file is None:
        address = run.address()
        text = read_text(schema)
        warn_of_annotations(compile_schema(text, schema))
        graph = open_for_schema_change(run, address, branch=run.branch(branch), read_only=True)
        plan = graph.plan_schema(text, allow_data_loss=allow_data_loss)
        about, title = {"uri": address.uri}, address.uri
    else:
        raise UsageFault("give a schema FILE and a graph, or --from FILE and --to FILE")
    if as_json:
        from omnigraph.wire.schemas import SchemaPlanDocument

        remark_on_rules(plan.broken_rules)
        print_json(SchemaPlanDocument.of({**about, **plan.to_json()}))
        return
    print(f"schema plan {title}")
    print(f"supported: {'yes' if plan.supported else 'no'}")
    _print_steps(plan.steps)
    _remark_on_drops(plan)
    remark_on_rules(plan.broken_rules)


@app.command("apply")
@takes_graph
def apply_command(
    run: Invocation,
    file: File = None,
    schema: Annotated[str | None, typer.Option("--schema", "-s", metavar="FILE", help="The new schema (.pg).")] = None,
    branch: Branch = None,
    allow_data_loss: DataLoss = False,
    allow_policy_breakage: PolicyBreakage = False,
    allow_query_breakage: QueryBreakage = False,
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Migrate a branch to a new schema, as one commit.

    A schema that would make rules of the configured policy invalid is refused without --allow-policy-breakage, and one
    that would make stored queries invalid without --allow-query-breakage.

    omnigraph schema apply people.pg ./my.omni
    """
    from omnigraph.schema.check import compile_schema

    schema = _schema_file(run, file, schema)
    if schema is None:
        raise UsageFault("no schema was given; write: omnigraph schema apply FILE [URI]")
    address = run.address()
    text = read_text(schema)
    warn_of_annotations(compile_schema(text, schema))
    if allow_data_loss:
        run.confirm(address, as_json=as_json)
    run.announce(address)
    graph = open_for_schema_change(run, address, branch=run.branch(branch))
    result = graph.apply_schema(
        text,
        allow_data_loss=allow_data_loss,
        allow_policy_breakage=allow_policy_breakage,
        allow_query_breakage=allow_query_breakage,
        message=message,
    )
    remark_on_rules(result.broken_rules)
    if as_json:
        from omnigraph.wire.schemas import SchemaAppliedDocument

        print_json(SchemaAppliedDocument.of({"uri": address.uri, **result.to_json()}))
        return
    print(f"schema apply {address.uri}")
    print(f"supported: {'yes' if result.supported else 'no'}")
    print(f"applied: {'yes' if result.applied else 'no'}")
    print(f"manifest version: {result.manifest_version}")
    _print_steps(result.steps)
    _remark_on_drops(result)


def _schema_file(run: Invocation, file: str | None, schema: str | None) -> str | None:
    """Return the schema file from the option or the first argument; the graph is the last argument."""
    if schema is None and file is not None and (run.uri is not None or not is_graph(file)):
        return file
    if file is not None and run.uri is not None:
        raise UsageFault(f"unexpected argument '{file}': with --schema, the only argument is the graph")
    run.uri = run.uri or file
    return schema


def warn_of_annotations(catalog: Catalog) -> None:
    """Warn of annotations without effect."""
    from omnigraph.schema.warnings import unknown_annotations

    for found in unknown_annotations(catalog):
        remark("warning", found.message)


def _remark_on_drops(change: SchemaPlan | SchemaApplyResult) -> None:
    for loss in change.losses:
        remark("warning", loss)
    for hint in change.rename_hints:
        remark("hint", hint)


def _print_steps(steps: Iterable[Step]) -> None:
    nothing = True
    for step in steps:
        nothing = False
        print(f"- {step.describe()}")
    if nothing:
        print("nothing to change")
