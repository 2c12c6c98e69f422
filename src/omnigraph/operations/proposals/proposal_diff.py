"""The difference that a proposal makes: from the head of its target to its trial.

Both sides are judged by the rules for rows of the target, wherever their commits were made. Before the landing, the
rules of the source must show the caller the same rows and values. A cursor is a text of the
caller: it continues only at the commits that the proposal has now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from omnigraph.errors import Conflict, PageCursorRejected
from omnigraph.operations.proposals.proposal_record import ProposalRecord
from omnigraph.operations.proposals.proposal_rights import check_source
from omnigraph.versioning.feed.diff_pages import DiffCursor, request_digest
from omnigraph.versioning.model.ancestry import merge_bases
from omnigraph.versioning.model.snapshot import Snapshot, on_branch

if TYPE_CHECKING:
    from omnigraph.operations.proposals.proposal_status import ManifestFacts
    from omnigraph.operations.proposals.proposals import Proposals
    from omnigraph.versioning.compare.changeset import ChangeSet
    from omnigraph.versioning.feed.commit_changes import ChangeFilter


class SnapshotDiff(Protocol):
    """Compares snapshots as the caller may see them; `GraphHistory` does."""

    def diff_between(self, before: Snapshot, after: Snapshot, title: str, wanted: ChangeFilter) -> ChangeSet:
        """Return the differences between two snapshots."""

    def page_between(
        self,
        first: Snapshot,
        last: Snapshot,
        title: str,
        wanted: ChangeFilter,
        *,
        limit: int | None,
        cursor: DiffCursor | None,
        digest: str,
    ) -> ChangeSet:
        """Return one page of the differences."""


def proposal_diff(
    history: SnapshotDiff,
    proposals: Proposals,
    proposal_id: str,
    wanted: ChangeFilter,
    *,
    limit: int | None = None,
    after: str | None = None,
) -> ChangeSet:
    """Return the changes of a proposal, or one page of them. The caller must be able to read both branches."""
    record = proposals.record(proposal_id)
    for branch in (record.target, record.source):
        if proposals.repository.state().find_head(branch) is not None:
            proposals.context.check_head(branch)
        elif proposals.context.access is not None:
            proposals.context.check("read", branch)
    title, facts = f"proposal {record.id}", proposals.facts([record])[0]
    if facts.landed is None:
        check_source(proposals.context, record, "the diff")
    first, last = _sides(proposals, record, facts)
    if limit is None and after is None:
        return history.diff_between(first, last, title, wanted)
    digest = request_digest(proposals.repository.genesis_id, ("proposal", record.id, ""), wanted)
    cursor = DiffCursor.read(after, digest) if after is not None else None
    if cursor is not None and (cursor.before, cursor.after) != (first.commit_id, last.commit_id):
        raise PageCursorRejected(f"the commits of proposal {record.id} have changed since its first page")
    return history.page_between(first, last, title, wanted, limit=limit, cursor=cursor, digest=digest)


def _sides(proposals: Proposals, record: ProposalRecord, facts: ManifestFacts) -> tuple[Snapshot, Snapshot]:
    repository = proposals.repository
    if facts.landed is not None:
        commit = repository.get_commit(facts.landed)
        assert commit.parent_id is not None, "a landing has parents"
        return _at(proposals, record, commit.parent_id), _at(proposals, record, commit.id)
    trial = record.trial
    if trial is not None and trial.commit is not None and trial.commit == facts.trial_head:
        return _at(proposals, record, trial.base), _at(proposals, record, trial.commit)
    if facts.source_head is None or facts.target_head is None:
        raise Conflict(f"proposal {record.id} has no trial, and a branch of it is deleted", code="no_trial")
    commits = repository.all_commits()
    bases = merge_bases(facts.target_head, facts.source_head, commits)
    base = max(bases, key=lambda commit_id: commits[commit_id].manifest_version)
    return _at(proposals, record, base), _at(proposals, record, facts.source_head)


def _at(proposals: Proposals, record: ProposalRecord, commit_id: str) -> Snapshot:
    """Return a commit of a proposal as a point of its target."""
    return on_branch(proposals.repository.snapshot(at=commit_id), record.target)
