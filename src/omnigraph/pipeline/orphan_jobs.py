"""The lease of a running bulk job, and the removal of jobs whose driver died.

A job keeps its files in a folder below `__staging`. While it runs, its driver renews a lease there. A job without a
live driver is first fenced in the manifest, so that a slow driver fails at its publish and starts over. Then the files
that its tasks wrote to the tables are removed, and the folder.

Files of a job are untrusted input: a crash may truncate them, or the folder may have been copied from elsewhere. A
listed name is used only if it is a plain data file of a table in the manifest and no version of the table refers to it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from omnigraph.errors import OmniGraphError, StorageError
from omnigraph.pipeline.job import LEASE_FILE
from omnigraph.storage.files import layout
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.files.objects import object_store
from omnigraph.storage.lance.fragments import delete_files
from omnigraph.storage.lance.garbage import referenced_files
from omnigraph.versioning.write.fencing import fence, is_operation_id
from omnigraph.versioning.write.leases import Lease, is_alive
from omnigraph.versioning.write.recovery import Recovered
from omnigraph.versioning.write.repository import Repository

_log = logging.getLogger(__name__)

_KEPT_FILE = "kept.json"
_SILENT = timedelta(hours=1)
"""Time without writes after which a job without a readable lease is removed."""

_DATA_FILE = re.compile(r"data/[0-9A-Za-z_-]+\.lance")

FILE_LIST = "/pieces-"
"""Prefix of the files in which tasks list the data files that they wrote."""


class _Damaged(ValueError):
    """A file of a job has unexpected contents."""


@dataclass
class Swept:
    """Result of a sweep: the ids of removed jobs, and the files that were ignored."""

    removed: list[str] = field(default_factory=list)
    problems: list[Recovered] = field(default_factory=list)


class JobLease:
    """The lease of a running job. Leaving the block removes the job's folder and the data files that are not kept."""

    def __init__(self, repository: Repository, job_id: str) -> None:
        self._repository = repository
        self._files = object_store(repository.location, sync=repository.tables.sync)
        self._kept: set[str] = set()
        self.folder = layout.staging_folder(job_id)
        self._lease = Lease(self._files, f"{self.folder}/{LEASE_FILE}", {})

    def __enter__(self) -> Self:
        self._lease.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lease.stop()
        try:
            _remove_job(self._repository, self._files, self.folder, self._kept, [])
        except StorageError as failure:
            # The load has its outcome. A sweep removes the files when the lease has ended.
            _log.warning("the files of the bulk job in '%s' cannot be removed: %s", self.folder, failure.message)

    def keep(self, files: Iterable[str]) -> None:
        """Keep these data files, and no others, when the job is removed."""
        self._kept = set(files)
        self._files.write(f"{self.folder}/{_KEPT_FILE}", json.dumps(sorted(self._kept)).encode())


def sweep(repository: Repository) -> Swept:
    """Fence and remove the jobs whose drivers are dead."""
    files = object_store(repository.location, sync=False)
    folders = files.folders(layout.STAGING)
    done = Swept()
    now = files.now() if folders else None
    for folder, written_at in folders.items():
        assert now is not None
        problems: list[str] = []
        try:
            if _sweep_job(repository, files, folder, written_at, now, problems):
                done.removed.append(folder.rpartition("/")[2])
        except OmniGraphError as error:
            problems.append(error.message)
        if problems:
            done.problems.append(Recovered(folder, "unreadable", detail="; ".join(problems)[:500]))
    return done


def _sweep_job(
    repository: Repository, files: ObjectStore, folder: str, written_at: datetime, now: datetime, problems: list[str]
) -> bool:
    job_id = folder.rpartition("/")[2]
    if not is_operation_id(job_id):
        problems.append("not the folder of a bulk job")
        return False
    if _is_running(files, folder, written_at, now, problems):
        return False
    fence(repository, job_id, job_id)
    _remove_job(repository, files, folder, _kept_files(files, folder, problems), problems)
    return True


def _is_running(files: ObjectStore, folder: str, written_at: datetime, now: datetime, problems: list[str]) -> bool:
    name = f"{folder}/{LEASE_FILE}"
    try:
        lease = _read(files, name)
    except _Damaged as error:
        problems.append(f"'{LEASE_FILE}' {error}")
        lease = None
    if lease is None:
        # The lease is damaged, or the job was removed while a task still wrote. The time of its last write decides.
        return now - written_at < _SILENT
    if not isinstance(lease, Mapping):
        problems.append(f"'{LEASE_FILE}' is not the lease of a job")
        return now - written_at < _SILENT
    renewed_at = files.written_at(name)
    return renewed_at is None or is_alive(lease, renewed_at, now)


def create_lease(repository: Repository, job_id: str, seconds_max: float) -> None:
    """Write the lease of a job whose publisher starts later. It is valid for `seconds_max`."""
    files = object_store(repository.location, sync=repository.tables.sync)
    files.write(f"{layout.staging_folder(job_id)}/{LEASE_FILE}", json.dumps({"lease_s": seconds_max}).encode())


def discard(repository: Repository, job_id: str) -> None:
    """Remove a job that will not be published, and all its files."""
    files, folder = object_store(repository.location, sync=False), layout.staging_folder(job_id)
    _remove_job(repository, files, folder, _kept_files(files, folder, []), [])


def _kept_files(files: ObjectStore, folder: str, problems: list[str]) -> Collection[str] | None:
    """The data files that a job was about to publish; None if the list is damaged."""
    try:
        kept = _read(files, f"{folder}/{_KEPT_FILE}")
    except _Damaged as error:
        problems.append(f"'{_KEPT_FILE}' {error}")
        return None
    if kept is None:
        return ()
    if not isinstance(kept, list) or not all(isinstance(file, str) for file in kept):
        problems.append(f"'{_KEPT_FILE}' is not a list of files")
        return None
    return frozenset(kept)


def _remove_job(
    repository: Repository, files: ObjectStore, folder: str, kept: Collection[str] | None, problems: list[str]
) -> None:
    """Remove the unused data files that tasks of a job wrote to the tables, then the job's folder.

    The lease is deleted first, so that a task that is still running removes its own files (`Job.check_open`).
    """
    files.delete(f"{folder}/{LEASE_FILE}")
    if kept is not None:
        known = {row.folder for row in repository.state().tables.values()}
        written: dict[str, set[str]] = {}
        for name in files.list(folder):
            if FILE_LIST in name:
                try:
                    table, data = _listed_files(_read(files, name), known)
                    written.setdefault(table, set()).update(data)
                except _Damaged as error:
                    problems.append(f"'{name.rpartition('/')[2]}' {error}")
        for table, listed in written.items():
            unused = listed.difference(kept)
            if unused:
                delete_files(repository.tables, table, sorted(unused - referenced_files(repository.tables, table)))
    files.delete_folder(folder)


def _listed_files(listing: Any, known: Collection[str]) -> tuple[str, list[str]]:
    """The table and the data files that a task listed."""
    if not isinstance(listing, Mapping):
        raise _Damaged("is not a list of files")
    table, data = listing.get("table"), listing.get("files")
    if not isinstance(table, str) or table not in known:
        raise _Damaged("names a table that the manifest does not know")
    if not isinstance(data, list) or not all(isinstance(one, str) and _DATA_FILE.fullmatch(one) for one in data):
        raise _Damaged("names something other than data files of its table")
    return table, data


def _read(files: ObjectStore, name: str) -> Any:
    """Read a JSON file; None if it does not exist."""
    data = files.read(name)
    if data is None:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _Damaged("cannot be read") from error
