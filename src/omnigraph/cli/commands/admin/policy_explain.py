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
)
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Invocation, Json, takes_config
from omnigraph.cli.io.output import print_json
from omnigraph.errors import InputError

if TYPE_CHECKING:
    from omnigraph.policy.row_policies import RowPolicies


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
    type_name: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Explain the decision on a row of this type.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="JSON", help="The row: a JSON object of its properties.")
    ] = None,
    schema: SchemaOf = None,
    graph: GraphOf = None,
    file: PolicyFile = None,
    server: Server = False,
    as_json: Json = False,
) -> None:
    """Show the decision on one request, or on one row, and the reasons.

    The exit code is 0 for both decisions.

    omnigraph policy explain --actor act-editor --action change --branch main

    omnigraph policy explain --actor ana --type Note --data '{"tenant": "acme"}' --graph ./my.omni
    """
    from omnigraph.policy.rules import ROW_ACTIONS, action_name, branch_name

    if type_name is None and (data is not None or action is None):
        raise UsageFault("give --action, or --type and --data")
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
    row = _row_of(data)
    policy = load(run, policy_path(run, file, server=server), server=server)
    if type_name is not None:
        rows = row_policies(run, policy, schema, graph)
        _explain_row(rows, actor, action, type_name, row, branch or "main", as_json=as_json)
        return
    decision = policy.decide(actor, action, branch, target_branch)
    if as_json:
        print_json(policy.explain(decision))
        return
    for name, value in decision.to_json().items():
        if value is not None:
            print(f"{name}: {value}")
    for reason in decision.reasons:
        print(f"reason: {reason}")


def _explain_row(
    rows: RowPolicies, actor: str, action: str, type_name: str, data: dict[str, Any], branch: str, *, as_json: bool
) -> None:
    """Print the decision on a row, the rules that were considered, and how the actor sees its properties."""
    from omnigraph.policy.row_conditions import condition_text

    key, who = rows.table_key(type_name), rows.actor(actor)
    judged = rows.decisions.judge(who, action, key, data, branch)
    considered = rows.decisions.consider(who, action, key, data, branch)
    views = rows.decisions.property_views(who, key, data, branch)
    decision = "allow" if judged.allowed else "deny"
    condition = condition_text(rows.condition(who, action, key, branch))
    if as_json:
        print_json(
            {
                "decision": decision,
                "actor": actor,
                "action": action,
                "type": type_name,
                "branch": branch,
                "rules": list(judged.allowing or judged.denying),
                "condition": condition,
                "considered": [one.to_json() for one in considered],
                "properties": views,
            }
        )
        return
    members = {"decision": decision, "actor": actor, "action": action, "type": type_name, "branch": branch}
    for name, value in members.items():
        print(f"{name}: {value}")
    print(f"condition: {condition}")
    for one in considered:
        print(f"rule {one.rule}: {_EXPLAINED[one.why]}" + _missing(one.missing))
    if not considered:
        print(f"no rule grants {action} of {type_name}")
    for name, view in views.items():
        if view != "show":
            print(f"property {name}: {'hidden' if view == 'hide' else 'masked'}")


_EXPLAINED = {
    "ok": "allows",
    "denies": "denies",
    "actor_not_in_group": "does not apply to the actor",
    "scope": "does not apply to the branch",
    "condition": "its condition does not hold",
}


def _missing(names: tuple[str, ...]) -> str:
    return f" (missing: {', '.join(names)})" if names else ""


def _row_of(data: str | None) -> dict[str, Any]:
    try:
        found = json.loads(data or "{}")
    except ValueError as error:
        raise UsageFault(f"--data is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageFault("--data must be a JSON object")
    return found
