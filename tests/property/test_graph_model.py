"""Random lives of a graph against a plain-dict model of it.

A step is a mutation, a load, a schema change, a branch operation, a reopening or maintenance, valid or not.
The model (`support.graph_model`) says from the specification alone what must come of it: rows, counts, the
error and the rule it names, the history. After every step the graph is read and must be what the model says;
a second branch and an earlier commit are looked at too.

What a step does is drawn from its seed and the model's state, so Hypothesis shrinks a failure to few steps,
and each prints what it did.
"""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic, time_ns
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

import omnigraph as og
from omnigraph.errors import Damaged, OmniGraphError
from omnigraph.graph import Graph
from omnigraph.operations.load_result import Reject
from support.graph_model import (
    AnyType,
    Delete,
    EdgeType,
    Insert,
    KeyTaken,
    NodeType,
    Prop,
    Record,
    Refusal,
    Row,
    Schema,
    Statement,
    Tables,
    Update,
    Upsert,
    Where,
    Write,
    apply_write,
    bind_ids,
    derived_id,
    drop_property,
    f32,
    is_unknown,
    judge,
    load_records,
    rename_property,
    run_statements,
)
from support.store import repository_of

HOUR_US = 3_600_000_000
GHOST = "nobody"

START = Schema(
    nodes={
        "Person": NodeType(
            "Person",
            {
                "age": Prop("I32"),
                "born": Prop("Date"),
                "email": Prop("String"),
                "mood": Prop("enum", values=("calm", "wild")),
                "name": Prop("String", nullable=False),
                "score": Prop("F64"),
            },
            key=("name",),
            unique=(("email",),),
            ranges={"age": (0, 120), "score": (-1.5, None)},
            checks={"email": "@"},
        ),
        "Place": NodeType(
            "Place",
            {
                "city": Prop("String", nullable=False),
                "code": Prop("U32", nullable=False),
                "kind": Prop("enum", nullable=False, values=("big", "small")),
                "label": Prop("String"),
            },
            key=("city", "code"),
            unique=(("kind", "label"),),
        ),
        "Item": NodeType(
            "Item",
            {
                "size": Prop("U64"),
                "price": Prop("F64"),
                "quantity": Prop("I32", nullable=False),
                "sku": Prop("I64", nullable=False),
            },
            key=("sku",),
            unique=(("price",),),
            ranges={"quantity": (None, 10)},
        ),
        "Note": NodeType(
            "Note",
            {
                "at": Prop("DateTime"),
                "body": Prop("Blob"),
                "done": Prop("Bool"),
                "tags": Prop("[I64]"),
                "text": Prop("String", nullable=False, indexed=True),
                "vector": Prop("Vector(2)"),
                "weight": Prop("F32"),
            },
        ),
    },
    edges={
        "Knows": EdgeType("Knows", "Person", "Person", {"since": Prop("Date")}, unique=(("dst", "src"),)),
        "LivesIn": EdgeType("LivesIn", "Person", "Place", {"share": Prop("F32")}, card=(0, 1)),
        "About": EdgeType(
            "About",
            "Note",
            "Person",
            {"grade": Prop("enum", values=("a", "b")), "mark": Prop("I32", nullable=False)},
            unique=(("mark",),),
            card=(1, 2),
        ),
        "Holds": EdgeType("Holds", "Place", "Item"),
    },
)

NEW_PROPERTIES = ("alpha", "beta", "gamma")
NEW_NODES = ("Robot", "Tree")
NEW_EDGES = ("Likes", "Owns")

SEEDS = [
    {"type": "Person", "data": {"name": "a", "age": 7}},
    {"type": "Person", "data": {"name": "b", "email": "a@b"}},
    {"type": "Person", "data": {"name": "Z"}},
    {"type": "Place", "data": {"city": "a", "code": 7, "kind": "big"}},
    {"type": "Place", "data": {"city": "b", "code": 0, "kind": "small", "label": "a"}},
    {"type": "Item", "data": {"sku": 1, "quantity": 2, "price": 0.1}},
    {"type": "Note", "data": {"id": "n0", "text": "a"}},
    {"type": "Note", "data": {"id": "n1", "text": "b", "tags": [1, 2]}},
    {"edge": "Knows", "from": "a", "to": "b", "data": {"id": "e0"}},
    {"edge": "LivesIn", "from": "a", "to": '["a","7"]', "data": {"id": "e0"}},
    {"edge": "About", "from": "n0", "to": "a", "data": {"id": "e0", "mark": 1}},
    {"edge": "Holds", "from": '["a","7"]', "to": "1", "data": {"id": "e0"}},
]

STEPS = [
    *["mutate"] * 24,
    *["load"] * 16,
    *["change_schema"] * 8,
    *["mutate_wrongly"] * 6,
    *["switch_branch"] * 5,
    *["ingest", "change_schema_wrongly", "create_branch", "tend"] * 4,
    *["delete_branch", "reopen", "cleanup"] * 3,
    *["round_trip"] * 2,
]


# -- values ------------------------------------------------------------------------------------------


def days(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


def milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def base64_of(data: bytes) -> str:
    return "base64:" + base64.b64encode(data).decode()


# Each as JSON gives it and as it is stored.
VALUES: dict[str, list[tuple[Any, Any]]] = {
    "String": [(text, text) for text in ("a", "b", "a@b", "it's @", "é@", "Z", "`", "x\ny")],
    "Bool": [(True, True), (False, False)],
    "I32": [(n, n) for n in (0, 1, 2, 7, 10, 120, -1, 2**31 - 1)],
    "I64": [(n, n) for n in (0, 1, 2, 7, -5, 2**53 + 1, -(2**63))],
    "U32": [(n, n) for n in (0, 1, 7, 2**32 - 1)],
    "U64": [(n, n) for n in (0, 1, 2**53 + 1, 2**64 - 1)],
    "F32": [(0.1, f32(0.1)), (1, 1.0), (-2.5, -2.5), (16777217, 16777216.0)],
    "F64": [(0.1, 0.1), (1, 1.0), (-1.5, -1.5), (0.0, 0.0), (-0.0, -0.0), (1e300, 1e300), (2**53 + 1, 2.0**53)],
    "Date": [("2024-02-29", days("2024-02-29")), (0, 0), ("1969-12-31", -1), ("1970-01-02T23:00:00-02:00", 2)],
    "DateTime": [
        ("2024-02-29T12:30:15.25Z", milliseconds("2024-02-29T12:30:15.250+00:00")),
        (1500, 1500),
        ("1970-01-01 01:00+02:00", -3_600_000),
        ("1969-12-31", -86_400_000),
    ],
    "Blob": [(base64_of(data), base64_of(data)) for data in (b"", b"\x00\xff", b"text")],
    "[I64]": [([], []), ([1, 2], [1, 2]), ([2**62], [2**62])],
    "Vector(2)": [([0.5, 1], [0.5, 1.0]), ([0, 0.1], [0.0, f32(0.1)])],
}
# Each with words the message must have.
WRONG: dict[str, list[tuple[Any, str]]] = {
    "String": [(3, ""), (["a"], "")],
    "Bool": [(1, ""), ("true", "")],
    "I32": [(2**31, "exceeds Int32 range"), (1.5, ""), ("1", ""), (True, "")],
    "I64": [(2**63, "exceeds Int64 range"), (3.0, "")],
    "U32": [(-1, ""), (2**32, "exceeds UInt32 range")],
    "U64": [(-1, ""), (2**64, "exceeds UInt64 range")],
    "F32": [(1e39, ""), ("1", ""), (True, "")],
    "F64": [("0.5", ""), (10**400, ""), (False, "")],
    "Date": [("2024-13-01", ""), (1.5, ""), ("soon", ""), (2**31, "")],
    "DateTime": [("2024-02-29T25:00", ""), (True, ""), ("", "")],
    "Blob": [("base64:*", ""), ("https://example.org/x", ""), (1, "")],
    "[I64]": [([1, "x"], ""), ([None], ""), (3, ""), ([1.5], "")],
    "Vector(2)": [([1], "2 dimensions, got 1"), ([1, "x"], "elements must be numeric"), ([1, None], ""), (0.5, "")],
    "enum": [(3, ""), (["a"], "")],
}
ARROW: dict[str, pa.DataType] = {
    "String": pa.utf8(),
    "enum": pa.utf8(),
    "Bool": pa.bool_(),
    "I32": pa.int32(),
    "I64": pa.int64(),
    "U32": pa.uint32(),
    "U64": pa.uint64(),
    "F32": pa.float32(),
    "F64": pa.float64(),
    "Date": pa.date32(),
    "DateTime": pa.timestamp("ms", "UTC"),
    "Blob": pa.large_binary(),
    "[I64]": pa.list_(pa.int64()),
    "Vector(2)": pa.list_(pa.float32(), 2),
}
INTEGERS = ("I32", "I64", "U32", "U64")
NUMBERS = (*INTEGERS, "F32", "F64")
COMPARABLE = (*NUMBERS, "String", "enum", "Bool", "Date", "DateTime")


def sample(random: Random, prop: Prop) -> tuple[Any, Any]:
    """A value of a property as JSON and as stored; rarely an enum value that is none."""
    if prop.type == "enum":
        value = random.choice(prop.values) if random.random() < 0.95 else "odd"
        return value, value
    return random.choice(VALUES[prop.type])


def sample_or_null(random: Random, prop: Prop) -> tuple[Any, Any]:
    return (None, None) if prop.nullable and random.random() < 0.3 else sample(random, prop)


# -- queries -----------------------------------------------------------------------------------------


class QueryText:
    """Writes a query: each value becomes a literal or a parameter."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.declared: list[str] = []
        self.params: dict[str, Any] = {}

    def value(self, prop: Prop, given: Any) -> str:
        literal = None if self.random.random() < 0.7 else _literal(prop, given)
        if literal is not None:
            return literal
        type_ = "String" if prop.type == "enum" or (prop.type == "Blob" and self.random.random() < 0.5) else prop.type
        if prop.type in INTEGERS and isinstance(given, int) and self.random.random() < 0.2:
            given = str(given)
        return self.param(type_ + ("?" if given is None or self.random.random() < 0.2 else ""), given)

    def param(self, type_: str, given: Any) -> str:
        name = f"p{len(self.declared)}"
        self.declared.append(f"${name}: {type_}")
        if given is not None or self.random.random() < 0.5:
            self.params[name] = given
        return f"${name}"

    def text(self, statements: Sequence[str]) -> str:
        return f"query q({', '.join(self.declared)}) {{\n  " + "\n  ".join(statements) + "\n}"


def _literal(prop: Prop, given: Any) -> str | None:
    match prop.type, given:
        case ("String" | "enum", str()) if given.isprintable():
            return json.dumps(given, ensure_ascii=False)
        case ("Date", str()) if len(given) == 10:
            return f'date("{given}")'
        case ("DateTime", str()):
            return f'datetime("{given}")'
        case ("Bool", bool()):
            return "true" if given else "false"
        case (kind, int()) if kind in NUMBERS and given >= 0:
            return str(given)
        case ("F32" | "F64", float()) if 0 < given < 100:
            return str(given)
        case ("[I64]", list()) if given:
            return str(given)
    return None


# -- the machine -------------------------------------------------------------------------------------


@dataclass
class ModelCommit:
    """What the model knows of a commit; `pins` tell table versions apart."""

    id: str
    parent: ModelCommit | None
    kind: str
    schema: Schema
    tables: Tables
    pins: dict[str, int]
    actor: str | None = None

    def line(self) -> list[ModelCommit]:
        """This commit and those before it."""
        found = [self]
        while found[-1].parent is not None:
            found.append(found[-1].parent)
        return found


@dataclass
class Branch:
    head: ModelCommit
    fork: ModelCommit | None


@dataclass
class Tally:
    """What a run did, to be told at its end."""

    steps: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    commits: int = 0
    lives: int = 0


@dataclass
class Evolution:
    """A schema change: the new schema, the hints that say what was renamed, and what must come of it."""

    schema: Schema
    renamed: dict[str, str] = field(default_factory=dict)
    refusal: Refusal | None = None
    hard: bool = False


class GraphMachine(RuleBasedStateMachine):
    """One life of a graph."""

    tally = Tally()

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="model-"))
        self.uri = str(self.folder / "graph")
        self.now = time_ns() // 1000
        self.handles = [self.ticking(og.init(self.uri, START.text(), sync=False)), self.opened()]
        self.versions = count(1)
        tables: Tables = {type_.table: {} for type_ in START.types()}
        first = ModelCommit(
            self.handles[0].snapshot().commit_id,
            None,
            "init",
            START,
            tables,
            {key: next(self.versions) for key in tables},
        )
        self.branches = {"main": Branch(first, None)}
        self.commits = [first]
        self.branch = "main"
        self.gone: set[int] = set()
        """Table versions that may have been removed."""
        self.tally.lives += 1
        self.load_seeds()

    def teardown(self) -> None:
        assert self.handles[0].verify() == []
        shutil.rmtree(self.folder)

    def clock(self) -> int:
        return self.now

    def ticking(self, graph: Graph) -> Graph:
        """The graph under the clock of this life."""
        repository_of(graph).clock = self.clock
        return graph

    def opened(self) -> Graph:
        return self.ticking(og.open(self.uri, sync=False))

    def load_seeds(self) -> None:
        result = self.handles[0].load(SEEDS, mode="append")
        tables = _tables_of(SEEDS)
        for node in START.nodes.values():
            if node.key:
                tables[node.table] = {derived_id(node, row): row for row in _rows_of(SEEDS, node)}
        for type_ in START.types():
            tables[type_.table] = {id_: dict.fromkeys(type_.props) | row for id_, row in tables[type_.table].items()}
        self.landed("load", result.commit_id, tables, list(tables))

    # -- what the model says now ---------------------------------------------------------------------

    @property
    def head(self) -> ModelCommit:
        return self.branches[self.branch].head

    @property
    def schema(self) -> Schema:
        return self.head.schema

    @property
    def tables(self) -> Tables:
        return self.head.tables

    # -- a step --------------------------------------------------------------------------------------

    @rule(what=st.sampled_from(STEPS), seed=st.integers(0, 2**32 - 1), size=st.integers(1, 8))
    def step(self, what: str, seed: int, size: int) -> None:
        self.tally.steps[what] += 1
        self.now = max(self.now + 1000, time_ns() // 1000)
        random = Random(seed)
        graph = random.choice(self.handles)
        if what in ("load", "ingest"):
            getattr(self, what)(random, graph, size)
        else:
            getattr(self, what)(random, graph)
        self.check(random)

    # -- what came of a step -------------------------------------------------------------------------

    def attempt(self, refusals: Sequence[Refusal], action: Callable[[], Any]) -> Any:
        """Do it; an error must be one of those that may come, and must come when there is one."""
        try:
            result = action()
        except OmniGraphError as error:
            self.refused(error, refusals)
            return None
        assert not refusals, f"accepted what must be refused: {refusals}"
        assert result is not None
        return result

    def refused(self, error: OmniGraphError, refusals: Sequence[Refusal]) -> None:
        said = f"{error.code}: {error}"
        assert refusals, f"refused a sound step: {said}"
        assert any(_fits(error, refusal) for refusal in refusals), f"{said}\nexpected one of {refusals}"
        self.tally.refused[error.code] += 1

    def landed(
        self, kind: str, commit_id: str | None, tables: Tables, touched: Sequence[str], schema: Schema | None = None
    ) -> None:
        """A commit was made on the current branch."""
        graph = self.handles[0]
        commit = graph.commit(graph.snapshot(self.branch).commit_id)
        assert commit.id == (commit_id or commit.id)
        assert (commit.parent_id, commit.kind, commit.branch) == (self.head.id, kind, self.branch)
        if any(is_unknown(id_) for rows in tables.values() for id_ in rows):
            actual = _tables_of(graph.export(branch=self.branch))
            tables = {key: bind_ids(rows, actual.get(key, {})) for key, rows in tables.items()}
        old = self.head
        schema = schema or old.schema
        pins = {key: next(self.versions) if key in touched else old.pins[key] for key in tables}
        made = ModelCommit(commit.id, old, kind, schema, tables, pins)
        self.commits.append(made)
        self.branches[self.branch].head = made
        self.tally.commits += 1

    def check(self, random: Random) -> None:
        """Everything readable agrees with the model."""
        graph = random.choice(self.handles)
        assert graph.branches() == ["main", *sorted(set(self.branches) - {"main"})]
        for branch in dict.fromkeys([self.branch, random.choice(list(self.branches))]):
            head = self.branches[branch].head
            snapshot = graph.snapshot(branch)
            assert snapshot.commit_id == head.id
            assert {key: table.pin.row_count for key, table in snapshot.tables.items()} == {
                key: len(rows) for key, rows in head.tables.items()
            }
            assert _lines(graph.export(branch=branch)) == _lines(_expected(head))
            assert [commit.id for commit in graph.commits(branch)] == [commit.id for commit in head.line()]
        self.check_history(random, graph)

    def check_history(self, random: Random, graph: Graph) -> None:
        """An earlier commit still says what it said, unless it may have been forgotten."""
        commit = random.choice(self.commits)
        key = random.choice(list(commit.tables))
        name = key.partition(":")[2]
        kept = commit.pins[key] not in self.gone
        ids = [*commit.tables[key], GHOST]
        id_ = random.choice(ids)
        # A name that is a node's and an edge's means the node.
        if key.startswith("edge:") and name in commit.schema.nodes:
            return
        try:
            row = graph.entity_at(name, id_, commit.id)
            assert _plain(row) == _plain(_with_id(id_, commit.tables[key].get(id_)))
            if not self.gone.intersection(commit.pins.values()):
                assert _lines(graph.export(at=commit.id)) == _lines(_expected(commit))
        except Damaged as error:
            self.refused(error, [] if kept else [Refusal("version_reclaimed")])

    # -- mutations -----------------------------------------------------------------------------------

    def mutate(self, random: Random, graph: Graph) -> None:
        query = QueryText(random)
        some = self.some_delete if random.random() < 0.3 else self.some_write
        made: list[tuple[str, Statement]] = []
        for _ in range(random.choice((1, 1, 2, 3, 4))):
            made.append(some(random, query, [statement for _, statement in made]))
        text = query.text([text for text, _ in made])
        statements = [statement for _, statement in made]
        nodes, edges, write, refusals = 0, 0, {}, []
        try:
            nodes, edges, write = run_statements(self.schema, self.tables, statements)
            refusals = judge(self.schema, self.tables, write)
        except KeyTaken as taken:
            refusals = [Refusal("key_conflict", (f"'{taken.id}'",))]
        note(f"mutate {self.branch}: {text} {query.params}")
        options: dict[str, Any] = {}
        if random.random() < 0.2:
            options["if_commit"] = random.choice([self.head, *self.commits[-3:]]).id
            if options["if_commit"] != self.head.id:
                refusals = [Refusal("precondition_failed")]
        result = self.attempt(refusals, lambda: graph.mutate(text, params=query.params, branch=self.branch, **options))
        if result is not None:
            assert (result.affected_nodes, result.affected_edges) == (nodes, edges)
            assert (result.commit_id is not None) == bool(write)
            if write:
                self.landed("mutation", result.commit_id, apply_write(self.tables, write), list(write))

    def some_write(self, random: Random, query: QueryText, earlier: Sequence[Statement]) -> tuple[str, Statement]:
        settable = {type_.table: [n for n in type_.props if n not in _key(type_)] for type_ in self.schema.types()}
        updatable = [t for t in self.schema.types() if settable[t.table] and _comparable(t)]
        if updatable and random.random() < 0.4:
            changed = _kin(random, updatable, earlier)
            name = random.choice(settable[changed.table])
            given, values = self.assigned(random, query, {name: changed.props[name]})
            condition, where = self.some_where(random, query, changed, earlier)
            return f"update {changed.name} set {{ {given} }} where {condition}", Update(changed, values, where)
        type_ = _kin(random, [t for t in self.schema.types() if t.props or isinstance(t, EdgeType)], earlier)
        props = {n: p for n, p in type_.props.items() if not p.nullable or random.random() < 0.6}
        if isinstance(type_, NodeType):
            if not props:
                props = dict([random.choice(list(type_.props.items()))])
            given, values = self.assigned(random, query, props)
            if type_.key and len(props) > len(type_.key) and random.random() < 0.6:
                return f"upsert {type_.name} {{ {given} }}", Upsert(type_, values)
            return f"insert {type_.name} {{ {given} }}", Insert(type_, values)
        ends = {
            "src": self.some_end(random, type_.source, earlier),
            "dst": self.some_end(random, type_.target, earlier),
        }
        given, values = self.assigned(random, query, props)
        text = Prop("String", nullable=False)
        given = f"from: {query.value(text, ends['src'])}, to: {query.value(text, ends['dst'])}, {given}"
        return f"insert {type_.name} {{ {given} }}", Insert(type_, values | ends)

    def some_end(self, random: Random, node: str, earlier: Sequence[Statement]) -> str:
        made = [
            derived_id(s.type, s.values)
            for s in earlier
            if isinstance(s, Insert | Upsert) and isinstance(s.type, NodeType) and s.type.name == node and s.type.key
        ]
        ids = [*made, *self.tables[f"node:{node}"]]
        return random.choice(ids) if ids and random.random() < 0.93 else GHOST

    def assigned(self, random: Random, query: QueryText, props: Mapping[str, Prop]) -> tuple[str, Row]:
        texts, values = [], {}
        for name, prop in props.items():
            if prop.type == "DateTime" and random.random() < 0.3:
                texts.append(f"{name}: now()")
                values[name] = self.now // 1000
                continue
            given, values[name] = sample_or_null(random, prop)
            while prop.type in ("Date", "DateTime") and isinstance(given, int):
                given, values[name] = sample(random, prop)
            texts.append(f"{name}: {self.enum_safe(query, prop, given)}")
        return ", ".join(texts), values

    def enum_safe(self, query: QueryText, prop: Prop, given: Any) -> str:
        """A value outside its enum can only come by a parameter: as a literal it does not compile."""
        if prop.type == "enum" and given is not None and given not in prop.values:
            return query.param("String", given)
        return query.value(prop, given)

    def some_where(
        self, random: Random, query: QueryText, type_: AnyType, earlier: Sequence[Statement]
    ) -> tuple[str, Where]:
        """A condition, preferably about what earlier statements of the query wrote or asked for."""
        op = random.choice(("=", "=", "=", "=", "!=", "<", "<=", ">", ">="))
        choices = _comparable(type_)
        kin = [statement for statement in earlier if statement.type.table == type_.table]
        written = [statement.values for statement in kin if not isinstance(statement, Delete)]
        touched = {name for values in written for name in values}
        touched |= {statement.where.name for statement in kin if isinstance(statement, Update | Delete)}
        name = random.choice(sorted(choices.keys() & touched if random.random() < 0.7 else choices) or sorted(choices))
        prop = choices[name]
        shown = {"src": "from", "dst": "to"}.get(name, name)
        values = [row[name] for row in (*self.tables[type_.table].values(), *written) if name in row]
        value = random.choice(values) if values and random.random() < 0.7 else sample(random, prop)[1]
        given = _as_given(prop, value)
        if prop.type in INTEGERS and value is not None and random.random() < 0.3:
            value = random.choice((2.5, -0.5, 1e30, float(value), value + 2**40))
            type_text = "F64" if isinstance(value, float) else "U64" if value >= 2**63 else "I64"
            if isinstance(value, int) and value >= 2**64:
                value = 3
            return f"{shown} {op} {query.param(type_text, value)}", Where(name, op, value, prop)
        if prop.type in ("F32", "F64") and random.random() < 0.3:
            value = random.choice((0, 1, 2**53 + 1, -2))
            return f"{shown} {op} {query.param('I64', value)}", Where(name, op, value, prop)
        return f"{shown} {op} {query.value(replace(prop, nullable=True), given)}", Where(name, op, value, prop)

    def some_delete(self, random: Random, query: QueryText, earlier: Sequence[Statement]) -> tuple[str, Statement]:
        type_ = _kin(random, [type_ for type_ in self.schema.types() if _comparable(type_)], earlier)
        condition, where = self.some_where(random, query, type_, earlier)
        return f"delete {type_.name} where {condition}", Delete(type_, where)

    def mutate_wrongly(self, random: Random, graph: Graph) -> None:
        text, params, refusals = random.choice(list(self.wrong_mutations(random)))
        note(f"mutate wrongly: {text} {params}")
        self.attempt(refusals, lambda: graph.mutate(text, params=params, branch=self.branch))

    def wrong_mutations(self, random: Random) -> Iterator[tuple[str, dict[str, Any], list[Refusal]]]:
        """Queries that fail before any rule of the data is asked."""
        none: dict[str, Any] = {}
        yield "query q() { insert Nobody { name: 1 } }", none, [Refusal("T10", ("'Nobody'",))]
        yield "query q() { delete Nobody where a = 1 }", none, [Refusal("T10", ("'Nobody'",))]
        yield "query q() {", none, [Refusal("parse_error")]
        for type_ in self.schema.types():
            name = type_.name
            yield f"query q() {{ delete {name} where nothing = 1 }}", none, [Refusal("T11", ("'nothing'",))]
            yield f"query q($n: String) {{ insert {name} {{ nothing: $n }} }}", {"n": ""}, [Refusal("T11")]
            yield f"query q() {{ insert {name} {{ }} }}", none, [Refusal("T10"), Refusal("parse_error")]
            if isinstance(type_, EdgeType):
                text = f'query q() {{ update {name} set {{ from: "a" }} where to = "b" }}'
                yield text, none, [Refusal("T16", ("from",))]
                yield f'query q() {{ insert {name} {{ from: "a" }} }}', none, [Refusal("T12", ("to",))]
                yield f'query q() {{ insert {name} {{ from: "a", to: 3 }} }}', none, [Refusal("T3")]
            elif type_.key:
                key = type_.key[0]
                text = f"query q($k: String) {{ update {name} set {{ {key}: $k }} where {key} = $k }}"
                yield text, {"k": "a"}, [Refusal("type_error", ("@key",))]
            for p, prop in type_.props.items():
                yield from self.wrong_values(random, type_, p, prop)

    def wrong_values(
        self, random: Random, type_: AnyType, p: str, prop: Prop
    ) -> Iterator[tuple[str, dict[str, Any], list[Refusal]]]:
        none: dict[str, Any] = {}
        name = type_.name
        if prop.type == "Blob":
            yield f'query q() {{ delete {name} where {p} = "x" }}', none, [Refusal("T11", (p,))]
        elif prop.type not in COMPARABLE:
            yield f"query q() {{ delete {name} where {p} = 1 }}", none, [Refusal("T7")]
        else:
            wrong = "true" if prop.type not in ("Bool",) else "3"
            yield f"query q() {{ delete {name} where {p} = {wrong} }}", none, [Refusal("T7")]
        if isinstance(type_, EdgeType):
            return
        others = {n: other for n, other in type_.props.items() if not other.nullable and n != p}
        query = QueryText(random)
        rest, _ = self.assigned(random, query, others)
        start, params = (rest + ", " if rest else ""), query.params

        def insert(value: str, declared: Sequence[str] = ()) -> str:
            return f"query q({', '.join([*query.declared, *declared])}) {{ insert {name} {{ {start}{p}: {value} }} }}"

        if not prop.nullable:
            if others:
                text = f"query q({', '.join(query.declared)}) {{ insert {name} {{ {rest} }} }}"
                yield text, params, [Refusal("T12", (p,))]
            shown = "String" if prop.type == "enum" else prop.type
            nulls = [Refusal(code, (p,)) for code in ("bad_value", "required_property", "null_key")]
            yield insert("$x", [f"$x: {shown}?"]), params, nulls
        if prop.type == "enum":
            yield insert('"odd"'), params, [Refusal("T3", ("odd",))]
            return
        bad, _ = random.choice(WRONG[prop.type])
        codes = [Refusal("bad_parameter", ("'x'",)), Refusal("bad_value", (p,))]
        if prop.type in INTEGERS and isinstance(bad, str):
            bad = "1.0"
        yield insert("$x", [f"$x: {prop.type}"]), params | {"x": bad}, codes
        if prop.type in ("I32", "U32"):
            yield insert("$x", ["$x: I64"]), params | {"x": -(2**40)}, [Refusal("bad_value", (p,))]
        if prop.type in INTEGERS:
            yield insert("$x", ["$x: F64"]), params | {"x": 1.5}, [Refusal("bad_value", (p,))]
        if prop.type == "F32":
            yield insert("$x", ["$x: F64"]), params | {"x": 1e39}, [Refusal("bad_value", (p,))]
        yield insert("true" if prop.type != "Bool" else '"true"'), params, [Refusal("T3", (p,))]
        yield insert("$y"), params, [Refusal("T14", ("$y",))]
        mixed = insert("$x", [f"$x: {prop.type}?"])[:-2] + f" delete {name} where {next(iter(type_.props))} = $x }}"
        if prop.nullable and prop.type in COMPARABLE and next(iter(type_.props)) == p:
            yield mixed, params, [Refusal("D2")]

    # -- loads ---------------------------------------------------------------------------------------

    def load(self, random: Random, graph: Graph, size: int) -> None:
        mode = random.choice(("merge", "merge", "append", "overwrite"))
        tables = random.random() < 0.15
        raw, records, named = self.some_records(random, mode, size, strict=tables)
        given: Any = raw
        if tables:
            given = _as_arrow(self.schema, raw, named)
        elif random.random() < 0.5:
            given = self.as_file(random, raw, records)
        if tables:
            records = [replace(record, given=None) for record in records]
        loaded = load_records(self.schema, self.tables, mode, records, named if tables else ())
        note(f"load {mode} {self.branch}: {raw}")
        if mode != "overwrite" and not tables and random.random() < 0.2:
            self.load_what_is_right(graph, given, mode, records, sound=not loaded.refusals)
            return
        result = self.attempt(loaded.refusals, lambda: graph.load(given, mode=mode, branch=self.branch))
        if result is not None:
            assert dict(result.tables) == loaded.counts
            assert list(result.tables) == sorted(result.tables)
            self.loaded(result.commit_id, loaded.write)

    def load_what_is_right(
        self, graph: Graph, given: Any, mode: str, records: Sequence[Record], *, sound: bool
    ) -> None:
        """Wrong records are set aside, and only when there are some; the rest is as good as loaded alone."""
        rejects: list[Reject] = []
        result = graph.load(given, mode=mode, branch=self.branch, rejects=rejects)
        lines = {reject.line for reject in rejects}
        assert sound == (not rejects)
        kept = [replace(record) for record in records if record.line not in lines]
        assert len(kept) == len(records) - len(lines)
        loaded = load_records(self.schema, self.tables, mode, kept, ())
        assert loaded.refusals == []
        counts = Counter(record.type.table for record in kept if record.type is not None)
        assert {key: rows for key, rows in result.tables if rows} == counts
        self.tally.refused["set aside"] += len(rejects)
        self.loaded(result.commit_id, loaded.write)

    def loaded(self, commit_id: str | None, write: Write) -> None:
        after = apply_write(self.tables, write)
        touched = [key for key, change in write.items() if change.rows or (change.replaced and self.tables[key])]
        if commit_id is None:
            assert touched == [], "a load that changes a table is a commit"
            return
        self.landed("load", commit_id, after, touched)

    def ingest(self, random: Random, graph: Graph, size: int) -> None:
        branch, source = random.choice(("main", "b1", "b2")), random.choice([*self.branches, "missing"])
        if branch not in self.branches and source not in self.branches:
            self.attempt(
                [Refusal("branch_not_found", ("'missing'",))],
                lambda: graph.ingest([], branch=branch, from_branch=source),
            )
            return
        created = branch not in self.branches
        if created:
            self.branches[branch] = Branch(self.branches[source].head, self.branches[source].head)
        self.branch = branch
        mode = random.choice(("merge", "append"))
        raw, records, _ = self.some_records(random, mode, size, strict=False)
        loaded = load_records(self.schema, self.tables, mode, records, ())
        note(f"ingest {mode} {branch} from {source}: {raw}")
        result = self.attempt(loaded.refusals, lambda: graph.ingest(raw, branch=branch, from_branch=source, mode=mode))
        if result is not None:
            assert (result.branch, result.base_branch, result.branch_created) == (branch, source, created)
            assert dict(result.tables) == loaded.counts
            self.loaded(result.commit_id, loaded.write)

    def some_records(
        self, random: Random, mode: str, size: int, *, strict: bool
    ) -> tuple[list[Any], list[Record], list[str]]:
        """Records as given and as the model reads them; `strict` ones are well-formed."""
        types = random.sample(self.schema.types(), min(len(self.schema.types()), random.choice((1, 2, 3))))
        raw: list[Any] = []
        records: list[Record] = []
        if mode == "overwrite" and random.random() < 0.6:
            for type_ in types:
                for id_, row in self.tables[type_.table].items():
                    raw.append(_record(type_, id_, row))
                    records.append(Record(len(raw), type_, dict(row), id_))
        ends = {node: list(self.tables[f"node:{node}"]) for node in self.schema.nodes}
        for _ in range(size if random.random() < 0.95 else 0):
            type_ = random.choice(types)
            one, record = self.some_record(random, type_, len(raw) + 1, ends)
            raw.append(one)
            records.append(record)
        if not strict and raw and random.random() < 0.2:
            for _ in range(random.choice((1, 1, 2))):
                where = random.randrange(len(raw))
                if records[where].shape is None and not records[where].faults:
                    raw[where] = self.spoiled(random, raw[where], records[where])
        order = list(range(len(raw)))
        if not strict:
            random.shuffle(order)
        raw, records = [raw[i] for i in order], [records[i] for i in order]
        for line, record in enumerate(records, 1):
            _move(record, line)
        return raw, records, [type_.table for type_ in types]

    def some_record(
        self, random: Random, type_: AnyType, line: int, ends: dict[str, list[str]]
    ) -> tuple[dict[str, Any], Record]:
        data: dict[str, Any] = {}
        row: Row = {}
        for name, prop in type_.props.items():
            given, row[name] = sample_or_null(random, prop)
            if given is not None or random.random() < 0.3:
                data[name] = given
        id_: str | None = None
        if isinstance(type_, EdgeType):
            id_ = f"e{random.randrange(6)}" if random.random() < 0.5 else None
            for end, node in (("src", type_.source), ("dst", type_.target)):
                row[end] = random.choice(ends[node]) if ends[node] and random.random() < 0.93 else GHOST
            kind = type_.name.lower() if random.random() < 0.1 else type_.name
            record: dict[str, Any] = {"edge": kind, "from": row["src"], "to": row["dst"]}
        else:
            record = {"type": type_.name}
            if not type_.key:
                id_ = f"n{random.randrange(6)}" if random.random() < 0.6 else None
                ends[type_.name] += [id_] if id_ is not None else []
            else:
                derived = derived_id(type_, row)
                ends[type_.name].append(derived)
                if random.random() < 0.2:
                    id_ = derived
                whole = [row[name] for name in type_.key if type_.props[name].type in INTEGERS]
                if whole and random.random() < 0.1:
                    id_ = f"{'-' if whole[0] < 0 else ''}00{abs(whole[0])}"
                    ends[type_.name].append(id_)
        if id_ is not None:
            data["id"] = id_
        if data or random.random() < 0.5:
            record["data"] = data
        return record, Record(line, type_, row, id_, given=frozenset(data))

    def spoiled(self, random: Random, raw: dict[str, Any], record: Record) -> Any:
        """The same with one thing wrong, which the model is told."""
        type_ = record.type
        assert type_ is not None
        data = raw.setdefault("data", {})

        def shape(*words: str) -> None:
            record.shape = Refusal("bad_record", ("line {line}:", *words))

        def fault(*words: str) -> None:
            record.faults.append(Refusal("bad_record", ("line {line}:", *words)))

        choice = random.random()
        props = list(type_.props.items())
        if choice < 0.6 and props:
            name, prop = random.choice(props)
            if not prop.nullable and random.random() < 0.4:
                data[name] = None
                fault(f"{type_.name}.{name}")
            else:
                data[name], words = random.choice(WRONG[prop.type])
                fault(f"{type_.name}.{name}", words)
            return raw
        wrong = random.choice(("member", "data", "property", "both", "unknown", "column", "end", "list"))
        if wrong == "member":
            raw["extra"] = 1
            shape("'extra'")
        elif wrong == "data":
            raw["data"] = [1]
            shape("'data'")
        elif wrong == "property":
            data["nothing"] = None
            shape("'nothing'")
        elif wrong == "both":
            raw |= {"type": "Person", "edge": "Knows"}
            shape()
        elif wrong == "column":
            column = random.choice(("src", "dst", "_tombstone", "_rowid"))
            data[column] = "a"
            shape(f"'{column}'")
        elif wrong == "end" and isinstance(type_, EdgeType):
            end = random.choice(("from", "to"))
            raw[end] = random.choice((7, None))
            shape(f"'{end}'")
        elif wrong == "list":
            shape()
            return [raw]
        else:
            shape("'Nobody'")
            return {"type": "Nobody"}
        return raw

    def as_file(self, random: Random, raw: Sequence[Any], records: Sequence[Record]) -> Path:
        lines: list[str] = []
        for one, record in zip(raw, records, strict=True):
            while random.random() < 0.2:
                lines.append(random.choice(("", "  ", "// a remark", "\t// another")))
            lines.append(json.dumps(one, ensure_ascii=random.random() < 0.5))
            _move(record, len(lines))
            if record.shape is None and random.random() < 0.01:
                lines[-1] = random.choice(('{"type": ', '{"type": "Person", "type": "Person"}', "null"))
                record.shape = Refusal("bad_record", (f"line {len(lines)}:",))
        path = self.folder / "load.jsonl"
        path.write_text("\r\n".join(lines) if random.random() < 0.2 else "\n".join(lines) + "\n", encoding="utf-8")
        return path

    # -- schema changes ------------------------------------------------------------------------------

    def change_schema(self, random: Random, graph: Graph) -> None:
        change = Evolution(self.schema)
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            change = self.some_change(random, change)
        change.hard = random.random() < 0.15
        if random.random() < 0.1:
            change.schema = _reversed(change.schema)
        self.evolve(graph, change)

    def change_schema_wrongly(self, random: Random, graph: Graph) -> None:
        self.evolve(graph, self.unsupported_change(random))

    def evolve(self, graph: Graph, change: Evolution) -> None:
        old, new = self.schema, change.schema
        text = new.text(change.renamed)
        note(f"change schema of {self.branch}{' for good' if change.hard else ''}:\n{text}")
        refusals = [] if change.refusal is None else [change.refusal]
        plan = graph.plan_schema(text, branch=self.branch)
        assert plan.supported == (change.refusal is None)
        result = self.attempt(
            refusals, lambda: graph.apply_schema(text, branch=self.branch, allow_data_loss=change.hard)
        )
        if result is not None:
            assert result.applied == (result.commit_id is not None) == bool(result.steps) == _differs(old, new)
        if result is not None and result.applied:
            tables, pins = _migrated(self.head, new, change.renamed)
            touched = [key for key, pin in pins.items() if pin is None]
            before = self.head
            self.head.pins |= {key: pin for key, pin in pins.items() if pin is not None and key not in before.pins}
            self.landed("schema_apply", result.commit_id, tables, touched, new)
            assert graph.on(self.branch).schema == text
            if change.hard:
                self.purge(old, new)

    def purge(self, old: Schema, new: Schema) -> None:
        """Old versions of tables that lost something for good are gone, unless a head has them."""
        after = {type_.number: type_ for type_ in new.types()}
        lost = {
            type_.number
            for type_ in old.types()
            if type_.number not in after or len(after[type_.number].props) < len(type_.props)
        }
        held = {pin for branch in self.branches.values() for pin in branch.head.pins.values()}
        for commit in self.commits:
            for type_ in commit.schema.types():
                if type_.number in lost and commit.pins[type_.table] not in held:
                    self.gone.add(commit.pins[type_.table])

    def some_change(self, random: Random, change: Evolution) -> Evolution:
        """One more change that is supported."""
        schema, renamed = change.schema, dict(change.renamed)
        kinds = ("add", "add", "rename", "drop", "type", "type", "rename type", "drop type", "widen", "index", "note")
        kind = random.choice((*kinds, "nothing"))
        types = schema.types()
        if kind == "type":
            return replace(change, schema=self.with_new_type(random, schema))
        if not types or kind == "nothing":
            return change
        type_ = random.choice(types)
        touched = any(key.startswith(type_.table) for key in renamed) or type_.number not in self.numbers()
        plain = [name for name in type_.props if not _in_group(type_, name)]
        free = [name for name in NEW_PROPERTIES if name not in type_.props and not _was_here(self.schema, type_, name)]
        if kind == "add" and free:
            prop = random.choice(
                (Prop("String"), Prop("I32", indexed=True), Prop("enum", values=("x", "y")), Prop("F32"), Prop("Bool"))
                + ((Prop("Vector(2)"), Prop("[I64]"), Prop("Blob")) if isinstance(type_, NodeType) else ())
            )
            prop = prop if isinstance(type_, NodeType) else replace(prop, indexed=False)
            return replace(change, schema=schema.put(replace(type_, props={**type_.props, random.choice(free): prop})))
        known = [name for name in type_.props if _was_here(self.schema, type_, name)]
        if kind == "rename" and free and known and not touched:
            old, new = random.choice(known), random.choice(free)
            renamed[f"{type_.table}.{new}"] = old
            return replace(change, schema=schema.put(rename_property(type_, old, new)), renamed=renamed)
        if kind == "drop" and plain and not touched:
            return replace(change, schema=schema.put(drop_property(type_, random.choice(plain))))
        if kind == "rename type" and not touched:
            pool = (*NEW_NODES, "Human") if isinstance(type_, NodeType) else (*NEW_EDGES, "Meets")
            names = [n for n in pool if n not in _names(schema, type_) and n not in _names(self.schema, type_)]
            if names:
                return self.renamed_type(change, type_, random.choice(names))
        if kind == "drop type" and len(types) > 4 and not touched and not renamed:
            gone = [type_, *(schema.touching(type_.name) if isinstance(type_, NodeType) else ())]
            return replace(change, schema=schema.without(*gone))
        if kind == "widen":
            enums = [name for name, prop in type_.props.items() if prop.type == "enum"]
            if enums:
                name = random.choice(enums)
                prop = type_.props[name]
                more = random.choice(("odd", "w", "z"))
                values = tuple(sorted({*prop.values, more}, reverse=random.random() < 0.5))
                return replace(
                    change, schema=schema.put(replace(type_, props={**type_.props, name: replace(prop, values=values)}))
                )
        if kind == "index" and isinstance(type_, NodeType):
            names = [n for n, p in type_.props.items() if not p.indexed and n not in type_.key and p.type in COMPARABLE]
            if names:
                name = random.choice(names)
                prop = replace(type_.props[name], indexed=True)
                return replace(change, schema=schema.put(replace(type_, props={**type_.props, name: prop})))
        if kind == "note":
            return replace(change, schema=schema.put(replace(type_, note=random.choice(("one", "two", None)))))
        return change

    def numbers(self) -> set[int]:
        return {type_.number for type_ in self.schema.types()}

    def renamed_type(self, change: Evolution, type_: AnyType, name: str) -> Evolution:
        new = replace(type_, name=name)
        schema = change.schema.without(type_).put(new)
        if isinstance(type_, NodeType):
            for edge in change.schema.touching(type_.name):
                source, target = (name if end == type_.name else end for end in (edge.source, edge.target))
                schema = schema.put(replace(edge, source=source, target=target))
        return replace(change, schema=schema, renamed={**change.renamed, new.table: type_.name})

    def with_new_type(self, random: Random, schema: Schema) -> Schema:
        nodes = [name for name in NEW_NODES if name not in schema.nodes and name not in self.schema.nodes]
        if nodes and random.random() < 0.5:
            key = random.choice((None, "String", "Date", "F64", "Bool", "I32"))
            props = {"value": Prop("F64"), "kind": Prop("enum", nullable=False, values=("x", "y"))}
            if key is None:
                return schema.put(NodeType(random.choice(nodes), props))
            return schema.put(NodeType(random.choice(nodes), {**props, "key": Prop(key, nullable=False)}, ("key",)))
        edges = [name for name in NEW_EDGES if name not in schema.edges and name not in self.schema.edges]
        if edges and schema.nodes:
            source, target = random.choice(list(schema.nodes)), random.choice(list(schema.nodes))
            card = random.choice(((0, None), (0, 2), (1, None), (1, 1)))
            unique = random.choice(((), (("src",),), (("dst", "kind"),)))
            props = {"kind": Prop("enum", values=("x", "y"))}
            return schema.put(EdgeType(random.choice(edges), source, target, props, unique, card))
        return schema

    def unsupported_change(self, random: Random) -> Evolution:
        schema = self.schema
        type_ = random.choice(schema.types())
        found: list[tuple[AnyType, str]] = []
        free = [name for name in NEW_PROPERTIES if name not in type_.props]
        if free:
            required = {**type_.props, free[0]: Prop("String", nullable=False)}
            found.append((replace(type_, props=required), "OG-MF-103"))
        for name, prop in type_.props.items():

            def with_prop(prop: Prop, name: str = name) -> AnyType:
                return replace(type_, props={**type_.props, name: prop})

            if not _constrained(type_, name):
                found.append((with_prop(replace(prop, nullable=not prop.nullable)), "OG-MF-106"))
                other = "I64" if prop.type != "I64" else "F64"
                found.append((with_prop(Prop(other, prop.nullable, indexed=prop.indexed)), "OG-MF-106"))
                if prop.type in COMPARABLE:
                    found.append((replace(type_, unique=(*type_.unique, (name,))), "schema_change"))
                if prop.type in NUMBERS and isinstance(type_, NodeType):
                    found.append((replace(type_, ranges={**type_.ranges, name: (0, 1)}), "schema_change"))
                if prop.indexed:
                    found.append((with_prop(replace(prop, indexed=False)), "schema_change"))
            if prop.type == "enum" and len(prop.values) > 1:
                found.append((with_prop(replace(prop, values=prop.values[1:])), "OG-MF-106"))
        if type_.unique:
            found.append((replace(type_, unique=type_.unique[1:]), "schema_change"))
        if isinstance(type_, EdgeType):
            found.append((replace(type_, card=(0, 3) if type_.card != (0, 3) else (0, 4)), "schema_change"))
            others = [node for node in schema.nodes if node != type_.source]
            if others:
                found.append((replace(type_, source=others[0]), "schema_change"))
        else:
            keys = [()] if type_.key else [(name,) for name, prop in type_.props.items() if _can_be_key(prop)]
            found += [(replace(type_, key=key), "schema_change") for key in keys]
        changed, code = random.choice(found)
        return Evolution(schema.put(changed), refusal=Refusal(code))

    # -- branches and upkeep -------------------------------------------------------------------------

    def create_branch(self, random: Random, graph: Graph) -> None:
        name, source = random.choice(("b1", "b2", "deep/er")), random.choice(list(self.branches))
        start, at = self.branches[source].head, None
        if random.random() < 0.4:
            start = random.choice(start.line())
            at = start.id
        refusals = [Refusal("branch_exists", (f"'{name}'",))] if name in self.branches else []
        note(f"create branch {name} from {source} at {at}")
        if not refusals and self.gone.intersection(start.pins.values()):
            # What it would stand on may have been forgotten, and then there is no such branch.
            try:
                graph.branch_create(name, source, at=at)
            except Damaged as error:
                self.refused(error, [Refusal("version_reclaimed")])
            else:
                assert _lines(graph.export(branch=name)) == _lines(_expected(start))
                graph.branch_delete(name, force=True)
        elif self.attempt(refusals, lambda: graph.branch_create(name, source, at=at)) is not None:
            self.branches[name] = Branch(start, start)
            self.branch = name

    def switch_branch(self, random: Random, graph: Graph) -> None:
        self.branch = random.choice(list(self.branches))
        assert graph.on(self.branch).branch == self.branch
        self.attempt([Refusal("branch_not_found")], lambda: graph.on("missing"))

    def delete_branch(self, random: Random, graph: Graph) -> None:
        name = random.choice([*self.branches, "missing"])
        refusals = [Refusal("branch_not_found")] if name == "missing" else []
        refusals += [Refusal("bad_input", ("'main'",))] if name == "main" else []
        force = random.random() < 0.5
        if not refusals and not force:
            kept = {
                id(commit) for other in self.branches if other != name for commit in self.branches[other].head.line()
            }
            lost = sum(id(commit) not in kept for commit in self.branches[name].head.line())
            refusals = [Refusal("unmerged_branch", (f"'{name}'", str(lost)))] if lost else []
        note(f"delete branch {name}, force {force}")
        self.attempt(refusals, lambda: graph.branch_delete(name, force=force) or True)
        if not refusals:
            del self.branches[name]
            self.branch = self.branch if self.branch in self.branches else "main"

    def reopen(self, random: Random, graph: Graph) -> None:
        both = random.random() < 0.3
        self.handles = [self.opened() if both or handle is graph else handle for handle in self.handles]

    def tend(self, random: Random, graph: Graph) -> None:
        """Compact or index: rows stay, and there is a commit exactly when something was done."""
        compact = random.random() < 0.6
        done = (graph.optimize if compact else graph.ensure_indices)(self.branch)
        assert [entry.table_key for entry in done] == sorted(self.tables)
        touched = [entry.table_key for entry in done if entry.committed]
        note(f"{'optimize' if compact else 'ensure_indices'} {self.branch}: {touched}")
        if touched:
            self.landed("optimize" if compact else "ensure_indices", None, self.tables, touched)

    def cleanup(self, random: Random, graph: Graph) -> None:
        """Forget old commits; what is kept stays readable."""
        keep = random.choice((0, 1, 2, 5))
        # Long after anybody could still read or write what is forgotten.
        self.now += HOUR_US
        confirm = random.random() < 0.8
        note(f"cleanup keep={keep} confirm={confirm}")
        stats = graph.cleanup(keep=keep, confirm=confirm)
        assert [entry.error for entry in stats if entry.error] == []
        if confirm:
            kept = [c for branch in self.branches.values() for c in branch.head.line()[: max(keep, 1)]]
            kept += [branch.fork for branch in self.branches.values() if branch.fork is not None]
            held = {pin for commit in kept for pin in commit.pins.values()}
            self.gone |= {pin for commit in self.commits for pin in commit.pins.values()} - held
            self.handles = [self.opened(), self.opened()]

    def round_trip(self, random: Random, graph: Graph) -> None:
        """An export loads into a new graph of the same schema, or into its own, and changes no row."""
        path = self.folder / "export.jsonl"
        rows = graph.export(path, branch=self.branch)
        assert rows == sum(map(len, self.tables.values()))
        # Composite ids follow the order in which columns came to be, which a new graph does not know.
        if random.random() < 0.5 and not any(list(n.key) != sorted(n.key) for n in self.schema.nodes.values()):
            twin = og.init(self.folder / "twin", self.schema.text(), sync=False)
            twin.load(path, mode="overwrite")
            assert _lines(twin.export()) == _lines(_expected(self.head))
            shutil.rmtree(self.folder / "twin")
            return
        result = graph.load(path, mode="merge", branch=self.branch)
        named = [key for key, rows in self.tables.items() if rows]
        assert dict(result.tables) == {key: len(self.tables[key]) for key in named}
        self.landed("load", result.commit_id, self.tables, named)


# -- small things ------------------------------------------------------------------------------------


def _fits(error: OmniGraphError, refusal: Refusal) -> bool:
    return error.code == refusal.code and all(word in f"{error.message} {error}" for word in refusal.words)


def _move(record: Record, line: int) -> None:
    """Put a record on another line."""

    def placed(refusal: Refusal) -> Refusal:
        return Refusal(refusal.code, (f"line {line}:", *refusal.words[1:]))

    record.line = line
    record.shape = placed(record.shape) if record.shape is not None else None
    record.faults = [placed(fault) for fault in record.faults]


def _kin(random: Random, types: Sequence[Any], earlier: Sequence[Statement]) -> Any:
    """A type, preferably one that an earlier statement of the query is about."""
    known = {statement.type.table for statement in earlier}
    kin = [type_ for type_ in types if type_.table in known]
    return random.choice(kin if kin and random.random() < 0.6 else types)


def _key(type_: AnyType) -> tuple[str, ...]:
    return type_.key if isinstance(type_, NodeType) else ()


def _comparable(type_: AnyType) -> dict[str, Prop]:
    """What a condition can be about."""
    ends = {end: Prop("String", nullable=False) for end in ("src", "dst")} if isinstance(type_, EdgeType) else {}
    return {name: prop for name, prop in type_.props.items() if prop.type in COMPARABLE} | ends


def _as_given(prop: Prop, stored: Any) -> Any:
    """A stored value as a parameter can give it."""
    if stored is None:
        return None
    if prop.type == "Date":
        return date.fromordinal(date(1970, 1, 1).toordinal() + stored).isoformat()
    if prop.type == "DateTime":
        return datetime.fromtimestamp(stored / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return stored


def _record(type_: AnyType, id_: str, row: Row) -> dict[str, Any]:
    data = {"id": id_} | {name: row[name] for name in sorted(type_.props)}
    if isinstance(type_, EdgeType):
        return {"edge": type_.name, "from": row["src"], "to": row["dst"], "data": data}
    return {"type": type_.name, "data": data}


def _expected(commit: ModelCommit) -> Iterator[dict[str, Any]]:
    for type_ in sorted(commit.schema.types(), key=lambda type_: type_.table):
        rows = commit.tables[type_.table]
        for id_ in sorted(rows):
            yield _record(type_, id_, rows[id_])


def _lines(records: Any) -> list[str]:
    return [json.dumps(record) for record in records]


def _rows_of(records: Sequence[Any], node: NodeType) -> list[Row]:
    return [record["data"] for record in records if record.get("type") == node.name]


def _tables_of(records: Any) -> Tables:
    tables: Tables = {}
    for record in records:
        row = dict(record["data"])
        id_ = row.pop("id", "")
        if "edge" in record:
            row |= {"src": record["from"], "dst": record["to"]}
        tables.setdefault(f"node:{record['type']}" if "type" in record else f"edge:{record['edge']}", {})[id_] = row
    return tables


def _with_id(id_: str, row: Row | None) -> Row | None:
    return None if row is None else {"id": id_, **row}


def _plain(row: Row | None) -> str | None:
    """A row by its names, dates as numbers and bytes as text, whichever way it was read."""
    if row is None:
        return None
    return json.dumps({name: _plain_value(row[name]) for name in sorted(row)})


def _plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    return base64_of(value) if isinstance(value, bytes) else value


def _as_arrow(schema: Schema, raw: Sequence[Any], named: Sequence[str]) -> dict[str, pa.Table]:
    """Well-formed records as a table per type, every column present."""
    types = {type_.table: type_ for type_ in schema.types()}
    tables = {}
    for key in named:
        type_ = types[key]
        rows = [r for r in raw if (r.get("type") or r.get("edge", "")).lower() == type_.name.lower() and _is(r, type_)]
        columns = {"id": pa.array([r.get("data", {}).get("id") for r in rows], pa.utf8())}
        if isinstance(type_, EdgeType):
            columns |= {end: pa.array([r[end] for r in rows], pa.utf8()) for end in ("from", "to")}
        for name, prop in type_.props.items():
            values = [_stored(prop, r.get("data", {}).get(name)) for r in rows]
            columns[name] = pa.array(values, ARROW[prop.type])
        tables[type_.name] = pa.table(columns)
    return tables


def _is(record: Mapping[str, Any], type_: AnyType) -> bool:
    return ("edge" in record) == isinstance(type_, EdgeType)


def _stored(prop: Prop, given: Any) -> Any:
    """A JSON value of the samples as Arrow wants it."""
    if given is None or prop.type == "enum":
        return given
    for candidate, stored in VALUES[prop.type]:
        if repr(candidate) == repr(given):
            given = stored
            break
    if prop.type == "Date":
        return date.fromordinal(date(1970, 1, 1).toordinal() + given)
    return base64.b64decode(given.removeprefix("base64:")) if prop.type == "Blob" else given


def _migrated(commit: ModelCommit, new: Schema, renamed: Mapping[str, str]) -> tuple[Tables, dict[str, int | None]]:
    """The rows under another schema, and which tables kept their version."""
    before = {type_.number: type_ for type_ in commit.schema.types()}
    tables: Tables = {}
    pins: dict[str, int | None] = {}
    for type_ in new.types():
        old = before.get(type_.number)
        tables[type_.table] = {}
        pins[type_.table] = None
        if old is None:
            continue
        origin = {name: renamed.get(f"{type_.table}.{name}", name) for name in type_.props}
        ends = ("src", "dst") if isinstance(type_, EdgeType) else ()
        for id_, row in commit.tables[old.table].items():
            moved = {name: row.get(was) if was in old.props else None for name, was in origin.items()}
            tables[type_.table][id_] = moved | {end: row[end] for end in ends}
        if {name: origin[name] for name in type_.props} == {name: name for name in old.props}:
            pins[type_.table] = commit.pins[old.table]
    return tables, pins


def _differs(old: Schema, new: Schema) -> bool:
    def shape(schema: Schema) -> Any:
        return sorted(
            (type_.table, repr(replace(type_, props=_sorted_props(type_), unique=tuple(sorted(type_.unique)))))
            for type_ in schema.types()
        )

    return bool(shape(old) != shape(new))


def _sorted_props(type_: AnyType) -> dict[str, Prop]:
    return {name: replace(prop, values=tuple(sorted(prop.values))) for name, prop in sorted(type_.props.items())}


def _reversed(schema: Schema) -> Schema:
    def turned(type_: AnyType) -> Any:
        return replace(type_, props=dict(reversed(type_.props.items())))

    return Schema(
        {name: turned(node) for name, node in reversed(schema.nodes.items())},
        {name: turned(edge) for name, edge in reversed(schema.edges.items())},
    )


def _names(schema: Schema, type_: AnyType) -> set[str]:
    names = schema.nodes if isinstance(type_, NodeType) else schema.edges
    return set(names)


def _was_here(schema: Schema, type_: AnyType, name: str) -> bool:
    """Whether the type has the property now, under any name of its own."""
    return any(old.number == type_.number and name in old.props for old in schema.types())


def _in_group(type_: AnyType, name: str) -> bool:
    """Whether a property is part of a key or of a rule over several."""
    key = isinstance(type_, NodeType) and name in type_.key
    return key or any(name in columns and len(columns) > 1 for columns in type_.unique)


def _constrained(type_: AnyType, name: str) -> bool:
    ruled = isinstance(type_, NodeType) and (name in type_.key or name in type_.ranges or name in type_.checks)
    return ruled or any(name in columns for columns in type_.unique)


def _can_be_key(prop: Prop) -> bool:
    return not prop.nullable and prop.type in COMPARABLE


# -- the runs ----------------------------------------------------------------------------------------


def run(lives: int, steps: int) -> Tally:
    """So many lives of so many steps."""

    class Machine(GraphMachine):
        tally = Tally()

    chosen = settings(
        max_examples=lives,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Machine, settings=chosen)
    return Machine.tally


def test_graphs_live_as_the_model_says():
    tally = run(lives=8, steps=30)
    assert sum(tally.steps.values()) >= 200
    assert tally.commits > 50


@pytest.mark.long
def test_graphs_live_as_the_model_says_for_long(record_property):
    started = monotonic()
    tally = run(lives=40, steps=150)
    steps = sum(tally.steps.values())
    figures = (
        f"{steps} steps in {tally.lives} lives, {monotonic() - started:.0f} s, {tally.commits} commits, "
        f"{sum(tally.refused.values())} refused, {tally.refused['version_reclaimed']} reads of "
        f"forgotten versions; steps {dict(tally.steps)}; refusals {dict(tally.refused)}"
    )
    record_property("figures", figures)
    print(figures)  # noqa: T201 (shown with -s)
    assert steps >= 5000
