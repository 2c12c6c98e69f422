"""Rules of a policy for proposals: which approvals and checks a landing needs, by target branch."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from omnigraph.fast_dataclass import dataclass
from omnigraph.policy.branch_patterns import matches_branch

PROPOSAL_ATTRIBUTES = frozenset({"author", "approvals", "checks", "source", "labels"})
"""The attributes of a proposal that a condition can read, beside those of its target branch."""
LAND_TRIES = 5
"""Number of trials that a landing makes while the target moves."""


@dataclass(frozen=True)
class ProposalFacts:
    """What a decision of the policy can read of a proposal; hashable."""

    id: str
    source: str
    author: str | None = None
    approvals: tuple[str, ...] = ()
    checks: str = "pending"
    """The required checks in one word: `pass`, `fail` or `pending`."""
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProposalRules:
    """What a proposal needs before it can land."""

    pattern: str = "**"
    """The pattern of the target branches."""
    approvals: int = 0
    from_group: str | None = None
    """The group whose approvals count; None for every approval."""
    not_author: bool = True
    """True if the approval of an actor with a commit in the proposal does not count. That of its author never does."""
    for_types: Mapping[str, str] | None = None
    """Type → the group of which one approval is needed if the proposal changes rows of the type."""
    required_checks: tuple[str, ...] = ()
    dismiss: bool = True
    """True if an approval is void when the source moves."""
    changes_max: int | None = None
    """The largest number of changed rows."""
    land_tries: int = LAND_TRIES

    @property
    def need_a_proposal(self) -> bool:
        """True if changes can reach the branch only as a proposal: the rules need an approval or a check."""
        return bool(self.approvals or self.for_types or self.required_checks or self.changes_max is not None)

    def groups_for(self, types: Collection[str]) -> dict[str, str]:
        """Return the rules for changed types: type → group."""
        return {name: group for name, group in (self.for_types or {}).items() if name in types}


NO_RULES = ProposalRules()
"""The rules without a policy: required checks of the graph itself, and no approval."""


def rules_for(rules: Collection[ProposalRules], target: str) -> ProposalRules:
    """Return the first rules whose pattern matches a target branch; `NO_RULES` if none does."""
    return next((one for one in rules if matches_branch(one.pattern, target)), NO_RULES)
