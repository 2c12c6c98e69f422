"""The note a writer leaves for whoever cleans up after it.

It is not needed for the graph to be right; it makes the leftovers of a crash findable. Whether the writer lives, its
process tells on its own machine, and elsewhere the lease in the note. As long as the write is under way the lease is
renewed, however long that takes: a bulk load may flush for minutes between its note and its publish.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from omnigraph.errors import OmniGraphError
from omnigraph.storage import layout
from omnigraph.storage.failpoints import reach
from omnigraph.storage.objects import ObjectStore
from omnigraph.versioning.ids import Clock

LEASE_US = 60_000_000
"""How long a silent writer is presumed alive when nobody can look."""

RENEW_S = LEASE_US / 1_000_000 / 3
"""How often the lease is renewed: one renewal may fail, and a second one is still in time."""


class Intent:
    """One note, from its writing to its end."""

    def __init__(self, objects: ObjectStore, clock: Clock, operation_id: str, facts: Mapping[str, Any]) -> None:
        self._objects = objects
        self._clock = clock
        self._name = layout.intent_name(operation_id)
        self._facts = {"schema_version": 1, "operation_id": operation_id, **facts}
        self._done = Event()
        self._keeper = Thread(target=self._keep, name=f"lease of {operation_id}", daemon=True)

    def write(self) -> None:
        """Leave the note; from now on its lease is kept."""
        reach("intent.write")
        self._put()
        self._keeper.start()
        reach("intent.written")

    def end(self, *, settled: bool) -> None:
        """Keep the lease no longer. Once the outcome is settled the note goes; else it is left to a recovery."""
        self._done.set()
        if self._keeper.ident is not None:
            # A renewal that is under way must not bring the note back.
            self._keeper.join()
        if settled:
            # Where this fails the note stays, and the next recovery finds that it says nothing new.
            with suppress(OmniGraphError):
                reach("intent.delete")
                self._objects.delete(self._name)

    def _keep(self) -> None:
        while not self._done.wait(RENEW_S):
            # A lease that runs out costs the write, never the graph: the commit is fenced before anything goes.
            with suppress(OmniGraphError):
                self._put()

    def _put(self) -> None:
        document = {**self._facts, "lease_until": self._clock() + LEASE_US}
        self._objects.write(self._name, json.dumps(document, indent=1).encode())
