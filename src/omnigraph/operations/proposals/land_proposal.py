"""Checks and landing of proposals.

A landing waits for its turn on the target, makes a trial of the current heads, runs the checks on it, decides by the
log and the rules, and publishes. If the target, the source or the trial changed since, it starts over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.cancellation import Limits as OperationLimits
from omnigraph.errors import Conflict, Denied, HeadMoved, InputError, PreconditionFailed, ProposalBlocked
from omnigraph.operations.authorization.difference_rights import check_difference
from omnigraph.operations.merge.guarded_merge import row_rules_of
from omnigraph.operations.merge.merge import plan_merge
from omnigraph.operations.merge.merge_preview import MergePreview
from omnigraph.operations.proposals.event_log import Decide, NewEvent
from omnigraph.operations.proposals.landing_queue import turn
from omnigraph.operations.proposals.proposal_info import TRIAL_CHECK, CheckRows
from omnigraph.operations.proposals.proposal_input import check_body, check_check_name, check_check_state
from omnigraph.operations.proposals.proposal_record import ProposalRecord, TrialRecord
from omnigraph.operations.proposals.proposal_rights import AUTHOR_CHECK, SIZE_CHECK, check_source, rules_of
from omnigraph.operations.proposals.proposal_status import ProposalStatus, required_checks
from omnigraph.operations.proposals.proposals import Proposals
from omnigraph.operations.proposals.stored_checks import (
    FAILING_ROWS_MAX,
    CheckOutcome,
    StoredCheck,
    checks_of,
    fitting_text,
    node_types,
    rows_of,
    run_check,
)
from omnigraph.operations.proposals.trial_merge import RecordedChoices, make_trial
from omnigraph.operations.stored_queries import queries_of
from omnigraph.storage.backoff import pause
from omnigraph.storage.failpoints import reach
from omnigraph.versioning.model.manifest_objects import MAIN, Commit
from omnigraph.versioning.model.snapshot import Snapshot, on_branch
from omnigraph.versioning.write.landing import TrialPoint, fence_trial, find_landing, land, with_approvals
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import WriteOptions

_DETAILS_BYTES_MAX = 8 << 10
_WAITING = ("no_trial", "check_pending")


@dataclass(frozen=True)
class ProposalLanding:
    """Checks and lands the proposals of a graph, for one caller."""

    proposals: Proposals

    @property
    def _repository(self) -> Repository:
        return self.proposals.repository

    def check(self, proposal_id: str, *, again: bool = False) -> None:
        """Try the merge of the current heads and run the checks that have no result; with `again`, all of them."""
        record = self.proposals.record(proposal_id)
        self.proposals.author_or("proposal_close", record)
        self.proposals.refuse_ended(record)
        self.run(record.id, again=again)

    def run(self, proposal_id: str, *, again: bool = False) -> TrialPoint | None:
        """Bring the trial and the checks of a proposal up to date; return the trial, None if there is none."""
        record, limits = self._record(proposal_id), OperationLimits()
        head = self._repository.state().get_head(record.source).commit_id
        self.proposals.append(proposal_id, _updated(head))
        trial, point = make_trial(self._repository, self._record(proposal_id), self.proposals.actor)
        self.proposals.append(proposal_id, _tried(trial))
        if point is not None:
            with limits.applied():  # the publish of the trial ended their effect
                for outcome in self._outcomes(self._record(proposal_id), trial, again=again):
                    self.proposals.append(proposal_id, _checked(outcome, point.commit_id))
            reach("proposal.checked")
        return point

    def report(self, proposal_id: str, name: str, state: str, details: str | None, commit: str) -> None:
        """Record the result of an external check of a trial."""
        record = self.proposals.record(proposal_id)
        self.proposals.may_report(record)
        name, known = check_check_name(name), check_check_state(state)
        trial = record.trial
        if name in (TRIAL_CHECK, AUTHOR_CHECK, SIZE_CHECK) or (trial is not None and name in trial.checks):
            raise InputError(f"the graph itself runs the check '{name}'", code="bad_check", hint="choose another name")
        if trial is None or trial.commit is None or trial.commit != commit:
            actual = None if trial is None else trial.commit
            raise PreconditionFailed(f"trial of {record.id}", expected=str(commit), actual=actual)
        is_author = record.author is not None and self.proposals.actor == record.author
        if is_author and known == "pass" and self.proposals.context.access is not None:
            raise Conflict("the author of a proposal cannot report that its checks pass", code="self_review")
        text = None if details is None else check_body(details, "the details")[:_DETAILS_BYTES_MAX]
        new = NewEvent("check", {"name": name, "commit": commit, "state": known, "details": text, "ms": None})
        before = record.checks.get(name)
        same = before is not None and (before.commit, before.state, before.details) == (commit, known, text)
        self.proposals.append(record.id, lambda _: None if same else new)
        if known != "pass":
            fence_trial(self._repository, record.id)

    def land(self, proposal_id: str, message: str | None = None) -> Commit:
        """Land a proposal as one commit, or raise `ProposalBlocked` with everything that prevents it.

        A proposal that is landed already returns its commit.
        """
        proposals = self.proposals
        record = proposals.record(proposal_id)
        proposals.may("proposal_land", record)
        proposals.context.check("branch_merge", record.source, record.target)
        self._repository.check_writable()
        landed = find_landing(self._repository, self._repository.state(), record.id)
        if landed is not None:
            proposals.note_landed(record.id, landed.id)
            return landed
        rules, limits = rules_of(proposals.context, record.target), OperationLimits()
        with turn(self._repository, record.target, record.id):
            for attempt in range(rules.land_tries):
                with limits.applied():
                    commit = self._land_once(record.id, message)
                if commit is not None:
                    return commit
                pause(attempt)
        raise Conflict(
            f"the target or the source of proposal {record.id} moved {rules.land_tries} times; nothing was landed",
            code="target_moves",
            hint="try again",
        )

    def _land_once(self, proposal_id: str, message: str | None) -> Commit | None:
        """Try, check, decide and publish once; None if something moved in the meantime."""
        proposals = self.proposals
        before = self._record(proposal_id)
        self._decide(before, proposals.status(before), waiting=True)
        point = self.run(proposal_id)
        # The record is read after the trial: a fence between them makes the publish fail.
        record = self._record(proposal_id)
        status = proposals.status(record)
        if status.landed is not None:
            return self._landed(proposal_id, self._repository.get_commit(status.landed))
        if any(blocker.code == "no_trial" for blocker in status.blocked_by) and not record.is_ended:
            # A branch moved since the trial.
            return None
        self._decide(record, status)
        if point is None or record.trial is None or record.trial.commit != point.commit_id:
            return None
        self._check_rights(point)
        self.proposals.append(proposal_id, _queued(point.commit_id))
        reach("proposal.queued")
        text = message if message is not None else record.title
        options = WriteOptions(actor=proposals.actor, message=text, metadata=proposals.context.metadata)
        try:
            commit = land(self._repository, point, with_approvals(options, status.approvals))
        except HeadMoved:
            return None
        return self._landed(proposal_id, commit)

    def _landed(self, proposal_id: str, commit: Commit) -> Commit:
        self.proposals.note_landed(proposal_id, commit.id)
        if commit.branch == MAIN and commit.parent_id is not None:
            before = self._repository.get_commit(commit.parent_id)
            if before.schema_hash != commit.schema_hash:
                source = self._repository.schema(commit.schema_hash).source
                self._repository.write_schema_copy(source)
        return commit

    def _decide(self, record: ProposalRecord, status: ProposalStatus, *, waiting: bool = False) -> None:
        """Raise why a proposal cannot land; with `waiting`, a trial or a check that is missing is no reason yet."""
        if status.state == "landed":
            return
        self.proposals.refuse_ended(record)
        shown = self.proposals.visible_blockers(record, status)
        blocked = [one for one in shown if not (waiting and one.code in _WAITING)]
        if blocked:
            reasons = [one.message for one in blocked]
            raise ProposalBlocked(
                f"proposal {record.id} cannot land: {'; '.join(reasons)}; nothing was written", reasons
            )

    def _check_rights(self, point: TrialPoint) -> None:
        """Raise `Denied` if the caller may not make the changes of a proposal."""
        context = self.proposals.context
        before, after = self._snapshots(point.target, point.base, point.commit_id)
        check_difference(context, before, after.schema, queries_of(after))
        if not context.has_row_rules:
            return
        ours, theirs = self._sides(point.target, point.base, point.source, point.merged_parent)
        record = self._record(point.proposal)
        trusted = self.proposals.skips_row_check(record, context)
        plan_merge(
            self._repository, ours, theirs, record.resolve, None, row_rules_of(context, trusted=trusted),
            rules=RecordedChoices,
        )  # fmt: skip

    def conflicts(self, proposal_id: str) -> MergePreview:
        """Return the plan of the merge with the conflicts that the caller may see; the others are counted."""
        proposals = self.proposals
        record = proposals.record(proposal_id)
        for branch in (record.source, record.target):
            proposals.context.check_head(branch)
        state = self._repository.state()
        ours, theirs = self._repository.at_head(state, record.target), self._repository.at_head(state, record.source)
        trusted = proposals.skips_row_check(record, proposals.context)
        rules = row_rules_of(proposals.context, trusted=trusted, preview=True)
        return plan_merge(self._repository, ours, theirs, record.resolve, None, rules, rules=RecordedChoices).preview()

    def check_rows(self, proposal_id: str, name: str) -> CheckRows:
        """Return the rows of a stored query that is a check, on the trial, as the caller may see them."""
        proposals = self.proposals
        record = proposals.record(proposal_id)
        for branch in (record.source, record.target):
            proposals.context.check_head(branch)
        trial, landed = record.trial, proposals.facts([record])[0].landed
        if landed is None:
            check_source(proposals.context, record, f"the rows of check '{str(name)[:100]}'")
        commit = landed or (trial.commit if trial is not None else None)
        if trial is None or commit is None:
            raise Conflict(f"proposal {record.id} has no trial", code="no_trial", hint="check it first")
        before, after = self._snapshots(record.target, trial.base, commit)
        check = next((one for one in self._stored_checks(before, after) if one.name == name), None)
        if check is None:
            raise InputError(f"'{str(name)[:100]}' is not a stored query that is a check", code="bad_check")
        query = fitting_text(proposals.context.unrestricted(), check, after)
        rows = rows_of(proposals.context, query, after)
        types = node_types(query.compile(proposals.context.catalog(after)))
        return CheckRows(name, tuple(rows[:FAILING_ROWS_MAX]), len(rows), types)

    # -- checks ----------------------------------------------------------------------------------

    def _outcomes(self, record: ProposalRecord, trial: TrialRecord, *, again: bool) -> Iterator[CheckOutcome]:
        """Yield the results of the checks that the graph runs; those that have one are left out."""
        rules = rules_of(self.proposals.context, record.target)
        wanted = dict.fromkeys((*required_checks(trial, rules), *trial.checks))
        done = {name for name, found in record.checks.items() if found.commit == trial.commit} if not again else set()
        assert trial.commit is not None, "checks run on a trial"
        before, after = self._snapshots(record.target, trial.base, trial.commit)
        stored = {check.name: check for check in self._stored_checks(before, after)}
        for name in wanted:
            if name in done:
                continue
            if name in stored:
                yield run_check(self.proposals.context, stored[name], before, after)
            elif name == SIZE_CHECK and rules.changes_max is not None:
                yield _size(trial, rules.changes_max)
            elif name == AUTHOR_CHECK:
                yield self._author_rights(record, trial)

    def _stored_checks(self, before: Snapshot, after: Snapshot) -> list[StoredCheck]:
        return checks_of(queries_of(before), queries_of(after))

    def _snapshots(self, target: str, base: str, trial: str) -> tuple[Snapshot, Snapshot]:
        """Return the head of the target and the trial, both judged by the rules of the target."""
        before, after = (self._repository.snapshot(at=commit) for commit in (base, trial))
        return on_branch(before, target), on_branch(after, target)

    def _sides(self, target: str, base: str, source: str, head: str) -> tuple[Snapshot, Snapshot]:
        ours, theirs = self._repository.snapshot(at=base), self._repository.snapshot(at=head)
        return on_branch(ours, target), on_branch(theirs, source)

    def _author_rights(self, record: ProposalRecord, trial: TrialRecord) -> CheckOutcome:
        """Check that the author may make each change, by the rules for rows of the target."""
        started = time.perf_counter()
        context = self.proposals.context
        assert context.access is not None, "rules for rows are those of a policy"
        groups = self.proposals.logs.events(record.id)[0].data.get("groups", ())
        author = context.unrestricted().with_access(context.access.as_actor(record.author, groups))
        ours, theirs = self._sides(record.target, trial.base, record.source, trial.source_head)
        try:
            trusted = self.proposals.skips_row_check(record, author)
            rules = row_rules_of(author, trusted=trusted)
            plan_merge(self._repository, ours, theirs, record.resolve, None, rules, rules=RecordedChoices)
            state, details = "pass", "the author may make each change"
        except Denied as error:
            state, details = "fail", error.message
        except InputError as error:
            if error.code != "policy_breakage":
                raise
            state, details = "fail", error.message
        ms = int((time.perf_counter() - started) * 1000)
        return CheckOutcome(AUTHOR_CHECK, check_check_state(state), details, ms)

    # -- events ----------------------------------------------------------------------------------

    def _record(self, proposal_id: str) -> ProposalRecord:
        found = self.proposals.logs.record(proposal_id)
        assert found is not None, "a proposal that exists is never removed"
        return found


def _size(trial: TrialRecord, most: int) -> CheckOutcome:
    return CheckOutcome(
        SIZE_CHECK,
        check_check_state("pass" if trial.rows <= most else "fail"),
        f"{trial.rows:,} changed rows, at most {most:,} are permitted",
        0,
    )


def _updated(head: str) -> Decide:
    def decide(record: ProposalRecord) -> NewEvent | None:
        return None if record.source_head == head else NewEvent("updated", {"source_head": head})

    return decide


def _tried(trial: TrialRecord) -> Decide:
    data = json.loads(json.dumps(trial.to_json()))

    def decide(record: ProposalRecord) -> NewEvent | None:
        known = record.trial
        return None if known is not None and known.to_json() == data else NewEvent("trial", data)

    return decide


def _checked(outcome: CheckOutcome, commit: str) -> Decide:
    data = {
        "name": outcome.name,
        "commit": commit,
        "state": outcome.state,
        "details": outcome.details[:_DETAILS_BYTES_MAX],
        "ms": outcome.ms,
    }
    return lambda _: NewEvent("check", data)


def _queued(commit: str) -> Decide:
    return lambda _: NewEvent("queued", {"commit": commit})
