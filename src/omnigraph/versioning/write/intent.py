"""The note a writer leaves for whoever cleans up after it; not needed for the graph to be right."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from omnigraph.errors import OmniGraphError
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files import layout
from omnigraph.storage.files.objects import ObjectStore
from omnigraph.versioning.write.leases import Lease


class Intent:
    """One note, from its writing to its end."""

    def __init__(self, objects: ObjectStore, operation_id: str, facts: Mapping[str, Any]) -> None:
        self._objects = objects
        self._name = layout.intent_name(operation_id)
        self._lease = Lease(objects, self._name, {"schema_version": 2, "operation_id": operation_id, **facts})

    def write(self) -> None:
        """Leave the note."""
        reach("intent.write")
        self._lease.start()
        reach("intent.written")

    def end(self, *, outcome_known: bool) -> None:
        """Once the outcome is settled the note goes; else it is left to a recovery."""
        self._lease.stop()
        if outcome_known:
            # Where this fails the note stays, and the next recovery finds that it says nothing new.
            with suppress(OmniGraphError):
                reach("intent.delete")
                self._objects.delete(self._name)
