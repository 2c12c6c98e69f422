"""Intent files: they tell a recovery which versions a writer made. The graph is correct without them.

On an object store, the file is written while the changes are staged and deleted after the response, so neither adds to
the time of a commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from omnigraph.errors import OmniGraphError
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files import layout
from omnigraph.storage.files.local_objects import LocalObjects
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.parallel import request
from omnigraph.versioning.write.leases import Lease


class Intent:
    """The intent file of one write."""

    def __init__(self, objects: ObjectStore, operation_id: str, facts: Mapping[str, Any]) -> None:
        self._objects = objects
        self._name = layout.intent_name(operation_id)
        self._lease = Lease(objects, self._name, {"schema_version": 2, "operation_id": operation_id, **facts})
        self._writing: Future[None] | None = None
        self._is_written = False

    def begin(self) -> None:
        """Begin to write the file, on an object store."""
        if not isinstance(self._objects, LocalObjects):
            self._writing = request(self._write)

    def written(self) -> None:
        """Return when the file is complete and its lease is renewed."""
        if self._writing is None:
            self._write()
        else:
            self._writing.result()

    def _write(self) -> None:
        reach("intent.write")
        self._is_written = True
        self._lease.start()
        reach("intent.written")

    def end(self, *, outcome_known: bool) -> None:
        """Stop the lease. Delete the file if the outcome is known; otherwise it is left for a recovery."""
        if self._writing is not None:
            with suppress(OmniGraphError):
                self._writing.result()
        self._lease.stop()
        if not outcome_known or not self._is_written:
            return
        if isinstance(self._objects, LocalObjects):
            self._delete()
        else:
            request(self._delete)

    def _delete(self) -> None:
        # If this fails, the file remains, and the next recovery finds nothing to do for it.
        with suppress(OmniGraphError):
            reach("intent.delete")
            self._objects.delete(self._name)
