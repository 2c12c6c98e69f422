"""What a caller may do with a proposal, and what it may see of one.

`read` on the target shows a proposal. To a caller with rules for rows, counts, details of checks and steps of the
schema are left out, and so are comments on rows or properties that it cannot see.

Rows of a proposal are judged by the rules of the target. A caller to whom these show other rows and values of the
source than the rules of the source sees no row of the source until the proposal is landed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from omnigraph.errors import Denied
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.proposals.proposal_info import CommentList
from omnigraph.operations.proposals.proposal_record import CommentAnchor, CommentRecord, ProposalRecord, ReviewRecord
from omnigraph.operations.proposals.proposal_status import Blocker, ProposalStatus
from omnigraph.policy.proposal_rules import NO_RULES, ProposalRules, rules_for
from omnigraph.policy.statements import PolicyStatements
from omnigraph.versioning.model.snapshot import Snapshot, on_branch

AUTHOR_CHECK = "author-rights"
"""The check that the author may make each change of the proposal, by the rules for rows of the target."""
SIZE_CHECK = "changes-max"
"""The check that the proposal does not change more rows than the target permits."""

_UNSEEN = {
    "check_failed": "a required check failed",
    "approvals_missing": "approvals are missing",
    "refused": "the merge was refused",
    "conflicts": "the branches have conflicts",
}
"""Blocker → its text for a caller with rules for rows; the other texts name branches and actors only."""


def rules_of(context: GraphContext, target: str) -> ProposalRules:
    """Return the rules for proposals to a target branch, with the checks that the policy implies."""
    statements = _statements(context)
    if statements is None:
        return NO_RULES
    rules = rules_for(statements.proposals, target)
    implied = (*((AUTHOR_CHECK,) if statements.has_row_rules else ()), *((SIZE_CHECK,) if rules.changes_max else ()))
    return replace(rules, required_checks=(*rules.required_checks, *implied)) if implied else rules


def needs_proposal(context: GraphContext, target: str) -> bool:
    """Return True if the rules of the policy for a branch let changes of other branches in as proposals only."""
    statements = _statements(context)
    return statements is not None and rules_for(statements.proposals, target).need_a_proposal


def _statements(context: GraphContext) -> PolicyStatements | None:
    policy = context.access.policy if context.access is not None else None
    statements = policy.rules if policy is not None else None
    return statements if isinstance(statements, PolicyStatements) else None


def groups_of(context: GraphContext, review: ReviewRecord) -> frozenset[str]:
    """Return the groups of a reviewer: those of the policy today, and those that its token brought."""
    statements = _statements(context)
    if statements is None:
        return frozenset(review.groups)
    return frozenset(statements.groups_for(review.actor, review.groups))


def may_read(context: GraphContext, record: ProposalRecord) -> bool:
    """Return True if the caller may see a proposal."""
    return context.access is None or context.access.decide("read", record.target).allowed


def is_limited(context: GraphContext, snapshot: Snapshot) -> bool:
    """Return True if rules for rows limit what the caller sees of a target."""
    return context.has_row_rules and context.visibility_of(snapshot) is not None


def sees_source(context: GraphContext, record: ProposalRecord) -> bool:
    """Return True if the caller sees everything of the source, or would see the same of it on the target."""
    return not context.has_row_rules or all(
        _sees_alike(context, one, record.target) for one in _sources(context, record)
    )


def check_source(context: GraphContext, record: ProposalRecord, what: str) -> None:
    """Raise `Denied` if the rules of the target would show the caller other rows and values of the source."""
    if not sees_source(context, record):
        reason = f"the rules for rows of '{record.target}' show other rows and values of '{record.source}'"
        raise Denied(f"{what} of proposal {record.id} is denied: {reason}", (reason,))


def _sees_alike(context: GraphContext, source: Snapshot, target: str) -> bool:
    try:
        return context.sees_alike(source, target)
    except Denied:
        # The rules do not fit the schema of the source, which a check reports. They are compared on that of the target.
        return context.sees_alike(on_branch(context.repository.snapshot(target), source.branch), target)


def _sources(context: GraphContext, record: ProposalRecord) -> Iterator[Snapshot]:
    """Yield the points of the source that a proposal can show: its head, and those that were merged or seen last."""
    repository, state = context.repository, context.repository.state()
    head = state.find_head(record.source)
    if head is not None:
        yield repository.at_head(state, record.source)
    known = (record.source_head, record.trial.source_head if record.trial is not None else None)
    for commit_id in dict.fromkeys(known):
        if commit_id is None or (head is not None and head.commit_id == commit_id):
            continue
        found = repository.find_point(commit_id, state)
        if found is not None:
            yield on_branch(found, record.source)


def visible_record(record: ProposalRecord) -> ProposalRecord:
    """Return what a caller with rules for rows may see of a record, comments aside."""
    trial = record.trial
    if trial is not None:
        trial = replace(trial, tables={}, schema_steps=(), changed=(), problem=None)
    checks = {name: replace(check, details=None) for name, check in record.checks.items()}
    return replace(record, trial=trial, checks=checks, resolve=None)


def visible_status(status: ProposalStatus) -> ProposalStatus:
    """Return what a caller with rules for rows may see of a status."""
    blocked = (Blocker(one.code, _UNSEEN.get(one.code, one.message)) for one in status.blocked_by)
    return replace(status, blocked_by=tuple(dict.fromkeys(blocked)))


def visible_comments(
    context: GraphContext, comments: Iterable[CommentRecord], points: Iterable[Snapshot], target: str
) -> CommentList:
    """Return the comments that a caller may see: those on no row, and on rows that it sees at one of some points."""
    listed = tuple(comments)
    if not context.has_row_rules:
        return CommentList(listed)
    snapshots = [on_branch(point, target) for point in points]
    hidden = {one.id for one in listed if one.on is not None and not sees_anchor(context, one.on, snapshots)}
    # A reply is as hidden as what it replies to.
    for one in listed:
        if one.reply_to in hidden:
            hidden.add(one.id)
    shown = tuple(one for one in listed if one.id not in hidden)
    return CommentList(shown, len(listed) - len(shown))


def sees_anchor(context: GraphContext, anchor: CommentAnchor, snapshots: Iterable[Snapshot]) -> bool:
    """Return True if a row and its property exist, visible to the caller, at one of some points."""
    return any(_sees_at(context, anchor, snapshot) for snapshot in snapshots)


def _sees_at(context: GraphContext, anchor: CommentAnchor, snapshot: Snapshot) -> bool:
    types = {str(type_.table_key): type_ for type_ in context.catalog(snapshot).tables()}
    type_ = types.get(anchor.table_key)
    if type_ is None or (anchor.property is not None and anchor.property not in type_.properties):
        return False
    view = context.view(snapshot)
    if view is None:
        return snapshot.entity(anchor.table_key, anchor.row_id) is not None
    columns = ["id"] if anchor.property is None else ["id", anchor.property]
    found = view.row_of(anchor.table_key, anchor.row_id, columns)
    if found is None or not found.num_rows:
        return False
    visibility = context.visibility_of(snapshot)
    guarded = visibility is not None and (anchor.table_key, anchor.property) in visibility.properties
    # A masked value is null; it does not differ from one that is absent.
    return not guarded or found[anchor.property].null_count == 0
