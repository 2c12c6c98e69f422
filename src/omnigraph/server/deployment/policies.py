"""The policies of a server: loading, their tests, and reuse of unchanged ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.errors import InputError, PolicyInvalid
from omnigraph.graph_handle import context_of
from omnigraph.operations.stored_queries import query_facts
from omnigraph.policy.decide import Policy
from omnigraph.policy.load import cedar_paths, parse_policy, policy_path, read_policy
from omnigraph.policy.rules import PolicyKind
from omnigraph.policy.tests import decide_case, parse_cases, run_cases
from omnigraph.policy.yaml_nodes import read_policy_text
from omnigraph.server.deployment.graphs import GraphEntry, ServedGraph
from omnigraph.server.deployment.watched_files import WatchedFiles
from omnigraph.suggestions import listing
from omnigraph.versioning.model.manifest_objects import MAIN

if TYPE_CHECKING:
    from omnigraph.policy.rows.row_policies import RowPolicies

SERVER_ID = "server"


@dataclass(frozen=True)
class LoadedPolicy:
    """A compiled policy and the digest of its text."""

    policy: Policy
    digest: str
    is_tested: bool = True
    """False if tests on rows were left out, because the graph could not be opened."""


@dataclass(frozen=True)
class Policies:
    """The policies of the graphs and that of the server."""

    graphs: Mapping[str, LoadedPolicy]
    server: LoadedPolicy | None = None

    @property
    def digest(self) -> str | None:
        """A digest of all texts; None without a policy."""
        if not self.graphs and self.server is None:
            return None
        lines = [f"{graph_id} {found.digest}" for graph_id, found in sorted(self.graphs.items())]
        lines.append(f"{SERVER_ID}: {self.server.digest if self.server else ''}")
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def load_policies(
    entries: tuple[GraphEntry, ...],
    server_file: Path | None,
    files: WatchedFiles,
    running: Policies | None,
    graphs: Mapping[str, ServedGraph],
) -> Policies:
    """Compile the policies of all graphs and run their tests; an unchanged policy is kept with its decisions.

    Rules for rows must be valid for the schema of their graph. Those of a graph that is not open are validated by the
    reload that opens it.
    """
    known = running.graphs if running is not None else {}
    found = {
        entry.graph_id: _load(
            entry.policy_file,
            entry.tests_file,
            entry.graph_id,
            files,
            known.get(entry.graph_id),
            served=graphs.get(entry.graph_id),
        )
        for entry in entries
        if entry.policy_file is not None
    }
    if server_file is None:
        return Policies(found)
    known_server = running.server if running is not None else None
    tests = server_file.with_name(f"{server_file.stem}.tests.yaml")
    return Policies(found, _load(server_file, tests, SERVER_ID, files, known_server, kind="server"))


def _load(
    path: Path,
    tests: Path | None,
    name: str,
    files: WatchedFiles,
    running: LoadedPolicy | None,
    *,
    kind: PolicyKind = "graph",
    served: ServedGraph | None = None,
) -> LoadedPolicy:
    yaml_path = policy_path(path)
    files.note(yaml_path, tests)
    if kind == "graph" and read_policy(path, kind).version == 2:
        # The stamp of a folder changes with the list of its files.
        files.note(yaml_path.parent, *cedar_paths(path))
    texts = read_policy(path, kind)
    cases = read_policy_text(tests) if tests is not None and tests.is_file() else ""
    digest = hashlib.sha256(f"{texts.digest_text}{cases}".encode()).hexdigest()
    is_known = running is not None and running.digest == digest
    policy = running.policy if running is not None and is_known else Policy(parse_policy(texts, kind), name)
    rows = _row_policies(policy, served)
    if running is not None and is_known and (running.is_tested or rows is None):
        return running
    if cases:
        _check_cases(policy, cases, path, str(tests), rows, served)
    return LoadedPolicy(policy, digest, is_tested=rows is not None or not policy.has_row_rules)


def _row_policies(policy: Policy, served: ServedGraph | None) -> RowPolicies | None:
    """Return the rules for rows, bound to the schema of an opened graph; None if there are none or it is not open."""
    if not policy.has_row_rules or served is None or served.graph is None:
        return None
    context = context_of(served.graph)
    try:
        return policy.row_policies(context.catalogs.of(context.repository.snapshot(MAIN)))
    except PolicyInvalid as error:
        message = f"the rules for rows do not fit the schema of graph '{served.graph_id}': {error.message}"
        raise PolicyInvalid(message, error.problems, hint=error.hint) from None


def _check_cases(
    policy: Policy, cases: str, path: Path, source: str, rows: RowPolicies | None, served: ServedGraph | None
) -> None:
    """Refuse a policy that contradicts its own tests.

    Cases on rows of a graph that is not open are left out, and those that depend on the kind of a query that it does
    not store.
    """
    graph = None if served is None else served.graph
    stored = partial(query_facts, (lambda _: ()) if graph is None else graph.queries)
    known = [
        case
        for case in parse_cases(cases, source)
        if (rows is not None if case.type is not None else decide_case(policy, case, stored) is not None)
    ]
    failed = [outcome for outcome in run_cases(policy, known, rows, stored) if not outcome.ok]
    if failed:
        first = failed[0]
        raise InputError(
            f"the policy '{path}' fails {len(failed)} of its tests in '{source}': "
            f"{listing(outcome.case.id for outcome in failed)}; case '{first.case.id}' expects {first.case.expect}",
            code="policy_tests_failed",
            hint="run 'omnigraph policy test'",
        )
