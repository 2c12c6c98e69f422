"""`GraphProposals`: the methods of `Graph` for proposals, and `Proposal`, the handle of one.

proposal = graph.propose("review/spring", into="main", title="Spring survey")
proposal.state, proposal.blocked_by        # "blocked", what is missing
proposal.diff()                            # what would land
graph.as_reviewer.proposal(proposal.id).approve()
proposal.land()                            # the commit
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from omnigraph.graph_entities import GraphEntities
from omnigraph.operations.stoppable import stoppable
from omnigraph.proposal_fields import ProposalFields

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.operations.merge.conflict_rules import Resolve
    from omnigraph.operations.merge.merge_preview import MergePreview
    from omnigraph.operations.proposals.event_feed import ProposalFeed
    from omnigraph.operations.proposals.land_proposal import ProposalLanding
    from omnigraph.operations.proposals.proposal_events import ProposalEvent
    from omnigraph.operations.proposals.proposal_info import CheckInfo, CheckRows, CommentList, ProposalInfo
    from omnigraph.operations.proposals.proposal_record import CommentRecord
    from omnigraph.operations.proposals.proposals import Proposals
    from omnigraph.versioning.compare.changeset import ChangeSet
    from omnigraph.versioning.model.manifest_objects import Commit


class GraphProposals(GraphEntities):
    """The proposals of a graph."""

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
    ) -> Proposal:
        """Propose to bring a branch into `into`, by default the branch of this handle.

        The merge is tried on a hidden branch, and the checks run on the result, unless the proposal is a draft.
        `idempotency_key` is as in `mutate`, `cancel` and `timeout` are as in `load`.
        """
        from omnigraph.operations.proposals.proposal_input import NewProposal

        self._check_actor(actor)
        new = NewProposal.of(self._name(source), self._branch(into), title, body, labels, reviewers, draft=draft)
        proposals = self._proposals(actor)
        with stoppable("proposal", cancel, timeout):
            proposal_id = proposals.open(new, idempotency_key)
            record = proposals.record(proposal_id)
            if not record.draft and record.trial is None and not record.is_ended:
                self._landing(actor).run(proposal_id)
        return Proposal(self, proposals.get(proposal_id), actor or self.actor)

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
    ) -> list[ProposalInfo]:
        """Return proposals, newest first, without their bodies.

        `state` is "open" for all that are neither landed nor closed, "all", or one state: draft, checking, blocked,
        ready, landing, landed, closed. `after` is the id of the last proposal of the page before.
        """
        from omnigraph.operations.proposals.proposal_input import ProposalFilter

        self._context.check("read")
        return self._proposals().search(ProposalFilter.of(state, target, author, reviewer, label, limit, after))

    def proposal(self, id: str) -> Proposal:
        """Return a proposal by its id."""
        self._check_proposals()
        return Proposal(self, self._proposals().get(id), self.actor)

    def proposal_events(self, id: str, *, after: int = 0) -> list[ProposalEvent]:
        """Return the events of a proposal with numbers above `after`, as the caller may see them."""
        self._check_proposals()
        return self._proposals().events(id, after)

    def _proposal_feed(self) -> ProposalFeed:
        """Return a feed of the events of all proposals."""
        from omnigraph.operations.proposals.event_feed import ProposalFeed

        self._check_proposals()
        return ProposalFeed(self._proposals())

    def _check_proposals(self) -> None:
        """Refuse a caller who may read nothing."""
        if self._context.access is not None:
            self._context.access.check_possible("read")

    def _proposals(self, actor: str | None = None) -> Proposals:
        from omnigraph.operations.proposals.proposals import Proposals

        return Proposals(self._context, actor or self.actor)

    def _landing(self, actor: str | None = None) -> ProposalLanding:
        from omnigraph.operations.proposals.land_proposal import ProposalLanding

        return ProposalLanding(self._proposals(actor))


def proposal_feed(graph: GraphProposals) -> ProposalFeed:
    """Return a feed of the events of all proposals that the caller of a graph may see."""
    return graph._proposal_feed()


class Proposal(ProposalFields):
    """A proposal of a graph: its state when it was read last, and what can be done with it.

    Methods that change it read it again. `actor` is the author of these changes.
    """

    def __init__(self, graph: GraphProposals, info: ProposalInfo, actor: str | None = None) -> None:
        super().__init__(info)
        self._graph = graph
        self.actor = actor

    # -- reading ---------------------------------------------------------------------------------

    def refresh(self) -> Proposal:
        """Read the state again."""
        self.info = self._proposals.get(self.id)
        return self

    def diff(
        self,
        *,
        types: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> ChangeSet:
        """Return what would land: the changes from the head of the target to the trial.

        Without a trial, the changes of the source since it was forked; after the landing, those of its commit. `limit`
        and `after` are as in `Graph.diff`.
        """
        from omnigraph.operations.proposals.proposal_diff import proposal_diff
        from omnigraph.versioning.feed.commit_changes import ChangeFilter

        wanted = ChangeFilter.of(None, types, ops)
        return proposal_diff(self._graph._history, self._proposals, self.id, wanted, limit=limit, after=after)

    def conflicts(self) -> MergePreview:
        """Return the plan of the merge with its conflicts; those in rows that the caller cannot see are counted."""
        return self._landing.conflicts(self.id)

    def checks(self) -> tuple[CheckInfo, ...]:
        """Return the checks and their newest results."""
        return self.refresh().info.checks

    def check_rows(self, name: str) -> CheckRows:
        """Return rows of a check that is a stored query, at most a hundred, on the trial."""
        return self._landing.check_rows(self.id, name)

    def comments(self) -> CommentList:
        """Return the comments; those on rows that the caller cannot see are counted."""
        return self._proposals.comments(self.id)

    def events(self, after: int = 0) -> Iterator[ProposalEvent]:
        """Yield the events with numbers above `after`."""
        yield from self._graph.proposal_events(self.id, after=after)

    # -- changing --------------------------------------------------------------------------------

    def edit(
        self,
        *,
        title: str | None = None,
        body: str | None = None,
        labels: Sequence[str] | None = None,
        reviewers: Sequence[str] | None = None,
        draft: bool | None = None,
    ) -> Proposal:
        """Change the title, body, labels, reviewers or the draft state; an absent argument changes nothing."""
        from omnigraph.operations.proposals.proposal_input import edits_of

        changes = edits_of(title=title, body=body, labels=labels, reviewers=reviewers, draft=draft)
        self._proposals.edit(self.id, changes)
        if draft is False and self.refresh().trial is None:
            self._landing.run(self.id)
        return self.refresh()

    def comment(
        self,
        text: str,
        *,
        on: Mapping[str, str] | None = None,
        reply_to: str | None = None,
        idempotency_key: str | None = None,
    ) -> CommentRecord:
        """Add a comment; `on` names a row: `{"table_key": "node:Person", "row_id": "ana", "property": "age"}`."""
        found = self._proposals.comment(self.id, text, on, reply_to, idempotency_key)
        self.refresh()
        return found

    def edit_comment(self, id: str, text: str | None = None, *, resolved: bool | None = None) -> CommentRecord:
        """Replace the text of an own comment, or mark a comment as resolved or not."""
        return self._proposals.edit_comment(self.id, id, text, resolved=resolved)

    def approve(self, text: str | None = None, *, commit: str | None = None) -> Proposal:
        """Approve the head of the source; the approval is void when the source moves.

        With `commit`, the head must still be that commit.
        """
        return self._review("approve", text, commit)

    def request_changes(self, text: str | None = None, *, commit: str | None = None) -> Proposal:
        """Object to the landing until a later verdict of the same reviewer."""
        return self._review("request_changes", text, commit)

    def retract(self, text: str | None = None) -> Proposal:
        """Withdraw an earlier verdict."""
        return self._review("retract", text, None)

    def _review(self, verdict: str, text: str | None, commit: str | None) -> Proposal:
        self._proposals.review(self.id, verdict, text, commit)
        return self.refresh()

    def resolve(self, resolve: Resolve) -> Proposal:
        """Choose how conflicts are resolved, as in `Graph.merge`, and try the merge again."""
        self._proposals.resolve(self.id, resolve)
        return self.check()

    def check(self, *, again: bool = False) -> Proposal:
        """Try the merge of the current heads and run the checks without a result; with `again`, all checks."""
        self._landing.check(self.id, again=again)
        return self.refresh()

    def report_check(self, name: str, state: str, *, commit: str, details: str | None = None) -> Proposal:
        """Record the result of an external check of a trial: pass, fail, error or pending."""
        self._landing.report(self.id, name, state, details, commit)
        return self.refresh()

    def land(self, message: str | None = None, *, timeout: float | None = None) -> Commit:
        """Land the proposal as one commit of the target, or raise `ProposalBlocked`.

        What lands is the trial that was checked. If the branches moved, the merge is tried and checked again first. A
        repeated call returns the commit.
        """
        with stoppable("landing", None, timeout, writes=True):
            commit = self._landing.land(self.id, message)
        self.refresh()
        return self._graph._context.visible_commit(commit)

    def close(self, why: str | None = None) -> Proposal:
        """Close the proposal without landing it."""
        self._proposals.close(self.id, why)
        return self.refresh()

    def reopen(self) -> Proposal:
        """Open a closed proposal again; `check` tries the merge."""
        self._proposals.reopen(self.id)
        return self.refresh()

    @property
    def _proposals(self) -> Proposals:
        return self._graph._proposals(self.actor)

    @property
    def _landing(self) -> ProposalLanding:
        return self._graph._landing(self.actor)
