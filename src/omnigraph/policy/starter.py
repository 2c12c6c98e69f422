"""The starter policy and its tests, written by `omnigraph policy init`."""

from __future__ import annotations

import json

_POLICY = """\
# Policy of the graph. What no rule allows is denied. docs/policy.md describes the file.
version: 2

groups:
  viewers: [{viewer}]
  editors: [{editor}]
  owners: [{owner}]

# Rules can treat these branches differently from all others.
protected_branches: [main]

# The roles are those of docs/policy.md: editors change unprotected branches.
rules:
  - id: viewers
    allow: {{ actors: {{ group: viewers }}, role: viewer }}
  - id: editors
    allow: {{ actors: {{ group: editors }}, role: editor }}
  - id: owners
    allow: {{ actors: {{ group: owners }}, role: owner }}
"""
_TESTS = """\
# Expected decisions; 'omnigraph policy test' compares them with the policy.
version: 2

cases:
  - id: viewer-reads-main
    actor: {viewer}
    action: read
    branch: main
    expect: allow
  - id: viewer-calls-a-stored-read
    actor: {viewer}
    action: invoke_query
    query: any
    changes: false
    definer: false
    expect: allow
  - id: viewer-cannot-change
    actor: {viewer}
    action: change
    branch: draft
    expect: deny
  - id: editor-changes-a-draft
    actor: {editor}
    action: change
    branch: draft
    expect: allow
  - id: editor-cannot-change-main
    actor: {editor}
    action: change
    branch: main
    expect: deny
  - id: editor-cannot-merge
    actor: {editor}
    action: branch_merge
    branch: draft
    target_branch: main
    expect: deny
  - id: owner-merges
    actor: {owner}
    action: branch_merge
    branch: draft
    target_branch: main
    expect: allow
  - id: unknown-actor
    actor: act-unknown
    action: read
    branch: main
    expect: deny
"""


def starter_policy(owner: str = "act-owner") -> str:
    """Return the text of the starter policy."""
    return _POLICY.format(**_names(owner))


def starter_tests(owner: str = "act-owner") -> str:
    """Return the text of the tests of the starter policy."""
    return _TESTS.format(**_names(owner))


def _names(owner: str) -> dict[str, str]:
    # A JSON string is a YAML string.
    quoted = owner if owner == "act-owner" else json.dumps(owner)
    return {"viewer": "act-viewer", "editor": "act-editor", "owner": quoted}
