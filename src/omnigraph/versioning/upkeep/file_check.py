"""Comparison of the files of pinned table versions with the digests recorded when they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.errors import Damaged, OmniGraphError
from omnigraph.storage.lance.digests import file_digest, files_of_version, version_file, with_large_values
from omnigraph.storage.manifest.manifest_schema import HistoryFilter
from omnigraph.versioning.model.manifest_rows import read_metadata
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.repository import Repository


@dataclass
class Checked:
    """The result for one table version."""

    damaged: list[str] = field(default_factory=list)
    unrecorded: int = 0
    """The number of files written by a release that did not record digests."""


class Digests:
    """All recorded digests of a graph; each file is read once, however many versions share it."""

    def __init__(self, repository: Repository, recorded: Mapping[tuple[int, int], Mapping[str, str]]) -> None:
        self._tables = repository.tables
        self._recorded = recorded
        self._checked: dict[tuple[str, str], str | None] = {}

    @classmethod
    def recorded(cls, repository: Repository, state: State) -> Digests:
        """Read the digests from the manifest; unreadable rows are reported elsewhere."""
        found: dict[tuple[int, int], dict[str, str]] = {}
        for row in repository.manifest.scan(state.manifest, HistoryFilter("table_version")):
            try:
                digests = read_metadata(row).get("digests")
            except OmniGraphError:
                continue
            if isinstance(digests, dict):
                found.setdefault((row["stable_table_id"], row["table_incarnation_id"]), {}).update(digests)
        return cls(repository, found)

    def check(self, snapshot: Snapshot, key: str) -> Checked:
        """Compare the files of a table version, starting with its manifest, because it lists the others."""
        pinned = snapshot.tables[key]
        recorded = self._recorded.get((pinned.pin.table_id, pinned.pin.incarnation), {})
        checked = Checked()
        for version in pinned.pin.versions:
            own = version_file(version)
            self._check(pinned.folder, own, recorded.get(own), checked)
            if not checked.damaged:
                table = self._tables.open(pinned.folder, version)
                for file in sorted(with_large_values(table, files_of_version(table, indexes=True))):
                    self._check(pinned.folder, file, recorded.get(file), checked)
        return checked

    def _check(self, folder: str, file: str, expected: str | None, checked: Checked) -> None:
        if expected is None:
            checked.unrecorded += 1
            return
        if (folder, file) not in self._checked:
            self._checked[folder, file] = self._compare(folder, file, expected)
        problem = self._checked[folder, file]
        if problem is not None:
            checked.damaged.append(problem)

    def _compare(self, folder: str, file: str, expected: str) -> str | None:
        try:
            found = file_digest(self._tables, folder, file)
        except Damaged as error:
            return error.message
        if found == expected:
            return None
        return f"file '{folder}/{file}' differs from what was written (digest {found}, recorded {expected})"
