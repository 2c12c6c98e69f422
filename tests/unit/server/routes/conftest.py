"""A server with tokens and a policy: `writer` may do everything, `guest` reads unprotected branches only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from support.server import ServerUnderTest, serving

POLICY = """\
version: 1
groups:
  writers: [writer]
  guests: [guest]
protected_branches: [main]
rules:
  - id: writers-read
    allow:
      actors: { group: writers }
      actions: [read, export, change, tag_create, tag_delete]
      branch_scope: any
  - id: writers-publish
    allow:
      actors: { group: writers }
      actions: [branch_create, branch_delete, branch_merge, schema_apply]
      target_branch_scope: any
  - id: guests-read
    allow:
      actors: { group: guests }
      actions: [read, export, change]
      branch_scope: unprotected
"""
TOKENS = {"writer": "writer-token", "guest": "guest-token"}


@pytest.fixture
def guarded(graph: og.Graph, tmp_path: Path) -> Iterator[ServerUnderTest]:
    """A server of the graph with a policy; requests are those of `writer`."""
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    config = tmp_path / "omnigraph.yaml"
    config.write_text("policy:\n  file: policy.yaml\n", encoding="utf-8")
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(TOKENS)}
    with serving(graph.uri, config=config, environ=environ, token=TOKENS["writer"]) as running:
        yield running
