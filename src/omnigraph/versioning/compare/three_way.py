"""Three-way merge decisions, row by row; writes nothing.

    B = base, T = target ("ours"), S = source ("theirs"):
    S = B → T;   T = B → S;   S = T → T;   otherwise a conflict.

Whole rows are compared. A `MergeRule` can resolve a conflict: by taking one side; column by column if both sides
updated the row (then only a column that both sides changed to different values is a conflict); by a side for single
properties; or by the caller's entry for this row.

Rows that only the source changed stay in Arrow. Only rows that both sides changed differently are examined one by one.
Every decision depends on the changes of one range of ids alone, so ranges can be decided in any process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.checkpoints import paced
from omnigraph.versioning.compare.diff import TableChanges, compare
from omnigraph.versioning.compare.equality import differing, same_row, same_value
from omnigraph.versioning.compare.rows import ToJson, from_dicts, to_dicts, to_plain

Side = Literal["ours", "theirs"]
Resolution = Literal["ours", "theirs", "columns"]
ConflictKind = Literal[
    "divergent_insert",
    "divergent_update",
    "delete_vs_update",
    "orphan_edge",
    "unique_violation",
    "cardinality_violation",
    "value_constraint_violation",
    "schema_conflict",
    "query_conflict",
    "alias_conflict",
]
Row = dict[str, Any]


@dataclass(frozen=True)
class ConflictRow:
    """A row of a violation, whose resolution can end it: in the merged graph and on both sides, None if absent."""

    table_key: str
    row_id: str
    row: Row | None
    ours: Row | None
    theirs: Row | None

    @property
    def id(self) -> str:
        """The name of the row in `resolve`."""
        return f"{self.table_key}:{self.row_id}"

    def to_json(self, value: ToJson = to_plain) -> dict[str, Any]:
        """Return the JSON form; `value` converts rows."""
        images = {"row": value(self.row), "ours": value(self.ours), "theirs": value(self.theirs)}
        return {"id": self.id, "table_key": self.table_key, "row_id": self.row_id, **images}


@dataclass(frozen=True)
class ConflictDetail:
    """A conflicting change of both branches, or a constraint that the merged graph would violate."""

    table_key: str
    row_id: str | None
    kind: ConflictKind
    message: str
    base: Row | None = None
    ours: Row | None = None
    theirs: Row | None = None
    properties: tuple[str, ...] = ()
    """The columns in which the sides differ, if both have the row; the column of a violated rule."""
    rows: tuple[ConflictRow, ...] = ()
    """The rows of a violation that `resolve` can name; none under rules for rows."""

    @property
    def id(self) -> str:
        """The name of the conflict in `resolve`: `node:Type:row`."""
        return f"{self.table_key}:{self.row_id}" if self.row_id is not None else self.table_key

    @property
    def resolutions(self) -> tuple[Resolution, ...]:
        """The resolutions that apply to a whole type.

        A violation is resolved only by its id, and a schema conflict not at all.
        """
        if self.kind not in ("divergent_insert", "divergent_update", "delete_vs_update"):
            return ()
        base, ours, theirs = self.base, self.ours, self.theirs
        if base is None or ours is None or theirs is None:
            return "ours", "theirs"
        one_sided = all(
            same_value(ours.get(name), base.get(name)) or same_value(theirs.get(name), base.get(name))
            for name in self.properties
        )
        return ("ours", "theirs", "columns") if one_sided else ("ours", "theirs")

    def to_json(self, value: ToJson = to_plain) -> dict[str, Any]:
        """Return the JSON form that all interfaces show; `value` converts rows."""
        return {
            "id": self.id,
            "table_key": self.table_key,
            "row_id": self.row_id,
            "kind": self.kind,
            "message": self.message,
            "properties": list(self.properties),
            "base": value(self.base),
            "ours": value(self.ours),
            "theirs": value(self.theirs),
            **({"rows": [row.to_json(value) for row in self.rows]} if self.rows else {}),
        }


@dataclass(frozen=True)
class MergeRule:
    """Resolution of the conflicts of one table.

    A row's entry takes precedence over a property's, and that over the default.
    """

    default: Resolution | None = None
    properties: Mapping[str, Side] = field(default_factory=dict)
    rows: Mapping[str, Resolution | Row | None] = field(default_factory=dict)
    """The resolution of single rows: a resolution name, new values of properties, or None to delete the row."""
    restored: frozenset[str] = frozenset()
    """Columns that only the source has, and that the target can therefore not have changed."""


NO_RULE = MergeRule()


@dataclass(frozen=True)
class TableMerge:
    """The changes to one table of the target, or to one range of its ids."""

    put: pa.Table
    delete: pa.Array
    new_ids: pa.Array = field(default_factory=lambda: pa.array([], pa.utf8()))
    """The ids of those rows in `put` that the target does not have; they require no lookup."""
    conflicts: tuple[ConflictDetail, ...] = ()
    resolved: tuple[str, ...] = ()
    """Rows that a rule resolved by name."""
    settled: tuple[str, ...] = ()
    """Rows that both sides changed and that a rule resolved, by name or in general."""

    def counts(self) -> dict[str, int]:
        """Return the numbers of changed rows, by operation."""
        return {
            "inserted": len(self.new_ids),
            "updated": self.put.num_rows - len(self.new_ids),
            "deleted": len(self.delete),
        }


def concat_merges(parts: Iterable[TableMerge], schema: pa.Schema) -> TableMerge:
    """Combine the merges of all ranges of a table."""
    listed = list(parts)
    return TableMerge(
        pa.concat_tables([schema.empty_table(), *(part.put for part in listed)]),
        pa.concat_arrays([pa.array([], pa.utf8()), *(part.delete for part in listed)]),
        pa.concat_arrays([pa.array([], pa.utf8()), *(part.new_ids for part in listed)]),
        tuple(conflict for part in listed for conflict in part.conflicts),
        tuple(row_id for part in listed for row_id in part.resolved),
        tuple(row_id for part in listed for row_id in part.settled),
    )


def take_changes(theirs: TableChanges, schema: pa.Schema) -> TableMerge:
    """Return all changes of the source as a merge, for rows that the target did not change."""
    rows = [in_columns(rows, schema) for rows in (theirs.inserted, theirs.new)]
    return TableMerge(pa.concat_tables(rows), one_array(theirs.deleted["id"]), one_array(theirs.inserted["id"]))


def override_rows(
    merge: TableMerge, rows: Mapping[str, tuple[Row | None, Row | None]], key: str, schema: pa.Schema
) -> TableMerge:
    """Replace the results of some rows in a merge: id → the target's row and the row it gets, None for absent."""
    decisions = _RowDecisions(key, NO_RULE)
    for id_, (t, row) in rows.items():
        decisions.take(id_, t, row)
    ids = pa.array(list(rows), pa.utf8())
    kept = TableMerge(
        merge.put.filter(pc.invert(pc.is_in(merge.put["id"], value_set=ids))),
        merge.delete.filter(pc.invert(pc.is_in(merge.delete, value_set=ids))),
        merge.new_ids.filter(pc.invert(pc.is_in(merge.new_ids, value_set=ids))),
        merge.conflicts,
        merge.resolved,
        merge.settled,
    )
    return concat_merges([kept, decisions.merge(schema)], schema)


VirtualBase = Callable[[pa.Array], Mapping[str, Row | None]]
"""Ids → the rows of the virtual merge base of two histories with several merge bases."""


def merge_changes(
    ours: TableChanges,
    theirs: TableChanges,
    schema: pa.Schema,
    rule: MergeRule = NO_RULE,
    virtual: VirtualBase | None = None,
) -> TableMerge:
    """Merge the changes of both sides since the base, relative to ours, into the columns of `schema`."""
    if virtual is not None:
        return _merge_on(ours, theirs, schema, rule, virtual)
    free = take_changes(_without(theirs, ours.ids), schema)
    mine, yours = (_after_among(side, other.ids) for side, other in ((ours, theirs), (theirs, ours)))
    clashing = compare(theirs.key, mine, yours)
    ids = clashing.ids
    base = {row["id"]: row for rows in (theirs.old, theirs.deleted) for row in to_dicts(_among(rows, ids))}
    decisions = _RowDecisions(theirs.key, rule)
    for change in paced(clashing.rows()):
        decisions.resolve(change.id, base.get(change.id), change.before, change.after)
    return concat_merges([free, decisions.merge(schema)], schema)


def _merge_on(
    ours: TableChanges, theirs: TableChanges, schema: pa.Schema, rule: MergeRule, virtual: VirtualBase
) -> TableMerge:
    """Merge like `merge_changes`, with changes that are relative to one of several bases, all of which count."""
    ids = pc.unique(pa.concat_arrays([ours.ids, theirs.ids]))
    base = virtual(ids)
    rows = [{change.id: change for change in side.rows()} for side in (ours, theirs)]
    decisions = _RowDecisions(theirs.key, rule)
    for id_ in paced(sorted(ids.to_pylist())):
        mine, yours = rows[0].get(id_), rows[1].get(id_)
        # A side that did not change the row since that base still has the row of that base.
        there = next(change.before for change in (mine, yours) if change is not None)
        t = mine.after if mine is not None else there
        s = yours.after if yours is not None else there
        b = base[id_]
        if same_row(s, t) or same_row(s, b):
            continue
        if same_row(t, b):
            decisions.take(id_, t, s)
        else:
            decisions.resolve(id_, b, t, s)
    return decisions.merge(schema)


class _RowDecisions:
    """Collects the decisions for rows of one table that are decided individually."""

    def __init__(self, key: str, rule: MergeRule) -> None:
        self._key = key
        self._rule = rule
        self._put: list[Row] = []
        self._new: list[str] = []
        self._delete: list[str] = []
        self._conflicts: list[ConflictDetail] = []
        self._resolved: list[str] = []
        self._decided: list[str] = []

    def merge(self, schema: pa.Schema) -> TableMerge:
        """Return the decisions as a merge."""
        put = from_dicts(self._put, schema)
        delete = pa.array(self._delete, pa.utf8())
        new = pa.array(self._new, pa.utf8())
        conflicting = {conflict.row_id for conflict in self._conflicts}
        settled = tuple(id_ for id_ in self._decided if id_ not in conflicting)
        return TableMerge(put, delete, new, tuple(self._conflicts), tuple(self._resolved), settled)

    def take(self, id_: str, t: Row | None, row: Row | None) -> None:
        """Set the row of the target; `t` is its current row."""
        if row is None:
            if t is not None:
                self._delete.append(id_)
        elif not same_row(t, row):
            self._put.append(row)
            if t is None:
                self._new.append(id_)

    def resolve(self, id_: str, base: Row | None, t: Row | None, s: Row | None) -> None:
        """Resolve a row that both sides changed differently, or record a conflict."""
        rule = self._rule
        if rule.restored and base is not None and s is not None:
            restored = {name: value for name, value in s.items() if name in rule.restored}
            if same_row(base | restored, s):
                self.take(id_, t, None if t is None else t | restored)
                return
        self._decided.append(id_)
        choice: Resolution | Row | None = rule.default
        sides = rule.properties
        if id_ in rule.rows:
            self._resolved.append(id_)
            choice, sides = rule.rows[id_], {}
            if choice is None:
                self.take(id_, t, None)
                return
            if isinstance(choice, dict):
                self._combine(id_, base, t, s, sides, choice, None)
                return
        both = t is not None and s is not None
        if (both and sides) or (both and base is not None and choice == "columns"):
            self._combine(id_, base, t, s, sides, {}, choice)
        elif choice in ("ours", "theirs"):
            self.take(id_, t, t if choice == "ours" else s)
        else:
            self._conflict(id_, base, t, s, differing(t, s))

    def _combine(
        self,
        id_: str,
        base: Row | None,
        t: Row | None,
        s: Row | None,
        sides: Mapping[str, Side],
        values: Mapping[str, Any],
        choice: Resolution | Row | None,
    ) -> None:
        """Combine the row column by column; a column without a decision is a conflict."""
        if t is None or s is None:
            self.take(id_, t, {**(t or s or {}), **values})
            return
        known = base or {}
        combined: Row = {}
        left: list[str] = []
        for name in {**known, **t, **s}:
            b, x, y = known.get(name), t.get(name), s.get(name)
            side = sides.get(name, choice)
            if name in values:
                combined[name] = values[name]
            elif same_value(x, y) or same_value(y, b):
                combined[name] = x
            elif same_value(x, b):
                combined[name] = y
            elif side in ("ours", "theirs"):
                combined[name] = x if side == "ours" else y
            else:
                combined[name] = x
                left.append(name)
        if left:
            self._conflict(id_, base, t, s, left)
        else:
            self.take(id_, t, combined)

    def _conflict(self, id_: str, base: Row | None, t: Row | None, s: Row | None, names: list[str]) -> None:
        if base is None:
            kind: ConflictKind = "divergent_insert"
        elif t is None or s is None:
            kind = "delete_vs_update"
            names = differing(base, s if t is None else t)
        else:
            kind = "divergent_update"
        message = describe_conflict(kind, t, s, names)
        self._conflicts.append(ConflictDetail(self._key, id_, kind, message, base, t, s, tuple(names)))


def describe_conflict(kind: ConflictKind, ours: Row | None, theirs: Row | None, names: Sequence[str]) -> str:
    """Return how the sides changed a row differently, in the columns `names`."""
    if kind == "divergent_insert":
        return f"both sides inserted it, with different {_listed(names, ours, theirs)}"
    if kind == "delete_vs_update":
        deleter, other = ("the target", "the source") if ours is None else ("the source", "the target")
        return f"{deleter} deleted it, {other} changed {', '.join(names)}"
    return f"the sides changed it differently: {_listed(names, ours, theirs)}"


def decide_row(base: Row | None, t: Row | None, s: Row | None) -> tuple[bool, Row | None]:
    """Return whether the sides agree on a row, and that row, by the table at the top of this module."""
    if same_row(s, t) or same_row(s, base):
        return True, t
    return same_row(t, base), s


# -- Arrow -------------------------------------------------------------------------------------------


def in_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns of another schema, all nullable; absent columns are null."""
    arrays = [
        rows[field.name].cast(field.type) if field.name in rows.schema.names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=nullable_columns(schema))


def nullable_columns(schema: pa.Schema) -> pa.Schema:
    """Return the same columns, all nullable."""
    return pa.schema([field.with_nullable(True) for field in schema])


def _without(changes: TableChanges, ids: pa.Array) -> TableChanges:
    def kept(rows: pa.Table, like: pa.Table) -> pa.Table:
        return rows.filter(pc.invert(pc.is_in(like["id"], value_set=ids)))

    return TableChanges(
        changes.key,
        kept(changes.inserted, changes.inserted),
        kept(changes.deleted, changes.deleted),
        kept(changes.old, changes.new),
        kept(changes.new, changes.new),
    )


def _after_among(changes: TableChanges, ids: pa.Array) -> pa.Table:
    """Return the rows with these ids that a side has after its changes."""
    return pa.concat_tables([_among(changes.inserted, ids), _among(changes.new, ids)])


def _among(rows: pa.Table, ids: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows["id"], value_set=ids))


def _listed(names: Sequence[str], t: Row | None, s: Row | None) -> str:
    shown = [f"{name} ({_short((t or {}).get(name))} here, {_short((s or {}).get(name))} there)" for name in names[:3]]
    return ", ".join(shown) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
