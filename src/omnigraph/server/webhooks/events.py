"""Events of a graph and their sources.

A source reads events after a position and is otherwise without state: the stream stores the position. An event has
the same id and the same body whenever it is read. It contains ids and no rows. If rules limit rows, it also leaves out
what depends on all rows: the changed types and the numbers of changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import msgspec

from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.graph_handle import context_of
from omnigraph.operations.merge.column_mapping import shown_names
from omnigraph.operations.proposals.proposal_events import EVENT_KINDS
from omnigraph.versioning.feed.commit_changes import count_changes
from omnigraph.versioning.feed.graph_events import (
    EventPosition,
    GraphEvent,
    RefChange,
    is_lost,
    newest_position,
    read_events,
)
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.model.manifest_objects import Commit

COMMIT = "commit"
POLICY_RELOADED = "policy.reloaded"
_REF_KINDS = {
    "branch_create": "branch.created",
    "branch_update": "branch.updated",
    "branch_delete": "branch.deleted",
    "branch_expire": "branch.expired",
    "tag_create": "tag.created",
    "tag_delete": "tag.deleted",
}
KINDS = (COMMIT, *_REF_KINDS.values(), POLICY_RELOADED, *(f"proposal.{kind}" for kind in EVENT_KINDS))
"""Every kind of event."""
_log = logging.getLogger(__name__)

Position = dict[str, Any]
"""A place in a source, as JSON."""


@dataclass(frozen=True)
class Event:
    """One event; `after` is the position after it in its source."""

    id: str
    kind: str
    actor: str | None
    created_us: int
    facts: Mapping[str, Any]
    after: Position
    branch: str | None = None
    """The branch that filters compare; None if the event concerns none."""

    def body(self, graph_id: str, *extra: tuple[str, Any]) -> bytes:
        """Return the body of a request, in UTF-8."""
        document = {
            "event_id": self.id,
            "kind": self.kind,
            "graph_id": graph_id,
            "actor_id": self.actor,
            "created_at": self.created_us,
            "facts": {**self.facts, **dict(extra)},
        }
        return msgspec.json.encode(document)


@dataclass(frozen=True)
class Batch:
    """The next events of a source, and the position after them and after what was left out."""

    events: Sequence[Event]
    after: Position


class EventSource(Protocol):
    """Events of one graph in their order."""

    def start(self) -> Position:
        """Return the position after all events of this moment."""

    def read(self, position: Position) -> Batch:
        """Return the next events. An empty batch with another position is read on."""


class GraphSource:
    """Commits, and changes of branches and tags."""

    def __init__(self, graph_id: str, graph: Graph, *, hides_changes: bool) -> None:
        self._graph_id = graph_id
        self._context = context_of(graph)
        self._hides_changes = hides_changes

    def start(self) -> Position:
        """Return the position after the newest manifest version."""
        return asdict(newest_position(self._context.repository))

    def read(self, position: Position) -> Batch:
        """Return the events of the next manifest versions."""
        repository, after = self._context.repository, EventPosition(**position)
        if is_lost(repository, after):
            _log.warning("graph '%s' was replaced by another one; its webhooks continue at its head", self._graph_id)
            return Batch((), self.start())
        events, end = read_events(repository, after)
        return Batch([self._event(event) for event in events], asdict(end))

    def _event(self, event: GraphEvent) -> Event:
        after = asdict(event.after)
        if isinstance(event.what, RefChange):
            return _ref_event(event.what, after)
        commit = event.what
        facts: dict[str, Any] = {
            "branch": commit.branch,
            "graph_commit_id": commit.id,
            "parent_commit_id": commit.parent_id,
            "merged_parent_commit_id": commit.merged_parent_id,
            "commit_kind": commit.kind,
        }
        if not self._hides_changes:
            facts["changed"] = list(commit.changed)
        return Event(commit.id, COMMIT, commit.actor, commit.created_us, facts, after, commit.branch)

    def diff_summary(self, event: Event) -> dict[str, Any] | None:
        """Return the numbers of rows that a commit changed, by table; None if they are not known or not shown."""
        if event.kind != COMMIT or self._hides_changes:
            return None
        repository = self._context.repository
        commit: Commit = repository.get_commit(event.id)
        if commit.parent_id is None:
            return None
        try:
            return dict(count_changes(repository, commit, shown_names))
        except OmniGraphError as error:
            _log.warning("the changes of commit %s cannot be counted (%s)", commit.id, error.code)
            return None


def _ref_event(change: RefChange, after: Position) -> Event:
    kind = _REF_KINDS.get(change.action, change.action.replace("_", "."))
    is_tag = kind.startswith("tag.")
    facts = {"tag" if is_tag else "branch": change.name, "graph_commit_id": change.commit_id}
    return Event(change.id, kind, change.actor, change.created_us, facts, after, None if is_tag else change.name)


Digests = Callable[[], tuple[str | None, str | None]]
"""Returns the digests of the policy of the graph and of the policy of the server, in force now."""


class PolicySource:
    """Changes of the policies in force. The position holds the digests that were announced last.

    A change is first noted in the position, with the id of its event, and is returned by the next read. A process that
    takes over therefore announces it with the same id.
    """

    def __init__(self, digests: Digests, clock: Callable[[], float]) -> None:
        self._digests = digests
        self._clock = clock

    def start(self) -> Position:
        """Return the digests in force."""
        graph, server = self._digests()
        return {"graph": graph, "server": server, "event": None}

    def read(self, position: Position) -> Batch:
        """Return the change that the position notes, or note one."""
        noted = position["event"]
        if noted is not None:
            return Batch([self._event(position, noted)], {**noted["digests"], "event": None})
        graph, server = self._digests()
        if (graph, server) == (position["graph"], position["server"]):
            return Batch((), position)
        now_us = int(self._clock() * 1_000_000)
        event = {"id": new_ulid(now_us), "at": now_us, "digests": {"graph": graph, "server": server}}
        return Batch((), {**position, "event": event})

    def _event(self, position: Position, noted: Mapping[str, Any]) -> Event:
        before, digests = position, noted["digests"]
        facts = {
            "changed": [scope for scope in ("graph", "server") if before[scope] != digests[scope]],
            "policy_digest": digests["graph"],
            "server_policy_digest": digests["server"],
        }
        return Event(noted["id"], POLICY_RELOADED, None, noted["at"], facts, {**digests, "event": None})
