"""Removal of table versions that nothing pins.

Only this module deletes table data. The caller decides which versions are removed; a file is removed with the last
version that refers to it. The newest version of a table is never removed, because Lance requires one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from omnigraph.errors import Damaged, StorageError
from omnigraph.fast_dataclass import dataclass
from omnigraph.storage.files import layout
from omnigraph.storage.files.objects import object_store
from omnigraph.storage.lance.lance_errors import is_missing, lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.table_store import TableStore

_HALF_WRITTEN = ".tmp"
"""Prefix of the names of Lance's temporary files."""


@dataclass(frozen=True, slots=True)
class VersionFile:
    """A numbered version of a table and the time it was written."""

    version: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Removed:
    """Versions that were removed, and the number of bytes that this freed."""

    versions: tuple[int, ...]
    bytes: int


def list_versions(store: TableStore, folder: str) -> list[VersionFile]:
    """Return every numbered version of a table with the time it was written, oldest first."""
    written: dict[int, datetime] = {}
    for path, written_at in _files(store, folder):
        name = path.rsplit("/", 1)[-1]
        if "_versions/" in path and name.endswith(".manifest") and name[0].isdigit():
            written[2**64 - 1 - int(name.removesuffix(".manifest"))] = written_at
    return [VersionFile(version, written[version]) for version in sorted(written)]


def versions_of_commit(store: TableStore, folder: str, after: int, key: str, commit_id: str) -> list[int]:
    """Return the versions later than `after` whose transaction contains this commit id."""
    try:
        dataset = _latest(store, folder)
    except lance_errors() as error:
        if is_missing(error):
            return []
        raise
    found: list[int] = []
    for version in range(max(after, 0) + 1, dataset.version + 1):
        try:
            transaction = dataset.read_transaction(version)
        except lance_errors(TypeError):
            # Removed in the meantime; or a compaction that rewrote an index: Lance cannot return its transaction, and
            # it is not a commit.
            continue
        if transaction is not None and (transaction.transaction_properties or {}).get(key) == commit_id:
            found.append(version)
    return found


def referenced_files(store: TableStore, folder: str) -> set[str]:
    """Return every file that some numbered version of a table refers to, relative to the table's folder."""
    try:
        return {path for batch in _latest(store, folder).tracked_files() for path in batch.column("path").to_pylist()}
    except lance_errors() as error:
        raise storage_failure(error, store.location, f"the files of '{folder}' cannot be listed") from error


def remove_versions(store: TableStore, folder: str, versions: Iterable[int]) -> list[int]:
    """Remove these versions, except the newest one, and return those that were removed.

    Another process may be removing the same versions. What remains after a conflict is removed by the next cleanup.
    """
    chosen = list(versions)
    try:
        return list(remove(store, folder, chosen).versions) if chosen else []
    except Damaged:
        return []


def remove(store: TableStore, folder: str, versions: Sequence[int], *, no_writers: bool = False) -> Removed:
    """Remove these versions and the files that no other version refers to.

    A file that no version ever referred to may belong to a write in progress. It is removed after seven days (a
    constant of Lance), or at once if the caller guarantees that there are no writers.
    """
    _check_links(store, folder)
    try:
        dataset = _latest(store, folder)
        present = {reference["version"] for reference in dataset.version_refs()}
        chosen = sorted({version for version in versions if version in present and version != dataset.version})
        if not chosen and not no_writers:
            return Removed((), 0)
        # The newest version is never removed; passing it alone only removes unreferenced files.
        stats = dataset.cleanup_old_versions(versions=chosen or [dataset.version], delete_unverified=no_writers)
    except lance_errors() as error:
        raise storage_failure(error, store.location, f"old versions of '{folder}' cannot be removed") from error
    store.forget(folder)
    return Removed(tuple(chosen), int(stats.bytes_removed))


def _check_links(store: TableStore, folder: str) -> None:
    """Refuse to delete from a table whose symbolic links lead out of the graph's folder."""
    root = store.location.path
    if root is None:
        return
    table = root / folder
    for path in (table, *(entry for entry in table.glob("*") if entry.is_dir())):
        if not path.resolve().is_relative_to(root.resolve()):
            raise StorageError(
                f"'{path}' is outside the graph's folder; nothing was deleted",
                code="no_access",
                hint="replace the symbolic link with the folder itself",
            )


def remove_unfinished(store: TableStore, folder: str, older_than: datetime) -> int:
    """Remove manifests of changes that were never promoted, and temporary files; return their number."""
    objects = object_store(store.location)
    gone = 0
    for path, written_at in _files(store, folder):
        detached = path.startswith("_versions/d") and path.endswith(".manifest")
        if (detached or path.rsplit("/", 1)[-1].startswith(_HALF_WRITTEN)) and written_at < older_than:
            objects.delete(f"{folder}/{path}")
            gone += 1
    return gone


def unknown_folders(store: TableStore, known: set[str]) -> dict[str, datetime]:
    """Return the table folders that the manifest does not list, with the time each was last written.

    An init or a schema change that did not complete leaves such folders.
    """
    objects = object_store(store.location)
    return {
        folder: written_at
        for parent in layout.TABLES
        for folder, written_at in objects.folders(parent).items()
        if folder not in known and layout.is_table_folder(folder)
    }


def _files(store: TableStore, folder: str) -> Iterator[tuple[str, datetime]]:
    """Yield every file of a table, relative to its folder, and the time it was written."""
    try:
        for batch in _latest(store, folder).all_files():
            times = batch.column("last_modified").to_pylist()
            for path, modified in zip(batch.column("path").to_pylist(), times, strict=True):
                yield path, modified.astimezone(UTC)
    except lance_errors() as error:
        raise storage_failure(error, store.location, f"the files of '{folder}' cannot be listed") from error


def _latest(store: TableStore, folder: str) -> lance.LanceDataset:
    return lance.dataset(store.location.child(folder), storage_options=store.location.storage_options)
