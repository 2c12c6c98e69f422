"""One table at one version: read it, stage a change on it, promote the change to a version of its own.

A table is a Lance dataset that is never read at "latest": whoever reads or writes says which version.
A change is staged on exactly the version its writer saw, committed *detached* (which never rebases onto
a stranger's rows), and then promoted to a numbered, immutable version. Nobody sees that version until it
is pinned elsewhere, so a crash at any point leaves files that nothing refers to, and nothing else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import Session  # type: ignore[attr-defined]
from lance.fragment import FragmentMetadata, RowIdSequence, write_fragments
from lance.optimize import Compaction

from omnigraph.errors import Damaged, HeadMoved
from omnigraph.storage.deletions import DeletionCache
from omnigraph.storage.durable import sync_files, sync_tree
from omnigraph.storage.failpoints import reach
from omnigraph.storage.fragments import Prepared, prepared_transaction
from omnigraph.storage.lance_errors import LANCE_ERRORS, is_conflict, is_missing, storage_failure
from omnigraph.storage.location import Location
from omnigraph.storage.objects import ObjectStore, object_store
from omnigraph.storage.races import pause

STORAGE_VERSION: Literal["2.2"] = "2.2"
_BLOB = {"lance-encoding:blob": "true"}
PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
FRAGMENTS_MAX = 64
"""A table in so many pieces more than its rows need is compacted before the next change is staged on it."""

FRAGMENT_ROWS = 262_144
"""How many rows a piece has at most. Who replaces one row pays for the row ids of the whole piece it was in."""

Piece = tuple[str, int, str]
"""A part of a table: its files, the rows in them, and which of those are gone."""

_LOOKUP_BY_INDEX_MAX = 2_000
_HANDLES_MAX = 256
_PROMOTE_TRIES = 60


@dataclass(frozen=True)
class Change:
    """What to do to one table; `overwrite` excludes everything else.

    `append` adds rows whose ids are new, `upsert` adds rows or replaces those with the same id,
    `delete` removes ids. An id may be in one of them only. `prepared` stands alone: its rows are written already.
    """

    append: pa.Table | None = None
    upsert: pa.Table | None = None
    delete: Sequence[str] = ()
    overwrite: pa.Table | None = None
    prepared: Prepared | None = None


@dataclass(frozen=True)
class Promoted:
    """A numbered version nobody refers to yet."""

    version: int
    row_count: int
    transaction_uuid: str


class TableStore:
    """Opens and creates the tables of one graph; handles of pinned versions are kept and reused."""

    def __init__(self, location: Location, *, sync: bool) -> None:
        self.location = location
        self.sync = sync
        self.objects: ObjectStore = object_store(location, sync=False)
        self.deletions = DeletionCache()
        self._session = Session()
        self._options: dict[str, str] | None = dict(location.options) or None
        self._handles: OrderedDict[tuple[str, int], Table] = OrderedDict()
        self._lock = Lock()

    def create(self, folder: str, schema: pa.Schema) -> Table:
        """Create an empty table at version 1; the folder must be new."""
        uri = self.location.child(folder)
        keyed = pa.schema([_stored_field(field) for field in schema])
        try:
            dataset = lance.write_dataset(
                keyed.empty_table(),
                uri,
                mode="create",
                schema=keyed,
                enable_stable_row_ids=True,
                data_storage_version=STORAGE_VERSION,
                storage_options=self._options,
                session=self._session,
            )
        except LANCE_ERRORS as error:
            raise storage_failure(error, self.location, f"table '{folder}' cannot be created") from error
        if self.sync and self.location.path is not None:
            sync_tree(self.location.path / folder)
        return Table(self, folder, dataset)

    def open(self, folder: str, version: int) -> Table:
        """The table at a version."""
        key = (folder, version)
        with self._lock:
            table = self._handles.get(key)
            if table is not None:
                self._handles.move_to_end(key)
                return table
        try:
            dataset = lance.dataset(
                self.location.child(folder), version=version, storage_options=self._options, session=self._session
            )
        except LANCE_ERRORS as error:
            what = f"version {version} of table '{folder}' cannot be opened"
            if is_missing(error):
                raise reclaimed(what) from error
            raise storage_failure(error, self.location, what) from error
        table = Table(self, folder, dataset)
        self.remember(table)
        return table

    def has_version(self, folder: str, version: int) -> bool:
        """Whether a version is still there, whatever handle of it may be open."""
        try:
            lance.dataset(self.location.child(folder), version=version, storage_options=self._options)
        except LANCE_ERRORS as error:
            if is_missing(error):
                return False
            raise storage_failure(error, self.location, f"table '{folder}' cannot be opened") from error
        return True

    def remember(self, table: Table) -> None:
        """Keep a handle for the next `open` of its version."""
        with self._lock:
            self._handles[table.folder, table.version] = table
            while len(self._handles) > _HANDLES_MAX:
                self._handles.popitem(last=False)

    def forget(self, folder: str) -> None:
        """Drop the handles of a table whose versions were removed."""
        with self._lock:
            for key in [key for key in self._handles if key[0] == folder]:
                del self._handles[key]


class Table:
    """A table at one version."""

    def __init__(self, store: TableStore, folder: str, dataset: lance.LanceDataset) -> None:
        self.store = store
        self.folder = folder
        self.dataset = dataset
        self.version: int = dataset.version

    # -- reading ---------------------------------------------------------------------------------

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns; a Blob is large binary, however it is stored."""
        return pa.schema(
            [
                pa.field(field.name, pa.large_binary(), field.nullable) if _is_blob(field) else field.remove_metadata()
                for field in self.dataset.schema
            ]
        )

    @cached_property
    def blobs(self) -> frozenset[str]:
        """The columns whose values are stored beside the rows."""
        return frozenset(field.name for field in self.dataset.schema if _is_blob(field))

    @cached_property
    def row_count(self) -> int:
        """How many rows the version has; no data is read."""
        with self.reading():
            return int(self.dataset.count_rows())

    @property
    def fragment_count(self) -> int:
        """In how many pieces the version is stored."""
        return len(self.dataset.get_fragments())

    def property(self, key: str) -> str | None:
        """What the change that made this version was given under `key` when it was staged."""
        with self.reading():
            transaction = self.dataset.read_transaction(self.version)
        found: str | None = (transaction.transaction_properties or {}).get(key) if transaction is not None else None
        return found

    def read(
        self, columns: Sequence[str] | None = None, *, filter: str | None = None, limit: int | None = None
    ) -> pa.Table:
        """Rows as one Arrow table; `filter` is SQL over the columns."""
        with self.reading():
            return self._scanner(columns, filter=filter, limit=limit).to_table()

    def batches(
        self, columns: Sequence[str] | None = None, *, filter: str | None = None, pieces: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows as Arrow batches, for tables that do not fit memory; of all pieces, or of some."""
        with self.reading():
            if pieces is None:
                yield from self._scanner(columns, filter=filter, limit=None).to_batches()
            elif pieces:
                every = self.dataset.get_fragments()
                chosen = [every[piece] for piece in pieces]
                wanted = [*columns] if columns is not None else self.schema.names
                yield from self.dataset.scanner(columns=wanted, filter=filter, fragments=chosen).to_batches()

    def read_removed(self, name: str, piece: int) -> pa.Array:
        """A column of a piece with the rows in it that are gone: all places, in order."""
        with self.reading():
            chosen = [self.dataset.get_fragments()[piece]]
            scanner = self.dataset.scanner([name], fragments=chosen, with_row_id=True, include_deleted_rows=True)
            return _one_chunk(scanner.to_table()[name])

    @cached_property
    def fragments(self) -> tuple[Piece, ...]:
        """The pieces the version is made of, in row order: equal pieces of any two versions hold equal rows."""
        return tuple(_piece(fragment) for fragment in self.dataset.get_fragments())

    @cached_property
    def field_ids(self) -> dict[str, int]:
        """What tells a column through its renames: a name may come to mean another column of the same files."""
        return {field.name(): field.id() for field in self.dataset.lance_schema.fields()}

    def read_from(self, columns: Sequence[str], first_fragment: int) -> pa.Table:
        """The rows of all pieces from one on."""
        with self.reading():
            pieces = self.dataset.get_fragments()[first_fragment:]
            if not pieces:
                return self.schema.empty_table().select(list(columns))
            return self.dataset.scanner(columns=list(columns), fragments=pieces).to_table()

    def read_file(self, name: str) -> bytes:
        """A small file of the table, by its name below the table's folder."""
        data = self.store.objects.read(f"{self.folder}/{name}")
        if data is None:
            raise reclaimed(f"file '{name}' of table '{self.folder}' cannot be read")
        return data

    def rows_of(self, ids: Sequence[str], columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with these ids, in no promised order."""
        wanted = [*columns] if columns is not None else self.schema.names
        if len(ids) > _LOOKUP_BY_INDEX_MAX:
            table = self.read(wanted if "id" in wanted else [*wanted, "id"])
            return table.filter(pc.is_in(table["id"], value_set=pa.array(ids, pa.utf8()))).select(wanted)
        if not ids:
            return self.schema.empty_table().select([name for name in wanted if name in self.schema.names])
        return self.read(wanted, filter=f"id IN ({', '.join(sql_text(i) for i in ids)})")

    def _scanner(self, columns: Sequence[str] | None, *, filter: str | None, limit: int | None) -> lance.LanceScanner:
        wanted = [*columns] if columns is not None else self.schema.names
        # Only who asks for a Blob pays for its bytes.
        handling: Literal["all_binary"] | None = "all_binary" if self.blobs.intersection(wanted) else None
        return self.dataset.scanner(columns=wanted, filter=filter, limit=limit, blob_handling=handling)

    def reading(self) -> AbstractContextManager[None]:
        """Around every use of `dataset`: what Lance raises becomes an error of ours."""
        return _Reading(self)

    # -- staging ---------------------------------------------------------------------------------

    def stage(self, change: Change, properties: Mapping[str, str]) -> Staged | None:
        """Write what `change` needs, visible to nobody; None when it changes nothing.

        Upserts keep the identity of the rows they replace. `properties` travel with the transaction.
        """
        try:
            transaction = self._transaction(change)
        except LANCE_ERRORS as error:
            raise storage_failure(
                error, self.store.location, f"a change of table '{self.folder}' cannot be staged"
            ) from error
        if transaction is None:
            return None
        transaction.transaction_properties = {**(transaction.transaction_properties or {}), **properties}
        reach("table.staged")
        return Staged(self, transaction)

    def _transaction(self, change: Change) -> lance.Transaction | None:
        if change.prepared is not None:
            return prepared_transaction(self, change.prepared)
        if change.overwrite is not None:
            return self._overwrite(change.overwrite)
        if (change.upsert is None or not change.upsert.num_rows) and not change.delete:
            if change.append is None or not change.append.num_rows:
                return None
            return self._written(change.append, "append")
        return self._mixed(change)

    def aligned(self, rows: pa.Table) -> pa.Table:
        """The rows in the table's own column order and types."""
        aligned = rows.select(self.schema.names).cast(self.schema).combine_chunks()
        return aligned.cast(pa.schema([_stored_field(field) for field in self.schema])) if self.blobs else aligned

    def _overwrite(self, rows: pa.Table) -> lance.Transaction | None:
        if not rows.num_rows and not self.row_count:
            return None
        if not rows.num_rows:
            return lance.Transaction(self.version, lance.LanceOperation.Overwrite(self.dataset.lance_schema, []))
        return self._written(rows, "overwrite")

    def _written(self, rows: pa.Table, mode: Literal["append", "overwrite"]) -> lance.Transaction:
        return write_fragments(
            self.aligned(rows), self.dataset, mode=mode, max_rows_per_file=FRAGMENT_ROWS, return_transaction=True
        )

    def _mixed(self, change: Change) -> lance.Transaction | None:
        """Upserts, inserts and deletes as one transaction that keeps row ids and creation stamps.

        Replaced and deleted rows are marked in their fragments; new rows follow in fragments whose first
        rows carry the row ids of those they replace.
        """
        upsert = self.aligned(change.upsert) if change.upsert is not None else self.schema.empty_table()
        keys = pa.concat_arrays([_one_chunk(upsert["id"]), pa.array(list(change.delete), pa.utf8())])
        hits = self.rows_of(keys.to_pylist(), ["id", "_rowid", "_rowaddr"])
        updated: list[FragmentMetadata] = []
        removed: list[int] = []
        addresses = np.sort(hits["_rowaddr"].to_numpy().astype(np.uint64))
        for fragment_id, offsets in _by_fragment(addresses):
            fragment = self.dataset.get_fragment(fragment_id)
            assert fragment is not None
            rest = fragment.delete_rows(offsets)
            if rest is None:
                removed.append(fragment_id)
            else:
                updated.append(rest)
        place = pc.index_in(upsert["id"], value_set=_one_chunk(hits["id"]))
        replaced = upsert.filter(pc.is_valid(place))
        fresh = upsert.filter(pc.is_null(place))
        rows = pa.concat_tables([replaced, fresh])
        if change.append is not None:
            rows = pa.concat_tables([rows, self.aligned(change.append)])
        fragments: list[FragmentMetadata] = []
        if rows.num_rows:
            fragments = write_fragments(
                rows.combine_chunks(), self.dataset, mode="append", max_rows_per_file=FRAGMENT_ROWS
            )
            row_ids = hits["_rowid"].take(pc.drop_null(place)).to_pylist()
            for written in fragments:
                kept, row_ids = row_ids[: written.physical_rows], row_ids[written.physical_rows :]
                if kept:
                    written.row_id_meta = RowIdSequence(kept).to_inline_metadata()
        if not fragments and not updated and not removed:
            return None
        operation = lance.LanceOperation.Update(
            removed_fragment_ids=removed,
            updated_fragments=updated,
            new_fragments=fragments,
            fields_modified=[],
            # Leaving a field out would mark the new fragment as covered by that field's index.
            fields_for_preserving_frag_bitmap=[field.id() for field in self.dataset.lance_schema.fields()],
            update_mode="rewrite_rows",
        )
        return lance.Transaction(self.version, operation)

    # -- maintenance -----------------------------------------------------------------------------

    def compacted(self, *, always: bool = False) -> Table:
        """The same rows in fewer pieces, as an unpinned version; this table when there is nothing to gain.

        Losing a race against another writer of the table is no failure: the table stays as it is.
        """
        spare = self.fragment_count - FRAGMENTS_MAX
        if not always and (spare <= 0 or spare <= self.row_count // FRAGMENT_ROWS):
            return self
        try:
            if not Compaction.plan(self.dataset, {"target_rows_per_fragment": FRAGMENT_ROWS}).num_tasks():
                return self
            again = self.promote_operation(lance.LanceOperation.Restore(self.version), {})
            again.optimize.compact_files(target_rows_per_fragment=FRAGMENT_ROWS)
            self.store_sync(again, tree=True)
        except LANCE_ERRORS as error:
            if is_conflict(error):
                return self
            raise storage_failure(error, self.store.location, f"table '{self.folder}' cannot be compacted") from error
        return Table(self.store, self.folder, again)

    def evolved(self, *, rename: Mapping[str, str], drop: Sequence[str], add: Sequence[pa.Field]) -> Table:
        """The same rows under other columns, as an unpinned version; no data is rewritten.

        Fails with `HeadMoved` when another writer of the table came in between.
        """
        try:
            again = self.promote_operation(lance.LanceOperation.Restore(self.version), {})
            if drop:
                again.drop_columns(list(drop))
            for old, new in rename.items():
                again.alter_columns({"path": old, "name": new})  # type: ignore[dict-item]
            if add:
                again.add_columns(pa.schema([_stored_field(field.with_nullable(True)) for field in add]))
        except LANCE_ERRORS as error:
            if is_conflict(error):
                raise HeadMoved(f"table '{self.folder}' was written meanwhile", hint="try again") from error
            raise storage_failure(error, self.store.location, f"table '{self.folder}' cannot be changed") from error
        self.store_sync(again)
        return Table(self.store, self.folder, again)

    def promote_operation(self, operation: Any, properties: Mapping[str, str]) -> lance.LanceDataset:
        """Commit a `Restore` on the numbered line and return the new version.

        Another writer may take the same number, or collect a version that Lance is just looking at: then it is
        tried again, here, because Lance would wait up to half a minute between two tries.
        """
        transaction = lance.Transaction(self.version, operation, transaction_properties=dict(properties))
        for attempt in range(_PROMOTE_TRIES):
            try:
                return lance.LanceDataset.commit(self.dataset, transaction, max_retries=0)
            except LANCE_ERRORS as error:
                if not (is_conflict(error) or is_missing(error)) or attempt == _PROMOTE_TRIES - 1:
                    raise
                pause(attempt)
        raise AssertionError("the loop returns or raises")

    def store_sync(self, dataset: lance.LanceDataset, *, tree: bool = False) -> None:
        """Flush what `dataset` has and this version has not."""
        path = self.store.location.path
        if not self.store.sync or path is None:
            return
        folder = path / self.folder
        if tree:
            sync_tree(folder)
            return
        for uuid in _indexes_of(dataset) - _indexes_of(self.dataset):
            sync_tree(folder / "_indices" / uuid)
        sync_files([*_new_files(self.dataset, dataset, folder), manifest_file(folder, dataset.version)])


@dataclass(frozen=True)
class Staged:
    """A change that is written but belongs to no version yet."""

    base: Table
    transaction: lance.Transaction

    def promote(self) -> tuple[Table, Promoted]:
        """Give the change a numbered version, synced to the disk; nobody refers to it yet."""
        base = self.base
        try:
            detached = lance.LanceDataset.commit(base.dataset, self.transaction, detached=True)
            reach("table.detached")
            properties = self.transaction.transaction_properties or {}
            dataset = base.promote_operation(lance.LanceOperation.Restore(detached.version), properties)
            base.store_sync(dataset)
            path = base.store.location.path
            if path is not None:
                # The numbered version is complete in itself; this file would only lengthen every listing.
                (path / base.folder / "_versions" / f"d{detached.version}.manifest").unlink(missing_ok=True)
        except LANCE_ERRORS as error:
            if is_conflict(error):
                raise HeadMoved(
                    f"too many writers of table '{base.folder}' at once; nothing was written", hint="try again"
                ) from error
            raise storage_failure(
                error, base.store.location, f"a change of table '{base.folder}' cannot be written"
            ) from error
        table = Table(base.store, base.folder, dataset)
        reach("table.promoted")
        return table, Promoted(table.version, table.row_count, self.transaction.uuid)


class _Reading(AbstractContextManager[None]):
    """Turns Lance's exceptions into ours around a read."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, LANCE_ERRORS):
            table = self.table
            what = f"table '{table.folder}' at version {table.version} cannot be read"
            # A cleanup may have taken the version away under a handle that was open.
            if is_missing(error) and not table.store.has_version(table.folder, table.version):
                raise reclaimed(what) from error
            raise storage_failure(error, table.store.location, what) from error


def reclaimed(what: str) -> Damaged:
    """A version or file that was there once."""
    return Damaged(
        f"{what}: it was reclaimed or lost",
        code="version_reclaimed",
        hint="a cleanup removes old versions; read a newer commit",
    )


def files_of(fragment: lance.LanceFragment) -> str:
    """What tells the rows of a piece: its data files, which are never written twice.

    The number of a fragment tells nothing: two branches give the same number to different rows.
    """
    return "|".join(file.path for file in fragment.metadata.files)


def _piece(fragment: lance.LanceFragment) -> Piece:
    """What tells a piece: its files, and which of its rows are gone."""
    metadata = fragment.metadata
    gone = metadata.deletion_file.json() if metadata.deletion_file is not None else ""
    return files_of(fragment), metadata.physical_rows, gone


def _stored_field(field: pa.Field) -> pa.Field:
    """A column as Lance should store it: `id` as primary key, binary as blobs beside the rows."""
    if field.name == "id":
        return field.with_metadata(PRIMARY_KEY)
    return field.with_metadata(_BLOB) if pa.types.is_large_binary(field.type) else field


def _is_blob(field: pa.Field) -> bool:
    return isinstance(field.type, pa.BaseExtensionType) or (field.metadata or {}).get(b"lance-encoding:blob") == b"true"


def create_once(
    uri: str, rows: pa.Table, options: dict[str, str] | None, *, rows_per_file_max: int = 1_000_000
) -> None:
    """Write version 1 of a table; of several creators exactly one succeeds, the others get `FileExistsError`.

    Lance's own create looks first and commits then: whoever loses that race replaces the winner's rows by a
    version 2. A commit on no version at all and without a second try has nothing to replace.
    """
    try:
        fragments = write_fragments(
            rows,
            uri,
            schema=rows.schema,
            mode="create",
            max_rows_per_file=rows_per_file_max,
            enable_stable_row_ids=True,
            data_storage_version=STORAGE_VERSION,
            storage_options=options,
        )
        operation = lance.LanceOperation.Overwrite(rows.schema, fragments)
        lance.LanceDataset.commit(
            uri, operation, read_version=0, max_retries=0, enable_stable_row_ids=True, storage_options=options
        )
    except LANCE_ERRORS as error:
        text = str(error).lower()
        if is_conflict(error) or "already exists" in text or "_versions/0.manifest" in text:
            raise FileExistsError(uri) from error
        raise


def manifest_file(folder: Path, version: int) -> Path:
    """Where Lance keeps the manifest of a numbered version."""
    return folder / "_versions" / manifest_name(version)


def manifest_name(version: int) -> str:
    """What Lance calls the manifest of a numbered version: the newest comes first in a listing."""
    return f"{2**64 - 1 - version:020}.manifest"


def sql_text(text: str) -> str:
    """A string literal for a filter."""
    return "'" + text.replace("'", "''") + "'"


def _new_files(before: lance.LanceDataset, after: lance.LanceDataset, folder: Path) -> list[Path]:
    """The files of the fragments in which two versions differ."""
    known = {fragment.fragment_id: fragment.metadata for fragment in before.get_fragments()}
    files: list[Path] = []
    for fragment in after.get_fragments():
        metadata = fragment.metadata
        if known.get(metadata.id) == metadata:
            continue
        for file in metadata.files:
            path = folder / "data" / file.path
            files += [path, *path.with_suffix("").glob("*")]  # large values have files of their own beside it
        if metadata.deletion_file is not None:
            files.append(folder / metadata.deletion_file.path(metadata.id))
    return files


def _indexes_of(dataset: lance.LanceDataset) -> set[str]:
    return {segment.uuid for index in dataset.describe_indices() for segment in index.segments}


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _by_fragment(addresses: np.ndarray[Any, Any]) -> Iterable[tuple[int, list[int]]]:
    fragments = addresses >> np.uint64(32)
    for fragment in np.unique(fragments):
        chosen = addresses[fragments == fragment]
        yield int(fragment), [int(address) & 0xFFFFFFFF for address in chosen]
