"""`omnigraph policy`: validate, test, explain and create policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.addresses import GivenAddress
from omnigraph.cli.errors import FAILED, UsageFault
from omnigraph.cli.help import Group
from omnigraph.cli.invocation import Invocation, Json, takes_config
from omnigraph.cli.io.output import plural, print_json, remark
from omnigraph.config import FILE_NAME
from omnigraph.errors import InputError, PolicyInvalid

if TYPE_CHECKING:
    from omnigraph.policy.decide import Policy
    from omnigraph.policy.row_policies import RowPolicies
    from omnigraph.schema.catalog import Catalog

POLICY_FILE, TESTS_FILE = "policy.yaml", "policy.tests.yaml"
app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Validate, test and explain the authorization policy.",
    rich_markup_mode=None,
)
PolicyFile = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="PATH", help=f"The policy (default: 'policy.file' in {FILE_NAME})."),
]

Server = Annotated[
    bool,
    typer.Option("--server", help=f"Use the policy of the server (default: 'server.policy.file' in {FILE_NAME})."),
]
SchemaOf = Annotated[
    str | None, typer.Option("--schema", "-s", metavar="FILE", help="The schema (.pg) that rules for rows refer to.")
]
GraphOf = Annotated[
    str | None,
    typer.Option("--graph", metavar="URI", help="The graph, or its name, whose schema rules for rows refer to."),
]


@app.command("validate")
@takes_config
def validate_command(
    run: Invocation,
    file: PolicyFile = None,
    schema: SchemaOf = None,
    graph: GraphOf = None,
    server: Server = False,
    as_json: Json = False,
) -> None:
    """Check that a policy is valid and compiles.

    With a schema or a graph, rules for rows and properties are validated against it. The exit code is 1 if there are
    errors. All errors of the file are reported; warnings go to stderr.

    omnigraph policy validate --file policy.yaml --graph ./my.omni
    """
    from omnigraph.policy.advice import warnings_of

    path = _policy_path(run, file, server=server)
    try:
        policy = _load(run, path, server=server)
        rules = policy.rules
        if (schema is not None or graph is not None) and not server:
            _rows(run, policy, schema, graph)
        elif policy.has_row_rules:
            remark("note", "rules for rows and properties are validated with --schema or --graph")
    except PolicyInvalid as error:
        if not as_json:
            raise
        print_json({"valid": False, "path": str(path), "errors": [problem.to_json() for problem in error.problems]})
        raise typer.Exit(FAILED) from None
    for warning in warnings_of(rules):
        remark("warning", warning)
    actors = len(rules.groups_of)
    if as_json:
        counts = {"actors": actors, "groups": len(rules.groups), "rules": len(rules.rules)}
        print_json({"valid": True, "path": str(path), **counts})
        return
    print(f"policy ok: {path}, {plural(actors, 'actor')}, {plural(len(rules.rules), 'rule')}")


@app.command("test")
@takes_config
def run_cases_command(
    run: Invocation,
    file: PolicyFile = None,
    tests: Annotated[
        str | None,
        typer.Option(
            "--tests",
            metavar="PATH",
            help=f"The cases (default: 'policy.tests', then {TESTS_FILE} beside the policy).",
        ),
    ] = None,
    schema: SchemaOf = None,
    graph: GraphOf = None,
    server: Server = False,
    as_json: Json = False,
) -> None:
    """Compare the decisions of a policy with those that a tests file expects.

    The exit code is 1 if a case fails.
    """
    from omnigraph.policy.tests import read_cases, run_cases

    path = _policy_path(run, file, server=server)
    policy = _load(run, path, server=server)
    cases = read_cases(_tests_path(run, path, tests, server=server))
    on_rows = any(case.type is not None for case in cases)
    rows = _rows(run, policy, schema, graph) if on_rows and _has_schema(run, schema, graph) else None
    outcomes = run_cases(policy, cases, rows)
    failed = [outcome for outcome in outcomes if not outcome.ok]
    passed = len(outcomes) - len(failed)
    if as_json:
        documents = [outcome.to_json() for outcome in outcomes]
        print_json({"passed": passed, "failed": len(failed), "cases": documents})
    else:
        for outcome in failed:
            print(outcome.describe())
        print(f"policy tests: {passed} passed" + (f", {len(failed)} failed" if failed else ""))
    if failed:
        raise typer.Exit(FAILED)


@app.command("explain")
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
    policy = _load(run, _policy_path(run, file, server=server), server=server)
    if type_name is not None:
        rows = _rows(run, policy, schema, graph)
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
    judged = rows.judge_row(who, action, key, data, branch)
    considered = rows.consider_row(who, action, key, data, branch)
    views = rows.property_views(who, key, data, branch)
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


@app.command("diff")
@takes_config
def diff_command(
    run: Invocation,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The old policy.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new policy.")],
    schema: SchemaOf = None,
    graph: GraphOf = None,
    branch: Annotated[
        str, typer.Option("--branch", "-b", metavar="NAME", help="The branch of rules for rows.")
    ] = "main",
    server: Server = False,
    as_json: Json = False,
) -> None:
    """Compare two policies: their rules, and their decisions.

    The decisions on all actors and actions are compared, on the branches and patterns that the policies mention and on
    one other. With a schema or a graph, the rows that an actor may read and change are compared, too.

    omnigraph policy diff policy.yaml new.yaml
    """
    from omnigraph.policy.differences import decision_differences, row_differences, rule_differences

    before, after = (_load(run, Path(path), server=server) for path in (old, new))
    rules = rule_differences(before, after)
    decisions = list(decision_differences(before, after))
    changes = []
    if schema is not None or graph is not None:
        first, second = (_rows(run, policy, schema, graph) for policy in (before, after))
        changes = list(row_differences(first, second, branch))
    elif before.has_row_rules or after.has_row_rules:
        remark("note", "rules for rows and properties are compared with --schema or --graph")
    if as_json:
        print_json(
            {
                "rules": rules,
                "decisions": [one.to_json() for one in decisions],
                "rows": [one.to_json() for one in changes],
            }
        )
        return
    for kind, ids in rules.items():
        for rule in ids:
            print(f"{kind} rule '{rule}'")
    for line in (*(one.describe() for one in decisions), *(one.describe() for one in changes)):
        print(line)
    if not decisions and not changes:
        print("no decision differs")


@app.command("show")
@takes_config
def show_command(
    run: Invocation,
    cedar: Annotated[bool, typer.Option("--cedar", help="Print the Cedar policies that the rules became.")] = False,
    schema: SchemaOf = None,
    graph: GraphOf = None,
    file: PolicyFile = None,
    server: Server = False,
    as_json: Json = False,
) -> None:
    """List the rules of a policy, or print them as Cedar policies.

    The Cedar policies of rules for rows depend on a schema or a graph.

    omnigraph policy show --cedar
    """
    from omnigraph.policy.describe import describe_rules
    from omnigraph.policy.rules import PolicyRules

    policy = _load(run, _policy_path(run, file, server=server), server=server)
    if cedar:
        text = policy.cedar_text
        if schema is not None or graph is not None:
            text = f"{text}\n{_rows(run, policy, schema, graph).cedar_text}"
        elif policy.has_row_rules:
            remark("note", "the Cedar policies of rules for rows are printed with --schema or --graph")
        if as_json:
            print_json({"cedar": text})
        else:
            print(text.rstrip("\n"))
        return
    rules = describe_rules(policy.rules)
    if as_json:
        print_json({"version": 1 if isinstance(policy.rules, PolicyRules) else 2, "rules": rules})
        return
    for rule in rules:
        where = f" {rule['limits']}" if rule["limits"] else ""
        print(f"{rule['rule']}: {rule['effect']} {rule['actors']}: {', '.join(rule['actions'])}{where}")


@app.command("init")
@takes_config
def init_command(
    run: Invocation,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", "-f", metavar="PATH", help=f"The new policy (default: 'policy.file', then {POLICY_FILE})."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a starter policy and its tests; existing files are not changed.

    The tests file is policy.tests.yaml beside the policy. The actor of --as becomes the owner.

    omnigraph policy init --as ana
    """
    from omnigraph.policy.starter import starter_policy, starter_tests

    configured = run.config.get("policy.file") is not None
    path = _policy_path(run, file) if file is not None or configured else Path(POLICY_FILE)
    tests = _tests_path(run, path, None) if file is None else path.with_name(TESTS_FILE)
    owner = run.actor or "act-owner"
    texts = {path: starter_policy(owner), tests: starter_tests(owner)}
    for existing in filter(Path.exists, texts):
        raise InputError(
            f"'{existing}' exists already; nothing was written", code="file_exists", hint="give another --file"
        )
    for target, text in texts.items():
        _create(target, text)
    if as_json:
        policy_path, tests_path = map(str, texts)
        print_json({"policy_path": policy_path, "tests_path": tests_path})
        return
    for target in texts:
        print(f"created {target}")
    if not configured and not run.options.quiet:
        remark("note", f"add to {FILE_NAME}: policy: {{ file: {path} }}")


def _policy_path(run: Invocation, file: str | None, *, server: bool = False) -> Path:
    if file is not None:
        return Path(file)
    key = "server.policy.file" if server else "policy.file"
    named = run.config.get(key)
    if named is None:
        raise InputError(
            f"no policy is configured: '{key}' is not set",
            code="no_policy",
            hint=f"set '{key}' in {FILE_NAME}, or give --file PATH"
            + ("" if server else "; 'omnigraph policy init' writes a policy"),
        )
    return run.config.resolve(named)


def _tests_path(run: Invocation, policy: Path, tests: str | None, *, server: bool = False) -> Path:
    if tests is not None:
        return Path(tests)
    if server:
        return policy.with_name(f"{policy.stem}.tests.yaml")
    named = run.config.get("policy.tests")
    beside = policy / TESTS_FILE if policy.is_dir() else policy.with_name(TESTS_FILE)
    return run.config.resolve(named) if named is not None else beside


def _load(run: Invocation, path: Path, *, server: bool = False) -> Policy:
    from omnigraph.policy.decide import load_policy, load_server_policy

    if server:
        return load_server_policy(path)
    return load_policy(path, graph=run.config.get("project.name") or "graph")


def _has_schema(run: Invocation, schema: str | None, graph: str | None) -> bool:
    return schema is not None or graph is not None or run.config.get("cli.graph") is not None


def _rows(run: Invocation, policy: Policy, schema: str | None, graph: str | None) -> RowPolicies:
    """Return the rules for rows of a policy, bound to a schema file or to the schema of a graph."""
    from omnigraph.policy.row_policies import RowPolicies
    from omnigraph.policy.statements import PolicyStatements

    if not isinstance(policy.rules, PolicyStatements):
        raise InputError(
            "a policy of version 1 has no rules for rows", code="no_row_rules", hint="write 'version: 2' in the policy"
        )
    if not _has_schema(run, schema, graph):
        raise InputError(
            "rules for rows need the schema of the graph",
            code="schema_needed",
            hint="give --schema FILE or --graph URI",
        )
    return RowPolicies(policy.rules, _catalog(run, schema, graph), policy.graph)


def _catalog(run: Invocation, schema: str | None, graph: str | None) -> Catalog:
    """Return the catalog of a schema file, else of a graph. The graph is read without its policy."""
    if schema is not None:
        from omnigraph.cli.io.files import read_text
        from omnigraph.schema.check import compile_schema

        return compile_schema(read_text(schema), schema)
    named = graph is not None and graph in run.config.graphs
    given = GivenAddress(None if named else graph, None, graph if named else None)
    address = run.address(given=given)
    if address.is_server:
        return run.open(address, read_only=True).catalog()
    from omnigraph.graph_open import open as open_graph

    return open_graph(address.uri, read_only=True, environ=run.environ).catalog()


def _create(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError:
        raise InputError(f"'{path}' exists already", code="file_exists", hint="give another --file") from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}", code="unwritable_file") from None
