"""The state of a proposal: a pure function of its record, the facts of the manifest, and the rules of the target.

    draft ─► checking ⇄ ready | blocked ─► landing ─► landed        any of the first four ─► closed ─► reopened

`checking`: there is no trial of the current heads, or a required check has no result. `blocked`: something else
prevents the landing, and `blocked_by` lists all of it. `landing`: a landing began and has not ended. `landed` is a fact
of the manifest and outweighs everything that the log says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from omnigraph.operations.proposals.proposal_record import ProposalRecord, ReviewRecord, TrialRecord
from omnigraph.policy.proposal_rules import ProposalRules
from omnigraph.suggestions import listing
from omnigraph.table_key import TableKey

ProposalState = Literal["draft", "checking", "blocked", "ready", "landing", "landed", "closed"]
STATES: tuple[ProposalState, ...] = get_args(ProposalState)
OPEN_STATES: tuple[ProposalState, ...] = ("draft", "checking", "blocked", "ready", "landing")

GroupsOf = Callable[[ReviewRecord], frozenset[str]]
"""Returns the groups of a reviewer."""

_LANDING_US = 60_000_000
"""Time for which a landing counts as running after it began."""
_RUNNING = ("no_trial", "check_pending")
"""Codes of blockers that a check removes."""
_APPROVALS = "approvals_missing"


@dataclass(frozen=True, slots=True)
class ManifestFacts:
    """What the manifest says about a proposal."""

    target_head: str | None
    source_head: str | None
    trial_head: str | None
    """The commit of the hidden branch."""
    landed: str | None
    """The commit that landed the proposal."""
    now_us: int


@dataclass(frozen=True, slots=True)
class Blocker:
    """Something that prevents a landing."""

    code: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"code": self.code, "message": self.message}


@dataclass(frozen=True)
class ProposalStatus:
    """The state of a proposal at one moment."""

    state: ProposalState
    blocked_by: tuple[Blocker, ...] = ()
    approvals: tuple[str, ...] = ()
    """The reviewers whose approvals count."""
    landed: str | None = None
    """The landing commit."""
    is_trial_current: bool = False
    """True if the trial is one of the current heads of source and target."""

    @property
    def check_state(self) -> str:
        """The state of the required checks in one word: `pass`, `fail` or `pending`."""
        codes = {blocker.code for blocker in self.blocked_by}
        if codes & {"check_failed", "conflicts", "refused"}:
            return "fail"
        return "pending" if codes & {*_RUNNING} else "pass"


def status_of(
    record: ProposalRecord, facts: ManifestFacts, rules: ProposalRules, groups_of: GroupsOf
) -> ProposalStatus:
    """Return the state of a proposal."""
    approvals = tuple(review.actor for review in counting_approvals(record, facts, rules, groups_of))
    landed = facts.landed or record.landed
    current = is_current(record, facts)
    if landed is not None:
        return ProposalStatus("landed", (), approvals, landed, current)
    if record.closed:
        return ProposalStatus("closed", (), approvals, None, current)
    blocked = tuple(_blockers(record, facts, rules, groups_of))
    queued = record.queued_us is not None and facts.now_us - record.queued_us < _LANDING_US
    return ProposalStatus(_open_state(record, blocked, queued=queued), blocked, approvals, None, current)


def _open_state(record: ProposalRecord, blocked: tuple[Blocker, ...], *, queued: bool) -> ProposalState:
    codes = {blocker.code for blocker in blocked}
    if record.draft:
        return "draft"
    if codes - {*_RUNNING, _APPROVALS}:
        return "blocked"
    if codes & {*_RUNNING}:
        return "landing" if queued else "checking"
    return "blocked" if codes else "landing" if queued else "ready"


def is_current(record: ProposalRecord, facts: ManifestFacts) -> bool:
    """Return True if the trial of a record was made of the current heads, and still exists."""
    trial = record.trial
    if trial is None or (trial.base, trial.source_head) != (facts.target_head, facts.source_head):
        return False
    return trial.commit is None or trial.commit == facts.trial_head


def counting_approvals(
    record: ProposalRecord, facts: ManifestFacts, rules: ProposalRules, groups_of: GroupsOf
) -> list[ReviewRecord]:
    """Return the approvals that count: of the current head of the source, by others than its authors."""
    authors = {record.author}
    if rules.not_author and record.trial is not None:
        authors |= {*record.trial.authors}
    return [
        review
        for review in record.reviews.values()
        if review.verdict == "approve"
        and review.actor not in authors
        and (review.commit == facts.source_head or not rules.dismiss)
        and (rules.from_group is None or rules.from_group in groups_of(review))
    ]


def _blockers(
    record: ProposalRecord, facts: ManifestFacts, rules: ProposalRules, groups_of: GroupsOf
) -> Iterator[Blocker]:
    for branch, head in ((record.source, facts.source_head), (record.target, facts.target_head)):
        if head is None:
            yield Blocker("no_branch", f"there is no branch '{branch}'")
    if record.draft:
        yield Blocker("draft", "the proposal is a draft")
    trial = record.trial
    if trial is None or not is_current(record, facts):
        yield Blocker("no_trial", "the branches moved since they were checked" if trial else "it was not checked yet")
    else:
        yield from _trial_blockers(record, trial, rules)
    yield from _review_blockers(record, facts, rules, groups_of)


def _trial_blockers(record: ProposalRecord, trial: TrialRecord, rules: ProposalRules) -> Iterator[Blocker]:
    if trial.conflicts:
        count = "1 conflict" if trial.conflicts == 1 else f"{trial.conflicts} conflicts"
        yield Blocker("conflicts", f"the branches have {count}")
        return
    if trial.problem is not None:
        yield Blocker("refused", trial.problem)
        return
    if trial.commit is None:
        yield Blocker("nothing_to_land", f"'{record.target}' has every commit of '{record.source}'")
        return
    for name in required_checks(trial, rules):
        found = record.checks.get(name)
        if found is None or found.commit != trial.commit or found.state == "pending":
            yield Blocker("check_pending", f"the check '{name}' has no result")
        elif found.state != "pass":
            details = f": {found.details}" if found.details else ""
            yield Blocker("check_failed", f"the check '{name}' failed{details}")


def required_checks(trial: TrialRecord, rules: ProposalRules) -> list[str]:
    """Return the names of the checks that must pass."""
    marked = [name for name, required in trial.checks.items() if required]
    return list(dict.fromkeys((*marked, *rules.required_checks)))


def _review_blockers(
    record: ProposalRecord, facts: ManifestFacts, rules: ProposalRules, groups_of: GroupsOf
) -> Iterator[Blocker]:
    against = sorted(review.actor for review in record.reviews.values() if review.verdict == "request_changes")
    if against:
        yield Blocker("changes_requested", f"{listing(against)} requested changes")
    approvals = counting_approvals(record, facts, rules, groups_of)
    if len(approvals) < rules.approvals:
        group = f" of group '{rules.from_group}'" if rules.from_group is not None else ""
        needed = "1 approval" if rules.approvals == 1 else f"{rules.approvals} approvals"
        yield Blocker(_APPROVALS, f"{needed}{group} needed, {len(approvals)} given")
    changed = {TableKey.parse(key).type_name for key in record.trial.changed} if record.trial is not None else set()
    for type_name, needed_group in sorted(rules.groups_for(changed).items()):
        if not any(needed_group in groups_of(review) for review in approvals):
            yield Blocker(_APPROVALS, f"a change of '{type_name}' needs an approval of group '{needed_group}'")
