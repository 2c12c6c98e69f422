"""The note of a job that runs, and what to do about jobs whose driver died.

A job keeps its files in a folder of its own. While it runs, a note there says who runs it and until when it is surely
alive; the note is renewed. Whoever finds a job whose driver is dead removes the folder, and the pieces of tables its
tasks noted down, except those it was about to publish: whether these are in use the manifest knows, and a cleanup of
the graph finds out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from types import TracebackType
from typing import Self

from omnigraph.storage import layout
from omnigraph.storage.fragments import delete_files
from omnigraph.storage.objects import ObjectStore, object_store
from omnigraph.versioning.leases import Lease, may_live
from omnigraph.versioning.repository import Repository

_NOTE = "job.json"
_KEPT = "kept.json"
_SILENT_US = 3_600_000_000
"""How long nothing is written to a folder without a note before it is nobody's."""

PIECES = "/pieces-"
"""How the names of notes begin in which tasks say what they wrote."""


class Note:
    """The note of a running job; the job's folder goes with it, and the pieces of tables nobody is to keep."""

    def __init__(self, repository: Repository, job_id: str) -> None:
        self._repository = repository
        self._files = object_store(repository.location, sync=False)
        self._kept: set[str] = set()
        self.folder = layout.staging_folder(job_id)
        self._lease = Lease(self._files, repository.clock, f"{self.folder}/{_NOTE}", {})

    def __enter__(self) -> Self:
        self._lease.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lease.stop()
        _remove_pieces(self._repository, self._files, self.folder, self._kept)
        self._files.delete_folder(self.folder)

    def keep(self, files: Iterable[str]) -> None:
        """From here on these may be in use, and no others."""
        self._kept = set(files)
        self._files.write(f"{self.folder}/{_KEPT}", json.dumps(sorted(self._kept)).encode())


def sweep(repository: Repository) -> list[str]:
    """Remove what jobs left whose drivers are dead; their ids."""
    files = object_store(repository.location, sync=False)
    gone: list[str] = []
    for folder, written in files.folders(layout.STAGING).items():
        data = files.read(f"{folder}/{_NOTE}")
        now = repository.clock()
        # Without a note, another process is removing it; or did so, and tasks of a dead driver still wrote.
        silent_us = now - int(written.timestamp() * 1_000_000)
        if silent_us < _SILENT_US if data is None else may_live(json.loads(data), now):
            continue
        _remove_pieces(repository, files, folder, set(json.loads(files.read(f"{folder}/{_KEPT}") or b"[]")))
        files.delete_folder(folder)
        gone.append(folder.rpartition("/")[2])
    return gone


def announce(repository: Repository, job_id: str, seconds_max: float) -> None:
    """Leave the note of a job that nobody watches over yet; until then nobody sweeps it."""
    document = {"lease_until": repository.clock() + int(seconds_max * 1_000_000)}
    files = object_store(repository.location, sync=False)
    files.write(f"{layout.staging_folder(job_id)}/{_NOTE}", json.dumps(document).encode())


def discard(repository: Repository, job_id: str) -> None:
    """Remove a job that will not be published, and all it wrote."""
    files, folder = object_store(repository.location, sync=False), layout.staging_folder(job_id)
    _remove_pieces(repository, files, folder, set(json.loads(files.read(f"{folder}/{_KEPT}") or b"[]")))
    files.delete_folder(folder)


def _remove_pieces(repository: Repository, files: ObjectStore, folder: str, kept: Collection[str]) -> None:
    """Remove the pieces of tables that tasks of a job noted down, whoever got their answers, but for some."""
    for name in files.list(folder):
        if PIECES in name:
            note = json.loads(files.read(name) or b"{}")
            unused = [file for file in note.get("files", ()) if file not in kept]
            if unused:
                delete_files(repository.tables, note["table"], unused)
