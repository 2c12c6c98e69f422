"""Proposals: open, list, discuss, check, review and land them."""

from __future__ import annotations

from msgspec import structs

from omnigraph.errors import Cancelled, PreconditionFailed
from omnigraph.graph_proposals import Proposal, proposal_feed
from omnigraph.operations.proposals.event_feed import ProposalFeed
from omnigraph.operations.proposals.proposal_info import ProposalInfo
from omnigraph.server.caller import Caller
from omnigraph.server.messages.answers import Answer, Events
from omnigraph.server.messages.details import typed_members
from omnigraph.server.stream_validity import stream_is_valid
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.branches import MergePreviewDocument
from omnigraph.wire.changes import RowChangeDocument
from omnigraph.wire.document import encoder
from omnigraph.wire.proposals import (
    CheckRowsDocument,
    CommentDocument,
    CommentListDocument,
    LandedDocument,
    ProposalDiffDocument,
    ProposalDocument,
    ProposalEventListDocument,
    ProposalListDocument,
    StreamedEventDocument,
)
from omnigraph.wire.requests.proposals import (
    CheckRequest,
    CloseRequest,
    CommentRequest,
    EditCommentRequest,
    EditProposalRequest,
    LandRequest,
    ProposalDiffQuery,
    ProposalEventsQuery,
    ProposalQuery,
    ProposalsQuery,
    ProposalStreamQuery,
    ProposeRequest,
    ReportCheckRequest,
    ResolveRequest,
    ReviewRequest,
)

_LIST = 100
"""Number of proposals, and of changes, of a page by default."""


def list_proposals(caller: Caller, body: ProposalsQuery) -> ProposalListDocument:
    """List proposals, newest first."""
    limit = body.limit or _LIST
    found = caller.graph.proposals(
        body.state or "open",
        target=body.target,
        author=body.author,
        reviewer=body.reviewer,
        label=body.label,
        limit=limit,
        after=body.after,
    )
    next_ = found[-1].id if len(found) == limit else None
    return ProposalListDocument([_document(info) for info in found], next_)


def propose(caller: Caller, body: ProposeRequest) -> Answer:
    """Open a proposal, try the merge, and run the checks."""
    target = body.target or MAIN
    if caller.if_commit is not None and caller.graph.head(target).commit_id != caller.if_commit:
        raise PreconditionFailed(target, expected=caller.if_commit, actual=caller.graph.head(target).commit_id)
    found = caller.graph.propose(
        body.source,
        target,
        title=body.title,
        body=body.body,
        labels=body.labels or (),
        reviewers=body.reviewers or (),
        draft=body.draft,
        idempotency_key=caller.idempotency_key,
        cancel=caller.cancel,
        timeout=caller.long_timeout_s,
    )
    return _answer(found)


def get_proposal(caller: Caller, body: ProposalQuery, proposal: str) -> ProposalDocument:
    """Return a proposal."""
    del body
    return _document(caller.graph.proposal(proposal).info)


def edit_proposal(caller: Caller, body: EditProposalRequest, proposal: str) -> Answer:
    """Change the title, description, labels, reviewers or the draft state of a proposal."""
    return _answer(_changeable(caller, proposal).edit(**structs.asdict(body)))


def diff_proposal(caller: Caller, body: ProposalDiffQuery, proposal: str) -> Answer:
    """Return what a proposal would change, in pages."""
    found = caller.graph.proposal(proposal).diff(
        types=body.type, ops=body.op, limit=body.limit or _LIST, after=body.after
    )
    first, last = found.commits
    document = ProposalDiffDocument(
        from_commit_id=first,
        to_commit_id=last,
        schema_steps=list(found.schema_steps),
        changes=[RowChangeDocument.of(change.to_json(caller.row_value)) for change in found],
        next=found.next,
    )
    return Answer(document)


def proposal_conflicts(caller: Caller, body: ProposalQuery, proposal: str) -> MergePreviewDocument:
    """Plan the merge of a proposal, with the conflicts that the caller may see."""
    del body
    found = caller.graph.proposal(proposal)
    plan = found.conflicts()
    details = typed_members(caller, source_commit=plan.source_commit, renamed_tables=plan.renamed)
    members = {"source": found.source, "target": found.target, **plan.to_json(caller.row_value), **details}
    return MergePreviewDocument.of(members)


def list_comments(caller: Caller, body: ProposalQuery, proposal: str) -> CommentListDocument:
    """List the comments of a proposal."""
    del body
    return CommentListDocument.of(caller.graph.proposal(proposal).comments().to_json())


def add_comment(caller: Caller, body: CommentRequest, proposal: str) -> CommentDocument:
    """Comment on a proposal, or on a row or property of the graph."""
    on = None if body.on is None else {name: value for name, value in structs.asdict(body.on).items() if value}
    found = _changeable(caller, proposal).comment(
        body.text, on=on, reply_to=body.reply_to, idempotency_key=caller.idempotency_key
    )
    return CommentDocument.of(found.to_json())


def edit_comment(caller: Caller, body: EditCommentRequest, proposal: str, comment: str) -> CommentDocument:
    """Replace the text of an own comment, or close or open a thread."""
    found = _changeable(caller, proposal).edit_comment(comment, body.text, resolved=body.resolved)
    return CommentDocument.of(found.to_json())


def review_proposal(caller: Caller, body: ReviewRequest, proposal: str) -> Answer:
    """Approve a proposal, request changes, or retract a verdict."""
    found = _changeable(caller, proposal)
    if body.verdict == "retract":
        return _answer(found.retract(body.text))
    review = found.approve if body.verdict == "approve" else found.request_changes
    return _answer(review(body.text, commit=body.commit))


def resolve_proposal(caller: Caller, body: ResolveRequest, proposal: str) -> Answer:
    """Choose how the conflicts of a proposal are resolved, and try the merge again."""
    return _answer(_changeable(caller, proposal).resolve(body.resolve))


def check_proposal(caller: Caller, body: CheckRequest, proposal: str) -> Answer:
    """Try the merge of the current heads and run the checks."""
    return _answer(_changeable(caller, proposal).check(again=body.again))


def check_rows(caller: Caller, body: ProposalQuery, proposal: str, check: str) -> CheckRowsDocument:
    """Return rows of a stored query that is a check, on the trial."""
    del body
    found = caller.graph.proposal(proposal).check_rows(check)
    return CheckRowsDocument(
        found.name, [caller.row_value(row) for row in found.rows], found.total, dict(found.node_types)
    )


def report_check(caller: Caller, body: ReportCheckRequest, proposal: str, check: str) -> Answer:
    """Record the result of an external check of a trial."""
    found = _changeable(caller, proposal).report_check(check, body.state, commit=body.commit, details=body.details)
    return _answer(found)


def land_proposal(caller: Caller, body: LandRequest, proposal: str) -> Answer:
    """Land a proposal as one commit of its target; everything that prevents it is reported."""
    found = _changeable(caller, proposal)
    commit = found.land(body.message, timeout=caller.long_timeout_s)
    document = caller.commit_document(commit.id)
    assert document is not None
    return Answer(LandedDocument(_document(found.info), document), commit=commit.id)


def close_proposal(caller: Caller, body: CloseRequest, proposal: str) -> Answer:
    """Close a proposal without landing it."""
    return _answer(_changeable(caller, proposal).close(body.why))


def reopen_proposal(caller: Caller, body: ProposalQuery, proposal: str) -> Answer:
    """Open a closed proposal again."""
    del body
    return _answer(_changeable(caller, proposal).reopen())


def list_events(caller: Caller, body: ProposalEventsQuery, proposal: str) -> ProposalEventListDocument:
    """List the events of a proposal that the caller may see."""
    found = caller.graph.proposal_events(proposal, after=body.after)
    return ProposalEventListDocument.of({"events": [event.to_json() for event in found]})


def stream_proposals(caller: Caller, body: ProposalStreamQuery) -> Events:
    """Send the events of proposals as they are written. The id of an event continues the stream after it."""
    return Events(_ProposalEvents(caller, body).poll)


class _ProposalEvents:
    """The events of one stream; it ends like a stream of changes."""

    def __init__(self, caller: Caller, body: ProposalStreamQuery) -> None:
        self._caller = caller
        self._target = body.target
        self._feed: ProposalFeed = proposal_feed(caller.graph)
        self._cursor = caller.headers.get("last-event-id") or body.cursor
        self._started = False

    def poll(self) -> bytes | None:
        """Return the next events, nothing if there are none, or None at the end of the stream."""
        try:
            if not self._started:
                self._started = True
                self._feed.start(self._cursor)
                return b": started\n\n" if self._cursor is None else self._events()
            return self._events() if stream_is_valid(self._caller) else None
        except Cancelled:
            return None

    def _events(self) -> bytes:
        parts = []
        for found in self._feed.poll():
            record, event = found.record, found.event
            if self._target is not None and record.target != self._target:
                continue
            members = {"proposal": record.id, "source": record.source, "target": record.target}
            document = StreamedEventDocument.of({**members, "event": event.to_json()})
            head = f"id: {found.cursor}\nevent: proposal.{event.kind}\ndata: ".encode()
            parts.append(head + encoder.encode(document) + b"\n\n")
        return b"".join(parts)


def _changeable(caller: Caller, proposal: str) -> Proposal:
    """Return a proposal to change; with `If-Match`, its target must be at that commit."""
    found = caller.graph.proposal(proposal)
    if caller.if_commit is not None and found.info.target_head != caller.if_commit:
        raise PreconditionFailed(found.target, expected=caller.if_commit, actual=found.info.target_head)
    return found


def _answer(proposal: Proposal) -> Answer:
    return Answer(_document(proposal.info))


def _document(info: ProposalInfo) -> ProposalDocument:
    return ProposalDocument.of(info.to_json())
