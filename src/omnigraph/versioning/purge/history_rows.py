"""The rows of the manifest after a purge: the pins of every commit and tag refer to the versions without the rows.

Ids, parents, actors, times and messages of commits do not change. Recorded results of requests are removed, because
they may contain values of purged rows: the rows that a mutation returned, and the digests of arguments.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from omnigraph.checkpoints import checked
from omnigraph.storage.lance.row_removal import NewVersion, Removal
from omnigraph.storage.lance.version_parts import VersionPart
from omnigraph.storage.manifest.manifest_schema import HistoryFilter, Row
from omnigraph.versioning.model.manifest_objects import Pin
from omnigraph.versioning.model.manifest_rows import (
    head_to_log_row,
    pins_to_json,
    read_metadata,
    row_to_commit_and_pins,
    tag_to_row,
)
from omnigraph.versioning.model.purges import PurgeRecord, TableId
from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.repository import Repository

Removals = Mapping[TableId, Removal]
_RETURNED = "returned"
"""The metadata of a commit with the name of its query and the rows that it returned."""


class PinMoves:
    """Pins of versions without the purged rows."""

    def __init__(self, removals: Removals) -> None:
        self._removals = removals

    def moved(self, pin: Pin) -> Pin:
        """Return the pin of the counterpart of a version; the pin itself if the version has none."""
        removal = self._removals.get((pin.table_id, pin.incarnation))
        if removal is None or not removal.new:
            return pin
        part = pin.part
        if part is not None:
            return self._moved_part(pin, part, removal)
        new = _new_version(removal, pin.lance_version, pin.transaction)
        if new is None:
            return pin
        return replace(pin, lance_version=new.version, row_count=new.row_count, transaction=new.transaction)

    def _moved_part(self, pin: Pin, part: VersionPart, removal: Removal) -> Pin:
        whole = _new_version(removal, part.version, part.transaction)
        base = _new_version(removal, part.base, part.base_transaction)
        if whole is None and base is None:
            return pin
        changed = {id_ for ids in removal.changed_ids(part.version)[: part.writes] for id_ in ids}
        gone = len(removal.live_ids(part.version) & changed) + len(removal.live_ids(part.base) - changed)
        moved = VersionPart(
            part.version if whole is None else whole.version,
            part.transaction if whole is None else whole.transaction,
            part.base if base is None else base.version,
            part.base_transaction if base is None else base.transaction,
            part.writes,
        )
        return replace(pin, lance_version=moved.number, row_count=pin.row_count - gone, transaction=str(moved))


def _new_version(removal: Removal, version: int, transaction: str) -> NewVersion | None:
    """Return the counterpart of a version; None if there is none, or if another transaction made the version."""
    new = removal.new.get(version)
    if new is None or (transaction and new.replaces and transaction != new.replaces):
        return None
    return new


def rewritten_history(
    repository: Repository, state: State, record: PurgeRecord, removals: Removals, affected: Collection[str]
) -> tuple[list[Row], list[Row]]:
    """Return the history rows that a purge rewrites, and the state rows that it replaces.

    `affected` are the keys of the tables that contained purged rows.
    """
    moves = PinMoves(removals)
    pins: dict[tuple[TableId, int], Pin] = {}
    """Table and number of a pinned version or part → its pin after the purge."""
    changed: dict[str, set[str]] = {}
    """Commit → the keys of the tables that it changed."""

    def commit_row(row: Row) -> Row:
        commit, old = row_to_commit_and_pins(row)
        new = tuple(map(moves.moved, old))
        pins.update(
            {((pin.table_id, pin.incarnation), pin.lance_version): now for pin, now in zip(old, new, strict=True)}
        )
        changed[commit.id] = set(commit.changed)
        data = read_metadata(row)
        data.update(pins_to_json(new))
        metadata = data["metadata"]
        if isinstance(metadata, dict) and metadata.get(_RETURNED):
            data["metadata"] = {**metadata, _RETURNED: [metadata[_RETURNED][0], None]}
        return _with_metadata(row, data)

    def version_row(row: Row) -> Row:
        identity = (int(row["stable_table_id"]), int(row["table_incarnation_id"]))
        data = read_metadata(row)
        old = int(data["lance_version"])
        new = pins.get((identity, old))
        removal = removals.get(identity)
        if removal is None or new is None or new.lance_version == old:
            return row
        counterpart = removal.new.get(old)
        data["lance_version"] = new.lance_version
        if counterpart is not None:
            kept = {
                file: digest
                for file, digest in data.get("digests", {}).items()
                if file.startswith(("data/", "_deletions/")) and file not in removal.replaced
            }
            data["digests"] = {**kept, **counterpart.digests}
        return {**_with_metadata(row, data), "row_count": new.row_count}

    def request_row(row: Row) -> Row:
        data = read_metadata(row)
        if data.get("request_hash") is None or changed.get(data["commit_id"] or "", set()).isdisjoint(affected):
            return row
        return _with_metadata(row, {**data, "request_hash": None})

    segments = _alias_segments(repository, state, record)

    def alias_row(row: Row) -> Row:
        data = read_metadata(row)
        if data["hash"] not in segments:
            return row
        aliases = json.loads(data["document"])["aliases"]
        kept = {old: node for old, node in aliases.items() if not record.names(old) and not record.names(node)}
        if kept == aliases:
            return row
        return _with_metadata(row, {**data, "document": json.dumps({"aliases": kept}, ensure_ascii=False)})

    rewritten: list[Row] = []
    kinds: tuple[tuple[str, Callable[[Row], Row]], ...] = (
        ("graph_commit", commit_row),
        ("table_version", version_row),
        ("idempotency", request_row),
        ("aliases", alias_row),
    )
    for kind, convert in kinds:
        for row in checked(repository.manifest.scan(state.manifest, HistoryFilter(kind))):
            new = convert(row)
            if new != row:
                rewritten.append(new)
    tags = [replace(tag, pins=tuple(map(moves.moved, tag.pins))) for tag in state.tags()]
    heads = [head_to_log_row(head) for head in state.heads()]
    return rewritten, [*heads, *map(tag_to_row, tags)]


def _alias_segments(repository: Repository, state: State, record: PurgeRecord) -> set[str]:
    """Return the hashes of the documents with aliases of nodes of the purged type, of all commits."""
    tables = {str(target.table[0]) for target in record.targets if "id" in target.columns}
    found: set[str] = set()
    for row in repository.manifest.scan(state.manifest, HistoryFilter("aliases")):
        root = json.loads(read_metadata(row)["document"]).get("tables", {})
        found.update(hash_ for table in tables & root.keys() for hash_ in root[table] if hash_)
    return found


def _with_metadata(row: Row, data: Mapping[str, Any]) -> Row:
    """Return a row with other metadata; the row itself if they are equal."""
    if data == read_metadata(row):
        return row
    return {**row, "metadata": json.dumps(data, ensure_ascii=False, separators=(",", ":"))}
