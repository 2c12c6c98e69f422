"""The content of one manifest version.

Rows stay in Arrow, and a head is decoded on access, so five hundred branches add no cost to a commit. `Publication` is
the change that a publish makes: rows that replace state rows with the same id, ids to remove, and history rows to add.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BranchNotFound, Damaged, Hint
from omnigraph.storage.manifest.manifest_table import ManifestVersion
from omnigraph.suggestions import did_you_mean
from omnigraph.versioning.model.manifest_objects import MAIN, RECLAIM_PREFIX, Head, Pin, Reclaim, TableRow, Tag
from omnigraph.versioning.model.manifest_rows import (
    IDENTITY_OBJECT_ID,
    Row,
    head_object_id,
    read_metadata,
    row_to_head,
    row_to_reclaim,
    row_to_table,
    row_to_tag,
    tag_object_id,
    to_rows,
)
from omnigraph.versioning.write.ref_names import check_text, is_internal


@dataclass(frozen=True)
class Publication:
    """A change to the manifest."""

    put: tuple[Row, ...] = ()
    drop: tuple[str, ...] = ()
    add: tuple[Row, ...] = field(default=())


class State:
    """The heads, tags and tables of one manifest version."""

    def __init__(self, manifest: ManifestVersion) -> None:
        self.manifest = manifest
        self.version = manifest.version
        self.epoch = manifest.epoch

    @cached_property
    def _positions(self) -> dict[str, int]:
        ids = self.manifest.state["object_id"].to_pylist()
        positions = {object_id: position for position, object_id in enumerate(ids)}
        if len(positions) != len(ids):
            raise Damaged("the manifest contains a state row twice", code="damaged_manifest")
        return positions

    def _row(self, object_id: str) -> Row | None:
        position = self._positions.get(object_id)
        if position is None:
            return None
        row: Row = self.manifest.state.slice(position, 1).to_pylist()[0]
        return row

    def find_head(self, branch: str) -> Head | None:
        """Return the head of a branch; None if it does not exist."""
        check_text(branch, "branch")
        row = self._row(head_object_id(branch))
        return row_to_head(row) if row is not None else None

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
        names = [object_id.removeprefix(prefix) for object_id in self._positions if object_id.startswith(prefix)]
        return sorted(names, key=lambda name: (name != MAIN, name))

    def heads(self) -> list[Head]:
        """Return all heads, including internal ones, in the order of `head_names`."""
        return [self.get_head(branch) for branch in self.head_names()]

    def find_tag(self, name: str) -> Tag | None:
        """Return a tag by name; None if it does not exist."""
        row = self._row(tag_object_id(name))
        return row_to_tag(row) if row is not None else None

    def tags(self) -> list[Tag]:
        """Return all tags, by name."""
        prefix = tag_object_id("")
        names = sorted(object_id for object_id in self._positions if object_id.startswith(prefix))
        return [row_to_tag(row) for row in map(self._row, names) if row is not None]

    def protected_pins(self) -> Iterator[Pin]:
        """Yield the pins of all heads and tags, which no cleanup may remove."""
        for head in self.heads():
            yield from head.pins
        for tag in self.tags():
            yield from tag.pins

    @cached_property
    def tables(self) -> dict[tuple[int, int], TableRow]:
        """All tables, by identity."""
        state = self.manifest.state
        rows = state.filter(pc.equal(state["object_type"], "table")).to_pylist()
        return {(table.table_id, table.incarnation): table for table in map(row_to_table, rows)}

    @cached_property
    def next_identity(self) -> int:
        """The next unused identity number; the schemas of all branches draw from one counter."""
        row = self._row(IDENTITY_OBJECT_ID)
        return int(read_metadata(row)["next_identity_id"]) if row is not None else 1

    def is_aborted(self, commit_id: str) -> bool:
        """Return True if a commit or job was fenced."""
        return commit_id in self._positions

    def aborts(self) -> list[Row]:
        """Return the rows of fenced commits and jobs."""
        state = self.manifest.state
        rows: list[Row] = state.filter(pc.equal(state["object_type"], "graph_abort")).to_pylist()
        return [row for row in rows if not row["object_id"].startswith(RECLAIM_PREFIX)]

    def reclaims(self) -> list[Reclaim]:
        """Return the fences of cleanups that are running or died."""
        ids = [object_id for object_id in self._positions if object_id.startswith(RECLAIM_PREFIX)]
        return [row_to_reclaim(row) for row in map(self._row, ids) if row is not None]

    def is_reclaimed(self, folder: str, versions: Iterable[int]) -> bool:
        """Return True if some of these versions of a table are being removed and can no longer be pinned."""
        for reclaim in self.reclaims():
            fenced = reclaim.tables.get(folder, frozenset())
            if fenced is None or not fenced.isdisjoint(versions):
                return True
        return False

    def without_heads(self, branches: Iterable[str]) -> State:
        """Return the state as it is after these branches are deleted."""
        ids = pa.array([head_object_id(branch) for branch in branches], pa.utf8())
        state = self.manifest.state
        kept = state.filter(pc.invert(pc.is_in(state["object_id"], value_set=ids)))
        return State(replace(self.manifest, state=kept))

    def with_publication(self, publication: Publication) -> tuple[pa.Table, pa.Table]:
        """Return the state rows and the added history rows of the next version."""
        gone = [*publication.drop, *(row["object_id"] for row in publication.put)]
        state = self.manifest.state
        kept = (
            state.filter(pc.invert(pc.is_in(state["object_id"], value_set=pa.array(gone, pa.utf8()))))
            if gone
            else state
        )
        return pa.concat_tables([kept, _cast(publication.put, state)]), _cast(publication.add, state)


def _cast(rows: Iterable[Row], like: pa.Table) -> pa.Table:
    return to_rows(rows).cast(like.schema)
