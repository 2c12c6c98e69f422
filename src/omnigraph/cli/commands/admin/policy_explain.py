"""`omnigraph policy explain`: the decision on a request or on a row, and its reasons."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.commands.admin.policy_sources import (
    GraphOf,
    PolicyFile,
    SchemaOf,
    Server,
    load,
    policy_path,
    row_policies,
    stored_query,
    stored_row,
)
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Invocation, Json, takes_config
from omnigraph.cli.io.output import print_json, remark
from omnigraph.errors import InputError

if TYPE_CHECKING:
    from omnigraph.policy.rows.row_explanation import StoredRow


@takes_config
def explain_command(
    run: Invocation,
    actor: Annotated[str, typer.Option("--actor", metavar="ACTOR", help="The actor of the request.")],
    action: Annotated[
        str | None,
        typer.Option("--action", metavar="ACTION", help="The action, such as read (default with --type: row_read)."),
    ] = None,
    branch: Annotated[str | None, typer.Option("--branch", "-b", metavar="NAME", help="The branch.")] = None,
    target_branch: Annotated[
        str | None, typer.Option("--target-branch", metavar="NAME", help="The branch that the action changes.")
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", metavar="NAME", help="The stored query of the action invoke_query.")
    ] = None,
    type_name: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Explain the decision on a row of this type.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="JSON", help="The row: a JSON object of its properties.")
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The row: the id of a stored row of the graph.")
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="GROUP", help="A group of the token of the actor. May be repeated."),
    ] = None,
    attributes: Annotated[
        list[str] | None,
        typer.Option(
            "--attribute",
            metavar="NAME=VALUE",
            help="An attribute of the token of the actor; the value is JSON, or text. May be repeated.",
        ),
    ] = None,
    schema: SchemaOf = None,
    graph: GraphOf = None,
    file: PolicyFile = None,
    server: Server = False,
    as_json: Json = False,
) -> None:
    """Show the decision on one request, or on one row, and the reasons.

    The row is given as values, or as the id of a row of a branch of the graph, which is read without the policy. The
    decision on a stored edge includes the right to read its ends, and that on an update or a delete the right to read
    the row. With --graph, --query is a stored query of the branch; else it counts as a read with the rights of its
    caller. --group and --attribute add those that a token brings. The exit code is 0 for both decisions.

    omnigraph policy explain --actor act-editor --action change --branch main

    omnigraph policy explain --actor ana --type Note --data '{"tenant": "acme"}' --graph ./my.omni

    omnigraph policy explain --actor ana --type Note --id n1 --graph ./my.omni --branch draft
    """
    from omnigraph.policy.advice import warnings_of_names
    from omnigraph.policy.rows.row_explanation import explain_row
    from omnigraph.policy.rules import PROPERTY_ACTIONS, ROW_ACTIONS, action_name, branch_name
    from omnigraph.policy.statements import attributes_key

    if type_name is None and (data is not None or id_ is not None or action is None):
        raise UsageFault("give --action, or --type and --data or --id")
    if type_name is None and (action or "").replace("-", "_") in (*ROW_ACTIONS, *PROPERTY_ACTIONS):
        on_rows = (action or "").startswith("row")
        needed = "give --type, and --data or --id" + ("" if on_rows else ", and leave out --action")
        raise UsageFault(f"'{action}' is an action on {'rows' if on_rows else 'properties'}", hint=needed)
    if query is not None and (type_name is not None or (action or "").replace("-", "_") != "invoke_query"):
        raise UsageFault("--query is for --action invoke_query")
    if id_ is not None and (data is not None or schema is not None):
        raise UsageFault(f"--id reads the row from the graph; omit {'--data' if data is not None else '--schema'}")
    try:
        on_row = type_name is not None
        row_action = (action or "row_read").replace("-", "_")
        if on_row and row_action not in ROW_ACTIONS:
            raise UsageFault(f"'{action}' is not an action on rows", hint=f"they are {', '.join(ROW_ACTIONS)}")
        action = row_action if on_row else action_name(action or "")
        branch = branch_name(branch) if branch is not None else None
        target_branch = branch_name(target_branch) if target_branch is not None else None
    except InputError as error:
        raise UsageFault(error.message, hint=error.hint) from None
    given, held = _row_of(data), _attributes_of(attributes or [])
    policy = load(run, policy_path(run, file, server=server), server=server)
    for warning in warnings_of_names(policy.rules, groups or (), held):
        remark("warning", warning)
    if type_name is not None:
        name = branch or "main"
        row: dict[str, Any] | StoredRow = given
        if id_ is not None:
            rows, row = stored_row(run, policy, graph, type_name, id_, name)
        else:
            rows = row_policies(run, policy, schema, graph, name)
        explained = explain_row(rows, rows.actor(actor, groups or (), held), action, type_name, name, row)
        if as_json:
            print_json(explained.to_json())
        else:
            print("\n".join(explained.lines()))
        return
    facts = stored_query(run, graph, query, branch or "main") if query is not None and graph is not None else None
    decision = policy.decide(
        actor,
        action,
        branch,
        target_branch,
        groups=tuple(groups or ()),
        attributes=attributes_key(held),
        name=query,
        query=facts,
    )
    named = {} if query is None else {"query": query}
    if as_json:
        print_json({**policy.explain(decision), **named})
        return
    for name, value in {**decision.to_json(), **named}.items():
        if value is not None:
            print(f"{name}: {value}")
    for reason in decision.reasons:
        print(f"reason: {reason}")


def _attributes_of(given: list[str]) -> dict[str, Any]:
    """Return attributes by name; a value that is not JSON is text."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageFault(f"--attribute must be NAME=VALUE, not '{text}'")
        if name in found:
            raise UsageFault(f"--attribute {name} is given twice")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _row_of(data: str | None) -> dict[str, Any]:
    try:
        found = json.loads(data or "{}")
    except ValueError as error:
        raise UsageFault(f"--data is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageFault("--data must be a JSON object")
    return found
