"""`omnigraph policy`: validate, test, explain and create policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.errors import FAILED, UsageFault
from omnigraph.cli.help import Group
from omnigraph.cli.invocation import Invocation, Json, takes_config
from omnigraph.cli.io.output import plural, print_json, remark
from omnigraph.config import FILE_NAME
from omnigraph.errors import InputError, PolicyInvalid

if TYPE_CHECKING:
    from omnigraph.policy.decide import Policy

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


@app.command("validate")
@takes_config
def validate_command(run: Invocation, file: PolicyFile = None, server: Server = False, as_json: Json = False) -> None:
    """Check that a policy is valid and compiles.

    The exit code is 1 if there are errors. All errors of the file are reported; warnings go to stderr.

    omnigraph policy validate --file policy.yaml
    """
    from omnigraph.policy.advice import warnings_of

    path = _policy_path(run, file, server=server)
    try:
        rules = _load(run, path, server=server).rules
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
    server: Server = False,
    as_json: Json = False,
) -> None:
    """Compare the decisions of a policy with those that a tests file expects.

    The exit code is 1 if a case fails.
    """
    from omnigraph.policy.tests import read_cases, run_cases

    path = _policy_path(run, file, server=server)
    policy = _load(run, path, server=server)
    outcomes = run_cases(policy, read_cases(_tests_path(run, path, tests, server=server)))
    failed = [outcome for outcome in outcomes if not outcome.ok]
    passed = len(outcomes) - len(failed)
    if as_json:
        cases = [outcome.to_json() for outcome in outcomes]
        print_json({"passed": passed, "failed": len(failed), "cases": cases})
    else:
        for outcome in failed:
            print(f"{outcome.case.id}: want {outcome.case.expect}, got {outcome.actual}")
        print(f"policy tests: {passed} passed" + (f", {len(failed)} failed" if failed else ""))
    if failed:
        raise typer.Exit(FAILED)


@app.command("explain")
@takes_config
def explain_command(
    run: Invocation,
    actor: Annotated[str, typer.Option("--actor", metavar="ACTOR", help="The actor of the request.")],
    action: Annotated[str, typer.Option("--action", metavar="ACTION", help="The action, such as read.")],
    branch: Annotated[str | None, typer.Option("--branch", "-b", metavar="NAME", help="The branch.")] = None,
    target_branch: Annotated[
        str | None, typer.Option("--target-branch", metavar="NAME", help="The branch that the action changes.")
    ] = None,
    file: PolicyFile = None,
    server: Server = False,
    as_json: Json = False,
) -> None:
    """Show the decision on one request and the reasons.

    The exit code is 0 for both decisions.

    omnigraph policy explain --actor act-editor --action change --branch main
    """
    from omnigraph.policy.rules import action_name, branch_name

    try:
        action = action_name(action)
        branch = branch_name(branch) if branch is not None else None
        target_branch = branch_name(target_branch) if target_branch is not None else None
    except InputError as error:
        raise UsageFault(error.message, hint=error.hint) from None
    policy = _load(run, _policy_path(run, file, server=server), server=server)
    decision = policy.decide(actor, action, branch, target_branch)
    if as_json:
        print_json(policy.explain(decision))
        return
    for name, value in decision.to_json().items():
        if value is not None:
            print(f"{name}: {value}")
    for reason in decision.reasons:
        print(f"reason: {reason}")


@app.command("show")
@takes_config
def show_command(
    run: Invocation,
    cedar: Annotated[bool, typer.Option("--cedar", help="Print the Cedar policies that the rules became.")] = False,
    file: PolicyFile = None,
    server: Server = False,
    as_json: Json = False,
) -> None:
    """List the rules of a policy, or print them as Cedar policies.

    omnigraph policy show --cedar
    """
    from omnigraph.policy.describe import describe_rules
    from omnigraph.policy.rules import PolicyRules

    policy = _load(run, _policy_path(run, file, server=server), server=server)
    if cedar:
        if as_json:
            print_json({"cedar": policy.cedar_text})
        else:
            print(policy.cedar_text.rstrip("\n"))
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


def _create(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError:
        raise InputError(f"'{path}' exists already", code="file_exists", hint="give another --file") from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}", code="unwritable_file") from None
