"""Stable numbers: the document, its shape, and matching of declarations."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from hashlib import sha256

import pytest

from omnigraph.errors import SchemaChangeError
from omnigraph.schema.check import compile_schema
from omnigraph.schema.constraints import Key
from omnigraph.schema.document import IDENTITY_MAX
from omnigraph.schema.identity import (
    SchemaIR,
    catalog_of,
    new_identity,
    resolve_identity,
    shape_hash,
    shape_json,
)

DOMAIN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

WARD = """
interface Named { name: String @index  nick: String? }
node Bed { ward: String  number: I32  @key(ward, number) @unique(ward) @range(number, 1..9) @check(ward, "^W") }
node Person @description("someone") @owner("x", team="y") implements Named {
    vec: Vector(2)? @embed(name, model="m")
    mood: enum(good, bad)?
}
edge In: Person -> Bed @card(0..1) { since: Date  @unique(src, since) }
"""


def first(text):
    return new_identity(compile_schema(text), DOMAIN).ir


def resolve(old, new):
    return resolve_identity(first(old), compile_schema(new))


def numbers(ir):
    """`kind:Type` and `kind:Type.property` → number."""
    found = {f"{t.kind}:{t.name}": t.id for t in ir.types()}
    return found | {f"{t.kind}:{t.name}.{p.name}": p.id for t in ir.types() for p in t.properties}


def tables(ir):
    return {type_.name: type_.incarnation_id for type_ in (*ir.nodes, *ir.edges)}


# -- the first document ------------------------------------------------------------------------------


def test_types_are_numbered_first_then_properties_then_tables():
    ir = first(WARD)
    assert numbers(ir) == {
        "interface:Named": 1,
        "node:Bed": 2,
        "node:Person": 3,
        "edge:In": 4,
        "interface:Named.name": 5,
        "interface:Named.nick": 6,
        "node:Bed.number": 7,
        "node:Bed.ward": 8,
        "node:Person.mood": 9,
        "node:Person.name": 10,
        "node:Person.nick": 11,
        "node:Person.vec": 12,
        "edge:In.since": 13,
    }
    assert tables(ir) == {"Bed": 14, "Person": 15, "In": 16}
    assert ir.next_id == 17


def test_json_form_of_the_document():
    document = first(
        'interface I { a: String? } node N @description("d") implements I { @index(a) } '
        "edge E: N -> N { @unique(src, dst) }"
    )
    string = {"scalar": "String", "nullable": True, "list": False, "enum_values": None}
    plain = {"annotations": [], "embed": None, "injected": False, "satisfies": []}
    assert document.to_json() == {
        "ir_version": 2,
        "schema_identity_domain": DOMAIN,
        "next_identity_id": 8,
        "interfaces": [
            {
                "id": 1,
                "name": "I",
                "properties": [{"id": 4, "name": "a", "type": string, **plain}],
                "constraints": [],
            }
        ],
        "nodes": [
            {
                "id": 2,
                "incarnation_id": 6,
                "name": "N",
                "annotations": [{"name": "description", "value": "d"}],
                "implements": [{"id": 1, "name": "I"}],
                "properties": [
                    {
                        "id": 5,
                        "name": "a",
                        "type": string,
                        **plain,
                        "injected": True,
                        "satisfies": [{"interface": {"id": 1, "name": "I"}, "property": {"id": 4, "name": "a"}}],
                    }
                ],
                "constraints": [{"Index": [{"id": 5, "name": "a"}]}],
            }
        ],
        "edges": [
            {
                "id": 3,
                "incarnation_id": 7,
                "name": "E",
                "annotations": [],
                "from": {"id": 2, "name": "N"},
                "to": {"id": 2, "name": "N"},
                "cardinality": {"min": 0, "max": None},
                "properties": [],
                "constraints": [{"Unique": [{"system": "dst"}, {"system": "src"}]}],
            }
        ],
    }


def test_constraints_and_embeddings_refer_by_number():
    bed, person = (node.to_json() for node in first(WARD).nodes)
    ward, number = {"id": 8, "name": "ward"}, {"id": 7, "name": "number"}
    assert bed["constraints"] == [
        {"Key": [number, ward]},
        {"Unique": [ward]},
        {"Range": {"property": number, "min": 1.0, "max": 9.0}},
        {"Check": {"property": ward, "pattern": "^W"}},
    ]
    assert person["properties"][-1]["embed"] == {"source": {"id": 10, "name": "name"}, "model": "m"}
    assert person["annotations"][1] == {"name": "owner", "value": "x", "kwargs": {"team": "y"}}


def test_an_interface_may_leave_the_embedded_text_to_its_nodes():
    ir = first("interface I { vec: Vector(2)? @embed(title) } node N implements I { title: String }")
    assert ir.interfaces[0].properties[0].to_json()["embed"]["source"] == {"id": None, "name": "title"}
    assert ir.nodes[0].properties[1].to_json()["embed"]["source"] == {"id": 4, "name": "title"}
    assert SchemaIR.from_json(ir.to_json()) == ir


def test_rename_hints_in_a_first_schema_have_no_effect():
    text = 'node A @rename_from("Z") { b: I32? @rename_from("y") } edge E: A -> A @rename_from("D")'
    ir, diagnostics = new_identity(compile_schema(text), DOMAIN)
    assert ir == first("node A { b: I32? } edge E: A -> A")
    assert {d.code for d in diagnostics} == {"inert_initialization_rename_hint"}
    assert [d.entity for d in diagnostics] == ["node:A", "node:A.b", "edge:E"]
    assert diagnostics[0].to_json() == {
        "code": "inert_initialization_rename_hint",
        "entity": "node:A",
        "message": '@rename_from("Z") has no effect when a graph is created: there is nothing to rename',
    }


@pytest.mark.parametrize(
    "domain",
    ["", DOMAIN.lower(), DOMAIN[:-1], DOMAIN + "0", "8" + DOMAIN[1:], DOMAIN.replace("A", "U"), DOMAIN + "\n"],
)
def test_a_domain_is_an_upper_case_ulid(domain):
    with pytest.raises(SchemaChangeError, match="is not an identity domain"):
        new_identity(compile_schema(""), domain)


# -- the shape ---------------------------------------------------------------------------------------

SAME = {
    "order of types": ("node A {} node B {}", "node B {} node A {}"),
    "order of properties": ("node A { a: I32 b: I32 }", "node A { b: I32 a: I32 }"),
    "order of enum values": ("node A { a: enum(x, y) }", "node A { a: enum(y, x) }"),
    "order of interfaces": (
        "interface I {} interface J {} node A implements I, J {}",
        "interface I {} interface J {} node A implements J, I, J {}",
    ),
    "order of key columns": (
        "node A { a: I32 b: I32 @key(a, b) }",
        "node A { a: I32 b: I32 @key(b, a) }",
    ),
    "order of annotations": ("node A @x @z(1) {}", "node A @z(1) @x @x {}"),
    "comments": ("node A {}", "// one\nnode A { /* two */ }"),
    "form of a constraint": ("node A { a: I32 @index }", "node A { a: I32 @index(a) }"),
    "rename hints": ("node A { a: I32 }", 'node A @rename_from("B") { a: I32 @rename_from("b") }'),
    "default cardinality": ("node A {} edge E: A -> A", "node A {} edge E: A -> A @card(0..*) {}"),
}

DIFFERENT = {
    "name": "node B { a: I32 }",
    "kind": "interface A { a: I32 }",
    "property": "node A { b: I32 }",
    "type": "node A { a: I64 }",
    "nullability": "node A { a: I32? }",
    "constraint": "node A { a: I32 @index }",
    "annotation": "node A { a: I32 @description(d) }",
    "annotation of the type": "node A @description(d) { a: I32 }",
    "injected": "interface I { a: I32 } node A implements I {}",
    "direct": "interface I { a: I32 } node A implements I { a: I32 }",
    "not implemented": "interface I { a: I32 } node A { a: I32 }",
    "edge": "node A { a: I32 } edge E: A -> A",
    "cardinality": "node A { a: I32 } edge E: A -> A @card(1..)",
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_the_shape_ignores(one, other):
    one, other = compile_schema(one), compile_schema(other)
    assert shape_json(one) == shape_json(other)
    assert shape_hash(one) == shape_hash(other)


def test_the_shape_distinguishes_all_other_differences():
    texts = ["node A { a: I32 }", *DIFFERENT.values()]
    assert len({shape_hash(compile_schema(text)) for text in texts}) == len(texts)


def test_an_embedding_and_its_model_are_part_of_the_shape():
    texts = ["", "@embed(t)", '@embed(t, model="m")', "@embed(u)"]
    schemas = [f"node A {{ t: String u: String v: Vector(2)? {embed} }}" for embed in texts]
    assert len({shape_hash(compile_schema(text)) for text in schemas}) == len(texts)


def test_json_and_hash_of_the_empty_shape():
    compact = '{"interfaces":[],"nodes":[],"edges":[]}'
    assert json.dumps(shape_json(compile_schema("")), separators=(",", ":")) == compact
    assert shape_hash(compile_schema("")) == f"sha256:{sha256(compact.encode()).hexdigest()}"


# -- resolving a desired schema ----------------------------------------------------------------------


def test_an_equal_name_keeps_its_number():
    ir, diagnostics = resolve(WARD, WARD)
    assert ir == first(WARD)
    assert diagnostics == ()


def test_a_hint_beside_an_exact_match_is_ignored():
    new = 'node A @rename_from("B") { a: I32? @rename_from("b") } node B { b: I32? }'
    ir, diagnostics = resolve("node A { a: I32? b: I32? } node B {}", new)
    assert numbers(ir) == {"node:A": 1, "node:A.a": 3, "node:B": 2, "node:B.b": 7}
    assert [(d.code, d.entity) for d in diagnostics] == [
        ("ignored_exact_match_rename_hint", "node:A"),
        ("ignored_exact_match_rename_hint", "node:A.a"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("node A {}", 'node Z @rename_from("A") {}', {"node:Z": 1}),
        (
            "node A {} edge E: A -> A",
            'node A {} edge F: A -> A @rename_from("E")',
            {"node:A": 1, "edge:F": 2},
        ),
        ("node A { b: I32? }", 'node A { c: I32? @rename_from("b") }', {"node:A": 1, "node:A.c": 2}),
        (
            "node A { b: I32? }",
            'node Z @rename_from("A") { c: I32? @rename_from("b") }',
            {"node:Z": 1, "node:Z.c": 2},
        ),
        (
            "interface I { a: I32? }",
            'interface I { b: I32? @rename_from("a") }',
            {"interface:I": 1, "interface:I.b": 2},
        ),
    ],
)
def test_a_rename_keeps_numbers_and_table(old, new, kept):
    ir, diagnostics = resolve(old, new)
    assert numbers(ir) == kept
    assert diagnostics == ()
    assert ir.next_id == first(old).next_id
    assert sorted(tables(ir).values()) == sorted(tables(first(old)).values())


def test_injected_properties_follow_a_rename_in_the_interface():
    ir, _ = resolve(
        "interface I { a: I32? } node N implements I {}",
        'interface I { b: I32? @rename_from("a") } node N implements I {}',
    )
    assert numbers(ir) == {"interface:I": 1, "node:N": 2, "interface:I.b": 3, "node:N.b": 4}
    assert ir.nodes[0].properties[0].satisfies[0].property.id == 3


def test_declared_properties_do_not_follow_a_rename_in_the_interface():
    ir, _ = resolve(
        "interface I { a: I32? } node N implements I { a: I32? }",
        'interface I { b: I32? @rename_from("a") } node N implements I { a: I32? }',
    )
    assert numbers(ir) == {"interface:I": 1, "node:N": 2, "interface:I.b": 3, "node:N.a": 4, "node:N.b": 6}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "node A {}",
            'node B @rename_from("C") {}',
            "node:B cannot be renamed from 'C': the accepted schema has no node of this name",
            id="type: nothing",
        ),
        pytest.param(
            "node A {} edge E: A -> A",
            'node A {} node B @rename_from("E") {}',
            "node:B cannot be renamed from 'E': in the accepted schema this is the name of an edge",
            id="type: another kind",
        ),
        pytest.param(
            "node A {}",
            'node A {} node B @rename_from("A") {}',
            "node:B cannot be renamed from 'A': node 'A' continues 'A' already",
            id="type: still there",
        ),
        pytest.param(
            "node A {}",
            'node B @rename_from("A") {} node C @rename_from("A") {}',
            "node:C cannot be renamed from 'A': node 'B' continues 'A' already",
            id="type: claimed twice",
        ),
        pytest.param(
            "node A { a: I32? }",
            'node A { b: I32? @rename_from("c") }',
            "node:A.b cannot be renamed from 'c': the accepted node 'A' has no property 'c'",
            id="property: nowhere",
        ),
        pytest.param(
            "node A {} node B { c: I32? }",
            'node A { b: I32? @rename_from("c") } node B {}',
            "node:A.b cannot be renamed from 'c': it is a property of node 'B', and a property never changes its owner",
            id="property: another owner",
        ),
        pytest.param(
            "node A { a: I32? }",
            'node A { a: I32? } node B { b: I32? @rename_from("a") }',
            "node:B.b cannot be renamed from 'a': node 'B' is new, so it has nothing to rename",
            id="property: new owner",
        ),
        pytest.param(
            "node A { a: I32? }",
            'node A { a: I32? b: I32? @rename_from("a") }',
            "node:A.b cannot be renamed from 'a': 'a' continues 'a' already",
            id="property: still there",
        ),
        pytest.param(
            "node A { a: I32? }",
            'node A { b: I32? @rename_from("a") c: I32? @rename_from("a") }',
            "node:A.c cannot be renamed from 'a': 'b' continues 'a' already",
            id="property: claimed twice",
        ),
        pytest.param(
            "interface I { a: I32? } node N implements I {}",
            'interface I { b: I32? @rename_from("a") } node N implements I { c: I32? @rename_from("a") }',
            "node:N.b continues 'a' through its interfaces, and so does 'c'",
            id="property: claimed by a hint and an interface",
        ),
        pytest.param(
            "interface I { a: I32? } interface J { a: I32? } node N implements I, J {}",
            'interface I { b: I32? @rename_from("a") } interface J { c: I32? @rename_from("a") } '
            "node N implements I, J {}",
            "node:N.c continues 'a' through its interfaces, and so does 'b'",
            id="property: one becomes two",
        ),
        pytest.param(
            "interface I { a: I32? } interface J { b: I32? } node N implements I, J {}",
            'interface I { c: I32? @rename_from("a") } interface J { c: I32? @rename_from("b") } '
            "node N implements I, J {}",
            "node:N.c continues 'a' and 'b' through its interfaces",
            id="property: two become one",
        ),
    ],
)
def test_a_hint_without_a_target_is_refused(old, new, message):
    with pytest.raises(SchemaChangeError) as raised:
        resolve(old, new)
    assert raised.value.message == message
    assert raised.value.hint


def test_a_refused_hint_has_a_suggestion():
    with pytest.raises(SchemaChangeError) as raised:
        resolve("node Person {}", 'node Human @rename_from("Persn") {}')
    assert raised.value.hint == "did you mean 'Person'?"


def test_a_name_added_again_gets_a_new_number():
    accepted = first("node A { b: I32? }")
    without, _ = resolve_identity(accepted, compile_schema(""))
    assert (without.next_id, list(without.types())) == (accepted.next_id, [])
    again, _ = resolve_identity(without, compile_schema("node A { b: I32? }"))
    assert numbers(again) == {"node:A": 4, "node:A.b": 5}
    assert tables(again) == {"A": 6}


def test_new_properties_are_numbered_by_owner_then_name():
    ir, _ = resolve(
        "node B { x: I32? } node A {}",
        "node B { x: I32? b: I32? a: I32? } node A { c: I32? } node C { d: I32? }",
    )
    assert {name: number for name, number in numbers(ir).items() if number >= 6} == {
        "node:C": 6,
        "node:A.c": 7,
        "node:B.a": 8,
        "node:B.b": 9,
        "node:C.d": 10,
    }
    assert tables(ir)["C"] == 11


def test_the_counter_cannot_overflow():
    with pytest.raises(SchemaChangeError, match="no free schema identities left"):
        resolve_identity(SchemaIR(DOMAIN, IDENTITY_MAX), compile_schema("node A {}"))


# -- back to the catalog -----------------------------------------------------------------------------


def test_the_catalog_of_a_document_equals_its_source():
    assert catalog_of(first(WARD)) == compile_schema(WARD)


def test_a_rename_never_reorders_a_composite_key():
    old = "node Bed { number: I32 ward: String @key(number, ward) }"
    new = 'node Bed { zahl: I32 @rename_from("number") ward: String @key(ward, zahl) }'
    assert catalog_of(first(old)).nodes["Bed"].key == ("number", "ward")
    ir, _ = resolve(old, new)
    assert catalog_of(ir).nodes["Bed"].key == ("zahl", "ward")
    assert catalog_of(SchemaIR.from_json(ir.to_json())).nodes["Bed"].constraints == (Key(("zahl", "ward")),)
    assert shape_hash(catalog_of(ir)) == shape_hash(compile_schema(new))


# -- reading a document ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", WARD], ids=["empty", "ward"])
def test_a_document_survives_json(text):
    ir = first(text)
    again = SchemaIR.from_json(json.loads(json.dumps(ir.to_json())))
    assert again == ir
    assert again.hash == ir.hash


def test_the_hash_of_a_document():
    ir = first("")
    compact = (
        f'{{"ir_version":2,"schema_identity_domain":"{DOMAIN}","next_identity_id":1,'
        '"interfaces":[],"nodes":[],"edges":[]}'
    )
    assert json.dumps(ir.to_json(), separators=(",", ":")) == compact
    assert ir.hash == f"sha256:{sha256(compact.encode()).hexdigest()}"
    assert replace(ir, next_id=2).hash != ir.hash


PERSON, BED, IN = ("nodes", 1), ("nodes", 0), ("edges", 0)
MOOD, NAME, NICK, VEC = ((*PERSON, "properties", index) for index in range(4))
MISSING = object()

REFUSED = {
    "unknown version": (("ir_version",), 1, "ir_version should be 2, the only version this program reads"),
    "version as text": (("ir_version",), "2", "ir_version should be a whole number from 2 to 2"),
    "no counter": (("next_identity_id",), MISSING, "next_identity_id is missing"),
    "unknown member": (("extra",), 1, "the document has an unknown member 'extra'"),
    "domain": (("schema_identity_domain",), DOMAIN.lower(), "should be an upper-case ULID"),
    "counter zero": (("next_identity_id",), 0, "next_identity_id should be a whole number"),
    "counter too large": (("next_identity_id",), 2**63, "next_identity_id should be a whole number"),
    "list as object": (("nodes",), {}, "nodes should be an array, but is an object"),
    "type as text": (PERSON, "Person", r"nodes\[1\] should be an object, but is the string 'Person'"),
    "zero id": ((*PERSON, "id"), 0, r"nodes\[1\].id should be a whole number from 1"),
    "boolean id": ((*PERSON, "id"), True, r"nodes\[1\].id should be a whole number from 1"),
    "huge id": ((*PERSON, "id"), 10**5000, r"nodes\[1\].id should be a whole number from 1"),
    "id at the counter": ((*PERSON, "incarnation_id"), 17, "id 17 of the table of node 'Person' is not between"),
    "two types, one id": ((*PERSON, "id"), 2, "id 2 belongs to both node 'Bed' and node 'Person'"),
    "two properties, one id": ((*MOOD, "id"), 8, "id 8 belongs to both 'Bed.ward' and 'Person.mood'"),
    "two tables, one id": ((*PERSON, "incarnation_id"), 14, "id 14 belongs to both"),
    "type name": ((*PERSON, "name"), "person", "should be a type name"),
    "property name": ((*MOOD, "name"), "Mood", "should be a property name"),
    "system column": ((*BED, "properties", 0, "name"), "id", "'Bed.id' has the name of a system column"),
    "unpaired surrogate": ((*PERSON, "annotations", 0, "value"), "\ud800", "contains an unpaired surrogate"),
    "unsorted types": (PERSON[:1], lambda nodes: nodes[::-1], "nodes are not in ascending order"),
    "repeated interface": (
        (*PERSON, "implements"),
        lambda refs: refs * 2,
        "the interfaces of node 'Person' are not in ascending order",
    ),
    "unsorted properties": (
        (*BED, "properties"),
        lambda items: items[::-1],
        "the properties of node 'Bed' are not in ascending order",
    ),
    "unsorted annotations": (
        (*PERSON, "annotations"),
        lambda notes: notes[::-1],
        "the annotations of node 'Person' are not in ascending order",
    ),
    "unsorted constraints": (
        (*BED, "constraints"),
        lambda items: items[::-1],
        "the constraints of node 'Bed' are not in ascending order",
    ),
    "unsorted key": (
        (*BED, "constraints", 0, "Key"),
        lambda columns: columns[::-1],
        "the columns of @key of node 'Bed' are not in ascending order",
    ),
    "unsorted unique": (
        (*IN, "constraints", 0, "Unique"),
        lambda columns: columns[::-1],
        "the columns of @unique of edge 'In' are not in ascending order",
    ),
    "two keys": (
        (*BED, "constraints"),
        lambda items: [{"Key": items[0]["Key"][:1]}, *items],
        "node 'Bed' has more than one key",
    ),
    "unsorted enum": ((*MOOD, "type", "enum_values"), ["good", "bad"], "enum_values must be sorted"),
    "enum value": ((*MOOD, "type", "enum_values"), ["a b"], "should be an enum value"),
    "enum of numbers": ((*MOOD, "type", "scalar"), "I32", "enum_values must be sorted, .* on a String"),
    "empty enum": ((*MOOD, "type", "enum_values"), [], "enum_values must be sorted"),
    "list of enum": ((*MOOD, "type", "list"), True, "a list of enum, which does not exist"),
    "list of blob": (
        (*MOOD, "type"),
        {"scalar": "Blob", "nullable": True, "list": True, "enum_values": None},
        "a list of Blob, which does not exist",
    ),
    "list of vector": ((*VEC, "type", "list"), True, "a vector and a list or enum at once"),
    "vector of nothing": ((*VEC, "type", "scalar"), {"Vector": 0}, "should be a whole number from 1"),
    "unknown scalar": ((*MOOD, "type", "scalar"), "Text", "should be the name of a type"),
    "nullable as number": ((*MOOD, "type", "nullable"), 1, "should be true or false"),
    "annotation name": ((*PERSON, "annotations", 0, "name"), "@x", "should be a property name"),
    "annotation value": ((*PERSON, "annotations", 0, "value"), 1, "should be a string, but is the integer 1"),
    "empty kwargs": ((*PERSON, "annotations", 1, "kwargs"), {}, "should be an object that is not empty"),
    "kwargs key": ((*PERSON, "annotations", 1, "kwargs"), {"A": "b"}, "kwargs key should be a property name"),
    "kwargs value": ((*PERSON, "annotations", 1, "kwargs"), {"a": 1}, "should be a string"),
    "dangling interface": ((*PERSON, "implements", 0, "id"), 2, "refers to id 2, which is nothing of the right"),
    "interface misnamed": ((*PERSON, "implements", 0, "name"), "I", "calls id 1 'I', but its name is 'Named'"),
    "dangling endpoint": ((*IN, "from", "id"), 1, "an endpoint of edge 'In' refers to id 1"),
    "endpoint misnamed": ((*IN, "to", "name"), "Person", "calls id 2 'Person', but its name is 'Bed'"),
    "dangling column": ((*BED, "constraints", 1, "Unique", 0, "id"), 9, "@unique of node 'Bed' refers to id 9"),
    "column misnamed": ((*BED, "constraints", 1, "Unique", 0, "name"), "x", "calls id 8 'x'"),
    "system field of a node": (
        (*BED, "constraints", 1, "Unique", 0),
        {"system": "src"},
        "@unique of node 'Bed' cannot name 'src'",
    ),
    "unknown system field": ((*IN, "constraints", 0, "Unique", 1), {"system": "id"}, "should be 'src' or 'dst'"),
    "no columns": ((*BED, "constraints", 1, "Unique"), [], "@unique of node 'Bed' has no columns"),
    "unknown constraint": ((*BED, "constraints", 1), {"Card": []}, "a constraint of an unknown kind"),
    "two constraints in one": (
        (*BED, "constraints", 1),
        {"Unique": [], "Index": []},
        "should be an object with one member",
    ),
    "key on an edge": (
        (*IN, "constraints"),
        [{"Key": [{"id": 13, "name": "since"}]}],
        "@key of edge 'In' cannot stand on 'since'",
    ),
    "key on a nullable": (
        (*PERSON, "constraints"),
        lambda items: [{"Key": [{"id": 11, "name": "nick"}]}, *items],
        "@key of node 'Person' cannot stand on 'nick'",
    ),
    "unique on a vector": (
        (*PERSON, "constraints"),
        lambda items: [{"Unique": [{"id": 12, "name": "vec"}]}, *items],
        "@unique of node 'Person' cannot stand on 'vec'",
    ),
    "range without bounds": (
        (*BED, "constraints", 2, "Range"),
        lambda body: {**body, "min": None, "max": None},
        "@range of node 'Bed' cannot stand on 'number'",
    ),
    "range upside down": ((*BED, "constraints", 2, "Range", "max"), 0, "@range of node 'Bed' cannot stand"),
    "range of text": (
        (*BED, "constraints", 2, "Range", "property"),
        {"id": 8, "name": "ward"},
        "@range of node 'Bed' cannot stand on 'ward'",
    ),
    "infinite bound": ((*BED, "constraints", 2, "Range", "max"), float("inf"), "should be a finite number"),
    "huge bound": ((*BED, "constraints", 2, "Range", "max"), 10**400, "should be a finite number"),
    "bound as text": ((*BED, "constraints", 2, "Range", "max"), "9", "should be a number"),
    "bad pattern": ((*BED, "constraints", 3, "Check", "pattern"), "(", "@check of node 'Bed' cannot stand"),
    "check of a number": (
        (*BED, "constraints", 3, "Check", "property"),
        {"id": 7, "name": "number"},
        "@check of node 'Bed' cannot stand on 'number'",
    ),
    "interface constraint over two": (
        ("interfaces", 0, "constraints", 0, "Index"),
        [{"id": 5, "name": "name"}, {"id": 6, "name": "nick"}],
        "interface 'Named' has a constraint over several columns",
    ),
    "dangling embed source": ((*VEC, "embed", "source", "id"), 9, "refers to id 9, which is not 'name'"),
    "embed of nothing": ((*VEC, "embed", "source", "id"), None, "refers to id None, which is not 'name'"),
    "embed of a number": (
        (*VEC, "embed", "source"),
        {"id": 9, "name": "mood"},
        "the embedding of 'Person.vec' is not made from a String",
    ),
    "embed into text": (
        (*MOOD, "embed"),
        {"source": {"id": 10, "name": "name"}, "model": None},
        "the embedding of 'Person.mood' is not on a vector",
    ),
    "missing link": ((*NAME, "satisfies"), [], "'Person.name' is not linked to exactly"),
    "dangling link": ((*NAME, "satisfies", 0, "property", "id"), 6, "'Person.name' is not linked to exactly"),
    "link of an edge": (
        (*IN, "properties", 0, "injected"),
        True,
        "'In.since' cannot come from an interface",
    ),
    "injected by nobody": ((*MOOD, "injected"), True, "'Person.mood' is injected, but no interface provides it"),
    "interface not fulfilled": (
        (*PERSON, "properties"),
        lambda items: [items[0], items[1], items[3]],
        "node 'Person' lacks 'nick' of interface 'Named'",
    ),
    "interface type differs": ((*NICK, "type", "nullable"), False, "'Person.nick' differs from interface 'Named'"),
    "cardinality upside down": ((*IN, "cardinality", "min"), 2, "the cardinality 2..1 of edge 'In' is upside down"),
    "cardinality too large": ((*IN, "cardinality", "max"), 2**32, "should be a whole number from 0 to 4294967295"),
    "edges alike": (
        ("edges",),
        lambda edges: [
            {**edges[0], "name": "IN", "id": 17, "incarnation_id": 18, "properties": [], "constraints": []},
            *edges,
        ],
        "edges 'IN' and 'In' differ only in case",
    ),
}


@pytest.mark.parametrize(("path", "change", "message"), REFUSED.values(), ids=REFUSED)
def test_an_invalid_document_is_refused(path, change, message):
    document = deepcopy(first(WARD).to_json())
    document["next_identity_id"] = 19 if path == ("edges",) else 17
    place = document
    for key in path[:-1]:
        place = place[key]
    if change is MISSING:
        del place[path[-1]]
    else:
        place[path[-1]] = change(place[path[-1]]) if callable(change) else change
    with pytest.raises(SchemaChangeError, match=message) as raised:
        SchemaIR.from_json(document)
    assert raised.value.code == "bad_schema_document"
    assert raised.value.message.startswith("the stored schema document is not valid: ")
