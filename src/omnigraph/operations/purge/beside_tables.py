"""Removal of purged rows from what a graph keeps beside its tables: derived structures and logs of proposals."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from omnigraph.checkpoints import checked
from omnigraph.engine.cache import disk_cache
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.proposals.event_log import stored_ids
from omnigraph.operations.proposals.proposal_events import ProposalEvent
from omnigraph.storage.files.layout import PROPOSALS
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.versioning.model.purges import PurgeRecord
from omnigraph.versioning.purge.plan import PurgePlan

_REMOVED = "(removed by a purge)"


def remove_derived(context: GraphContext, plan: PurgePlan) -> int:
    """Remove the derived structures of the searched tables, on disk and on the object store; return their number."""
    context.cache.forget()
    folders = [folder for folder, replaced in plan.replaced.items() if replaced or plan.rows]
    removed = 0
    if context.cache.folder is not None:
        removed += disk_cache.remove_of(context.cache.folder, folders)
    if context.cache.remote is not None:
        removed += context.cache.remote.remove_of(folders)
    return removed


def clean_proposals(objects: ObjectStore, record: PurgeRecord) -> int:
    """Remove comments on purged rows, and choices for them, from the logs of proposals; return the number of events."""
    keys = {target.key for target in record.targets if "id" in target.columns}
    changed = 0
    for proposal_id in checked(stored_ids(objects)):
        threads: set[str] = set()
        for name in objects.list(f"{PROPOSALS}/{proposal_id}"):
            data = objects.read(name)
            if data is None:
                continue
            event = ProposalEvent.decode(data, name)
            cleaned = _cleaned(event, keys, record, threads)
            if cleaned is not None:
                objects.write(name, json.dumps({**event.to_json(), "data": cleaned}, separators=(",", ":")).encode())
                changed += 1
    return changed


def _cleaned(
    event: ProposalEvent, keys: Collection[str], record: PurgeRecord, threads: set[str]
) -> dict[str, Any] | None:
    """Return the data of an event without purged rows; None if it has none. `threads` are comments on such rows."""
    data = dict(event.data)
    if event.kind == "comment":
        on = data.get("on") or {}
        is_on_row = on.get("table_key") in keys and record.names(str(on.get("row_id")))
        if not is_on_row and data.get("reply_to") not in threads and data.get("replaces") not in threads:
            return None
        threads.add(str(data.get("id")))
        return None if data.get("text") == _REMOVED else {**data, "text": _REMOVED, "on": None}
    if event.kind == "resolution":
        kept = _without(data.get("resolve"), record)
        return {**data, "resolve": kept} if kept != data.get("resolve") else None
    return None


def _without(value: Any, record: PurgeRecord) -> Any:
    """Return choices for conflicts without those that name purged ids."""
    if isinstance(value, dict):
        return {key: _without(item, record) for key, item in value.items() if not _names(key, record)}
    if isinstance(value, list):
        return [_without(item, record) for item in value if not _names(item, record)]
    return value


def _names(value: Any, record: PurgeRecord) -> bool:
    """Return True if a text is a purged id, alone or after the key of a table."""
    return isinstance(value, str) and any(
        record.names(part) for part in (value, value.rpartition(":")[2], value.rpartition("/")[2])
    )
