"""Retention: the table versions that a cleanup keeps.

The age of a commit is measured by two clocks, the writer's (`created_at`) and the store's (the write times of its table
versions), and is monotonic along a line of history: a commit is never older than a commit before it. A writer with a
slow clock therefore cannot make its commit, or the commits before it, look old. A writer's time in the future is
ignored; then the store's time counts alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from omnigraph.versioning.model.ancestry import meeting_points
from omnigraph.versioning.model.manifest_objects import Commit, Pin, microseconds
from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.repository import Repository

TableId = tuple[int, int]
"""Table id and incarnation."""

Written = Mapping[tuple[int, int, int], datetime]
"""Table id, incarnation and Lance version → time at which the store wrote the version."""


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """The commits of a branch that a cleanup retains."""

    keep: int | None
    """The number of newest commits; None if the number does not count."""
    since: datetime | None
    """Commits made at this time or later; None if the age does not count."""
    in_use_since: datetime
    """Commits that were a head at this time or later, because a process may still use them."""


def live_versions(
    repository: Repository, state: State, written: Written, now: datetime, policy: RetentionPolicy
) -> dict[TableId, set[int]]:
    """Return table → versions that a head, a tag or a retained commit pins."""
    commits = repository.all_commits(state)
    pins = repository.all_pins(state)
    times = _CommitTimes(commits, pins, written, microseconds(now))
    retained: set[str] = set()
    for head in state.heads():
        retained |= _retained(head.commit_id, commits, times, policy)
    live = needed_versions(repository, state)
    for commit_id in retained.intersection(pins):
        _add(live, pins[commit_id])
    return live


def needed_versions(repository: Repository, state: State) -> dict[TableId, set[int]]:
    """Return table → versions that a head, a tag or a merge of two branches needs.

    Without the rows of their merge base, two branches could no longer be merged.
    """
    commits = repository.all_commits(state)
    pins = repository.all_pins(state)
    heads = state.heads()
    bases = set(meeting_points((head.commit_id for head in heads), lambda commit_id: commits[commit_id].parents))
    bases.update(head.fork_commit_id for head in heads if head.fork_commit_id is not None)
    needed = pinned_versions(state)
    for commit_id in bases.intersection(pins):
        _add(needed, pins[commit_id])
    return needed


def pinned_versions(state: State) -> dict[TableId, set[int]]:
    """Return table → versions that a head or a tag pins."""
    pinned: dict[TableId, set[int]] = {}
    _add(pinned, state.protected_pins())
    return pinned


def _add(versions: dict[TableId, set[int]], pins: Iterable[Pin]) -> None:
    for pin in pins:
        versions.setdefault((pin.table_id, pin.incarnation), set()).update(pin.versions)


class _CommitTimes:
    """The time of each commit; never earlier than that of its parent."""

    def __init__(
        self, commits: Mapping[str, Commit], pins: Mapping[str, tuple[Pin, ...]], written: Written, now_us: int
    ) -> None:
        self._commits = commits
        self._pins = pins
        self._written = written
        self._now_us = now_us
        self._known: dict[str, int] = {}

    def of(self, commit_id: str) -> int:
        """Return the time in microseconds since the epoch."""
        line: list[Commit] = []
        commit = self._commits.get(commit_id)
        while commit is not None and commit.id not in self._known:
            line.append(commit)
            commit = self._commits.get(commit.parent_id) if commit.parent_id else None
        time = self._known[commit.id] if commit is not None else 0
        for commit in reversed(line):
            time = max(time, self._own_time(commit))
            self._known[commit.id] = time
        return self._known.get(commit_id, 0)

    def _own_time(self, commit: Commit) -> int:
        before = set(self._pins.get(commit.parent_id, ())) if commit.parent_id else set()
        times = [commit.created_us] if commit.created_us <= self._now_us else []
        for pin in self._pins.get(commit.id, ()):
            if pin not in before:
                newest = max(pin.versions)
                written = self._written.get((pin.table_id, pin.incarnation, newest))
                if written is not None:
                    times.append(microseconds(written))
        return max(times, default=0)


def _retained(
    start: str,
    commits: Mapping[str, Commit],
    times: _CommitTimes,
    policy: RetentionPolicy,
) -> set[str]:
    keep = policy.keep
    retained: set[str] = set()
    position = 0
    commit = commits.get(start)
    replaced_at: int | None = None
    while commit is not None:
        time = times.of(commit.id)
        young = policy.since is not None and time >= microseconds(policy.since)
        newest = keep is not None and position < max(keep, 1)
        in_use = replaced_at is not None and replaced_at >= microseconds(policy.in_use_since)
        if young or newest or in_use:
            retained.add(commit.id)
        elif keep is None or position >= keep:
            break
        position += 1
        replaced_at = time
        commit = commits.get(commit.parent_id) if commit.parent_id else None
    return retained
