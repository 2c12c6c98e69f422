"""Removal of the files that a purge replaced, after its switch.

All versions that nothing pins are removed, and then the files that existed before the switch and that no version uses.
Writes that were prepared before the switch may still add files; they end within their lease and cannot be published. A
second pass removes what they leave, if it contains purged rows.
"""

from __future__ import annotations

import time

from omnigraph.checkpoints import checked, checkpoint
from omnigraph.errors import Conflict, Hint
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files import layout
from omnigraph.storage.files.fsync import sync_folders_below
from omnigraph.storage.lance.garbage import list_versions, referenced_files, remove
from omnigraph.storage.lance.lance_errors import storage_failure
from omnigraph.storage.lance.row_removal import Removal, file_contains
from omnigraph.storage.lance.table_versions import renewed
from omnigraph.versioning.model.purges import IdCondition, PurgeRecord, PurgeTarget
from omnigraph.versioning.purge.plan import PurgePlan
from omnigraph.versioning.purge.purge import PurgeSearch
from omnigraph.versioning.write.recovery import recover
from omnigraph.versioning.write.repository import Repository

_WRITERS_S = 10.0
"""The time for which writes that began before the switch are waited for."""
_LOOK_S = 0.05
_OWN = ("_versions/", "data/", "_deletions/", "_transactions/", "_indices/")
"""Folders of a table whose files are removed; others belong to Lance."""
_HINT = "latest_version_hint"


def sweep_tables(repository: Repository, record: PurgeRecord, plan: PurgePlan) -> dict[str, int]:
    """Remove the versions and files that the history does not use any more.

    Returns the files that existed before the switch and are removed, by full name, with their sizes.
    """
    removed: dict[str, int] = {}
    state = repository.state()
    pinned = PurgeSearch(repository, record, None).pinned(state)
    for target in checked(record.targets):
        folder = state.tables[target.table].folder
        _sweep_table(repository, folder, pinned[target.table], plan.listed.get(folder, {}), removed)
        reach("purge.swept")
    _wait_for_writers(repository)
    for target in checked(record.targets):
        _sweep_late(repository, record, target)
        _check_replaced(repository, state.tables[target.table].folder, plan)
    return removed


def flush_removals(repository: Repository) -> None:
    """Flush what was removed from a local graph to disk: a power failure does not bring it back."""
    path = repository.location.path
    if path is not None and repository.tables.sync:
        try:
            sync_folders_below(path)
        except OSError as error:
            what = "the removal of files cannot be flushed to disk"
            raise storage_failure(error, repository.location, what) from error


def _check_replaced(repository: Repository, folder: str, plan: PurgePlan) -> None:
    """Refuse to end a purge while a version still refers to a file that contains purged rows."""
    left = sorted(plan.replaced.get(folder, {}).keys() & referenced_files(repository.tables, folder))
    if left:
        raise Conflict(
            f"{len(left)} files with purged rows are still in use, such as '{folder}/{left[0]}'",
            code="purge_incomplete",
            hint=Hint(
                "stop writers that began before the purge, and call graph.purge_resume()",
                cli="stop writers that began before the purge, and run 'omnigraph purge resume'",
            ),
        )


def _sweep_table(
    repository: Repository, folder: str, pinned: set[int], listed: dict[str, int], removed: dict[str, int]
) -> None:
    store, objects = repository.tables, repository.objects
    _restore_newest(repository, folder, pinned)
    versions = [file.version for file in list_versions(store, folder)]
    before = {f"_versions/{layout.manifest_name(version)}": version for version in versions}
    # Versions that a write made after the switch are not in the listing.
    remove(store, folder, [version for name, version in before.items() if name in listed and version not in pinned])
    used = referenced_files(store, folder)
    for name in sorted(listed):
        keeps = name in used or _HINT in name or not name.startswith(_OWN) or _is_large_value(name, used)
        if not keeps and not (name.startswith("_versions/") and before.get(name) in pinned):
            objects.delete(f"{folder}/{name}")
    left = objects.sizes(folder)
    for name, size in listed.items():
        if f"{folder}/{name}" not in left:
            removed[f"{folder}/{name}"] = size
    store.forget(folder)


def _is_large_value(name: str, used: set[str]) -> bool:
    """Return True if a file stores large values of a data file that is used."""
    parts = name.split("/")
    return len(parts) == 3 and parts[0] == "data" and f"data/{parts[1]}.lance" in used


def _restore_newest(repository: Repository, folder: str, pinned: set[int]) -> None:
    """Make the newest version one that may stay, because Lance keeps the newest one."""
    versions = [file.version for file in list_versions(repository.tables, folder)]
    present = pinned.intersection(versions)
    if versions and present and versions[-1] not in present:
        renewed(repository.tables.open(folder, max(present)), max(present))


def _wait_for_writers(repository: Repository) -> None:
    """Wait until the writes that began before now have ended, and recover those of dead writers."""
    objects = repository.objects
    waiting = set(objects.list(layout.RECOVERY))
    end = time.monotonic() + _WRITERS_S
    while waiting and time.monotonic() < end:
        checkpoint()
        recover(repository)
        waiting &= set(objects.list(layout.RECOVERY))
        if waiting:
            time.sleep(_LOOK_S)


def _sweep_late(repository: Repository, record: PurgeRecord, target: PurgeTarget) -> None:
    """Remove unpinned versions and unreferenced data files that contain purged rows."""
    state = repository.state()
    store, objects = repository.tables, repository.objects
    folder = state.tables[target.table].folder
    search = PurgeSearch(repository, record, None)
    pinned = search.pinned(state)[target.table]
    present = [file.version for file in list_versions(store, folder)]
    condition = IdCondition(target.columns, record)
    found = Removal(store, folder, condition)
    dirty = [version for version in checked(present) if version not in pinned and found.contains_rows(version)]
    if dirty:
        _restore_newest(repository, folder, pinned)
        remove(store, folder, dirty)
    used = referenced_files(store, folder)
    for name in objects.list(f"{folder}/data"):
        path = name.removeprefix(f"{folder}/")
        if path not in used and file_contains(store, name, condition):
            objects.delete(name)
            objects.delete_folder(name.removesuffix(".lance"))
