"""Three-way merge of schemas: two successors of one schema → a schema with the changes of both, or the conflicts.

Types and properties are matched by number, so a rename on one side and a new property on the other apply to the same
type. Every fact (a name, the type of a property, the set of constraints of a type, …) is merged separately: a fact that
one side did not change is taken from the other; equal changes are accepted; enums that both sides extended get the
values of both. Different changes of a fact conflict. So do a declaration that one side dropped and the other changed or
still uses, and a merged schema that one of the sides cannot reach by supported steps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from omnigraph.errors import CompileError, SchemaChangeError
from omnigraph.schema.catalog import (
    AnyType,
    Catalog,
    EdgeType,
    Embed,
    InterfaceType,
    Metadata,
    NodeType,
    Property,
    TypeKind,
)
from omnigraph.schema.check import check_not_empty, compile_schema
from omnigraph.schema.constraints import Check, Constraint, Key, Range, Valid, constraint_order
from omnigraph.schema.document import (
    KINDS,
    IRConstraint,
    IREdge,
    IREmbed,
    IRInterface,
    IRNode,
    IRProperty,
    IRType,
    Ref,
)
from omnigraph.schema.document_builder import Numbers, build_parts
from omnigraph.schema.identity import SchemaIR, shape_hash
from omnigraph.schema.migrate import plan_steps
from omnigraph.schema.migration_steps import UnsupportedChange, spell_note
from omnigraph.schema.unparse import unparse
from omnigraph.types import PropertyType

Fact = TypeVar("Fact", bound=Hashable | None)
Part = TypeVar("Part")


@dataclass(frozen=True)
class Clash:
    """Conflict between two schemas; `entity` is `node:T` or `node:T.p`."""

    entity: str
    message: str


@dataclass(frozen=True)
class MergedSchema:
    """Schema with the changes of both sides."""

    text: str
    ir: SchemaIR


@dataclass
class _MergedType:
    """Merged type whose references are still numbers."""

    kind: TypeKind
    id: int
    incarnation: int | None
    name: str
    properties: dict[int, _MergedProperty]
    constraints: list[IRConstraint]
    notes: tuple[Metadata, ...] = ()
    implements: tuple[int, ...] = ()
    ends: tuple[int, int] | None = None
    edge: IREdge | None = None


@dataclass
class _MergedProperty:
    name: str
    type: PropertyType
    notes: tuple[Metadata, ...]
    embed: tuple[object, ...] | None
    injected: bool
    interfaces: tuple[int, ...]


def merge_schemas(base: SchemaIR, ours: SchemaIR, theirs: SchemaIR) -> MergedSchema | list[Clash]:
    """Return the schema with the changes of both sides, or all conflicts."""
    merge = _Merge(base, ours, theirs)
    types = merge.types()
    if merge.clashes:
        return merge.clashes
    catalog = merge.catalog(types)
    if merge.clashes:
        return merge.clashes
    text = unparse(catalog)
    try:
        compiled = compile_schema(text, "<merged schema>")
        if ours.nodes and theirs.nodes:
            check_not_empty(compiled)
        if shape_hash(compiled) != shape_hash(catalog):
            return [Clash("schema", "the changes of both sides cannot be written as one schema")]
        next_id = max(ours.next_id, theirs.next_id)
        ir = SchemaIR(ours.domain, *build_parts(compiled, merge.numbers, next_id), compiled.merge_properties)
    except CompileError as error:
        return [Clash(found.subject or "schema", found.message) for found in error.diagnostics]
    except SchemaChangeError as error:
        return [Clash("schema", error.message)]
    if ir.next_id != next_id:
        return [Clash("schema", "the changes of both sides imply a declaration that neither side has")]
    clashes = _unreachable(ours, ir) or _unreachable(theirs, ir)
    return clashes or MergedSchema(text, ir)


def _unreachable(side: SchemaIR, merged: SchemaIR) -> list[Clash]:
    """Return the changes from one side's schema to the merged one that a graph cannot apply."""
    refused = [step for step in plan_steps(side, merged, with_values=True) if isinstance(step, UnsupportedChange)]
    return [Clash(step.entity, step.reason) for step in refused]


@dataclass
class _Merge:
    base: SchemaIR
    ours: SchemaIR
    theirs: SchemaIR
    clashes: list[Clash] = field(default_factory=list)
    numbers: Numbers = field(default_factory=Numbers)

    # -- three-way merge -------------------------------------------------------------------------

    def decide(self, entity: str, what: str, base: Fact, ours: Fact, theirs: Fact) -> Fact:
        """Merge one fact."""
        if theirs in (ours, base):
            return ours
        if ours != base:
            self.clashes.append(Clash(entity, f"{what} changed differently: {_show(ours)} here, {_show(theirs)} there"))
        return theirs

    def types(self) -> list[_MergedType]:
        """Return all remaining types, merged."""
        found: list[_MergedType] = []
        for kind in KINDS:
            sides: list[dict[int, IRType]] = [
                {type_.id: type_ for type_ in ir.of_kind(kind)} for ir in (self.base, self.ours, self.theirs)
            ]
            for id_ in {**sides[0], **sides[1], **sides[2]}:
                kept = self.present(id_, sides, _entity_of_type)
                if kept is not None:
                    found.append(self.type(*kept))
        return found

    def present(
        self, id_: int, sides: list[dict[int, Part]], entity: Callable[[Part], str]
    ) -> tuple[Part, Part, Part] | None:
        """Return the three versions to merge; None if the declaration is dropped. A declaration that only one side has
        is not in conflict.
        """
        base, ours, theirs = (side.get(id_) for side in sides)
        if ours is not None and theirs is not None:
            return (base if base is not None else ours), ours, theirs
        left = ours if ours is not None else theirs
        if left is None:
            return None
        if base is None:
            return left, left, left
        if left != base:
            who = ("the source", "the target") if theirs is None else ("the target", "the source")
            self.clashes.append(Clash(entity(left), f"{who[0]} dropped it, {who[1]} changed it"))
        return None

    def type(self, base: IRType, ours: IRType, theirs: IRType) -> _MergedType:
        """Merge a type that both sides have."""
        entity = f"{ours.kind}:{ours.name}"
        name = self.decide(entity, "the name", base.name, ours.name, theirs.name)
        sides = [{p.id: p for p in type_.properties} for type_ in (base, ours, theirs)]
        properties: dict[int, _MergedProperty] = {}
        for id_ in {**sides[0], **sides[1], **sides[2]}:
            kept = self.present(id_, sides, lambda property_: f"{entity}.{property_.name}")
            if kept is not None:
                properties[id_] = self.property(f"{entity}.{kept[1].name}", *kept)
        merged = _MergedType(ours.kind, ours.id, None, name, properties, _union(base, ours, theirs))
        if (
            not isinstance(ours, IRInterface)
            and not isinstance(theirs, IRInterface)
            and not isinstance(base, IRInterface)
        ):
            merged.incarnation = ours.incarnation_id
            merged.notes = self.decide(entity, "annotations", base.notes, ours.notes, theirs.notes)
        if isinstance(ours, IRNode) and isinstance(theirs, IRNode) and isinstance(base, IRNode):
            merged.implements = self.decide(entity, "'implements'", *(_ids(t.implements) for t in (base, ours, theirs)))
        if isinstance(ours, IREdge) and isinstance(theirs, IREdge) and isinstance(base, IREdge):
            ends = self.decide(entity, "the ends", *((t.from_type.id, t.to_type.id) for t in (base, ours, theirs)))
            card = self.decide(entity, "@card", base.cardinality, ours.cardinality, theirs.cardinality)
            merged.ends, merged.edge = ends, replace(ours, cardinality=card)
        return merged

    def property(self, entity: str, base: IRProperty, ours: IRProperty, theirs: IRProperty) -> _MergedProperty:
        """Merge a property that both sides have."""
        return _MergedProperty(
            self.decide(entity, "the name", base.name, ours.name, theirs.name),
            self.property_type(entity, base.type, ours.type, theirs.type),
            self.decide(entity, "annotations", base.notes, ours.notes, theirs.notes),
            self.decide(entity, "@embed", *(_meaning(p.embed) for p in (base, ours, theirs))),
            self.decide(entity, "its origin", base.injected, ours.injected, theirs.injected),
            self.decide(
                entity,
                "its interfaces",
                *(tuple(link.interface.id for link in p.satisfies) for p in (base, ours, theirs)),
            ),
        )

    def property_type(self, entity: str, base: PropertyType, ours: PropertyType, theirs: PropertyType) -> PropertyType:
        """Merge the type of a property; an enum that both sides extended gets the values of both."""
        sides = (base, ours, theirs)
        if ours != base and theirs not in (ours, base) and all(type_.enum_values is not None for type_ in sides):
            known, mine, yours = (set(type_.enum_values or ()) for type_ in sides)
            alike = replace(ours, enum_values=base.enum_values) == replace(theirs, enum_values=base.enum_values)
            if alike and known <= mine and known <= yours:
                return replace(ours, enum_values=tuple(sorted(mine | yours)))
        return self.decide(entity, "the type", base, ours, theirs)

    # -- back to a catalog -----------------------------------------------------------------------

    def catalog(self, types: list[_MergedType]) -> Catalog:
        """Return the catalog of the merged types and record the number of each name."""
        names = {type_.id: type_.name for type_ in types}
        taken: dict[tuple[TypeKind, str], int] = {}
        built: dict[TypeKind, dict[str, AnyType]] = {kind: {} for kind in KINDS}
        for type_ in sorted(types, key=lambda type_: type_.name):
            entity = f"{type_.kind}:{type_.name}"
            if taken.setdefault((type_.kind, type_.name), type_.id) != type_.id:
                self.clashes.append(Clash(entity, "both sides have a type of this name, and they are not the same"))
                continue
            self.numbers.types[type_.kind, type_.name] = type_.id
            if type_.incarnation is not None:
                self.numbers.incarnations[type_.kind, type_.name] = type_.incarnation
            built[type_.kind][type_.name] = self.named(entity, type_, names)
        interfaces = {n: t for n, t in built["interface"].items() if isinstance(t, InterfaceType)}
        nodes = {n: t for n, t in built["node"].items() if isinstance(t, NodeType)}
        edges = {n: t for n, t in built["edge"].items() if isinstance(t, EdgeType)}
        for node in nodes.values():
            self.implemented(node, [interfaces[name] for name in node.implements if name in interfaces])
        sides = (self.base, self.ours, self.theirs)
        setting = self.decide("schema", "merge { properties }", *(side.merge_properties for side in sides))
        return Catalog(interfaces, nodes, edges, setting)

    def implemented(self, node: NodeType, interfaces: list[InterfaceType]) -> None:
        """Report nodes that lack a property of an interface because one side changed the interface and the other added
        the node.
        """
        for property_ in node.properties.values():
            for interface in interfaces:
                if interface.name in property_.injected_from and property_.name not in interface.properties:
                    message = (
                        f"one side dropped it from interface '{interface.name}', which the node implements on the other"
                    )
                    self.clashes.append(Clash(f"node:{node.name}.{property_.name}", message))
        for interface in interfaces:
            for name in interface.properties:
                if name not in node.properties:
                    message = (
                        f"one side added it to interface '{interface.name}', which the node implements on the other"
                    )
                    self.clashes.append(Clash(f"node:{node.name}.{name}", message))

    def named(self, entity: str, type_: _MergedType, names: dict[int, str]) -> AnyType:
        """Return a type with names instead of numbers."""
        columns = {id_: p.name for id_, p in type_.properties.items()}
        properties: dict[str, Property] = {}
        for id_, merged in sorted(type_.properties.items(), key=lambda item: item[1].name):
            where = f"{entity}.{merged.name}"
            if merged.name in properties:
                self.clashes.append(Clash(where, "both sides have a property of this name, and they are not the same"))
            self.numbers.properties[type_.kind, type_.name, merged.name] = id_
            origin = [self.name_of(where, i, names) for i in merged.interfaces] if merged.injected else []
            properties[merged.name] = Property(
                merged.name, merged.type, merged.notes, self.embed(where, merged.embed, columns), tuple(sorted(origin))
            )
        constraints = tuple(sorted(self.constraints(entity, type_, columns), key=constraint_order))
        if type_.kind == "interface":
            return InterfaceType(type_.name, properties, constraints)
        if type_.kind == "node":
            implements = tuple(sorted(self.name_of(entity, i, names) for i in type_.implements))
            return NodeType(type_.name, properties, constraints, type_.notes, implements)
        assert type_.ends is not None
        assert type_.edge is not None
        source, target = (self.name_of(entity, end, names) for end in type_.ends)
        cardinality = type_.edge.cardinality
        return EdgeType(type_.name, properties, constraints, type_.notes, source, target, cardinality)

    def name_of(self, entity: str, id_: int, names: dict[int, str]) -> str:
        if id_ not in names:
            self.clashes.append(Clash(entity, "one side dropped a type it needs"))
        return names.get(id_, "")

    def embed(self, entity: str, meaning: tuple[object, ...] | None, columns: dict[int, str]) -> Embed | None:
        if meaning is None:
            return None
        source, model = meaning
        name = columns.get(source) if isinstance(source, int) else str(source)
        if name is None:
            self.clashes.append(Clash(entity, "one side dropped the text it is made from"))
        return Embed(name or "", None if model is None else str(model))

    def constraints(self, entity: str, type_: _MergedType, columns: dict[int, str]) -> Iterator[Constraint]:
        for constraint in type_.constraints:
            missing = [
                column.name for column in constraint.fields if isinstance(column, Ref) and column.id not in columns
            ]
            if missing:
                word = type(constraint.constraint).__name__.lower()
                self.clashes.append(Clash(entity, f"one side dropped '{missing[0]}', which @{word} of the other needs"))
                continue
            names = tuple(columns[c.id] if isinstance(c, Ref) else c.name for c in constraint.fields)
            match constraint.constraint:
                case Range(_, low, high):
                    yield Range(names[0], low, high)
                case Check(_, pattern):
                    yield Check(names[0], pattern)
                case Key():
                    yield Key(names)
                case Valid():
                    yield Valid(*names)
                case other:
                    yield type(other)(tuple(sorted(names)))


def _union(base: IRType, ours: IRType, theirs: IRType) -> list[IRConstraint]:
    """Merge sets of constraints: additions and removals of both sides apply."""
    sides = [{c.meaning: c for c in type_.constraints} for type_ in (base, ours, theirs)]
    kept = [c for meaning, c in sides[1].items() if meaning in sides[2] or meaning not in sides[0]]
    return kept + [c for meaning, c in sides[2].items() if meaning not in sides[0] and meaning not in sides[1]]


def _entity_of_type(type_: IRType) -> str:
    return f"{type_.kind}:{type_.name}"


def _type_notes(type_: IRType) -> tuple[Metadata, ...]:
    return () if isinstance(type_, IRInterface) else type_.notes


def _interfaces(property_: IRProperty) -> tuple[int, ...]:
    return tuple(link.interface.id for link in property_.satisfies)


def _ids(refs: tuple[Ref, ...]) -> tuple[int, ...]:
    return tuple(sorted(ref.id for ref in refs))


def _meaning(embed: IREmbed | None) -> tuple[object, ...] | None:
    return embed.meaning if embed is not None else None


def _show(fact: object) -> str:
    if isinstance(fact, tuple) and all(isinstance(note, Metadata) for note in fact):
        text = " ".join(spell_note(note) for note in fact) or "none"
    else:
        text = str(fact)
    return text if len(text) <= 60 else text[:59] + "…"
