"""Rules for rows and properties that a change of the schema would break."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.errors import Hint, InputError, PolicyInvalid
from omnigraph.policy.decide import Policy
from omnigraph.policy.row_policies import RowPolicies
from omnigraph.policy.statements import PolicyStatements
from omnigraph.schema.catalog import Catalog

SchemaCheck = Callable[[Catalog, Catalog], None]
"""Raises `policy_breakage` if the change from one schema to another would break rules."""


def schema_check(policy: Policy) -> SchemaCheck | None:
    """Return the check that a change of the schema breaks no rule of a policy; None if it has no rules for rows."""
    if not policy.has_row_rules:
        return None

    def check(before: Catalog, after: Catalog) -> None:
        broken = broken_rules(policy, before, after)
        if broken:
            raise breakage_error(broken)

    return check


def breakage_error(broken: list[str]) -> InputError:
    """Return the error of a change of the schema that would break rules."""
    rules = "1 rule" if len(broken) == 1 else f"{len(broken)} rules"
    return InputError(
        f"the schema would break {rules} of the policy: {'; '.join(broken)}; nothing was changed",
        code="policy_breakage",
        hint=Hint(
            "change the policy first, or call apply_schema with allow_policy_breakage=True",
            cli="change the policy first, or run 'omnigraph schema apply' with --allow-policy-breakage",
        ),
    )


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
