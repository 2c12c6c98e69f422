"""The logs of proposals: `__proposals/<id>/<number>.json`, one small object per event.

An event is written under the next number if no object of that name exists, so exactly one writer wins a number; the
others read what was written and try the next one. Events never change, so a process reads each of them once.

`__proposals/open/<id>` and `__proposals/closed/<id>` make a list of proposals cheap: a listing of one folder and one
small object per listed proposal. A marker contains a summary of the log up to a number. It is a hint: if the log has a
later event, the log is read. The marker of an open proposal is written before its first event, so no open proposal is
missing from a list, and a marker without a log is skipped.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any, Literal

from omnigraph.errors import Conflict, Damaged, InputError
from omnigraph.operations.proposals.proposal_events import EVENTS_MAX, EventKind, ProposalEvent
from omnigraph.operations.proposals.proposal_record import ProposalRecord, fold_events
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files.layout import PROPOSALS
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.parallel import each_request
from omnigraph.versioning.model.ids import Clock

Side = Literal["open", "closed"]
Decide = Callable[[ProposalRecord], "NewEvent | None"]
"""Returns the event that a record permits, None if there is nothing to add, or raises why it permits none."""

_APPEND_TRIES = 100
_OTHER_FOLDERS = frozenset({"open", "closed", "keys", "queue"})
"""Folders beside those of the logs."""
_LOGS_MAX = 2_048
"""Number of logs that a process keeps."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event before it has a number."""

    kind: EventKind
    data: dict[str, Any]


@dataclass(slots=True)
class _KnownLog:
    events: list[ProposalEvent] = field(default_factory=list)
    record: ProposalRecord | None = None


class ProposalLogs:
    """The logs of the proposals of one graph. Threads can share it."""

    def __init__(self, objects: ObjectStore, clock: Clock, *, is_local: bool = False) -> None:
        self._objects = objects
        self._clock = clock
        self._is_local = is_local
        self._known: OrderedDict[str, _KnownLog] = OrderedDict()
        self._summaries: OrderedDict[str, ProposalRecord] = OrderedDict()
        self._lock = Lock()

    # -- reading ---------------------------------------------------------------------------------

    def events(self, proposal_id: str, after: int = 0) -> Sequence[ProposalEvent]:
        """Return the events of a proposal with numbers above `after`; none if there is no such proposal."""
        return self._read(proposal_id).events[after:]

    def record(self, proposal_id: str) -> ProposalRecord | None:
        """Return what the log of a proposal says; None if there is no such proposal."""
        known = self._read(proposal_id)
        if known.record is None or known.record.events != len(known.events):
            known.record = fold_events(proposal_id, known.events)
        return known.record

    def ids(self, side: Side) -> list[str]:
        """Return the ids of the markers of a side, newest first."""
        return [name.rpartition("/")[2] for name in reversed(self._objects.list(f"{PROPOSALS}/{side}"))]

    def open_markers(self) -> dict[str, datetime]:
        """Return the ids of the markers of open proposals, oldest first, with the times they were written."""
        return {name.rpartition("/")[2]: at for name, at in self._objects.list_times(f"{PROPOSALS}/open")}

    def listed(self, side: Side, proposal_ids: Sequence[str]) -> list[ProposalRecord]:
        """Return the records of listed proposals without comments and bodies; those without a log are left out."""
        # Small files of a disk are read faster by one thread.
        batches = [proposal_ids] if self._is_local else _batches(proposal_ids)
        found = each_request(lambda some: [self._listed(side, one) for one in some], batches)
        records = [record for some in found for record in some if record is not None]
        with self._lock:
            for record in records:
                self._summaries[record.id] = record
                self._summaries.move_to_end(record.id)
            while len(self._summaries) > _LOGS_MAX:
                self._summaries.popitem(last=False)
        return records

    def _listed(self, side: Side, proposal_id: str) -> ProposalRecord | None:
        known = self._summaries.get(proposal_id)
        if known is not None and self._is_complete(known):
            return known
        summary = self._summary(side, proposal_id)
        if summary is not None and self._is_complete(summary):
            return summary
        record = self.record(proposal_id)
        return None if record is None else record.without_texts()

    def _is_complete(self, record: ProposalRecord) -> bool:
        """Return True if the log has no event after those of a record."""
        return self._objects.read(event_name(record.id, record.events + 1)) is None

    def _summary(self, side: Side, proposal_id: str) -> ProposalRecord | None:
        """Return what a marker says; None if it cannot be read."""
        marker = self._objects.read(f"{PROPOSALS}/{side}/{proposal_id}")
        try:
            return ProposalRecord.from_summary(json.loads(marker)) if marker else None
        except (KeyError, TypeError, ValueError):
            return None

    def _read(self, proposal_id: str) -> _KnownLog:
        with self._lock:
            known = self._known.setdefault(proposal_id, _KnownLog())
            self._known.move_to_end(proposal_id)
            while len(self._known) > _LOGS_MAX:
                self._known.popitem(last=False)
        events = list(known.events)
        while True:
            names = [event_name(proposal_id, len(events) + 1 + more) for more in range(_ahead(len(events)))]
            stored = each_request(self._objects.read, names)
            for name, data in zip(names, stored, strict=True):
                if data is None:
                    if len(events) > len(known.events):
                        known.events = events
                    return known
                events.append(ProposalEvent.decode(data, name))

    # -- writing ---------------------------------------------------------------------------------

    def create(self, proposal_id: str, data: dict[str, Any], actor: str | None, request_id: str | None) -> None:
        """Write the first event of a proposal."""
        first = ProposalEvent(1, "opened", actor, self._clock(), data, request_id).encode()
        self.list_open(proposal_id)
        if not self._objects.write_if_absent(event_name(proposal_id, 1), first):
            raise Conflict(f"there is a proposal '{proposal_id}' already")
        reach("proposal.event")
        self.mark(proposal_id)

    def list_open(self, proposal_id: str) -> None:
        """List a proposal as open before it is opened again."""
        self._objects.write(f"{PROPOSALS}/open/{proposal_id}", b"")

    def append(
        self, proposal_id: str, decide: Decide, actor: str | None, request_id: str | None = None
    ) -> ProposalRecord:
        """Append the event that `decide` returns for the newest record, and return the record with it."""
        for _ in range(_APPEND_TRIES):
            record = self.record(proposal_id)
            assert record is not None, "a proposal that exists is never removed"
            new = decide(record)
            if new is None:
                return record
            if record.events >= EVENTS_MAX:
                raise InputError(
                    f"a proposal has at most {EVENTS_MAX:,} events",
                    code="proposal_too_long",
                    hint="close it and open another one",
                )
            event = ProposalEvent(record.events + 1, new.kind, actor, self._clock(), new.data, request_id)
            if self._objects.write_if_absent(event_name(proposal_id, event.number), event.encode()):
                reach("proposal.event")
                return self.mark(proposal_id)
        raise Conflict(f"{_APPEND_TRIES} attempts to write to proposal {proposal_id} lost races", hint="try again")

    def mark(self, proposal_id: str) -> ProposalRecord:
        """Write the marker that fits the log, and remove the other one; return the record."""
        record = self.record(proposal_id)
        assert record is not None, "a marker is written after an event"
        side, other = ("closed", "open") if record.is_ended else ("open", "closed")
        summary = json.dumps(record.to_summary(), ensure_ascii=False, separators=(",", ":")).encode()
        self._objects.write(f"{PROPOSALS}/{side}/{proposal_id}", summary)
        self._objects.delete(f"{PROPOSALS}/{other}/{proposal_id}")
        return record

    def remove_empty_markers(self, is_old: Callable[[str], bool]) -> list[str]:
        """Remove the markers of proposals whose first event was never written; `is_old` judges an object."""
        removed = []
        for proposal_id in self.ids("open"):
            name = f"{PROPOSALS}/open/{proposal_id}"
            if is_old(name) and self.record(proposal_id) is None:
                self._objects.delete(name)
                removed.append(proposal_id)
        return removed

    def check(self) -> list[tuple[str, str]]:
        """Return the damaged logs of listed proposals: id and problem."""
        problems: list[tuple[str, str]] = []
        sides: tuple[Side, ...] = ("open", "closed")
        for proposal_id in sorted({found for side in sides for found in self.ids(side)}):
            try:
                record = self.record(proposal_id)
            except Damaged as error:
                problems.append((proposal_id, error.message))
                continue
            missing = event_name(proposal_id, 1 + (0 if record is None else record.events))
            if any(name > missing for name in self._objects.list(f"{PROPOSALS}/{proposal_id}")):
                problems.append((proposal_id, f"'{missing}' is missing, and later events exist"))
        return problems


def stored_ids(objects: ObjectStore) -> list[str]:
    """Return the ids of all proposals with a log, whether or not they are listed, oldest first."""
    found = (folder.rpartition("/")[2] for folder in objects.folders(PROPOSALS))
    return sorted(name for name in found if name not in _OTHER_FOLDERS)


def event_name(proposal_id: str, number: int) -> str:
    """Return the object of an event."""
    return f"{PROPOSALS}/{proposal_id}/{number:06}.json"


def _ahead(known: int) -> int:
    """Return how many events are requested at once: one probe for news, more for a log that is read first."""
    return 1 if known else 8


def _batches(items: Sequence[str]) -> list[Sequence[str]]:
    size = max(1, -(-len(items) // 8))
    return [items[first : first + size] for first in range(0, len(items), size)]
