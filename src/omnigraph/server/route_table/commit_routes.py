"""Routes of commits."""

from __future__ import annotations

from omnigraph.server.route import Gate, Route
from omnigraph.server.routes import commits
from omnigraph.wire.branches import RevertDocument, RevertPreviewDocument
from omnigraph.wire.change_feed import CommitChangesAnswerDocument
from omnigraph.wire.commits import CommitDocument, CommitListDocument
from omnigraph.wire.requests.branches import RevertPreviewRequest, RevertRequest
from omnigraph.wire.requests.commits import CommitChangesQuery, CommitListQuery, CommitQuery

_COMMIT = Gate("read", unless=("commit_id",))
"""`Graph` decides with the branch on which the commit was made."""
_NAMED = Gate("read", branch="branch", given="branch")
"""A branch that the request names must be readable."""

ROUTES: tuple[Route, ...] = (
    Route(
        name="listCommits",
        method="GET",
        path="/commits",
        handler=commits.list_commits,
        tag="commits",
        summary="List the commits of a branch, newest first.",
        input=CommitListQuery,
        answer=CommitListDocument,
        gates=(Gate("read", branch="branch", unless=("every_branch",)),),
        forms=("json", "ndjson"),
        etag=True,
        strict=False,
    ),
    Route(
        name="getCommit",
        method="GET",
        path="/commits/{commit_id}",
        handler=commits.get_commit,
        tag="commits",
        summary="Return one commit.",
        input=CommitQuery,
        answer=CommitDocument,
        gates=(_COMMIT, _NAMED),
        etag=True,
        strict=False,
    ),
    Route(
        name="getCommitChanges",
        method="GET",
        path="/commits/{commit_id}/changes",
        handler=commits.get_commit_changes,
        tag="commits",
        summary="Return the changes of one commit relative to its first parent.",
        input=CommitChangesQuery,
        answer=CommitChangesAnswerDocument,
        gates=(Gate("read", unless=("commit_id",), hides=True), _NAMED),
        statuses=(409, 410),
    ),
    Route(
        name="revertCommit",
        method="POST",
        path="/commits/{commit_id}/revert",
        handler=commits.revert_commit,
        tag="commits",
        summary="Undo one commit by a new commit.",
        input=RevertRequest,
        answer=RevertDocument,
        gates=(Gate("change", branch="branch"), _COMMIT),
        lane="writes",
        body="json",
        writes=True,
        statuses=(409, 410),
    ),
    Route(
        name="previewRevert",
        method="POST",
        path="/commits/{commit_id}/revert/preview",
        handler=commits.preview_revert,
        tag="commits",
        summary="Plan a revert, with all conflicts; nothing is written.",
        input=RevertPreviewRequest,
        answer=RevertPreviewDocument,
        gates=(Gate("read", branch="branch"),),
        body="json",
        statuses=(409, 410),
    ),
)
