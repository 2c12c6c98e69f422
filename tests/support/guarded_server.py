"""Servers with a policy, for tests of denials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import omnigraph as og
from support.server import ServerUnderTest, serving

TOKEN = "token-of-ana"
READS_MAIN = """version: 1
groups: {team: [ana]}
protected_branches: [main]
rules:
  - id: team-reads-main
    allow: {actors: {group: team}, actions: [read], branch_scope: protected}
"""
SERVER_ADMIN = """version: 1
groups: {operators: [ana]}
rules:
  - id: operators
    allow: {actors: {group: operators}, actions: [graph_list, audit_read, admin]}
"""


@contextmanager
def guarded(
    graph: og.Graph, policy: str, server_policy: str | None = None, extra: str = ""
) -> Iterator[ServerUnderTest]:
    """Serve a graph with a policy; requests carry the token of the actor `ana` unless they name another one."""
    folder = Path(graph.uri).parent
    (folder / "policy.yaml").write_text(policy, encoding="utf-8")
    lines = [f"graphs: {{people: {{uri: {graph.uri}}}}}", "policy: {file: policy.yaml}"]
    server = ["  graph: people", *extra.splitlines()]
    if server_policy is not None:
        (folder / "server-policy.yaml").write_text(server_policy, encoding="utf-8")
        server.append("  policy: {file: server-policy.yaml}")
    config = folder / "omnigraph.yaml"
    config.write_text("\n".join([*lines, "server:", *server]) + "\n", encoding="utf-8")
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"ana": TOKEN, "bo": "token-of-bo"})}
    with serving(config=config, environ=environ, token=TOKEN) as running:
        yield running
