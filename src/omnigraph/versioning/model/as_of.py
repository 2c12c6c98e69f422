"""As-of lookup: the commit of a branch at a version or a time.

The commits made on a branch form a line that only grows at its end. Before the branch was created, its history
continues on the line of the commit it was forked from. Every commit and every head records its line: the branch, the
manifest version in which that branch was created (a name can be reused), and the commit it was forked from. A point in
the past is therefore found by filtering the version numbers of one line, not by following parents.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from omnigraph.errors import CommitNotFound, Damaged, Hint
from omnigraph.storage.manifest.manifest_schema import HistoryFilter
from omnigraph.storage.manifest.manifest_table import ManifestTable
from omnigraph.versioning.model.ids import first_ulid
from omnigraph.versioning.model.manifest_objects import MAIN, Commit, Head, microseconds
from omnigraph.versioning.model.manifest_rows import row_to_commit
from omnigraph.versioning.model.point_text import not_a_point
from omnigraph.versioning.model.state import State


def commit_as_of(manifest: ManifestTable, state: State, branch: str, at: int | datetime) -> Commit:
    """Return the newest commit on a branch's line that existed at a manifest version or time.

    A time after the head gives the head. A version that does not exist yet, and a point before the first commit, raise
    `CommitNotFound`; the error contains the available range.
    """
    if isinstance(at, bool) or not isinstance(at, int | datetime):
        raise not_a_point(at)
    version, time_us = (None, microseconds(at)) if isinstance(at, datetime) else (at, None)
    head = state.get_head(branch)
    if version is not None and version > state.version:
        raise _no_point(manifest, state, branch, at)
    line: Head | Commit = head
    last = head.manifest_version if version is None else max(0, min(version, head.manifest_version))
    while True:
        for commit_id in _newest_first(manifest, state, line, last, time_us):
            commit = _commit(manifest, state, commit_id)
            if time_us is None or commit.created_us <= time_us:
                return commit
        if line.fork_commit_id is None:
            raise _no_point(manifest, state, branch, at)
        line = _commit(manifest, state, line.fork_commit_id)
        last = min(last, line.manifest_version)


def span_of(manifest: ManifestTable, state: State, branch: str) -> tuple[Commit, Commit]:
    """Return the first and the last commit of a branch's line."""
    head = state.get_head(branch)
    line: Head | Commit = head
    while line.fork_commit_id is not None:
        line = _commit(manifest, state, line.fork_commit_id)
    *_, first = _newest_first(manifest, state, line, line.manifest_version, None)
    return _commit(manifest, state, first), _commit(manifest, state, head.commit_id)


def _no_point(manifest: ManifestTable, state: State, branch: str, at: int | datetime) -> CommitNotFound:
    first, last = span_of(manifest, state, branch)
    if isinstance(at, datetime):
        message = f"branch '{branch}' has no commit as old as {at.isoformat()}"
        known = f"its first commit was made at {format_time(first)}, its last at {format_time(last)}"
    else:
        message = f"branch '{branch}' has no version {at}"
        known = f"its versions are {first.manifest_version} to {state.version}"
    return CommitNotFound(
        f"{message}; {known}",
        code="not_found",
        hint=Hint("commits() lists them", cli="'omnigraph commit list' lists them", in_shell="':commits' lists them"),
    )


def format_time(commit: Commit) -> str:
    """Return the creation time of a commit as text."""
    time = commit.created_at
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _newest_first(
    manifest: ManifestTable, state: State, line: Head | Commit, last: int, time_us: int | None
) -> Iterator[str]:
    """Yield the ids of the commits of one line, newest first, up to a version and up to about a time."""
    # An id begins with its creation time in milliseconds.
    id_below = first_ulid(max(time_us, 0) + 1_000) if time_us is not None else None
    branch = None if line.branch == MAIN else line.branch
    wanted = HistoryFilter("graph_commit", above=line.since, up_to=last, branches=(branch,), id_below=id_below)
    found = manifest.scan(state.manifest, wanted, ["object_id", "table_version"])
    for row in sorted(found, key=lambda row: int(row["table_version"]), reverse=True):
        yield row["object_id"]


def _commit(manifest: ManifestTable, state: State, commit_id: str) -> Commit:
    rows = manifest.find(state.manifest, commit_id)
    if not rows:
        raise Damaged(f"commit {commit_id} is missing from the history", code="damaged_manifest")
    return row_to_commit(rows[0])
