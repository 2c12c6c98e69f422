"""The starter policy and its tests, written by `omnigraph policy init`."""

from __future__ import annotations

import json

_POLICY = """\
# Policy of the graph. What no rule allows is denied. docs/policy.md describes the file.
version: 1

groups:
  viewers: [{viewer}]
  editors: [{editor}]
  owners: [{owner}]

# Rules can treat these branches differently from all others. Names are exact.
protected_branches: [main]

rules:
  - id: viewers-read
    allow:
      actors: {{ group: viewers }}
      actions: [read]
      branch_scope: any
  - id: editors-read
    allow:
      actors: {{ group: editors }}
      actions: [read, export]
      branch_scope: any
  - id: editors-change-drafts
    allow:
      actors: {{ group: editors }}
      actions: [change]
      branch_scope: unprotected
  - id: editors-manage-drafts
    allow:
      actors: {{ group: editors }}
      actions: [branch_create, branch_delete]
      target_branch_scope: unprotected
  - id: owners-read-and-change
    allow:
      actors: {{ group: owners }}
      actions: [read, export, change, tag_create, tag_delete, maintain]
      branch_scope: any
  - id: owners-purge
    allow:
      actors: {{ group: owners }}
      actions: [purge]
  - id: owners-manage-branches
    allow:
      actors: {{ group: owners }}
      actions: [branch_create, branch_delete, branch_merge, schema_apply]
      target_branch_scope: any
"""
_TESTS = """\
# Expected decisions; 'omnigraph policy test' compares them with the policy.
version: 1

cases:
  - id: viewer-reads-main
    actor: {viewer}
    action: read
    branch: main
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
