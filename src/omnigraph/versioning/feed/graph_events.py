"""Events of a graph in the order of its manifest: commits, and changes of branches and tags.

A position is a manifest version and the number of its events that were read. It identifies its graph by the first
commit, so a folder that was replaced by another graph, or by an older copy, is noticed. The events of internal branches
are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.storage.manifest.manifest_schema import HistoryFilter
from omnigraph.versioning.model.manifest_objects import Commit
from omnigraph.versioning.model.manifest_rows import REF_CHANGE, REF_CHANGE_PREFIX, damaged_row, read_metadata
from omnigraph.versioning.write.ref_names import is_internal
from omnigraph.versioning.write.repository import Repository

VERSIONS = 256
"""Manifest versions that one read covers."""


@dataclass(frozen=True)
class EventPosition:
    """The place after an event."""

    graph: str
    """The first commit of the graph."""
    version: int
    read: int
    """The events of the version that were read; those of earlier versions were all read."""


@dataclass(frozen=True)
class RefChange:
    """A branch or tag that was created, changed or deleted."""

    id: str
    action: str
    name: str
    commit_id: str
    actor: str | None
    created_us: int


@dataclass(frozen=True)
class GraphEvent:
    """A commit or a change of a branch or tag, and the position after it."""

    what: Commit | RefChange
    after: EventPosition


def newest_position(repository: Repository) -> EventPosition:
    """Return the position after all events."""
    return EventPosition(repository.genesis_id, repository.state().version + 1, 0)


def is_lost(repository: Repository, position: EventPosition) -> bool:
    """Return True if a position is of another graph, or of a later state than that of a restored one."""
    return position.graph != repository.genesis_id or position.version > repository.state().version + 1


def read_events(repository: Repository, after: EventPosition) -> tuple[Sequence[GraphEvent], EventPosition]:
    """Return the events of the next versions, and the position after them."""
    state = repository.state()
    first, last = after.version, min(after.version + VERSIONS - 1, state.version)
    if first > last:
        return (), after
    commits = repository.commits_between(state, first - 1, last).values()
    found: list[tuple[int, Commit | RefChange]] = [(commit.manifest_version, commit) for commit in commits]
    rows = repository.manifest.scan(state.manifest, HistoryFilter(REF_CHANGE, above=first - 1, up_to=last))
    found += [(row["table_version"], _ref_change(row)) for row in rows]
    # The sort is stable: the commits of a version precede its changes of branches and tags.
    events: list[GraphEvent] = []
    counts: dict[int, int] = {}
    for version, what in sorted(found, key=lambda pair: pair[0]):
        counts[version] = counts.get(version, 0) + 1
        if not _is_internal(what):
            events.append(GraphEvent(what, EventPosition(after.graph, version, counts[version])))
    return tuple(event for event in events if _is_later(event, after)), EventPosition(after.graph, last + 1, 0)


def _is_later(event: GraphEvent, after: EventPosition) -> bool:
    return (event.after.version, event.after.read) > (after.version, after.read)


def _is_internal(what: Commit | RefChange) -> bool:
    name = what.branch if isinstance(what, Commit) else what.name
    return is_internal(name)


def _ref_change(row: dict[str, object]) -> RefChange:
    data = read_metadata(row)
    try:
        return RefChange(
            id=str(row["object_id"]).removeprefix(REF_CHANGE_PREFIX),
            action=str(data["action"]),
            name=str(data["name"]),
            commit_id=str(data["commit_id"]),
            actor=data["actor_id"],
            created_us=int(data["created_at"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_row(row, str(error)) from error
