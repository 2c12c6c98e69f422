"""`WebhookStream`: the events of one graph for one webhook, delivered in order and at least once.

The progress is a document of the graph that one process owns (`OwnedDocument`): the positions in the sources, the last
delivery, and the failure under way. It is written after every delivery and every failure, so a process that takes over
continues with the next event, or with the wait that its predecessor began. If a process dies between a delivery and its
record, the event is sent again with the same id.

A failed event is sent again after 5 s, then after twice the time, up to one hour, with random variation. Later events
wait for it. When the receiver has failed for three days without a success, events that are three days old are dropped.
"""

from __future__ import annotations

import heapq
import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import SystemRandom
from typing import Any, Protocol

from omnigraph.server.webhooks.events import Event, EventSource, GraphSource, PolicySource, Position
from omnigraph.server.webhooks.sending import Outcome
from omnigraph.server.webhooks.targets import DIFF_SUMMARY, Webhook
from omnigraph.versioning.upkeep.owned_document import OwnedDocument, OwnershipLost
from omnigraph.versioning.write.leases import RENEW_S

POLL_S = 1.0
"""The interval at which new events are looked for."""
BACKOFF_S = 5.0
BACKOFF_MAX_S = 3600.0
DROP_AFTER_S = 3 * 86_400.0
DELIVERIES = 50
"""Events that one step delivers at most, so that streams take turns."""
READS = 20
"""Reads of the sources for one event, if filters leave out what they return."""
_JITTER = 0.2
_log = logging.getLogger(__name__)

Send = Callable[[Webhook, Event, bytes], Outcome]


class DeliveryReport(Protocol):
    """Receives the outcome of every try."""

    def delivered(self, webhook: str, graph: str, lag_s: float) -> None:
        """An event was delivered, so long after it was made."""

    def failed(self, webhook: str, graph: str, *, refused: bool) -> None:
        """A try failed; `refused` tells that the address is not permitted."""

    def dropped(self, webhook: str, graph: str) -> None:
        """An event is not tried again."""


@dataclass
class _Pending:
    """The next event of a source."""

    source: str
    event: Event
    body: bytes | None = None

    def age_s(self, now: float) -> float:
        """The time since the event was made."""
        return now - self.event.created_us / 1_000_000


class WebhookStream:
    """Delivers the events of one graph to one webhook. `step` is called by one thread at a time."""

    def __init__(
        self,
        webhook: Webhook,
        graph_id: str,
        document: OwnedDocument,
        sources: Mapping[str, EventSource],
        send: Send,
        report: DeliveryReport,
        clock: Callable[[], float],
    ) -> None:
        self.webhook = webhook
        self.graph_id = graph_id
        self.document = document
        self._sources = sources
        self._send = send
        self._report = report
        self._clock = clock
        self._content: dict[str, Any] = {}
        self._pending: deque[_Pending] = deque()
        self._renew_at = 0.0

    def step(self) -> float:
        """Do what is due, and return the time of the next step."""
        try:
            if not self.document.is_owned and not self._take():
                return self._clock() + RENEW_S * _varied()
            return self._deliver_due()
        except OwnershipLost:
            _log.info("webhook '%s', graph '%s': another process continues", self.webhook.name, self.graph_id)
            self._pending.clear()
            return self._clock() + RENEW_S * _varied()

    def release(self) -> None:
        """Leave the events to another process."""
        if self.document.is_owned:
            with suppress(OwnershipLost):
                self.document.release(self._content)
        self._pending.clear()

    def _take(self) -> bool:
        content = self.document.take(self._first)
        if content is None:
            return False
        self._content = content
        self._pending.clear()
        positions = content["positions"]
        # A release that adds a source finds documents without its position.
        positions.update({name: source.start() for name, source in self._sources.items() if name not in positions})
        self._renew_at = self._clock() + RENEW_S
        return True

    def _first(self) -> dict[str, Any]:
        """Return the progress of a webhook that begins now."""
        positions = {name: source.start() for name, source in self._sources.items()}
        return {"positions": positions, "failure": None, "last": None, "delivered": 0, "dropped": 0}

    def _deliver_due(self) -> float:
        for _ in range(DELIVERIES):
            failure = self._content["failure"]
            if failure is not None and self._clock() < failure["next_at"]:
                return self._renewed(failure["next_at"])
            pending = self._next()
            if pending is None:
                return self._renewed(self._clock() + POLL_S)
            self._try(pending)
        return self._clock()

    def _renewed(self, due: float) -> float:
        """Write the document if its lease is due; return the time of the next step."""
        now = self._clock()
        if now >= self._renew_at:
            self._write()
        return min(due, self._renew_at)

    def _write(self) -> None:
        self.document.write(self._content)
        self._renew_at = self._clock() + RENEW_S

    # -- events ----------------------------------------------------------------------------------

    def _next(self) -> _Pending | None:
        """Return the oldest event that the webhook wants; None if there is none."""
        for _ in range(READS):
            while self._pending:
                pending = self._pending[0]
                if self.webhook.wants(pending.event):
                    return pending
                self._passed(pending)
            if not self._read():
                break
        return None

    def _read(self) -> bool:
        """Read the next events of all sources, by time; return False if there are none.

        The order within a source is kept.
        """
        found: list[list[_Pending]] = []
        advanced = False
        for name, source in self._sources.items():
            batch = source.read(self._position(name))
            found.append([_Pending(name, event) for event in batch.events])
            if not batch.events and batch.after != self._position(name):
                self._content["positions"][name] = batch.after
                advanced = True
                if isinstance(source, PolicySource):
                    # A noted event must have the same id in the process that takes over.
                    self._write()
        self._pending.extend(heapq.merge(*found, key=lambda pending: pending.event.created_us))
        return advanced or bool(self._pending)

    def _position(self, source: str) -> Position:
        position: Position = self._content["positions"][source]
        return position

    def _passed(self, pending: _Pending) -> None:
        self._pending.popleft()
        self._content["positions"][pending.source] = pending.event.after

    # -- tries -----------------------------------------------------------------------------------

    def _try(self, pending: _Pending) -> None:
        event = pending.event
        if pending.body is None:
            pending.body = event.body(self.graph_id, *self._extra(pending))
        outcome = self._send(self.webhook, event, pending.body)
        now = self._clock()
        if outcome.is_delivered:
            self._passed(pending)
            last = {"event_id": event.id, "kind": event.kind, "at": now}
            self._content.update(failure=None, last=last, delivered=self._content["delivered"] + 1)
            self._report.delivered(self.webhook.name, self.graph_id, pending.age_s(now))
        else:
            self._failed(pending, outcome, now)
        self._write()

    def _failed(self, pending: _Pending, outcome: Outcome, now: float) -> None:
        """Note a failure, and drop the events that are too old if the receiver has failed for that long."""
        before = self._content["failure"] or {"since": now, "tries": 0}
        tries = before["tries"] + 1
        wait_s = min(BACKOFF_S * 2 ** min(tries - 1, 20) * _varied(), BACKOFF_MAX_S)
        names = (self.webhook.name, self.graph_id)
        self._report.failed(*names, refused=outcome.refused)
        text = "webhook '%s', graph '%s': event %s failed, next try in %.0f s: %s"
        _log.warning(text, *names, pending.event.id, wait_s, outcome.error)
        self._content["failure"] = {
            "since": before["since"],
            "tries": tries,
            "next_at": now + wait_s,
            "error": outcome.error,
        }
        while now - before["since"] >= DROP_AFTER_S and self._pending and self._pending[0].age_s(now) >= DROP_AFTER_S:
            dropped = self._pending[0]
            self._passed(dropped)
            if self.webhook.wants(dropped.event):
                self._content["dropped"] += 1
                self._report.dropped(*names)
                _log.error("webhook '%s', graph '%s': event %s dropped after three days", *names, dropped.event.id)

    def _extra(self, pending: _Pending) -> list[tuple[str, Any]]:
        source = self._sources[pending.source]
        if not self.webhook.with_diff_summary or not isinstance(source, GraphSource) or pending.event.kind != "commit":
            return []
        return [(DIFF_SUMMARY, source.diff_summary(pending.event))]


def _varied() -> float:
    return SystemRandom().uniform(1 - _JITTER, 1 + _JITTER)
