"""Whether the process that left a note is still at work.

On its own machine the process itself tells. Elsewhere the lease in the note does, and as long as the work is under way
the lease is renewed, however long that takes: a bulk load may flush for minutes between its note and its publish.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from omnigraph.errors import OmniGraphError
from omnigraph.storage.objects import ObjectStore
from omnigraph.versioning.ids import Clock

LEASE_US = 60_000_000
"""How long a silent process is presumed alive when nobody can look."""

RENEW_S = LEASE_US / 1_000_000 / 3
"""How often a lease is renewed: one renewal may fail, and a second one is still in time."""


class Lease:
    """A note that says who is at work, and keeps saying that it is."""

    def __init__(self, objects: ObjectStore, clock: Clock, name: str, facts: Mapping[str, Any]) -> None:
        self._objects = objects
        self._clock = clock
        self._name = name
        self._facts = {**facts, "writer": writer_identity()}
        self._done = Event()
        self._keeper = Thread(target=self._keep, name=f"lease of {name}", daemon=True)

    def start(self) -> None:
        """Write the note; from now on its lease is kept."""
        self._put()
        self._keeper.start()

    def stop(self) -> None:
        """Keep the lease no longer; once this returns, nothing brings the note back."""
        self._done.set()
        if self._keeper.ident is not None:
            self._keeper.join()

    def _keep(self) -> None:
        while not self._done.wait(RENEW_S):
            # The next one may succeed; and a lease that runs out costs the work, never the graph.
            with suppress(OmniGraphError):
                self._put()

    def _put(self) -> None:
        document = {**self._facts, "lease_until": self._clock() + LEASE_US}
        self._objects.write(self._name, json.dumps(document, indent=1).encode())


def may_live(note: Mapping[str, Any], now: int) -> bool:
    """Whether who left a note may still be at work: asked of the machine if it is this one, else of the lease."""
    writer = note.get("writer") or {}
    if writer.get("host") == socket.gethostname() and isinstance(writer.get("pid"), int):
        alive = process_start(writer["pid"])
        return alive is not None and alive == writer.get("started", alive)
    return bool(note["lease_until"] > now)


def writer_identity() -> dict[str, str | int]:
    """Who is writing: enough to tell, on the same machine, whether the process still lives."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "pid": pid, "started": process_start(pid) or ""}


def process_start(pid: int) -> str | None:
    """When a process of this machine started, as opaque text; None when there is no such process."""
    try:
        # The second field is the program's name in parentheses and may itself hold blanks.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # Dead, and only waiting for its parent to notice.
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
