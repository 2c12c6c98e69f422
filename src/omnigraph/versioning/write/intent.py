"""Intent files: they tell a recovery which versions a writer made. The graph is correct without them."""

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
    """The intent file of one write."""

    def __init__(self, objects: ObjectStore, operation_id: str, facts: Mapping[str, Any]) -> None:
        self._objects = objects
        self._name = layout.intent_name(operation_id)
        self._lease = Lease(objects, self._name, {"schema_version": 2, "operation_id": operation_id, **facts})

    def write(self) -> None:
        """Write the file and start renewing its lease."""
        reach("intent.write")
        self._lease.start()
        reach("intent.written")

    def end(self, *, outcome_known: bool) -> None:
        """Stop the lease. Delete the file if the outcome is known; otherwise it is left for a recovery."""
        self._lease.stop()
        if outcome_known:
            # If this fails, the file remains, and the next recovery finds nothing to do for it.
            with suppress(OmniGraphError):
                reach("intent.delete")
                self._objects.delete(self._name)
