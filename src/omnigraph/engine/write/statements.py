"""Runs the statements of a mutation on a snapshot, in memory.

Statements run in order and see the changes of earlier ones. Nothing is written: the result is a `WriteOverlay`, which
the integrity rules check and a transaction stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine.exec.binding_table import BindingTable
from omnigraph.engine.ingest.row_builder import row_id
from omnigraph.engine.write.fill_vectors import Embedder, fill_vectors
from omnigraph.engine.write.node_aliases import NodeAliases, alias_conflict
from omnigraph.engine.write.overlay import WriteOverlay
from omnigraph.engine.write.returned_rows import returned_rows
from omnigraph.engine.write.unify import NodeUnion, UnifyReport, UnifyRules, unify_groups
from omnigraph.engine.write.where import bindings_of, row_evaluator, select
from omnigraph.errors import InputError, KeyConflict, ValueFormatError
from omnigraph.query.plan import ir
from omnigraph.scalar_types.columns import holds_values_of, stored_values
from omnigraph.scalar_types.readers import read_blob
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.types import PropertyType
from omnigraph.values import Fetch, managed_blob, read_json

if TYPE_CHECKING:
    from omnigraph.engine.write.row_guard import GuardedWrite

_ID = PropertyType("String")
_IDS = PropertyType("String", is_list=True)


@dataclass
class MutationCounts:
    """The numbers of nodes and edges that the statements changed."""

    nodes: int = 0
    edges: int = 0


@dataclass(frozen=True)
class MutationServices:
    """The clock, id generator, embedder and blob reader that a mutation uses."""

    now_ms: int
    new_id: Callable[[], str]
    embedder: Embedder | None = None
    fetch: Fetch | None = None


class MutationRun:
    """One execution of a mutation on a snapshot, and on the changes that the overlay lies on."""

    def __init__(
        self,
        plan: ir.MutationIR,
        catalog: Catalog,
        overlay: WriteOverlay,
        params: Mapping[str, Any],
        services: MutationServices,
        guard: GuardedWrite | None = None,
    ) -> None:
        self.plan = plan
        self.catalog = catalog
        self.overlay = overlay
        self.counts = MutationCounts()
        self.named: dict[str, pa.Table] = {}
        """The rows of the named statements, after each statement."""
        self._guard = guard
        self._shown = self.named if guard is None else {}
        """What is visible of the rows of the named statements, after each statement."""
        self._params = {**params, ir.NOW: services.now_ms}
        self._evaluator = row_evaluator(catalog, self._params)
        self._strict = row_evaluator(catalog, self._params, strict=True)
        self._new_id = services.new_id
        self._embedder = services.embedder
        self._fetch = services.fetch
        self.aliases = NodeAliases(overlay.snapshot)
        self.unified = UnifyReport()

    def run(self) -> WriteOverlay:
        """Run all statements."""
        for op in self.plan.ops:
            rows = self._run(op)
            if op.name is not None:
                self.named[op.name] = rows
                if self._guard is not None:
                    self._shown[op.name] = self._guard.returned(self._type(op.type_name), rows)
        return self.overlay

    def returned(self, catalog: Catalog | None = None) -> pa.Table:
        """Return the rows of the `return` clause; `catalog` is the one that the actor sees, if it is another one."""
        return returned_rows(self.plan, self._shown, catalog or self.catalog, self._params)

    def _type(self, name: str) -> NodeType | EdgeType:
        return self.catalog.nodes[name] if name in self.catalog.nodes else self.catalog.edges[name]

    def _run(self, op: ir.MutationOp) -> pa.Table:
        """Run one statement and return the rows it changed.

        Of deleted rows only the ids are returned, unless the statement is named.
        """
        match op:
            case ir.InsertNode():
                return self._insert_node(op)
            case ir.InsertEdge():
                return self._insert_edge(op)
            case ir.UpdateNodes() | ir.UpdateEdges():
                return self._update(op)
            case ir.UpsertNode():
                return self._upsert(op)
            case ir.DeleteNodes():
                return self._delete_nodes(op)
            case ir.DeleteEdges():
                return self._delete_edges(op)
            case ir.UnifyNodes():
                return self._unify(op)
            case _:
                assert_never(op)

    # -- inserts ---------------------------------------------------------------------------------

    def _insert_node(self, op: ir.InsertNode) -> pa.Table:
        node = self.catalog.nodes[op.type_name]
        row = self._row(node, op.values)
        row["id"] = self._key_id(node, row) if node.key else self._new_id()
        names = [name for name, _ in op.values]
        if node.key and (kept := self.aliases.find(node, row["id"])) is not None:
            if self._guard is not None and not self._is_visible(node, kept):
                self._guard.refuse_taken(node, self._table(node, row), names)
            raise alias_conflict(node, row["id"], kept)
        if node.key and self._by_id(node, row["id"], ["id"]).num_rows:
            if self._guard is not None and not self._is_visible(node, row["id"]):
                self._guard.refuse_taken(node, self._table(node, row), names)
            raise _key_conflict(node, row["id"])
        return self._put_new(node, row, names)

    def _is_visible(self, node: NodeType, id_: str) -> bool:
        """Return True if the actor sees a node."""
        return self._guard is None or bool(self._guard.sees(node, self._by_id(node, id_)).all())

    def _current_id(self, node: NodeType, id_: str) -> str:
        """Return the id of the node that an id or an alias denotes; an alias of a hidden node is none."""
        kept = self.aliases.find(node, id_)
        return id_ if kept is None or not self._is_visible(node, kept) else kept

    def _put_new(self, node: NodeType, row: Mapping[str, Any], names: Iterable[str]) -> pa.Table:
        """Insert a node whose id no row has; the statement assigned the properties `names`."""
        rows, _, _ = fill_vectors(node, self._table(node, row), self._embedder)
        self._required(node, rows)
        self.overlay.table(node.table_key).put(rows, fresh=True)
        if self._guard is not None:
            self._guard.assigned(node, names, rows)
        self.counts.nodes += 1
        return rows

    def _by_id(self, node: NodeType, id_: str, columns: list[str] | None = None) -> pa.Table:
        """Return the visible node with this id, if any."""
        return self.overlay.table(node.table_key).by_id(id_, columns)

    def _key_id(self, node: NodeType, row: Mapping[str, Any]) -> str:
        """Return the id that the key of a row gives."""
        for column in node.key:
            if row[column] is None:
                raise InputError(f"the key '{node.name}.{column}' cannot be null", code="null_key")
        return row_id(node, [row[column] for column in node.identity])

    def _insert_edge(self, op: ir.InsertEdge) -> pa.Table:
        edge = self.catalog.edges[op.type_name]
        row = self._row(edge, op.values)
        for end, expr in (("src", op.source), ("dst", op.target)):
            if isinstance(expr, ir.Prop):
                row[end] = self.named[expr.var][expr.name][0].as_py()
            else:
                what = f"'{edge.name}.{'from' if end == 'src' else 'to'}'"
                row[end] = self._value(expr, _ID, what)
                if row[end] is None:
                    raise InputError(f"{what}: null, but {_ID} is required", code="bad_value")
            row[end] = self._current_id(self.catalog.nodes[edge.from_type if end == "src" else edge.to_type], row[end])
        row["id"] = self._new_id()
        rows = self._table(edge, row)
        self._required(edge, rows)
        self.overlay.table(edge.table_key).put(rows, fresh=True)
        if self._guard is not None:
            self._guard.assigned(edge, [name for name, _ in op.values], rows)
        self.counts.edges += 1
        return rows

    def _row(self, type_: NodeType | EdgeType, values: tuple[tuple[str, ir.Expr], ...]) -> dict[str, Any]:
        row: dict[str, Any] = dict.fromkeys(type_.properties)
        for name, expr in values:
            row[name] = self._value(expr, type_.properties[name].type, f"'{type_.name}.{name}'")
        return row

    def _table(self, type_: NodeType | EdgeType, row: Mapping[str, Any]) -> pa.Table:
        """Return a table of one row; required values may be null until `_required` tests them."""
        schema = self.overlay.table(type_.table_key).schema
        return pa.Table.from_arrays([pa.array([row[field.name]], field.type) for field in schema], schema=schema)

    def _required(self, type_: NodeType | EdgeType, rows: pa.Table) -> None:
        for property_ in type_.properties.values():
            if not property_.type.nullable and rows[property_.name].null_count:
                if self._guard is not None and self._guard.hides(type_, property_.name):
                    raise InputError(
                        f"'{type_.name}' requires a property that you cannot read", code="required_property"
                    )
                raise InputError(
                    f"'{type_.name}.{property_.name}' ({property_.type}) is required and cannot be null",
                    code="required_property",
                )

    # -- updates and deletes ---------------------------------------------------------------------

    def _update(self, op: ir.UpdateNodes | ir.UpdateEdges) -> pa.Table:
        types = self.catalog.nodes if isinstance(op, ir.UpdateNodes) else self.catalog.edges
        type_ = types[op.type_name]
        rows = self._matching(type_, op.where)
        if not rows.num_rows:
            return rows
        return self._set(type_, rows, op.values) if op.valid_from is None else self._begin(type_, rows, op)

    def _begin(self, type_: NodeType | EdgeType, rows: pa.Table, op: ir.UpdateNodes | ir.UpdateEdges) -> pa.Table:
        """End the periods of rows at an instant and begin new ones, with the assigned values; return the new rows.

        A row that begins at the instant keeps its period: it would be empty.
        """
        valid = type_.valid
        assert valid is not None
        assert op.valid_from is not None
        kind = type_.properties[valid.start].type.with_nullable(False)
        at = self._value(op.valid_from, kind, f"the instant of '{type_.name}'")
        begins = pc.fill_null(pc.equal(rows[valid.start], pa.scalar(at, arrow_type(kind))), False)
        kept, ended = rows.filter(begins), rows.filter(pc.invert(begins))
        new = _with_constant(ended, valid.start, at, kind)
        if isinstance(type_, NodeType):
            keys = zip(*(stored_values(new[name]) for name in type_.identity), strict=True)
            ids = [row_id(type_, values) for values in keys]
        else:
            ids = [self._new_id() for _ in range(new.num_rows)]
        new = _with_column(new, "id", pa.array(ids, pa.utf8()))
        if ended.num_rows:
            self._set(type_, ended, ((valid.end, ir.Const(at, kind)),))
        return self._set(type_, pa.concat_tables([kept, new], promote_options="permissive"), op.values)

    def _upsert(self, op: ir.UpsertNode) -> pa.Table:
        node = self.catalog.nodes[op.type_name]
        given = self._key_id(node, self._row(node, op.key))
        id_ = self.aliases.resolve(node, given)
        rows = self._by_id(node, id_)
        names = [name for name, _ in (*op.key, *op.new)]
        if not rows.num_rows:
            return self._put_new(node, {**self._row(node, (*op.key, *op.new)), "id": id_}, names)
        if self._guard is not None and not self._guard.sees(node, rows).all():
            row = self._table(node, {**self._row(node, (*op.key, *op.new)), "id": given})
            self._guard.refuse_taken(node, row, names)
        return self._set(node, rows, op.existing) if op.existing else rows

    def _set(self, type_: NodeType | EdgeType, rows: pa.Table, values: tuple[tuple[str, ir.Expr], ...]) -> pa.Table:
        """Assign properties of rows; values are computed from the rows as they were before the statement."""
        assigned = {name for name, _ in values}
        rows = rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))
        before = bindings_of(rows if self._guard is None else self._guard.masked(type_, rows))
        for name, expr in values:
            wanted, what = type_.properties[name].type, f"'{type_.name}.{name}'"
            if isinstance(expr, ir.Const | ir.ParamRef):
                rows = _with_constant(rows, name, self._value(expr, wanted, what), wanted)
            else:
                rows = _with_column(rows, name, stored_column(self._strict.value(expr, before), wanted, what))
        if isinstance(type_, NodeType):
            rows = self._reembedded(type_, rows, assigned)
            self.counts.nodes += rows.num_rows
        else:
            self.counts.edges += rows.num_rows
        self._required(type_, rows)
        self.overlay.table(type_.table_key).put(rows)
        if self._guard is not None:
            self._guard.assigned(type_, assigned, rows)
        return rows

    def _reembedded(self, node: NodeType, rows: pa.Table, assigned: set[str]) -> pa.Table:
        """Recompute the vectors whose source text was assigned, unless the vector was assigned too."""
        stale = [target for target, embed in node.embeds.items() if embed.source in assigned and target not in assigned]
        for target in stale:
            rows = _with_constant(rows, target, None, node.properties[target].type)
        rows, _, _ = fill_vectors(node, rows, self._embedder, targets=stale)
        return rows

    def _deleted(self, type_: NodeType | EdgeType, op: ir.DeleteNodes | ir.DeleteEdges) -> pa.Table:
        """Return the rows that a statement deletes: ids, and for a named statement all properties except Blobs."""
        whole = [name for name in type_.properties if type_.properties[name].type.scalar != "Blob"]
        columns = ["id", *(whole if op.name is not None else ())]
        if self._guard is not None and op.name is not None:
            columns = self._guard.needed(type_, columns)
        return self._matching(type_, op.where, columns)

    def _matching(self, type_: NodeType | EdgeType, where: ir.Condition, columns: list[str] | None = None) -> pa.Table:
        """Return the rows that satisfy the condition of a statement, with all or some columns."""
        if self._guard is not None:
            return self._guard.matching(type_, where, self._evaluator, columns)
        selection = select(where, self._evaluator, type_.identity if isinstance(type_, NodeType) else ())
        return self.overlay.table(type_.table_key).matching(selection, columns)

    def _record_removed(self, type_: NodeType | EdgeType, ids: pa.Array) -> None:
        if self._guard is not None:
            self._guard.removed(type_, ids)

    def _delete_nodes(self, op: ir.DeleteNodes) -> pa.Table:
        node = self.catalog.nodes[op.type_name]
        table = self.overlay.table(node.table_key)
        rows = self._deleted(node, op)
        ids = _ids(rows)
        keys = pc.unique(table.with_ids(ids, [node.end_column])[node.end_column]) if node.has_periods else ids
        self.counts.nodes += table.delete(ids)
        self.aliases.deleted(node, ids)
        self._record_removed(node, ids)
        lost_ends = one_array(keys)
        if node.has_periods:
            columns = ["id", node.end_column]
            if self._guard is not None:
                columns = self._guard.needed(node, columns)
            left = table.with_ids(table.ids_with([node.end_column], lost_ends), columns)
            if self._guard is not None:
                # Hidden periods do not decide about edges.
                left = left.filter(pa.array(self._guard.sees(node, left)))
            kept_ends = one_array(left[node.end_column])
            lost_ends = lost_ends.filter(pc.invert(pc.is_in(lost_ends, value_set=kept_ends)))
        for edge in self.catalog.edges_touching[op.type_name]:
            edges = self.overlay.table(edge.table_key)
            ends = [end for end, type_ in (("src", edge.from_type), ("dst", edge.to_type)) if type_ == op.type_name]
            lost = edges.ids_with(ends, lost_ends)
            self.counts.edges += edges.delete(lost)
            self._record_removed(edge, lost)
        return rows

    def _delete_edges(self, op: ir.DeleteEdges) -> pa.Table:
        edge = self.catalog.edges[op.type_name]
        rows = self._deleted(edge, op)
        self.counts.edges += self.overlay.table(edge.table_key).delete(_ids(rows))
        self._record_removed(edge, _ids(rows))
        return rows

    # -- unify -----------------------------------------------------------------------------------

    def _unify(self, op: ir.UnifyNodes) -> pa.Table:
        """Unify nodes and return the kept ones."""
        node = self.catalog.nodes[op.type_name]
        drops, keeps = self._unified_ids(op.drop, node), self._unified_ids(op.keep, node)
        if len(drops) != len(keeps):
            message = f"'unify {node.name}' has {len(drops)} dropped and {len(keeps)} kept ids"
            raise InputError(message, code="bad_value", hint="give one kept id for each dropped id")
        groups = unify_groups(zip(drops, keeps, strict=True), partial(self._current_id, node), node.name)
        rules = UnifyRules(
            {name: rule for name, rule in op.rules if isinstance(rule, str)},
            {name: self._constant(node, name, rule) for name, rule in op.rules if not isinstance(rule, str)},
            dict(op.edges),
        )
        union = NodeUnion(self.catalog, node, self.overlay, groups, rules, self._guard)
        table = self.overlay.table(node.table_key)
        if not groups:
            return table.schema.empty_table()
        rows, changed = union.rows()
        rows = self._reembedded(node, rows, changed)
        self._required(node, rows)
        edges = union.edges()
        if changed:
            table.put(rows)
            if self._guard is not None:
                self._guard.assigned(node, changed, rows)
        dropped = pa.array(union.merged, pa.utf8())
        self.counts.nodes += len(groups) + table.delete(dropped)
        self._record_removed(node, dropped)
        for edge, moved, folded in edges:
            of_edge = self.overlay.table(edge.table_key)
            of_edge.put(moved)
            self.counts.edges += moved.num_rows + of_edge.delete(folded)
            self._record_removed(edge, folded)
        self.aliases.unified(node, union.merged)
        self.unified.add(union.report)
        return rows

    def _unified_ids(self, expr: ir.Expr, node: NodeType) -> list[str]:
        what = f"the id of a {node.name}"
        is_list = isinstance(expr.type, PropertyType) and expr.type.is_list
        value = self._value(expr, _IDS if is_list else _ID, what)
        values: list[str | None] = value if isinstance(value, list) else [value]
        if any(one is None for one in values):
            raise InputError(f"{what} cannot be null", code="bad_value")
        return [one for one in values if one is not None]

    def _constant(self, node: NodeType, name: str, expr: ir.Expr) -> pa.Array:
        type_ = node.properties[name].type
        return pa.array([self._value(expr, type_, f"'{node.name}.{name}'")], arrow_type(type_))

    # -- values ----------------------------------------------------------------------------------

    def _value(self, expr: ir.Expr, type_: PropertyType, what: str) -> Any:
        """Return an assigned value in its stored form."""
        if not isinstance(expr, ir.Const | ir.ParamRef):
            # An insert refers to no row, so its expressions are evaluated once.
            column = stored_column(self._strict.value(expr, BindingTable()), type_, what)
            return stored_values(column)[0]
        value = expr.value if isinstance(expr, ir.Const) else self._params[expr.name]
        try:
            if type_.scalar == "Blob" and value is not None:
                return managed_blob(read_blob(value) if isinstance(value, str) else value, self._fetch)
            return value if isinstance(expr, ir.Const) else read_json(value, type_)
        except ValueFormatError as error:
            raise InputError(f"{what}: {error.message}", code="bad_value", hint=error.hint) from None


def _key_conflict(node: NodeType, id_: str) -> KeyConflict:
    key = ", ".join(f"{column}: …" for column in node.identity)
    return KeyConflict(
        node.table_key,
        id_,
        f"{node.name} '{id_}' already exists; nothing was written",
        hint=f"to insert or change it, write 'upsert {node.name} {{ {key}, … }}'; "
        f"to change only existing rows, write 'update {node.name}'",
    )


def _with_constant(rows: pa.Table, name: str, value: Any, type_: PropertyType) -> pa.Table:
    column = pa.array([value], arrow_type(type_)).take(pa.array([0] * rows.num_rows, pa.int64()))
    return rows.set_column(rows.schema.get_field_index(name), pa.field(name, column.type), column)


def _with_column(rows: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), pa.field(name, column.type), column)


def stored_column(values: pa.Array, type_: PropertyType, what: str) -> pa.Array:
    """Convert computed values to the stored type.

    Raise `InputError` if a value is out of range, not finite or not in the enum.
    """
    wanted = arrow_type(type_)
    try:
        column = values.cast(wanted)
    except pa.ArrowInvalid as error:
        raise InputError(f"{what} ({type_}): {error}", code="bad_value") from None
    if type_.is_float and not pc.all(pc.is_finite(column.drop_null())).as_py() and len(column.drop_null()):
        raise InputError(f"{what} ({type_}): the number is too large", code="bad_value")
    if not type_.is_list and not holds_values_of(type_.kind, column):
        raise InputError(f"{what} ({type_}): the result is outside the years 1 to 9999", code="bad_value")
    if type_.enum_values is not None:
        unknown = column.drop_null().filter(pc.invert(pc.is_in(column.drop_null(), pa.array(type_.enum_values))))
        if len(unknown):
            raise InputError(f"{what}: '{unknown[0]}' is not a value of {type_}", code="bad_value")
    return column


def _ids(rows: pa.Table) -> pa.Array:
    return pc.unique(rows["id"]) if rows.num_rows else pa.array([], pa.utf8())
