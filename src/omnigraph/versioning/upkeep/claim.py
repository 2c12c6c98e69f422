"""The claim on background maintenance: of several processes that serve a graph, one does the work.

The claim is a file of the graph, created on condition that it does not exist, and renewed like any lease. It saves
work and decides nothing: two processes that maintain a graph at once are as correct as any two writers. The claim of a
process that died is removed by the next one that wants it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from omnigraph.errors import OmniGraphError
from omnigraph.storage.files import layout
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.versioning.write.leases import Lease, is_alive
from omnigraph.versioning.write.repository import Repository


@contextmanager
def claimed(repository: Repository, name: str = layout.MAINTENANCE_CLAIM) -> Iterator[bool]:
    """Hold the claim with a name in a block; yields False if another process holds it."""
    objects = repository.objects
    lease = Lease(objects, name, {"schema_version": 1})
    if _is_alive(objects, name) is False:
        objects.delete(name)
    try:
        created = objects.write_if_absent(name, lease.data)
    except OmniGraphError:
        # If its folder cannot be synced, the claim exists in spite of the error.
        _release(objects, name, lease)
        raise
    if not created:
        yield False
        return
    try:
        lease.start()
        yield True
    finally:
        lease.stop()
        _release(objects, name, lease)


def _release(objects: ObjectStore, name: str, lease: Lease) -> None:
    """Remove a claim; one that cannot be removed ends with its lease, and the next process removes it."""
    with suppress(OmniGraphError):
        if objects.read(name) == lease.data:
            objects.delete(name)


def is_claimed(repository: Repository) -> bool:
    """Return True if a process holds the claim."""
    return _is_alive(repository.objects, layout.MAINTENANCE_CLAIM) is True


def _is_alive(objects: ObjectStore, name: str) -> bool | None:
    """Return whether the owner of a claim may be alive; None if there is no claim."""
    data, written_at = objects.read(name), objects.written_at(name)
    if data is None or written_at is None:
        return None
    return is_alive(_document(data), written_at, objects.now())


def _document(data: bytes) -> dict[str, Any]:
    """Return the contents of a claim; a file that is not one has no owner and ends with the default lease."""
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
