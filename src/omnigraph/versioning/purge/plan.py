"""The plan of a purge: a file of the graph that lets another process finish a purge after its switch.

It is written before the switch and contains names of files, never values: the files that existed in the folders of the
searched tables, and what was rewritten. A file that existed before the switch and that no version refers to afterwards
is garbage: a write that was prepared before the switch can no longer be published.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import Damaged
from omnigraph.storage.files import layout
from omnigraph.storage.files.object_store import ObjectStore


@dataclass
class PurgePlan:
    """What a purge rewrites and removes."""

    listed: dict[str, dict[str, int]] = field(default_factory=dict)
    """Folder → the files in it before the switch, relative to it, with their sizes."""
    replaced: dict[str, dict[str, str | None]] = field(default_factory=dict)
    """Folder → data and deletion file → the file that takes its place; None for none."""
    rows: dict[str, int] = field(default_factory=dict)
    """Table key → number of purged ids in it."""
    versions: dict[str, int] = field(default_factory=dict)
    """Table key → number of rewritten versions."""
    manifest_rows: int = 0
    """Number of rewritten rows of the manifest."""
    indexed: list[str] = field(default_factory=list)
    """Keys of tables whose versions lost an index."""
    bytes_read: int = 0
    bytes_written: int = 0
    bytes_manifests: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return dict(vars(self))


def plan_name(purge_id: str) -> str:
    """Return the object of the plan of a purge."""
    return f"{layout.PURGES}/{purge_id}/plan.json"


def write_plan(objects: ObjectStore, purge_id: str, plan: PurgePlan) -> None:
    """Store a plan."""
    objects.write(plan_name(purge_id), json.dumps(plan.to_json(), separators=(",", ":")).encode())


def read_plan(objects: ObjectStore, purge_id: str) -> PurgePlan:
    """Read the plan of a purge that has switched."""
    name = plan_name(purge_id)
    data = objects.read(name)
    try:
        return PurgePlan(**json.loads(data or b""))
    except (TypeError, ValueError) as error:
        raise Damaged(
            f"'{name}' is damaged: {error}", code="damaged_document", hint="restore it from a copy"
        ) from error
