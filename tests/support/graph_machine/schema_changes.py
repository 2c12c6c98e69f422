"""Steps that apply schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from hypothesis import note

from omnigraph.graph import Graph
from support.graph_machine.commits import ModelCommit
from support.graph_machine.loads import Loads
from support.graph_machine.schema import NEW_EDGES, NEW_NODES, NEW_PROPERTIES
from support.graph_machine.values import COMPARABLE, NUMBERS
from support.graph_model import (
    AnyType,
    EdgeType,
    NodeType,
    Prop,
    Refusal,
    Schema,
    Tables,
    drop_property,
    rename_property,
)


@dataclass
class Evolution:
    """A schema change: the new schema, rename hints, and the expected refusal."""

    schema: Schema
    renamed: dict[str, str] = field(default_factory=dict)
    refusal: Refusal | None = None
    allows_loss: bool = False


def _loses(commit: ModelCommit, new: Schema, renamed: Mapping[str, str]) -> bool:
    """True if a schema drops rows or values."""
    after = {type_.number: type_ for type_ in new.types()}
    for old in commit.schema.types():
        rows, type_ = commit.tables[old.table], after.get(old.number)
        kept = set() if type_ is None else {renamed.get(f"{type_.table}.{name}", name) for name in type_.props}
        if rows and (
            type_ is None or any(row[name] is not None for row in rows.values() for name in {*old.props} - kept)
        ):
            return True
    return False


def _migrated(commit: ModelCommit, new: Schema, renamed: Mapping[str, str]) -> tuple[Tables, dict[str, int | None]]:
    """The rows under another schema, and the tables that kept their version."""
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
    """True if the type has the property now, under any of its names."""
    return any(old.number == type_.number and name in old.props for old in schema.types())


def _in_group(type_: AnyType, name: str) -> bool:
    """True if a property is part of a key or of a multi-column rule."""
    key = isinstance(type_, NodeType) and name in type_.key
    return key or any(name in columns and len(columns) > 1 for columns in type_.unique)


def _constrained(type_: AnyType, name: str) -> bool:
    ruled = isinstance(type_, NodeType) and (name in type_.key or name in type_.ranges or name in type_.checks)
    return ruled or any(name in columns for columns in type_.unique)


def _can_be_key(prop: Prop) -> bool:
    return not prop.nullable and prop.type in COMPARABLE


class SchemaChanges(Loads):
    """Valid and refused schema changes."""

    def change_schema(self, random: Random, graph: Graph) -> None:
        change = Evolution(self.schema)
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            change = self.some_change(random, change)
        change.allows_loss = random.random() < 0.8
        if random.random() < 0.1:
            change.schema = _reversed(change.schema)
        self.evolve(graph, change)

    def change_schema_wrongly(self, random: Random, graph: Graph) -> None:
        self.evolve(graph, self.unsupported_change(random))

    def evolve(self, graph: Graph, change: Evolution) -> None:
        old, new = self.schema, change.schema
        text = new.text(change.renamed)
        note(f"change schema of {self.branch}{', with losses' if change.allows_loss else ''}:\n{text}")
        refusals = [] if change.refusal is None else [change.refusal]
        if not new.nodes:
            refusals.append(Refusal("empty_schema"))
        elif not change.allows_loss and _loses(self.head, new, change.renamed):
            refusals += [Refusal(code) for code in ("OG-DS-102", "OG-DS-103", "OG-DS-104")]
        if new.nodes:
            plan = graph.plan_schema(text, branch=self.branch, allow_data_loss=change.allows_loss)
            assert plan.supported == (not refusals)
        result = self.attempt(
            refusals, lambda: graph.apply_schema(text, branch=self.branch, allow_data_loss=change.allows_loss)
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

    def some_change(self, random: Random, change: Evolution) -> Evolution:
        """Add one supported change."""
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
