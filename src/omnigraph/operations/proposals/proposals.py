"""`Proposals`: opens, lists, edits, discusses, reviews and closes the proposals of one graph.

Each change is one event of a log. A change that withdraws something a landing relies on (requested changes, a retracted
approval, a failed check, a close) is written first and then fences the trial, so no landing that was decided before it
is published after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from omnigraph.errors import Conflict, Denied, InputError, KeyReused, NotFound, PreconditionFailed
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.proposals.event_log import Decide, NewEvent, ProposalLogs, Side
from omnigraph.operations.proposals.proposal_events import ProposalEvent
from omnigraph.operations.proposals.proposal_info import (
    TRIAL_CHECK,
    CheckInfo,
    CommentList,
    ProposalInfo,
    ReviewInfo,
    TrialInfo,
)
from omnigraph.operations.proposals.proposal_input import (
    NewProposal,
    ProposalFilter,
    anchor_of,
    check_after,
    check_body,
    check_choices,
    check_comment,
    check_proposal_id,
    check_verdict,
    unknown_proposal,
)
from omnigraph.operations.proposals.proposal_record import CommentRecord, ProposalRecord, ReviewRecord
from omnigraph.operations.proposals.proposal_rights import (
    check_source,
    groups_of,
    is_limited,
    may_read,
    rules_of,
    sees_anchor,
    sees_source,
    visible_comments,
    visible_record,
    visible_status,
)
from omnigraph.operations.proposals.proposal_status import (
    OPEN_STATES,
    Blocker,
    ManifestFacts,
    ProposalStatus,
    required_checks,
    status_of,
)
from omnigraph.policy.proposal_rules import ProposalFacts, ProposalRules
from omnigraph.storage.files.layout import PROPOSALS
from omnigraph.versioning.model.ids import new_ulid, ulid_of
from omnigraph.versioning.model.snapshot import Snapshot, on_branch
from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.idempotency import GeneratedKey, check_idempotency_key, hash_request
from omnigraph.versioning.write.landing import drop_trial, fence_trial, find_landings, trial_branch
from omnigraph.versioning.write.ref_names import check_text, is_internal
from omnigraph.versioning.write.repository import Repository

_LOGS: WeakKeyDictionary[Repository, tuple[int, ProposalLogs]] = WeakKeyDictionary()


def logs_of(repository: Repository) -> ProposalLogs:
    """Return the logs of the proposals of an opened graph, which all its handles share.

    A graph that was replaced by another one, such as a restored copy, gets new ones.
    """
    found = _LOGS.get(repository)
    if found is None or found[0] != repository.known_epoch:
        logs = ProposalLogs(repository.objects, repository.clock, is_local=repository.location.is_local)
        found = _LOGS[repository] = repository.known_epoch, logs
    return found[1]


@dataclass(frozen=True)
class Proposals:
    """The proposals of a graph, for one caller."""

    context: GraphContext
    actor: str | None

    @property
    def repository(self) -> Repository:
        """The opened graph."""
        return self.context.repository

    @property
    def logs(self) -> ProposalLogs:
        """The logs of the proposals."""
        return logs_of(self.repository)

    @property
    def request_id(self) -> str | None:
        """The id of the request of a server."""
        found = self.context.metadata.get("request_id")
        return found if isinstance(found, str) else None

    # -- reading ---------------------------------------------------------------------------------

    def get(self, proposal_id: str) -> ProposalInfo:
        """Return a proposal as the caller may see it."""
        record = self.record(proposal_id)
        return self._info(record, self.facts([record])[0])

    def record(self, proposal_id: str) -> ProposalRecord:
        """Return the record of a proposal that the caller may see."""
        known = check_proposal_id(proposal_id)
        record = self.logs.record(known)
        if record is None:
            raise unknown_proposal(known)
        try:
            self.context.check("read", record.target)
        except Denied:
            raise unknown_proposal(known) from None
        return record

    def sees(self, record: ProposalRecord) -> bool:
        """Return True if the caller may see a proposal."""
        return may_read(self.context, record)

    def search(self, wanted: ProposalFilter) -> list[ProposalInfo]:
        """Return proposals, newest first."""
        found: list[ProposalInfo] = []
        sides: list[Side] = ["open"] if {*wanted.states} & {*OPEN_STATES} else []
        if {*wanted.states} & {"landed", "closed"}:
            self._note_landings()
            sides.append("closed")
        places = sorted(((known, side) for side in sides for known in self.logs.ids(side)), reverse=True)
        if wanted.after is not None:
            places = [place for place in places if place[0] < wanted.after]
        step = max(wanted.limit, 1) if len(sides) == 1 and sides[0] == "open" else 2 * wanted.limit
        for first in range(0, len(places), step):
            found += self._listed(places[first : first + step], wanted)
            if len(found) >= wanted.limit:
                break
        return found[: wanted.limit]

    def _note_landings(self) -> None:
        """Note the landings of processes that died before they could; a trial that exists is not landed."""
        state = self.repository.state()
        unknown = [known for known in self.logs.ids("open") if state.find_head(trial_branch(known)) is None]
        for known, commit_id in find_landings(self.repository, state, unknown).items():
            self.note_landed(known, commit_id)

    def open_states(self) -> Iterator[str]:
        """Yield the states of the proposals that are listed as open, for all callers."""
        records = self.logs.listed("open", self.logs.ids("open"))
        for record, facts in zip(records, self.facts(records), strict=True):
            yield self.status(record, facts).state

    def _listed(self, places: Sequence[tuple[str, Side]], wanted: ProposalFilter) -> list[ProposalInfo]:
        by_side: dict[Side, list[str]] = {}
        for known, side in places:
            by_side.setdefault(side, []).append(known)
        read = {one.id: one for side, known in by_side.items() for one in self.logs.listed(side, known)}
        records = [one for one in read.values() if _matches(one, wanted) and may_read(self.context, one)]
        infos = [self._info(one, facts) for one, facts in zip(records, self.facts(records), strict=True)]
        for info, record in zip(infos, records, strict=True):
            if info.landed is not None and record.landed is None:
                self.note_landed(record.id, info.landed)
        return sorted((one for one in infos if one.state in wanted.states), key=lambda one: one.id, reverse=True)

    def facts(self, records: Sequence[ProposalRecord], state: State | None = None) -> list[ManifestFacts]:
        """Return what the manifest says about proposals."""
        state = state or self.repository.state()
        now, heads = self.repository.clock(), {}

        def head(branch: str) -> str | None:
            if branch not in heads:
                found = state.find_head(branch)
                heads[branch] = None if found is None else found.commit_id
            return heads[branch]

        trials = {one.id: head(trial_branch(one.id)) for one in records}
        # A landing removes the trial, so a proposal whose trial exists is not landed.
        unknown = [one.id for one in records if one.landed is None and trials[one.id] is None and one.trial is not None]
        landed = find_landings(self.repository, state, unknown)
        return [
            ManifestFacts(head(one.target), head(one.source), trials[one.id], one.landed or landed.get(one.id), now)
            for one in records
        ]

    def status(self, record: ProposalRecord, facts: ManifestFacts | None = None) -> ProposalStatus:
        """Return the state of a proposal by the rules of the policy."""
        rules = rules_of(self.context, record.target)
        return status_of(record, facts or self.facts([record])[0], rules, partial(groups_of, self.context))

    def _info(self, record: ProposalRecord, facts: ManifestFacts) -> ProposalInfo:
        rules = rules_of(self.context, record.target)
        status = status_of(record, facts, rules, partial(groups_of, self.context))
        if self._is_limited(record, landed=facts.landed is not None):
            record, status = visible_record(record), visible_status(status)
        return info_of(record, facts, status, rules)

    def visible_blockers(self, record: ProposalRecord, status: ProposalStatus) -> tuple[Blocker, ...]:
        """Return what prevents a landing, as the caller may see it."""
        return (visible_status(status) if self._is_limited(record) else status).blocked_by

    def _is_limited(self, record: ProposalRecord, *, landed: bool = False) -> bool:
        """Return True if the caller does not see everything of a proposal; what landed is part of the target alone."""
        if not self.context.has_row_rules:
            return False
        head = self.repository.state().find_head(record.target)
        if head is None or is_limited(self.context, self.repository.snapshot(record.target)):
            return True
        return not landed and not sees_source(self.context, record)

    def comments(self, proposal_id: str) -> CommentList:
        """Return the comments of a proposal that the caller may see."""
        record = self.record(proposal_id)
        return visible_comments(self.context, record.comments, self.points(record), record.target)

    def points(self, record: ProposalRecord) -> list[Snapshot]:
        """Return the snapshots whose rows a proposal shows: target, source and trial, if they exist.

        Without sight of the source, the caller is shown the target alone.
        """
        state = self.repository.state()
        brought = (record.source, trial_branch(record.id)) if sees_source(self.context, record) else ()
        names = (record.target, *brought)
        return [self.repository.at_head(state, name) for name in names if state.find_head(name) is not None]

    def events(self, proposal_id: str, after: int = 0) -> list[ProposalEvent]:
        """Return the events of a proposal that the caller may see."""
        record = self.record(proposal_id)
        events = list(self.logs.events(record.id, check_after(after)))
        if not self._is_limited(record):
            return events
        seen = {one.id for one in self.comments(proposal_id).comments}
        return [reduced for event in events if (reduced := _visible_event(event, seen)) is not None]

    # -- changing --------------------------------------------------------------------------------

    def open(self, new: NewProposal, idempotency_key: str | None = None) -> str:
        """Open a proposal and return its id."""
        context, state = self.context, self.repository.state()
        for branch in (new.source, new.target):
            check_text(branch, "branch")
            context.check_head(branch)
            if is_internal(branch):
                raise InputError(f"'{branch}' is an internal branch", code="bad_proposal")
            state.get_head(branch)
        if new.source == new.target:
            raise InputError("a proposal brings one branch into another", code="bad_proposal", hint="name two branches")
        context.check("proposal_create", new.source, new.target)
        self.repository.check_writable()
        proposal_id = self._new_id(new, idempotency_key)
        if self.logs.record(proposal_id) is None:
            data = {**new.to_json(), "source_head": state.get_head(new.source).commit_id, **self._groups()}
            self.logs.create(proposal_id, data, self.actor, self.request_id)
        return proposal_id

    def _groups(self) -> dict[str, Any]:
        groups = self.context.access.groups if self.context.access is not None else ()
        return {"groups": list(groups)} if groups else {}

    def _new_id(self, new: NewProposal, key: str | None) -> str:
        """Return a new id; a repetition with an idempotency key gets the id of the first call."""
        proposal_id = new_ulid(self.repository.clock())
        if key is None or isinstance(key, GeneratedKey):
            return proposal_id
        digest = hash_request("propose", new.to_json())
        name = f"{PROPOSALS}/keys/{hash_request('key', self.actor, check_idempotency_key(key))}"
        stored = json.dumps({"id": proposal_id, "request": digest}).encode()
        if self.repository.objects.write_if_absent(name, stored):
            return proposal_id
        known = json.loads(self.repository.objects.read(name) or b"{}")
        if known.get("request") != digest:
            raise KeyReused(
                f"the idempotency key '{key}' was used for another request", hint="use a new key for a new request"
            )
        return str(known["id"])

    def edit(self, proposal_id: str, changes: dict[str, Any]) -> None:
        """Change the title, body, labels, reviewers or the draft state."""
        self.author_or("proposal_close", self.record(proposal_id))

        def decide(record: ProposalRecord) -> NewEvent | None:
            self.refuse_ended(record)
            known = {name: getattr(record, name) for name in changes}
            different = {
                name: value
                for name, value in changes.items()
                if known[name] != (tuple(value) if isinstance(value, list) else value)
            }
            return NewEvent("edited", different) if different else None

        self.append(proposal_id, decide, fence=changes.get("draft") is True)

    def comment(
        self, proposal_id: str, text: str, on: object = None, reply_to: str | None = None, key: str | None = None
    ) -> CommentRecord:
        """Add a comment, on a row or property of the graph or on the proposal as a whole."""
        record = self.record(proposal_id)
        self.may("proposal_comment", record)
        anchor = anchor_of(on)
        if anchor is not None:
            points = [on_branch(point, record.target) for point in self.points(record)]
            if not sees_anchor(self.context, anchor, points):
                check_source(self.context, record, "a comment on a row")
                raise NotFound(f"there is no row '{anchor.row_id}' of '{anchor.table_key}' to comment on")
        if reply_to is not None:
            self._visible_comment(proposal_id, reply_to)
        text = check_comment(text)
        repeated = key is not None and not isinstance(key, GeneratedKey)
        digest = hash_request("comment", self.actor, proposal_id, check_idempotency_key(key)) if repeated else ""
        comment_id = ulid_of(digest) if digest else new_ulid(self.repository.clock())
        data = {"id": comment_id, "text": text, "on": None if anchor is None else anchor.to_json()}
        new = NewEvent("comment", data | ({} if reply_to is None else {"reply_to": reply_to}))

        def decide(current: ProposalRecord) -> NewEvent | None:
            return None if any(one.id == comment_id for one in current.comments) else new

        found = self.append(proposal_id, decide)
        return next(one for one in found.comments if one.id == comment_id)

    def edit_comment(
        self, proposal_id: str, comment_id: str, text: str | None = None, *, resolved: bool | None = None
    ) -> CommentRecord:
        """Replace the text of a comment of the caller, or mark a comment as resolved or not."""
        record = self.record(proposal_id)
        self.may("proposal_comment", record)
        known = self._visible_comment(proposal_id, comment_id)
        if text is not None:
            if known.actor != self.actor:
                raise Denied("only the author of a comment can edit it")
            new = NewEvent("comment", {"id": comment_id, "replaces": comment_id, "text": check_comment(text)})
            record = self.append(proposal_id, lambda _: None if known.text == text else new)
        if resolved is not None:
            event = NewEvent("resolved", {"comment": comment_id, "resolved": bool(resolved)})
            record = self.append(proposal_id, lambda _: None if known.resolved is resolved else event)
        return next(one for one in record.comments if one.id == comment_id)

    def _visible_comment(self, proposal_id: str, comment_id: str) -> CommentRecord:
        for one in self.comments(proposal_id).comments:
            if one.id == comment_id:
                return one
        raise NotFound(f"there is no comment '{str(comment_id)[:40]}'")

    def review(self, proposal_id: str, verdict: str, text: str | None = None, commit: str | None = None) -> None:
        """Approve a proposal, request changes, or retract an earlier verdict.

        A verdict is about the head of the source. `commit` is the head that was reviewed; if the source moved since,
        the verdict is refused.
        """
        chosen = check_verdict(verdict)
        record = self.record(proposal_id)
        self.may("proposal_approve", record)
        if self.actor is None:
            raise InputError("a review has an actor", code="no_reviewer", hint="open the graph with an actor")
        if self.actor == record.author:
            raise Conflict("the author of a proposal cannot review it", code="self_review")
        head = self.facts([record])[0].source_head
        if head is None:
            raise Conflict(f"there is no branch '{record.source}' to review", code="no_source")
        if commit is not None and commit != head:
            raise PreconditionFailed(record.source, expected=commit, actual=head)
        groups = self.context.access.groups if self.context.access is not None else ()
        data = {"verdict": chosen, "commit": head, "text": None if text is None else check_body(text, "a review")}
        new = NewEvent("review", data | ({"groups": list(groups)} if groups else {}))

        def decide(current: ProposalRecord) -> NewEvent | None:
            self.refuse_ended(current)
            before = current.reviews.get(self.actor or "")
            return None if before is not None and _same(before, data) else new

        self.append(proposal_id, decide, fence=chosen != "approve")

    def resolve(self, proposal_id: str, choices: Any) -> None:
        """Set the choices for the conflicts of the branches, as `resolve` of a merge; None removes them."""
        record = self.record(proposal_id)
        self.author_or("proposal_close", record)
        stored = check_choices(choices)
        self._check_named(record, stored)

        def decide(record: ProposalRecord) -> NewEvent | None:
            self.refuse_ended(record)
            return None if record.resolve == stored else NewEvent("resolution", {"resolve": stored})

        self.append(proposal_id, decide, fence=True)

    def _check_named(self, record: ProposalRecord, choices: Any) -> None:
        """Refuse choices of a caller with limits for conflicts that it cannot see; the trial would apply them."""
        from omnigraph.operations.merge.guarded_merge import row_rules_of  # noqa: PLC0415 (only for rules for rows)
        from omnigraph.operations.merge.merge import plan_merge  # noqa: PLC0415

        if not isinstance(choices, dict) or not self.context.has_row_rules:
            return
        state = self.repository.state()
        ours, theirs = (self.repository.at_head(state, branch) for branch in (record.target, record.source))
        if is_limited(self.context, ours) or not sees_source(self.context, record):
            self.context.check_head(record.source)
            trusted = self.skips_row_check(record, self.context)
            rules = row_rules_of(self.context, trusted=trusted, preview=True)
            plan_merge(self.repository, ours, theirs, choices, None, rules)

    def close(self, proposal_id: str, why: str | None = None) -> None:
        """Close a proposal without landing it; its trial is removed."""
        self.author_or("proposal_close", self.record(proposal_id))
        text = None if why is None else check_body(why, "the reason")

        def decide(record: ProposalRecord) -> NewEvent | None:
            if record.closed:
                return None
            self.refuse_ended(record)
            return NewEvent("closed", {"why": text})

        record = self.append(proposal_id, decide)
        drop_trial(self.repository, record.id)
        self.refuse_landed(self.logs.record(record.id) or record)

    def reopen(self, proposal_id: str) -> None:
        """Open a closed proposal again."""
        record = self.record(proposal_id)
        self.author_or("proposal_close", record)
        self.logs.list_open(record.id)

        def decide(current: ProposalRecord) -> NewEvent | None:
            self.refuse_landed(current)
            return NewEvent("reopened", {}) if current.closed else None

        self.append(proposal_id, decide)

    # -- parts -----------------------------------------------------------------------------------

    def note_landed(self, proposal_id: str, commit_id: str) -> None:
        """Write the event of a landing that the manifest records; without it, the state is the same."""
        if self.repository.read_only:
            return

        def decide(record: ProposalRecord) -> NewEvent | None:
            return None if record.landed is not None else NewEvent("landed", {"commit": commit_id})

        self.logs.append(proposal_id, decide, self.actor, self.request_id)

    def append(self, proposal_id: str, decide: Decide, *, fence: bool = False) -> ProposalRecord:
        """Append an event in the name of the caller; with `fence`, no landing relies on the record before it."""
        known = check_proposal_id(proposal_id)
        self.repository.check_writable()
        record = self.logs.append(known, decide, self.actor, self.request_id)
        if fence:
            fence_trial(self.repository, known)
            self.refuse_landed(record)
        return record

    def may(self, action: str, record: ProposalRecord) -> None:
        """Raise `Denied` if the caller may not perform an action on a proposal."""
        access = self.context.access
        if access is not None:
            access.check(action, record.source, record.target, proposal=self._facts_for_policy(record))

    def skips_row_check(self, record: ProposalRecord, context: GraphContext) -> bool:
        """Return True if a rule says that the rows of a landing by the caller of a context are not checked.

        A landing needs `proposal_land` and `branch_merge`; a rule for either can say so.
        """
        access = context.access
        if access is None:
            return False
        source, target, facts = record.source, record.target, self._facts_for_policy(record)
        landing = access.decide("proposal_land", source, target, proposal=facts)
        return landing.skips_row_check or context.skips_row_check(source, target)

    def may_report(self, record: ProposalRecord) -> None:
        """Permit to report a check by the action `proposal_check`, and with the right to approve."""
        access = self.context.access
        if access is not None:
            facts = self._facts_for_policy(record)
            approves = access.decide("proposal_approve", record.source, record.target, proposal=facts).allowed
            self.may("proposal_approve" if approves else "proposal_check", record)

    def _facts_for_policy(self, record: ProposalRecord) -> ProposalFacts:
        status = self.status(record)
        return ProposalFacts(
            record.id, record.source, record.author, tuple(sorted(status.approvals)), status.check_state, record.labels
        )

    def author_or(self, action: str, record: ProposalRecord) -> None:
        """Permit the author, and others by an action of the policy."""
        if self.context.access is not None and (self.actor is None or self.actor != record.author):
            self.may(action, record)

    def refuse_ended(self, record: ProposalRecord) -> None:
        """Raise `Conflict` if a proposal is closed or landed."""
        self.refuse_landed(record)
        if record.closed:
            raise Conflict(f"proposal {record.id} is closed", code="proposal_closed", hint="reopen it first")

    def refuse_landed(self, record: ProposalRecord) -> None:
        """Raise `Conflict` if a proposal is landed."""
        landed = self.facts([record])[0].landed
        if landed is not None:
            self.note_landed(record.id, landed)
            raise Conflict(f"proposal {record.id} was landed as commit {landed}", code="proposal_landed")


def info_of(record: ProposalRecord, facts: ManifestFacts, status: ProposalStatus, rules: ProposalRules) -> ProposalInfo:
    """Return the form of a proposal that interfaces show."""
    trial = record.trial
    shown = None
    if trial is not None:
        shown = TrialInfo(
            trial.base, trial.source_head, trial.commit, trial.outcome, trial.conflicts, status.is_trial_current,
            trial.tables, trial.schema_steps,
        )  # fmt: skip
    return ProposalInfo(
        record.id,
        record.title,
        status.state,
        record.source,
        record.target,
        record.author,
        record.opened_us,
        record.updated_us,
        record.events,
        record.body,
        record.draft,
        record.labels,
        record.reviewers,
        facts.source_head,
        facts.target_head,
        status.blocked_by,
        status.approvals,
        tuple(ReviewInfo.of(one, counts=one.actor in status.approvals) for one in record.reviews.values()),
        tuple(_checks(record, rules)),
        shown,
        record.comment_count,
        status.landed,
        record.closed_by,
        record.closed_why,
    )


def _checks(record: ProposalRecord, rules: ProposalRules) -> Iterable[CheckInfo]:
    trial = record.trial
    if trial is None:
        return
    state, details = "pass", trial.outcome
    if trial.commit is None:
        state, details = (
            "fail",
            trial.problem or f"{trial.conflicts} {'conflict' if trial.conflicts == 1 else 'conflicts'}",
        )
    yield CheckInfo(TRIAL_CHECK, state, True, details, trial.commit)
    required = {*required_checks(trial, rules)}
    for name in dict.fromkeys((*trial.checks, *rules.required_checks, *record.checks)):
        found = record.checks.get(name)
        if found is None or found.commit != trial.commit:
            if name in required or name in trial.checks:
                yield CheckInfo(name, "pending", name in required)
            continue
        yield CheckInfo(
            name, found.state, name in required, found.details, found.commit, found.ms, found.actor, found.at_us
        )


def _matches(record: ProposalRecord, wanted: ProposalFilter) -> bool:
    return (
        (wanted.target is None or record.target == wanted.target)
        and (wanted.author is None or record.author == wanted.author)
        and (wanted.reviewer is None or wanted.reviewer in record.reviewers or wanted.reviewer in record.reviews)
        and (wanted.label is None or wanted.label in record.labels)
    )


def _same(review: ReviewRecord, data: dict[str, Any]) -> bool:
    return (review.verdict, review.commit, review.text) == (data["verdict"], data["commit"], data["text"])


def _visible_event(event: ProposalEvent, comments: set[str]) -> ProposalEvent | None:
    """Return what a caller with rules for rows may see of an event; None if nothing."""
    data = event.data
    if event.kind == "comment":
        return event if data["id"] in comments else None
    if event.kind == "resolved":
        return event if data["comment"] in comments else None
    if event.kind == "trial":
        kept = ("base", "source_head", "outcome", "commit")
        return replace(event, data={name: data.get(name) for name in kept})
    if event.kind == "check":
        return replace(event, data={name: data.get(name) for name in ("name", "commit", "state")})
    return None if event.kind == "resolution" else event
