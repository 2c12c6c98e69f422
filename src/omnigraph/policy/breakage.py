"""Rules for rows and properties that a change of the schema would break."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import Hint, InputError, PolicyInvalid
from omnigraph.policy.decide import Policy
from omnigraph.policy.rows.row_policies import RowPolicies
from omnigraph.policy.statements import PolicyStatements
from omnigraph.schema.catalog import Catalog


@dataclass(frozen=True)
class SchemaCheck:
    """The check that a change of the schema breaks no rule of a policy."""

    policy: Policy
    allowed: bool = False
    """True if the change may break rules."""

    def broken(self, before: Catalog, after: Catalog) -> tuple[str, ...]:
        """Return the problems that the policy has with a new schema and does not have with the present one."""
        return tuple(broken_rules(self.policy, before, after))

    def check(self, before: Catalog, after: Catalog) -> tuple[str, ...]:
        """Return the problems of a permitted change; raise `policy_breakage` if it is not permitted."""
        broken = self.broken(before, after)
        if broken and not self.allowed:
            raise breakage_error(broken)
        return broken


def breakage_error(broken: tuple[str, ...]) -> InputError:
    """Return the error of a change of the schema that would break rules."""
    rules = "1 rule" if len(broken) == 1 else f"{len(broken)} rules"
    return InputError(
        f"the schema would break {rules} of the policy: {'; '.join(broken)}; nothing was changed",
        code="policy_breakage",
        hint=Hint(
            "change the policy first, or pass allow_policy_breakage=True",
            cli="change the policy first, or pass --allow-policy-breakage",
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
