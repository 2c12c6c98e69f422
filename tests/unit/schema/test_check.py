"""Every compile-time error of the schema language (§10), each with a similar text that compiles; the eligibility table
(§5); interfaces (§4); annotations (§7); and the catalog of a valid schema.
"""

from __future__ import annotations

import pytest

from omnigraph.errors import CompileError, Diagnostic, ParseError, SchemaError
from omnigraph.schema.catalog import Cardinality, Catalog, EdgeType, Embed, InterfaceType, Metadata, NodeType, Property
from omnigraph.schema.check import compile_schema
from omnigraph.schema.constraints import Check, Index, Key, Range, Unique
from omnigraph.types import PropertyType


def mistakes(text: str) -> tuple[type[CompileError], tuple[Diagnostic, ...]]:
    with pytest.raises(CompileError) as raised:
        compile_schema(text)
    return type(raised.value), raised.value.diagnostics


def marked(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text without its `^^` marks, and the line and column behind each mark."""
    places: list[tuple[int, int]] = []
    plain, *rest = text.split("^^")
    for piece in rest:
        lines = plain.split("\n")
        places.append((len(lines), len(lines[-1]) + 1))
        plain += piece
    return plain, places


# -- §10, row by row ---------------------------------------------------------------------------------

P, C = ParseError, SchemaError
ROWS: dict[str, tuple[str, type[CompileError], str, str]] = {
    # row and error: code, class, the invalid text with ^^ before each error, a valid text
    "1 syntax": ("parse_error", P, "node A ^^}", "node A {}"),
    "2 escape in an annotation": (
        "S2", P, r'node A @description("a^^\q") {}', r'node A @description("a\\q") {}'),
    "2 escape in a pattern": (
        "S2", P, r'node A { a: String @check(a, "^^\d") }', r'node A { a: String @check(a, "\\d") }'),
    "2 escape in an argument": (
        "S2", P, r'node A { a: String v: Vector(3)? @embed("a", model="^^\x41") }',
        r'node A { a: String v: Vector(3)? @embed("a", model="x41") }'),
    "2 escape at the end of the text": (
        "parse_error", P, 'node A @description(^^"a\\', 'node A @description("a\\\\") {}'),
    "3 dimension 0": ("S3", P, "node A { v: Vector(^^0) }", "node A { v: Vector(1) }"),
    "3 dimension above 2^31-1": ("S3", P, "node A { v: Vector(^^2147483648) }", "node A { v: Vector(2147483647) }"),
    "3 dimension no u32": ("S3", P, "node A { v: Vector(^^99999999999999999999) }", "node A { v: Vector(999999999) }"),
    "3 dimension no integer": ("parse_error", P, "node A { v: Vector(^^1.5) }", "node A { v: Vector(15) }"),
    "4 list of Blob": ("S4", P, "node A { b: [^^Blob] }", "node A { b: [String] }"),
    "5 enum value twice": ("S5", P, "node A { e: enum(a, b, ^^a) }", "node A { e: enum(a, b, A) }"),
    "5 empty enum": ("parse_error", P, "node A { e: enum(^^) }", "node A { e: enum(a) }"),
    **{
        f"6 {name}": ("S6", P, f"node A {{ ^^{name}: I32 }}", f"node A {{ {name}s: I32 }}")
        for name in ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")
    },
    "6 on an edge": ("S6", P, "node A {} edge E: A -> A { ^^_rowid: I32 }", "node A {} edge E: A -> A { row_id: I32 }"),
    "6 on an interface": ("S6", P, "interface I { ^^_rowid: I32 }", "interface I { rowid: I32 }"),
    "7 minimum no u32": (
        "S7", P, "node A {} edge E: A -> A @card(^^4294967296..)", "node A {} edge E: A -> A @card(4294967295..)"),
    "7 maximum no u32": (
        "S7", P, "node A {} edge E: A -> A @card(0..^^4294967296)", "node A {} edge E: A -> A @card(0..4294967295)"),
    "7 minimum above maximum": (
        "S7", P, "node A {} edge E: A -> A @card(^^3..2)", "node A {} edge E: A -> A @card(2..2)"),
    "8 unknown interface": ("S8", P, "node A implements ^^I {}", "interface I {} node A implements I {}"),
    "8 a node is no interface": (
        "S8", P, "node B {} node A implements ^^B {}",
        "interface B {} node A implements B {}"),
    "8 other scalar": (
        "S8", P, "interface I { a: I32 } node A implements I { ^^a: I64 }",
        "interface I { a: I32 } node A implements I { a: I32 }"),
    "8 other nullability": (
        "S8", P, "interface I { a: I32 } node A implements I { ^^a: I32? }",
        "interface I { a: I32? } node A implements I { a: I32? }"),
    "8 list or not": (
        "S8", P, "interface I { a: I32 } node A implements I { ^^a: [I32] }",
        "interface I { a: [I32] } node A implements I { a: [I32] }"),
    "8 other enum": (
        "S8", P, "interface I { a: enum(x, y) } node A implements I { ^^a: enum(x, z) }",
        "interface I { a: enum(x, y) } node A implements I { a: enum(y, x) }"),
    "8 enum or String": (
        "S8", P, "interface I { a: String } node A implements I { ^^a: enum(x) }",
        "interface I { a: String } node A implements I { a: String }"),
    "8 other dimension": (
        "S8", P, "interface I { a: Vector(3) } node A implements I { ^^a: Vector(4) }",
        "interface I { a: Vector(3) } node A implements I { a: Vector(3) }"),
    "9 types disagree": (
        "S9", C, "interface I { a: I32 } interface J { a: I64 } node A implements I, ^^J {}",
        "interface I { a: I32 } interface J { a: I32 } node A implements I, J {}"),
    "9 notes disagree": (
        "S9", C, 'interface I { a: I32 @x } interface J { a: I32 } node A implements I, ^^J {}',
        "interface I { a: I32 @x } interface J { a: I32 @x } node A implements I, J {}"),
    "9 constraints disagree": (
        "S9", C, "interface I { a: I32 } interface J { a: I32 @index } node A implements I, ^^J {}",
        "interface I { a: I32 @index } interface J { a: I32 @index } node A implements I, J {}"),
    "9 embeds disagree": (
        "S9", C,
        'interface I { v: Vector(3)? @embed("t") } interface J { v: Vector(3)? } '
        "node A implements I, ^^J { t: String }",
        'interface I { v: Vector(3)? @embed("t") } interface J { v: Vector(3)? @embed(t) } '
        "node A implements I, J { t: String }"),
    "9 unless the node decides": (
        "S9", C, "interface I { a: I32 @x } interface J { a: I32 } node A implements I, ^^J {}",
        "interface I { a: I32 @x } interface J { a: I32 } node A implements I, J { a: I32 }"),
    "10 two in the body": (
        "S10", P, "node ^^A { a: I32 b: I32 @key(a) @key(b) }", "node A { a: I32 b: I32 @key(a, b) }"),
    "10 two on properties": (
        "S10", P, "node ^^A { a: I32 @key b: I32 @key }", "node A { a: I32 @key b: I32 @unique }"),
    "10 body and property": (
        "S10", P, "node ^^A { a: I32 @key b: I32 @key(b) }", "node A { a: I32 @key b: I32 @index(b) }"),
    "10 the same column twice": ("S10", P, "node ^^A { a: I32 @key @key(a) }", "node A { a: I32 @key @unique(a) }"),
    "10 injected and property": (
        "S10", P, "interface I { a: I32 @key } node ^^A implements I { b: I32 @key }",
        "interface I { a: I32 @key } node A implements I { b: I32 }"),
    "10 injected and body": (
        "S10", P, "interface I { a: I32 @key } node ^^A implements I { b: I32 @key(a, b) }",
        "interface I { a: I32 } node A implements I { b: I32 @key(a, b) }"),
    "10 two injected": (
        "S10", P, "interface I { a: I32 @key } interface J { b: I32 @key } node ^^A implements I, J {}",
        "interface I { a: I32 @key } interface J { b: I32 } node A implements I, J {}"),
    "10 key of an edge, property": (
        "S10", P, "node A {} edge E: A -> A { a: I32 ^^@key }", "node A {} edge E: A -> A { a: I32 @unique }"),
    "10 key of an edge, body": (
        "S10", P, "node A {} edge E: A -> A { a: I32 ^^@key(a) }", "node A {} edge E: A -> A { a: I32 @unique(a) }"),
    "11 unknown": ("S11", P, "node A { a: I32 @key(^^b) }", "node A { a: I32 @key(a) }"),
    "11 one of two unknown": ("S11", P, "node A { a: I32 @key(a, ^^id) }", "node A { a: I32 idx: I32 @key(a, idx) }"),
    "11 nullable": ("S11", P, "node A { ^^a: I32? @key(a) }", "node A { a: I32 @key(a) }"),
    "11 nullable, property form": ("S11", P, "node A { ^^a: I32? @key }", "node A { a: I32 @key }"),
    "11 nullable, injected": (
        "S11", P, "interface I { ^^a: I32? @key } node A implements I {}",
        "interface I { a: I32 @key } node A implements I {}"),
    "11 list": ("S11", P, "node A { ^^a: [I32] @key(a) }", "node A { a: I32 @key(a) }"),
    "11 vector": ("S11", P, "node A { ^^a: Vector(3) @key(a) }", "node A { a: F32 @key(a) }"),
    "11 blob": ("S11", P, "node A { ^^a: Blob @key(a) }", "node A { a: String @key(a) }"),
    "12 unique, unknown": ("S12", P, "node A { a: I32 @unique(^^b) }", "node A { a: I32 @unique(a) }"),
    "12 index, unknown": ("S12", P, "node A { a: I32 @index(a, ^^b) }", "node A { a: I32 b: I32 @index(a, b) }"),
    "12 src of a node": ("S12", P, "node A { @unique(^^src) }", "node A { src: I32 @unique(src) }"),
    "12 id of an edge": (
        "S12", P, "node A {} edge E: A -> A { @index(^^id) }", "node A {} edge E: A -> A { @index(src) }"),
    "12 from of an edge": (
        "S12", P, "node A {} edge E: A -> A { @unique(^^from, dst) }",
        "node A {} edge E: A -> A { @unique(src, dst) }"),
    "12 unique, blob": ("S12", P, "node A { a: Blob @unique(^^a) }", "node A { a: String @unique(a) }"),
    "12 index, blob": ("S12", P, "node A { a: Blob @index(^^a) }", "node A { a: String @index(a) }"),
    "13 key on a list": ("S13", P, "node A { a: [I32] ^^@key }", "node A { a: I32 @key }"),
    "13 key on a blob": ("S13", P, "node A { a: Blob ^^@key }", "node A { a: String @key }"),
    "13 key on a vector": ("S13", P, "node A { a: Vector(3) ^^@key }", "node A { a: F64 @key }"),
    "13 unique on a list": ("S13", P, "node A { a: [I32] ^^@unique }", "node A { a: I32 @unique }"),
    "13 unique on a blob": ("S13", P, "node A { a: Blob? ^^@unique }", "node A { a: String? @unique }"),
    "13 unique on a vector": ("S13", P, "node A { a: Vector(3) ^^@unique }", "node A { a: Vector(3) @index }"),
    "13 index on a list": ("S13", P, "node A { a: [I32] ^^@index }", "node A { a: [I32] @index(a) }"),
    "13 index on a blob": ("S13", P, "node A { a: Blob ^^@index }", "node A { a: String @index }"),
    "13 embed on a list": (
        "S13", P, 'node A { t: String a: [F32] ^^@embed("t") }', 'node A { t: String a: Vector(3) @embed("t") }'),
    "13 embed on a blob": (
        "S13", P, 'node A { t: String a: Blob ^^@embed("t") }', 'node A { t: String a: Vector(3)? @embed("t") }'),
    **{
        f"14 {word} on a node": ("S14", P, f"node A ^^@{word} {{}}", f"node A @my_{word} {{}}")
        for word in ("key", "unique", "index", "embed")
    },
    "14 key with a column": ("S14", P, "node A ^^@key(a) { a: I32 }", "node A { a: I32 @key(a) }"),
    "14 index on an edge": ("S14", P, "node A {} edge E: A -> A ^^@index", "node A {} edge E: A -> A @owner"),
    "14 embed on an edge": (
        "S14", P, 'node A {} edge E: A -> A @card(0..) ^^@embed("a")',
        'node A {} edge E: A -> A @card(0..) @owner("a")'),
    "15 key with a value": ("S15", P, 'node A { a: I32 @key(^^"a") }', "node A { a: I32 @key }"),
    "15 unique with a value": ("S15", P, "node A { a: I32 @unique(^^1) }", "node A { a: I32 @unique }"),
    "15 index with a value": ("S15", P, "node A { a: I32 @index(^^1.5) }", "node A { a: I32 @index }"),
    "15 key twice": ("S15", P, "node A { a: I32 @key ^^@key }", "node A { a: I32 @key @unique }"),
    "15 unique twice": ("S15", P, "node A { a: I32 @unique @x ^^@unique }", "node A { a: I32 @unique @x @index }"),
    "15 index twice": ("S15", P, "node A { a: I32 @index ^^@index }", "node A { a: I32 @index @index(a) }"),
    "16 on an edge": (
        "S16", P, 'node A {} edge E: A -> A { t: String v: Vector(3) ^^@embed("t") }',
        'node A { t: String v: Vector(3) @embed("t") } edge E: A -> A'),
    "16 on a String": (
        "S16", P, 'node A { t: String v: String ^^@embed("t") }',
        'node A { t: String v: Vector(3) @embed("t") }'),
    "16 no source": (
        "S16", P, "node A { t: String v: Vector(3) ^^@embed }",
        "node A { t: String v: Vector(3) @embed(t) }"),
    "16 blank source": (
        "S16", P, 'node A { t: String v: Vector(3) ^^@embed(" ") }',
        'node A { t: String v: Vector(3) @embed("t") }'),
    "16 unknown source": (
        "S16", P, 'node A { t: String ^^v: Vector(3) @embed("u") }',
        'node A { u: String v: Vector(3) @embed("u") }'),
    "16 source is a list": (
        "S16", P, 'node A { t: [String] ^^v: Vector(3) @embed("t") }', 'node A { t: String v: Vector(3) @embed("t") }'),
    "16 source is a number": (
        "S16", P, 'node A { t: I32 ^^v: Vector(3) @embed("t") }',
        'node A { t: String? v: Vector(3) @embed("t") }'),
    "16 source is an enum": (
        "S16", P, 'node A { t: enum(a) ^^v: Vector(3) @embed("t") }', 'node A { t: String v: Vector(3) @embed("t") }'),
    "16 source is itself": (
        "S16", P, 'node A { ^^v: Vector(3) @embed("v") }', 'node A { t: String v: Vector(3) @embed("t") }'),
    "16 twice": (
        "S16", P, 'node A { t: String v: Vector(3) @embed("t") ^^@embed("t") }',
        'node A { t: String v: Vector(3) @embed("t") @index }'),
    "16 other argument": (
        "S16", P, 'node A { t: String v: Vector(3) @embed("t", ^^size=3) }',
        'node A { t: String v: Vector(3) @embed("t", model="m") }'),
    "16 unknown source, injected": (
        "S16", P, 'interface I { ^^v: Vector(3) @embed("t") } node A implements I {}',
        'interface I { v: Vector(3) @embed("t") } node A implements I { t: String }'),
    "17 instruction on a property": (
        "S17", P, 'node A { a: I32 ^^@instruction("x") }', 'node A { a: I32 @description("x") }'),
    "17 blank description": ("S17", P, 'node A ^^@description(" \\n") {}', 'node A @description(" x") {}'),
    "17 description without text": ("S17", P, "node A ^^@description {}", 'node A @description("x") {}'),
    "17 blank instruction": (
        "S17", P, 'node A {} edge E: A -> A ^^@instruction("")', 'node A {} edge E: A -> A @instruction("x")'),
    "17 description twice": (
        "S17", P, 'node A { a: I32 @description("x") ^^@description("y") }',
        'node A { a: I32 @description("x") @note("y") }'),
    "17 instruction twice": (
        "S17", P, 'node A @instruction("x") ^^@instruction("x") {}', 'node A @instruction("x") @description("x") {}'),
    "18 twice": ("S18", P, 'node A @rename_from("B") ^^@rename_from("C") {}', 'node A @rename_from("B") {}'),
    "18 blank": ("S18", P, 'node A { a: I32 ^^@rename_from("") }', 'node A { a: I32 @rename_from("b") }'),
    "18 without value": (
        "S18", P, "node A {} edge E: A -> A ^^@rename_from",
        "node A {} edge E: A -> A @rename_from(b)"),
    "18 with arguments": ("S18", P, 'node A ^^@rename_from("B", x=1) {}', 'node A @owner("B", x=1) {}'),
    "19 range on an edge": (
        "S19", P, "node A {} edge E: A -> A { a: I32 ^^@range(a, 0..) }",
        "node A { a: I32 @range(a, 0..) } edge E: A -> A"),
    "19 check on an edge": (
        "S19", P, 'node A {} edge E: A -> A { a: String ^^@check(a, "x") }',
        'node A { a: String @check(a, "x") } edge E: A -> A'),
    "19 range of nothing known": ("S19", P, "node A { a: I32 @range(^^b, 0..) }", "node A { a: I32 @range(a, 0..) }"),
    "19 check of nothing known": (
        "S19", P, 'node A { a: String @check(^^b, "x") }',
        'node A { a: String @check(a, "x") }'),
    "19 range on a String": ("S19", P, "node A { a: String @range(^^a, 0..) }", "node A { a: F32 @range(a, 0..) }"),
    "19 range on a Date": ("S19", P, "node A { a: Date @range(^^a, 0..) }", "node A { a: U64 @range(a, 0..) }"),
    "19 check on a number": ("S19", P, 'node A { a: I32 @check(^^a, "x") }', 'node A { a: String @check(a, "x") }'),
    "19 no bounds": ("S19", P, "node A { a: I32 ^^@range(a, ..) }", "node A { a: I32 @range(a, ..0) }"),
    "19 bounds missing": ("parse_error", P, "node A { a: I32 @range(a^^) }", "node A { a: I32 @range(a, 0..) }"),
    "19 bound no number": ("S19", P, "node A { a: I32 @range(a, ^^x..) }", "node A { a: I32 @range(a, 0..) }"),
    "19 pattern missing": ("parse_error", P, "node A { a: String @check(a^^) }", 'node A { a: String @check(a, "") }'),
    "19 pattern no String": ("S19", P, "node A { a: String @check(a, ^^1) }", 'node A { a: String @check(a, "1") }'),
    "19 bound beyond every float": (
        "S19", P, f"node A {{ a: F64 @range(a, 0..^^1{'0' * 309}) }}",
        f"node A {{ a: F64 @range(a, 0..1{'0' * 308}) }}"),
    "24 two letters swapped": ("S24", P, "node A { a: I32 ^^@kye }", "node A { a: I32 @key }"),
    "24 one letter missing": ("S24", P, "node A { a: I32 ^^@uniqe }", "node A { a: I32 @unique }"),
    "24 two letters too many": ("S24", P, "node A { a: I32 ^^@indexed }", "node A { a: I32 @index }"),
    "24 with a value": ("S24", P, 'node A ^^@descripton("x") {}', 'node A @description("x") {}'),
    "24 in a body": ("S24", P, "node A { a: I32 b: I32 ^^@kye(a, x=1) }", "node A { a: I32 b: I32 @owner(a, x=1) }"),
    "24 on an edge": (
        "S24", P, 'node A {} edge E: A -> A ^^@renamefrom("B")', 'node A {} edge E: A -> A @rename_from("B")'),
    "20 node twice": ("S20", C, "node A {}\nnode ^^A {}", "node A {}\nnode B {}"),
    "20 edge twice": ("S20", C, "node A {} edge E: A -> A edge ^^E: A -> A", "node A {} edge E: A -> A edge F: A -> A"),
    "20 interface twice": ("S20", C, "interface I {} interface ^^I {}", "interface I {} interface J {}"),
    "20 property of a node twice": ("S20", C, "node A { a: I32 ^^a: I32 }", "node A { a: I32 b: I32 }"),
    "20 property of an edge twice": (
        "S20", C, "node A {} edge E: A -> A { a: I32 ^^a: String }", "node A {} edge E: A -> A { a: I32 aa: String }"),
    "20 property of an interface twice": (
        "S20", C, "interface I { a: I32 ^^a: I32 }",
        "interface I { a: I32 a1: I32 }"),
    "21 unknown source": ("S21", C, "node A {} edge E: ^^B -> A", "node A {} node B {} edge E: B -> A"),
    "21 unknown target": ("S21", C, "node A {} edge E: A -> ^^B", "edge E: A -> B node A {} node B {}"),
    "21 an interface": (
        "S21", C, "interface I {} node A implements I {} edge E: A -> ^^I",
        "interface I {} node A implements I {} edge E: A -> A"),
    "21 an edge": ("S21", C, "node A {} edge E: A -> A edge F: ^^E -> A", "node A {} edge A: A -> A edge F: A -> A"),
    "22 case": (
        "S22", C, "node A {} edge WorksAt: A -> A edge ^^Worksat: A -> A",
        "node A {} edge WorksAt: A -> A edge WorkAt: A -> A"),
    "23 range upside down": ("S23", P, "node A { a: I32 ^^@range(a, 2..1) }", "node A { a: I32 @range(a, 1..1) }"),
    "23 negative range upside down": (
        "S23", P, "node A { a: F32 ^^@range(a, -1..-1.5) }",
        "node A { a: F32 @range(a, -1.5..-1) }"),
    "23 bad pattern": ("S23", P, 'node A { a: String @check(a, ^^"(") }', 'node A { a: String @check(a, "()") }'),
    "23 look-around": (
        "S23", P, 'node A { a: String @check(a, ^^"(?=x)") }',
        'node A { a: String @check(a, "(?:x)") }'),
    "23 back-reference": (
        "S23", P, r'node A { a: String @check(a, ^^"(a)\\1") }',
        r'node A { a: String @check(a, "(a)\\d") }'),
    "23 unique on a list": (
        "S23", P, "node A { a: [I32] b: I32 @unique(b, ^^a) }",
        "node A { a: [I32] b: I32 @unique(b) }"),
    "23 unique on a vector": ("S23", P, "node A { a: Vector(3) @unique(^^a) }", "node A { a: Vector(3) @index(a) }"),
    "23 range on a list": ("S23", P, "node A { a: [I32] @range(^^a, 0..) }", "node A { a: I32? @range(a, 0..) }"),
    "23 range on a vector": ("S23", P, "node A { a: Vector(3) @range(^^a, 0..) }", "node A { a: F32 @range(a, 0..) }"),
    "23 check on a list": ("S23", P, 'node A { a: [String] @check(^^a, "x") }', 'node A { a: String? @check(a, "x") }'),
    "23 check on a vector": (
        "S23", P, 'node A { a: Vector(3) @check(^^a, "x") }',
        'node A { a: String @check(a, "x") }'),
    "23 id of a node": ("S23", P, "node A { ^^id: String }", "node A { ids: String }"),
    **{
        f"23 {name} of an edge": (
            "S23", P, f"node A {{}} edge E: A -> A {{ ^^{name}: String }}",
            f"node A {{ {name}_: String }} edge E: A -> A")
        for name in ("id", "src", "dst", "from", "to")
    },
    "23 src of an edge, which a node may have": (
        "S23", P, "node A {} edge E: A -> A { ^^src: String }",
        "node A { src: String dst: String from: String to: String } edge E: A -> A"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "cls", "wrong", "right"), ROWS.values(), ids=ROWS)
def test_error_table(code: str, cls: type[CompileError], wrong: str, right: str) -> None:
    text, places = marked(wrong)
    raised, found = mistakes(text)
    assert raised is cls
    assert [(d.code, (d.line, d.column)) for d in found] == [(code, place) for place in places]
    assert found[0].kind == ("parse" if cls is ParseError else "catalog")
    compile_schema(right)


def test_every_error_code_has_a_case() -> None:
    assert {int(name.split(" ")[0]) for name in ROWS} == set(range(1, 25))
    codes = {code for code, *_ in ROWS.values()}
    assert codes == {"parse_error", *(f"S{row}" for row in range(2, 25))}


# -- §5: which columns a constraint can have ---------------------------------------------------------

COLUMNS = {
    "plain": "I32", "nullable": "I32?", "list": "[I32]", "vector": "Vector(3)", "blob": "Blob", "enum": "enum(a, b)",
    "text": "String", "nullable text": "String?", "list of texts": "[String]", "nullable enum": "enum(a, b)?",
    "float": "F64?", "bool": "Bool", "date": "Date", "datetime": "DateTime",
}  # fmt: skip
PLAIN = ("plain", "enum", "text", "bool", "date", "datetime")
SCALAR = (*PLAIN, "nullable", "nullable text", "nullable enum", "float")
LISTS = ("list", "list of texts")


def verdicts() -> dict[tuple[str, str, str], str | None]:
    """(kind, constraint as written, column) → the error code, or None if it compiles."""
    table: dict[tuple[str, str, str], str | None] = {}
    for column in COLUMNS:
        wide = column in (*LISTS, "vector", "blob")
        table["node", "@key", column] = None if column in PLAIN else "S13" if wide else "S11"
        table["node", "@key(p)", column] = None if column in PLAIN else "S11"
        table["edge", "@key", column] = "S13" if wide else "S10"
        table["edge", "@key(p)", column] = "S10"
        for kind in ("node", "edge"):
            table[kind, "@unique", column] = None if column in SCALAR else "S13"
            unique = "S12" if column == "blob" else "S23"
            table[kind, "@unique(p)", column] = None if column in SCALAR else unique
            table[kind, "@index", column] = None if column in (*SCALAR, "vector") else "S13"
            table[kind, "@index(p)", column] = "S12" if column == "blob" else None
        range_ = "S23" if column in (*LISTS, "vector") else "S19"
        table["node", "@range(p, 0..1)", column] = None if column in ("plain", "nullable", "float") else range_
        texts = ("text", "nullable text", "enum", "nullable enum")
        table["node", '@check(p, "x")', column] = None if column in texts else range_
        table["edge", "@range(p, 0..1)", column] = "S19"
        table["edge", '@check(p, "x")', column] = "S19"
    return table


@pytest.mark.parametrize(("case", "code"), verdicts().items(), ids=[" ".join(case) for case in verdicts()])
def test_eligibility(case: tuple[str, str, str], code: str | None) -> None:
    kind, constraint, column = case
    head = "node A" if kind == "node" else "node A {} edge E: A -> A"
    text = f"{head} {{ p: {COLUMNS[column]} {constraint} }}"
    if code is None:
        compile_schema(text)
    else:
        raised, found = mistakes(text)
        assert raised is ParseError
        assert [d.code for d in found] == [code]


def test_edge_constraints_may_use_src_and_dst() -> None:
    edge = compile_schema(
        "node A {} edge E: A -> A { p: I32 @unique(src, dst, p) @index(dst) @unique(dst) @index(src, p) }"
    ).edges["E"]
    assert edge.unique == (("dst",), ("dst", "p", "src"))
    assert edge.indices == (("dst",), ("p", "src"))


# -- several errors ----------------------------------------------------------------------------------


def test_errors_are_reported_in_text_order() -> None:
    text, places = marked("""\
interface I { ^^_rowid: I32  e: enum(x) }
node A implements I, ^^Nope {
    ^^e: enum(x, y)
    a: I32 @unique ^^@unique
    @index(^^b)
    @range(a, 0..1)
    @check(^^a, "x")
}
node B @description("x") ^^@description("y") { ^^id: String  k: I32 ^^k: I64 }
node ^^B { anything: I32 @index(nothing) }
edge Ab: ^^X -> B { q: String ^^@range(q, 0..) }
edge ^^AB: B -> B
""")
    raised, found = mistakes(text)
    assert [(d.line, d.column) for d in found] == places
    assert [d.code for d in found] == [
        "S6", "S8", "S8", "S15", "S12", "S19", "S17", "S23", "S20", "S20", "S21", "S19", "S22",
    ]  # fmt: skip
    assert raised is ParseError, "the first problem in the text decides the class"


def test_error_class_is_that_of_the_first_error() -> None:
    assert mistakes("node A {} node A {} node B { id: I32 }")[0] is SchemaError
    assert mistakes("node B { id: I32 } node A {} node A {}")[0] is ParseError


def test_syntax_errors_suppress_checks() -> None:
    _, found = mistakes("node A { a: Nope } edge E: X -> Y")
    assert [d.code for d in found] == ["parse_error"]


def test_an_error_is_reported_once() -> None:
    _, found = mistakes("interface I { a: I32? @key } node A implements I {} node B implements I {}")
    assert [d.code for d in found] == ["S11"]
    _, found = mistakes("node A { a: [I32] @key } edge E: A -> A")
    assert [d.code for d in found] == ["S13"]


def test_a_declaration_with_an_error_is_still_declared() -> None:
    _, found = mistakes("node A { id: I32 } edge E: A -> A interface I { id: I32 } node B implements I {}")
    assert [(d.code, d.subject) for d in found] == [("S23", "node 'A'"), ("S23", "interface 'I'")]


HINTS = {
    "a misspelled interface": ("interface Named {} node A implements Name {}", "did you mean 'Named'?"),
    "an unknown interface": ("node A implements Named {}", "declare 'interface Named { … }'"),
    "a misspelled column": ("node A { title: I32 @index(titel) }", "did you mean 'title'?"),
    "a misspelled endpoint": ("node Person {} edge E: Person -> Persno", "did you mean 'Person'?"),
    "a misspelled source text": ('node A { body: String v: Vector(3) @embed("bod") }', "did you mean 'body'?"),
    "a nullable key": ("node A { a: I32? @key }", "a key always has a value: drop the '?'"),
    "two keys": (
        "node A { a: I32 @key b: I32 @key }",
        "a key of several columns is written once, in the body: @key(a, b)",
    ),
    "a pattern": ('node A { a: String @check(a, "(?=x)") }', "patterns are RE2: no look-around and no back-references"),
}


@pytest.mark.parametrize(("text", "hint"), HINTS.values(), ids=HINTS)
def test_hints(text: str, hint: str) -> None:
    assert mistakes(text)[1][0].hint == hint


def test_error_positions() -> None:
    _, (found,) = mistakes("node A {}\nedge Knows: A -> A {\n    a: I32 @key\n}")
    assert found.render() == (
        "parse error: S10: an edge has no key\n"
        "  --> <schema>:3:12, in edge 'Knows'\n"
        "   3 |     a: I32 @key\n"
        "     |            ^^^^\n"
        "hint: use '@unique' to forbid repeated values"
    )


# -- §4: interfaces ----------------------------------------------------------------------------------


def node(text: str, name: str = "A") -> NodeType:
    return compile_schema(text).nodes[name]


def test_an_injected_property_keeps_annotations_and_constraints() -> None:
    found = node("""
        interface I {
            name: String @key @description("x") @other
            text: String? @index
            vec: Vector(3)? @embed("text", model="m") @index
            old: I32? @unique @rename_from("older")
        }
        node A implements I { own: Bool }
    """)
    assert list(found.properties) == ["name", "old", "own", "text", "vec"]
    assert found.key == ("name",)
    assert found.unique == (("old",),)
    assert found.indices == (("name",), ("text",), ("vec",))
    assert found.embeds == {"vec": Embed("text", "m")}
    assert found.properties["name"] == Property(
        "name",
        PropertyType("String"),
        (Metadata("description", "x"), Metadata("other")),
        injected_from=("I",),
    )
    assert found.properties["own"].injected_from == ()
    assert found.properties["old"].rename_from is None
    assert found.implements == ("I",)


def test_a_redeclared_property_keeps_only_its_own_annotations() -> None:
    found = node("""
        interface I { a: I32 @key @x b: I32 @unique @index v: Vector(3)? @embed("t") }
        node A implements I { a: I32 @z b: I32 v: Vector(3)? t: String }
    """)
    assert found.constraints == ()
    assert found.embeds == {}
    assert found.properties["a"] == Property("a", PropertyType("I32"), (Metadata("z"),))
    assert found.properties["a"].injected_from == ()


def test_interfaces_that_agree_share_the_property() -> None:
    found = node("""
        interface J { a: I32 @index @x(1, z=2, y=3) }
        interface I { a: I32 @x(1, y=3, z=2) @index }
        node A implements J, I {}
    """)
    assert found.properties["a"].injected_from == ("I", "J")
    assert found.constraints == (Index(("a",)),)
    assert found.implements == ("I", "J")


def test_an_interface_named_twice_has_no_effect() -> None:
    text = "interface I { a: I32 @key } node A implements I, I, I {}"
    assert node(text) == node(text.replace("I, I, I", "I"))


def test_constraints_may_name_injected_properties() -> None:
    found = node(
        "interface I { a: I32 s: String } "
        'node A implements I { b: I32 @key(b, a) @range(a, 0..) @check(s, "x") @index(a) }'
    )
    assert found.constraints == (Key(("a", "b")), Index(("a",)), Range("a", 0.0, None), Check("s", "x"))


def test_an_interface_has_no_table() -> None:
    catalog = compile_schema("interface I { a: I32 @index } node A implements I {} edge E: A -> A")
    assert [table.name for table in catalog.tables()] == ["E", "A"]
    assert catalog.interfaces["I"] == InterfaceType("I", {"a": Property("a", PropertyType("I32"))}, (Index(("a",)),))


def test_interfaces_nodes_and_edges_have_separate_namespaces() -> None:
    catalog = compile_schema("interface A {} node A implements A {} edge A: A -> A")
    assert set(catalog.interfaces) == set(catalog.nodes) == set(catalog.edges) == {"A"}


def test_edges_are_found_regardless_of_case() -> None:
    catalog = compile_schema("node A {} edge WorksAt: A -> A edge KNOWS: A -> A")
    for word in ("WorksAt", "worksAt", "worksat", "WORKSAT"):
        assert catalog.find_edge(word) is catalog.edges["WorksAt"]
    assert catalog.find_edge("knows") is catalog.edges["KNOWS"]
    assert catalog.find_edge("works_at") is None
    assert [edge.word for edge in catalog.edges.values()] == ["kNOWS", "worksAt"]


# -- §7: annotations ---------------------------------------------------------------------------------


def test_values_are_kept_as_text() -> None:
    found = node(
        r'node A @s("a\n\"") @n(01.50) @i(007) @b(true) @w(word) @none @q(1, z="y", a=2.0, m=false) { p: I32 }'
    )
    assert found.notes == (
        Metadata("b", "true"),
        Metadata("i", "007"),
        Metadata("n", "01.50"),
        Metadata("none"),
        Metadata("q", "1", (("a", "2.0"), ("m", "false"), ("z", "y"))),
        Metadata("s", 'a\n"'),
        Metadata("w", "word"),
    )


def test_a_misspelled_annotation_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ParseError) as caught:
        compile_schema("node A { name: String @kye }")
    assert caught.value.code == "S24"
    assert caught.value.hint == "did you mean '@key'?"
    with pytest.raises(ParseError) as caught:
        compile_schema("node A {} edge E: A -> A @crad(0..1)")
    assert caught.value.hint == "did you mean '@card'?"


def test_other_annotations_may_repeat_and_equal_ones_count_once() -> None:
    found = node('node A @x @x @x("") @x("b") @x("a") @x("a") { p: I32 @x(2) @x(1) }')
    assert found.notes == (
        Metadata("x"),
        Metadata("x", ""),
        Metadata("x", "a"),
        Metadata("x", "b"),
    )
    assert found.properties["p"].notes == (Metadata("x", "1"), Metadata("x", "2"))


def test_defined_annotations_are_not_metadata() -> None:
    found = node('node A @rename_from("B") { t: String @index @unique v: Vector(2)? @embed(t) @rename_from(w) @index }')
    assert found.notes == ()
    assert all(property_.notes == () for property_ in found.properties.values())
    assert found.rename_from == "B"
    assert found.properties["v"].rename_from == "w"
    assert found.embeds == {"v": Embed("t", None)}


def test_description_and_instruction_are_metadata() -> None:
    catalog = compile_schema("""
        node A @instruction("do") @description("d") { p: I32 @description("p") }
        edge E: A -> A @description("e") @instruction("i") { q: I32 @description("q") }
    """)
    assert catalog.nodes["A"].notes == (Metadata("description", "d"), Metadata("instruction", "do"))
    assert catalog.edges["E"].notes == (Metadata("description", "e"), Metadata("instruction", "i"))
    assert catalog.nodes["A"].properties["p"].notes == (Metadata("description", "p"),)
    assert catalog.edges["E"].properties["q"].notes == (Metadata("description", "q"),)


@pytest.mark.parametrize("source", ['"t"', "t"])
@pytest.mark.parametrize("model", ["", ', model="m"'])
def test_embed_forms(source: str, model: str) -> None:
    found = node(f"node A {{ t: String? v: Vector(3) @embed({source}{model}) }}")
    assert found.embeds == {"v": Embed("t", "m" if model else None)}


# -- the catalog -------------------------------------------------------------------------------------

WHOLE = """
node B { z: I32 a: String? m: enum(y, x) @unique(z, a) @index(z) @unique(a, z) @index(z) @range(z, -1.5..) }
edge F: B -> A @card(1..2) { w: F32 @index t: Date @unique(dst, t) }
edge E: A -> A
node A @b @a { k: String @key @index o: I32 }
interface I { b: I32 a: I32 }
"""


def test_the_catalog_is_canonical() -> None:
    catalog = compile_schema(WHOLE)
    assert catalog == Catalog(
        interfaces={
            "I": InterfaceType("I", {name: Property(name, PropertyType("I32")) for name in ("a", "b")}),
        },
        nodes={
            "A": NodeType(
                "A",
                {"k": Property("k", PropertyType("String")), "o": Property("o", PropertyType("I32"))},
                (Key(("k",)), Index(("k",))),
                (Metadata("a"), Metadata("b")),
            ),
            "B": NodeType(
                "B",
                {
                    "a": Property("a", PropertyType("String", nullable=True)),
                    "m": Property("m", PropertyType("String", enum_values=("x", "y"))),
                    "z": Property("z", PropertyType("I32")),
                },
                (Unique(("a", "z")), Index(("z",)), Range("z", -1.5, None)),
            ),
        },
        edges={
            "E": EdgeType("E", {}, from_type="A", to_type="A", cardinality=Cardinality(0, None)),
            "F": EdgeType(
                "F",
                {"t": Property("t", PropertyType("Date")), "w": Property("w", PropertyType("F32"))},
                (Unique(("dst", "t")), Index(("w",))),
                from_type="B",
                to_type="A",
                cardinality=Cardinality(1, 2),
            ),
        },
    )
    assert list(catalog.nodes) == ["A", "B"]
    assert list(catalog.edges) == ["E", "F"]
    assert list(catalog.nodes["B"].properties) == ["a", "m", "z"]
    assert list(catalog.interfaces["I"].properties) == ["a", "b"]
    assert catalog.nodes["A"].indices == (("k",),)


def test_order_comments_and_hints_do_not_change_the_catalog() -> None:
    shuffled = """
    interface I { a: I32 /* c */ b: I32 }
    node A @a @b @rename_from("Old") { o: I32 @rename_from("p") k: String @index @key } // d
    edge E: A -> A @card(0..*) {}
    node B { @range(z, -1.50..) @index(z) @unique(z, a, z) m: enum(x, y) a: String? z: I32 }
    edge F: B -> A @card(1..2) { @unique(t, dst) t: Date w: F32 @index }
    """
    assert compile_schema(shuffled) == compile_schema(WHOLE)


def test_key_columns_are_in_name_order_and_indexed_one_by_one() -> None:
    found = node("node A { z: I32 b: String c: Bool @index(c) @key(z, b, z) @index(z, b) }")
    assert found.key == ("b", "z")
    assert found.indices == (("b",), ("z",), ("b", "z"), ("c",))


def test_table_keys() -> None:
    catalog = compile_schema("node A {} edge E: A -> A")
    assert (catalog.nodes["A"].table_key, catalog.edges["E"].table_key) == ("node:A", "edge:E")


def test_ranges_and_checks_and_blobs() -> None:
    found = node(
        'node A { b: Blob? a: Blob n: I32 s: String @range(n, ..-0) @range(n, 0.1..9) @check(s, "a") @check(s, "b") }'
    )
    assert found.ranges == (Range("n", 0.1, 9.0), Range("n", None, 0.0))
    assert found.checks == (Check("s", "a"), Check("s", "b"))
    assert found.blobs == ("a", "b")


def test_edges_of_a_node_type() -> None:
    catalog = compile_schema("node A {} node B {} node C {} edge E: A -> B edge F: B -> B")
    assert {name: [edge.name for edge in edges] for name, edges in catalog.edges_touching.items()} == {
        "A": ["E"],
        "B": ["E", "F"],
        "C": [],
    }


@pytest.mark.parametrize(("card", "shown"), [("@card(0..)", "0.."), ("", "0.."), ("@card(1..3)", "1..3")])
def test_cardinality(card: str, shown: str) -> None:
    assert str(compile_schema(f"node A {{}} edge E: A -> A {card}").edges["E"].cardinality) == shown


def test_an_empty_schema() -> None:
    assert compile_schema("") == Catalog({}, {}, {})
