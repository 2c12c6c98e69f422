"""The integrity rules of a graph, checked on Arrow columns, for every kind of write.

Rules examine a write (`Delta`) and only those committed rows that the write can affect. They are built from a catalog
(`rules_of`) and are independent of statements, files and jobs: a mutation, a load, a merge and a bulk load run the same
rules.

The order is fixed: values (`@range`, `@check`, enum) of nodes, then of edges; uniqueness of nodes; then for each edge
type uniqueness, endpoints, cardinality. Within a rule, rows are reported in the order of the write. `check_delta` stops
at the first violation; `violations` returns all.

A write with a guard is first checked by the guard. Then the nodes of edges are checked before all other rules, so that
a hidden node and a missing node have the same error. A violation that involves hidden rows or values names the rule
only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checked
from omnigraph.engine.write.delta import (
    MADE,
    Delta,
    IntegrityRule,
    RuleCheck,
    TableDelta,
    Violation,
    without,
)
from omnigraph.engine.write.key_tuples import column_type, selective_column, tuples_of, wanted_values
from omnigraph.engine.write.periods import empty_periods, overlap_rule
from omnigraph.scalar_types.columns import as_numbers
from omnigraph.scalar_types.floats import spell_float
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.constraints import Check, Range
from omnigraph.suggestions import listing
from omnigraph.types import PropertyType
from omnigraph.values import spell_key

_FEW_ROWS = 64


def rules_of(catalog: Catalog) -> list[IntegrityRule]:
    """Return all rules of a schema, in the order of checking."""
    rules: list[IntegrityRule] = []
    nodes, edges = catalog.nodes.values(), catalog.edges.values()
    rules += [_values_rule(node) for node in nodes]
    rules += [_values_rule(edge) for edge in edges]
    for node in nodes:
        if node.key:
            rules.append(_key_rule(node))
        if node.has_periods:
            rules.append(overlap_rule(node, node.key, "key"))
        rules += _unique_rules(node)
    for edge in edges:
        rules += _unique_rules(edge)
        rules.append(_endpoint_rule(edge, catalog))
        if edge.cardinality.min or edge.cardinality.max is not None:
            rules.append(_cardinality_rule(edge, catalog))
    return rules


def _unique_rules(type_: NodeType | EdgeType) -> list[IntegrityRule]:
    """Return the rules of `@unique`: with valid time, a tuple is unique at every instant."""
    if type_.valid is None:
        return [_unique_rule(type_, columns) for columns in type_.unique]
    return [overlap_rule(type_, columns, "unique") for columns in type_.unique]


_VALUE_RULES = ("range", "check", "enum")


class RuleSet:
    """The rules of a schema, built once, and the tables whose changes each rule examines."""

    def __init__(self, catalog: Catalog) -> None:
        self._rules = [
            (rule, frozenset(part.written for step in rule.steps for part in step)) for rule in rules_of(catalog)
        ]
        self._types: dict[str, NodeType | EdgeType] = {type_.table_key: type_ for type_ in catalog.tables()}
        self._guarded_rules = sorted(self._rules, key=lambda known: not known[0].is_endpoint)

    def violations(self, delta: Delta) -> Iterator[Violation]:
        """Yield all violations, in order. The guard is asked before the first one."""
        for found in self.by_rule(delta):
            yield from found

    def by_rule(self, delta: Delta) -> Iterator[Iterator[Violation]]:
        """Return for each rule an iterator of its violations. A guard raises `Denied` at once."""
        changed = delta.tables.keys()
        first: list[Iterator[Violation]] = []
        rules = self._rules
        if delta.guard is not None:
            delta.guard.check(delta)
            first, rules = [delta.guard.taken(delta)], self._guarded_rules
        return chain(first, (rule(delta) for rule, written in checked(rules) if not written.isdisjoint(changed)))

    def check(self, delta: Delta) -> None:
        """Raise the first violation."""
        for violation in self.violations(delta):
            raise self._with_row(violation, delta).error()

    def _with_row(self, violation: Violation, delta: Delta) -> Violation:
        """Return a violation by a value that names the row if the row is committed and its id is visible."""
        if violation.rule not in _VALUE_RULES or violation.property is None:
            return violation
        type_ = self._types[violation.table_key]
        if delta.guard is not None and violation.position is not None:
            row = delta.tables[violation.table_key].rows.slice(violation.position, 1)
            key = type_.identity if isinstance(type_, NodeType) else ()
            if delta.guard.conceals(delta, type_, row, (violation.property, *key)):
                return violation
        row_id = pa.array([violation.row_id], pa.utf8())
        if not delta.committed.rows_among(violation.table_key, "id", row_id, ["id"]).num_rows:
            return violation
        return replace(violation, message=f"{violation.message} (row '{_short(violation.row_id)}')")


def violations(catalog: Catalog, delta: Delta) -> Iterator[Violation]:
    """Yield all violations, in order."""
    yield from RuleSet(catalog).violations(delta)


def check_delta(catalog: Catalog, delta: Delta) -> None:
    """Raise the first violation."""
    RuleSet(catalog).check(delta)


# -- values ------------------------------------------------------------------------------------------


def _values_rule(type_: NodeType | EdgeType) -> IntegrityRule:
    enums = [p for p in type_.properties.values() if p.type.enum_values is not None]
    steps = (
        tuple(_row_check(type_, partial(_range, type_, range_)) for range_ in type_.ranges),
        tuple(_row_check(type_, partial(_check, type_, check)) for check in type_.checks),
        tuple(_row_check(type_, partial(_enum, type_, p.name, p.type)) for p in enums),
        (_row_check(type_, partial(empty_periods, type_)),) if type_.valid is not None else (),
    )
    return IntegrityRule(type_.table_key, tuple(step for step in steps if step))


def _row_check(type_: NodeType | EdgeType, look: Callable[[pa.Table], Iterator[Violation]]) -> RuleCheck:
    def check(delta: Delta) -> Iterator[Violation]:
        table = delta.tables.get(type_.table_key)
        if table is not None and table.rows.num_rows:
            found = look(table.rows)
            yield from found if delta.guard is None else (_concealed_value(type_, one, delta) for one in found)

    return RuleCheck(check, type_.table_key)


def _concealed_value(type_: NodeType | EdgeType, violation: Violation, delta: Delta) -> Violation:
    """Return a violation without the value if it is not visible."""
    assert delta.guard is not None
    assert violation.property is not None
    assert violation.position is not None
    row = delta.tables[type_.table_key].rows.slice(violation.position, 1)
    if not delta.guard.conceals(delta, type_, row, (violation.property,)):
        return violation
    rule = "invalid enum value for" if violation.rule == "enum" else f"@{violation.rule} violation on"
    return _concealed(violation, rule, type_, (violation.property,), delta)


def _concealed(
    violation: Violation, rule: str, type_: NodeType | EdgeType, columns: tuple[str, ...], delta: Delta
) -> Violation:
    """Return a violation that names the rule only."""
    assert delta.guard is not None
    named = None if delta.guard.hides(type_, columns[0]) else violation.property
    message = f"{rule} {_visible_place(type_, columns, delta)}"
    return replace(violation, message=message, property=named, other_id=None)


def _visible_place(type_: NodeType | EdgeType, columns: tuple[str, ...], delta: Delta) -> str:
    """Return how a message refers to columns: by their names, or by the type if one of them is hidden."""
    if delta.guard is not None and any(delta.guard.hides(type_, column) for column in columns):
        return type_.name
    where = columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
    return f"{type_.name}.{where}"


def _range(type_: NodeType | EdgeType, range_: Range, rows: pa.Table) -> Iterator[Violation]:
    column = rows[range_.column].cast(pa.float64(), safe=False)
    bad = pc.is_nan(column)
    if range_.low is not None:
        bad = pc.or_kleene(bad, pc.less(column, range_.low))
    if range_.high is not None:
        bad = pc.or_kleene(bad, pc.greater(column, range_.high))
    bounds = f"{_bound_text(range_.low)}..{_bound_text(range_.high)}"
    for position, id_, value in _bad_rows(rows, bad, range_.column):
        message = f"@range violation on {type_.name}.{range_.column}: {value} is not in {bounds}"
        yield Violation("range", type_.table_key, id_, message, range_.column, position=position)


def _check(type_: NodeType | EdgeType, check: Check, rows: pa.Table) -> Iterator[Violation]:
    bad = pc.invert(pc.match_substring_regex(rows[check.column], pattern=check.pattern))
    for position, id_, value in _bad_rows(rows, bad, check.column):
        message = (
            f"@check violation on {type_.name}.{check.column}: '{_short(value)}' does not match \"{check.pattern}\""
        )
        yield Violation("check", type_.table_key, id_, message, check.column, position=position)


def _enum(type_: NodeType | EdgeType, name: str, property_type: PropertyType, rows: pa.Table) -> Iterator[Violation]:
    allowed = property_type.enum_values or ()
    column = rows[name]
    bad = pc.and_(pc.is_valid(column), pc.invert(pc.is_in(column, value_set=pa.array(allowed, pa.utf8()))))
    for position, id_, value in _bad_rows(rows, bad, name):
        message = f"invalid enum value '{_short(value)}' for {type_.name}.{name}: allowed are {listing(allowed)}"
        yield Violation("enum", type_.table_key, id_, message, name, position=position)


def _bad_rows(rows: pa.Table, bad: pa.ChunkedArray, column: str) -> Iterator[tuple[int, str, Any]]:
    places = pc.indices_nonzero(pc.fill_null(bad, False))
    found = rows.select(["id", column]).take(places)
    yield from zip(places.to_pylist(), found["id"].to_pylist(), found[column].to_pylist(), strict=True)


# -- uniqueness --------------------------------------------------------------------------------------


def _key_rule(node: NodeType) -> IntegrityRule:
    """Two rows of one write must not have the same key. A committed key identifies the row to replace."""
    where = node.key[0] if len(node.key) == 1 else f"({', '.join(node.key)})"

    def check(delta: Delta) -> Iterator[Violation]:
        table = delta.tables.get(node.table_key)
        if table is None or table.rows.num_rows <= 1:
            return
        if pc.count_distinct(table.rows["id"]).as_py() == table.rows.num_rows:
            return
        for position, id_ in _repeats(table.rows["id"].to_pylist()):
            message = f"@unique violation on {node.name}.{where}: the key '{_short(id_)}' is written twice"
            yield Violation("unique", node.table_key, id_, message, node.key[0], id_, position)

    return IntegrityRule(node.table_key, ((RuleCheck(check, node.table_key, {node.table_key: ("id",)}),),))


def _repeats(values: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield every repeated value with its position."""
    seen: set[str] = set()
    for position, value in enumerate(values):
        if value in seen:
            yield position, value
        seen.add(value)


def _unique_rule(type_: NodeType | EdgeType, columns: tuple[str, ...]) -> IntegrityRule:
    """A tuple must be unique within the write and among the committed rows that remain."""
    types = [column_type(type_, column) for column in columns]

    def repeated(delta: Delta) -> Iterator[Violation]:
        table = delta.tables.get(type_.table_key)
        if table is None or table.rows.num_rows <= 1:
            return
        new = tuples_of(table.rows, columns)
        # Rows are examined only if Arrow finds a repetition.
        if pc.count_distinct(new["key"]).as_py() == new.num_rows:
            return
        seen: dict[str, tuple[str, int]] = {}
        for position, id_, key in zip(*(new[name].to_pylist() for name in ("position", "id", "key")), strict=True):
            other, first = seen.setdefault(key, (id_, position))
            if other != id_:
                found = _unique(type_, columns, types, table.rows, position, other, _name(type_, table.rows, first))
                yield found if delta.guard is None else _concealed_tuple(type_, columns, found, delta, first)

    def taken(delta: Delta) -> Iterator[Violation]:
        table = delta.tables.get(type_.table_key)
        if table is None or not table.rows.num_rows or table.replaces:
            return
        for position, other in _committed_collisions(type_, columns, table.rows, delta):
            found = _unique(type_, columns, types, table.rows, position, other, f"'{other}'")
            yield found if delta.guard is None else _concealed_tuple(type_, columns, found, delta)

    key = type_.table_key
    by: dict[str, tuple[str, ...]] = {key: columns}
    return IntegrityRule(key, ((RuleCheck(repeated, key, by),), (RuleCheck(taken, key, by, frozenset({key})),)))


def _concealed_tuple(
    type_: NodeType | EdgeType, columns: tuple[str, ...], violation: Violation, delta: Delta, first: int | None = None
) -> Violation:
    """Return a violation without ids and values if one of the rows or values is not visible.

    The other row is at the position `first` of the write, or committed.
    """
    assert delta.guard is not None
    assert violation.position is not None
    rows = delta.tables[type_.table_key].rows.take([violation.position, *(() if first is None else (first,))])
    other = violation.other_id if first is None else None
    if not delta.guard.conceals(delta, type_, rows, columns, other):
        return violation
    return _concealed(violation, "@unique violation on", type_, columns, delta)


def _committed_collisions(
    type_: NodeType | EdgeType, columns: tuple[str, ...], rows: pa.Table, delta: Delta
) -> Iterator[tuple[int, str]]:
    """Yield pairs (written row, committed id) with equal tuples, without rows that the write replaces or deletes."""
    first = selective_column(type_, columns)
    stored = delta.surviving(type_.table_key, ["id", *columns], first, wanted_values(rows[first]))
    new, old = tuples_of(rows, columns), tuples_of(stored, columns)
    place = pc.index_in(new["key"], value_set=one_array(old["key"]))
    hits = pc.indices_nonzero(pc.is_valid(place))
    for position, where in zip(new["position"].take(hits).to_pylist(), place.take(hits).to_pylist(), strict=True):
        yield position, old["id"][where].as_py()


def _unique(
    type_: NodeType | EdgeType,
    columns: tuple[str, ...],
    types: list[PropertyType],
    rows: pa.Table,
    position: int,
    other: str,
    other_name: str,
) -> Violation:
    row = rows.slice(position, 1)
    id_ = row["id"][0].as_py()
    values = [spell_key(_stored(row[column][0]), type_) for column, type_ in zip(columns, types, strict=True)]
    where = columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
    value = values[0] if len(values) == 1 else f"({', '.join(values)})"
    holders = f"{other_name} and {_name(type_, rows, position)}"
    message = f"@unique violation on {type_.name}.{where}: value '{_short(value)}' is held by {holders}"
    return Violation("unique", type_.table_key, id_, message, columns[0], other, position)


def _name(type_: NodeType | EdgeType, rows: pa.Table, position: int) -> str:
    """Return how a message refers to a written row: by its id, or by its ends.

    The ends are used if the id was generated, because it may never be stored.
    """
    row = rows.slice(position, 1)
    if MADE not in rows.column_names or not row[MADE][0].as_py():
        return f"'{row['id'][0].as_py()}'"
    if isinstance(type_, NodeType):
        return "a node without an id"
    return f"the edge '{_short(row['src'][0].as_py())}' → '{_short(row['dst'][0].as_py())}'"


# -- edges -------------------------------------------------------------------------------------------


def _endpoint_rule(edge: EdgeType, catalog: Catalog) -> IntegrityRule:
    """New edges must end at nodes that exist after the write, and committed edges that remain must keep their nodes."""
    key = edge.table_key
    missing: list[RuleCheck] = []
    orphans: list[tuple[RuleCheck]] = []
    for column, node_type in (("src", edge.from_type), ("dst", edge.to_type)):
        node = catalog.nodes[node_type]
        nodes = node.table_key
        by: dict[str, tuple[str, ...]] = {key: (column,), nodes: (node.end_column,)}
        end = (edge, column, node)
        missing.append(RuleCheck(partial(_missing_nodes, *end), key, by, frozenset({nodes})))
        orphans.append((RuleCheck(partial(_orphans, *end), nodes, by, frozenset({key}), on_loss=True),))
    return IntegrityRule(key, (tuple(missing), *orphans), is_endpoint=True)


def _missing_nodes(edge: EdgeType, column: str, node: NodeType, delta: Delta) -> Iterator[Violation]:
    table, nodes = delta.tables.get(edge.table_key), delta.tables.get(node.table_key)
    if table is None or not table.rows.num_rows:
        return
    few = table.rows.num_rows <= _FEW_ROWS and (nodes is None or nodes.rows.num_rows <= _FEW_ROWS)
    wanted = (_few_absent if few else _absent)(table.rows[column], nodes, node, delta)
    if not len(wanted):
        return
    for position, id_, lost in _bad_rows(table.rows, pc.is_in(table.rows[column], value_set=wanted), column):
        message = f"edge {edge.name}: {column} '{_short(lost)}' not found in {node.name}"
        yield Violation("endpoint", edge.table_key, id_, message, column, position=position)


def _absent(ends: pa.ChunkedArray, nodes: TableDelta | None, node: NodeType, delta: Delta) -> pa.Array:
    """Return the ends of edges that do not exist after the write."""
    wanted = one_array(pc.unique(ends))
    if nodes is not None:
        wanted = wanted.filter(pc.invert(pc.is_in(wanted, value_set=one_array(nodes.rows[node.end_column]))))
    if len(wanted) and not (nodes is not None and nodes.replaces):
        found = delta.ends_among(node, wanted)
        wanted = wanted.filter(pc.invert(pc.is_in(wanted, value_set=one_array(found))))
    return wanted


def _few_absent(ends: pa.ChunkedArray, nodes: TableDelta | None, node: NodeType, delta: Delta) -> pa.Array:
    """Return what `_absent` returns. For a few rows, Python takes a fraction of the time of Arrow."""
    wanted = dict.fromkeys(ends.to_pylist())
    for id_ in nodes.rows[node.end_column].to_pylist() if nodes is not None else ():
        wanted.pop(id_, None)
    if wanted and not (nodes is not None and nodes.replaces):
        values = pa.array(wanted, pa.utf8())
        for id_ in delta.ends_among(node, values).to_pylist():
            wanted.pop(id_, None)
    return pa.array(wanted, pa.utf8())


def _orphans(edge: EdgeType, column: str, node: NodeType, delta: Delta) -> Iterator[Violation]:
    table, nodes = delta.tables.get(edge.table_key), delta.tables.get(node.table_key)
    if nodes is None or delta.cascaded or (table is not None and table.replaces):
        return
    if nodes.replaces:
        edges = without(delta.surviving(edge.table_key, ["id", column]), column, one_array(nodes.rows[node.end_column]))
    elif len(nodes.deleted):
        edges = delta.surviving(edge.table_key, ["id", column], column, delta.lost_ends(node))
    else:
        return
    if delta.guard is not None:
        seen = pc.is_in(edges["id"], value_set=delta.guard.visible_edges(delta, edge, one_array(edges["id"])))
        if not pc.all(seen, min_count=0).as_py():
            message = f"a node of {node.name} is removed, but edges that you cannot read still end at it"
            yield Violation("orphan", edge.table_key, "", message)
        edges = edges.filter(seen)
    for id_, lost in zip(edges["id"].to_pylist(), edges[column].to_pylist(), strict=True):
        message = (
            f"edge {edge.name}: {column} '{_short(lost)}' not found in {node.name}: "
            f"it is removed, but edge '{id_}' still points at it"
        )
        yield Violation("orphan", edge.table_key, id_, message, column)


def _cardinality_rule(edge: EdgeType, catalog: Catalog) -> IntegrityRule:
    source_type = catalog.nodes[edge.from_type]
    low, high = edge.cardinality.min, edge.cardinality.max

    def check(delta: Delta) -> Iterator[Violation]:
        table = delta.tables.get(edge.table_key)
        if table is None:
            return
        touched, counts = _edges_per_source(edge, source_type, table, delta)
        wrong = pc.less(counts, low) if high is None else pc.or_(pc.less(counts, low), pc.greater(counts, high))
        sources = touched.filter(wrong)
        places = _positions_of(table.rows["src"], sources)
        for source, count in zip(sources.to_pylist(), counts.filter(wrong).to_pylist(), strict=True):
            if high is not None and count > high:
                bound, surplus = f"max {high}", places[source][high - count :]
            else:
                bound, surplus = f"min {low}", places[source]
            message = f"@card violation on edge {edge.name}: source '{_short(source)}' has {count} edges ({bound})"
            if delta.guard is not None and delta.guard.hides_edges(delta, edge, source):
                message = f"@card violation on edge {edge.name} ({bound})"
            yield Violation("cardinality", edge.table_key, source, message, surplus=tuple(surplus))

    key = edge.table_key
    by: dict[str, tuple[str, ...]] = {key: ("src",), source_type.table_key: (source_type.end_column,)}
    lost = frozenset({key}) if low else frozenset[str]()
    return IntegrityRule(key, ((RuleCheck(check, key, by, frozenset({key}), lost),),))


def _positions_of(column: pa.ChunkedArray, values: pa.Array) -> dict[str, list[int]]:
    """Return the positions of each value in a column."""
    found: dict[str, list[int]] = {value: [] for value in values.to_pylist()}
    places = pc.indices_nonzero(pc.is_in(column, value_set=values)) if found else pa.array([], pa.uint64())
    for place, value in zip(places.to_pylist(), column.take(places).to_pylist(), strict=True):
        found[value].append(place)
    return found


def _edges_per_source(edge: EdgeType, node: NodeType, table: TableDelta, delta: Delta) -> tuple[pa.Array, pa.Array]:
    """Return the sources that the write affects and that remain, and the number of edges of each after the write."""
    sources = table.rows["src"]
    # Losing edges can violate the minimum, never the maximum.
    lost = delta.replaced(edge.table_key, ["src"])["src"].chunks if edge.cardinality.min else []
    touched = one_array(pc.unique(pa.chunked_array([*sources.chunks, *lost], pa.utf8())))
    nodes = delta.tables.get(node.table_key)
    if nodes is not None and nodes.replaces:
        touched = touched.filter(pc.is_in(touched, value_set=one_array(nodes.rows[node.end_column])))
    elif nodes is not None and len(nodes.deleted):
        touched = touched.filter(pc.invert(pc.is_in(touched, value_set=delta.lost_ends(node))))
    kept = [] if table.replaces else delta.surviving(edge.table_key, ["src"], "src", touched)["src"].chunks
    tally = pc.value_counts(pa.chunked_array([*sources.chunks, *kept], pa.utf8()))
    counts = tally.field("counts").take(pc.index_in(touched, value_set=tally.field("values")))
    return touched, pc.fill_null(counts, 0)


# -- helpers -----------------------------------------------------------------------------------------


def _stored(scalar: pa.Scalar) -> Any:
    return as_numbers(scalar).as_py()


def _bound_text(bound: float | None) -> str:
    return "" if bound is None else spell_float(bound, single=False)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:119] + "…"
