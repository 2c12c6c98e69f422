"""Leases: detection of whether the process that owns a file is alive.

The owner rewrites its file at regular intervals. If a file was not rewritten for the duration of its lease, its owner
is not alive. Both times are the store's: the time of the file, and the time of a probe object that is written now. The
clock of a host is not involved, so a wrong clock neither kills a live writer nor keeps a dead one alive.

The process table is used as an additional proof where it is valid: on the same boot of the same kernel and in the same
PID namespace. A host name is not an identity, because containers share host names and PIDs.

A wrong answer costs work, never data: before files are removed, the owner's commit is fenced (`fencing`).
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from uuid import uuid4

from omnigraph.errors import OmniGraphError
from omnigraph.storage.files.object_store import ObjectStore

LEASE_S = 60.0
"""Duration in seconds for which a file stays valid after it was last written."""

RENEW_S = LEASE_S / 4
"""The interval of renewals. If one renewal fails, the next is still in time."""

_LOOKS_PER_RENEWAL = 4
_LEASE_S_MAX = 30 * 86_400.0
_WRITER_IDS: dict[int, str] = {}
"""PID → random id of this process; a forked child gets its own id."""


class Lease:
    """A file of a running operation that is rewritten until the operation ends."""

    def __init__(self, objects: ObjectStore, name: str, facts: Mapping[str, Any]) -> None:
        self._objects = objects
        self._name = name
        document = {**facts, "lease_s": LEASE_S, "writer": writer_identity()}
        self.data = json.dumps(document, indent=1).encode()
        """The contents of the file."""
        self._lock = Lock()
        self._runs = False
        self._due = 0.0

    def start(self) -> None:
        """Write the file and start the renewals."""
        self._objects.write(self._name, self.data)
        self._runs = True
        self._due = time.monotonic() + RENEW_S
        _keeper().add(self)

    def stop(self) -> None:
        """Stop the renewals. After this returns, the file is not written again."""
        with self._lock:
            self._runs = False

    def renew(self, now: float) -> bool:
        """Rewrite the file if it is due; return False if the renewals were stopped."""
        with self._lock:
            if self._runs and now >= self._due:
                # The next renewal may succeed. An expired lease costs the work of this operation, but does not damage
                # the graph.
                with suppress(OmniGraphError):
                    self._objects.write(self._name, self.data)
                self._due = now + RENEW_S
            return self._runs


class _Keeper:
    """Renews the leases of this process in one thread, which ends when there are none."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._leases: list[Lease] = []
        self._thread: Thread | None = None

    def add(self, lease: Lease) -> None:
        """Renew a lease until it is stopped."""
        with self._lock:
            self._leases.append(lease)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="omnigraph-leases", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(RENEW_S / _LOOKS_PER_RENEWAL)
            with self._lock:
                leases = list(self._leases)
            ended = {lease for lease in leases if not lease.renew(time.monotonic())}
            with self._lock:
                self._leases = [lease for lease in self._leases if lease not in ended]
                if not self._leases:
                    self._thread = None
                    return


@cache
def _keeper() -> _Keeper:
    return _Keeper()


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork.
    os.register_at_fork(after_in_child=_keeper.cache_clear)


def is_alive(document: Mapping[str, Any], written_at: datetime, now: datetime) -> bool:
    """Return True if the owner of a file may be alive; both times are the store's."""
    known = _process_is_alive(document.get("writer"))
    return now - written_at < _lease_of(document) if known is None else known


def _lease_of(document: Mapping[str, Any]) -> timedelta:
    given = document.get("lease_s")
    if isinstance(given, bool) or not isinstance(given, int | float):
        return timedelta(seconds=LEASE_S)
    if isinstance(given, float) and not math.isfinite(given):
        return timedelta(seconds=LEASE_S)
    # Clamp before the conversion: an integer can be too large for a float.
    return timedelta(seconds=float(min(max(given, 0), _LEASE_S_MAX)))


def _process_is_alive(writer: Any) -> bool | None:
    """Return whether a writer's process exists; None if this process cannot determine it."""
    own = writer_identity()
    if not isinstance(writer, Mapping) or not isinstance(writer.get("pid"), int):
        return None
    if writer.get("id") == own["id"]:
        return True
    same_table = own["boot_id"] and all(writer.get(key) == own[key] for key in ("boot_id", "pid_namespace"))
    if not same_table:
        return None
    started = process_start(writer["pid"])
    if started is None:
        return False
    # An empty text means that the process exists but its start time is not visible to this user.
    return started in ("", writer.get("started"))


def writer_identity() -> dict[str, str | int]:
    """Return a random id of this process, and its process table entry where other processes can look it up."""
    return _identity_of(os.getpid())


@lru_cache(1)
def _identity_of(pid: int) -> dict[str, str | int]:
    boot_id, namespace = _process_table(pid)
    return {
        "id": _writer_id(pid),
        "boot_id": boot_id,
        "pid_namespace": namespace,
        "pid": pid,
        "started": process_start(pid) or "",
    }


def _writer_id(pid: int) -> str:
    found = _WRITER_IDS.setdefault(pid, uuid4().hex)
    # A forked child inherits the entries of its ancestors.
    for other in [known for known in _WRITER_IDS if known != pid]:
        _WRITER_IDS.pop(other, None)
    return found


def _process_table(pid: int) -> tuple[str, str]:
    """Return the boot id and the PID namespace of this process; empty if `/proc` does not show this namespace."""
    try:
        if str(Path("/proc/self").readlink()) != str(pid):
            return "", ""
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return boot_id, str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return "", ""


def process_start(pid: int) -> str | None:
    """Return the start time of a process of this PID namespace as opaque text; None if there is no such process."""
    if pid <= 0:
        return None
    try:
        # The second field is the program name in parentheses and may contain blanks.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # A zombie: its parent has not read its exit status yet.
        return None if fields[0] in ("Z", "X") else fields[19]
    except (OSError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return None
    except OSError:
        return ""
    return ""
