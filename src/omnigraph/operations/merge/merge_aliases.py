"""The aliases of a merge: merged by former id, and applied to the writes of the side that does not know them.

If one side unified `a` with `c`, the other side may still write to `a`. Its edges at `a` are re-pointed to `c`, and the
properties that it changed in `a` are set in `c`. A property that the first side also set to another value, beyond what
it took from the two nodes, is a conflict of `c`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import concatenate, one_array
from omnigraph.engine.write.unify import duplicate_columns, row_codes
from omnigraph.engine.write.upsert import match_columns
from omnigraph.operations.merge.conflict_rules import ConflictRules
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.equality import same_row, same_value
from omnigraph.versioning.compare.rows import to_dicts
from omnigraph.versioning.compare.three_way import (
    ConflictDetail,
    MergeRule,
    Row,
    TableMerge,
    in_columns,
    override_rows,
)
from omnigraph.versioning.model.aliases import AliasSet

if TYPE_CHECKING:
    from omnigraph.operations.merge.guarded_merge import GuardedMerge
    from omnigraph.storage.lance.tables import Table
    from omnigraph.versioning.model.snapshot import Snapshot

Entries = dict[str, str]
"""Former id → node."""


@dataclass(frozen=True)
class NewAliases:
    """The aliases of one node table that a side does not know."""

    ours: Entries = field(default_factory=dict)
    """Aliases of the target that the source does not know."""
    theirs: Entries = field(default_factory=dict)
    """Aliases of the source that the target does not know."""


@dataclass(frozen=True)
class AliasMerge:
    """The aliases of the merged graph."""

    aliases: AliasSet = field(default_factory=AliasSet)
    new: Mapping[str, NewAliases] = field(default_factory=dict)
    """Key of a node table → the aliases that one of the sides does not know."""
    conflicts: tuple[ConflictDetail, ...] = ()

    def of(self, type_: NodeType | EdgeType) -> dict[str, NewAliases]:
        """Return the new aliases that concern a type, by column of its table."""
        if not self.new:
            return {}
        if isinstance(type_, NodeType):
            columns = {"id": type_.table_key}
        else:
            columns = {"src": TableKey.node(type_.from_type), "dst": TableKey.node(type_.to_type)}
        return {column: self.new[key] for column, key in columns.items() if key in self.new}

    def without_nodes(self, table_id: int, gone: Sequence[str]) -> AliasMerge:
        """Return the merge without the aliases of some nodes."""
        lost = self.aliases.of_nodes(table_id, gone)
        if not lost:
            return self
        return replace(self, aliases=self.aliases.with_changes({table_id: dict.fromkeys(lost)}))


def decide_aliases(
    bases: Sequence[Snapshot], ours: Snapshot, theirs: Snapshot, keys: Mapping[int, str], rules: ConflictRules
) -> AliasMerge:
    """Return the aliases of a merge; `keys` maps table id → key of the table in the merged graph."""
    if not (ours.aliases_hash or theirs.aliases_hash):
        return AliasMerge()
    here, there = ours.aliases, theirs.aliases
    changes: dict[int, dict[str, str | None]] = {}
    conflicts: list[ConflictDetail] = []
    if theirs.aliases_hash not in (ours.aliases_hash, *(base.aliases_hash for base in bases)):
        for table, old, before, after in bases[0].aliases.differences(there):
            mine = here.find(table, old)
            if mine == after:
                continue
            side = "theirs" if mine == before else rules.of_alias(keys.get(table, ""), old)
            if side is None:
                conflicts.append(_conflict(keys.get(table, ""), old, before, mine, after))
            elif side == "theirs":
                changes.setdefault(table, {})[old] = after
    merged = here.with_changes(changes) if changes else here
    for table in changes:
        shorter, cycles = _shortened(merged.entries(table))
        conflicts += [_cycle(keys.get(table, ""), old, merged.find(table, old)) for old in cycles]
        if shorter:
            merged = merged.with_changes({table: shorter})
    new: dict[str, NewAliases] = {}
    for table in merged.tables():
        if table not in keys:
            continue
        unknown = NewAliases(_unknown(merged, there, table), _unknown(merged, here, table))
        if unknown.ours or unknown.theirs:
            new[keys[table]] = unknown
    return AliasMerge(merged, new, tuple(conflicts))


def _unknown(merged: AliasSet, side: AliasSet, table: int) -> Entries:
    """Return the merged aliases that a side does not have."""
    known = side.entries(table)
    return {old: kept for old, kept in merged.entries(table).items() if known.get(old) != kept}


def _shortened(entries: Entries) -> tuple[dict[str, str | None], list[str]]:
    """Return the aliases of aliases with their last node, and those that lead back to themselves."""
    changes: dict[str, str | None] = {}
    cycles: list[str] = []
    for old, kept in entries.items():
        last, seen = kept, {old}
        while last in entries and last not in seen:
            seen.add(last)
            last = entries[last]
        if last in seen:
            cycles.append(old)
        elif last != kept:
            changes[old] = last
    return changes, sorted(cycles)


def _conflict(key: str, old: str, base: str | None, mine: str | None, other: str | None) -> ConflictDetail:
    name = TableKey.parse(key).type_name if key else "node"
    here, there = (f"unified with '{one}'" if one is not None else "separate" for one in (mine, other))
    message = f"{name} '{old}' is {here} in the target and {there} in the source"
    rows: list[Row | None] = [{"id": old, "node": one} if one is not None else None for one in (base, mine, other)]
    return ConflictDetail(f"alias:{name}:{old}", None, "alias_conflict", message, rows[0], rows[1], rows[2])


def _cycle(key: str, old: str, kept: str | None) -> ConflictDetail:
    name = TableKey.parse(key).type_name if key else "node"
    message = f"one side unified {name} '{old}' with '{kept}', and the other side the reverse"
    return ConflictDetail(f"alias:{name}:{old}", None, "alias_conflict", message)


# -- rows --------------------------------------------------------------------------------------------


ReadRows = Callable[[Sequence[str]], Mapping[str, Row]]
"""Reads rows by id, in the columns of the merged table."""


@dataclass(frozen=True)
class SideRows:
    """The rows of the sides of a merge."""

    base: ReadRows
    ours: ReadRows
    theirs: ReadRows


class AliasedNodes:
    """Sets what a side changed in nodes that the other side unified with others."""

    def __init__(self, key: str, type_: NodeType, new: NewAliases, rule: MergeRule, rows: SideRows) -> None:
        self._key = key
        self._type = type_
        self._new = new
        self._rule = rule
        self._read = rows

    def apply(self, merge: TableMerge, columns: pa.Schema) -> TableMerge:
        """Return the merge of a node table without rows whose ids are aliases."""
        late = {old: kept for old, kept in self._new.theirs.items() if old not in self._new.ours}
        touched = {conflict.row_id for conflict in merge.conflicts} | set(merge.put["id"].to_pylist())
        of_source = {old: kept for old, kept in self._new.ours.items() if old in touched and old not in late}
        gone = set(merge.delete.to_pylist())
        of_target = {old: kept for old, kept in late.items() if old not in gone}
        both = {**of_source, **of_target}
        if not both:
            return merge
        ids = [*both, *both.values()]
        base, ours, theirs = (read(ids) for read in (self._read.base, self._read.ours, self._read.theirs))
        both = {old: kept for old, kept in both.items() if old in of_source or old in ours or old in touched}
        rows: dict[str, tuple[Row | None, Row | None]] = {}
        merged = {row["id"]: row for row in _dicts(merge.put, [*both.values()])}
        conflicts = [conflict for conflict in merge.conflicts if conflict.row_id not in both]
        for old, kept in both.items():
            side: Literal["ours", "theirs"] = "theirs" if old in of_source else "ours"
            written = (theirs if side == "theirs" else ours).get(old)
            rows[old] = ours.get(old), None
            current = rows[kept][1] if kept in rows else merged.get(kept, ours.get(kept))
            if written is None or current is None:
                continue
            new, clashing = self._set(current, written, base.get(old), base.get(kept), side)
            if clashing:
                message = f"both sides set {', '.join(clashing)} of the node, which one of them unified with '{old}'"
                images = base.get(kept), ours.get(kept), {**(theirs.get(kept) or current), **_chosen(written, clashing)}
                detail = ConflictDetail(self._key, kept, "divergent_update", message, *images, properties=clashing)
                conflicts.append(detail)
            elif not same_row(new, current):
                rows[kept] = ours.get(kept), new
        return replace(override_rows(merge, rows, self._key, columns), conflicts=tuple(conflicts))

    def _set(
        self, current: Row, written: Row, before: Row | None, kept_before: Row | None, side: Literal["ours", "theirs"]
    ) -> tuple[Row, tuple[str, ...]]:
        """Return a node with the values that were written to its alias, and the properties in conflict."""
        new, clashing = dict(current), []
        choice = self._rule.rows.get(current["id"], self._rule.default)
        for name in self._type.properties:
            value = written.get(name)
            if name in self._type.key or same_value(value, current.get(name)):
                continue
            if same_value(value, before.get(name)) if before is not None else value is None:
                continue
            origins = [row.get(name) for row in (before, kept_before) if row is not None]
            wanted = self._rule.properties.get(name, choice)
            if isinstance(current.get(name), list) and isinstance(value, list):
                known = before.get(name) if before is not None else None
                new[name] = _combined(current[name], known or [], value)
            elif wanted == side or current.get(name) is None or any(same_value(current.get(name), o) for o in origins):
                new[name] = value
            elif wanted not in ("ours", "theirs"):
                clashing.append(name)
        return new, tuple(clashing)


def _combined(current: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    """Return a list with the items that a write added, and without those that it removed."""
    kept = [item for item in current if item in after or item not in before]
    return kept + [item for item in after if item not in before and item not in kept]


def _chosen(row: Row, names: Sequence[str]) -> Row:
    return {name: row[name] for name in names}


ReadEdges = Callable[[str, Sequence[str], pa.Schema], pa.Table]
"""Reads the edges of one side with some values in a column, in the given columns of the merged table."""


def edge_reader(table: Table, names: Mapping[str, str] | None) -> ReadEdges:
    """Return a reader of the edges of a table; `names` maps its columns to those of the merged table."""

    def read(column: str, values: Sequence[str], columns: pa.Schema) -> pa.Table:
        rows = table.rows_with(column, values, table.schema.names)
        if names is not None:
            rows = rows.select([*names]).rename_columns([*names.values()])
        return in_columns(rows, columns)

    return read


class AliasedEdges:
    """Re-points the edges of a side to the nodes that the other side unified."""

    def __init__(
        self,
        key: str,
        type_: EdgeType,
        new: Mapping[str, NewAliases],
        read: ReadEdges,
        read_source: ReadEdges,
        guard: GuardedMerge | None = None,
    ) -> None:
        """`read` reads edges of the target, `read_source` those of the source."""
        self._key = key
        self._type = type_
        self._new = new
        self._read = read
        self._read_source = read_source
        self._guard = guard

    def apply(self, merge: TableMerge, columns: pa.Schema) -> TableMerge:
        """Return the merge of an edge table without aliases in the ends of its edges."""
        merge = self._settled(merge, columns)
        put, moved = self._repointed(merge.put)
        known = concatenate([one_array(merge.put["id"]), merge.delete])
        late = self._target_edges(known, columns)
        put, moved = pa.concat_tables([put, late]), concatenate([moved, one_array(late["id"])])
        if not len(moved):
            return merge
        return self._folded(replace(merge, put=put), moved)

    def _map(self, column: str, ids: pa.Array) -> pa.Array:
        entries = {**self._new[column].ours, **self._new[column].theirs}
        places = pc.index_in(ids, value_set=pa.array(entries, pa.utf8()))
        return pc.coalesce(pa.array(entries.values(), pa.utf8()).take(places), ids)

    def _repointed(self, rows: pa.Table) -> tuple[pa.Table, pa.Array]:
        """Return rows with the ids of nodes in place of aliases, and the ids of the rows that change."""
        changed = pa.array([False] * rows.num_rows, pa.bool_())
        for column in self._new:
            before = one_array(rows[column])
            after = self._map(column, before)
            changed = pc.or_(changed, pc.not_equal(before, after))
            place = rows.schema.get_field_index(column)
            rows = rows.set_column(place, rows.schema.field(place), after)
        return rows, one_array(rows["id"]).filter(one_array(changed))

    def _target_edges(self, known: pa.Array, columns: pa.Schema) -> pa.Table:
        """Return the re-pointed edges of the target that the source did not change."""
        found: list[pa.Table] = []
        for column, new in self._new.items():
            if new.theirs:
                rows = self._read(column, [*new.theirs], columns)
                found.append(rows.filter(pc.invert(pc.is_in(rows["id"], value_set=known))))
                known = concatenate([known, one_array(rows["id"])])
        return self._repointed(pa.concat_tables([columns.empty_table(), *found]))[0]

    def _settled(self, merge: TableMerge, columns: pa.Schema) -> TableMerge:
        """Return the merge without conflicts between a re-pointed edge and other changes of it."""
        kept: list[ConflictDetail] = []
        rows: dict[str, tuple[Row | None, Row | None]] = {}
        for conflict in merge.conflicts:
            base, ours, theirs = (self._row(row) for row in (conflict.base, conflict.ours, conflict.theirs))
            if conflict.row_id is None or (ours is None and theirs is None):
                kept.append(conflict)
            elif same_row(theirs, base) or same_row(theirs, ours):
                rows[conflict.row_id] = conflict.ours, ours
            elif same_row(ours, base):
                rows[conflict.row_id] = conflict.ours, theirs
            elif (
                base is not None and not same_row(base, conflict.base) and self._was_folded(base, ours, theirs, columns)
            ):
                # The edge was a duplicate when its nodes were unified, and the change made it different.
                rows[conflict.row_id] = conflict.ours, ours or theirs
            else:
                kept.append(conflict)
        if not rows:
            return merge
        return replace(override_rows(merge, rows, self._key, columns), conflicts=tuple(kept))

    def _was_folded(self, base: Row, ours: Row | None, theirs: Row | None, columns: pa.Schema) -> bool:
        """Return True if one side deleted an edge that is equal to another edge of that side."""
        if (ours is None) == (theirs is None) or match_columns(self._type) is not None:
            return False
        if self._guard is not None and self._guard.withholds(self._type, base):
            return False
        read = self._read if ours is None else self._read_source
        names = [name for name in base if name != "id"]
        return any(
            all(same_value(row[name], base[name]) for name in names)
            for row in to_dicts(read("src", [base["src"]], columns))
            if row["id"] != base["id"]
        )

    def _row(self, row: Row | None) -> Row | None:
        if row is None:
            return None
        ends = {column: self._map(column, pa.array([row[column]], pa.utf8()))[0].as_py() for column in self._new}
        return {**row, **ends}

    def _folded(self, merge: TableMerge, moved: pa.Array) -> TableMerge:
        """Return the merge without re-pointed edges that are equal to other edges."""
        columns = duplicate_columns(self._type)
        if columns is None:
            return merge
        put = merge.put
        mine = put.filter(pc.is_in(put["id"], value_set=moved))
        others = put.filter(pc.invert(pc.is_in(put["id"], value_set=moved)))
        sources = pc.unique(one_array(mine["src"])).to_pylist()
        near = self._read("src", sources, put.schema)
        gone = concatenate([one_array(put["id"]), merge.delete])
        near = near.filter(pc.invert(pc.is_in(near["id"], value_set=gone)))
        others = pa.concat_tables([near, others])
        both = pa.concat_tables([others, mine])
        numbers = row_codes(both, columns)
        if self._guard is not None:
            is_moved = np.arange(both.num_rows) >= others.num_rows
            apart = ~self._guard.foldable(self._type, both, columns, is_moved)
            numbers[apart] = -1 - np.flatnonzero(apart)
        codes = numbers.tolist()
        seen = set(codes[: others.num_rows])
        lost: list[str] = []
        for id_, code in zip(mine["id"].to_pylist(), codes[others.num_rows :], strict=True):
            if code in seen:
                lost.append(id_)
            seen.add(code)
        if not lost:
            return merge
        ids = pa.array(lost, pa.utf8())
        stored = ids.filter(pc.invert(pc.is_in(ids, value_set=merge.new_ids)))
        return replace(
            merge,
            put=put.filter(pc.invert(pc.is_in(put["id"], value_set=ids))),
            delete=concatenate([merge.delete, stored]),
            new_ids=merge.new_ids.filter(pc.invert(pc.is_in(merge.new_ids, value_set=ids))),
        )


def _dicts(rows: pa.Table, ids: Sequence[str]) -> list[Row]:
    return to_dicts(rows.filter(pc.is_in(rows["id"], value_set=pa.array(ids, pa.utf8()))))
