"""Fences: manifest rows that prevent an operation from being published.

An operation that is considered dead may only be slow. Before anything of it is removed, a `graph_abort` row with its id
is published. A publish is a compare-and-swap on the manifest and looks for this row in the version that it replaces. An
operation is therefore published before its fence or never.
"""

from __future__ import annotations

import re
from datetime import timedelta

from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.versioning.model.manifest_objects import microseconds
from omnigraph.versioning.model.manifest_rows import abort_to_row, read_metadata
from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.repository import Repository

_KEPT_US = int(timedelta(days=1).total_seconds() * 1_000_000)
"""Time for which a fence is kept, by the store's clock. A later publish fails too: its versions are gone by then."""

_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


def is_operation_id(text: str) -> bool:
    """Return True if a text is a valid id of a commit or job; such ids never equal the id of another manifest row."""
    return _ID.fullmatch(text) is not None


def fence(repository: Repository, fenced_id: str, operation_id: str) -> bool:
    """Prevent the publish of a commit or bulk job; return False if the commit is already published."""
    assert is_operation_id(fenced_id)
    landed = False
    now = microseconds(repository.objects.now())

    def decide(state: State) -> Change | None:
        nonlocal landed
        landed = repository.find_commit(fenced_id, state) is not None
        if landed or state.is_aborted(fenced_id):
            return None
        stale = [row["object_id"] for row in state.aborts() if read_metadata(row)["created_at"] < now - _KEPT_US]
        return Change(put=(abort_to_row(fenced_id, operation_id, now),), drop=tuple(stale))

    repository.publish(decide)
    return not landed
