"""The order of landings on one target: first come, first served.

A landing puts a ticket into the queue of its target and waits until it is the first one. So ten landings make ten
trials, not ten each. The queue only saves work: the publish of a landing is conditional, so a landing that does not
wait is still correct. A ticket is renewed like every lease; that of a dead process is skipped and removed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256

from omnigraph.cancellation import check_cancelled
from omnigraph.checkpoints import checkpoint
from omnigraph.storage.files.layout import PROPOSALS
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.write.leases import Lease, is_alive
from omnigraph.versioning.write.repository import Repository

_QUEUES = f"{PROPOSALS}/queue"
_WAIT_S = 120.0
"""The longest wait for a turn; after it, the landing begins without one."""
_LOOK_S = 0.02
_LOOK_S_MAX = 0.5


@contextmanager
def turn(repository: Repository, target: str, proposal_id: str) -> Iterator[None]:
    """Hold the first place in the queue of a target branch."""
    objects = repository.objects
    folder = queue_folder(target)
    ticket = f"{folder}/{new_ulid(repository.clock())}.json"
    lease = Lease(objects, ticket, {"proposal": proposal_id, "target": target})
    lease.start()
    try:
        _wait(objects, folder, ticket)
        yield
    finally:
        lease.stop()
        objects.delete(ticket)


def queue_folder(target: str) -> str:
    """Return the folder of the tickets of a target branch."""
    return f"{_QUEUES}/{sha256(target.encode()).hexdigest()[:32]}"


def remove_dead_tickets(objects: ObjectStore) -> None:
    """Remove the tickets of processes that died."""
    names = [name for folder in objects.folders(_QUEUES) for name in objects.list(folder)]
    if not names:
        return
    now = objects.now()
    for name in names:
        data, written = objects.read(name), objects.written_at(name)
        if data is not None and written is not None and _has_ended(data, written, now):
            objects.delete(name)


def _wait(objects: ObjectStore, folder: str, ticket: str) -> None:
    deadline, pause_s = time.monotonic() + _WAIT_S, _LOOK_S
    while time.monotonic() < deadline:
        check_cancelled()
        checkpoint()
        before = [name for name in objects.list(folder) if name < ticket]
        if all(_is_dead(objects, name, ticket) for name in before):
            objects.delete_all(before)
            return
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, _LOOK_S_MAX)


def _is_dead(objects: ObjectStore, name: str, own: str) -> bool:
    """Return True if the landing of another ticket has ended; the time of the own ticket stands for the present."""
    data, written, now = objects.read(name), objects.written_at(name), objects.written_at(own)
    if data is None or written is None or now is None:
        return data is None or written is None
    return _has_ended(data, written, now)


def _has_ended(ticket: bytes, written: datetime, now: datetime) -> bool:
    """Return True for the ticket of a landing that does not run; one that cannot be read delays no landing."""
    try:
        return not is_alive(json.loads(ticket), written, now)
    except (AttributeError, KeyError, TypeError, ValueError):
        return True
