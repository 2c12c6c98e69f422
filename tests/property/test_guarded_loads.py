"""Random loads under random guards have the outcome of a direct evaluation in Python."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from omnigraph.errors import ConstraintViolation, Denied, KeyConflict, RecordError
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from property.test_guarded_mutations import EDGE, NAMES, NODE, SCHEMA, Refused, Row, Rules, passes, value_of

SEED = 20_261_117
LOAD_SCHEMA = SCHEMA.replace("weight: I64?", "weight: I64?\n  @unique(src, dst)")
IDS = [f"e{number}" for number in range(6)]


@dataclass
class World:
    """The rows of the graph by id."""

    nodes: dict[str, Row] = field(default_factory=dict)
    edges: dict[str, Row] = field(default_factory=dict)

    def tables(self) -> dict[str, dict[str, Row]]:
        return {NODE: self.nodes, EDGE: self.edges}

    def summary(self) -> tuple[Any, Any]:
        return self.nodes, Counter((edge["src"], edge["dst"], edge["weight"]) for edge in self.edges.values())


@dataclass
class Load:
    """A load: its mode, whether absent properties become null, and its records as values by table."""

    mode: str
    missing: str
    records: list[tuple[str, Row]]

    @classmethod
    def some(cls, random: Random) -> Load:
        mode = random.choice(("merge", "merge", "merge", "append", "append", "overwrite"))
        found: list[tuple[str, Row]] = []
        used: set[str] = set()
        for _ in range(random.choice((1, 1, 2, 4))):
            if random.random() < 0.6:
                values = {"name": random.choice(NAMES)}
                if random.random() < 0.9 or mode != "merge":
                    values["tenant"] = random.choice("pq")
                found.append((NODE, values | _some_values(random, ("level", "pay"))))
                continue
            ends = {"src": random.choice([*NAMES, "none"]), "dst": random.choice(NAMES)}
            given = random.choice(IDS) if random.random() < 0.5 else None
            if mode != "merge" and given in used:
                continue
            used.add(given or "")
            found.append((EDGE, {"id": given, **ends, **_some_values(random, ("weight",))}))
        return cls(mode, random.choice(("keep", "keep", "null")), found)

    def dicts(self) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []
        for key, values in self.records:
            if key == NODE:
                made.append({"type": "Note", "data": values})
                continue
            data = {name: value for name, value in values.items() if name not in ("src", "dst") and value is not None}
            if "weight" in values:
                data["weight"] = values["weight"]
            made.append({"edge": "Cites", "from": values["src"], "to": values["dst"], "data": data})
        return made


def _some_values(random: Random, names: tuple[str, ...]) -> Row:
    return {name: None if random.random() < 0.2 else value_of(random, name) for name in names if random.random() < 0.4}


@dataclass
class Written:
    """A row of a load: its new image, and the properties that records assigned."""

    row: Row
    names: set[str]


@dataclass
class Direct:
    """The direct evaluation of one load."""

    world: World
    rules: Rules
    load: Load

    def sees(self, key: str, row: Row) -> bool:
        ends = key == NODE or all(self.sees(NODE, self.world.nodes[row[end]]) for end in ("src", "dst"))
        return passes(self.rules.seen, key, row) and ends

    def visible(self, key: str, id_: str) -> Row | None:
        row = self.world.tables()[key].get(id_)
        return row if row is not None and self.sees(key, row) else None

    def run(self) -> None:
        tables = {key: self.rows_of(key) for key in (EDGE, NODE) if any(one == key for one, _ in self.load.records)}
        for key in (NODE, EDGE):
            if key in tables:
                self.check(key, tables[key])
        self.validate(tables)
        for key, rows in tables.items():
            table = self.world.tables()[key]
            if self.load.mode == "overwrite":
                table.clear()
            table.update({id_: one.row for id_, one in rows})

    def rows_of(self, key: str) -> list[tuple[str, Written]]:
        """The rows of the records of one table."""
        merges = self.load.mode == "merge"
        nulls = not merges or self.load.missing == "null"
        found: list[tuple[str, Written]] = []
        for number, values in enumerate(values for one, values in self.load.records if one == key):
            if key == NODE and nulls and values.get("tenant") is None:
                raise Refused("record")
            id_ = values["name"] if key == NODE else values["id"] or self.edge_id(values, number)
            given = {name: value for name, value in values.items() if name != "id"}
            earlier = next((one for other, one in found if merges and other == id_), None)
            old = self.visible(key, id_) if merges else None
            row = dict(earlier.row if earlier is not None else old or _empty(key))
            names = {name for name in given if name not in ("name", "src", "dst")}
            if merges and nulls:
                absent = {name for name in _empty(key) if name not in given and (key, name) not in self.rules.shown}
                row |= dict.fromkeys(absent)
                names |= absent if old is not None else set()
            written = Written(row | given, names | (earlier.names if earlier is not None else set()))
            found = [(other, one) for other, one in found if one is not earlier]
            found.append((id_, written))
        if merges and key == NODE and any(one.row["tenant"] is None for _, one in found):
            raise Refused("record")
        return found

    def edge_id(self, values: Row, number: int) -> str:
        ends = (values["src"], values["dst"])
        if self.load.mode != "merge":
            return f"new {number}"
        for id_, edge in self.world.edges.items():
            if (edge["src"], edge["dst"]) == ends and self.sees(EDGE, edge):
                return id_
        return f"new {ends}"

    def check(self, key: str, rows: list[tuple[str, Written]]) -> None:
        """Ask the rules for rows and properties."""
        mode = self.load.mode
        for id_, one in rows:
            old = self.visible(key, id_) if mode == "merge" else None
            images = [one.row] if old is None else [old, one.row]
            action = "row_insert" if old is None else "row_update"
            if not all(passes(self.rules.rows, (action, key), image) for image in images):
                raise Refused("denied")
            if not all(passes(self.rules.written, (key, name), image) for image in images for name in one.names):
                raise Refused("denied")
        if mode == "overwrite":
            for row in self.world.tables()[key].values():
                if not self.sees(key, row) or not passes(self.rules.rows, ("row_delete", key), row):
                    raise Refused("denied")

    def validate(self, tables: dict[str, list[tuple[str, Written]]]) -> None:
        """Ask the integrity rules."""
        mode, stored = self.load.mode, self.world.tables()
        for key, rows in tables.items():
            ids = [id_ for id_, _ in rows]
            if mode != "overwrite" and any(id_ in stored[key] and self.visible(key, id_) is None for id_ in ids):
                raise Refused("violation")
            if len(set(ids)) != len(ids):
                raise Refused("violation")
        new = {id_ for id_, _ in tables.get(NODE, ())}
        replaced = mode == "overwrite" and NODE in tables
        edges = tables.get(EDGE, [])
        for _, one in edges:
            for end in (one.row["src"], one.row["dst"]):
                if end not in new and (replaced or self.visible(NODE, end) is None):
                    raise Refused("violation")
        kept = {id_: edge for id_, edge in self.world.edges.items() if id_ not in dict(edges)}
        if mode == "overwrite" and edges:
            kept = {}
        if replaced and any(edge[end] not in new for edge in kept.values() for end in ("src", "dst")):
            raise Refused("violation")
        pairs = [(edge["src"], edge["dst"]) for edge in [*kept.values(), *(one.row for _, one in edges)]]
        if len(set(pairs)) != len(pairs):
            raise Refused("violation")
        if mode == "append" and any(id_ in stored[key] for key, rows in tables.items() for id_, _ in rows):
            raise Refused("conflict")


def _empty(key: str) -> Row:
    return {"tenant": None, "level": None, "pay": None} if key == NODE else {"weight": None}


def stored(graph: Any) -> tuple[Any, Any]:
    """Read the graph without a guard."""
    nodes = [
        {name: row[name] for name in ("name", "tenant", "level", "pay")} for row in graph.to_arrow("Note").to_pylist()
    ]
    edges = graph.to_arrow("Cites").to_pylist()
    return {row["name"]: row for row in nodes}, Counter((row["src"], row["dst"], row["weight"]) for row in edges)


def loaded(graph: Any, rules: Rules, load: Load) -> str:
    """Load under a guard; return the outcome."""
    try:
        Graph(graph._context.with_guard(rules.guard)).load(load.dicts(), mode=load.mode, missing=load.missing)
    except Denied:
        return "denied"
    except KeyConflict:
        return "conflict"
    except ConstraintViolation:
        return "violation"
    except RecordError:
        return "record"
    return "ok"


@pytest.mark.parametrize("part", range(4))
def test_random_loads(tmp_path, part):
    random = Random(f"{SEED} {part}")
    graph = init(tmp_path / "graph", LOAD_SCHEMA, sync=False, environ={})
    world = World()
    outcomes: Counter[str] = Counter()
    for step in range(120):
        # Unguarded loads fill the graph.
        fills = step < 20 or step % 4 == 0
        rules = Rules() if fills else Rules.some(random)
        load = Load.some(random)
        if fills and load.mode == "overwrite":
            continue
        after = deepcopy(world)
        try:
            Direct(after, rules, load).run()
            expected = "ok"
        except Refused as error:
            expected = str(error)
        if expected == "ok":
            world = after
        assert loaded(graph, rules, load) == expected, (step, load, rules)
        assert stored(graph) == world.summary(), (step, load, rules)
        # Generated ids are not those of the model.
        world.edges = {row["id"]: {name: row[name] for name in ("src", "dst", "weight")}
                       for row in graph.to_arrow("Cites").to_pylist()}  # fmt: skip
        outcomes[expected] += 1
    assert {"ok", "denied", "violation", "record"} <= outcomes.keys()
