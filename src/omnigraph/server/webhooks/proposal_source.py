"""Events of the proposals of a graph, read from their logs.

The position has, for each open proposal, the number of its events that were read, and the same for those that ended
lately: a proposal can be opened again. One listing tells which markers of open proposals were written since the last
read; only their logs are read, and all of them once a minute, because a marker is a hint. An event contains ids and
states. Titles, comments and other texts that people write can quote rows, so they are left out.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from omnigraph.operations.proposals.event_log import ProposalLogs
from omnigraph.operations.proposals.proposal_events import ProposalEvent
from omnigraph.operations.proposals.proposal_record import ProposalRecord
from omnigraph.server.webhooks.events import Batch, Event, Position
from omnigraph.versioning.model.ids import derived_ulid

PREFIX = "proposal."
ENDED_MAX = 500
"""Ended proposals whose progress is kept. One that is opened again later continues with its last `reopened`."""
PROBE_S = 60.0
_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "updated": ("source_head",),
    "trial": ("base", "source_head", "outcome", "commit"),
    "check": ("name", "commit", "state"),
    "comment": ("id", "reply_to"),
    "resolved": ("comment", "resolved"),
    "review": ("verdict", "commit"),
    "queued": ("commit",),
    "landed": ("commit",),
}
"""Kind → members of its data that events contain; none of them is a text of a person or the id of a row."""


class ProposalSource:
    """The events of all proposals, by time; those of one proposal in their order."""

    def __init__(self, logs: ProposalLogs, clock: Callable[[], float] = time.monotonic) -> None:
        self._logs = logs
        self._clock = clock
        self._read_at: dict[str, datetime] = {}
        """Open proposal → the time of its marker when all its events were known."""
        self._probed = float("-inf")

    def start(self) -> Position:
        """Return the position after all events of the open proposals."""
        return {"open": {found: len(self._logs.events(found)) for found in self._logs.open_markers()}, "ended": {}}

    def read(self, position: Position) -> Batch:
        """Return the new events of proposals whose markers changed."""
        markers = self._logs.open_markers()
        known: dict[str, int] = position["open"]
        probes = self._clock() - self._probed >= PROBE_S
        unread: dict[str, Sequence[ProposalEvent]] = {}
        after = {"open": dict(known), "ended": dict(position["ended"])}
        for found in sorted(known.keys() | markers.keys()):
            marker = markers.get(found)
            if not probes and found in known and marker is not None and self._read_at.get(found) == marker:
                continue
            first = self._first(found, position)
            events = self._logs.events(found, first)
            if events:
                unread[found] = events
            else:
                self._settle(found, first, marker, after)
        if probes:
            self._probed = self._clock()
        return Batch(self._events(unread, after), after)

    def _first(self, found: str, position: Position) -> int:
        """Return the number of the events of a proposal that were read."""
        known = position["open"].get(found, position["ended"].get(found))
        if known is not None:
            return int(known)
        reopened = [event.number for event in self._logs.events(found) if event.kind == "reopened"]
        return reopened[-1] - 1 if reopened else 0

    def _settle(self, found: str, read: int, marker: datetime | None, after: Position) -> None:
        """Note that all events of a proposal were read; one that ended is kept apart."""
        record = self._logs.record(found)
        if record is None:
            after["open"].pop(found, None)
        elif record.is_ended and marker is None:
            after["open"].pop(found, None)
            after["ended"] = dict([*after["ended"].items(), (found, read)][-ENDED_MAX:])
            self._read_at.pop(found, None)
        else:
            after["open"][found] = read
            if marker is not None:
                self._read_at[found] = marker

    def _events(self, unread: Mapping[str, Sequence[ProposalEvent]], settled: Position) -> list[Event]:
        pairs = [[(found, event) for event in events] for found, events in unread.items()]
        position, made = settled, []
        for found, event in heapq.merge(*pairs, key=lambda pair: pair[1].at_us):
            ended = {name: number for name, number in position["ended"].items() if name != found}
            position = {"open": {**position["open"], found: event.number}, "ended": ended}
            record = self._logs.record(found)
            assert record is not None, "a proposal with an event exists"
            made.append(_event(record, event, position))
        return made


def _event(record: ProposalRecord, event: ProposalEvent, after: Position) -> Event:
    data = {name: event.data[name] for name in _MEMBERS.get(event.kind, ()) if name in event.data}
    facts: dict[str, Any] = {
        "proposal_id": record.id,
        "number": event.number,
        "source": record.source,
        "target": record.target,
        **data,
    }
    id_ = derived_ulid(event.at_us, f"{record.id}/{event.number}")
    return Event(id_, PREFIX + event.kind, event.actor, event.at_us, facts, after, record.target)
