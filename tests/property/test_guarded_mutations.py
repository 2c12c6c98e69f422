"""Random mutations under random guards have the outcome of a direct evaluation in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from omnigraph.errors import ConstraintViolation, Denied, KeyConflict
from omnigraph.graph_open import init
from omnigraph.operations.mutate import mutate
from omnigraph.operations.requests import MutationRequest, QueryText
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility
from omnigraph.query.write_guard import WriteGuard
from omnigraph.types import PropertyType
from omnigraph.versioning.write.transaction import WriteOptions

SCHEMA = """
node Note {
  name: String @key
  tenant: String
  level: I64?
  pay: I64?
}
edge Cites: Note -> Note {
  weight: I64?
}
"""
NODE, EDGE = "node:Note", "edge:Cites"
NUMBER = PropertyType("I64", nullable=True)
COLUMNS = {
    NODE: {"name": ir.STRING, "tenant": ir.STRING, "level": NUMBER, "pay": NUMBER},
    EDGE: {"src": ir.STRING, "dst": ir.STRING, "weight": NUMBER},
}
NAMES = [f"n{number}" for number in range(8)]
SEED = 20_261_116
Row = dict[str, Any]
Test = Callable[[Mapping[str, Any]], bool | None]
Rule = tuple[ir.Condition, Test]


def value_of(random: Random, name: str) -> Any:
    if name in ("name", "src", "dst"):
        return random.choice(NAMES)
    return random.choice("pq") if name == "tenant" else random.randrange(3)


def random_rule(random: Random, key: str, depth: int = 0) -> Rule:
    """A condition that is true for many rows, and the same as a function."""
    name = random.choice([*COLUMNS[key]])
    prop = ir.Prop(ROW, name, COLUMNS[key][name])
    kind = random.random()
    if depth < 1 and kind < 0.4:
        op = random.choice(("and", "or"))
        (left, first), (right, second) = (random_rule(random, key, depth + 1) for _ in range(2))

        def both(row: Mapping[str, Any]) -> bool | None:
            truths = (first(row), second(row))
            decisive = op == "or"
            return decisive if decisive in truths else None if None in truths else not decisive

        return ir.Logic(op, (left, right)), both
    if kind < 0.5 and prop.type.nullable:
        return ir.Not(ir.IsNull(prop)), lambda row: row[name] is not None
    value = value_of(random, name)
    equal = name == "tenant" or kind < 0.6

    def compared(row: Mapping[str, Any]) -> bool | None:
        if row[name] is None:
            return None
        return bool(row[name] == value if equal else row[name] >= value)

    constant = ir.Const(value, prop.type.with_nullable(False))
    return ir.Compare("=" if equal else ">=", prop, constant), compared


@dataclass
class Rules:
    """A guard, and its conditions as functions."""

    seen: dict[str, Rule] = field(default_factory=dict)
    shown: dict[tuple[str, str], Rule] = field(default_factory=dict)
    rows: dict[tuple[Any, str], Rule] = field(default_factory=dict)
    written: dict[tuple[str, str], Rule] = field(default_factory=dict)

    @classmethod
    def some(cls, random: Random) -> Rules:
        rules = cls()
        for key in (NODE, EDGE):
            if random.random() < 0.6:
                rules.seen[key] = random_rule(random, key)
            for action in ("row_insert", "row_update", "row_delete"):
                if random.random() < 0.4:
                    rules.rows[action, key] = random_rule(random, key)
        for place in ((NODE, "level"), (NODE, "pay"), (EDGE, "weight")):
            if random.random() < 0.4:
                rules.shown[place] = random_rule(random, place[0])
            if random.random() < 0.4:
                rules.written[place] = random_rule(random, place[0])
        return rules

    @property
    def guard(self) -> WriteGuard:
        seen = Visibility(_conditions(self.seen), _conditions(self.shown))
        return WriteGuard(seen, _conditions(self.rows), _conditions(self.written))


def _conditions(rules: Mapping[Any, Rule]) -> dict[Any, ir.Condition]:
    return {key: condition for key, (condition, _) in rules.items()}


def passes(rules: Mapping[Any, Rule], key: Any, row: Mapping[str, Any]) -> bool:
    return key not in rules or rules[key][1](row) is True


class Refused(Exception):
    """The kind of error that a mutation must raise."""


@dataclass
class World:
    """The rows of the graph; edges by their ends and position."""

    nodes: dict[str, Row] = field(default_factory=dict)
    edges: list[Row] = field(default_factory=list)

    def summary(self) -> tuple[Any, Any]:
        return self.nodes, Counter((edge["src"], edge["dst"], edge["weight"]) for edge in self.edges)


@dataclass
class Statement:
    kind: str
    values: Row
    where: tuple[str, Any] = ("", None)

    @classmethod
    def some(cls, random: Random) -> Statement:
        kind = random.choice(("insert", "upsert", "update", "delete", "link", "relink", "unlink"))
        if kind == "link":
            values = {"from": random.choice([*NAMES, "none"]), "to": random.choice(NAMES)}
            return cls(kind, values | ({"weight": random.randrange(3)} if random.random() < 0.5 else {}))
        if kind in ("relink", "unlink"):
            return cls(kind, {"weight": random.randrange(3)}, ("weight", random.randrange(3)))
        values = {name: value_of(random, name) for name in ("level", "pay") if random.random() < 0.4}
        if kind in ("insert", "upsert"):
            return cls(kind, {"name": random.choice(NAMES), "tenant": random.choice("pq"), **values})
        name = random.choice(("name", "name", "level", "pay"))
        return cls(kind, values or {"tenant": random.choice("pq")}, (name, value_of(random, name)))

    @property
    def text(self) -> str:
        def spell(value: Any) -> str:
            return f'"{value}"' if isinstance(value, str) else str(value)

        body = "{ " + ", ".join(f"{name}: {spell(value)}" for name, value in self.values.items()) + " }"
        where = f"where {self.where[0]} = {spell(self.where[1])}"
        match self.kind:
            case "insert" | "upsert":
                return f"{self.kind} Note {body}"
            case "link":
                return f"insert Cites {body}"
            case "update" | "relink":
                return f"update {'Note' if self.kind == 'update' else 'Cites'} set {body} {where}"
            case _:
                return f"delete {'Note' if self.kind == 'delete' else 'Cites'} {where}"


@dataclass
class Direct:
    """The direct evaluation of one statement."""

    world: World
    rules: Rules

    def sees(self, key: str, row: Row) -> bool:
        ends = key == NODE or all(self.sees(NODE, self.world.nodes[row[end]]) for end in ("src", "dst"))
        return passes(self.rules.seen, key, row) and ends

    def matches(self, key: str, row: Row, where: tuple[str, Any]) -> bool:
        name, value = where
        return self.sees(key, row) and passes(self.rules.shown, (key, name), row) and row[name] == value

    def need(self, action: str, key: str, *images: Row, names: tuple[str, ...] = ()) -> None:
        allowed = all(passes(self.rules.rows, (action, key), image) for image in images)
        if not allowed or not all(passes(self.rules.written, (key, name), image) for image in images for name in names):
            raise Refused("denied")

    def run(self, statement: Statement) -> None:
        nodes, edges, values = self.world.nodes, self.world.edges, statement.values
        match statement.kind:
            case "insert" | "upsert":
                old = nodes.get(values["name"])
                if old is not None and self.sees(NODE, old):
                    if statement.kind == "insert":
                        raise Refused("conflict")
                    self.change(NODE, [old], {name: value for name, value in values.items() if name != "name"})
                    return
                row = {"level": None, "pay": None, **values}
                self.need("row_insert", NODE, row, names=tuple(values))
                if old is not None:
                    raise Refused("violation")
                nodes[values["name"]] = row
            case "link":
                row = {"src": values["from"], "dst": values["to"], "weight": values.get("weight")}
                self.need("row_insert", EDGE, row, names=("weight",) if "weight" in values else ())
                for end in (row["src"], row["dst"]):
                    if end not in nodes or not self.sees(NODE, nodes[end]):
                        raise Refused("violation")
                edges.append(row)
            case "update":
                self.change(NODE, [row for row in nodes.values() if self.matches(NODE, row, statement.where)], values)
            case "relink":
                self.change(EDGE, [row for row in edges if self.matches(EDGE, row, statement.where)], values)
            case "unlink":
                gone = [row for row in edges if self.matches(EDGE, row, statement.where)]
                for row in gone:
                    self.need("row_delete", EDGE, row)
                self.world.edges = [row for row in edges if not any(row is one for one in gone)]
            case _:
                lost = {name: row for name, row in nodes.items() if self.matches(NODE, row, statement.where)}
                for row in lost.values():
                    self.need("row_delete", NODE, row)
                for row in edges:
                    if row["src"] in lost or row["dst"] in lost:
                        if not self.sees(EDGE, row):
                            raise Refused("denied")
                        self.need("row_delete", EDGE, row)
                self.world.edges = [row for row in edges if row["src"] not in lost and row["dst"] not in lost]
                self.world.nodes = {name: row for name, row in nodes.items() if name not in lost}

    def change(self, key: str, rows: list[Row], values: Row) -> None:
        for row in rows:
            self.need("row_update", key, row, {**row, **values}, names=tuple(values))
        for row in rows:
            row.update(values)


def stored(graph: Any) -> tuple[Any, Any]:
    """Read the graph without a guard."""
    nodes = graph.query(
        "match { $n: Note } return { $n.name as name, $n.tenant as tenant, $n.level as level, $n.pay as pay }"
    ).to_pylist()
    edges = graph.to_arrow("Cites").to_pylist()
    return {row["name"]: row for row in nodes}, Counter((row["src"], row["dst"], row["weight"]) for row in edges)


@pytest.mark.parametrize("part", range(4))
def test_random_mutations(tmp_path, part):
    random = Random(f"{SEED} {part}")
    graph = init(tmp_path / "graph", SCHEMA, sync=False, environ={})
    world = World()
    outcomes: Counter[str] = Counter()
    for step in range(120):
        # Unguarded writes fill the graph.
        rules = Rules() if step < 15 or step % 6 == 0 else Rules.some(random)
        statement = Statement.some(random)
        if rules == Rules() and statement.kind in ("delete", "unlink"):
            continue
        after = deepcopy(world)
        direct = Direct(after, rules)
        try:
            direct.run(statement)
            expected = "ok"
        except Refused as error:
            expected = str(error)
        if expected == "ok":
            world = after
        try:
            context = graph._context.with_guard(rules.guard)
            mutate(context, MutationRequest(QueryText(statement.text), WriteOptions()))
            found = "ok"
        except Denied:
            found = "denied"
        except KeyConflict:
            found = "conflict"
        except ConstraintViolation:
            found = "violation"
        assert found == expected, (step, statement.text, rules)
        assert stored(graph) == world.summary(), (step, statement.text, rules)
        outcomes[found] += 1
    assert {"ok", "denied", "violation"} <= outcomes.keys()
