"""The content of one manifest version.

A head is decoded on access, so branches add no cost to a commit. The pins of a head are those of its commit. The row of
a head contains them, or only those that differ from the pins of its fork point, or none: then they are read from the
rows of these commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from omnigraph.errors import BranchNotFound, Hint
from omnigraph.storage.manifest.manifest_schema import Row
from omnigraph.storage.manifest.manifest_version import ManifestVersion
from omnigraph.suggestions import did_you_mean
from omnigraph.versioning.model.manifest_objects import MAIN, RECLAIM_PREFIX, Head, Pin, Reclaim, TableRow, Tag
from omnigraph.versioning.model.manifest_rows import (
    IDENTITY_OBJECT_ID,
    commit_of_pins,
    head_object_id,
    read_metadata,
    row_to_head,
    row_to_reclaim,
    row_to_table,
    row_to_tag,
    tag_object_id,
)
from omnigraph.versioning.model.purges import FREEZE_ID, PURGE, PURGE_PREFIX, PurgeRecord, row_to_purge
from omnigraph.versioning.write.ref_names import check_text, is_internal

PinsOf = Callable[[ManifestVersion, Sequence[str]], Mapping[str, tuple[Pin, ...]]]
"""Returns commit → pins, for several commits."""


class State:
    """The heads, tags and tables of one manifest version."""

    def __init__(self, manifest: ManifestVersion, pins_of: PinsOf) -> None:
        self.manifest = manifest
        self.version = manifest.version
        self.epoch = manifest.epoch
        self._pins_of = pins_of
        self._heads: dict[str, Head] = {}

    def find_head(self, branch: str) -> Head | None:
        """Return the head of a branch; None if it does not exist."""
        check_text(branch, "branch")
        known = self._heads.get(branch)
        if known is None:
            row = self.manifest.row(head_object_id(branch))
            if row is None:
                return None
            known = self._heads[branch] = self._read_heads([row])[0]
        return known

    def get_head(self, branch: str) -> Head:
        """Return the head of a branch; raise `BranchNotFound` if it does not exist."""
        head = self.find_head(branch)
        if head is None:
            hint = did_you_mean(branch, self.branches()) or Hint(
                "branches() lists the branches, branch_create() creates one",
                cli="'omnigraph branch list' lists the branches, 'omnigraph branch create' creates one",
                in_shell="':branch' lists the branches, ':branch create NAME' creates one",
            )
            raise BranchNotFound(f"there is no branch '{branch}'", hint=hint)
        return head

    def branches(self) -> list[str]:
        """Return the names of all branches: main first, then by name. Internal heads are not listed."""
        return [name for name in self.head_names() if not is_internal(name)]

    def head_names(self) -> list[str]:
        """Return the names of all heads, including internal ones: main first, then by name."""
        prefix = head_object_id("")
        names = [object_id.removeprefix(prefix) for object_id in self.manifest.ids_of("graph_head")]
        return sorted(names, key=lambda name: (name != MAIN, name))

    def heads(self) -> list[Head]:
        """Return all heads, including internal ones, in the order of `head_names`."""
        rows = [self.manifest.row(head_object_id(name)) for name in self.head_names()]
        return self._read_heads([row for row in rows if row is not None])

    def _read_heads(self, rows: Sequence[Row]) -> list[Head]:
        """Read heads; the pins of all commits that they refer to are read at once."""
        needed = dict.fromkeys(commit for commit in map(commit_of_pins, rows) if commit is not None)
        pins = self._pins_of(self.manifest, list(needed)) if needed else {}
        return [row_to_head(row, pins.__getitem__) for row in rows]

    def find_tag(self, name: str) -> Tag | None:
        """Return a tag by name; None if it does not exist."""
        row = self.manifest.row(tag_object_id(name))
        return row_to_tag(row) if row is not None else None

    def tags(self) -> list[Tag]:
        """Return all tags, by name."""
        names = sorted(self.manifest.ids_of("graph_tag"))
        return [row_to_tag(row) for row in map(self.manifest.row, names) if row is not None]

    def protected_pins(self) -> Iterator[Pin]:
        """Yield the pins of all heads and tags, which no cleanup may remove."""
        for head in self.heads():
            yield from head.pins
        for tag in self.tags():
            yield from tag.pins

    @cached_property
    def tables(self) -> dict[tuple[int, int], TableRow]:
        """All tables, by identity."""
        manifest, checkpoint = self.manifest, self.manifest.checkpoint
        if manifest.is_changed("table"):
            return _tables(manifest.row, manifest.ids_of("table"))
        return checkpoint.derived("tables", lambda: _tables(checkpoint.row, checkpoint.ids.get("table", ())))

    @cached_property
    def next_identity(self) -> int:
        """The next unused identity number; the schemas of all branches draw from one counter."""
        row = self.manifest.row(IDENTITY_OBJECT_ID)
        return int(read_metadata(row)["next_identity_id"]) if row is not None else 1

    @property
    def purge_epoch(self) -> int:
        """The number of purges that rewrote the history. A write that was prepared on another number starts over."""
        return self.manifest.purge_epoch

    @cached_property
    def purges(self) -> tuple[PurgeRecord, ...]:
        """The records of all purges, oldest first."""
        ids = sorted(found for found in self.manifest.ids_of(PURGE) if found.startswith(PURGE_PREFIX))
        return tuple(row_to_purge(row) for row in map(self.manifest.row, ids) if row is not None)

    @property
    def is_frozen(self) -> bool:
        """True if a purge asks other writers to wait."""
        return self.manifest.has_row(FREEZE_ID)

    def is_aborted(self, commit_id: str) -> bool:
        """Return True if a commit or job was fenced."""
        return self.manifest.has_row(commit_id)

    def aborts(self) -> list[Row]:
        """Return the rows of fenced commits and jobs."""
        ids = [found for found in self.manifest.ids_of("graph_abort") if not found.startswith(RECLAIM_PREFIX)]
        return [row for row in map(self.manifest.row, ids) if row is not None]

    def reclaims(self) -> list[Reclaim]:
        """Return the fences of cleanups that are running or died."""
        ids = [found for found in self.manifest.ids_of("graph_abort") if found.startswith(RECLAIM_PREFIX)]
        return [row_to_reclaim(row) for row in map(self.manifest.row, ids) if row is not None]

    def is_reclaimed(self, folder: str, versions: Iterable[int]) -> bool:
        """Return True if some of these versions of a table are being removed and can no longer be pinned."""
        for reclaim in self.reclaims():
            fenced = reclaim.tables.get(folder, frozenset())
            if fenced is None or not fenced.isdisjoint(versions):
                return True
        return False

    def may_be_cleaned_since(self, before: State) -> bool:
        """Return False if certainly no cleanup began or ended between an earlier state and this one."""
        if self.manifest is before.manifest:
            return False
        one, other = before.manifest.checkpoint, self.manifest.checkpoint
        if before.epoch != self.epoch or (one.version, one.id) != (other.version, other.id):
            return True
        return _fences(before) != _fences(self)

    def without_heads(self, branches: Iterable[str]) -> State:
        """Return the state as it is after these branches are deleted."""
        gone = dict.fromkeys(map(head_object_id, branches))
        return State(replace(self.manifest, changed={**self.manifest.changed, **gone}), self._pins_of)


def _tables(row_of: Callable[[str], Row | None], ids: Sequence[str]) -> dict[tuple[int, int], TableRow]:
    tables = [row_to_table(row) for row in map(row_of, ids) if row is not None]
    return {(table.table_id, table.incarnation): table for table in tables}


def _fences(state: State) -> dict[str, Row | None]:
    """Return the rows of cleanups that were added or removed since the checkpoint."""
    return {name: row for name, row in state.manifest.changed.items() if name.startswith(RECLAIM_PREFIX)}
