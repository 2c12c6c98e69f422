"""One version of the manifest in memory: the rows of a checkpoint and the changes of the log records after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from omnigraph.fast_dataclass import dataclass
from omnigraph.storage.manifest.checkpoint import Checkpoint
from omnigraph.storage.manifest.commit_log import FileIdentity, LogRecord, entry_name
from omnigraph.storage.manifest.manifest_schema import PURGE_EPOCH_ID, SCHEMA, Row

_COLUMNS = tuple(SCHEMA.names)


@dataclass(frozen=True, slots=True)
class Change:
    """One manifest version as a change: state rows to replace, ids to remove, history rows to add.

    `rewrite` are history rows that take the place of those with the same ids. Only a purge rewrites history.
    """

    put: Sequence[Row] = ()
    drop: Sequence[str] = ()
    add: Sequence[Row] = ()
    rewrite: Sequence[Row] = ()


@dataclass(frozen=True, eq=False)
class ManifestVersion:
    """One version of the manifest in memory: a checkpoint and what changed since."""

    version: int
    id: str
    """Identifies the version; the number alone does not."""
    stamp: str | None
    checkpoint: Checkpoint
    changed: Mapping[str, Row | None]
    """State rows that replaced those of the checkpoint; None for removed ones."""
    added: Mapping[str, Row]
    """History rows since the checkpoint, oldest first, and those that a purge rewrote since."""
    rewritten: frozenset[str]
    """The ids of rows in `added` that take the place of rows of the checkpoint."""
    witness: str
    """The newest history row that is known. It exists in every later version of this graph."""
    epoch: int
    """The number of times this process found that the graph was replaced by another one."""
    base: int
    base_id: str
    lines: tuple[bytes, ...]
    """The encoded records after version `base`; the next entry continues them."""
    store: str | None = None
    """The object store that was found to honour conditional writes when the version was published."""
    entry: str | None = None
    """The entry that published the version; None if only a checkpoint shows it."""
    file_identity: FileIdentity | None = None
    """The file of the entry; None on an object store."""

    def row(self, object_id: str) -> Row | None:
        """Return a state row; None if there is none."""
        if object_id in self.changed:
            return self.changed[object_id]
        return self.checkpoint.row(object_id)

    @cached_property
    def purge_epoch(self) -> int:
        """The number of purges that rewrote the history. A version with another number has other pins."""
        row = self.row(PURGE_EPOCH_ID)
        return int(row["table_version"]) if row is not None else 0

    def has_row(self, object_id: str) -> bool:
        """Return True if a state row exists."""
        if object_id in self.changed:
            return self.changed[object_id] is not None
        return object_id in self.checkpoint.positions

    def ids_of(self, object_type: str) -> list[str]:
        """Return the ids of the state rows of a type."""
        changed = self._changed_of.get(object_type)
        before = self.checkpoint.ids.get(object_type, ())
        if not changed:
            return list(before)
        kept = [object_id for object_id in before if object_id not in self.changed]
        return kept + [object_id for object_id in changed if self.changed[object_id] is not None]

    def is_changed(self, object_type: str) -> bool:
        """Return True if a state row of a type was added, replaced or removed since the checkpoint."""
        return object_type in self._changed_of

    @cached_property
    def _changed_of(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for object_id, row in self.changed.items():
            known = row if row is not None else self.checkpoint.row(object_id)
            if known is not None:
                found.setdefault(known["object_type"], []).append(object_id)
        return found

    @cached_property
    def next_entry(self) -> str:
        """The name of the entry of the next version."""
        return entry_name(self.version + 1)


def version_at_checkpoint(checkpoint: Checkpoint, epoch: int) -> ManifestVersion:
    """Return the version that a checkpoint represents."""
    return ManifestVersion(
        version=checkpoint.version,
        id=checkpoint.id,
        stamp=checkpoint.stamp,
        checkpoint=checkpoint,
        changed={},
        added={},
        rewritten=frozenset(),
        witness=checkpoint.witness,
        epoch=epoch,
        base=checkpoint.version,
        base_id=checkpoint.id,
        lines=(),
    )


def version_after(version: ManifestVersion, records: Sequence[LogRecord]) -> ManifestVersion:
    """Return the version after some records; the log and its file are those of the given version."""
    changed = dict(version.changed)
    added = dict(version.added)
    rewritten = version.rewritten
    for record in records:
        for object_id in record.drop:
            changed[object_id] = None
        for row in record.put:
            changed[row["object_id"]] = _complete(row)
        for row in record.add:
            added[row["object_id"]] = _complete(row)
        if record.rewrite:
            added |= {row["object_id"]: _complete(row) for row in record.rewrite}
            rewritten |= {row["object_id"] for row in record.rewrite}
    last = records[-1]
    return replace(
        version,
        version=last.version,
        id=last.id,
        changed=changed,
        added=added,
        rewritten=rewritten,
        witness=next(reversed(added), version.witness),
    )


def _complete(row: Row) -> Row:
    """Return a row with all columns."""
    return row if len(row) == len(_COLUMNS) else {name: row.get(name) for name in _COLUMNS}
