"""The rows of violations that a merge would cause: those that `resolve` can name to end one, and their images.

Rows of a violation, the listed one first:

    orphan edge          the edge, and the missing node
    unique               both rows
    value constraint     the row
    cardinality          the edges of the source node, and those that the merge deletes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.write.delta import TableDelta, Violation
from omnigraph.fast_dataclass import dataclass
from omnigraph.operations.merge.merge_schema import SchemaMerge
from omnigraph.operations.merge.merge_target import MergeTarget
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.diff import Identity, by_identity
from omnigraph.versioning.compare.three_way import ConflictDetail, ConflictKind, ConflictRow, Row
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.snapshot_view import PinnedTable

_EDGES_MAX = 50
"""Edges of a violated cardinality that are listed."""
KINDS: dict[str, ConflictKind] = {
    "range": "value_constraint_violation",
    "check": "value_constraint_violation",
    "enum": "value_constraint_violation",
    "unique": "unique_violation",
    "valid": "value_constraint_violation",
    "endpoint": "orphan_edge",
    "orphan": "orphan_edge",
    "cardinality": "cardinality_violation",
}
"""Rule → kind of the conflict."""

ReadRows = Callable[[Snapshot, Identity, PinnedTable, Sequence[str]], Mapping[str, Row]]
"""Reads rows of a snapshot in the columns of the merged schema."""
RowName = tuple[str, str]
"""Table key and id."""


@dataclass(frozen=True)
class ViolationRows:
    """Finds the rows of violations in the merged graph."""

    schema: SchemaMerge
    ours: Snapshot
    theirs: Snapshot
    deltas: Mapping[str, TableDelta]
    read: ReadRows

    def names(self, violation: Violation, *, related: bool = True) -> Iterator[RowName]:
        """Yield the rows whose resolution can end a violation; `related` includes those that must be looked up."""
        key = violation.table_key
        if violation.rule == "cardinality":
            if related:
                yield from ((key, id_) for id_ in self._edges_of(key, violation.row_id))
            return
        yield key, violation.row_id
        if violation.rule == "unique" and violation.other_id not in (None, violation.row_id):
            yield key, violation.other_id or ""
        edge = self.schema.catalog.edges.get(TableKey.parse(key).type_name)
        if KINDS[violation.rule] == "orphan_edge" and edge is not None and related:
            end = self._end_of(violation)
            if end is not None:
                yield TableKey.node(edge.from_type if violation.property == "src" else edge.to_type), end

    def conflict(self, violation: Violation) -> ConflictDetail:
        """Return a violation as a conflict with its rows."""
        rows = tuple(self._row(key, row_id) for key, row_id in self.names(violation))
        ends = violation.property in ("src", "dst") or violation.property is None
        return plain_conflict(violation, rows, () if ends else (violation.property or "",))

    def _row(self, key: str, row_id: str) -> ConflictRow:
        identity = self._identity(key)
        ours, theirs = (self._image(snapshot, identity, row_id) for snapshot in (self.ours, self.theirs))
        delta = self.deltas.get(key)
        if delta is None:
            return ConflictRow(key, row_id, ours, ours, theirs)
        if row_id in set(delta.deleted.to_pylist()):
            return ConflictRow(key, row_id, None, ours, theirs)
        written = delta.rows.filter(pc.equal(delta.rows["id"], row_id)).to_pylist()
        # The changes of an adopted table have only the columns that rules read; its rows are those of the source.
        merged = {**(theirs or {}), **written[0]} if written else ours
        return ConflictRow(key, row_id, merged, ours, theirs)

    def _image(self, snapshot: Snapshot, identity: Identity, row_id: str) -> Row | None:
        table = by_identity(snapshot).get(identity)
        return None if table is None else self.read(snapshot, identity, table, [row_id]).get(row_id)

    def _identity(self, key: str) -> Identity:
        return next(identity for identity, table in self.schema.merged_tables.items() if table.key == key)

    def _end_of(self, violation: Violation) -> str | None:
        """Return the id of the missing node of an orphan edge."""
        key, column = violation.table_key, violation.property or "src"
        delta = self.deltas.get(key)
        if delta is not None:
            written = delta.rows.filter(pc.equal(delta.rows["id"], violation.row_id))
            if written.num_rows:
                return str(written[column][0].as_py())
        image = self._image(self.ours, self._identity(key), violation.row_id)
        return None if image is None else str(image[column])

    def _edges_of(self, key: str, source: str) -> list[str]:
        """Return the first edges of a node: those of the merged graph, then those that the merge deletes."""
        target = MergeTarget(self.ours, self.schema)
        stored = target.rows_among(key, "src", pa.array([source], pa.utf8()), ["id"])["id"].to_pylist()
        delta = self.deltas[key]
        written = delta.rows.filter(pc.equal(delta.rows["src"], source))["id"].to_pylist()
        return sorted({*stored, *written})[:_EDGES_MAX]


def plain_conflict(
    violation: Violation, rows: tuple[ConflictRow, ...] = (), properties: tuple[str, ...] = ()
) -> ConflictDetail:
    """Return a violation as a conflict. A value or cardinality is listed without the id of a row."""
    kind = KINDS[violation.rule]
    named = kind in ("orphan_edge", "unique_violation")
    return ConflictDetail(
        violation.table_key,
        violation.row_id if named else None,
        kind,
        violation.message,
        properties=properties,
        rows=rows,
    )
