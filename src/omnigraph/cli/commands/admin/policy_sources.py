"""The policy, the tests file and the schema that the commands of `omnigraph policy` work on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from omnigraph.cli.addresses import Address, GivenAddress
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Invocation
from omnigraph.config import FILE_NAME
from omnigraph.errors import InputError

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.policy.decide import Policy
    from omnigraph.policy.query_calls import QueryLookup
    from omnigraph.policy.rows.row_explanation import StoredRow
    from omnigraph.policy.rows.row_policies import RowPolicies
    from omnigraph.policy.statements import PolicyStatements, QueryFacts
    from omnigraph.schema.catalog import Catalog

POLICY_FILE, TESTS_FILE = "policy.yaml", "policy.tests.yaml"
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


def policy_path(run: Invocation, file: str | None, *, server: bool = False) -> Path:
    """Return the path of the policy: the given one, else the configured one."""
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


def cases_path(run: Invocation, policy: Path, tests: str | None, *, server: bool = False) -> Path:
    """Return the path of the tests file of a policy."""
    if tests is not None:
        return Path(tests)
    if server:
        return policy.with_name(f"{policy.stem}.tests.yaml")
    named = run.config.get("policy.tests")
    beside = policy / TESTS_FILE if policy.is_dir() else policy.with_name(TESTS_FILE)
    return run.config.resolve(named) if named is not None else beside


def load(run: Invocation, path: Path, *, server: bool = False) -> Policy:
    """Load a policy."""
    from omnigraph.policy.decide import load_policy, load_server_policy

    if server:
        return load_server_policy(path)
    return load_policy(path, graph=run.config.get("project.name") or "graph")


def has_schema(run: Invocation, schema: str | None, graph: str | None) -> bool:
    """Return True if a schema or a graph is given or configured."""
    return schema is not None or graph is not None or run.config.get("cli.graph") is not None


def row_policies(
    run: Invocation, policy: Policy, schema: str | None, graph: str | None, branch: str = "main"
) -> RowPolicies:
    """Return the rules for rows of a policy, bound to a schema file or to the schema of a branch of a graph."""
    statements = _statements(policy)
    if schema is not None:
        from omnigraph.cli.io.files import read_text
        from omnigraph.schema.check import compile_schema

        return _bound(policy, statements, compile_schema(read_text(schema), schema))
    if not has_schema(run, schema, graph):
        raise InputError(
            "rules for rows need the schema of the graph",
            code="schema_needed",
            hint="give --schema FILE or --graph URI",
        )
    address = _address(run, graph)
    if address.is_server:
        return _bound(policy, statements, run.open(address, read_only=True).catalog(branch))
    return _bound(policy, statements, _open_storage(run, address).catalog(branch))


def stored_row(
    run: Invocation, policy: Policy, graph: str | None, type_name: str, id_: str, branch: str
) -> tuple[RowPolicies, StoredRow]:
    """Return the rules for rows of a policy, and a row of a branch of a graph. The graph is read without a policy."""
    from omnigraph.policy.rows.row_explanation import read_stored_row

    statements = _statements(policy)
    if not has_schema(run, None, graph):
        raise UsageFault("--id reads a row of a graph", hint="give --graph URI")
    address = _address(run, graph)
    if address.is_server:
        raise UsageFault(
            "--id reads the row from storage, and a server shows only what its policy allows",
            hint="give the address of the storage as --graph, or the row as --data",
        )
    opened = _open_storage(run, address)
    rows = _bound(policy, statements, opened.catalog(branch))

    def read(name: str, row_id: str, kind: Literal["node", "edge"]) -> dict[str, Any] | None:
        return opened.get(name, row_id, branch=branch, kind=kind)

    return rows, read_stored_row(rows, read, type_name, id_, branch)


def stored_query(run: Invocation, graph: str, name: str, branch: str) -> QueryFacts:
    """Return what a policy can read of a stored query of a branch. The graph is read without a policy."""
    from omnigraph.query.stored_queries import unknown_query

    found = stored_queries(run, graph, branch)
    if found is None:
        raise UsageFault(
            "--query reads the query from storage, and a server shows only what its policy allows",
            hint="give the address of the storage as --graph, or leave it out",
        )
    if name not in found:
        raise unknown_query(name)
    return found[name]


def stored_queries(run: Invocation, graph: str | None, branch: str) -> Mapping[str, QueryFacts] | None:
    """Return what a policy can read of the stored queries of a branch, by name; None for the graph of a server.

    The graph is read without a policy. A server shows only what its policy allows.
    """
    from omnigraph.operations.stored_queries import facts_of

    address = _address(run, graph)
    if address.is_server:
        return None
    return {query.name: facts_of(query) for query in _open_storage(run, address).queries(branch)}


def query_lookup(run: Invocation, graph: str | None) -> QueryLookup:
    """Return the function that finds a stored query in the given or configured graph, which it opens; else none.

    The graph is read without a policy. A server shows only what its policy allows, so its queries are not asked for.
    """
    from omnigraph.operations.stored_queries import query_facts

    def found(name: str, branch: str) -> QueryFacts | None:
        if not has_schema(run, None, graph) or (address := _address(run, graph)).is_server:
            return None
        return query_facts(_open_storage(run, address).queries, name, branch)

    return found


def _statements(policy: Policy) -> PolicyStatements:
    from omnigraph.policy.statements import PolicyStatements

    if not isinstance(policy.rules, PolicyStatements):
        raise InputError(
            "a policy of version 1 has no rules for rows", code="no_row_rules", hint="write 'version: 2' in the policy"
        )
    return policy.rules


def _bound(policy: Policy, statements: PolicyStatements, catalog: Catalog) -> RowPolicies:
    from omnigraph.policy.rows.row_policies import RowPolicies

    return RowPolicies(statements, catalog, policy.graph)


def _address(run: Invocation, graph: str | None) -> Address:
    named = graph is not None and graph in run.config.graphs
    return run.address(given=GivenAddress(None if named else graph, None, graph if named else None))


def _open_storage(run: Invocation, address: Address) -> Graph:
    """Open a graph for reading, without its policy."""
    from omnigraph.graph_open import open as open_graph

    return open_graph(address.uri, read_only=True, environ=run.environ)
