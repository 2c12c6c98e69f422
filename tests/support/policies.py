"""The example policy, and the direct evaluation of rules that tests compare with Cedar."""

from __future__ import annotations

from omnigraph.policy.rules import PolicyRules

EXAMPLE = """\
version: 1

groups:
  curators:  [act-maren, act-idris]
  guests:    [act-visitor]
  registrar: [act-idris]

protected_branches: [main, published]

rules:
  - id: everyone-reads
    allow:
      actors: { group: guests }
      actions: [read]
      branch_scope: any
  - id: curators-read
    allow:
      actors: { group: curators }
      actions: [read, export]
      branch_scope: any
  - id: curators-edit-drafts
    allow:
      actors: { group: curators }
      actions: [change]
      branch_scope: unprotected
  - id: curators-open-drafts
    allow:
      actors: { group: curators }
      actions: [branch_create, branch_delete]
      target_branch_scope: unprotected
  - id: registrar-publishes
    allow:
      actors: { group: registrar }
      actions: [branch_merge, run_publish, run_abort, schema_apply]
      target_branch_scope: protected
"""
CASES = """\
version: 1
cases:
  - id: visitor-reads-main
    actor: act-visitor
    action: read
    branch: main
    expect: allow
  - id: maren-cannot-edit-main
    actor: act-maren
    action: change
    branch: main
    expect: deny
  - id: idris-publishes
    actor: act-idris
    action: branch_merge
    branch: intake/2026-05
    target_branch: main
    expect: allow
  - id: stranger
    actor: act-nobody
    action: read
    branch: main
    expect: deny
"""


def evaluate(
    rules: PolicyRules, actor: str, action: str, branch: str | None, target_branch: str | None
) -> tuple[str, ...]:
    """The ids of the rules that allow a request, in code point order, by the definition of the specification."""
    if action in ("run_publish", "run_abort"):
        return ()
    found = set()
    for rule in rules.rules:
        if action not in rule.actions or actor not in rules.groups.get(rule.group, ()):
            continue
        scope = rule.branch_scope or rule.target_branch_scope
        name = branch if rule.branch_scope is not None else target_branch
        if scope in ("protected", "unprotected"):
            if name is None:
                continue
            if (name.strip() in rules.protected_branches) != (scope == "protected"):
                continue
        found.add(rule.id)
    return tuple(sorted(found))
