"""Random schemas, graphs and histories, with the state the oracle expects."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.schema.catalog import Catalog, NodeType, Property
from omnigraph.schema.check import compile_schema
from omnigraph.versioning.model.ids import system_clock
from support.oracle.model import World
from support.random_reads import paths as reads_paths
from support.random_reads.values import POOLS, Values, key_uuid, stored

_PROPERTIES = [
    "word: String?", "text1: String? @index", "text2: String?", "kind: enum(red, green, blue)?", "flag: Bool?",
    "small: I32?", "big: I64?", "count: U32?", "wide: U64?", "ratio: F32?", "amount: F64?", "day: Date?",
    "at: DateTime?", "tags: [String]?", "marks: [I64]?", "shares: [F32]?", "days: [Date]?", "moments: [DateTime]?",
    "uid: Uuid?", "uids: [Uuid]?",
    "flags: [Bool]?", "sums: [F64]?", "wides: [U64]", "vec: Vector(3)?", "long: Vector(17)?", "must: I64", "yes: Bool",
]  # fmt: skip


_KEYS = [
    "name: String @key", "number: I64 @key", "name: String\n  part: I32\n  @key(name, part)", "token: Uuid @key",
    "word0: String?",
]  # fmt: skip


_NODES = ["Person", "Place", "Thing"]


_EDGES = ["Knows", "Likes", "PartOf", "Near"]


Declared = dict[str, list[str]]
"""The first line of a declaration → its body."""


def new_schema(random: Random) -> Declared:
    """Two or three node types; two to four edge types, one of them from a type to itself."""
    nodes = _NODES[: random.randint(2, 3)]
    schema: Declared = {"interface Texted": ["text: String?"], "interface Nobody": ["text: String?"]}
    for node in nodes:
        body = [random.choice(_KEYS), *random.sample(_PROPERTIES, random.randint(3, 9)), "text: String?"]
        if random.random() < 0.3:
            body = [line.replace("green, blue", "pink") for line in body]
        schema[f"node {node}{' implements Texted' if random.random() < 0.7 else ''}"] = body
    for number, edge in enumerate(_EDGES[: random.randint(2, 4)]):
        source = random.choice(nodes)
        target = source if number == 0 else random.choice(nodes)
        body = [p for p in random.sample(_PROPERTIES, random.randint(0, 4)) if "@" not in p]
        weights = random.sample(list(reads_paths.WEIGHTS.values()), random.randint(0, 2))
        schema[f"edge {edge}: {source} -> {target}"] = body + weights
    return schema


def _enrich(schema: Declared) -> None:
    """Add a vector to a node type and a weight to an edge type if none has one."""
    catalog = compile_schema(schema_text(schema))
    bodies = {kind: next(body for head, body in schema.items() if head.startswith(kind)) for kind in ("node", "edge")}
    if not _has_vector(catalog):
        bodies["node"].insert(1, "vec: Vector(3)?")
    if not _has_weight(catalog):
        bodies["edge"].append(reads_paths.WEIGHTS["cost"])


def is_rich(catalog: Catalog) -> bool:
    """True if reads of all kinds can be written: a node type has a vector, and an edge type a weight."""
    return _has_vector(catalog) and _has_weight(catalog)


def _has_vector(catalog: Catalog) -> bool:
    return any(p.type.scalar == "Vector" for type_ in catalog.nodes.values() for p in type_.properties.values())


def _has_weight(catalog: Catalog) -> bool:
    return any(not reads_paths.WEIGHTS.keys().isdisjoint(type_.properties) for type_ in catalog.edges.values())


def schema_text(schema: Declared) -> str:
    return "".join(f"{head} {{\n" + "".join(f"  {line}\n" for line in body) + "}\n" for head, body in schema.items())


@dataclass
class ManualClock:
    """The clock of a graph under test: real time, or a fixed time."""

    at: int | None = None

    def __call__(self) -> int:
        return system_clock() if self.at is None else self.at


@dataclass
class Point:
    """A point of history: its address and its content."""

    where: dict[str, Any]
    world: World


@dataclass
class Subject:
    """A graph and its model."""

    graph: Graph
    random: Random
    values: Values
    schema: Declared
    clock: ManualClock
    points: list[Point] = field(default_factory=list)
    heads: dict[str, World] = field(default_factory=dict)

    def note(self, branch: str, world: World, commit_id: str | None) -> None:
        """Record a commit."""
        self.heads[branch] = world
        if commit_id is not None:
            self.points.append(Point({"at": commit_id, "branch": branch}, world))

    def somewhere(self) -> Point:
        """Usually the head of a branch, otherwise an earlier commit."""
        if self.random.random() < 0.6 or not self.points:
            branch = self.random.choice(list(self.heads))
            return Point({"branch": branch}, self.heads[branch])
        return self.random.choice(self.points)


def new_subject(root: Path, random: Random, *, rich: bool = False) -> Subject:
    """A random graph with history; a rich one has rows, and reads of all kinds can be written."""
    schema = new_schema(random)
    if rich:
        _enrich(schema)
    graph = init(root, schema_text(schema), sync=False, environ={})
    catalog = compile_schema(schema_text(schema))
    clock = ManualClock()
    graph._repository.clock = clock
    subject = Subject(graph, random, Values(random), schema, clock)
    if random.random() < 0.2:
        graph._context.cache._bytes_max = 1_000  # Forces eviction between queries.
    subject.heads["main"] = World(catalog, {name: {} for name in catalog.nodes}, {name: {} for name in catalog.edges})
    nodes = random.choice((12, 18, 18, *[25] * 7) if rich else (0, 4, 12, 18, 18, *[25] * 7))
    load(subject, "main", nodes, random.randint(nodes, nodes * 4))
    if random.random() < 0.7:
        graph.ensure_indices()
    for _ in range(random.randint(0, 2)):
        change(subject, "main")
    if random.random() < 0.5:
        graph.branch_create("side")
        subject.heads["side"] = subject.heads["main"]
        change(subject, "side")
        if random.random() < 0.5:
            graph.ensure_indices("side")
            change(subject, "side")
    if random.random() < 0.3:
        evolve(subject)
    if random.random() < 0.5:
        graph.optimize()
    if random.random() < 0.5:
        change(subject, "main")
    if random.random() < 0.2:
        evolve(subject)
    return subject


def change(subject: Subject, branch: str) -> None:
    """One or two commits: new and replaced rows, updates, deletes."""
    match subject.random.randrange(4):
        case 0:
            load(subject, branch, subject.random.randint(0, 4), subject.random.randint(0, 6))
        case 1:
            delete_nodes(subject, branch)
        case 2:
            delete_edges(subject, branch)
        case _:
            update(subject, branch)


def evolve(subject: Subject) -> None:
    """Rename a property of main, reuse its name for another, and add one."""
    random = subject.random
    head = random.choice([head for head, body in subject.schema.items() if len(body) > 3])
    first, second = random.sample(range(1, len(subject.schema[head]) - 1), 2)
    one, other = (subject.schema[head][at].split(":")[0] for at in (first, second))
    rename(subject, head, first, one, f"{one}{len(subject.points)}x")
    if random.random() < 0.5:
        rename(subject, head, second, other, one)
    if random.random() < 0.5:
        subject.schema[head].insert(1, f"added{len(subject.points)}: I64?")
        apply(subject, {})


def rename(subject: Subject, head: str, at: int, old: str, new: str) -> None:
    body = subject.schema[head]
    type_ = body[at].removeprefix(old)
    body[at] = f'{new}{type_} @rename_from("{old}")'
    apply(subject, {old: new}, head.split()[1].rstrip(":"))
    body[at] = f"{new}{type_}"


def apply(subject: Subject, renamed: Mapping[str, str], type_name: str = "") -> None:
    """Apply the schema to main and to the model."""
    done = subject.graph.apply_schema(schema_text(subject.schema), allow_data_loss=True)
    assert done.applied
    catalog = compile_schema(schema_text(subject.schema))
    world = _copy(subject.heads["main"])
    world.catalog = catalog
    for types, tables in ((catalog.nodes, world.nodes), (catalog.edges, world.edges)):
        for name, rows in tables.items():
            for id, row in rows.items():
                names = renamed if name == type_name else {}
                values = {names.get(key, key): item for key, item in row.items()}
                rows[id] = {**dict.fromkeys(types[name].properties), **values}
    subject.note("main", world, subject.graph.commits()[0].id)


def load(subject: Subject, branch: str, nodes: int, edges: int) -> None:
    """Merge new and existing rows; absent properties keep their values."""
    random, catalog = subject.random, subject.heads[branch].catalog
    world = _copy(subject.heads[branch])
    records: dict[tuple[str, str], dict[str, Any]] = {}
    for _ in range(nodes):
        type_ = catalog.nodes[random.choice(list(catalog.nodes))]
        id, data = _node(subject, type_)
        records["node " + type_.name, id] = {"type": type_.name, "data": data}
        # Only the last record of an id is loaded, so it applies to the row as it was before the load.
        before = subject.heads[branch].nodes[type_.name].get(id, {})
        world.nodes[type_.name][id] = {
            p.name: stored(data[p.name], p.type) if p.name in data else before.get(p.name)
            for p in type_.properties.values()
        }
    for _ in range(edges):
        edge = catalog.edges[random.choice(list(catalog.edges))]
        ends = [list(world.nodes[edge.from_type]), list(world.nodes[edge.to_type])]
        if not all(ends):
            continue
        source, target = random.choice(ends[0]), random.choice(ends[1])
        if edge.from_type == edge.to_type and random.random() < 0.15:
            target = source
        id = f"e{random.randrange(99)}"
        data = {p.name: subject.values.json(random, p.type, p.name) for p in edge.properties.values()}
        records["edge " + edge.name, id] = {"edge": edge.name, "from": source, "to": target, "data": {"id": id, **data}}
        values = {p.name: stored(data[p.name], p.type) for p in edge.properties.values()}
        world.edges[edge.name][id] = {"src": source, "dst": target, **values}
    done = subject.graph.load(list(records.values()), mode="merge", branch=branch)
    subject.note(branch, world, done.commit_id)


def _node(subject: Subject, type_: NodeType) -> tuple[str, dict[str, Any]]:
    random = subject.random
    data = {p.name: subject.values.json(random, p.type, p.name) for p in type_.properties.values()}
    data = {name: item for name, item in data.items() if item is not None or random.random() < 0.5}
    number = random.randrange(20)
    # The id derived from the key (`schema-language.md` §6).
    match type_.key:
        case ("name",):
            data["name"] = f"n{number}"
            return data["name"], data
        case ("number",):
            data["number"] = number - 3
            return str(number - 3), data
        case ("name", "part"):
            data["name"], data["part"] = f"n{number % 5}", number // 5
            return f'["{data["name"]}","{data["part"]}"]', data
        case ("token",):
            token = key_uuid(number)
            data["token"] = random.choice((token, token.upper()))
            return token, data
        case _:
            return f"n{number}", {"id": f"n{number}", **data}


def delete_nodes(subject: Subject, branch: str) -> None:
    """Delete the nodes of a type with a given value, and their edges."""
    random, catalog = subject.random, subject.heads[branch].catalog
    type_ = catalog.nodes[random.choice(list(catalog.nodes))]
    world = _copy(subject.heads[branch])
    prop, json = _some_value(random, type_, world.nodes[type_.name])
    gone = {id for id, row in world.nodes[type_.name].items() if row[prop] is not None and row[prop] == json}
    for id in gone:
        del world.nodes[type_.name][id]
    for edge in catalog.edges.values():
        rows = world.edges[edge.name]
        for id, row in list(rows.items()):
            if (edge.from_type == type_.name and row["src"] in gone) or (
                edge.to_type == type_.name and row["dst"] in gone
            ):
                del rows[id]
    source = f"query q($v: {type_.properties[prop].type}) {{ delete {type_.name} where {prop} = $v }}"
    done = subject.graph.mutate(source.replace("?", ""), params={"v": json}, branch=branch)
    subject.note(branch, world, done.commit_id)


def delete_edges(subject: Subject, branch: str) -> None:
    """Delete the edges of a type that start at one node."""
    random = subject.random
    catalog = subject.heads[branch].catalog
    edge = catalog.edges[random.choice(list(catalog.edges))]
    world = _copy(subject.heads[branch])
    rows = world.edges[edge.name]
    source = random.choice([row["src"] for row in rows.values()] or ["nobody"])
    world.edges[edge.name] = {id: row for id, row in rows.items() if row["src"] != source}
    query = f"query q($v: String) {{ delete {edge.name} where from = $v }}"
    done = subject.graph.mutate(query, params={"v": source}, branch=branch)
    subject.note(branch, world, done.commit_id)


def update(subject: Subject, branch: str) -> None:
    """Set one property of the nodes of a type with a given value."""
    random, catalog = subject.random, subject.heads[branch].catalog
    type_ = catalog.nodes[random.choice(list(catalog.nodes))]
    where = _some_value(random, type_, subject.heads[branch].nodes[type_.name])
    free = [p for p in type_.properties.values() if p.name not in type_.key]
    prop = random.choice(free)
    new = subject.values.json(random, prop.type, prop.name)
    if not prop.type.enum_values and prop.type.scalar != "Blob":
        assign(subject, branch, type_, prop, new, where)


def assign(
    subject: Subject, branch: str, type_: NodeType, prop: Property, new: Any, chosen: tuple[str, Any] | None = None
) -> None:
    """Set a property of the nodes of a type that have a value of a property, by default a random one."""
    world = _copy(subject.heads[branch])
    where, json = chosen or _some_value(subject.random, type_, world.nodes[type_.name])
    for row in world.nodes[type_.name].values():
        if row[where] is not None and row[where] == json:
            row[prop.name] = stored(new, prop.type)
    source = (
        f"query q($v: {type_.properties[where].type.with_nullable(False)}, $n: {prop.type}) "
        f"{{ update {type_.name} set {{ {prop.name}: $n }} where {where} = $v }}"
    )
    done = subject.graph.mutate(source, params={"v": json, "n": new}, branch=branch)
    subject.note(branch, world, done.commit_id)


def _some_value(random: Random, type_: NodeType, rows: Mapping[str, Any]) -> tuple[str, Any]:
    """A property with equal JSON and stored forms, and a value of it."""
    alike = [p for p in type_.properties.values() if p.type.scalar in ("String", "Bool", "I64") and not p.type.is_list]
    alike = [p for p in alike if not p.type.enum_values]
    prop = random.choice(alike)
    there = [row[prop.name] for row in rows.values() if row[prop.name] is not None]
    return prop.name, random.choice(there) if there else random.choice(POOLS[prop.type.scalar])


def world_of(graph: Graph, **where: Any) -> World:
    """The model of a graph, from its export, which reads tables without the query engine."""
    catalog = graph.catalog(**where)
    world = World(catalog, {name: {} for name in catalog.nodes}, {name: {} for name in catalog.edges})
    for record in graph.export(**where):
        data = dict(record["data"])
        if "type" in record:
            world.nodes[record["type"]][data.pop("id")] = data
        else:
            ends = {"src": record["from"], "dst": record["to"]}
            world.edges[record["edge"]][data.pop("id")] = {**ends, **data}
    return world


def _copy(world: World) -> World:
    return World(world.catalog, deepcopy(world.nodes), deepcopy(world.edges))
