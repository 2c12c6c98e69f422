"""Random visibilities, and what a simple reading of them leaves of a graph: the projected copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.operations.authorization.access import Access
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility, project_catalog
from omnigraph.query.write_guard import WriteGuard
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property
from omnigraph.types import PropertyType
from support.oracle.model import Props, World
from support.random_reads.graphs import Declared, Subject, assign, schema_text
from support.random_reads.values import POOLS, stored

Truth = bool | None
Predicate = Callable[[Mapping[str, Any]], Truth]
"""A row with its id and ends → whether the condition is true, false or unknown."""

Rows = Sequence[Mapping[str, Any]]
"""Rows of a type with their ids."""

_STORED_SHARE = 0.8
"""The share of constants that are values of rows, where a rule has been given some."""
_COMPARED = ("String", "Bool", "I64", "I32")
SHAPES = (
    "all", "none", "tenant", "level", "set", "edge rule", "both ends", "mask", "hide", "forbid", "null-heavy", "mixed",
)  # fmt: skip
"""Kinds of visibilities."""


@dataclass(frozen=True)
class Rule:
    """A condition, and the same as a Python function."""

    condition: ir.Condition
    test: Predicate

    def passes(self, row: Mapping[str, Any], type_: NodeType | EdgeType) -> bool:
        """True if the condition is true; a property that had another type at the time is null."""
        known = dict(row)
        for part in ir.walk(self.condition):
            if isinstance(part, ir.Prop) and part.name in type_.properties:
                now = type_.properties[part.name].type
                if arrow_type(now) != arrow_type(part.type):
                    known[part.name] = None
        return self.test(known) is True


@dataclass(frozen=True)
class Rules:
    """The rules of a visibility; None hides all rows, or the property."""

    rows: dict[str, Rule | None]
    properties: dict[tuple[str, str], Rule | None]

    @property
    def visibility(self) -> Visibility:
        """The visibility of the rules."""
        return Visibility(
            {key: None if rule is None else rule.condition for key, rule in self.rows.items()},
            {key: None if rule is None else rule.condition for key, rule in self.properties.items()},
        )


def seen_by(graph: Graph, rules: Rules) -> Graph:
    """A handle that sees the visible part."""
    return Graph(graph._context.with_visibility(rules.visibility), branch=graph.branch)


class BranchAccess(Access):
    """The right to do everything, with rules for rows that depend on the branch."""

    def __init__(self, rules: Mapping[str, Rules]) -> None:
        super().__init__(None, "ana", default="allow")
        self.rules = rules
        self.has_row_rules = True

    def visibility(self, catalog: Catalog, branch: str) -> Visibility:
        """Return what is visible of a branch."""
        del catalog
        return self.rules[branch].visibility

    def write_guard(self, catalog: Catalog, branch: str) -> WriteGuard:
        """Return what may be changed of a branch: what is visible."""
        return WriteGuard(self.visibility(catalog, branch))


def move_rows(subject: Subject, branch: str, rules: Rules) -> bool:
    """Change values that a rule for nodes reads, so that rows come into sight or leave it; False if there are none."""
    random = subject.random
    catalog = subject.heads[branch].catalog
    read = [
        (type_, type_.properties[part.name], rule)
        for type_ in catalog.nodes.values()
        if (rule := rules.rows.get(type_.table_key)) is not None
        for part in ir.walk(rule.condition)
        if isinstance(part, ir.Prop) and part.name in type_.properties and part.name not in type_.key
        if part.type.scalar in _COMPARED and not part.type.is_list and not type_.properties[part.name].type.enum_values
    ]
    if not read:
        return False
    type_, prop, rule = random.choice(read)
    constants = [
        part.value
        for part in ir.walk(rule.condition)
        if isinstance(part, ir.Const) and part.type.scalar == prop.type.scalar
    ]
    fitting = [value for one in constants for value in (one if isinstance(one, list) else [one])]
    other = subject.values.json(random, prop.type, prop.name)
    assign(subject, branch, type_, prop, random.choice([*fitting, other]))
    return True


# -- projection ----------------------------------------------------------------------------------


def projected(world: World, rules: Rules) -> World:
    """The world that holds only what is visible."""
    catalog = project_catalog(world.catalog, rules.visibility)
    nodes = {
        name: {
            id: _values(world.catalog.nodes[name], {"id": id, **row}, row, rules)
            for id, row in world.nodes[name].items()
            if _is_visible(world.catalog.nodes[name], {"id": id, **row}, rules)
        }
        for name in catalog.nodes
    }
    edges: dict[str, dict[str, Props]] = {}
    for name, edge in catalog.edges.items():
        edges[name] = {
            id: _values(world.catalog.edges[name], {"id": id, **row}, row, rules)
            for id, row in world.edges[name].items()
            if row["src"] in nodes[edge.from_type]
            and row["dst"] in nodes[edge.to_type]
            and _is_visible(world.catalog.edges[name], {"id": id, **row}, rules)
        }
    return World(catalog, nodes, edges)


def _rows_with_ids(world: World, type_: NodeType | EdgeType) -> Rows:
    """The rows of a type of a world."""
    rows = world.nodes[type_.name] if isinstance(type_, NodeType) else world.edges[type_.name]
    return [{"id": id, **row} for id, row in rows.items()]


def _shows_a_part(world: World, seen: World) -> bool:
    """True if some rows are hidden and some are not: at least a quarter of the nodes, and an edge."""
    nodes, edges = (sum(map(len, tables.values())) for tables in (world.nodes, world.edges))
    seen_nodes, seen_edges = (sum(map(len, tables.values())) for tables in (seen.nodes, seen.edges))
    return nodes <= 4 * seen_nodes and seen_edges > 0 and seen_nodes + seen_edges < nodes + edges


def _is_visible(type_: NodeType | EdgeType, row: Mapping[str, Any], rules: Rules) -> bool:
    rule = rules.rows.get(type_.table_key)
    return rule is None or rule.passes(row, type_)


def _values(type_: NodeType | EdgeType, whole: Mapping[str, Any], row: Props, rules: Rules) -> Props:
    values = deepcopy(row)
    for name in row:
        if (type_.table_key, name) in rules.properties:
            rule = rules.properties[type_.table_key, name]
            if rule is None:
                del values[name]
            elif not rule.passes(whole, type_):
                values[name] = None
    return values


def projected_copy(root: Path, subject: Subject, rules: Rules) -> Graph:
    """A second graph that holds only what is visible of the head of main."""
    world = projected(subject.heads["main"], rules)
    copy = init(root, projected_schema(subject.schema, world.catalog), sync=False, environ={})
    records = []
    for record in subject.graph.export():
        kind, name = ("nodes", record["type"]) if "type" in record else ("edges", record["edge"])
        row = getattr(world, kind).get(name, {}).get(record["data"]["id"])
        if row is not None:
            own = world.catalog.nodes[name] if kind == "nodes" else world.catalog.edges[name]
            values = {p: record["data"][p] if row[p] is not None else None for p in own.properties}
            records.append({**record, "data": {"id": record["data"]["id"], **values}})
    copy.load(records, mode="append")
    return copy


def projected_schema(declared: Declared, catalog: Catalog) -> str:
    """The declarations of what is visible; masked properties are nullable."""
    schema: Declared = {}
    for head, body in declared.items():
        kind, name = head.split()[:2]
        types = {"node": catalog.nodes, "edge": catalog.edges, "interface": catalog.interfaces}[kind]
        if name.rstrip(":") in types:
            properties = types[name.rstrip(":")].properties
            lines = "\n".join(body).split("\n")
            schema[head] = [new for line in lines if (new := _projected_line(line.strip(), properties)) is not None]
    return schema_text(schema)


def _projected_line(line: str, properties: Mapping[str, Property]) -> str | None:
    name, _, rest = line.partition(":")
    if line.startswith("@"):
        return line
    if name not in properties:
        return None
    type_, *more = rest.split(" @")
    masked = properties[name].type.nullable and not type_.endswith("?")
    return f"{name}:{' @'.join([type_ + '?' if masked else type_, *more])}"


# -- random rules --------------------------------------------------------------------------------


def random_rules(random: Random, catalog: Catalog, shape: str, world: World | None = None) -> Rules:
    """Rules of one shape for the types of a catalog; with a world, most of their constants are values of its rows."""
    rules = Rules({}, {})
    nodes, edges = list(catalog.nodes.values()), list(catalog.edges.values())

    def rows_of(type_: NodeType | EdgeType) -> Rows:
        return [] if world is None else _rows_with_ids(world, type_)

    def any_rule(type_: NodeType | EdgeType) -> Rule:
        return random_rule(random, type_, rows_of(type_))

    match shape:
        case "all":
            rules.rows.update({type_.table_key: _always(True) for type_ in nodes})
        case "none":
            gone = random.choice([*nodes, *edges])
            rules.rows[gone.table_key] = random.choice((None, _always(False)))
        case "tenant":
            rules.rows.update({type_.table_key: _equal(random, type_, ("=",), rows_of(type_)) for type_ in nodes})
        case "level":
            ops = ("<=", ">", "<", ">=")
            rules.rows.update({type_.table_key: _equal(random, type_, ops, rows_of(type_)) for type_ in nodes})
        case "set":
            rules.rows.update({type_.table_key: _among(random, type_, rows_of(type_)) for type_ in nodes})
        case "edge rule":
            rules.rows.update({type_.table_key: any_rule(type_) for type_ in edges})
        case "both ends":
            rules.rows.update({type_.table_key: any_rule(type_) for type_ in (random.choice(nodes), *edges)})
        case "mask":
            _guard(random, rules, [*nodes, *edges], any_rule)
        case "hide":
            _guard(random, rules, [*nodes, *edges], lambda _: None)
        case "forbid":
            rules.rows.update({type_.table_key: _negated(any_rule(type_)) for type_ in nodes})
        case "null-heavy":
            rules.rows.update({type_.table_key: _known(random, type_) for type_ in [*nodes, *edges]})
        case _:
            for type_ in [*nodes, *edges]:
                if random.random() < 0.6:
                    rules.rows[type_.table_key] = None if random.random() < 0.1 else any_rule(type_)
            _guard(random, rules, [*nodes, *edges], lambda type_: random.choice((None, any_rule(type_))))
    return rules


SHOW_ALL_ROWS = ("all", "mask", "hide")
"""Kinds of visibilities that hide no rows."""
_DRAWS_MAX = 50


def telling_rules(random: Random, world: World, shape: str, accept: Callable[[World], bool] = lambda _: True) -> Rules:
    """Rules of one shape that show a part of a world that is accepted, if some are found in a number of draws.

    Those that hide rows hide some and show some. No property 'text' is hidden: an interface has it.
    """
    for _ in range(_DRAWS_MAX):
        rules = random_rules(random, world.catalog, shape, world)
        for key in [key for key, rule in rules.properties.items() if key[1] == "text" and rule is None]:
            del rules.properties[key]
        seen = projected(world, rules)
        if accept(seen) and (shape in SHOW_ALL_ROWS or _shows_a_part(world, seen)):
            break
    return rules


def _guard(
    random: Random, rules: Rules, types: list[NodeType | EdgeType], rule: Callable[[NodeType | EdgeType], Rule | None]
) -> None:
    for type_ in types:
        free = [name for name in type_.properties if not isinstance(type_, NodeType) or name not in type_.key]
        for name in random.sample(free, min(len(free), random.randint(0, 3))):
            rules.properties[type_.table_key, name] = rule(type_)


def random_rule(random: Random, type_: NodeType | EdgeType, rows: Rows = (), depth: int = 0) -> Rule:
    """A random condition on the rows of a type; most of its constants are values of the given rows."""
    chance = random.random()
    if depth < 2 and chance < 0.3:
        parts = [random_rule(random, type_, rows, depth + 1) for _ in range(random.randint(1, 3))]
        op = random.choice(("and", "or"))
        tests = [part.test for part in parts]
        logic = ir.Logic(op, tuple(part.condition for part in parts))
        return Rule(logic, lambda row: _combined(op, [test(row) for test in tests]))
    if depth < 2 and chance < 0.4:
        return _negated(random_rule(random, type_, rows, depth + 1))
    if chance < 0.5:
        return _known(random, type_)
    if chance < 0.65:
        return _among(random, type_, rows)
    if chance < 0.75:
        return _listed(random, type_, rows)
    return _equal(random, type_, ("=", "!=", "<", "<=", ">", ">="), rows)


def _combined(op: str, truths: list[Truth]) -> Truth:
    decisive = op == "or"
    if decisive in truths:
        return decisive
    return None if None in truths else not decisive


def _always(value: bool) -> Rule:
    return Rule(ir.Const(value, ir.BOOL), lambda _: value)


def _negated(rule: Rule) -> Rule:
    def test(row: Mapping[str, Any]) -> Truth:
        truth = rule.test(row)
        return None if truth is None else not truth

    return Rule(ir.Not(rule.condition), test)


def _properties(random: Random, type_: NodeType | EdgeType) -> list[tuple[str, PropertyType]]:
    found = [
        (p.name, p.type)
        for p in type_.properties.values()
        if p.type.scalar in _COMPARED and not p.type.is_list and not p.type.enum_values
    ]
    fixed = [("id", ir.STRING), ("src", ir.STRING)] if isinstance(type_, EdgeType) else [("id", ir.STRING)]
    return found if found and random.random() < 0.8 else fixed


def _some_value(random: Random, name: str, type_: PropertyType) -> Any:
    if name == "id":
        return random.choice((f"n{random.randrange(20)}", f"e{random.randrange(99)}"))
    if name in ("src", "name"):
        return f"n{random.randrange(20)}"
    return stored(random.choice(POOLS[type_.scalar]), type_)


def _value_of(random: Random, name: str, type_: PropertyType, rows: Rows) -> Any:
    """A constant to which a property is compared: often a value that one of the rows has."""
    there = [row[name] for row in rows if row.get(name) is not None]
    return random.choice(there) if there and random.random() < _STORED_SHARE else _some_value(random, name, type_)


def _equal(random: Random, type_: NodeType | EdgeType, ops: tuple[str, ...], rows: Rows) -> Rule:
    name, of = random.choice(_properties(random, type_))
    op = "=" if of.scalar == "Bool" else random.choice(ops)
    value = _value_of(random, name, of, rows)
    condition = ir.Compare(op, ir.Prop(ROW, name, of), ir.Const(value, of.with_nullable(False)))

    def test(row: Mapping[str, Any]) -> Truth:
        left, right = row.get(name), value
        if left is None:
            return None
        if isinstance(left, str):
            left, right = left.encode(), right.encode()
        match op:
            case "=":
                return bool(left == right)
            case "!=":
                return bool(left != right)
            case "<":
                return bool(left < right)
            case "<=":
                return bool(left <= right)
            case ">":
                return bool(left > right)
            case _:
                return bool(left >= right)

    return Rule(condition, test)


def _among(random: Random, type_: NodeType | EdgeType, rows: Rows) -> Rule:
    name, of = random.choice(_properties(random, type_))
    values = [_value_of(random, name, of, rows) for _ in range(random.randint(1, 6))]
    listed = ir.Const(values, replace(of, is_list=True, nullable=False))

    def test(row: Mapping[str, Any]) -> Truth:
        return None if row.get(name) is None else row[name] in values

    return Rule(ir.Compare("contains_item", listed, ir.Prop(ROW, name, of)), test)


def _listed(random: Random, type_: NodeType | EdgeType, rows: Rows) -> Rule:
    lists = [p for p in type_.properties.values() if p.type.is_list and p.type.scalar in ("String", "I64")]
    if not lists:
        return _known(random, type_)
    prop = random.choice(lists)
    items = [item for row in rows for item in row.get(prop.name) or () if item is not None]
    drawn = items and random.random() < _STORED_SHARE
    value = random.choice(items) if drawn else stored(random.choice(POOLS[prop.type.scalar]), prop.type.item)
    condition = ir.Compare("contains_item", ir.Prop(ROW, prop.name, prop.type), ir.Const(value, prop.type.item))

    def test(row: Mapping[str, Any]) -> Truth:
        return None if row.get(prop.name) is None else value in row[prop.name]

    return Rule(condition, test)


def _known(random: Random, type_: NodeType | EdgeType) -> Rule:
    name, of = random.choice([(p.name, p.type) for p in type_.properties.values()] or [("id", ir.STRING)])
    missing = Rule(ir.IsNull(ir.Prop(ROW, name, of)), lambda row: row.get(name) is None)
    return missing if random.random() < 0.3 else _negated(missing)
