"""Random schemas, graphs and reads, each from one seed; and the graph as the oracle sees it.

Values come from small pools, so that equal values, ties, empty results and full ones all happen; the pools
hold what goes wrong: integers no float can hold, both zeros, text whose order differs by encoding, words that
stem or fold to each other, vectors that point the same way. Ids overlap between types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from omnigraph.graph import Graph, init
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.check import compile_schema
from omnigraph.types import PropertyType
from omnigraph.versioning.model.ids import system_clock
from support import reads_functions, reads_paths
from support.oracle.model import World
from support.oracle.values import read_date, read_datetime, round_f32
from support.reads_nested import computed, gathered, made
from support.reads_unions import any_hop, edge_ends, entity_test, entity_value, mixed_hop, several_types, type_of

# -- values ------------------------------------------------------------------------------------------

WORDS = [
    "river", "Rivers", "running", "run", "runner", "stone", "stones", "the", "a", "This", "being", "not", "Café",
    "cafe", "naïve", "NAIVE", "Über", "quick", "quickly", "don't", "under_score", "2024", "x" * 40, "y" * 41,
    "résumés", "resume", "stön", "東京", "東京都", "京", "日本語のテキスト" * 3, "ｶﾞｲﾄﾞ", "한국어", "v2版",
]  # fmt: skip
STRINGS = ["", "a", "A", "ab", "abc", "b", "é", "e", "z", "Z", "\ufb00", "\U0001f600", "red", "%", "a_b", "a'b"]
DATES = ["1969-12-31", "1970-01-01", "2000-02-29", "2020-05-05", "2020-05-06", "9999-12-31"]
MOMENTS = [
    "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z", "2020-05-05T10:00:00.000Z", "2020-05-05T10:00:00.001Z",
    "2020-05-05T12:00:00+02:00", "2999-01-01T00:00:00.000Z",
]  # fmt: skip
POOLS: Mapping[str, Sequence[Any]] = {
    "String": STRINGS,
    "Bool": [True, False],
    "I32": [-(2**31), -3, -1, 0, 1, 2, 3, 2**31 - 1],
    "I64": [-(2**63), -(2**53) - 1, -1, 0, 1, 2, 3, 2**53, 2**53 + 1, 2**53 + 2, 2**53 + 2**29 + 1, 2**63 - 1],
    "U32": [0, 1, 2, 3, 2**32 - 1],
    "U64": [0, 1, 2, 3, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1],
    "F32": [-0.0, 0.0, 0.1, 0.5, 1.0, 2.0, 2.7, -2.7, 16777217.0, 1e10, 9007199254740993.0, 2.0**53 + 2.0**30],
    "F64": [-0.0, 0.0, 0.1, 0.5, 1.0, 2.0, 2.7, -2.7, 0.10000000149011612, 9007199254740992.0, 1e300],
    "Date": DATES,
    "DateTime": MOMENTS,
}
VECTORS = [
    [1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0],
    [-1.0, 0.0, 0.0], [0.1234567, -0.7654321, 0.3333333], [0.9876543, 0.1111111, -0.2222222], [1.0, 2.0, 3.0],
]  # fmt: skip
_crooked = Random(7)
LONG_VECTORS = [[_crooked.uniform(-1, 1) for _ in range(17)] for _ in range(5)]
"""Few, so that several rows have the same; and with digits that round differently in a different order of sums."""


class Values:
    """What one graph and the questions about it are made of: a few values of each pool, so that they meet."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.few = {scalar: random.sample(pool, min(len(pool), 4)) for scalar, pool in POOLS.items()}
        self.words = random.sample(WORDS, 9)
        self.vectors = {3: random.sample(VECTORS, 5), 17: random.sample(LONG_VECTORS, 3)}

    def one(self, random: Random, scalar: str) -> Any:
        return random.choice(self.few[scalar] if random.random() < 0.9 else POOLS[scalar])

    def vector(self, random: Random, dim: int | None) -> list[float]:
        assert dim is not None
        return random.choice(self.vectors[dim])

    def text(self, random: Random) -> str:
        """Some words, with punctuation between them."""
        words = [random.choice(self.words) for _ in range(random.choice((0, 1, 2, 2, 3, 4, 6)))]
        return random.choice((" ", ", ", "--", " _ ")).join(words)

    def json(self, random: Random, type_: PropertyType, name: str) -> Any:
        """A value as JSON gives it; null now and then where that is allowed."""
        if type_.nullable and random.random() < 0.15:
            return None
        if name in reads_paths.WEIGHTS:
            return reads_paths.worth(random, name)
        if type_.scalar == "Vector":
            return self.vector(random, type_.dim)
        if type_.is_list:
            return [self.one(random, type_.scalar) for _ in range(random.randint(0, 3))]
        if type_.enum_values:
            return random.choice(type_.enum_values)
        return self.text(random) if _is_prose(type_, name) else self.one(random, type_.scalar)


def _is_prose(type_: PropertyType, name: str) -> bool:
    return type_.is_text and name.startswith("text")


def stored(json: Any, type_: PropertyType) -> Any:
    """A value as the table keeps it."""
    if json is None:
        return None
    if type_.scalar == "Vector":
        return [round_f32(item) for item in json]
    if type_.is_list:
        return [stored(item, type_.item) for item in json]
    match type_.scalar:
        case "F32":
            return round_f32(json)
        case "Date":
            return read_date(json)
        case "DateTime":
            return read_datetime(json)
        case _:
            return json


def plain(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """What Arrow holds in the form the oracle speaks: dates as days, datetimes as milliseconds."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if pa.types.is_date32(array.type):
        return list(array.cast(pa.int32()).to_pylist())
    if pa.types.is_date64(array.type):
        return list(array.cast(pa.int64()).to_pylist())
    if pa.types.is_struct(array.type):
        fields = {field.name: plain(array.field(at)) for at, field in enumerate(array.type)}
        rows = [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]
        return [row if known else None for row, known in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_list(array.type):
        items = plain(array.values)
        ends = array.offsets.to_pylist()
        known = array.is_valid().to_pylist()
        return [items[ends[at] : ends[at + 1]] if known[at] else None for at in range(len(array))]
    return list(array.to_pylist())


# -- schemas and graphs ------------------------------------------------------------------------------

_PROPERTIES = [
    "word: String?", "text1: String? @index", "text2: String?", "kind: enum(red, green, blue)?", "flag: Bool?",
    "small: I32?", "big: I64?", "count: U32?", "wide: U64?", "ratio: F32?", "amount: F64?", "day: Date?",
    "at: DateTime?", "tags: [String]?", "marks: [I64]?", "shares: [F32]?", "days: [Date]?", "moments: [DateTime]?",
    "flags: [Bool]?", "sums: [F64]?", "wides: [U64]", "vec: Vector(3)?", "long: Vector(17)?", "must: I64", "yes: Bool",
]  # fmt: skip
_KEYS = ["name: String @key", "number: I64 @key", "name: String\n  part: I32\n  @key(name, part)", "word0: String?"]
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


def schema_text(schema: Declared) -> str:
    return "".join(f"{head} {{\n" + "".join(f"  {line}\n" for line in body) + "}\n" for head, body in schema.items())


@dataclass
class Held:
    """The clock of a graph under test: the real time, unless it is held still."""

    at: int | None = None

    def __call__(self) -> int:
        return system_clock() if self.at is None else self.at


@dataclass
class Point:
    """A point of a graph's history: how to ask for it, and what is there."""

    where: dict[str, Any]
    world: World


@dataclass
class Subject:
    """A graph and what the oracle knows of it."""

    graph: Graph
    random: Random
    values: Values
    schema: Declared
    clock: Held
    points: list[Point] = field(default_factory=list)
    heads: dict[str, World] = field(default_factory=dict)

    def note(self, branch: str, world: World, commit_id: str | None) -> None:
        """A commit was made."""
        self.heads[branch] = world
        if commit_id is not None:
            self.points.append(Point({"at": commit_id, "branch": branch}, world))

    def somewhere(self) -> Point:
        """The head of a branch mostly, else some commit of the past."""
        if self.random.random() < 0.6 or not self.points:
            branch = self.random.choice(list(self.heads))
            return Point({"branch": branch}, self.heads[branch])
        return self.random.choice(self.points)


def new_subject(root: Path, random: Random) -> Subject:
    """A graph with a schema, nodes, edges, and some history."""
    schema = new_schema(random)
    graph = init(root, schema_text(schema), sync=False, environ={})
    catalog = compile_schema(schema_text(schema))
    clock = Held()
    graph._repository.clock = clock
    subject = Subject(graph, random, Values(random), schema, clock)
    if random.random() < 0.2:
        graph._shared.cache._bytes_max = 1_000  # What one query read is gone before the next.
    subject.heads["main"] = World(catalog, {name: {} for name in catalog.nodes}, {name: {} for name in catalog.edges})
    nodes = random.choice((0, 4, 12, 18, 18, *[25] * 7))
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
    """Rename a property of main, let another take its name, and add one."""
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
    """Make the schema main's; its rows go with it."""
    done = subject.graph.apply_schema(schema_text(subject.schema))
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
    """Merge some rows, of which some are there already; a property that a record lacks keeps its value."""
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
    # What follows is the id that the key gives; see `schema-language.md` §6.
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
        case _:
            return f"n{number}", {"id": f"n{number}", **data}


def delete_nodes(subject: Subject, branch: str) -> None:
    """Delete the nodes of a type that have one value; their edges go with them."""
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
    """Set one property of the nodes of a type that have one value."""
    random, catalog = subject.random, subject.heads[branch].catalog
    type_ = catalog.nodes[random.choice(list(catalog.nodes))]
    world = _copy(subject.heads[branch])
    where, json = _some_value(random, type_, world.nodes[type_.name])
    free = [p for p in type_.properties.values() if p.name not in type_.key]
    prop = random.choice(free)
    new = subject.values.json(random, prop.type, prop.name)
    if prop.type.enum_values or prop.type.scalar == "Blob":
        return
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
    """A property whose JSON and stored forms are alike, and a value it may have."""
    alike = [p for p in type_.properties.values() if p.type.scalar in ("String", "Bool", "I64") and not p.type.is_list]
    alike = [p for p in alike if not p.type.enum_values]
    prop = random.choice(alike)
    there = [row[prop.name] for row in rows.values() if row[prop.name] is not None]
    return prop.name, random.choice(there) if there else random.choice(POOLS[prop.type.scalar])


def world_of(graph: Graph, **where: Any) -> World:
    """A graph as the oracle sees it, from its export: that one reads the tables and knows nothing of queries."""
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


# -- queries -----------------------------------------------------------------------------------------

_NAMES = "abcdkmpwxyz"
_BOUNDS = ["", "", "", "", "{1,1}", "{1,2}", "{1,3}", "{2,2}", "{2,3}", "{3,3}", "{1,5}", "{2,4}"]
_COMPARE = ["=", "!=", "<", "<=", ">", ">="]
_LIMITS = [0, 1, 2, 2, 3, 3, 5, 5, 10, 100, 100, 100]
_PATTERNS = ["^a", "b$", "[a-c]+", "(?i)RED|Z", "é", "^$", ".", "^.{2,3}$", "[0-9]{4}"]
"""Regular expressions that mean the same to RE2 and to Python."""
_NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")
Scope = dict[str, NodeType | EdgeType | reads_paths.PathVariable]


@dataclass
class Asked:
    """A read and its parameters."""

    text: str
    params: dict[str, Any]


class Asking:
    """Writes one read over a catalog; most of what it writes compiles."""

    def __init__(self, random: Random, catalog: Catalog, values: Values) -> None:
        self.random = random
        self.values = values
        self.catalog = catalog
        self.declared: dict[str, str] = {}
        self.params: dict[str, Any] = {}
        self.free = random.sample(_NAMES, len(_NAMES))

    def query(self) -> Asked:
        random = self.random
        scope: Scope = {}
        clauses = self.block(scope, random.choice((0, 1, 1, 2, 2, 3, 4)), depth=0)
        match random.random():
            case chance if chance < 0.25:
                result = self.grouped(scope)
            case chance if chance < 0.5:
                result = self.ranked(scope) or self.listed(scope)
            case chance if chance < 0.6:
                result = self.distinct(scope)
            case _:
                result = self.listed(scope)
        declared = ", ".join(f"${name}: {type_}" for name, type_ in self.declared.items())
        match = "\n    ".join(clauses)
        return Asked(f"query q({declared}) {{\n  match {{\n    {match}\n  }}\n  {result}\n}}", self.params)

    # -- match -----------------------------------------------------------------------------------

    def block(self, scope: Scope, moves: int, depth: int) -> list[str]:
        random = self.random
        outer = dict(scope)
        steps = []
        if not scope or random.random() < 0.15:
            chance = random.random()
            first = self.keyed if chance < 0.25 else self.binding if chance < 0.8 else self.fresh_hop
            steps.append(first(scope))
        for _ in range(moves):
            chance = random.random()
            if random.random() < reads_paths.SHARE:
                steps.append(reads_paths.path(self, scope))
            elif chance < 0.6:
                steps.append(self.hop(scope))
            elif chance < 0.75:
                steps.append(self.again(scope))
            elif chance < 0.85 and len(self.nodes(scope)) < 3:
                steps.append(self.binding(scope))
        steps = [step for step in steps if step]
        if random.random() < 0.3:
            random.shuffle(steps)
        own = [name for name in scope if name not in outer]
        for _ in range(random.choice((0, 0, 0, 0, 0, 1, 1, 2))):
            steps.append(self.condition(scope, [*own, *outer] if depth else own))
        if depth and not steps:
            steps.append(self.condition(scope, list(outer)))
        for _ in range(random.choice((0, 0, 0, 1, 2)) if depth == 0 else random.choice((0, 0, 1)) if depth < 3 else 0):
            inner = dict(scope)
            body = " ".join(self.block(inner, random.randint(0, 2), depth + 1))
            steps.insert(random.randint(max(len(steps) - 1, 1), len(steps)), f"not {{ {body} }}")
        if depth < 2 and scope and random.random() < 0.2:
            steps += self.optional(scope, depth)
        return [step for step in steps if step]

    def optional(self, scope: Scope, depth: int) -> list[str]:
        """A block that may find nothing, and perhaps a condition on what it found."""
        inner = dict(scope)
        hop = reads_paths.path(self, inner) if self.random.random() < reads_paths.SHARE else self.hop(inner)
        body = " ".join([hop, *self.block(inner, 0, depth + 2)]) if hop else ""
        new = [name for name in inner if name not in scope and f"${name}" in body]
        scope |= {name: inner[name] for name in new}
        steps = [f"optional {{ {body} }}" if body else ""]
        if body and new and self.random.random() < 0.4:
            steps.append(self.condition(scope, new))
        return steps

    def nodes(self, scope: Scope) -> list[str]:
        return [name for name, type_ in scope.items() if isinstance(type_, NodeType)]

    def new_name(self, scope: Scope) -> str:
        name = self.free.pop() if self.free else f"v{len(scope)}"
        if self.random.random() < 0.2:
            self.free.insert(0, name)  # A name used only inside a `not` may come again.
            if name in scope:
                return self.new_name(scope)
        return name

    def binding(self, scope: Scope) -> str:
        name, spelt = self.new_name(scope), self.random.choice(list(self.catalog.nodes))
        if self.random.random() < (0.1 if self.nodes(scope) else 0.4):  # nothing may connect it to the others
            spelt = several_types(self)
        scope[name] = type_ = self.catalog.node(type_of(self.catalog, spelt))
        return f"${name}: {spelt}{self.pattern(type_)}"

    def keyed(self, scope: Scope) -> str:
        """A binding that says which node it is."""
        types = [type_ for type_ in self.catalog.nodes.values() if len(type_.key) == 1]
        if not types:
            return self.binding(scope)
        name, type_ = self.new_name(scope), self.random.choice(types)
        scope[name] = type_
        key = type_.key[0]
        return f"${name}: {type_.name} {{ {key}: {self.atom(type_.properties[key].type, key)} }}"

    def again(self, scope: Scope) -> str:
        """A binding of a variable that is bound already."""
        if not self.nodes(scope):
            return ""
        name = self.random.choice(self.nodes(scope))
        type_ = scope[name]
        assert isinstance(type_, NodeType)
        return f"${name}: {type_.name}{self.pattern(type_)}"

    def pattern(self, type_: NodeType) -> str:
        random = self.random
        props = [p for p in type_.properties.values() if p.type.scalar != "Vector"]
        chosen = random.sample(props, min(len(props), random.choice((0, 0, 0, 0, 0, 0, 1, 2))))
        matches = []
        for prop in chosen:
            item = prop.type.item if prop.type.is_list else prop.type
            matches.append(f"{prop.name}: {self.atom(item, prop.name)}")
        return f" {{ {', '.join(matches)} }}" if matches else ""

    def hop(self, scope: Scope) -> str:
        random = self.random
        nodes = self.nodes(scope)
        if not nodes:
            return ""
        near = random.choice(nodes)
        if random.random() < 0.1:
            return mixed_hop(self, scope, near)
        if random.random() < 0.2:
            return any_hop(self, scope, near, random.choice(("_", *nodes, self.new_name(scope), self.new_name(scope))))
        types = self.catalog.members(scope[near].name)
        edges = [edge for edge in self.catalog.edges.values() if {edge.from_type, edge.to_type} & {*types}]
        if not edges:
            return ""
        edge = random.choice(edges)
        far_type = edge.to_type if edge.from_type in types else edge.from_type
        same = [name for name in nodes if far_type in self.catalog.members(scope[name].name)]
        chance = random.random()
        if chance < 0.2:
            far = "_"
        elif chance < 0.4 and same:
            far = random.choice(same)
        else:
            far = self.new_name(scope)
        left, right = (near, far) if random.random() < 0.5 else (far, near)
        ends = edge_ends(self, scope, left, edge, right)
        if far != "_" and far not in scope:
            scope[far] = self.catalog.nodes[ends[0] if far == left else ends[1]]
        return self.walk(scope, left, edge, right)

    def fresh_hop(self, scope: Scope) -> str:
        """A hop neither of whose ends is bound."""
        edge = self.random.choice(list(self.catalog.edges.values()))
        if self.random.random() < (0.03 if self.nodes(scope) else 0.2):
            return any_hop(self, scope, self.new_name(scope), self.random.choice(("_", self.new_name(scope))))
        left = "_" if self.random.random() < 0.2 else self.new_name(scope)
        if left != "_":
            scope[left] = self.catalog.nodes[edge.from_type]
        right = self.new_name(scope)
        scope[right] = self.catalog.nodes[edge.to_type]
        return self.walk(scope, left, edge, right)

    def walk(self, scope: Scope, left: str, edge: EdgeType, right: str) -> str:
        random = self.random
        word = edge.word if random.random() < 0.8 else edge.word.lower()
        alike = [e for e in self.catalog.edges.values() if (e.from_type, e.to_type) == (edge.from_type, edge.to_type)]
        several = random.random() < 0.25
        if several:
            word = "|".join([word, *(e.word for e in random.sample(alike, random.randint(1, len(alike))))])
        if edge.from_type == edge.to_type and random.random() < 0.3:
            word = f"<{word}>"
        if random.random() < 0.25 and not several:
            name = "_" if random.random() < 0.1 else self.new_name(scope)
            if name != "_":
                scope[name] = edge
            return f"${left} ${name}:{word} ${right}"
        return f"${left} {word}{random.choice(_BOUNDS)} ${right}"

    # -- conditions ------------------------------------------------------------------------------

    def condition(self, scope: Scope, names: Sequence[str], depth: int = 0) -> str:
        """A condition; now and then one put together from others."""
        chance = self.random.random()
        of_paths = reads_paths.tests(self.random, {name: scope[name] for name in names})
        if of_paths and chance < 0.5:
            return self.random.choice(of_paths)
        if chance < 0.25 and depth < 3:
            parts = [self.condition(scope, names, depth + 1) for _ in range(self.random.choice((2, 2, 3)))]
            joined = self.random.choice((" and ", " or ")).join(part for part in parts if part)
            return f"({joined})" if joined and depth else joined
        if chance < 0.35 and depth < 3:
            inner = self.condition(scope, names, depth + 1)
            return f"not {inner}" if inner else ""
        if random_function(self.random):
            return reads_functions.test(self, {name: scope[name] for name in names})
        if chance < 0.42 and names:
            return entity_test(self, scope, list(names))
        if chance < 0.55:
            return self.newer_test(scope, names)
        return self.plain_test(scope, names)

    def newer_test(self, scope: Scope, names: Sequence[str]) -> str:
        """A test that came later than the six comparisons."""
        random = self.random
        props = [(n, p) for n in names for p in scope[n].properties.values() if p.type.scalar != "Vector"]
        if not props:
            return ""
        name, prop = random.choice(props)
        own, type_ = f"${name}.{prop.name}", prop.type
        if random.random() < 0.25 or type_.is_list:
            return f"{own} is {random.choice(('', 'not '))}null"
        if random.random() < 0.4:
            return f"{own} {random.choice(('in', 'not in'))} {self.listing(type_)}"
        if random.random() < 0.3:
            items = ", ".join(self.operand(scope, type_, prop.name) for _ in range(random.randint(1, 3)))
            return f"{own} {random.choice(('in', 'not in'))} [{items}]"
        if type_.scalar == "Bool" and random.random() < 0.6:
            return own
        if type_.is_text:
            op = random.choice(("ends_with", "icontains", "istarts_with", "iends_with", "matches"))
            if op == "matches":
                return f"{own} matches {quoted(random.choice(_PATTERNS))}"
            return f"{own} {op} {self.atom(type_, prop.name)}"
        if type_.scalar in _NUMBERS:
            return f"{self.number(scope, own)} {random.choice(_COMPARE)} {self.number(scope, None)}"
        return f"coalesce({own}, {self.atom(type_, prop.name)}) {random.choice(_COMPARE)} {self.atom(type_, prop.name)}"

    def number(self, scope: Scope, own: str | None, depth: int = 0) -> str:
        """A number, computed or not."""
        random = self.random
        known = [of for scalar in _NUMBERS for of in self.properties(scope, scalar)]
        known += reads_paths.numbers(scope)
        if own is None:
            own = random.choice(known) if known and random.random() < 0.5 else str(random.choice((0, 1, 2, 7, -3, 2.5)))
        if depth > 1 or random.random() < 0.3:
            return own
        if random.random() < reads_functions.SHARE:
            return reads_functions.numeric(self, scope)
        match random.randrange(8):
            case 0:
                return f"-({own})"
            case 1:
                return f"length({random.choice([*self.properties(scope, 'String'), quoted('aé')])})"
            case 2:
                return f"coalesce({own}, {random.choice(('0', '1.5', '-2'))})"
            case _:
                op = random.choice(("+", "-", "*", "/", "+", "-", "*", "%"))
                return f"({own} {op} {self.number(scope, None, depth + 1)})"

    def plain_test(self, scope: Scope, names: Sequence[str]) -> str:
        random = self.random
        props = [(n, p) for n in names for p in scope[n].properties.values() if p.type.scalar != "Vector"]
        if not props:
            return ""
        name, prop = random.choice(props)
        own, type_ = f"${name}.{prop.name}", prop.type
        if type_.is_list:
            return f"{own} contains {self.operand(scope, type_.item, prop.name)}"
        if _is_prose(type_, prop.name) and isinstance(scope[name], NodeType) and random.random() < 0.7:
            return self.text_call(own)
        if random.random() < 0.12:
            return f"{self.listing(type_)} contains {own}"
        if type_.is_text and random.random() < 0.4:
            op = random.choice(("contains", "starts_with"))
        else:
            op = random.choice(_COMPARE)
        sides = [own, self.operand(scope, type_, prop.name)]
        if random.random() < 0.25:
            sides.reverse()
        return f"{sides[0]} {op} {sides[1]}"

    def text_call(self, of: str) -> str:
        random = self.random
        match random.randrange(4):
            case 0:
                return f"match_text({of}, {self.words()}{random.choice(('', ', all'))})"
            case 1:
                edits = random.choice(("", "", ", 0", ", 1", ", 3"))
                if random.random() < 0.2:
                    edits = f", {self.param('U32', random.randrange(4))}"
                return f"fuzzy({of}, {self.words()}{edits})"
            case _:
                return f"search({of}, {self.words()}{random.choice(('', ', all'))})"

    def words(self) -> str:
        said = self.values.text(self.random)
        if self.random.random() < 0.03:
            return self.param("String?", None)
        return self.param("String", said) if self.random.random() < 0.4 else quoted(said)

    def operand(self, scope: Scope, type_: PropertyType, name: str) -> str:
        """Something a property of this type can be compared with."""
        random = self.random
        if random.random() < 0.3:
            others = [
                f"${n}.{p.name}"
                for n, t in scope.items()
                for p in t.properties.values()
                if not p.type.is_list and _comparable(p.type, type_)
            ]
            if others:
                return random.choice(others)
        return self.atom(type_, name)

    def atom(self, type_: PropertyType, name: str) -> str:
        """A literal or a parameter to compare a value of this type with."""
        random = self.random
        if type_.scalar == "DateTime" and random.random() < 0.15:
            return "now()"
        scalar = type_.scalar
        if scalar in _NUMBERS and random.random() < 0.4:
            scalar = random.choice(_NUMBERS)
        if type_.enum_values:
            item: Any = random.choice(type_.enum_values)
        elif _is_prose(type_, name) and random.random() < 0.5:
            item = self.values.text(random)
        elif name in ("name", "number", "part"):
            item = f"n{random.randrange(20)}" if scalar == "String" else random.randrange(8)
            item = float(item) if scalar in ("F32", "F64") else item
        else:
            item = self.values.one(random, scalar)
        literal = self.literal(item, scalar)
        if literal is None or random.random() < 0.4:
            if random.random() < 0.06:
                return self.param(f"{scalar}?", None)
            if scalar in ("I64", "U64") and random.random() < 0.3:
                item = str(item)
            return self.param(scalar + random.choice(("", "?")), item)
        return literal

    def literal(self, item: Any, scalar: str) -> str | None:
        match scalar:
            case "Date":
                return f'date("{item}")'
            case "DateTime":
                return f'datetime("{item}")'
            case "String":
                return quoted(item)
            case "Bool":
                return str(item).lower()
            case "F32" | "F64":
                shown = format(item, "f") if float(format(item, "f")) == item else repr(item)
                return shown if item >= 0 and "e" not in shown and not shown.startswith("-") else None
            case _:
                return str(item) if item >= 0 else None

    def listing(self, type_: PropertyType) -> str:
        """A list to look for a value of this type in."""
        scalar = self.random.choice(_NUMBERS) if type_.scalar in _NUMBERS else type_.scalar
        items = [self.values.one(self.random, scalar) for _ in range(self.random.randint(0, 4))]
        if type_.enum_values:
            items = ["red", "blue"]
        literals = [self.literal(item, scalar) for item in items]
        if self.random.random() < 0.5 or None in literals or not items:
            return self.param(f"[{scalar}]", items)
        return f"[{', '.join(str(item) for item in literals)}]"

    def param(self, type_: str, item: Any) -> str:
        """A new parameter; now and then its name is also that of a variable, which it then hides."""
        name = f"v{len(self.declared)}" if self.random.random() < 0.97 else self.random.choice(_NAMES)
        if name in self.declared:
            return self.param(type_, item)
        self.declared[name] = type_
        self.params[name] = item
        return f"${name}"

    # -- return, order, limit --------------------------------------------------------------------

    def listed(self, scope: Scope) -> str:
        items, aliases = self.aliased(self.items(scope), "xyz")
        sorts = self.sorts(scope, aliases)
        order = f"order {{ {', '.join(sorts)} }}" if sorts else ""
        limit = self.cut() if self.random.random() < 0.4 else ""
        return f"return {{ {', '.join(items)} }} {order}{limit}"

    def cut(self) -> str:
        """How many rows: in numbers or by parameters, after some that are skipped or not."""
        random = self.random
        limit, skip = random.choice(_LIMITS), random.choice((0, 1, 2, 5))
        parts = []
        if random.random() < 0.4:
            parts.append(f"skip {self.param('U32', skip) if random.random() < 0.5 else skip}")
        if random.random() < 0.8 or not parts:
            parts.append(f"limit {self.param('I64', limit) if random.random() < 0.3 else limit}")
        return " " + " ".join(parts)

    def distinct(self, scope: Scope) -> str:
        """Rows of the result that are equal are one."""
        random = self.random
        keys = list(dict.fromkeys(random.choice(self.properties(scope) or ["1"]) for _ in range(random.randint(1, 3))))
        if self.nodes(scope) and random.random() < 0.3:
            keys.append("$" + random.choice(self.nodes(scope)))
        plain = [k for k in keys if "." in k and self.sortable(scope, k)]
        sorts = [key + random.choice(("", " asc", " desc")) for key in plain if random.random() < 0.5]
        order = f"order {{ {', '.join(sorts)} }}" if sorts else ""
        if random.random() < 0.3:
            keys.insert(0, made(self, scope))
        return f"return distinct {{ {', '.join(keys)} }} {order}{self.cut() if random.random() < 0.3 else ''}"

    def sortable(self, scope: Scope, key: str) -> bool:
        name, prop = key[1:].split(".")
        type_ = scope[name].properties[prop].type
        return not type_.is_list and type_.scalar != "Vector"

    def ranked(self, scope: Scope) -> str | None:
        random = self.random
        ranks = [rank for name in self.nodes(scope) for rank in self.ranks(scope, name)]
        if not ranks:
            return None
        rank = random.choice(ranks)
        items, alias = self.items(scope), None
        if not rank.startswith("nearest") and random.random() < 0.4:
            alias = "score"
            items.insert(random.randint(0, len(items)), f"{rank} as score")
        elif random.random() < 0.5:
            items.append(f"{rank} as score")
        if random.random() < 0.4:
            items.append(random.choice(("why()", "{ w: why(), n: 1 }", f"{{ s: {rank} }}", "[why()]")))
        direction = random.choice(("", "", " asc", " desc")) if not rank.startswith("nearest") else ""
        sorts = [(alias or rank) + direction]
        if random.random() < 0.4:
            sorts += self.sorts(scope, [])
        limit = random.choice(_LIMITS)
        cut = f" limit {limit}" if not rank.startswith("bm25") or random.random() < 0.5 else ""
        if cut and random.random() < 0.2:
            cut = f" skip {random.choice((0, 1, 2))}{cut}"
        return f"return {{ {', '.join(items)} }} order {{ {', '.join(sorts)} }}{cut}"

    def aliased(self, items: list[str], names: str) -> tuple[list[str], list[str]]:
        """Some items under a name of their own, and some of these again; the names that can be sorted by."""
        given, sortable = [], []
        for item, name in zip(items, names.ljust(len(items), "_"), strict=False):
            if name != "_" and self.random.random() < 0.3:
                given.append(f"{item} as {name}")
                if "." in item or "(" in item:
                    sortable.append(name)
                if self.random.random() < 0.3:
                    given.append(name)
            else:
                given.append(item)
        return given, sortable

    def ranks(self, scope: Scope, name: str) -> list[str]:
        props = scope[name].properties.values()
        arms = [self.nearest(scope, name, p.name) for p in props if p.type.scalar == "Vector"]
        arms += [f"bm25(${name}.{p.name}, {self.words()})" for p in props if _is_prose(p.type, p.name)]
        arms = self.random.sample(arms, min(2, len(arms)))
        if len(arms) == 2 and self.random.random() < 0.7:
            several = [*arms, self.random.choice(arms)] if self.random.random() < 0.3 else arms
            weighed = [arm + self.random.choice(("", "", " * 2", " * 0.5")) for arm in several]
            return [*arms, f"rrf({', '.join(weighed)}{self.random.choice(('', ', 1', ', 7'))})"]
        return arms

    def nearest(self, scope: Scope, name: str, prop: str) -> str:
        dim = scope[name].properties[prop].type.dim
        vector = self.values.vector(self.random, dim)
        if min(vector) < 0 or self.random.random() < 0.5:
            return f"nearest(${name}.{prop}, {self.param(f'Vector({dim})', vector)})"
        return f"nearest(${name}.{prop}, {vector})"

    def items(self, scope: Scope) -> list[str]:
        random = self.random
        items = []
        of_paths = reads_paths.items(scope)
        if of_paths and random.random() < 0.7:
            items.append(random.choice(of_paths))
        if random_function(random):
            items.append(reads_functions.anything(self, scope))
        for _ in range(random.randint(1, 4)):
            match random.randrange(13):
                case 12 if scope:
                    items.append(entity_value(self, scope))
                case 0 if self.nodes(scope):
                    items.append("$" + random.choice(self.nodes(scope)))
                case 6:
                    items.append(self.number(scope, None))
                case 8:
                    items.append(made(self, scope))
                case 7:
                    items += [test] if (test := self.condition(scope, list(scope))) else []
                case 1:
                    items.append(random.choice(("now()", "1.50", '"x"', "true", "7", "[1, 2]", 'date("2020-02-02")')))
                case 2:
                    items.append(self.param("I64?", random.choice((None, 2**60))))
                case 3:
                    texts = self.properties(scope, "String", nodes=True)
                    items += [self.text_call(random.choice(texts))] if texts else []
                case 4:
                    texts = self.properties(scope, "String", nodes=True)
                    items += [f"bm25({random.choice(texts)}, {self.words()})"] if texts else []
                case 5:
                    vectors = self.properties(scope, "Vector", nodes=True)
                    items += [self.nearest(scope, *random.choice(vectors)[1:].split("."))] if vectors else []
                case _:
                    items += self.some(self.properties(scope))
        return items or ["1"]

    def properties(self, scope: Scope, scalar: str | None = None, *, nodes: bool = False) -> list[str]:
        return [
            f"${name}.{prop.name}"
            for name, type_ in scope.items()
            for prop in type_.properties.values()
            if (scalar is None or prop.type.scalar == scalar)
            and not (scalar and prop.type.is_list)
            and not (nodes and isinstance(type_, EdgeType))
        ]

    def some(self, things: Sequence[str]) -> list[str]:
        return [self.random.choice(things)] if things else []

    def sorts(self, scope: Scope, aliases: Sequence[str]) -> list[str]:
        random = self.random
        props = [
            f"${name}.{prop.name}"
            for name, type_ in scope.items()
            for prop in type_.properties.values()
            if not prop.type.is_list and prop.type.scalar != "Vector"
        ]
        known = [*props, *aliases, *aliases, *([entity_value(self, scope)] if scope else [])]
        known += reads_paths.numbers(scope)
        if props and random.random() < 0.2:
            known.append(f"({self.number(scope, None)} + 0)")
        known += [reads_functions.plain(self, scope)] if random_function(random) else []
        chosen = random.sample(known, min(len(known), random.choice((0, 1, 1, 2, 3))))
        return [key + random.choice(("", " asc", " desc")) for key in chosen]

    def grouped(self, scope: Scope) -> str:
        random = self.random
        keys = [random.choice(self.properties(scope)) for _ in range(random.choice((0, 1, 1, 2)))]
        keys = [key for key in keys if key] if self.properties(scope) else []
        keys += [entity_value(self, scope)] if scope and random.random() < 0.15 else []
        if random_function(random):
            keys.append(reads_functions.plain(self, scope))
        if random.random() < 0.3:
            keys += self.some(reads_paths.numbers(scope))
        if self.nodes(scope) and random.random() < 0.25:
            keys.append("$" + random.choice(self.nodes(scope)))
        items, aliases, counts = list(dict.fromkeys(keys)), [], []
        for number in range(random.randint(1, 3)):
            call = self.aggregate(scope)
            items.append(f"{call} as n{number}")
            if not call.startswith("collect"):
                aliases.append(f"n{number}")
            if call.startswith("count"):
                counts.append(f"n{number}")
        for number in range(random.choice((0, 0, 1, 2))):
            item, ordered = computed(self, scope)
            items.append(f"{item} as m{number}")
            aliases += [f"m{number}"] if ordered else []
        if random.random() < 0.2:
            items.append(f"{made(self, scope)} as made")
        random.shuffle(items)
        sortable = [key for key in items if key.startswith("$") and "." in key]
        chosen = [key for key in [*sortable, *aliases] if random.random() < 0.4]
        random.shuffle(chosen)
        sorts = [key + random.choice(("", " asc", " desc")) for key in chosen]
        order = f"order {{ {', '.join(sorts)} }}" if sorts else ""
        limit = self.cut() if random.random() < 0.3 else ""
        having = ""
        if random.random() < 0.3:
            tests = [f"{name} {random.choice(_COMPARE)} {random.choice(('0', '1', '2.5'))}" for name in counts]
            tests += [f"{name} is {random.choice(('', 'not '))}null" for name in aliases]
            having = f"having {{ {random.choice((' or ', ' ')).join(random.sample(tests, min(2, len(tests))))} }} "
        word = "return distinct" if random.random() < 0.05 else "return"
        return f"{word} {{ {', '.join(items)} }} {having}{order}{limit}"

    def aggregate(self, scope: Scope) -> str:
        random = self.random
        function = random.choice(("count", "count", "sum", "avg", "min", "max", "collect"))
        distinct = "distinct " if random.random() < 0.25 else ""
        if function == "count":
            whole = ["$" + name for name in self.nodes(scope)]
            if not distinct:
                whole += [item for item in reads_paths.items(scope) if item.startswith("$")]
            plain = [p for p in self.properties(scope) if not distinct or self.sortable(scope, p)]
            return f"count({distinct}{random.choice([*whole, *whole, *plain, '1'])})"
        if function == "collect" and random.random() < 0.5:
            return gathered(self, scope)
        if function == "collect":
            plain = [p for p in self.properties(scope) if self.sortable(scope, p)]
            return f"collect({distinct}{random.choice(plain or ['1'])})"
        numbers = [of for scalar in _NUMBERS for of in self.properties(scope, scalar)]
        numbers += reads_paths.numbers(scope)
        if random_function(random):
            numbers.append(reads_functions.numeric(self, scope))
        if function in ("min", "max"):
            numbers += [
                of for scalar in ("String", "Bool", "Date", "DateTime") for of in self.properties(scope, scalar)
            ]
        return f"{function}({distinct}{random.choice([*numbers, '2'])})"


def random_function(random: Random) -> bool:
    """Whether a scalar function is called here."""
    return random.random() < reads_functions.SHARE


def _comparable(a: PropertyType, b: PropertyType) -> bool:
    return a.scalar == b.scalar != "Vector" or (a.scalar in _NUMBERS and b.scalar in _NUMBERS)


def quoted(words: str) -> str:
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"') + '"'
