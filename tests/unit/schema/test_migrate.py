"""Migration plans of schema changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnigraph.errors import SchemaChangeError
from omnigraph.schema.catalog import Metadata
from omnigraph.schema.check import compile_schema
from omnigraph.schema.constraints import Check, Index, Key, Range, Unique
from omnigraph.schema.identity import new_identity, resolve_identity
from omnigraph.schema.migrate import OFFLINE_DOMAIN, plan_between, plan_schema, refuse_losses
from omnigraph.schema.migration_steps import (
    AddConstraint,
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    ExtendEnum,
    RenameProperty,
    RenameType,
    UnsupportedChange,
    UpdateMerge,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    spell_constraint,
    spell_note,
)
from omnigraph.types import PropertyType


def plan(old, new, **options):
    return plan_between(compile_schema(old), compile_schema(new), **options)


TEXT = PropertyType("String", nullable=True)
NUMBER = PropertyType("I32", nullable=True)

# -- supported changes -------------------------------------------------------------------------------

SUPPORTED = {
    "new node": ("", "node A { a: I32 @key }", [AddType("node", "A")]),
    "new edge": ("node A {}", "node A {} edge E: A -> A { a: I32 }", [AddType("edge", "E")]),
    "new interface": ("", "interface I { a: I32 @index }", [AddType("interface", "I")]),
    "new nullable property": ("node A {}", "node A { a: String? }", [AddProperty("node", "A", "a", TEXT)]),
    "new property of an edge": (
        "node A {} edge E: A -> A",
        "node A {} edge E: A -> A { a: I32? }",
        [AddProperty("edge", "E", "a", NUMBER)],
    ),
    "new property of an interface": (
        "interface I {} node A implements I {} node B implements I {} node C {}",
        "interface I { a: I32? } node A implements I {} node B implements I {} node C {}",
        [
            AddProperty("interface", "I", "a", NUMBER),
            AddProperty("node", "A", "a", NUMBER),
            AddProperty("node", "B", "a", NUMBER),
        ],
    ),
    "new indexed property": (
        "node A {}",
        "node A { a: String? @index }",
        [AddProperty("node", "A", "a", TEXT), AddConstraint("node", "A", Index(("a",)))],
    ),
    "new embedded property": (
        "node A { t: String }",
        "node A { t: String v: Vector(2)? @embed(t) }",
        [AddProperty("node", "A", "v", PropertyType("Vector", nullable=True, dim=2))],
    ),
    "renamed node": ("node A { a: I32 }", 'node B @rename_from("A") { a: I32 }', [RenameType("node", "A", "B")]),
    "renamed node with an edge": (
        "node A {} edge E: A -> A",
        'node B @rename_from("A") {} edge E: B -> B',
        [RenameType("node", "A", "B")],
    ),
    "renamed edge": (
        "node A {} edge E: A -> A",
        'node A {} edge F: A -> A @rename_from("E")',
        [RenameType("edge", "E", "F")],
    ),
    "renamed property": (
        "node A { a: I32 b: I32 @key(a, b) @index(a) @unique(b, a) @range(a, 0..) }",
        'node A { z: I32 @rename_from("a") b: I32 @key(b, z) @index(z) @unique(b, z) @range(z, 0..) }',
        [RenameProperty("node", "A", "a", "z")],
    ),
    "renamed source of an embedding": (
        "node A { t: String v: Vector(2)? @embed(t) }",
        'node A { u: String @rename_from("t") v: Vector(2)? @embed(u) }',
        [RenameProperty("node", "A", "t", "u")],
    ),
    "renamed property of an interface": (
        "interface I { a: I32? } node A implements I {}",
        'interface I { b: I32? @rename_from("a") } node A implements I {}',
        [RenameProperty("interface", "I", "a", "b"), RenameProperty("node", "A", "a", "b")],
    ),
    "renamed property of an interface, declared by the node": (
        "interface I { a: I32? } node A implements I { a: I32? }",
        'interface I { b: I32? @rename_from("a") } node A implements I { b: I32? @rename_from("a") }',
        [RenameProperty("interface", "I", "a", "b"), RenameProperty("node", "A", "a", "b")],
    ),
    "declared merges": ("node A {}", "merge { properties: combine } node A {}", [UpdateMerge("combine")]),
    "the default of merges": ("node A {}", "merge { properties: conflict } node A {}", []),
    "removed node": ("node A { a: I32 @key }", "", [DropType("node", "A")]),
    "removed node and its edges": (
        "node A {} edge E: A -> A",
        "",
        [DropType("node", "A"), DropType("edge", "E")],
    ),
    "removed property": ("node A { a: I32 }", "node A {}", [DropProperty("node", "A", "a")]),
    "removed property with its constraints": (
        "node A { a: I32 b: I32 @index(a) @unique(a, b) @range(a, 0..1) }",
        "node A {}",
        [DropProperty("node", "A", "a"), DropProperty("node", "A", "b")],
    ),
    "removed property of an interface": (
        "interface I { a: I32? @index } node A implements I {}",
        "interface I {} node A implements I {}",
        [DropProperty("interface", "I", "a"), DropProperty("node", "A", "a")],
    ),
    "enum gains values": (
        "node A { a: enum(m) }",
        "node A { a: enum(z, m, b) }",
        [ExtendEnum("node", "A", "a", ("b", "z"))],
    ),
    "renamed enum gains values": (
        "node A { a: enum(m)? }",
        'node A { b: enum(m, n)? @rename_from("a") }',
        [RenameProperty("node", "A", "a", "b"), ExtendEnum("node", "A", "b", ("n",))],
    ),
    "new order": (
        "node A { a: enum(x, y) b: I32 } node B {}",
        "node B {} node A { b: I32 a: enum(y, x) }",
        [],
    ),
    "new index on a property": (
        "node A { a: I32 }",
        "node A { a: I32 @index }",
        [AddConstraint("node", "A", Index(("a",)))],
    ),
    "new index in the body": (
        "node A { a: I32 b: I32 }",
        "node A { a: I32 b: I32 @index(b, a) }",
        [AddConstraint("node", "A", Index(("a", "b")))],
    ),
    "new index on an endpoint": (
        "node A {} edge E: A -> A",
        "node A {} edge E: A -> A { @index(src) }",
        [AddConstraint("edge", "E", Index(("src",)))],
    ),
    "new index from an interface": (
        "interface I { a: I32 } node A implements I {}",
        "interface I { a: I32 @index } node A implements I {}",
        [AddConstraint("interface", "I", Index(("a",))), AddConstraint("node", "A", Index(("a",)))],
    ),
    "new description": (
        'node A @description("one") @x {}',
        'node A @description("two") @instruction("do") @x {}',
        [
            UpdateTypeMetadata(
                "node",
                "A",
                (Metadata("description", "two"), Metadata("instruction", "do"), Metadata("x")),
            )
        ],
    ),
    "new description of a property": (
        "node A { a: I32 }",
        "node A { a: I32 @description(d) }",
        [UpdatePropertyMetadata("node", "A", "a", (Metadata("description", "d"),))],
    ),
    "removed description": (
        "node A {} edge E: A -> A @description(d)",
        "node A {} edge E: A -> A",
        [UpdateTypeMetadata("edge", "E", ())],
    ),
}


@pytest.mark.parametrize(("old", "new", "steps"), SUPPORTED.values(), ids=SUPPORTED)
def test_supported_changes_and_their_steps(old, new, steps):
    found = plan(old, new)
    assert list(found.steps) == steps
    assert found.supported
    assert found.desired == resolve_identity(found.accepted, compile_schema(new)).ir


# -- refused changes ---------------------------------------------------------------------------------

REQUIRED = "a new property must be nullable, because existing rows have no value for it: write 'I32?'"
MF_103, MF_106 = "OG-MF-103", "OG-MF-106"

REFUSED = {
    "new required property": ("node A {}", "node A { a: I32 }", [("node:A.a", REQUIRED, MF_103)]),
    "new required property of an interface": (
        "interface I {} node A implements I {}",
        "interface I { a: I32 } node A implements I {}",
        [("interface:I.a", REQUIRED, MF_103), ("node:A.a", REQUIRED, MF_103)],
    ),
    "new key on a new property": (
        "node A {}",
        "node A { a: I32 @key }",
        [
            ("node:A.a", REQUIRED, MF_103),
            ("node:A.a", "@key(a) cannot be added, because it changes the ids of existing rows", None),
        ],
    ),
    "new unique property": (
        "node A {}",
        "node A { a: I32? @unique }",
        [("node:A.a", "@unique(a) cannot be added, because it changes the constraints on existing rows", None)],
    ),
    "new range on a new property": (
        "node A {}",
        "node A { a: I32? @range(a, 0..1) }",
        [("node:A.a", "@range(a, 0..1) cannot be added, because it changes the constraints on existing rows", None)],
    ),
    "removed interface": (
        "interface I {}",
        "",
        [("interface:I", "an interface cannot be removed or renamed", None)],
    ),
    "renamed interface": (
        "interface I {} node A implements I {}",
        "interface J {} node A implements J {}",
        [
            ("interface:I", "an interface cannot be removed or renamed", None),
            ("node:A", "the implemented interfaces change from I to J", None),
        ],
    ),
    "enum loses a value": (
        "node A { a: enum(x, y) }",
        "node A { a: enum(x, z, w) }",
        [("node:A.a", "the type changes from enum(x, y) to enum(w, x, z)", MF_106)],
    ),
    "enum gains a value and becomes nullable": (
        "node A { a: enum(x) }",
        "node A { a: enum(x, y)? }",
        [("node:A.a", "the type changes from enum(x) to enum(x, y)?", MF_106)],
    ),
    "enum becomes String": (
        "node A { a: enum(x) }",
        "node A { a: String }",
        [("node:A.a", "the type changes from enum(x) to String", MF_106)],
    ),
    "String becomes enum": (
        "node A { a: String }",
        "node A { a: enum(x) }",
        [("node:A.a", "the type changes from String to enum(x)", MF_106)],
    ),
    "another type": (
        "node A { a: I32 }",
        "node A { a: I64 }",
        [("node:A.a", "the type changes from I32 to I64", MF_106)],
    ),
    "a list": (
        "node A { a: I32 }",
        "node A { a: [I32] }",
        [("node:A.a", "the type changes from I32 to [I32]", MF_106)],
    ),
    "another dimension": (
        "node A { a: Vector(2) }",
        "node A { a: Vector(3) }",
        [("node:A.a", "the type changes from Vector(2) to Vector(3)", MF_106)],
    ),
    "nullable": (
        "node A { a: I32 }",
        "node A { a: I32? }",
        [("node:A.a", "the type changes from I32 to I32?", MF_106)],
    ),
    "required": (
        "node A { a: I32? }",
        "node A { a: I32 }",
        [("node:A.a", "the type changes from I32? to I32", MF_106)],
    ),
    "new key": (
        "node A { a: I32 }",
        "node A { a: I32 @key }",
        [("node:A.a", "@key(a) cannot be added, because it changes the ids of existing rows", None)],
    ),
    "another key": (
        "node A { a: I32 b: I32 @key(a) }",
        "node A { a: I32 b: I32 @key(a, b) }",
        [
            ("node:A.a", "@key(a) cannot be removed", None),
            ("node:A", "@key(a, b) cannot be added, because it changes the ids of existing rows", None),
        ],
    ),
    "new unique": (
        "node A { a: I32 }",
        "node A { a: I32 @unique }",
        [("node:A.a", "@unique(a) cannot be added, because it changes the constraints on existing rows", None)],
    ),
    "new unique on an edge": (
        "node A {} edge E: A -> A",
        "node A {} edge E: A -> A { @unique(src, dst) }",
        [("edge:E", "@unique(dst, src) cannot be added, because it changes the constraints on existing rows", None)],
    ),
    "new check": (
        "node A { a: String }",
        'node A { a: String @check(a, "x") }',
        [("node:A.a", '@check(a, "x") cannot be added, because it changes the constraints on existing rows', None)],
    ),
    "another range": (
        "node A { a: I32 @range(a, 0..) }",
        "node A { a: I32 @range(a, ..2.5) }",
        [
            ("node:A.a", "@range(a, 0..) cannot be removed", None),
            ("node:A.a", "@range(a, ..2.5) cannot be added, because it changes the constraints on existing rows", None),
        ],
    ),
    "removed key": ("node A { a: I32 @key }", "node A { a: I32 }", [("node:A.a", "@key(a) cannot be removed", None)]),
    "removed key column": ("node A { a: I32 @key }", "node A {}", [("node:A", "@key(a) cannot be removed", None)]),
    "removed unique": (
        "node A { a: I32 @unique }",
        "node A { a: I32 }",
        [("node:A.a", "@unique(a) cannot be removed", None)],
    ),
    "removed index": (
        "node A { a: I32 @index }",
        "node A { a: I32 }",
        [("node:A.a", "@index(a) cannot be removed", None)],
    ),
    "removed part of an index": (
        "node A { a: I32 b: I32 @index(a, b) }",
        "node A { a: I32 }",
        [("node:A", "@index(a, b) cannot be removed", None)],
    ),
    "removed property of a unique edge": (
        "node A {} edge E: A -> A { a: I32 @unique(src, a) }",
        "node A {} edge E: A -> A {}",
        [("edge:E", "@unique(a, src) cannot be removed", None)],
    ),
    "another cardinality": (
        "node A {} edge E: A -> A",
        "node A {} edge E: A -> A @card(0..1)",
        [("edge:E", "@card changes from 0.. to 0..1", None)],
    ),
    "other endpoints": (
        "node A {} node B {} edge E: A -> A",
        "node A {} node B {} edge E: B -> B",
        [
            ("edge:E", "the source changes from A to B, but existing edges keep their ends", None),
            ("edge:E", "the target changes from A to B, but existing edges keep their ends", None),
        ],
    ),
    "endpoint replaced": (
        "node A {} node C {} edge E: C -> A",
        "node B {} node C {} edge E: C -> B",
        [("edge:E", "the target changes from A to B, but existing edges keep their ends", None)],
    ),
    "implements more": (
        "interface I { a: I32? } node A { a: I32? }",
        "interface I { a: I32? } node A implements I { a: I32? }",
        [("node:A", "the implemented interfaces change from none to I", None)],
    ),
    "implements less": (
        "interface I {} interface J {} node A implements I, J {}",
        "interface I {} interface J {} node A implements J {}",
        [("node:A", "the implemented interfaces change from I, J to J", None)],
    ),
    "injected becomes direct": (
        "interface I { a: I32? } node A implements I {}",
        "interface I { a: I32? } node A implements I { a: I32? }",
        [("node:A.a", "it was inherited from an interface and is now declared by the node itself", None)],
    ),
    "direct becomes injected": (
        "interface I { a: I32? } node A implements I { a: I32? }",
        "interface I { a: I32? } node A implements I {}",
        [("node:A.a", "it was declared by the node itself and is now inherited from an interface", None)],
    ),
    "renamed and injected becomes direct": (
        "interface I { a: I32? } node A implements I {}",
        'interface I { b: I32? @rename_from("a") } node A implements I { b: I32? }',
        [("node:A.b", "it was inherited from an interface and is now declared by the node itself", None)],
    ),
    "new link": (
        "interface I {} node A implements I { a: I32? }",
        "interface I { a: I32? } node A implements I { a: I32? }",
        [("node:A.a", "it implemented no interface and now implements I.a", None)],
    ),
    "lost link": (
        "interface I { a: I32? } node A implements I { a: I32? }",
        "interface I {} node A implements I { a: I32? }",
        [("node:A.a", "it implemented I.a and now implements no interface", None)],
    ),
    **{
        f"embedding: {name}": (
            f"node A {{ t: String u: String v: Vector(2)? {old} }}",
            f"node A {{ t: String u: String v: Vector(2)? {new} }}",
            [("node:A.v", "@embed changes, and the stored vectors would not belong to the new source or model", None)],
        )
        for name, old, new in (
            ("new", "", "@embed(t)"),
            ("removed", "@embed(t)", ""),
            ("source", "@embed(t)", "@embed(u)"),
            ("model", "@embed(t)", '@embed(t, model="m")'),
        )
    },
    "another annotation": (
        "node A @x(1) { a: I32 @z }",
        "node A @x(2) { a: I32 }",
        [
            (
                "node:A",
                '@x("1") is removed and @x("2") is added, but only @description and @instruction may change',
                None,
            ),
            ("node:A.a", "@z is removed, but only @description and @instruction may change", None),
        ],
    ),
}


@pytest.mark.parametrize(("old", "new", "reasons"), REFUSED.values(), ids=REFUSED)
def test_refused_changes_and_their_reasons(old, new, reasons):
    found = plan(old, new)
    assert not found.supported
    assert [(step.entity, step.reason, step.code) for step in found.unsupported] == reasons


def test_a_difference_without_a_step_is_refused_as_a_whole():
    catalog = compile_schema("node A @x @z {}")
    accepted = new_identity(catalog, OFFLINE_DOMAIN).ir
    odd = replace(accepted, nodes=(replace(accepted.nodes[0], notes=accepted.nodes[0].notes[::-1]),))
    reason = "unclassified change: the schemas differ in a way the planner has no step for"
    assert plan_schema(odd, catalog).steps == (UnsupportedChange("schema", reason),)


def test_a_misspelled_annotation_of_an_older_schema_can_be_removed():
    catalog = compile_schema("node A {}")
    accepted = new_identity(catalog, OFFLINE_DOMAIN).ir
    older = replace(accepted, nodes=(replace(accepted.nodes[0], notes=(Metadata("kye"),)),))
    assert plan_schema(older, catalog).supported


def test_a_wrong_hint_raises_instead_of_planning():
    with pytest.raises(SchemaChangeError, match="node:B cannot be renamed from 'C'"):
        plan("node A {}", 'node B @rename_from("C") {}')


def test_an_ignored_hint_is_reported_with_the_plan():
    found = plan("node A {}", 'node A @rename_from("B") {}')
    assert found.steps == ()
    message = '@rename_from("B") is ignored: the accepted schema has this name already'
    assert found.to_json() == {
        "supported": True,
        "step_count": 0,
        "steps": [],
        "diagnostics": [{"code": "ignored_exact_match_rename_hint", "entity": "node:A", "message": message}],
    }


# -- drops -------------------------------------------------------------------------------------------


def test_drops_that_lose_data_are_refused():
    old = "interface I { p: I32? } node A implements I { v: Vector(2)? } node B {} edge E: A -> A"
    steps = plan(old, "interface I {} node A implements I {}").steps
    assert steps == (
        DropProperty("interface", "I", "p"),
        DropProperty("node", "A", "p"),
        DropProperty("node", "A", "v"),
        DropType("node", "B"),
        DropType("edge", "E"),
    )
    lost = {steps[2]: "2 values", steps[3]: "3 rows", steps[4]: "1 row"}
    assert tuple(refuse_losses(steps, lost)) == (
        *steps[:2],
        UnsupportedChange("node:A.v", "dropping it removes 2 values", "OG-DS-104"),
        UnsupportedChange("node:B", "dropping it removes 3 rows", "OG-DS-102"),
        UnsupportedChange("edge:E", "dropping it removes 1 row", "OG-DS-103"),
    )


# -- order -------------------------------------------------------------------------------------------


def test_steps_are_ordered_by_kind_name_and_change():
    old = """
        interface I { i: I32? }
        node A implements I { e: enum(x) gone: I32? kept: I32 }
        node Dropped {}
        edge E: A -> A
        edge F: A -> A
    """
    new = """
        interface I { i: I32? j: I32? }
        interface K {}
        node C @rename_from("A") @description("new") @other implements I {
            aa: String? @index
            b: enum(x, y) @rename_from("e") @description("new")
            kept: I64 @index @unique
            @index(aa, kept)
        }
        node B {}
        edge E: C -> C @card(0..1) { a: I32? }
    """
    assert [step.describe() for step in plan(old, new).steps] == [
        "add interface property I.j: I32?",
        "add interface K",
        "add node type B",
        "rename node type A to C",
        'set the annotations of node type C to @description("new") @other',
        "cannot change node:C: @other is added, but only @description and @instruction may change",
        "add property C.aa: String?",
        "add @index(aa) to node type C",
        "rename property C.e to b",
        "extend the enum of property C.b by y",
        'set the annotations of property C.b to @description("new")',
        "add property C.j: I32?",
        "cannot change node:C.kept: [OG-MF-106] the type changes from I32 to I64",
        "cannot change node:C.kept: @unique(kept) cannot be added, because it changes the constraints on existing rows",
        "add @index(kept) to node type C",
        "add @index(aa, kept) to node type C",
        "drop property C.gone (older versions keep it until they are cleaned up)",
        "drop node type Dropped (older versions keep it until they are cleaned up)",
        "cannot change edge:E: @card changes from 0.. to 0..1",
        "add edge property E.a: I32?",
        "drop edge type F (older versions keep it until they are cleaned up)",
    ]


# -- the form of a step ------------------------------------------------------------------------------

STRING = {"scalar": "String", "nullable": True, "list": False, "enum_values": None}
OF_A = {"type_kind": "node", "type_name": "A"}

FORMS = [
    (
        AddType("interface", "A"),
        {"kind": "add_type", "type_kind": "interface", "name": "A"},
        "add interface A",
    ),
    (
        RenameType("node", "A", "B"),
        {"kind": "rename_type", "type_kind": "node", "from": "A", "to": "B"},
        "rename node type A to B",
    ),
    (
        AddProperty("node", "A", "a", TEXT),
        {"kind": "add_property", **OF_A, "property_name": "a", "property_type": STRING},
        "add property A.a: String?",
    ),
    (
        AddProperty("node", "A", "v", PropertyType("Vector", nullable=True, dim=2)),
        {
            "kind": "add_property",
            **OF_A,
            "property_name": "v",
            "property_type": {**STRING, "scalar": {"Vector": 2}},
        },
        "add property A.v: Vector(2)?",
    ),
    (
        RenameProperty("node", "A", "a", "b"),
        {"kind": "rename_property", **OF_A, "from": "a", "to": "b"},
        "rename property A.a to b",
    ),
    (
        AddConstraint("node", "A", Index(("a", "b"))),
        {"kind": "add_constraint", **OF_A, "constraint": {"Index": ["a", "b"]}},
        "add @index(a, b) to node type A",
    ),
    (
        ExtendEnum("node", "A", "a", ("x", "y")),
        {"kind": "extend_enum", **OF_A, "property_name": "a", "added_values": ["x", "y"]},
        "extend the enum of property A.a by x, y",
    ),
    (
        UpdateTypeMetadata("edge", "E", (Metadata("description", 'a "b"'), Metadata("x", "1", (("k", "v"),)))),
        {
            "kind": "update_type_metadata",
            "type_kind": "edge",
            "name": "E",
            "annotations": [
                {"name": "description", "value": 'a "b"'},
                {"name": "x", "value": "1", "kwargs": {"k": "v"}},
            ],
        },
        r'set the annotations of edge type E to @description("a \"b\"") @x("1", k="v")',
    ),
    (
        UpdatePropertyMetadata("node", "A", "a", ()),
        {"kind": "update_property_metadata", **OF_A, "property_name": "a", "annotations": []},
        "remove the annotations of property A.a",
    ),
    (
        UpdateMerge("combine"),
        {"kind": "update_merge", "properties": "combine"},
        "set merge { properties: combine }",
    ),
    (
        DropProperty("node", "A", "a"),
        {"kind": "drop_property", **OF_A, "property_name": "a"},
        "drop property A.a (older versions keep it until they are cleaned up)",
    ),
    (
        DropType("edge", "E"),
        {"kind": "drop_type", "type_kind": "edge", "name": "E"},
        "drop edge type E (older versions keep it until they are cleaned up)",
    ),
    (
        UnsupportedChange("schema", "because"),
        {"kind": "unsupported_change", "entity": "schema", "reason": "because"},
        "cannot change schema: because",
    ),
    (
        UnsupportedChange("node:A.a", "because", "OG-MF-103"),
        {"kind": "unsupported_change", "entity": "node:A.a", "reason": "because", "code": "OG-MF-103"},
        "cannot change node:A.a: [OG-MF-103] because",
    ),
]


@pytest.mark.parametrize(("step", "form", "line"), FORMS, ids=[f[0].describe() for f in FORMS])
def test_json_and_text_of_a_step(step, form, line):
    assert step.to_json() == form
    assert list(step.to_json()) == list(form)
    assert step.describe() == line


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (Key(("a", "b")), "@key(a, b)"),
        (Unique(("a",)), "@unique(a)"),
        (Range("a", 0.0, 150.0), "@range(a, 0..150)"),
        (Range("a", None, -0.5), "@range(a, ..-0.5)"),
        (Check("a", '^"x"$'), r'@check(a, "^\"x\"$")'),
    ],
)
def test_a_constraint_is_written_in_schema_syntax(constraint, text):
    assert spell_constraint(constraint) == text


def test_a_bare_annotation_has_no_parentheses():
    assert spell_note(Metadata("x")) == "@x"


def test_json_of_a_plan():
    assert plan("", "node A {}").to_json() == {
        "supported": True,
        "step_count": 1,
        "steps": [{"kind": "add_type", "type_kind": "node", "name": "A"}],
    }


# -- hints for renames without @rename_from ----------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "hints"),
    [
        (
            "node Film { runtime: I32? }",
            "node Film { length: I32? }",
            ['if Film.length is runtime renamed, write: length: I32? @rename_from("runtime")'],
        ),
        (
            "node Film { runtime: I32 }",
            "node Film { length: I32? }",
            ['if Film.length is runtime renamed, write: length: I32 @rename_from("runtime")'],
        ),
        (
            "node Film { a: I32? born: Date? titel: String? }",
            "node Film { title: String? zone: String? }",
            ['if Film.title is titel renamed, write: title: String? @rename_from("titel")'],
        ),
        ("node Film { runtime: I32? }", "node Film { length: F64? }", []),
        ("node Film { runtime: I32? }", 'node Film { length: I32? @rename_from("runtime") }', []),
        ("node Film { runtime: I32? }", "node Film {}", []),
        (
            "node Film { title: String @key }",
            "node Movie { title: String @key }",
            ['if Movie is Film renamed, write: node Movie @rename_from("Film")'],
        ),
        ("node Film { title: String @key }", "node Movie { name: String @key }", []),
    ],
)
def test_a_drop_beside_an_addition_of_the_same_type_has_a_rename_hint(old, new, hints):
    assert list(plan(old, new).rename_hints) == hints
    assert plan(old, new).to_json().get("rename_hints", []) == hints


def test_the_rename_hint_is_a_supported_change():
    assert plan("node Film { runtime: I32 }", 'node Film { length: I32 @rename_from("runtime") }').supported
