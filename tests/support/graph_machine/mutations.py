"""Steps that mutate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import note

from omnigraph.graph import Graph
from support.graph_machine.core import Core
from support.graph_machine.schema import GHOST
from support.graph_machine.statements import QueryText
from support.graph_machine.values import COMPARABLE, INTEGERS, WRONG, as_given, sample, sample_or_null
from support.graph_model import (
    AnyType,
    Delete,
    EdgeType,
    Insert,
    KeyTaken,
    NodeType,
    Prop,
    Refusal,
    Row,
    Statement,
    Update,
    Upsert,
    Where,
    apply_write,
    derived_id,
    judge,
    run_statements,
)


def related_type(random: Random, types: Sequence[Any], earlier: Sequence[Statement]) -> Any:
    """A type, preferably one used by an earlier statement of the query."""
    known = {statement.type.table for statement in earlier}
    kin = [type_ for type_ in types if type_.table in known]
    return random.choice(kin if kin and random.random() < 0.6 else types)


def key_of(type_: AnyType) -> tuple[str, ...]:
    return type_.key if isinstance(type_, NodeType) else ()


def comparable(type_: AnyType) -> dict[str, Prop]:
    """The properties that a condition can use."""
    ends = {end: Prop("String", nullable=False) for end in ("src", "dst")} if isinstance(type_, EdgeType) else {}
    return {name: prop for name, prop in type_.props.items() if prop.type in COMPARABLE} | ends


class Mutations(Core):
    """Valid and invalid mutations."""

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
        settable = {type_.table: [n for n in type_.props if n not in key_of(type_)] for type_ in self.schema.types()}
        updatable = [t for t in self.schema.types() if settable[t.table] and comparable(t)]
        if updatable and random.random() < 0.4:
            changed = related_type(random, updatable, earlier)
            name = random.choice(settable[changed.table])
            given, values = self.assigned(random, query, {name: changed.props[name]})
            condition, where = self.some_where(random, query, changed, earlier)
            return f"update {changed.name} set {{ {given} }} where {condition}", Update(changed, values, where)
        type_ = related_type(random, [t for t in self.schema.types() if t.props or isinstance(t, EdgeType)], earlier)
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
        """A value outside its enum is passed as a parameter: as a literal it does not compile."""
        if prop.type == "enum" and given is not None and given not in prop.values:
            return query.param("String", given)
        return query.value(prop, given)

    def some_where(
        self, random: Random, query: QueryText, type_: AnyType, earlier: Sequence[Statement]
    ) -> tuple[str, Where]:
        """A condition, preferably on rows that earlier statements of the query wrote or selected."""
        op = random.choice(("=", "=", "=", "=", "!=", "<", "<=", ">", ">="))
        choices = comparable(type_)
        kin = [statement for statement in earlier if statement.type.table == type_.table]
        written = [statement.values for statement in kin if not isinstance(statement, Delete)]
        touched = {name for values in written for name in values}
        touched |= {statement.where.name for statement in kin if isinstance(statement, Update | Delete)}
        name = random.choice(sorted(choices.keys() & touched if random.random() < 0.7 else choices) or sorted(choices))
        prop = choices[name]
        shown = {"src": "from", "dst": "to"}.get(name, name)
        values = [row[name] for row in (*self.tables[type_.table].values(), *written) if name in row]
        value = random.choice(values) if values and random.random() < 0.7 else sample(random, prop)[1]
        given = as_given(prop, value)
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
        type_ = related_type(random, [type_ for type_ in self.schema.types() if comparable(type_)], earlier)
        condition, where = self.some_where(random, query, type_, earlier)
        return f"delete {type_.name} where {condition}", Delete(type_, where)

    def mutate_wrongly(self, random: Random, graph: Graph) -> None:
        text, params, refusals = random.choice(list(self.wrong_mutations(random)))
        note(f"mutate wrongly: {text} {params}")
        self.attempt(refusals, lambda: graph.mutate(text, params=params, branch=self.branch))

    def wrong_mutations(self, random: Random) -> Iterator[tuple[str, dict[str, Any], list[Refusal]]]:
        """Queries that fail before any integrity rule is checked."""
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
                yield f'query q() {{ insert {name} {{ from: "a", to: 0.5 }} }}', none, [Refusal("T3")]
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
