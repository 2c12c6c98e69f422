"""The check of one write by a `WriteGuard`: the rows it may match, and the changes it may make.

Statements match visible rows only and read masked values as null. They write whole rows, so a masked property that is
not assigned keeps its value. The changes are checked as a whole when the write is complete, by the integrity rules:
each inserted, updated and deleted row as it was committed and as it becomes. A row that is deleted and inserted again
is both.

A written edge may end at a visible node or at a node of the same write. Every other node does not exist for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array, with_nulls
from omnigraph.engine.cache.table_cache import Mask
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.write.delta import Delta, Violation
from omnigraph.engine.write.overlay import WriteOverlay
from omnigraph.engine.write.where import Selection, bindings_of, row_evaluator, select
from omnigraph.errors import Denied
from omnigraph.query.plan import ir
from omnigraph.query.write_guard import ROW_CHANGES, RowAction, WriteGuard
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.equality import same_column

ReadRows = Callable[[str, pa.Array, Sequence[str], str], pa.Table]
"""(table key, values, columns, column) → the rows with these values in a column, which is usually the id."""

_evaluator = row_evaluator(Catalog({}, {}, {}), {})


class GuardedWrite:
    """A guard, applied to one attempt of a write."""

    def __init__(
        self, guard: WriteGuard, catalog: Catalog, overlay: WriteOverlay, *, lands: bool = False, trusted: bool = False
    ) -> None:
        """With `lands`, the write is that of others. With `trusted`, its changes are not checked."""
        self.guard = guard
        self._lands = lands
        self._trusted = trusted
        self._catalog = catalog
        self._overlay = overlay
        self._seen = guard.visibility.rows
        self._assigned: dict[tuple[str, str], set[str]] = {key: set() for key in guard.properties}
        """Table key and guarded property → the ids of the rows to which it was assigned."""
        self._removed: dict[str, set[str]] = {}
        """Table key → the ids of deleted rows, also of those that were inserted again."""
        self._taken: dict[str, set[str]] = {}
        """Table key → written ids that are aliases of hidden nodes."""
        self._shown: dict[str, dict[str, ir.Condition | None]] = {}
        for (key, name), condition in guard.visibility.properties.items():
            self._shown.setdefault(key, {})[name] = condition

        self._check_schema()

    def _check_schema(self) -> None:
        """Refuse conditions that were made for another schema: they would be unknown, and a denial would not hold."""
        guard = self.guard
        conditions = [*guard.visibility.rows.items()]
        conditions += [(key, one) for (key, _), one in guard.visibility.properties.items()]
        conditions += [(key, one) for (_, key), one in guard.rows.items()]
        conditions += [(key, one) for (key, _), one in guard.properties.items()]
        types = {str(type_.table_key): type_ for type_ in self._catalog.tables()}
        for key, condition in conditions:
            known = types[key].properties if key in types else {}
            for part in () if condition is None else ir.walk(condition):
                if not isinstance(part, ir.Prop) or (key in types and part.name in ("id", "src", "dst")):
                    continue
                if part.name not in known or arrow_type(known[part.name].type) != arrow_type(part.type):
                    raise Denied(f"the rules for the rows of '{key}' were made for another schema")

    # -- statements ------------------------------------------------------------------------------

    def matching(
        self, type_: NodeType | EdgeType, where: ir.Condition, evaluator: Evaluator, columns: Sequence[str] | None
    ) -> pa.Table:
        """Return the visible rows that satisfy a condition, with their stored values; it reads masked values as null.

        Only conjuncts without masked properties are pushed down; all others are evaluated on visible rows.
        """
        table = self._overlay.table(type_.table_key)
        wanted = [*columns] if columns is not None else table.schema.names
        guarded = self._shown.get(type_.table_key, {})
        pushed: list[ir.Condition] = []
        rest: list[ir.Condition] = []
        for part in ir.conjuncts_of(where):
            (pushed if guarded.keys().isdisjoint(_columns_of(part)) else rest).append(part)
        selections = [select(part, evaluator, type_.identity if isinstance(type_, NodeType) else ()) for part in pushed]
        rest += [part for selection in selections for part in selection.rest]
        tests = tuple(test for selection in selections for test in selection.tests)
        read = [*wanted, *self._columns(type_), *(name for part in rest for name in _columns_of(part))]
        rows = table.matching(Selection(tests), list(dict.fromkeys(read)))
        rows = rows.filter(pa.array(self.sees(type_, rows)))
        shown = self.masked(type_, rows)
        for part in rest:
            passing = pa.array(evaluator.mask(part, bindings_of(shown)))
            rows, shown = rows.filter(passing), shown.filter(passing)
        return rows.select(wanted)

    def sees(self, type_: NodeType | EdgeType, rows: pa.Table, read: ReadRows | None = None) -> Mask:
        """Return which rows are visible. `read` reads the ends of edges, by default with the changes of the write."""
        key = type_.table_key
        seen = self._holds(self._seen[key], rows) if key in self._seen else np.ones(rows.num_rows, bool)
        if isinstance(type_, EdgeType) and rows.num_rows:
            for column, node_type in (("src", type_.from_type), ("dst", type_.to_type)):
                node = self._catalog.nodes[node_type]
                if node.table_key in self._seen:
                    ends = one_array(pc.unique(rows[column]))
                    visible = self._visible_nodes(node, ends, read or self._read_pending)
                    seen = seen & np.asarray(pc.is_in(one_array(rows[column]), value_set=visible))
        return seen

    def masked(self, type_: NodeType | EdgeType, rows: pa.Table) -> pa.Table:
        """Return rows with null in place of the values that are not visible."""
        changed = rows
        for name, condition in self._shown.get(type_.table_key, {}).items():
            place = rows.schema.get_field_index(name)
            if place >= 0:
                column = with_nulls(one_array(rows[name]), self._holds(condition, rows))
                changed = changed.set_column(place, pa.field(name, column.type), column)
        return changed

    def returned(self, type_: NodeType | EdgeType, rows: pa.Table) -> pa.Table:
        """Return what is visible of the rows of a named statement."""
        return self.masked(type_, rows.filter(pa.array(self.sees(type_, rows))))

    def withheld_values(self, type_: NodeType | EdgeType, rows: pa.Table) -> list[set[str]]:
        """Return the properties of each row whose values are not visible."""
        found: list[set[str]] = [set() for _ in range(rows.num_rows)]
        for name, condition in self._shown.get(type_.table_key, {}).items():
            for place in np.flatnonzero(~self._holds(condition, rows)).tolist():
                found[place].add(name)
        return found

    def needed(self, type_: NodeType | EdgeType, columns: Iterable[str]) -> list[str]:
        """Return columns, and those that decide what is visible of the rows."""
        return list(dict.fromkeys([*columns, *self._columns(type_)]))

    def hides(self, type_: NodeType | EdgeType, name: str) -> bool:
        """Return True if a property does not exist for the actor."""
        return self._shown.get(type_.table_key, {}).get(name, ir.Const(True, ir.BOOL)) is None

    def withholds(self, type_: NodeType | EdgeType, names: Iterable[str]) -> bool:
        """Return True if a value of the properties may not be visible."""
        shown = self._shown.get(type_.table_key, {})
        return any(name in shown for name in names)

    def guarded_properties(self, type_: NodeType | EdgeType) -> list[str]:
        """Return the properties of a type that may not always be assigned."""
        return [name for table, name in self.guard.properties if table == type_.table_key]

    def assigned(self, type_: NodeType | EdgeType, names: Iterable[str], rows: pa.Table) -> None:
        """Record that a statement assigned properties of rows."""
        for name in names:
            if (type_.table_key, name) in self._assigned:
                self._assigned[type_.table_key, name].update(rows["id"].to_pylist())

    def require_chosen(self, type_: NodeType | EdgeType, rows: pa.Table, names: Iterable[str] | None) -> None:
        """Raise `Denied` if the properties may not be assigned to the rows; None deletes the rows."""
        if names is None:
            self._require("row_delete", type_, rows)
            return
        self._require("row_update", type_, rows)
        self.assigned(type_, names, rows)
        for name in self.guarded_properties(type_):
            self._require_property(type_, name, rows)

    def removed(self, type_: NodeType | EdgeType, ids: pa.Array) -> None:
        """Record that a statement deleted rows."""
        gone = set(ids.to_pylist())
        self._removed.setdefault(type_.table_key, set()).update(gone)
        for (key, _), assigned in self._assigned.items():
            if key == type_.table_key:
                assigned -= gone

    def taken_by_aliases(self, node: NodeType, ids: pa.Array) -> None:
        """Record that written ids are aliases of hidden nodes."""
        self._taken.setdefault(node.table_key, set()).update(ids.to_pylist())

    def refuse_taken(self, node: NodeType, row: pa.Table, names: Iterable[str]) -> NoReturn:
        """Refuse a node whose key a hidden row has; an actor that may not insert the node learns only that."""
        self.assigned(node, names, row)
        self._check_inserted(node, row)
        raise _taken(node).error()

    # -- the complete write ----------------------------------------------------------------------

    def check(self, delta: Delta) -> None:
        """Raise `Denied` for the first change that the guard does not allow."""
        if self._trusted:
            return
        if self._lands:
            self._assign_differences(delta)
        for type_ in sorted(self._catalog.tables(), key=lambda one: isinstance(one, EdgeType)):
            if type_.table_key in delta.tables:
                self._check_table(type_, delta)

    def _check_table(self, type_: NodeType | EdgeType, delta: Delta) -> None:
        before, lost = self._old_images(type_, delta)
        rows = delta.tables[type_.table_key].rows
        is_update = pc.is_in(rows["id"], value_set=one_array(before["id"]))
        updated, inserted = rows.filter(is_update), rows.filter(pc.invert(is_update))
        self._check_inserted(type_, inserted)
        self._require("row_update", type_, before)
        self._require("row_update", type_, updated, "would be after the change")
        for name in self.guarded_properties(type_):
            self._require_property(type_, name, before)
            self._require_property(type_, name, updated)
        hidden = lost.filter(pa.array(~self.sees(type_, lost, _reader(delta))))
        if hidden.num_rows:
            raise self._hidden_loss(type_, hidden, delta)
        self._require("row_delete", type_, lost)

    def _old_images(self, type_: NodeType | EdgeType, delta: Delta) -> tuple[pa.Table, pa.Table]:
        """Return the committed rows that are updated and those that are deleted.

        A written row with the id of a hidden row is an insert; `taken` reports it.
        """
        table = delta.tables[type_.table_key]
        old = delta.replaced(type_.table_key, self._columns(type_, changes=True))
        if table.replaces:
            # All committed rows are deleted, and all written rows are inserted.
            return old.slice(0, 0), old
        if table.appends:
            return old.slice(0, 0), old.slice(0, 0)
        removed = pa.array(self._removed.get(type_.table_key, ()), pa.utf8())
        kept = without_ids(old, removed)
        stays = pc.is_in(kept["id"], value_set=one_array(table.rows["id"]))
        before = kept.filter(stays)
        seen = self.sees(type_, before, _reader(delta))
        if self._lands and not seen.all():
            raise self._hidden_change("row_update", type_, "changed")
        before = before.filter(pa.array(seen))
        return before, pa.concat_tables(
            [kept.filter(pc.invert(stays)), old.filter(pc.is_in(old["id"], value_set=removed))]
        )

    def _check_inserted(self, type_: NodeType | EdgeType, rows: pa.Table) -> None:
        self._require("row_insert", type_, rows)
        for name in self.guarded_properties(type_):
            self._require_property(type_, name, rows, is_new=True)

    def _require(self, action: RowAction, type_: NodeType | EdgeType, rows: pa.Table, image: str | None = None) -> None:
        key = type_.table_key
        if (action, key) not in self.guard.rows or not rows.num_rows:
            return
        allowed = self._holds(self.guard.rows[action, key], rows)
        if not allowed.all():
            row = self._row_name(type_, rows, int(np.argmin(allowed)), is_new=action == "row_insert")
            what = f"{row} as it {image}" if image else row
            raise _denied(action, what, self.guard.rules.get((action, key), ()))

    def _require_property(self, type_: NodeType | EdgeType, name: str, rows: pa.Table, *, is_new: bool = False) -> None:
        key = type_.table_key
        assigned = self._assigned[key, name]
        if not assigned or not rows.num_rows:
            return
        rows = rows.filter(pc.is_in(rows["id"], value_set=pa.array(assigned, pa.utf8())))
        allowed = self._holds(self.guard.properties[key, name], rows)
        if not allowed.all():
            row = self._row_name(type_, rows, int(np.argmin(allowed)), is_new=is_new)
            if self.hides(type_, name):
                # The rules of a hidden property are not named either.
                raise _denied("property_write", f"a property of {row}", ())
            raise _denied("property_write", f"'{name}' of {row}", self.guard.property_rules.get((key, name), ()))

    def _hidden_loss(self, type_: NodeType | EdgeType, hidden: pa.Table, delta: Delta) -> Denied:
        """Return the error for rows that are deleted and not visible: edges of a deleted node, or rows of a load."""
        if isinstance(type_, EdgeType):
            for column, node_type in (("src", type_.from_type), ("dst", type_.to_type)):
                gone = self._removed.get(TableKey.node(node_type), set())
                node_table = delta.tables.get(TableKey.node(node_type))
                ids = gone if node_table is None else gone.union(node_table.deleted.to_pylist())
                for id_ in hidden[column].to_pylist():
                    if id_ in ids:
                        reason = "the node has edges that you cannot read"
                        what = f"{node_type} '{id_}'"
                        message = f"'row_delete' of {what} is denied: {reason}; nothing was written"
                        return Denied(message, (reason,))
        return self._hidden_change("row_delete", type_, "deleted")

    def _hidden_change(self, action: RowAction, type_: NodeType | EdgeType, what: str) -> Denied:
        reason = f"rows that you cannot read would be {what}"
        of = f" of {type_.name}" if self.shows_type(type_) else ""
        return Denied(f"'{action}'{of} is denied: {reason}; nothing was written", (reason,))

    def shows_type(self, type_: NodeType | EdgeType) -> bool:
        """Return True if some row of a type can be visible."""
        keys = [type_.table_key]
        if isinstance(type_, EdgeType):
            keys += [TableKey.node(type_.from_type), TableKey.node(type_.to_type)]
        return all(self._seen.get(key, True) is not None for key in keys)

    def _assign_differences(self, delta: Delta) -> None:
        """Record the properties whose values differ from the committed row; in a new row, those with a value."""
        for type_ in self._catalog.tables():
            table, names = delta.tables.get(type_.table_key), self.guarded_properties(type_)
            if table is None or not names:
                continue
            ids = one_array(table.rows["id"])
            old = delta.committed.rows_among(type_.table_key, "id", ids, ["id", *names])
            place = pc.index_in(ids, value_set=one_array(old["id"]))
            for name in names:
                same = same_column(one_array(table.rows[name]), one_array(old[name]).take(place))
                self._assigned[type_.table_key, name] = set(ids.filter(pa.array(~same)).to_pylist())

    def _row_name(self, type_: NodeType | EdgeType, rows: pa.Table, place: int, *, is_new: bool) -> str:
        """Return how a message refers to a row. The caller wrote the row, unless it lands a write of others."""
        if self._lands and not self.sees(type_, rows.slice(place, 1)).all():
            return "a row that you cannot read"
        return _row_name(type_, rows, place, is_new=is_new)

    # -- violations ------------------------------------------------------------------------------

    def taken(self, delta: Delta) -> Iterator[Violation]:
        """Yield the written rows whose ids hidden rows have, also as aliases.

        Changes of others are denied or trusted instead.
        """
        if self._lands:
            return
        read = _reader(delta)
        for type_ in self._catalog.tables():
            table = delta.tables.get(type_.table_key)
            if table is None or table.replaces or not table.rows.num_rows:
                continue
            removed = pa.array(self._removed.get(type_.table_key, ()), pa.utf8())
            old = without_ids(read(type_.table_key, one_array(table.rows["id"]), self._columns(type_), "id"), removed)
            hidden = one_array(old.filter(pa.array(~self.sees(type_, old, read)))["id"])
            if type_.table_key in self._taken:
                hidden = pa.concat_arrays([hidden, pa.array(sorted(self._taken[type_.table_key]), pa.utf8())])
            if len(hidden):
                places = pc.indices_nonzero(pc.is_in(table.rows["id"], value_set=hidden))
                yield from (replace(_taken(type_), position=place) for place in places.to_pylist())

    def visible_ends(self, delta: Delta, node: NodeType, ends: pa.Array) -> pa.Array:
        """Return the ids or keys of committed nodes that are visible; all of them if the changes are trusted."""
        if self._trusted:
            return ends
        return self._visible_nodes(node, ends, _reader(delta))

    def conceals(
        self,
        delta: Delta,
        type_: NodeType | EdgeType,
        rows: pa.Table,
        columns: Sequence[str],
        other: str | None = None,
    ) -> bool:
        """Return True if a violation may not name written rows and their values, or the committed row `other`.

        The values are those of `columns`. They are concealed if they are not visible in one of the rows.
        """
        read = _reader(delta)
        if self._lands and not self.sees(type_, rows, read).all():
            return True
        images = [rows]
        if other is not None:
            images.append(read(type_.table_key, pa.array([other], pa.utf8()), self._columns(type_), "id"))
            if not self.sees(type_, images[1], read).all():
                return True
        shown = self._shown.get(type_.table_key, {})
        return any(not self._holds(shown[name], image).all() for image in images for name in columns if name in shown)

    def hides_edges(self, delta: Delta, edge: EdgeType, source: str) -> bool:
        """Return True if a node has unchanged outgoing edges of a type that are not visible, or only hidden periods."""
        node, sources = self._catalog.nodes[edge.from_type], pa.array([source], pa.utf8())
        if self._lands and not len(self._visible_nodes(node, sources, _reader(delta))):
            return True
        if node.has_periods and not self._keeps_period(delta, node, source):
            return True
        rows = delta.surviving(edge.table_key, self._columns(edge), "src", sources)
        return not self.sees(edge, rows, _reader(delta)).all()

    def _keeps_period(self, delta: Delta, node: NodeType, key: str) -> bool:
        """Return True if a visible period of a key remains after the write."""
        column, columns = node.end_column, self._columns(node)
        names = list(dict.fromkeys([*columns, column]))
        stored = delta.surviving(node.table_key, names, column, pa.array([key], pa.utf8()))
        if self.sees(node, stored).any():
            return True
        if node.table_key not in delta.tables:
            return False
        written = delta.tables[node.table_key].rows
        return bool(self.sees(node, written.filter(pc.equal(written[column], key)).select(names)).any())

    def visible_edges(self, delta: Delta, edge: EdgeType, ids: pa.Array) -> pa.Array:
        """Return the ids of committed edges that are visible."""
        read = _reader(delta)
        rows = read(edge.table_key, ids, self._columns(edge), "id")
        return one_array(rows.filter(pa.array(self.sees(edge, rows, read)))["id"])

    # -- conditions ------------------------------------------------------------------------------

    def _holds(self, condition: ir.Condition | None, rows: pa.Table) -> Mask:
        if condition is None or not rows.num_rows:
            return np.zeros(rows.num_rows, bool)
        return _evaluator.mask(condition, bindings_of(rows))

    def _visible_nodes(self, node: NodeType, ends: pa.Array, read: ReadRows) -> pa.Array:
        """Return the ends at which a visible node is; one visible period shows a key."""
        key, column = node.table_key, node.end_column
        if key not in self._seen:
            return ends
        condition = self._seen[key]
        rows = read(key, ends, list(dict.fromkeys(["id", column, *_columns_of(condition)])), column)
        return one_array(pc.unique(rows.filter(pa.array(self._holds(condition, rows)))[column]))

    def _read_pending(self, key: str, values: pa.Array, columns: Sequence[str], column: str) -> pa.Table:
        table = self._overlay.table(key)
        return table.with_ids(values if column == "id" else table.ids_with([column], values), columns)

    def checked_columns(self, type_: NodeType | EdgeType) -> list[str]:
        """Return the columns of written rows that the check reads."""
        return list(dict.fromkeys([*self._columns(type_, changes=True), *self.guarded_properties(type_)]))

    def _columns(self, type_: NodeType | EdgeType, *, changes: bool = False) -> list[str]:
        """Return the columns that decide what is visible of a row or, with `changes`, also what may be changed."""
        key = type_.table_key
        conditions = [self._seen.get(key), *self._shown.get(key, {}).values()]
        if changes:
            conditions += [self.guard.rows.get((action, key)) for action in ROW_CHANGES]
            conditions += [self.guard.properties[key, name] for name in self.guarded_properties(type_)]
        ends = ("src", "dst") if isinstance(type_, EdgeType) else ()
        return list(dict.fromkeys(["id", *ends, *(name for one in conditions for name in _columns_of(one))]))


def without_ids(rows: pa.Table, ids: pa.Array) -> pa.Table:
    """Return the rows whose id is none of the ids."""
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=ids)))


def _reader(delta: Delta) -> ReadRows:
    return lambda key, values, columns, column: delta.committed.rows_among(key, column, values, columns)


def _columns_of(condition: ir.Condition | None) -> list[str]:
    parts: Iterable[ir.Expr] = () if condition is None else ir.walk(condition)
    return list(dict.fromkeys(part.name for part in parts if isinstance(part, ir.Prop)))


def _taken(type_: NodeType | EdgeType) -> Violation:
    """Return the violation of a row with an id that a hidden row has."""
    key = type_.key if isinstance(type_, NodeType) and type_.key else ("id",)
    return Violation("unique", type_.table_key, "", f"@unique violation on {type_.name}.{', '.join(key)}", key[0])


def _row_name(type_: NodeType | EdgeType, rows: pa.Table, place: int, *, is_new: bool) -> str:
    """Return how a message refers to a row. The generated id of a new row is never stored."""
    row: Mapping[str, str] = {
        name: rows[name][place].as_py() for name in ("id", "src", "dst") if name in rows.schema.names
    }
    if isinstance(type_, EdgeType):
        ends = f"'{row['src']}' → '{row['dst']}'"
        return f"a new edge {type_.name} {ends}" if is_new else f"edge {type_.name} '{row['id']}'"
    return f"a new {type_.name}" if is_new and not type_.key else f"{type_.name} '{row['id']}'"


def _denied(action: str, what: str, rules: tuple[str, ...]) -> Denied:
    named = f" by {', '.join(repr(rule) for rule in rules)}" if rules else ""
    message = f"'{action}' of {what} is denied{named}; nothing was written"
    return Denied(message, (f"no rule allows '{action}' of this row, or a rule denies it",), rules=rules)
