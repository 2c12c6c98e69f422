"""The migration planner on random schemas and changes, compared with a simple way to apply steps."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import SchemaChangeError
from omnigraph.schema.catalog import AnyType, Catalog, EdgeType, Embed, InterfaceType, NodeType, Property
from omnigraph.schema.check import compile_schema
from omnigraph.schema.constraints import Check, Constraint, Range, constraint_columns, constraint_order
from omnigraph.schema.identity import SchemaIR, catalog_of, new_identity, shape_hash
from omnigraph.schema.migrate import plan_schema
from omnigraph.schema.migration_steps import (
    AddConstraint,
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    ExtendEnum,
    RenameProperty,
    RenameType,
    Step,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from support.schemas import SEEDS, schema_changes, schema_renames, schema_texts

DOMAIN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
SEEDED = settings(derandomize=True, max_examples=150, deadline=None)

# -- oracle: apply steps to a catalog, one at a time --------------------------------------------------


def apply_steps(old: Catalog, steps: tuple[Step, ...], new: Catalog) -> Catalog:
    types = {(kind, t.name): t for kind in ("interface", "node", "edge") for t in old.of_kind(kind).values()}
    for step in steps:
        match step:
            case AddType(kind, name):
                types[kind, name] = new.of_kind(kind)[name]
            case DropType(kind, name):
                del types[kind, name]
            case RenameType(kind, before, after):
                types[kind, after] = replace(types.pop((kind, before)), name=after)
                for key, edge in types.items():
                    if kind == "node" and isinstance(edge, EdgeType):
                        ends = [after if end == before else end for end in (edge.from_type, edge.to_type)]
                        types[key] = replace(edge, from_type=ends[0], to_type=ends[1])
            case UpdateTypeMetadata(kind, name, notes):
                types[kind, name] = replace(types[kind, name], notes=notes)
            case AddConstraint(kind, name, constraint):
                owner = types[kind, name]
                types[kind, name] = replace(owner, constraints=(*owner.constraints, constraint))
            case RenameProperty(kind, name, before, after):
                types[kind, name] = rename_property(types[kind, name], before, after)
            case DropProperty(kind, name, gone):
                types[kind, name] = drop_property(types[kind, name], gone)
            case AddProperty(kind, name, added):
                types[kind, name] = put_property(types[kind, name], new.of_kind(kind)[name].properties[added])
            case UpdatePropertyMetadata(kind, name, prop, notes):
                owner = types[kind, name]
                types[kind, name] = put_property(owner, replace(owner.properties[prop], notes=notes))
            case ExtendEnum(kind, name, prop, added):
                owner = types[kind, name]
                known = owner.properties[prop]
                values = tuple(sorted((*(known.type.enum_values or ()), *added)))
                changed = replace(known, type=replace(known.type, enum_values=values))
                types[kind, name] = put_property(owner, changed)
            case _:
                raise AssertionError(step)
    ordered = {key: canonical(types[key]) for key in sorted(types)}
    return Catalog(
        {name: t for (_, name), t in ordered.items() if isinstance(t, InterfaceType)},
        {name: t for (_, name), t in ordered.items() if isinstance(t, NodeType)},
        {name: t for (_, name), t in ordered.items() if isinstance(t, EdgeType)},
    )


def put_property(owner: AnyType, prop: Property) -> AnyType:
    return replace(owner, properties={**owner.properties, prop.name: prop})


def rename_property(owner: AnyType, before: str, after: str) -> AnyType:
    def renamed(name: str) -> str:
        return after if name == before else name

    def renamed_in(constraint: Constraint) -> Constraint:
        if isinstance(constraint, Range | Check):
            return replace(constraint, column=renamed(constraint.column))
        return replace(constraint, columns=tuple(map(renamed, constraint.columns)))

    properties = {
        renamed(name): replace(
            prop,
            name=renamed(name),
            embed=prop.embed and Embed(renamed(prop.embed.source), prop.embed.model),
        )
        for name, prop in owner.properties.items()
    }
    return replace(owner, properties=properties, constraints=tuple(map(renamed_in, owner.constraints)))


def drop_property(owner: AnyType, gone: str) -> AnyType:
    properties = {name: prop for name, prop in owner.properties.items() if name != gone}
    # A constraint is removed with the last of its columns; until then it names a missing column.
    left = {*properties, *(("src", "dst") if isinstance(owner, EdgeType) else ())}
    kept = tuple(c for c in owner.constraints if left & set(constraint_columns(c)))
    return replace(owner, properties=properties, constraints=kept)


def canonical(type_: AnyType) -> AnyType:
    def in_order(constraint: Constraint) -> Constraint:
        if isinstance(constraint, Range | Check):
            return constraint
        return replace(constraint, columns=tuple(sorted(constraint.columns)))

    constraints = sorted(map(in_order, type_.constraints), key=constraint_order)
    return replace(type_, properties=dict(sorted(type_.properties.items())), constraints=tuple(constraints))


def canonical_catalog(catalog: Catalog) -> Catalog:
    """The catalog with key columns in name order: numbers change nothing else."""
    return apply_steps(catalog, (), catalog)


# -- the laws ----------------------------------------------------------------------------------------


@SEEDED
@given(schema_texts())
def test_unchanged_schema_needs_no_steps(text):
    catalog = compile_schema(text)
    plan = plan_schema(new_identity(catalog, DOMAIN).ir, catalog)
    assert plan.supported
    assert plan.steps == ()
    assert plan.desired == plan.accepted


@SEEDED
@given(schema_texts())
def test_document_round_trip(text):
    catalog = compile_schema(text)
    ir = new_identity(catalog, DOMAIN).ir
    again = SchemaIR.from_json(ir.to_json())
    assert again == ir
    assert again.hash == ir.hash
    assert canonical_catalog(catalog_of(again)) == catalog
    assert shape_hash(catalog_of(again)) == shape_hash(catalog)


@settings(SEEDED, max_examples=400)
@given(schema_changes())
def test_steps_of_a_supported_plan_produce_the_new_schema(change):
    old, new = map(compile_schema, change)
    try:
        plan = plan_schema(new_identity(old, DOMAIN).ir, new)
    except SchemaChangeError:
        return
    if plan.supported:
        assert apply_steps(old, plan.steps, new) == new
        assert bool(plan.steps) == (old != new)


@settings(SEEDED, max_examples=400)
@given(schema_changes())
def test_kept_elements_keep_their_numbers(change):
    old, new = map(compile_schema, change)
    accepted = new_identity(old, DOMAIN).ir
    try:
        plan = plan_schema(accepted, new)
    except SchemaChangeError:
        return
    desired = plan.desired
    assert SchemaIR.from_json(desired.to_json()) == desired
    assert canonical_catalog(catalog_of(desired)) == new
    before, after = dict(numbers(accepted)), dict(numbers(desired))
    assert {number for number in after if number not in before} == set(range(accepted.next_id, desired.next_id))
    assert all(after[number] == before[number] for number in before.keys() & after.keys())
    if plan.supported:
        assert before.keys() - after.keys() == dropped(accepted, plan.steps)
    assert plan_schema(desired, new).steps == ()


@SEEDED
@given(schema_renames())
def test_renames_produce_rename_steps_only(change):
    old, new = map(compile_schema, change)
    plan = plan_schema(new_identity(old, DOMAIN).ir, new)
    assert all(isinstance(step, RenameType | RenameProperty) for step in plan.steps)
    assert dict(numbers(plan.desired)) == dict(numbers(plan.accepted))


def numbers(ir: SchemaIR) -> Iterator[tuple[int, str]]:
    """Every number with the kind of element it identifies."""
    for type_ in ir.types():
        yield type_.id, type_.kind
        if type_.kind != "interface":
            yield type_.incarnation_id, f"table of {type_.id}"
        for prop in type_.properties:
            yield prop.id, f"property of {type_.id}"


def dropped(accepted: SchemaIR, steps: tuple[Step, ...]) -> set[int]:
    """The numbers of dropped elements, found by their previous names."""
    was = {(s.type_kind, s.new_name): s.old_name for s in steps if isinstance(s, RenameType)}
    gone: set[int] = set()
    for step in steps:
        match step:
            case DropType(kind, name):
                type_ = next(t for t in accepted.of_kind(kind) if t.name == name)
                gone |= {type_.id, type_.incarnation_id, *(prop.id for prop in type_.properties)}
            case DropProperty(kind, name, prop_name):
                type_ = next(t for t in accepted.of_kind(kind) if t.name == was.get((kind, name), name))
                gone |= {prop.id for prop in type_.properties if prop.name == prop_name}
    return gone


# -- hostile documents -------------------------------------------------------------------------------

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from((-1, 0, 1, 2, 7, 10**5000, 1.5, float("nan"), float("inf"))),
    st.sampled_from(("", "A", "a", "src", "id", "\ud800", "String", DOMAIN)),
    st.sampled_from(([], {}, [[]], [{}], {"Vector": 0}, {"system": "src"}, {"id": 1, "name": "A"}, {"Key": []})),
)


@settings(SEEDED, max_examples=400)
@given(schema_texts(), SEEDS, st.data())
def test_damaged_document_is_valid_or_refused(text, random, data):
    document = new_identity(compile_schema(text), DOMAIN).ir.to_json()
    for _ in range(random.randint(1, 2)):
        places = list(containers(document))
        container = random.choice(places)
        key = random.choice(list(container) if isinstance(container, dict) else range(len(container)))
        match random.choice(("replace", "copy", "delete")):
            case "replace":
                container[key] = deepcopy(data.draw(JUNK))
            case "copy":
                other = random.choice(places)
                container[key] = deepcopy(random.choice(list(other.values()) if isinstance(other, dict) else other))
            case "delete":
                del container[key]
    try:
        ir = SchemaIR.from_json(document)
    except SchemaChangeError:
        return
    assert SchemaIR.from_json(ir.to_json()) == ir
    assert ir.hash
    catalog = catalog_of(ir)
    assert plan_schema(ir, catalog).steps == ()


def containers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list) and value:
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from containers(item)


@pytest.mark.parametrize("value", [None, True, 7, "x", [], {}, {1: 2}, {"ir_version": [2]}, {"ir_version": 10**5000}])
def test_arbitrary_json_is_refused(value):
    with pytest.raises(SchemaChangeError, match="stored schema document"):
        SchemaIR.from_json(value)
