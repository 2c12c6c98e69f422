"""Calls of proposals: those of a graph, and those of one proposal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.client.call import Call
from omnigraph.client.calls.diffs import Difference
from omnigraph.client.calls.handle import CallHandle
from omnigraph.client.messages import TYPED_JSON, Response
from omnigraph.client.results.changes import row_change_of
from omnigraph.client.results.history import commit_of
from omnigraph.client.results.merges import preview_of
from omnigraph.operations.proposals.proposal_events import ProposalEvent
from omnigraph.operations.proposals.proposal_info import (
    CheckInfo,
    CheckRows,
    CommentList,
    ProposalInfo,
    comment_from_json,
)
from omnigraph.operations.proposals.proposal_input import (
    NewProposal,
    ProposalFilter,
    anchor_of,
    check_proposal_id,
    edits_of,
)
from omnigraph.versioning.feed.diff_pages import check_limit
from omnigraph.wire.branches import MergePreviewDocument
from omnigraph.wire.proposals import (
    CheckRowsDocument,
    CommentDocument,
    CommentListDocument,
    LandedDocument,
    ProposalDiffDocument,
    ProposalDocument,
    ProposalEventListDocument,
    ProposalListDocument,
)
from omnigraph.wire.requests.proposals import (
    CheckRequest,
    CloseRequest,
    CommentPlace,
    CommentRequest,
    EditCommentRequest,
    EditProposalRequest,
    LandRequest,
    ProposalDiffQuery,
    ProposalEventsQuery,
    ProposalQuery,
    ProposalsQuery,
    ProposeRequest,
    ReportCheckRequest,
    ResolveRequest,
    ReviewRequest,
)
from omnigraph.wire.requests.request import LIST_MAX
from omnigraph.wire.typed_values import untyped_value

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.operations.merge.conflict_rules import Resolve
    from omnigraph.operations.merge.merge_preview import MergePreview
    from omnigraph.operations.proposals.proposal_record import CommentRecord
    from omnigraph.versioning.compare.diff import RowChange
    from omnigraph.versioning.model.manifest_objects import Commit


class ProposalCalls(CallHandle):
    """Calls of the proposals of a graph."""

    def propose(
        self,
        source: str,
        into: str | None = None,
        *,
        title: str,
        body: str | None = None,
        labels: Sequence[str] = (),
        reviewers: Sequence[str] = (),
        draft: bool = False,
        actor: str | None = None,
        idempotency_key: str | None = None,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[ProposalInfo]:
        """Propose to bring a branch into `into`, by default the branch of this handle."""
        self._check_actor("propose", actor)
        new = NewProposal.of(source, self._branch(into), title, body, labels, reviewers, draft=draft)
        input = ProposeRequest(
            source=new.source,
            target=new.target,
            title=new.title,
            body=new.body,
            labels=list(new.labels),
            reviewers=list(new.reviewers),
            draft=new.draft,
        )
        return _info((yield self._write("proposals", input=input, key=idempotency_key, cancel=cancel, timeout=timeout)))

    def proposals(
        self,
        state: str = "open",
        *,
        target: str | None = None,
        author: str | None = None,
        reviewer: str | None = None,
        label: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Call[list[ProposalInfo]]:
        """Return proposals, newest first, without their bodies."""
        wanted = ProposalFilter.of(state, target, author, reviewer, label, limit, after)
        input = ProposalsQuery(
            state=state,  # type: ignore[arg-type]
            target=target,
            author=author,
            reviewer=reviewer,
            label=label,
            limit=wanted.limit,
            after=wanted.after,
        )
        found = (yield self._get("proposals", input=input)).document(ProposalListDocument).proposals
        return [ProposalInfo.from_json(document.to_json()) for document in found]

    def proposal(self, id: str) -> Call[ProposalInfo]:
        """Return a proposal by its id."""
        return _info((yield self._get("proposals", check_proposal_id(id), input=ProposalQuery())))

    def proposal_events(self, id: str, *, after: int = 0) -> Call[list[ProposalEvent]]:
        """Return the events of a proposal with numbers above `after`, as the caller may see them."""
        request = self._get("proposals", check_proposal_id(id), "events", input=ProposalEventsQuery(after=after))
        found = (yield request).document(ProposalEventListDocument).events
        return [
            ProposalEvent(each.number, each.kind, each.actor_id, each.created_at, each.data, each.request_id)
            for each in found
        ]


class OneProposalCalls(CallHandle):
    """Calls of one proposal, with the parameters of the methods of `Proposal`."""

    def __init__(self, handle: CallHandle, id: str) -> None:
        super().__init__(handle.url, handle.branch, handle.actor)
        self.id = id

    def refresh(self) -> Call[ProposalInfo]:
        """Read the state again."""
        return _info((yield self._get("proposals", self.id, input=ProposalQuery())))

    def diff(
        self,
        *,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Call[Difference]:
        """Return what would land: the changes from the head of the target to the trial."""
        wanted: Any = {"type": None if types is None else list(types), "op": None if ops is None else list(ops)}
        most = check_limit(limit) if limit is not None or after is not None else None
        changes: list[RowChange] = []
        while True:
            count = LIST_MAX if most is None else min(most - len(changes), LIST_MAX)
            input = ProposalDiffQuery(**wanted, limit=count, after=after)
            request = self._get("proposals", self.id, "diff", input=input, accept=TYPED_JSON)
            document = (yield request).document(ProposalDiffDocument)
            changes += map(row_change_of, document.changes)
            after = document.next
            if after is None or (most is not None and len(changes) >= most):
                commits = document.from_commit_id, document.to_commit_id
                title, steps = f"proposal {self.id}", tuple(document.schema_steps)
                return Difference(title, steps, commits, changes, after)

    def conflicts(self) -> Call[MergePreview]:
        """Return the plan of the merge with its conflicts; those in rows that the caller cannot see are counted."""
        request = self._get("proposals", self.id, "conflicts", input=ProposalQuery(), accept=TYPED_JSON)
        return preview_of((yield request).document(MergePreviewDocument))

    def checks(self) -> Call[tuple[CheckInfo, ...]]:
        """Return the checks and their newest results."""
        return (yield from self.refresh()).checks

    def check_rows(self, name: str) -> Call[CheckRows]:
        """Return rows of a check that is a stored query, at most a hundred, on the trial."""
        request = self._get("proposals", self.id, "checks", name, input=ProposalQuery(), accept=TYPED_JSON)
        document = (yield request).document(CheckRowsDocument)
        rows = tuple(untyped_value(row) for row in document.rows)
        return CheckRows(document.name, rows, document.total, document.node_types)

    def comments(self) -> Call[CommentList]:
        """Return the comments; those on rows that the caller cannot see are counted."""
        answer = yield self._get("proposals", self.id, "comments", input=ProposalQuery())
        return CommentList.from_json(answer.document(CommentListDocument).to_json())

    def events(self, after: int = 0) -> Call[list[ProposalEvent]]:
        """Return the events with numbers above `after`."""
        calls = ProposalCalls(self.url, self.branch, self.actor)
        return (yield from calls.proposal_events(self.id, after=after))

    def edit(
        self,
        *,
        title: str | None = None,
        body: str | None = None,
        labels: Sequence[str] | None = None,
        reviewers: Sequence[str] | None = None,
        draft: bool | None = None,
    ) -> Call[ProposalInfo]:
        """Change the title, body, labels, reviewers or the draft state; an absent argument changes nothing."""
        edits_of(title=title, body=body, labels=labels, reviewers=reviewers, draft=draft)
        input = EditProposalRequest(
            title=title,
            body=body,
            labels=None if labels is None else list(labels),
            reviewers=None if reviewers is None else list(reviewers),
            draft=draft,
        )
        return _info((yield self._write("proposals", self.id, input=input, method="PATCH")))

    def comment(
        self,
        text: str,
        *,
        on: Mapping[str, str] | None = None,
        reply_to: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[CommentRecord]:
        """Add a comment; `on` names a row: `{"table_key": "node:Person", "row_id": "ana", "property": "age"}`."""
        anchor = anchor_of(on)
        place = None
        if anchor is not None:
            place = CommentPlace(table_key=anchor.table_key, row_id=anchor.row_id, property=anchor.property)
        input = CommentRequest(text=text, on=place, reply_to=reply_to)
        answer = yield self._write("proposals", self.id, "comments", input=input, key=idempotency_key)
        return comment_from_json(answer.document(CommentDocument).to_json())

    def edit_comment(self, id: str, text: str | None = None, *, resolved: bool | None = None) -> Call[CommentRecord]:
        """Replace the text of an own comment, or mark a comment as resolved or not."""
        input = EditCommentRequest(text=text, resolved=resolved)
        answer = yield self._write("proposals", self.id, "comments", id, input=input, method="PATCH")
        return comment_from_json(answer.document(CommentDocument).to_json())

    def approve(self, text: str | None = None, *, commit: str | None = None) -> Call[ProposalInfo]:
        """Approve the head of the source; the approval is void when the source moves."""
        return (yield from self._review(ReviewRequest(verdict="approve", text=text, commit=commit)))

    def request_changes(self, text: str | None = None, *, commit: str | None = None) -> Call[ProposalInfo]:
        """Object to the landing until a later verdict of the same reviewer."""
        return (yield from self._review(ReviewRequest(verdict="request_changes", text=text, commit=commit)))

    def retract(self, text: str | None = None) -> Call[ProposalInfo]:
        """Withdraw an earlier verdict."""
        return (yield from self._review(ReviewRequest(verdict="retract", text=text)))

    def _review(self, input: ReviewRequest) -> Call[ProposalInfo]:
        return _info((yield self._write("proposals", self.id, "review", input=input)))

    def resolve(self, resolve: Resolve) -> Call[ProposalInfo]:
        """Choose how conflicts are resolved, as in `Graph.merge`, and try the merge again."""
        input = ResolveRequest(resolve=resolve)  # type: ignore[arg-type]
        return _info((yield self._write("proposals", self.id, "resolve", input=input)))

    def check(self, *, again: bool = False) -> Call[ProposalInfo]:
        """Try the merge of the current heads and run the checks without a result; with `again`, all checks."""
        return _info((yield self._write("proposals", self.id, "check", input=CheckRequest(again=again))))

    def report_check(self, name: str, state: str, *, commit: str, details: str | None = None) -> Call[ProposalInfo]:
        """Record the result of an external check of a trial: pass, fail, error or pending."""
        input = ReportCheckRequest(state=state, commit=commit, details=details)  # type: ignore[arg-type]
        return _info((yield self._write("proposals", self.id, "checks", name, input=input)))

    def land(self, message: str | None = None, *, timeout: float | None = None) -> Call[Commit]:
        """Land the proposal as one commit of the target, or raise `ProposalBlocked`."""
        input = LandRequest(message=message)
        answer = yield self._write("proposals", self.id, "land", input=input, timeout=timeout, accept=TYPED_JSON)
        return commit_of(answer.document(LandedDocument).commit)

    def close(self, why: str | None = None) -> Call[ProposalInfo]:
        """Close the proposal without landing it."""
        return _info((yield self._write("proposals", self.id, "close", input=CloseRequest(why=why))))

    def reopen(self) -> Call[ProposalInfo]:
        """Open a closed proposal again; `check` tries the merge."""
        return _info((yield self._write("proposals", self.id, "reopen", input=ProposalQuery())))


def _info(response: Response) -> ProposalInfo:
    return ProposalInfo.from_json(response.document(ProposalDocument).to_json())
