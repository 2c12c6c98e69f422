"""Records of purges: state rows of the manifest that name purged rows by keyed digests, never by their ids.

The record of a purge stays in the manifest. It lets an interrupted purge continue without the ids, it is the stored
part of the certificate, and it refuses writes that would bring a purged row back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from functools import cached_property
from itertools import compress
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.fast_dataclass import dataclass
from omnigraph.storage.manifest.manifest_schema import PURGE_EPOCH_ID, Row, to_row
from omnigraph.versioning.model.manifest_objects import Kind, instant
from omnigraph.versioning.model.manifest_rows import damaged_row, read_metadata

PURGE = "graph_purge"
PURGE_PREFIX = "graph_purge:"
FREEZE_ID = "purge_freeze"
"""The state row that asks other writers to wait while a purge replaces the history."""
_DIGEST_BYTES = 16

PurgeState = Literal["running", "switched", "done"]
TableId = tuple[int, int]


def digest_of(salt: str, id_: str) -> str:
    """Return the keyed digest of an id."""
    return hashlib.blake2b(id_.encode(), key=bytes.fromhex(salt), digest_size=_DIGEST_BYTES).hexdigest()


@dataclass(frozen=True)
class PurgeTarget:
    """A table that a purge searches, and the columns in which the ids select rows."""

    table: TableId
    key: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class PurgeRecord:
    """A purge: what it removes, its author, and how far it is."""

    id: str
    kind: Kind
    type_name: str
    edges: bool
    reason: str
    actor: str | None
    created_us: int
    targets: tuple[PurgeTarget, ...]
    salt: str
    digests: frozenset[str]
    """Keyed digests of the ids. Those of ids that are allowed again are removed."""
    state: PurgeState = "running"
    finished_us: int | None = None
    summary: Mapping[str, Any] = field(default_factory=dict)
    """The numbers of removed rows and files, and the digest of the certificate."""
    request: str | None = None
    """The keyed digest of the idempotency key."""

    @property
    def created_at(self) -> datetime:
        """The time in UTC at which the purge began."""
        return instant(self.created_us)

    @property
    def finished_at(self) -> datetime | None:
        """The time in UTC at which the purge ended; None if it has not."""
        return instant(self.finished_us) if self.finished_us is not None else None

    @property
    def object_id(self) -> str:
        """The id of its row."""
        return f"{PURGE_PREFIX}{self.id}"

    def names(self, id_: str) -> bool:
        """Return True if the purge removes the rows of an id."""
        return digest_of(self.salt, id_) in self.digests

    def moved(self, state: PurgeState) -> PurgeRecord:
        """Return the record of the purge in another state."""
        return replace(self, state=state)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that all interfaces show."""
        return {
            "purge_id": self.id,
            "type": self.type_name,
            "edges": self.edges,
            "reason": self.reason,
            "actor_id": self.actor,
            "state": self.state,
            "started_at": self.created_us,
            "finished_at": self.finished_us,
            "ids": len(self.digests),
            **self.summary,
        }


class PurgedIds:
    """Recognises ids by the digests of purges. Digests with the same key are computed once for all purges."""

    def __init__(self, columns: tuple[str, ...], records: Iterable[PurgeRecord]) -> None:
        self.columns = columns
        self._digests: dict[str, set[bytes]] = {}
        for record in records:
            self._digests.setdefault(record.salt, set()).update(map(bytes.fromhex, record.digests))

    def among(self, ids: Sequence[str | None]) -> list[bool]:
        """Return which of some ids were purged."""
        found = [False] * len(ids)
        for salt, digests in self._digests.items():
            new = hashlib.blake2b(key=bytes.fromhex(salt), digest_size=_DIGEST_BYTES).copy
            for number, id_ in enumerate(ids):
                if id_ is not None:
                    digest = new()
                    digest.update(id_.encode())
                    if digest.digest() in digests:
                        found[number] = True
        return found

    def any_in(self, values: pa.Array) -> bool:
        """Return True if a column contains a purged id."""
        return any(self.among(pc.unique(values).to_pylist()))


@dataclass(frozen=True)
class IdCondition:
    """Selects the rows of purged ids: by the ids, if they are known, or by their digests."""

    columns: tuple[str, ...]
    record: PurgeRecord
    ids: frozenset[str] | None = None

    @cached_property
    def _purged(self) -> PurgedIds:
        return PurgedIds(self.columns, [self.record])

    def selects(self, values: pa.Array) -> pa.Array:
        """Return which values are purged ids."""
        if self.ids is not None:
            return pc.is_in(values, value_set=pa.array(sorted(self.ids), pa.utf8()))
        encoded = one_array(values).dictionary_encode()
        named = pa.array(self._purged.among(encoded.dictionary.to_pylist()), pa.bool_())
        return pc.fill_null(named.take(encoded.indices), False) if len(named) else pa.array([False] * len(values))


def purge_to_row(record: PurgeRecord) -> Row:
    """Return the `graph_purge` row."""
    metadata = {
        "kind": record.kind,
        "type": record.type_name,
        "edges": record.edges,
        "reason": record.reason,
        "actor_id": record.actor,
        "created_at": record.created_us,
        "targets": [[*target.table, target.key, list(target.columns)] for target in record.targets],
        "salt": record.salt,
        "digests": sorted(record.digests),
        "state": record.state,
        "finished_at": record.finished_us,
        "summary": dict(record.summary),
        "request": record.request,
    }
    return to_row(record.object_id, PURGE, metadata=json.dumps(metadata, ensure_ascii=False, separators=(",", ":")))


def row_to_purge(row: Row) -> PurgeRecord:
    """Read a `graph_purge` row."""
    data = read_metadata(row)
    try:
        return PurgeRecord(
            id=row["object_id"].removeprefix(PURGE_PREFIX),
            kind=data["kind"],
            type_name=data["type"],
            edges=bool(data["edges"]),
            reason=data["reason"],
            actor=data["actor_id"],
            created_us=int(data["created_at"]),
            targets=tuple(
                PurgeTarget((int(table), int(incarnation)), key, tuple(columns))
                for table, incarnation, key, columns in data["targets"]
            ),
            salt=data["salt"],
            digests=frozenset(data["digests"]),
            state=data["state"],
            finished_us=data["finished_at"],
            summary=data["summary"],
            request=data.get("request"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_row(row, str(error)) from error


def epoch_to_row(epoch: int) -> Row:
    """Return the state row with the number of purges that rewrote the history."""
    return to_row(PURGE_EPOCH_ID, PURGE, table_version=epoch)


def freeze_to_row(purge_id: str) -> Row:
    """Return the state row that asks other writers to wait."""
    return to_row(FREEZE_ID, PURGE, metadata=json.dumps({"purge": purge_id}))


def purged_among(records: Iterable[PurgeRecord], table: TableId, ids: Collection[str]) -> Sequence[str]:
    """Return those of some ids of a table that were purged."""
    concerned = [
        record
        for record in records
        if any(target.table == table and "id" in target.columns for target in record.targets)
    ]
    listed = list(ids)
    return sorted(compress(listed, PurgedIds(("id",), concerned).among(listed)))
