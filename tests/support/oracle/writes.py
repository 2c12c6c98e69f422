"""The effect and result of a write, computed without optimisation from the language reference alone (`Writing`).

A graph is the oracle's `World`, a write makes another one. Statements run in their order on dicts; expressions are the
oracle's, with the row's properties as bare names. What the reference does not say (whole numbers a float cannot hold)
is `Unclear`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from omnigraph.lang.spans import Name
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.types import PropertyType
from support.oracle import functions as oracle_functions
from support.oracle.model import Entity, Props, Row, World
from support.oracle.reading import Reading, column_name
from support.oracle.values import read_param, round_f32

_RANGES = {"I32": (-(2**31), 2**31 - 1), "I64": (-(2**63), 2**63 - 1), "U32": (0, 2**32 - 1), "U64": (0, 2**64 - 1)}
_EXACT = {"F32": 2**24, "F64": 2**53}
_ROW = "#row"
_ENDS = {"from": "src", "to": "dst"}


class Refused(Exception):
    """The write is refused with this code."""


class Unclear(Exception):
    """The reference does not define the result."""


@dataclass(frozen=True)
class Kept(Entity):
    """The state of a row after a statement."""

    values: Props = field(compare=False, hash=False, default_factory=dict)


class Moments(World):
    """Rows after statements; one row may have different states in two variables."""

    def props(self, entity: Entity) -> Props:
        assert isinstance(entity, Kept)
        return entity.values


@dataclass
class Changed:
    """The result of a write."""

    world: World
    nodes: int
    edges: int
    columns: list[str]
    rows: list[tuple[Any, ...]]


def change(
    query: ast.QueryDefinition, world: World, params: Mapping[str, Any], now_ms: int, new_id: Callable[[], str]
) -> Changed:
    """The graph, counts and rows after a write that compiles; raises `Refused` for a write without effect."""
    assert isinstance(query.body, ast.Write)
    values = {param.name.text: read_param(params.get(param.name.text), param) for param in query.params}
    declared = {param.name.text: param.type_name.text for param in query.params}
    after = World(world.catalog, deepcopy(world.nodes), deepcopy(world.edges))
    writing = _Writing(after, values, declared, now_ms, new_id)
    for statement in query.body.statements:
        writing.run(statement)
    writing.check_ends()
    rows = list(writing.returned(query.body.items)) if query.body.items else []
    return Changed(after, writing.nodes, writing.edges, [column_name(item) for item in query.body.items], rows)


class _Statement(Reading):
    """Evaluates the expressions of a statement; a bare name is a property of the row."""

    row_type: NodeType | EdgeType | None = None
    strict = False

    def meant(self, expr: ast.Expr) -> ast.Expr:
        if not isinstance(expr, ast.WordExpr) or self.row_type is None:
            return expr
        ends = _ENDS if isinstance(self.row_type, EdgeType) else {}
        if expr.name in self.row_type.properties or expr.name in ends:
            return ast.PropertyExpr(Name(_ROW), Name(ends.get(expr.name, expr.name)))
        return expr

    def is_f32(self, expr: ast.Expr, row: Row) -> bool:
        expr = self.meant(expr)
        is_end = isinstance(expr, ast.PropertyExpr) and expr.property.text in _ENDS.values()
        return not is_end and super().is_f32(expr, row)

    def scalar(self, expr: ast.Expr, row: Row) -> str:
        return super().scalar(self.meant(expr), row)

    def value(self, expr: ast.Expr, row: Row) -> Any:
        """A stored value must be defined: an operation without a result is an error."""
        found = super().value(expr, row)
        if self.strict and found is None:
            parts = [expr.left, expr.right] if isinstance(expr, ast.ArithmeticExpr) else []
            parts = [expr.expr] if isinstance(expr, ast.NegativeExpr) else parts
            if isinstance(expr, ast.CallExpr) and expr.function in oracle_functions.NAMES:
                parts = list(expr.arguments[: -1 if expr.function in oracle_functions.WITH_UNIT else None])
            if parts and all(self.value(part, row) is not None for part in parts):
                raise Refused("no_result")
        return found


class _Writing:
    def __init__(
        self,
        world: World,
        params: Mapping[str, Any],
        declared: Mapping[str, str],
        now_ms: int,
        new_id: Callable[[], str],
    ) -> None:
        self.world = world
        self.catalog = world.catalog
        self.new_id = new_id
        self.params, self.declared, self.now_ms = params, declared, now_ms
        self.expressions = _Statement(world, params, declared, now_ms)
        self.nodes = self.edges = 0
        self.inserted: set[tuple[str, str]] = set()
        """Edges added by this write; their ends are checked at the end."""
        self.named: dict[str, list[Kept]] = {}

    def run(self, statement: ast.Statement) -> None:
        name = statement.type.text
        type_ = self.catalog.nodes.get(name) or self.catalog.edges[name]
        match statement:
            case ast.InsertStatement() if isinstance(type_, NodeType):
                rows = [self.insert_node(type_, statement.assigns)]
            case ast.InsertStatement():
                rows = [self.insert_edge(type_, statement.assigns)]
            case ast.UpdateStatement():
                rows = self.update(type_, self.matching(type_, statement.where), statement.assigns)
            case ast.UpsertStatement():
                rows = self.upsert(type_, statement)
            case ast.DeleteStatement():
                rows = self.delete(type_, statement.where)
        if statement.name is not None:
            self.named[statement.name.text] = sorted(rows, key=lambda row: row.id)

    # -- statements ------------------------------------------------------------------------------

    def insert_node(self, type_: NodeType, assigns: Sequence[ast.Assign]) -> Kept:
        row = self.assigned(type_, assigns)
        values = {name: row.get(name) for name in type_.properties}
        id_ = key_id(type_, values) if type_.key else self.new_id()
        if id_ in self.world.nodes[type_.name]:
            raise Refused("key_conflict")
        self.required(type_, values)
        self.world.nodes[type_.name][id_] = values
        self.nodes += 1
        return self.kept(type_, id_)

    def insert_edge(self, type_: EdgeType, assigns: Sequence[ast.Assign]) -> Kept:
        row = self.assigned(type_, [a for a in assigns if a.property.text not in _ENDS])
        values = {name: row.get(name) for name in type_.properties}
        ends = {_ENDS[a.property.text]: self.end(a.value) for a in assigns if a.property.text in _ENDS}
        id_ = self.new_id()
        self.required(type_, values)
        self.world.edges[type_.name][id_] = {**ends, **values}
        self.inserted.add((type_.name, id_))
        self.edges += 1
        return self.kept(type_, id_)

    def end(self, value: ast.Expr) -> Any:
        if isinstance(value, ast.VarExpr) and value.name not in self.params:
            (node,) = self.named[value.name]
            return node.id
        return self.expressions.value(value, {})

    def update(self, type_: NodeType | EdgeType, ids: Sequence[str], assigns: Sequence[ast.Assign]) -> list[Kept]:
        rows = self.table(type_)
        new: dict[str, Props] = {id_: {} for id_ in ids}
        for assign in assigns:  # computed and stored column by column: the order decides which error is reported
            values = {id_: self.computed(assign, type_, self.entity(type_, id_)) for id_ in ids}
            for id_, value in values.items():
                new[id_][assign.property.text] = self.fitted(assign, type_, value)
        for id_ in ids:
            self.required(type_, {**rows[id_], **new[id_]})
        for id_ in ids:
            rows[id_] = {**rows[id_], **new[id_]}
        if isinstance(type_, NodeType):
            self.nodes += len(ids)
        else:
            self.edges += len(ids)
        return [self.kept(type_, id_) for id_ in ids]

    def upsert(self, type_: NodeType, statement: ast.UpsertStatement) -> list[Kept]:
        key = [assign for assign in statement.key if assign.property.text in type_.key]
        both = [assign for assign in statement.key if assign.property.text not in type_.key]
        id_ = key_id(type_, self.assigned(type_, key))
        if id_ not in self.world.nodes[type_.name]:
            return [self.insert_node(type_, [*key, *both, *(statement.new or ())])]
        if both or statement.existing:
            return self.update(type_, [id_], [*both, *(statement.existing or ())])
        return [self.kept(type_, id_)]

    def delete(self, type_: NodeType | EdgeType, where: ast.Expr) -> list[Kept]:
        ids = self.matching(type_, where)
        rows = [self.kept(type_, id_) for id_ in ids]
        table = self.table(type_)
        for id_ in ids:
            del table[id_]
        if isinstance(type_, EdgeType):
            self.edges += len(ids)
            return rows
        self.nodes += len(ids)
        for edge in self.catalog.edges.values():
            edges = self.world.edges[edge.name]
            for edge_id, values in list(edges.items()):
                if (edge.from_type == type_.name and values["src"] in ids) or (
                    edge.to_type == type_.name and values["dst"] in ids
                ):
                    del edges[edge_id]
                    self.edges += 1
        return rows

    # -- parts of statements ---------------------------------------------------------------------

    def table(self, type_: NodeType | EdgeType) -> dict[str, Props]:
        return (self.world.nodes if isinstance(type_, NodeType) else self.world.edges)[type_.name]

    def entity(self, type_: NodeType | EdgeType, id_: str) -> Entity:
        return Entity("node" if isinstance(type_, NodeType) else "edge", type_.name, id_)

    def kept(self, type_: NodeType | EdgeType, id_: str) -> Kept:
        entity = self.entity(type_, id_)
        return Kept(entity.kind, entity.type, id_, dict(self.world.props(entity)))

    def matching(self, type_: NodeType | EdgeType, where: ast.Expr) -> list[str]:
        self.expressions.row_type, self.expressions.strict = type_, False
        return [id_ for id_ in self.table(type_) if self.expressions.holds(where, {_ROW: self.entity(type_, id_)})]

    def assigned(self, type_: NodeType | EdgeType, assigns: Sequence[ast.Assign]) -> Props:
        """The stored form of a value assigned in an insert."""
        return {a.property.text: self.fitted(a, type_, self.computed(a, type_, None)) for a in assigns}

    def computed(self, assign: ast.Assign, type_: NodeType | EdgeType, row: Entity | None) -> Any:
        """The assigned value; an insert has no bare names."""
        self.expressions.row_type, self.expressions.strict = type_ if row is not None else None, True
        return self.expressions.value(assign.value, {_ROW: row} if row is not None else {})

    def fitted(self, assign: ast.Assign, type_: NodeType | EdgeType, value: Any) -> Any:
        """The stored form of an assigned value."""
        given = isinstance(assign.value, ast.VarExpr | ast.LiteralExpr)
        return stored(value, type_.properties[assign.property.text].type, given)

    def required(self, type_: NodeType | EdgeType, values: Props) -> None:
        if any(values[p.name] is None and not p.type.nullable for p in type_.properties.values()):
            raise Refused("required_property")

    def check_ends(self) -> None:
        for name, id_ in self.inserted:
            edge, values = self.catalog.edges[name], self.world.edges[name].get(id_)
            ends = {"src": edge.from_type, "dst": edge.to_type}
            if values is not None and any(values[end] not in self.world.nodes[of] for end, of in ends.items()):
                raise Refused("endpoint_violation")

    # -- return ----------------------------------------------------------------------------------

    def returned(self, items: Sequence[ast.ReturnItem]) -> Iterator[tuple[Any, ...]]:
        """Every combination of the named rows, ordered by statement, then by id."""
        reading = Reading(Moments(self.catalog, {}, {}), self.params, self.declared, self.now_ms)
        reading.items = items
        exprs = [reading.meant(item.expr) for item in items]
        for rows in product(*self.named.values()):
            row = dict(zip(self.named, rows, strict=True))
            yield tuple(shown(reading.value(expr, row)) for expr in exprs)


def shown(value: Any) -> Any:
    """A node as its object, its id and every property but Blobs by name, also inside objects and lists."""
    match value:
        case Kept():
            return {"id": value.id, **{name: value.values[name] for name in sorted(value.values)}}
        case dict():
            return {name: shown(part) for name, part in value.items()}
        case list():
            return [shown(part) for part in value]
        case _:
            return value


def key_id(type_: NodeType, values: Props) -> str:
    """The id derived from a key of strings and integers."""
    spelt = [str(values[name]) for name in type_.key]
    return spelt[0] if len(spelt) == 1 else json.dumps(spelt, ensure_ascii=False, separators=(",", ":"))


def stored(value: Any, type_: PropertyType, given: bool) -> Any:
    """The stored form of a value; `given` is a literal, not computed."""
    if value is None:
        return None
    if type_.scalar == "Vector":
        return [round_f32(item) for item in value]
    if type_.is_list:
        return [stored(item, type_.item, given) for item in value]
    if type_.is_integer:
        if isinstance(value, float) and given:
            raise Unclear
        if value != int(value) or not _RANGES[type_.scalar][0] <= value <= _RANGES[type_.scalar][1]:
            raise Refused("bad_value")
        return int(value)
    if type_.is_float:
        if isinstance(value, int) and abs(value) > _EXACT[type_.scalar]:
            raise Unclear
        number = round_f32(value) if type_.scalar == "F32" else float(value)
        if abs(number) == float("inf"):
            raise Refused("bad_value")
        return float(number)
    if type_.enum_values and value not in type_.enum_values:
        raise Refused("bad_value")
    return value
