"""Rules for rows and properties that a change of the schema would break."""

from __future__ import annotations

from omnigraph.errors import PolicyInvalid
from omnigraph.policy.decide import Policy
from omnigraph.policy.row_policies import RowPolicies
from omnigraph.policy.statements import PolicyStatements
from omnigraph.schema.catalog import Catalog


def broken_rules(policy: Policy, before: Catalog, after: Catalog) -> list[str]:
    """Return the problems that a policy has with a new schema and does not have with the present one."""
    if not isinstance(policy.rules, PolicyStatements) or not policy.has_row_rules:
        return []
    known = set(_problems(policy.rules, before))
    return [problem for problem in _problems(policy.rules, after) if problem not in known]


def _problems(statements: PolicyStatements, catalog: Catalog) -> list[str]:
    try:
        RowPolicies(statements, catalog)
    except PolicyInvalid as error:
        return [problem.message for problem in error.problems]
    return []
