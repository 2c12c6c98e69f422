"""What a caller may see of the points of a history: differences, change feed and the history of a row.

Each image of a row is judged in its own snapshot, by the rules of today. Rows that both snapshots store at the same
position are compared only if they can be visible on one side alone: edges at a node that appears or disappears, and all
rows of a table whose rules differ between the snapshots.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine.exec.view import View
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.merge.column_mapping import TableNames, describe_steps, document, mapped_names, names_in
from omnigraph.query.visibility import project_document
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.identity import SchemaIR
from omnigraph.storage.lance.version_diff import StoredRows
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.diff import (
    Identity,
    RowNumbers,
    TablePair,
    by_identity,
    diff_pair,
    table_pairs,
)
from omnigraph.versioning.model.snapshot import Snapshot

_NO_ROWS: RowNumbers = np.zeros(0, np.int64)
_NO_IDS = pa.nulls(0, pa.utf8())
_NO_NODES = pa.table({"id": _NO_IDS, "end": _NO_IDS})
_SIDES_MAX = 64
"""Commits of which the history of a row keeps what is visible; a commit is asked for a few times in a row."""


class GraphSight:
    """What the caller of a graph may see of its points."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context

    def rights(self, snapshot: Snapshot) -> str | None:
        """Return a digest of what may be seen of a snapshot; None if everything is."""
        visibility = self._context.visibility_of(snapshot)
        return None if visibility is None else visibility.digest

    def side(self, snapshot: Snapshot) -> VisibleSide:
        """Return what may be seen of a snapshot."""
        return VisibleSide(snapshot, self._context.catalog(snapshot), self._context.view(snapshot))

    def side_at(self, commit_id: str) -> VisibleSide:
        """Return what may be seen of a commit, on the branch on which it was made."""
        return self.side(self._context.repository.snapshot(at=commit_id))

    def compare(self, before: Snapshot, after: Snapshot) -> VisibleDiff | None:
        """Return what is visible of two snapshots; None if everything is."""
        sides = self.side(before), self.side(after)
        return None if all(side.view is None for side in sides) else VisibleDiff(*sides)


def sight_of(context: GraphContext) -> GraphSight | None:
    """Return what the caller may see; None if no rules limit it."""
    return GraphSight(context) if context.has_row_rules else None


class VisibleSide:
    """What is visible of one snapshot; everything without a view."""

    def __init__(self, snapshot: Snapshot, catalog: Catalog, view: View | None) -> None:
        self.snapshot = snapshot
        self.catalog = catalog
        self.view = view
        self.types: dict[str, NodeType | EdgeType] = {type_.table_key: type_ for type_ in catalog.tables()}
        """The visible types by table key."""

    @cached_property
    def document(self) -> SchemaIR:
        """The visible part of the schema."""
        whole = document(self.snapshot.schema)
        return whole if self.view is None else project_document(whole, self.catalog)

    def rule_digest(self, key: str) -> str:
        """Identify the rules of a table, the ends of edges aside."""
        return "" if self.view is None else self.view.rule_digest(key)

    def shown(self, key: str, rows: pa.Table) -> pa.Table:
        """Return what is visible of complete stored rows."""
        return rows if self.view is None else self.view.shown(key, rows)

    def visible_nodes(self, key: str, rows: StoredRows) -> pa.Table:
        """Return the visible rows of some nodes: their ids, and the ids or keys at which edges end."""
        node = self.types[key]
        assert isinstance(node, NodeType)
        ends = node.end_column
        columns = ["id"] if self.view is None else self.view.judged_columns(key)
        read = rows.read(list(dict.fromkeys([*columns, ends])))
        if self.view is not None:
            read = read.filter(pa.array(self.view.sees(key, read)))
        return pa.table({"id": read["id"], "end": read[ends]})

    def node_keys(self, key: str) -> tuple[str, ...]:
        """Return the node tables at which edges of a table end; none for a node table."""
        type_ = self.types[key]
        return (TableKey.node(type_.from_type), TableKey.node(type_.to_type)) if isinstance(type_, EdgeType) else ()

    def identity(self, key: str) -> Identity:
        """Return the identity of a table."""
        pin = self.snapshot.tables[key].pin
        return pin.table_id, pin.incarnation


class VisibleRow:
    """What a caller may see of one row at the commits of its history, with the column names of the newest one.

    A row is judged on the branch on which a commit was made, at the newest commit on the branch of the request.
    """

    def __init__(self, sight: GraphSight, newest: Snapshot, identity: Identity) -> None:
        self._sight = sight
        self._newest = sight.side(newest)
        self._identity = identity
        self._sides: dict[str, VisibleSide] = {newest.commit_id: self._newest}

    def _side(self, commit_id: str) -> VisibleSide:
        found = self._sides.get(commit_id)
        if found is None:
            if len(self._sides) > _SIDES_MAX:
                self._sides = {self._newest.snapshot.commit_id: self._newest}
            found = self._sides[commit_id] = self._sight.side_at(commit_id)
        return found

    def _key(self, side: VisibleSide) -> str | None:
        """Return the key of the table; None if its type is not visible."""
        table = by_identity(side.snapshot).get(self._identity)
        return table.pin.key if table is not None and table.pin.key in side.types else None

    def key(self, commit_id: str) -> Hashable:
        """Return a key of what decides: the branch, and the versions of the tables of both ends."""
        side = self._side(commit_id)
        key = self._key(side)
        ends = () if key is None else side.node_keys(key)
        return side.snapshot.branch, key, *(side.snapshot.tables[end].pin.lance_version for end in ends)

    def shown(self, commit_id: str, rows: pa.Table) -> pa.Table:
        """Return what is visible of the stored row at a commit, with the current column names."""
        side = self._side(commit_id)
        key = self._key(side)
        if key is None:
            return rows.slice(0, 0)
        names = names_in(side.document, self._newest.document)[self._identity]
        seen = side.shown(key, rows)
        known = [name for name in seen.schema.names if name in names]
        return seen.select(known).rename_columns([names[name] for name in known])


class VisibleDiff:
    """What is visible of two snapshots."""

    def __init__(self, before: VisibleSide, after: VisibleSide) -> None:
        self.sides = before, after
        self._views: dict[Identity, VisiblePair] = {}

    @cached_property
    def pairs(self) -> list[TablePair]:
        """The visible tables, ordered by key; a side on which the type is not visible is absent."""
        pairs = []
        for pair in table_pairs(*(side.snapshot for side in self.sides)):
            before, after = (
                table if table is not None and table.pin.key in side.types else None
                for side, table in zip(self.sides, (pair.before, pair.after), strict=True)
            )
            shown = after or before
            if shown is not None:
                pairs.append(TablePair(shown.pin.key, pair.identity, before, after))
        return sorted(pairs, key=lambda pair: pair.key)

    @property
    def schema_changed(self) -> bool:
        """True if the visible parts of the schemas differ."""
        before, after = (side.document for side in self.sides)
        return replace(before, next_id=0) != replace(after, next_id=0)

    @cached_property
    def schema_steps(self) -> tuple[str, ...]:
        """The differences of the visible parts of the schemas, one line per change."""
        return describe_steps(*(side.document for side in self.sides)) if self.schema_changed else ()

    def columns(self, before: Snapshot, after: Snapshot) -> TableNames:
        """Return the names of each table's visible columns on the other side."""
        del before, after
        return mapped_names(*(side.document for side in self.sides))

    def of(self, pair: TablePair) -> VisiblePair:
        """Return what is visible of a table."""
        found = self._views.get(pair.identity)
        if found is None:
            found = self._views[pair.identity] = VisiblePair(self, pair)
        return found

    def pair_of(self, identity: Identity) -> TablePair:
        """Return a visible table by its identity."""
        return next(pair for pair in self.pairs if pair.identity == identity)


class VisiblePair:
    """What is visible of one table in two snapshots."""

    def __init__(self, diff: VisibleDiff, pair: TablePair) -> None:
        self._diff = diff
        self._pair = pair
        self._keys = tuple(None if table is None else table.pin.key for table in (pair.before, pair.after))

    @cached_property
    def alike(self) -> bool:
        """True if the rules of both sides judge a stored row alike, the ends of edges aside."""
        before, after = self._keys
        if before is None or after is None:
            return True
        one, other = self._diff.sides
        if one.rule_digest(before) != other.rule_digest(after):
            return False
        ends = one.node_keys(before), other.node_keys(after)
        return [one.identity(key) for key in ends[0]] == [other.identity(key) for key in ends[1]] and all(
            one.rule_digest(near) == other.rule_digest(far) for near, far in zip(*ends, strict=True)
        )

    @cached_property
    def _appearing(self) -> tuple[pa.Array, pa.Array]:
        """The ids or keys of the nodes with a row that is visible before alone, and of those with one after alone."""
        one, other = self._diff.sides
        if not self._pair.moved or not any(
            side.view is not None and key is not None and side.view.hides_rows(key)
            for side, key in zip(self._diff.sides, self._keys, strict=True)
        ):
            return _NO_IDS, _NO_IDS
        diff = diff_pair(self._pair, one.snapshot, other.snapshot, seen=self._diff)
        shown = [
            _NO_NODES if rows is None or key is None else side.visible_nodes(key, rows)
            for side, key, rows in zip(self._diff.sides, self._keys, diff.stored, strict=True)
        ]
        lost, new = (
            mine.filter(pc.invert(pc.is_in(mine["id"], value_set=one_array(theirs["id"]))))["end"]
            for mine, theirs in (shown, shown[::-1])
        )
        return one_array(pc.unique(lost)), one_array(pc.unique(new))

    def moved_rows(self) -> tuple[RowNumbers, RowNumbers]:
        """Return the edges at nodes that are visible on one side alone, of each side."""
        return self._moved_rows

    @cached_property
    def _moved_rows(self) -> tuple[RowNumbers, RowNumbers]:
        before, after = self._keys
        if before is None or after is None:
            return _NO_ROWS, _NO_ROWS
        one, other = self._diff.sides
        ends = [self._diff.of(self._diff.pair_of(one.identity(key)))._appearing for key in one.node_keys(before)]
        if not ends:
            return _NO_ROWS, _NO_ROWS
        return (
            _edges_at(one, before, ends[0][0], ends[1][0]),
            _edges_at(other, after, ends[0][1], ends[1][1]),
        )

    def before(self, rows: pa.Table) -> pa.Table:
        """Return what is visible of stored rows of the earlier side."""
        return rows if self._keys[0] is None else self._diff.sides[0].shown(self._keys[0], rows)

    def after(self, rows: pa.Table) -> pa.Table:
        """Return what is visible of stored rows of the later side."""
        return rows if self._keys[1] is None else self._diff.sides[1].shown(self._keys[1], rows)


def _edges_at(side: VisibleSide, key: str, sources: pa.Array, targets: pa.Array) -> RowNumbers:
    """Return the edges of a side at some visible nodes; without rules for nodes, no edge appears with its ends."""
    return _NO_ROWS if side.view is None else side.view.edges_at(key, sources, targets)
