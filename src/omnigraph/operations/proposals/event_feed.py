"""`ProposalFeed`: the events of all proposals as they are written, for streams.

A feed remembers how many events of each open proposal it has returned. A proposal that is not listed as open any more
is read once more, so its last events are not lost.

A cursor has the time of the newest event, and the number of the last event of each proposal that changed shortly
before. Writers have clocks of their own, and an event gets its time before it is written: times alone would skip the
event of another writer. An older proposal is continued by its times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from omnigraph.errors import InputError
from omnigraph.operations.proposals.proposal_events import ProposalEvent
from omnigraph.operations.proposals.proposal_record import ProposalRecord
from omnigraph.operations.proposals.proposals import Proposals
from omnigraph.storage.files.layout import PROPOSALS
from omnigraph.versioning.model.manifest_objects import instant

_MARGIN = timedelta(minutes=10)
"""Largest difference of the clocks of writers and of the store."""
_MARGIN_US = int(_MARGIN / timedelta(microseconds=1))
_POSITIONS_MAX = 100
"""Most proposals in a cursor. The last minutes of one that is left out are returned again."""
_CURSOR = re.compile(r"(\d{1,16})(?:~([0-9A-Z]{26}\.\d{1,6}(?:,[0-9A-Z]{26}\.\d{1,6})*))?", re.ASCII)


@dataclass(frozen=True)
class StreamedEvent:
    """An event of a proposal, and the cursor that continues after it."""

    record: ProposalRecord
    event: ProposalEvent
    cursor: str


@dataclass
class ProposalFeed:
    """A position in the events of all proposals."""

    proposals: Proposals
    seen: dict[str, int] = field(default_factory=dict)
    """Open proposal → the number of its events that were returned."""
    _recent: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Visible proposal → the number and time of its last event, for those that changed shortly before."""
    _newest: int = 0

    def start(self, cursor: str | None) -> None:
        """Start now, or after the event of a cursor."""
        if cursor is None:
            for record in self._listed():
                self.seen[record.id] = record.events
                self._note(record, record.events, record.updated_us)
            return
        self._newest, positions = _read_cursor(cursor)
        since = self._newest - _MARGIN_US
        for proposal_id in dict.fromkeys([*(one.id for one in self._listed()), *self._closed_since(since)]):
            number = positions.get(proposal_id)
            self.seen[proposal_id] = self._before(proposal_id, since) if number is None else number
            known = self.proposals.logs.record(proposal_id)
            if known is not None and number is not None:
                self._note(known, number, self._newest)

    def poll(self) -> Iterator[StreamedEvent]:
        """Yield the events since the last poll that the caller may see."""
        counts = {record.id: record.events for record in self._listed()}
        changed = [known for known, count in counts.items() if count > self.seen.get(known, 0)]
        ended = [known for known in self.seen if known not in counts]
        found = [one for known in (*changed, *ended) for one in self._new(known)]
        for known in ended:
            del self.seen[known]
        for at_us, record, event in sorted(found, key=lambda one: (one[0], one[1].id, one[2].number)):
            self._note(record, event.number, at_us)
            yield StreamedEvent(record, event, self._cursor())

    def _listed(self) -> list[ProposalRecord]:
        logs = self.proposals.logs
        return logs.listed("open", logs.ids("open"))

    def _new(self, proposal_id: str) -> Iterator[tuple[int, ProposalRecord, ProposalEvent]]:
        """Yield the new events of a proposal, with times that do not descend."""
        record = self.proposals.logs.record(proposal_id)
        if record is None:
            return
        after, self.seen[proposal_id] = self.seen.get(proposal_id, 0), record.events
        if self.proposals.sees(record):
            at_us = 0
            for event in self.proposals.events(proposal_id, after):
                at_us = max(at_us, event.at_us)
                yield at_us, record, event

    def _before(self, proposal_id: str, since: int) -> int:
        """Return the number of the last event at or before a time."""
        events = self.proposals.logs.events(proposal_id)
        return max((event.number for event in events if event.at_us <= since), default=0)

    def _closed_since(self, since: int) -> list[str]:
        listed = self.proposals.repository.objects.list_times(f"{PROPOSALS}/closed")
        return [name.rpartition("/")[2] for name, written in listed if written >= instant(max(since, 0)) - _MARGIN]

    def _note(self, record: ProposalRecord, number: int, at_us: int) -> None:
        """Remember the position in a proposal; a cursor must not name proposals that the caller cannot see."""
        self._newest = max(self._newest, at_us)
        if self.proposals.sees(record):
            self._recent[record.id] = (number, at_us)

    def _cursor(self) -> str:
        since = self._newest - _MARGIN_US
        self._recent = {known: found for known, found in self._recent.items() if found[1] > since}
        kept = sorted(self._recent.items(), key=lambda one: one[1][1])[-_POSITIONS_MAX:]
        positions = ",".join(f"{known}.{number}" for known, (number, _) in kept)
        return f"{self._newest}~{positions}" if positions else str(self._newest)


def _read_cursor(cursor: str) -> tuple[int, dict[str, int]]:
    """Return the time and the positions of a cursor."""
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InputError("the cursor of a stream of proposals is the id of an event", code="bad_proposal")
    pairs = (one.split(".") for one in (found[2] or "").split(",") if one)
    return int(found[1]), {known: int(number) for known, number in pairs}
