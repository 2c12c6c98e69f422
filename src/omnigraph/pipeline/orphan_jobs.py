"""The note of a running bulk job, and the removal of jobs whose driver died.

A job keeps its files in a folder of its own below `__staging`. While it runs, its driver renews a note there. A job
without a live driver is fenced in the manifest first, so that a driver that was only slow fails at its publish and
starts over. Then the files its tasks wrote beside the tables are removed, and the folder.

Notes are untrusted input: they may be torn by a crash, or come with a folder from elsewhere. A name counts only if it
is a plain data file of a table the manifest knows, and if no version of the table refers to the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from omnigraph.errors import OmniGraphError
from omnigraph.pipeline.job import NOTE
from omnigraph.storage.files import layout
from omnigraph.storage.files.objects import ObjectStore, object_store
from omnigraph.storage.lance.fragments import delete_files
from omnigraph.storage.lance.garbage import referenced_files
from omnigraph.versioning.write.fencing import fence, is_operation_id
from omnigraph.versioning.write.leases import Lease, is_alive
from omnigraph.versioning.write.recovery import Recovered
from omnigraph.versioning.write.repository import Repository

_KEPT = "kept.json"
_SILENT = timedelta(hours=1)
"""How long a job without a readable note must not have written anything before it is removed."""

_DATA_FILE = re.compile(r"data/[0-9A-Za-z_-]+\.lance")

PIECES = "/pieces-"
"""The prefix of the notes in which tasks list the files they wrote."""


class _Damaged(ValueError):
    """A note that is not what a job writes."""


@dataclass
class Swept:
    """Result of a sweep: the ids of removed jobs, and the notes that were ignored."""

    removed: list[str] = field(default_factory=list)
    problems: list[Recovered] = field(default_factory=list)


class Note:
    """The note of a running job. Leaving the block removes the job's folder, and the files it does not keep."""

    def __init__(self, repository: Repository, job_id: str) -> None:
        self._repository = repository
        self._files = object_store(repository.location, sync=repository.tables.sync)
        self._kept: set[str] = set()
        self.folder = layout.staging_folder(job_id)
        self._lease = Lease(self._files, f"{self.folder}/{NOTE}", {})

    def __enter__(self) -> Self:
        self._lease.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lease.stop()
        _remove_job(self._repository, self._files, self.folder, self._kept, [])

    def keep(self, files: Iterable[str]) -> None:
        """From now on these files may be in use, and no others."""
        self._kept = set(files)
        self._files.write(f"{self.folder}/{_KEPT}", json.dumps(sorted(self._kept)).encode())


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
    name = f"{folder}/{NOTE}"
    try:
        note = _read(files, name)
    except _Damaged as error:
        problems.append(f"'{NOTE}' {error}")
        note = None
    if note is None:
        # The note is damaged, or the job was removed and a task of it still wrote: its files tell whether it lives.
        return now - written_at < _SILENT
    if not isinstance(note, Mapping):
        problems.append(f"'{NOTE}' is not the note of a job")
        return now - written_at < _SILENT
    renewed_at = files.written_at(name)
    return renewed_at is None or is_alive(note, renewed_at, now)


def announce(repository: Repository, job_id: str, seconds_max: float) -> None:
    """Write the note of a job whose publisher starts later; it is valid for `seconds_max`."""
    files = object_store(repository.location, sync=repository.tables.sync)
    files.write(f"{layout.staging_folder(job_id)}/{NOTE}", json.dumps({"lease_s": seconds_max}).encode())


def discard(repository: Repository, job_id: str) -> None:
    """Remove a job that will not be published, and all it wrote."""
    files, folder = object_store(repository.location, sync=False), layout.staging_folder(job_id)
    _remove_job(repository, files, folder, _kept_files(files, folder, []), [])


def _kept_files(files: ObjectStore, folder: str, problems: list[str]) -> Collection[str] | None:
    """The files a job was about to publish; None when its list is damaged."""
    try:
        kept = _read(files, f"{folder}/{_KEPT}")
    except _Damaged as error:
        problems.append(f"'{_KEPT}' {error}")
        return None
    if kept is None:
        return ()
    if not isinstance(kept, list) or not all(isinstance(file, str) for file in kept):
        problems.append(f"'{_KEPT}' is not a list of files")
        return None
    return frozenset(kept)


def _remove_job(
    repository: Repository, files: ObjectStore, folder: str, kept: Collection[str] | None, problems: list[str]
) -> None:
    """Remove the unused files that tasks of a job wrote beside the tables, then the job's folder.

    The note of the job goes first: a task that is still running then removes its own files (`Job.check_open`).
    """
    files.delete(f"{folder}/{NOTE}")
    if kept is not None:
        known = {row.folder for row in repository.state().tables.values()}
        written: dict[str, set[str]] = {}
        for name in files.list(folder):
            if PIECES in name:
                try:
                    table, data = _pieces(_read(files, name), known)
                    written.setdefault(table, set()).update(data)
                except _Damaged as error:
                    problems.append(f"'{name.rpartition('/')[2]}' {error}")
        for table, noted in written.items():
            unused = noted.difference(kept)
            if unused:
                delete_files(repository.tables, table, sorted(unused - referenced_files(repository.tables, table)))
    files.delete_folder(folder)


def _pieces(note: Any, known: Collection[str]) -> tuple[str, list[str]]:
    """The table and the files that the note of a task names."""
    if not isinstance(note, Mapping):
        raise _Damaged("is not the note of a task")
    table, data = note.get("table"), note.get("files")
    if not isinstance(table, str) or table not in known:
        raise _Damaged("names a table that the manifest does not know")
    if not isinstance(data, list) or not all(isinstance(one, str) and _DATA_FILE.fullmatch(one) for one in data):
        raise _Damaged("names something other than data files of its table")
    return table, data


def _read(files: ObjectStore, name: str) -> Any:
    """The JSON of a note; None when there is none."""
    data = files.read(name)
    if data is None:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _Damaged("cannot be read") from error
