"""The tables of one graph: opens and creates them, and keeps handles of pinned versions."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock
from typing import Any

import pyarrow as pa

from omnigraph.observer import timed
from omnigraph.storage.files.layout import detached_manifest, manifest_file, manifest_name
from omnigraph.storage.files.location import Location
from omnigraph.storage.files.new_files import finish_tree
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.files.objects import object_store
from omnigraph.storage.lance.deletions import DeletionCache
from omnigraph.storage.lance.lance_errors import is_missing, lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import STORAGE_VERSION, lance
from omnigraph.storage.lance.tables import DETACHED, Table, is_manifest_of, reclaimed, replaced, stored_field
from omnigraph.storage.lance.value_lookup import LookupCache
from omnigraph.storage.lance.version_parts import VersionPart, changed_ids, open_part
from omnigraph.storage.lance.write_locks import WriteLocks

_HANDLES_MAX = 256
_VERSIONS_MAX = 16
"""Versions of one table whose handles are kept. A handle holds the metadata of every fragment of its version."""
_HANDLE_BYTES = 8 * 1024
_FRAGMENT_BYTES = 2 * 1024
"""The estimated size of a handle, and of the metadata of a fragment in it."""
_CONTENDED_S = 5.0
"""Time during which a table is considered contended."""
_PARTS_MAX = 64
_PARTS_IN_MEMORY = 2
"""Parts of versions that are kept in memory, for a graph that is opened read-only."""
_METADATA_CACHE_BYTES = 64 * 1024 * 1024
_INDEX_CACHE_BYTES = 256 * 1024 * 1024
"""Cache sizes of Lance for all tables of a graph. Every commit adds about 40 kB of metadata, and Lance's defaults are
gigabytes.
"""


class TableStore:
    """Opens and creates the tables of one graph; keeps and reuses handles of pinned versions."""

    def __init__(self, location: Location, *, sync: bool, read_only: bool = False) -> None:
        self.location = location
        self.sync = sync
        self.read_only = read_only
        """True if nothing may be written, not even to read a part of a version."""
        self.objects: ObjectStore = object_store(location, sync=False)
        self.locks = WriteLocks(location)
        self.deletions = DeletionCache()
        self.lookups = LookupCache()
        self._session = new_session()
        self._options = location.storage_options
        self._handles: OrderedDict[tuple[str, int], Table] = OrderedDict()
        self._parts: OrderedDict[tuple[str, VersionPart], Table] = OrderedDict()
        self._newest: dict[str, int] = {}
        """Folder → the highest version that this process has seen."""
        self._newest_handles: dict[str, Table] = {}
        self._lost_at: dict[str, float] = {}
        """Folder → the time at which another writer last took the number of a version."""
        self._lock = Lock()

    def create(self, folder: str, schema: pa.Schema) -> Table:
        """Create an empty table at version 1; the folder must not exist."""
        uri = self.location.child(folder)
        keyed = pa.schema([stored_field(field) for field in schema])
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
            if self.location.path is not None:
                finish_tree(self.location.path / folder, sync=self.sync)
        except lance_errors() as error:
            raise storage_failure(error, self.location, f"table '{folder}' cannot be created") from error
        return Table(self, folder, dataset)

    def open(self, folder: str, version: int, transaction: str = "") -> Table:
        """Open the table at a version; `transaction` is the id of the transaction that made it, if the pin records one.

        A version number alone does not identify a version: a restored or recreated graph uses numbers again. If the
        transaction denotes a part of a version, that state is opened.
        """
        part = VersionPart.of(transaction)
        if part is not None:
            return self._open_part(folder, part)
        key = (folder, version)
        with self._lock:
            table = self._handles.get(key)
            if table is not None and table.is_made_by(transaction):
                self._handles.move_to_end(key)
                return table
        if table is not None:
            self.reset()
        table = Table(self, folder, self.load(folder, version))
        if not table.is_made_by(transaction):
            raise replaced(f"version {version} of table '{folder}' is not the one that the commit refers to")
        self.remember(table)
        return table

    def _open_part(self, folder: str, part: VersionPart) -> Table:
        with self._lock:
            table = self._parts.get((folder, part))
            if table is not None:
                self._parts.move_to_end((folder, part))
        # A cleanup may have removed the part, and a process that has it open must not depend on that.
        if table is not None and (table.part_of is None or self.has_detached(folder, table.version)):
            return table
        base = self.open(folder, part.base, part.base_transaction)
        table = open_part(part, self.open(folder, part.version, part.transaction), base)
        with self._lock:
            self._parts[folder, part] = table
            in_memory = [key for key, one in self._parts.items() if one.part_of is None]
            for key in in_memory[:-_PARTS_IN_MEMORY]:
                del self._parts[key]
            while len(self._parts) > _PARTS_MAX:
                self._parts.popitem(last=False)
        return table

    def has_detached(self, folder: str, version: int) -> bool:
        """Return True if the manifest file of a version without a number exists; opens nothing."""
        return self.objects.written_at(f"{folder}/{detached_manifest(version)}") is not None

    def open_row(self, folder: str, version: int, transaction: str, row_id: str) -> Table:
        """Open a version of the table that has the same row with this id as the given version, or equally none.

        It is the version itself, or for a part of a version one that exists.
        """
        part = VersionPart.of(transaction)
        if part is None:
            return self.open(folder, version, transaction)
        whole = self.open(folder, part.version, part.transaction)
        if row_id in changed_ids(part, whole):
            return whole
        return self.open(folder, part.base, part.base_transaction)

    def reset(self) -> None:
        """Drop all handles and Lance caches, because the folder now contains another history."""
        with self._lock:
            self._handles.clear()
            self._parts.clear()
            self._newest_handles.clear()
            self._newest.clear()
            self._session = new_session()
            self.deletions = DeletionCache()
            self.lookups = LookupCache()

    @timed("storage", "table_open")
    def load(self, folder: str, version: int, *, writable: bool = False) -> lance.LanceDataset:
        """Open a new Lance handle of a version that no other thread shares; files are written with a `writable` one."""
        uri = self.location.writable_child(folder) if writable else self.location.child(folder)
        try:
            return lance.dataset(uri, version=version, storage_options=self._options, session=self._session)
        except lance_errors() as error:
            what = f"version {version} of table '{folder}' cannot be opened"
            if is_missing(error):
                raise reclaimed(what) from error
            raise storage_failure(error, self.location, what) from error

    def has_version(self, folder: str, version: int, transaction: str = "") -> bool:
        """Return True if a version is on disk, made by the given transaction if one is given.

        Open handles do not count. A part of a version exists if the versions before and after the group do.
        """
        part = VersionPart.of(transaction)
        if part is not None:
            return self.has_version(folder, part.version, part.transaction) and self.has_version(
                folder, part.base, part.base_transaction
            )
        path = self.location.path
        if path is not None and transaction:
            return is_manifest_of(manifest_file(path / folder, version), transaction)
        try:
            dataset = lance.dataset(self.location.child(folder), version=version, storage_options=self._options)
        except lance_errors() as error:
            if is_missing(error):
                return False
            raise storage_failure(error, self.location, f"table '{folder}' cannot be opened") from error
        return Table(self, folder, dataset).is_made_by(transaction)

    def has_manifest(self, folder: str, version: int) -> bool:
        """Return True if the manifest file of a numbered version exists; opens nothing."""
        return self.objects.written_at(f"{folder}/_versions/{manifest_name(version)}") is not None

    def remember(self, table: Table) -> None:
        """Keep a handle for the next `open` of its version."""
        self.saw(table.folder, table.version)
        with self._lock:
            self._handles[table.folder, table.version] = table
            newest = self._newest_handles.get(table.folder)
            if newest is None or newest.version < table.version:
                self._newest_handles[table.folder] = table
            versions = [key for key in self._handles if key[0] == table.folder]
            for key in versions[:-_VERSIONS_MAX]:
                del self._handles[key]
            while len(self._handles) > _HANDLES_MAX:
                self._handles.popitem(last=False)

    def newest(self, table: Table) -> Table:
        """Return the newest version of a table that this process has open; the given one if it is newer.

        The version may have been removed since. Lance compares a commit with each version after that of its handle.
        """
        with self._lock:
            newest = self._newest_handles.get(table.folder, table)
        return newest if newest.version > table.version else table

    def saw(self, folder: str, version: int) -> None:
        """Record that a numbered version of a table exists."""
        with self._lock:
            if version > self._newest.get(folder, 0):
                self._newest[folder] = version

    def may_be_newest(self, table: Table) -> bool:
        """Return False if the table certainly has a newer version; makes a request only for a contended table."""
        path = self.location.path
        if path is not None and manifest_file(path / table.folder, table.version + 1).exists():
            return False
        with self._lock:
            known = table.version < DETACHED and table.version >= self._newest.get(table.folder, 0)
        if not known or path is not None or not self._is_contended(table.folder):
            return known
        return not self.has_manifest(table.folder, table.version + 1)

    def record_lost_number(self, folder: str) -> None:
        """Record that another writer took the number of a version."""
        with self._lock:
            self._lost_at[folder] = time.monotonic()

    def _is_contended(self, folder: str) -> bool:
        with self._lock:
            return time.monotonic() - self._lost_at.get(folder, float("-inf")) < _CONTENDED_S

    @property
    def cache_bytes(self) -> int:
        """The size of the Lance caches in bytes."""
        return int(self._session.size_bytes())

    @property
    def handle_bytes(self) -> int:
        """The estimated size of the open versions in bytes."""
        with self._lock:
            tables = {id(table): table for kept in (self._handles, self._parts) for table in kept.values()}
        return sum(_HANDLE_BYTES + _FRAGMENT_BYTES * table.fragments_in_memory() for table in tables.values())

    def forget(self, folder: str) -> None:
        """Drop the handles of a table whose versions were removed."""
        with self._lock:
            for key in [key for key in self._handles if key[0] == folder]:
                del self._handles[key]
            self._newest_handles.pop(folder, None)
            for part in [part for part in self._parts if part[0] == folder]:
                del self._parts[part]


def new_session() -> Any:
    """Return caches of Lance for the tables of a graph."""
    return lance.Session(  # type: ignore[attr-defined]
        index_cache_size_bytes=_INDEX_CACHE_BYTES, metadata_cache_size_bytes=_METADATA_CACHE_BYTES
    )
