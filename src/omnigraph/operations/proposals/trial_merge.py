"""The trial of a proposal: the merge of its source into its target, published on a hidden branch.

One publish forks the hidden branch from the head of the target and adds the merge, so a trial exists as a whole or not
at all. The commit of a trial records what was merged. A trial that another process made, or one whose event was not
written because a process died, is found there and not made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.errors import Conflict, HeadMoved, InputError
from omnigraph.operations.merge.conflict_rules import ConflictRules
from omnigraph.operations.merge.merge import check_merged_queries, plan_merge
from omnigraph.operations.merge.merge_plan import MergePlan
from omnigraph.operations.proposals.proposal_record import ProposalRecord, TrialRecord
from omnigraph.operations.proposals.stored_checks import checks_of
from omnigraph.operations.stored_queries import queries_of
from omnigraph.storage.backoff import pause
from omnigraph.storage.failpoints import reach
from omnigraph.versioning.model.ancestry import only_reachable
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.idempotency import hash_request
from omnigraph.versioning.write.landing import TrialPoint, trial_branch, trial_of
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction, WriteOptions

TRIAL = "trial"
"""The entry of a trial commit's metadata that describes the trial."""
_TRIES = 16


class RecordedChoices(ConflictRules):
    """Choices of a proposal. Those for conflicts that do not exist any more have no effect."""

    def check_all_used(self) -> None:
        """Accept choices that were not used."""


class _Refused(Exception):
    """The merge has conflicts, or nothing to merge: there is no commit."""

    def __init__(self, plan: MergePlan) -> None:
        super().__init__()
        self.plan = plan


def choices_digest(record: ProposalRecord) -> str:
    """Identify the choices of a proposal for conflicts."""
    return "" if record.resolve is None else hash_request("resolve", record.resolve)


def find_trial(repository: Repository, record: ProposalRecord) -> tuple[TrialRecord, TrialPoint] | None:
    """Return the trial of the current heads and choices of a proposal; None if there is none."""
    state = repository.state()
    tried = state.find_head(trial_branch(record.id))
    target, source = state.find_head(record.target), state.find_head(record.source)
    if tried is None or target is None or source is None:
        return None
    found = repository.find_commit(tried.commit_id, state)
    if found is None or found[0].parents != (target.commit_id, source.commit_id):
        return None
    point = trial_of(state, record.id, found[0], record.target, record.source)
    trial = TrialRecord.from_json(found[0].metadata[TRIAL])
    if point is None or trial.resolve != choices_digest(record):
        return None
    return replace(trial, commit=point.commit_id, changed=found[0].changed), point


def make_trial(
    repository: Repository, record: ProposalRecord, actor: str | None
) -> tuple[TrialRecord, TrialPoint | None]:
    """Merge the heads of a proposal on its hidden branch; an existing trial of these heads is returned as it is.

    A merge with conflicts, one that is refused, and one without changes have no commit.
    """
    for attempt in range(_TRIES):
        found = find_trial(repository, record)
        if found is not None:
            return found
        try:
            return _try(repository, record, actor)
        except HeadMoved:
            repository.record_lost_race(record.target)
            pause(attempt)
    raise Conflict(f"branch '{record.target}' moves too often to try the merge", hint="try again")


def _try(repository: Repository, record: ProposalRecord, actor: str | None) -> tuple[TrialRecord, TrialPoint | None]:
    state = repository.state()
    ours, theirs = repository.at_head(state, record.target), repository.at_head(state, record.source)
    branch = trial_branch(record.id)
    options = WriteOptions(branch=branch, actor=actor, kind="merge", merged_parent=theirs.commit_id)
    trial = TrialRecord(ours.commit_id, theirs.commit_id, "refused", resolve=choices_digest(record))
    try:
        transaction = Transaction(repository, options, state=state, fork_of=record.target)
        trial = _prepare(transaction, record, theirs, trial)
        commit = transaction.commit()
    except HeadMoved:
        raise
    except _Refused as refused:
        plan = refused.plan
        return replace(trial, outcome=plan.outcome, conflicts=len(plan.conflicts)), None
    except (InputError, Conflict) as error:
        return replace(trial, problem=error.message), None
    assert commit is not None, "a merge with a second parent makes a commit"
    reach("proposal.trial")
    point = trial_of(repository.state(), record.id, commit, record.target, record.source)
    if point is None:
        raise HeadMoved("another trial of the proposal replaced this one", hint="try again")
    return replace(trial, commit=commit.id, changed=commit.changed), point


def _prepare(transaction: Transaction, record: ProposalRecord, theirs: Snapshot, trial: TrialRecord) -> TrialRecord:
    """Record the merge on a transaction, and return its description."""
    repository, ours = transaction.repository, transaction.snapshot
    plan = plan_merge(repository, ours, theirs, record.resolve, rules=RecordedChoices)
    if plan.has_conflicts or plan.outcome == "already_up_to_date":
        raise _Refused(plan)
    check_merged_queries(plan, ours)
    plan.stage(transaction, theirs)
    preview = plan.preview()
    trial = replace(
        trial,
        outcome=plan.outcome,
        tables={key: _counts(table.to_json()) for key, table in preview.tables.items()},
        schema_steps=preview.schema_steps[:100],
        authors=_authors(repository, transaction.state, ours.commit_id, theirs.commit_id),
        checks={check.name: check.required for check in checks_of(queries_of(ours), plan.queries)},
    )
    transaction.options = replace(transaction.options, metadata={TRIAL: trial.to_json()})
    return trial


def _counts(table: Mapping[str, Any]) -> dict[str, int]:
    return {name: table[name] for name in ("inserted", "updated", "deleted")}


def _authors(repository: Repository, state: State, target: str, source: str) -> tuple[str, ...]:
    """Return the actors of the commits of the source that the target does not have."""
    commits = repository.all_commits(state)
    new = only_reachable(source, [target], commits)
    return tuple(sorted({actor for commit_id in new if (actor := commits[commit_id].actor) is not None}))
