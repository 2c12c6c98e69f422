"""`omnigraph policy`: validate, test, explain and create policies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.commands.admin.policy_explain import explain_command
from omnigraph.cli.commands.admin.policy_sources import (
    POLICY_FILE,
    TESTS_FILE,
    GraphOf,
    PolicyFile,
    SchemaOf,
    Server,
    cases_path,
    has_schema,
    load,
    policy_path,
    query_lookup,
    row_policies,
    stored_queries,
)
from omnigraph.cli.errors import FAILED
from omnigraph.cli.help import Group
from omnigraph.cli.invocation import Invocation, Json, takes_config
from omnigraph.cli.io.annotations import (
    FormatOption,
    choose_report_format,
    policy_annotations,
    print_annotations,
)
from omnigraph.cli.io.output import plural, print_json, remark
from omnigraph.config import FILE_NAME
from omnigraph.errors import InputError, PolicyInvalid

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Validate, test and explain the authorization policy.",
    rich_markup_mode=None,
)


@app.command("validate")
@takes_config
def validate_command(
    run: Invocation,
    file: PolicyFile = None,
    schema: SchemaOf = None,
    graph: GraphOf = None,
    server: Server = False,
    format_: FormatOption = None,
    as_json: Json = False,
) -> None:
    """Check that a policy is valid and compiles.

    With a schema or a graph, rules for rows and properties are validated against it. The exit code is 1 if there are
    errors. All errors of the file are reported; warnings go to stderr.

    omnigraph policy validate --file policy.yaml --graph ./my.omni
    """
    from omnigraph.policy.advice import warnings_of

    chosen = choose_report_format(format_, as_json=as_json)
    path = policy_path(run, file, server=server)
    try:
        policy = load(run, path, server=server)
        rules = policy.rules
        if (schema is not None or graph is not None) and not server:
            row_policies(run, policy, schema, graph)
        elif policy.has_row_rules:
            remark("note", "rules for rows and properties are validated with --schema or --graph")
    except PolicyInvalid as error:
        if chosen == "text":
            raise
        if chosen == "json":
            print_json({"valid": False, "path": str(path), "errors": [problem.to_json() for problem in error.problems]})
        else:
            print_annotations(policy_annotations(path, error.problems), chosen)
        raise typer.Exit(FAILED) from None
    warnings = warnings_of(rules)
    if chosen in ("github", "sarif"):
        print_annotations(policy_annotations(path, warnings=warnings), chosen)
        return
    for warning in warnings:
        remark("warning", warning)
    actors = len(rules.groups_of)
    if chosen == "json":
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

    A case on the call of a stored query that does not say of which kind the query is reads it from the graph, if the
    decision depends on it. The exit code is 1 if a case fails.
    """
    from omnigraph.policy.advice import warnings_of_names
    from omnigraph.policy.tests import read_cases, run_cases

    path = policy_path(run, file, server=server)
    policy = load(run, path, server=server)
    cases = read_cases(cases_path(run, path, tests, server=server))
    for case in cases:
        for warning in warnings_of_names(policy.rules, case.groups, case.attributes or ()):
            remark("warning", f"case '{case.id}' ({case.place}): {warning}")
    on_rows = any(case.type is not None for case in cases)
    rows = row_policies(run, policy, schema, graph) if on_rows and has_schema(run, schema, graph) else None
    outcomes = run_cases(policy, cases, rows, query_lookup(run, graph))
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


app.command("explain")(explain_command)


@app.command("diff")
@takes_config
def diff_command(
    run: Invocation,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The old policy.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new policy.")],
    schema: SchemaOf = None,
    graph: GraphOf = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch",
            "-b",
            metavar="NAME",
            help="The branch of rules for rows, by default all mentioned, and of stored queries, by default main.",
        ),
    ] = None,
    server: Server = False,
    as_json: Json = False,
) -> None:
    """Compare two policies: their rules, the attributes of their actors, and their decisions.

    The decisions on all actors and actions are compared, on the branches, patterns and stored queries that the policies
    mention and on one other. With a schema or a graph, the rows that an actor may read and change are compared, too.
    With a graph, so are calls of the stored queries of the branch; a query that is not stored is compared as a read and
    as a mutation, with and without @definer.

    omnigraph policy diff policy.yaml new.yaml
    """
    from omnigraph.policy.differences import (
        attribute_differences,
        decision_differences,
        row_differences,
        rule_differences,
    )

    before, after = (load(run, Path(path), server=server) for path in (old, new))
    rules = rule_differences(before, after)
    attributes = list(attribute_differences(before, after))
    stored = None if graph is None or server else stored_queries(run, graph, branch or "main")
    decisions = list(decision_differences(before, after, stored))
    changes = []
    not_compared = ""
    if schema is not None or graph is not None:
        first, second = (row_policies(run, policy, schema, graph) for policy in (before, after))
        changes = list(row_differences(first, second, branch))
    elif before.has_row_rules or after.has_row_rules:
        remark("note", "rules for rows and properties are compared with --schema or --graph")
        if replace(before.rules, source="") != replace(after.rules, source=""):
            not_compared = "; rules for rows and properties were not compared"
    if as_json:
        print_json(
            {
                "rules": rules,
                "attributes": [one.to_json() for one in attributes],
                "decisions": [one.to_json() for one in decisions],
                "rows": [one.to_json() for one in changes],
            }
        )
        return
    for kind, ids in rules.items():
        for rule in ids:
            print(f"{kind} rule '{rule}'")
    described = (
        *(one.describe() for one in attributes),
        *(one.describe() for one in decisions),
        *(one.describe() for one in changes),
    )
    for line in described:
        print(line)
    if not decisions and not changes:
        print(f"no decision differs{not_compared}")


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

    policy = load(run, policy_path(run, file, server=server), server=server)
    if cedar:
        text = policy.cedar_text
        if schema is not None or graph is not None:
            text = f"{text}\n{row_policies(run, policy, schema, graph).cedar_text}"
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
    path = policy_path(run, file) if file is not None or configured else Path(POLICY_FILE)
    tests = cases_path(run, path, None) if file is None else path.with_name(TESTS_FILE)
    owner = run.actor or "act-owner"
    texts = {path: starter_policy(owner), tests: starter_tests(owner)}
    for existing in filter(Path.exists, texts):
        raise InputError(
            f"'{existing}' exists already; nothing was written", code="file_exists", hint="give another --file"
        )
    for target, text in texts.items():
        _create(target, text)
    if as_json:
        print_json({"policy_path": str(path), "tests_path": str(tests)})
        return
    for target in texts:
        print(f"created {target}")
    if not configured and not run.options.quiet:
        remark("note", f"add to {FILE_NAME}: policy: {{ file: {path} }}")


def _create(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError:
        raise InputError(f"'{path}' exists already", code="file_exists", hint="give another --file") from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}", code="unwritable_file") from None
