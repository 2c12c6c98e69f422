"""The checkpoint of the manifest: the Lance table `__manifest`.

It contains two kinds of rows: *history*, which is append-only, and *state*, which is small and replaced by every
checkpoint. One state row, the position, names the manifest version that the checkpoint represents. A graph of an
earlier storage format has none; its manifest version is the version of the table. The fragments are a few that contain
only history, and one, the last, that contains the state. The first fragment (the anchor) contains the history rows the
graph was created with.

A checkpoint replaces the last fragment in one Lance commit and declares the anchor as modified. Lance compares a commit
with the transactions of the versions that still exist since its base version. Because all of them modify the anchor,
any one of them is enough to refuse the commit, however many versions were dropped in between. So exactly one of several
concurrent checkpoints lands.

The history that a checkpoint adds is merged with history fragments that are not larger, so their number stays
logarithmic. Old versions of the table are dropped; history does not depend on them.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Damaged
from omnigraph.fast_dataclass import dataclass
from omnigraph.observer import timed
from omnigraph.scalar_types.readers import is_unicode
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files.fsync import sync_folder
from omnigraph.storage.files.layout import MANIFEST, manifest_file, manifest_name
from omnigraph.storage.files.location import Location
from omnigraph.storage.files.new_files import finish_files, finish_tree
from omnigraph.storage.files.objects import object_store
from omnigraph.storage.lance.create_once import create_once
from omnigraph.storage.lance.fragments import replace_fragments
from omnigraph.storage.lance.lance_errors import is_conflict, is_missing, lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.tables import sql_text, transaction_of
from omnigraph.storage.manifest.manifest_schema import (
    POSITION_ID,
    SCHEMA,
    STAMP_KEY,
    STATE_TYPES,
    Row,
    to_row,
    to_rows,
)

T = TypeVar("T")

_KEEP_VERSIONS = 4
_METADATA_CACHE_BYTES = 4 * 1024 * 1024
_INDEX_CACHE_BYTES = 1024 * 1024
"""Cache sizes of Lance for the manifest: only its newest version is read again."""
_TABLE_FILES = (".lance", ".manifest", ".txn", ".arrow", ".bin")
"""The ends of the names of data, version, transaction and deletion files."""
_FOUND_MAX = 1_024
"""Rows by id that a checkpoint remembers."""


class CheckpointConflict(Exception):
    """Another process wrote a checkpoint first."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """One version of the Lance table with its state in memory."""

    version: int
    """The manifest version that it represents."""
    id: str
    """Identifies that manifest version."""
    state: pa.Table
    stamp: str | None
    dataset: lance.LanceDataset
    witness: str
    """A history row that exists in every later version of this graph: the head commit of `main`."""
    _found: OrderedDict[str, tuple[Row, ...]] = field(default_factory=OrderedDict)
    _derived: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def positions(self) -> dict[str, int]:
        """State row id → position in `state`."""
        ids = self.state["object_id"].to_pylist()
        positions = {object_id: position for position, object_id in enumerate(ids)}
        if len(positions) != len(ids):
            raise Damaged("the manifest contains a state row twice", code="damaged_manifest")
        return positions

    @property
    def has_position(self) -> bool:
        """True if it names its manifest version; False in a graph of an earlier storage format."""
        return POSITION_ID in self.positions

    @cached_property
    def ids(self) -> dict[str, tuple[str, ...]]:
        """Type of state row → ids of its rows."""
        by_type: dict[str, list[str]] = {}
        for object_id, type_ in zip(
            self.state["object_id"].to_pylist(), self.state["object_type"].to_pylist(), strict=True
        ):
            by_type.setdefault(type_, []).append(object_id)
        return {type_: tuple(ids) for type_, ids in by_type.items()}

    def row(self, object_id: str) -> Row | None:
        """Return a state row; None if there is none."""
        position = self.positions.get(object_id)
        if position is None:
            return None
        row: Row = self.state.slice(position, 1).to_pylist()[0]
        return row

    def derived(self, name: str, make: Callable[[], T]) -> T:
        """Return a value that was computed from this checkpoint, and compute it the first time."""
        if name not in self._derived:
            self._derived[name] = make()
        value: T = self._derived[name]
        return value

    def remembered(self, object_id: str) -> tuple[Row, ...] | None:
        """Return the history rows of an id if they were looked up before."""
        return self._found.get(object_id)

    def remember(self, object_id: str, rows: tuple[Row, ...]) -> None:
        """Keep the result of a lookup."""
        self._found[object_id] = rows
        while len(self._found) > _FOUND_MAX:
            self._found.popitem(last=False)


class CheckpointTable:
    """Creates, reads and writes checkpoints."""

    def __init__(self, location: Location, *, sync: bool) -> None:
        self.location = location
        self.sync = sync
        self._uri = location.writable_child(MANIFEST)
        self._folder = (location.path or Path()) / MANIFEST
        self._options = location.storage_options
        self._session = _new_session()

    @property
    def cache_bytes(self) -> int:
        """The size of the Lance caches in bytes."""
        return int(self._session.size_bytes())

    def reset(self) -> None:
        """Drop the Lance caches, because the folder now contains another history."""
        self._session = _new_session()

    @timed("storage", "manifest_open")
    def open(self) -> lance.LanceDataset:
        """Open the newest version; raises Lance's errors."""
        return lance.dataset(self._uri, storage_options=self._options, session=self._session)

    def exists(self) -> bool:
        """Return True if the table exists."""
        try:
            if self.location.path is not None and not (self._folder / "_versions").is_dir():
                return False
            self.open()
        except lance_errors() as error:
            if is_missing(error):
                return False
            raise storage_failure(error, self.location, "the graph manifest cannot be opened") from error
        return True

    def read(self) -> Checkpoint:
        """Return the newest checkpoint; raises Lance's errors."""
        dataset = self.open()
        fragments = dataset.get_fragments()
        if not fragments:
            raise Damaged("the graph manifest is empty", hint="restore the graph's folder from a copy")
        live = max(fragments, key=lambda fragment: fragment.fragment_id).to_table()
        if live.schema.names != SCHEMA.names:
            raise Damaged(
                f"the columns of the graph manifest are unknown to this release: {', '.join(live.schema.names)}",
                hint="open the graph with the release that wrote it",
            )
        # A graph of an earlier release keeps its newest history beside the state.
        state = live.filter(is_state(live))
        version, id_ = _read_position(state) or (dataset.version, transaction_of(dataset))
        return Checkpoint(version, id_, state, _stamp_of(dataset), dataset, _witness(state))

    def is_newest(self, checkpoint: Checkpoint) -> bool:
        """Return True if no newer checkpoint exists; raises Lance's errors."""
        return transaction_of(self.open()) == transaction_of(checkpoint.dataset)

    def create(self, rows: pa.Table, stamp: str) -> None:
        """Write the checkpoint of version 1. One of several creators succeeds; the others get `CheckpointConflict`."""
        schema = SCHEMA.with_metadata({STAMP_KEY: stamp})
        chosen = is_state(rows)
        anchor = rows.filter(pc.invert(chosen)).cast(schema)
        state = pa.concat_tables([rows.filter(chosen), to_rows([_position(1, uuid4().hex)])]).cast(schema)
        try:
            create_once(self._uri, self._options, anchor, state)
            if self.location.path is not None:
                finish_tree(self._folder, sync=self.sync)
        except FileExistsError as error:
            raise CheckpointConflict from error
        except lance_errors() as error:
            raise storage_failure(error, self.location, "the graph manifest cannot be created") from error

    @timed("storage", "manifest_checkpoint")
    def write(
        self,
        base: Checkpoint,
        state: pa.Table,
        added: pa.Table,
        version: int,
        id_: str,
        rewritten: Collection[str] | None = None,
    ) -> Checkpoint:
        """Write a checkpoint on exactly `base`, or raise `CheckpointConflict`.

        If `rewritten` is given, all history fragments are written again, without the rows with these ids.
        """
        like = base.state.schema
        kept = state.filter(pc.not_equal(state["object_id"], POSITION_ID))
        new_state = pa.concat_tables([kept, to_rows([_position(version, id_)]).cast(like)]).combine_chunks()
        try:
            fragments = sorted(base.dataset.get_fragments(), key=lambda fragment: fragment.fragment_id)
            live = fragments[-1]
            removed = [live.fragment_id]
            # The live fragment of an earlier release also contains its newest history.
            before = live.to_table()
            tail = before.filter(pc.invert(is_state(before))).cast(like)
            added = pa.concat_tables([tail, added.cast(like)])
            new = []
            updated = [fragments[0].metadata]
            if rewritten is not None:
                # The anchor is removed, which conflicts with a checkpoint that declares it as modified.
                removed, updated = [fragment.fragment_id for fragment in fragments], []
                for history in _without(fragments[:-1], added, rewritten):
                    new += lance.fragment.write_fragments(history, base.dataset, mode="append")
            elif added.num_rows:
                merged, gone = _merged(fragments[1:-1], added)
                removed += gone
                new += lance.fragment.write_fragments(merged, base.dataset, mode="append")
            new += lance.fragment.write_fragments(new_state, base.dataset, mode="append")
            operation = replace_fragments(base.dataset, removed=removed, updated=updated, new=new)
            files = [file for fragment in new for file in fragment.files]
            self._finish({self._folder / "data" / file.path: file.file_size_bytes for file in files})
            reach("checkpoint.before_commit")
            dataset = lance.LanceDataset.commit(
                base.dataset, operation, read_version=base.dataset.version, max_retries=0
            )
            self._finish({manifest_file(self._folder, dataset.version): None})
            reach("checkpoint.after_commit")
            self._trim(dataset)
        except lance_errors() as error:
            if is_conflict(error) or is_missing(error):
                raise CheckpointConflict from error
            raise storage_failure(error, self.location, "the graph manifest cannot be written") from error
        return Checkpoint(version, id_, new_state, base.stamp, dataset, _witness(new_state))

    def files(self) -> set[str]:
        """Return every file of the table, relative to its folder; raises Lance's errors."""
        return {path for batch in self.open().all_files() for path in batch.column("path").to_pylist()}

    def read_back(self, made: Checkpoint) -> None:
        """Read a checkpoint that was just written from the store; raise an error if it is incomplete."""
        try:
            # Without the caches of the session, which contain what was written.
            stored = lance.dataset(self._uri, version=made.dataset.version, storage_options=self._options).to_table()
        except lance_errors() as error:
            raise storage_failure(error, self.location, "the new graph manifest cannot be read back") from error
        if stored.filter(is_state(stored)).to_pylist() != made.state.to_pylist():
            raise Damaged("the graph manifest differs from what was written", hint="check the disk, and try again")

    def withdraw(self, made: Checkpoint) -> None:
        """Remove the version of a checkpoint that was just written, if it is the newest one and not the only one."""
        objects = object_store(self.location, sync=False)
        numbered = [name for name in objects.list(f"{MANIFEST}/_versions") if name.endswith(".manifest")]
        newest = f"{MANIFEST}/_versions/{manifest_name(made.dataset.version)}"
        if len(numbered) < 2 or min(numbered) != newest:
            return
        objects.delete(newest)
        if self.location.path is not None and self.sync:
            sync_folder(self._folder / "_versions")
        self.reset()

    def remove_unused(self, newest: Checkpoint, files: Collection[str]) -> int:
        """Remove all versions but the newest, and those of some files that it does not use; return their number."""
        objects = object_store(self.location, sync=False)
        try:
            newest.dataset.cleanup_old_versions(older_than=timedelta(0), retain_versions=1)
            used = {path for batch in self.open().tracked_files() for path in batch.column("path").to_pylist()}
            present = self.files()
        except lance_errors() as error:
            raise storage_failure(error, self.location, "old versions of the manifest cannot be dropped") from error
        gone = [path for path in sorted(present) if path in files and path not in used and path.endswith(_TABLE_FILES)]
        for path in gone:
            objects.delete(f"{MANIFEST}/{path}")
        return len(set(files).difference(present).union(gone))

    def raise_stamp(self, base: Checkpoint, stamp: str) -> None:
        """Commit a new format stamp on exactly `base`, or raise `CheckpointConflict`."""
        update = lance.LanceOperation.UpdateMap({STAMP_KEY: stamp})
        operation = lance.LanceOperation.UpdateConfig(schema_metadata_updates=update)
        try:
            dataset = lance.LanceDataset.commit(
                base.dataset, operation, read_version=base.dataset.version, max_retries=0
            )
            self._finish({manifest_file(self._folder, dataset.version): None})
        except lance_errors() as error:
            if is_conflict(error):
                raise CheckpointConflict from error
            raise storage_failure(error, self.location, "the storage format of the graph cannot be upgraded") from error

    def _finish(self, files: Mapping[Path, int | None]) -> None:
        """Check new files of the table and flush them to disk; nothing on an object store."""
        if self.location.path is not None:
            finish_files(files, sync=self.sync)

    @timed("storage", "manifest_scan")
    def scan(self, at: Checkpoint, condition: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows that satisfy an SQL condition; raises Lance's errors."""
        return at.dataset.to_table(filter=condition, columns=list(columns) if columns is not None else None)

    def find(self, at: Checkpoint, object_ids: Sequence[str]) -> list[Row]:
        """Return the history rows with these ids; raises Lance's errors."""
        found = {object_id: at.remembered(object_id) for object_id in object_ids}
        # Text with an unpaired surrogate cannot be stored, so it is not the id of any row.
        unknown = [object_id for object_id, rows in found.items() if rows is None and is_unicode(object_id)]
        if unknown:
            condition = f"object_id IN ({', '.join(map(sql_text, unknown))})"
            rows: list[Row] = self.scan(at, condition).to_pylist()
            for object_id in unknown:
                same = tuple(row for row in rows if row["object_id"] == object_id and _is_history(row))
                at.remember(object_id, same)
                found[object_id] = same
        return [row for rows_ in found.values() for row in rows_ or ()]

    def _trim(self, dataset: lance.LanceDataset) -> None:
        """Drop old versions of the table, on a best-effort basis; the newest version contains all history rows."""
        try:
            dataset.cleanup_old_versions(older_than=timedelta(0), retain_versions=_KEEP_VERSIONS)
        except lance_errors() as error:
            if not is_conflict(error) and not is_missing(error):
                raise storage_failure(error, self.location, "old versions of the manifest cannot be dropped") from error


def _is_history(row: Row) -> bool:
    """Return True for a history row. In a graph of an earlier storage format, schemas are history."""
    return row["object_type"] not in STATE_TYPES or row["object_type"] == "schema"


def is_state(rows: pa.Table) -> pa.ChunkedArray:
    """Return which rows are state."""
    return pc.is_in(rows["object_type"], value_set=pa.array(STATE_TYPES))


def _merged(sealed: list[lance.LanceFragment], added: pa.Table) -> tuple[pa.Table, list[int]]:
    """Return the rows of a new history fragment and the ids of the fragments it absorbs.

    It absorbs the newest fragments first, as long as they are not larger.
    """
    parts = [added]
    gone: list[int] = []
    total = added.num_rows
    for fragment in reversed(sealed):
        if fragment.count_rows() > total:
            break
        parts.insert(0, fragment.to_table())
        gone.append(fragment.fragment_id)
        total += fragment.count_rows()
    return pa.concat_tables(parts).combine_chunks(), gone


def _without(history: list[lance.LanceFragment], added: pa.Table, rewritten: Collection[str]) -> list[pa.Table]:
    """Return the rows of two history fragments, the first of which is the anchor: all rows, except rewritten ones."""
    rows = [fragment.to_table() for fragment in history]
    size = max(1, rows[0].num_rows) if rows else 1
    gone = pa.array(list(rewritten), pa.utf8())
    kept = [one.filter(pc.invert(pc.is_in(one["object_id"], value_set=gone))) for one in rows]
    every = pa.concat_tables([*kept, added]).combine_chunks()
    return [part for part in (every.slice(0, size), every.slice(size)) if part.num_rows]


def _position(version: int, id_: str) -> Row:
    return to_row(POSITION_ID, POSITION_ID, metadata=json.dumps({"id": id_}), table_version=version)


def _read_position(state: pa.Table) -> tuple[int, str] | None:
    """Return the version that a checkpoint represents and its id; None in a graph of an earlier storage format."""
    rows = state.filter(pc.equal(state["object_id"], POSITION_ID)).to_pylist()
    if not rows:
        return None
    try:
        return int(rows[0]["table_version"]), str(json.loads(rows[0]["metadata"])["id"])
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"the manifest row '{POSITION_ID}' is damaged: {error}", code="damaged_manifest") from error


def _witness(state: pa.Table) -> str:
    heads = state.filter(pc.equal(state["object_id"], "graph_head:main"))["metadata"].to_pylist()
    try:
        return str(json.loads(heads[0])["head_commit_id"])
    except (IndexError, KeyError, TypeError, ValueError):
        return ""


def _stamp_of(dataset: lance.LanceDataset) -> str | None:
    stamp = (dataset.schema.metadata or {}).get(STAMP_KEY.encode())
    return stamp.decode() if stamp is not None else None


def _new_session() -> Any:
    return lance.Session(  # type: ignore[attr-defined]
        index_cache_size_bytes=_INDEX_CACHE_BYTES, metadata_cache_size_bytes=_METADATA_CACHE_BYTES
    )
