"""Decides a three-way merge, row by row; writes nothing.

    B = base, T = target ("ours"), S = source ("theirs"):
    S = B → T;   T = B → S;   S = T → T;   otherwise a conflict.

Whole rows are compared. A conflict can be settled by a `MergeRule`: by taking a side, column by column where both sides
updated the row (then only a column changed on both sides to different values is a conflict), by a side for a single
property, or by what the caller says about this very row.

Rows only the source changed stay Arrow; only rows both sides changed differently are looked at one by one. Whatever
is decided here is decided from the changes of one range of ids alone, so ranges can be decided anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.versioning.compare.diff import TableChanges, compare
from omnigraph.versioning.compare.equality import differing, same_row, same_value
from omnigraph.versioning.compare.rows import from_dicts, to_dicts, to_plain

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
]
Row = dict[str, Any]


@dataclass(frozen=True)
class ConflictDetail:
    """Something both branches changed, or a rule the merged graph would break."""

    table_key: str
    row_id: str | None
    kind: ConflictKind
    message: str
    base: Row | None = None
    ours: Row | None = None
    theirs: Row | None = None
    properties: tuple[str, ...] = ()
    """The columns the sides do not agree on, where there is a row on both."""

    @property
    def id(self) -> str:
        """What the conflict is called in `resolve`: `node:Type:row`."""
        return f"{self.table_key}:{self.row_id}" if self.row_id is not None else self.table_key

    @property
    def resolutions(self) -> tuple[Resolution, ...]:
        """The words that settle it for a whole type; a violation is settled by its id, a schema conflict by neither."""
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

    def to_json(self) -> dict[str, Any]:
        """The form surfaces show."""
        return {
            "id": self.id,
            "table_key": self.table_key,
            "row_id": self.row_id,
            "kind": self.kind,
            "message": self.message,
            "properties": list(self.properties),
            "base": to_plain(self.base),
            "ours": to_plain(self.ours),
            "theirs": to_plain(self.theirs),
        }


@dataclass(frozen=True)
class MergeRule:
    """How conflicts of one table are settled; what is said about a row goes before a property, that before the rest."""

    default: Resolution | None = None
    properties: Mapping[str, Side] = field(default_factory=dict)
    rows: Mapping[str, Resolution | Row | None] = field(default_factory=dict)
    """A row's own resolution: a word, the values its properties shall have, or None to delete it."""


NO_RULE = MergeRule()


@dataclass(frozen=True)
class TableMerge:
    """What to do to one table of the target, or to one range of its ids."""

    put: pa.Table
    delete: pa.Array
    new_ids: pa.Array = field(default_factory=lambda: pa.array([], pa.utf8()))
    """Those of the rows to put that the target does not have: nobody need look for them."""
    conflicts: tuple[ConflictDetail, ...] = ()
    resolved: tuple[str, ...] = ()
    """Rows the rule spoke of by name."""

    def to_json(self) -> dict[str, Any]:
        """Counts, as a preview shows them."""
        return {
            "inserted": len(self.new_ids),
            "updated": self.put.num_rows - len(self.new_ids),
            "deleted": len(self.delete),
        }


def concat_merges(parts: Iterable[TableMerge], schema: pa.Schema) -> TableMerge:
    """The merges of all ranges of a table as one."""
    listed = list(parts)
    return TableMerge(
        pa.concat_tables([schema.empty_table(), *(part.put for part in listed)]),
        pa.concat_arrays([pa.array([], pa.utf8()), *(part.delete for part in listed)]),
        pa.concat_arrays([pa.array([], pa.utf8()), *(part.new_ids for part in listed)]),
        tuple(conflict for part in listed for conflict in part.conflicts),
        tuple(row_id for part in listed for row_id in part.resolved),
    )


def take_changes(theirs: TableChanges, schema: pa.Schema) -> TableMerge:
    """Everything the source changed, where the target changed nothing."""
    rows = [in_columns(rows, schema) for rows in (theirs.inserted, theirs.new)]
    return TableMerge(pa.concat_tables(rows), one_array(theirs.deleted["id"]), one_array(theirs.inserted["id"]))


def override_rows(
    merge: TableMerge, rows: Mapping[str, tuple[Row | None, Row | None]], key: str, schema: pa.Schema
) -> TableMerge:
    """The merge with other results for some rows: id → the target's row and the row it shall have, None for absent."""
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
    )
    return concat_merges([kept, decisions.merge(schema)], schema)


VirtualBase = Callable[[pa.Array], Mapping[str, Row | None]]
"""Ids → the rows two histories that met more than once have in common."""


def merge_changes(
    ours: TableChanges,
    theirs: TableChanges,
    schema: pa.Schema,
    rule: MergeRule = NO_RULE,
    virtual: VirtualBase | None = None,
) -> TableMerge:
    """Merge what both sides changed since the base; the result is relative to ours and has the columns of `schema`."""
    if virtual is not None:
        return _merge_on(ours, theirs, schema, rule, virtual)
    free = take_changes(_without(theirs, ours.ids), schema)
    mine, yours = (_after_among(side, other.ids) for side, other in ((ours, theirs), (theirs, ours)))
    clashing = compare(theirs.key, mine, yours)
    ids = clashing.ids
    base = {row["id"]: row for rows in (theirs.old, theirs.deleted) for row in to_dicts(_among(rows, ids))}
    decisions = _RowDecisions(theirs.key, rule)
    for change in clashing.rows():
        decisions.resolve(change.id, base.get(change.id), change.before, change.after)
    return concat_merges([free, decisions.merge(schema)], schema)


def _merge_on(
    ours: TableChanges, theirs: TableChanges, schema: pa.Schema, rule: MergeRule, virtual: VirtualBase
) -> TableMerge:
    """As `merge_changes`, when the changes are relative to one of several bases and all of them count."""
    ids = pc.unique(pa.concat_arrays([ours.ids, theirs.ids]))
    base = virtual(ids)
    rows = [{change.id: change for change in side.rows()} for side in (ours, theirs)]
    decisions = _RowDecisions(theirs.key, rule)
    for id_ in sorted(ids.to_pylist()):
        mine, yours = rows[0].get(id_), rows[1].get(id_)
        # Who did not change the row since that base has it as it was there.
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
    """The rows of one table that are decided one by one."""

    def __init__(self, key: str, rule: MergeRule) -> None:
        self._key = key
        self._rule = rule
        self._put: list[Row] = []
        self._new: list[str] = []
        self._delete: list[str] = []
        self._conflicts: list[ConflictDetail] = []
        self._resolved: list[str] = []

    def merge(self, schema: pa.Schema) -> TableMerge:
        """What came out."""
        put = from_dicts(self._put, schema)
        delete = pa.array(self._delete, pa.utf8())
        new = pa.array(self._new, pa.utf8())
        return TableMerge(put, delete, new, tuple(self._conflicts), tuple(self._resolved))

    def take(self, id_: str, t: Row | None, row: Row | None) -> None:
        """Let the target have this row; `t` is what it has."""
        if row is None:
            if t is not None:
                self._delete.append(id_)
        elif not same_row(t, row):
            self._put.append(row)
            if t is None:
                self._new.append(id_)

    def resolve(self, id_: str, base: Row | None, t: Row | None, s: Row | None) -> None:
        """Decide a row both sides changed differently, or note the conflict."""
        rule = self._rule
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
        """Put the row together column by column; what nothing decides is a conflict."""
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
            message = f"both sides inserted it, with different {_listed(names, t, s)}"
        elif t is None or s is None:
            kind = "delete_vs_update"
            who, other = ("the target", "the source") if t is None else ("the source", "the target")
            names = differing(base, s if t is None else t)
            message = f"{who} deleted it, {other} changed {', '.join(names)}"
        else:
            kind = "divergent_update"
            message = f"the sides changed it differently: {_listed(names, t, s)}"
        self._conflicts.append(ConflictDetail(self._key, id_, kind, message, base, t, s, tuple(names)))


def decide_row(base: Row | None, t: Row | None, s: Row | None) -> tuple[bool, Row | None]:
    """Whether the sides agree on a row, and the row they agree on: the rule at the top of this page."""
    if same_row(s, t) or same_row(s, base):
        return True, t
    return same_row(t, base), s


# -- Arrow -------------------------------------------------------------------------------------------


def in_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the columns of another schema, every column nullable; a column they do not have is null."""
    arrays = [
        rows[field.name].cast(field.type) if field.name in rows.schema.names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=loose(schema))


def loose(schema: pa.Schema) -> pa.Schema:
    """The same columns, all nullable."""
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
    """The rows a side has after its changes, of those with these ids."""
    return pa.concat_tables([_among(changes.inserted, ids), _among(changes.new, ids)])


def _among(rows: pa.Table, ids: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows["id"], value_set=ids))


def _listed(names: list[str], t: Row | None, s: Row | None) -> str:
    shown = [f"{name} ({_short((t or {}).get(name))} here, {_short((s or {}).get(name))} there)" for name in names[:3]]
    return ", ".join(shown) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
