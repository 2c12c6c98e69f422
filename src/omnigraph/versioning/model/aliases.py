"""Aliases: former ids of nodes that were unified with other nodes.

The set of a branch is part of its commits, as the schema is. It consists of immutable documents of the manifest, each
named by its hash: segments with about a thousand aliases each, and one root that names the segments of every table. A
change writes the segments that it affects and the root. An alias leads to its node directly: a chain is shortened when
it is made.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checkpoint
from omnigraph.fast_dataclass import dataclass

SEGMENT_MAX = 1_024
"""The mean number of aliases of a segment above which a table gets twice as many segments."""
AliasChanges = Mapping[int, Mapping[str, str | None]]
"""Table id → former id → id of its node; None removes the alias."""


@dataclass(frozen=True, slots=True)
class AliasRecord:
    """One immutable document of an alias set, as stored in the manifest."""

    hash: str
    document: str


ReadDocument = Callable[[str], str]
"""Returns the document with a hash."""


class AliasSet:
    """The aliases of one commit, by table. Segments are read on demand."""

    def __init__(self, hash_: str = "", read: ReadDocument | None = None) -> None:
        self.hash = hash_
        """The hash of the root; empty if there is no alias."""
        self._read = read
        self._new: dict[str, AliasRecord] = {}
        self._roots: dict[int, list[str]] | None = None if hash_ else {}
        self._segments: dict[str, Mapping[str, str]] = {"": {}}
        self._arrays: dict[int, tuple[pa.Array, pa.Array]] = {}

    def __bool__(self) -> bool:
        return bool(self.hash)

    @property
    def records(self) -> tuple[AliasRecord, ...]:
        """The documents of this set that the set it was made from does not have."""
        return tuple(self._new.values())

    def tables(self) -> list[int]:
        """Return the ids of the tables that have aliases."""
        return sorted(self._root())

    def find(self, table_id: int, id_: str) -> str | None:
        """Return the node of an alias; None if the text is not an alias."""
        segments = self._root().get(table_id)
        return None if segments is None else self._segment(segments[_bucket(id_, len(segments))]).get(id_)

    def entries(self, table_id: int) -> dict[str, str]:
        """Return all aliases of a table."""
        found: dict[str, str] = {}
        for segment in self._root().get(table_id, ()):
            checkpoint()
            found.update(self._segment(segment))
        return found

    def among(self, table_id: int, ids: Iterable[str]) -> dict[str, str]:
        """Return the ids that are aliases, with their nodes."""
        if table_id not in self._root():
            return {}
        return {id_: kept for id_ in ids if (kept := self.find(table_id, id_)) is not None}

    def of_nodes(self, table_id: int, ids: Iterable[str]) -> dict[str, str]:
        """Return the aliases of some nodes."""
        wanted = set(ids)
        return {old: kept for old, kept in self.entries(table_id).items() if kept in wanted}

    def resolve(self, table_id: int, ids: pa.Array) -> pa.Array:
        """Return ids with each alias replaced by the id of its node; the same array if there is none."""
        if table_id not in self._root() or not len(ids):
            return ids
        old, kept = self.arrays(table_id)
        places = pc.index_in(ids, value_set=old)
        return ids if places.null_count == len(ids) else pc.coalesce(kept.take(places), ids)

    def arrays(self, table_id: int) -> tuple[pa.Array, pa.Array]:
        """Return all aliases of a table, and their nodes."""
        known = self._arrays.get(table_id)
        if known is None:
            entries = self.entries(table_id)
            known = pa.array(entries.keys(), pa.utf8()), pa.array(entries.values(), pa.utf8())
            self._arrays[table_id] = known
        return known

    def with_changes(self, changes: AliasChanges) -> AliasSet:
        """Return the set with some aliases added or removed."""
        roots = {table: list(segments) for table, segments in self._root().items()}
        made: dict[str, AliasRecord] = {}
        for table, changed in changes.items():
            segments = roots.get(table, [""])
            buckets: dict[int, dict[str, str]] = {}
            for old, kept in changed.items():
                checkpoint()
                number = _bucket(old, len(segments))
                if number not in buckets:
                    buckets[number] = dict(self._segment(segments[number]))
                bucket = buckets[number]
                if kept is None:
                    bucket.pop(old, None)
                else:
                    bucket[old] = kept
            if any(len(bucket) > 2 * SEGMENT_MAX for bucket in buckets.values()):
                every = {number: dict(self._segment(hash_)) for number, hash_ in enumerate(segments)} | buckets
                total = sum(map(len, every.values()))
                count = len(segments)
                while total > count * SEGMENT_MAX:
                    count *= 2
                segments, buckets = [""] * count, {number: {} for number in range(count)}
                for bucket in every.values():
                    for old, kept in bucket.items():
                        buckets[_bucket(old, count)][old] = kept
            for number, bucket in buckets.items():
                segments[number] = self._keep(bucket, made)
            if any(segments):
                roots[table] = segments
            else:
                roots.pop(table, None)
        if not roots:
            return AliasSet()
        root = {str(table): segments for table, segments in sorted(roots.items())}
        after = AliasSet(_record({"tables": root}, made).hash, self._read)
        after._roots = roots
        after._segments = dict(self._segments)
        for record in made.values():
            if record.hash != after.hash:
                after._segments[record.hash] = json.loads(record.document)["aliases"]
        after._new = {**self._new, **made}
        return after

    def differences(self, other: AliasSet) -> Iterator[tuple[int, str, str | None, str | None]]:
        """Yield the aliases in which another set differs: (table id, former id, node here, node there)."""
        if self.hash == other.hash:
            return
        here, there = self._root(), other._root()
        for table in sorted({*here, *there}):
            mine, yours = here.get(table, []), there.get(table, [])
            if mine == yours:
                continue
            if len(mine) == len(yours):
                pairs = [(a, b) for a, b in zip(mine, yours, strict=True) if a != b]
                before = {old: kept for a, _ in pairs for old, kept in self._segment(a).items()}
                after = {old: kept for _, b in pairs for old, kept in other._segment(b).items()}
            else:
                before, after = self.entries(table), other.entries(table)
            for old in sorted({*before, *after}):
                if before.get(old) != after.get(old):
                    yield table, old, before.get(old), after.get(old)

    def changes_to(self, other: AliasSet) -> dict[int, dict[str, str | None]]:
        """Return the changes that turn this set into another one."""
        changes: dict[int, dict[str, str | None]] = {}
        for table, old, _, kept in self.differences(other):
            changes.setdefault(table, {})[old] = kept
        return changes

    def _keep(self, bucket: Mapping[str, str], made: dict[str, AliasRecord]) -> str:
        """Return the hash of a segment; an empty one has none."""
        return _record({"aliases": dict(sorted(bucket.items()))}, made).hash if bucket else ""

    def _root(self) -> dict[int, list[str]]:
        if self._roots is None:
            self._roots = {int(table): segments for table, segments in self._document(self.hash)["tables"].items()}
        return self._roots

    def _segment(self, hash_: str) -> Mapping[str, str]:
        found = self._segments.get(hash_)
        if found is None:
            found = self._segments[hash_] = self._document(hash_)["aliases"]
        return found

    def _document(self, hash_: str) -> Any:
        assert self._read is not None, "a set with a hash has a reader"
        return json.loads(self._read(hash_))


def chained(aliases: AliasSet, table_id: int, merged: Mapping[str, str]) -> dict[str, str | None]:
    """Return the changes of an alias set after nodes were unified: former id → node.

    Aliases of a former node lead to the node that it was unified with.
    """
    changes: dict[str, str | None] = dict(merged)
    for old, kept in aliases.of_nodes(table_id, merged).items():
        changes[old] = merged[kept]
    return changes


def unique_ids(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the distinct values of a column of ids."""
    return pc.unique(one_array(column))


def _bucket(id_: str, count: int) -> int:
    return zlib.crc32(id_.encode("utf-8", "surrogatepass")) & (count - 1)


def _record(document: Mapping[str, object], made: dict[str, AliasRecord]) -> AliasRecord:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    record = AliasRecord(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), text)
    made[record.hash] = record
    return record
