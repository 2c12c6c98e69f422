from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import ParseError
from omnigraph.lang.spans import Name
from omnigraph.schema.ast import Annotation, AnnotationValue, EdgeDecl, NodeDecl, SchemaFile
from omnigraph.schema.check import compile_schema
from omnigraph.schema.format import format_schema, print_schema
from omnigraph.schema.parser import parse_schema
from support import everything

EXAMPLES = Path(__file__).parent.parent.parent / "cases" / "examples"

LAYOUTS = {
    "nothing": ("", ""),
    "a node": ("node   A{a:I32 b:[String]?}", "node A {\n    a: I32\n    b: [String]?\n}\n"),
    "an empty node": ("node A {\n\n}", "node A {}\n"),
    "an empty interface": ("interface I{}", "interface I {}\n"),
    "an edge without body": ("edge E:A->B", "edge E: A -> B\n"),
    "an empty body of an edge goes": ("edge E: A -> B { }", "edge E: A -> B\n"),
    "an edge with everything": (
        "edge E:A->B@card( 0 .. 3 )@x( 1,y = 2 ){p:I32}",
        "edge E: A -> B @card(0..3) @x(1, y=2) {\n    p: I32\n}\n",
    ),
    "a star in a card": ("edge E: A -> B @card(2..*)", "edge E: A -> B @card(2..)\n"),
    "leading zeros in a card": ("edge E: A -> B @card(02..003)", "edge E: A -> B @card(2..3)\n"),
    "implements": ("node A@x implements I ,J{}", "node A @x implements I, J {}\n"),
    "types": (
        "node A { a:[ I32 ]? b:Vector( 03 ) c:enum( b,a )? d:DateTime ? }",
        "node A {\n    a: [I32]?\n    b: Vector(3)\n    c: enum(b, a)?\n    d: DateTime?\n}\n",
    ),
    "rules": (
        'node A { @key( a,b )@unique(c)@index(d , d)@range(a,-1 .. 2.50)@range(a,..3)@range(a,4..)@check(s,"x") }',
        "node A {\n    @key(a, b)\n    @unique(c)\n    @index(d, d)\n    @range(a, -1..2.50)\n    @range(a, ..3)\n"
        '    @range(a, 4..)\n    @check(s, "x")\n}\n',
    ),
    "a rule leaves the line of its property": ("node A { a: I32 @key(a) }", "node A {\n    a: I32\n    @key(a)\n}\n"),
    "annotations stay on the line": (
        "node A { a: I32\n   @key\n @x }",
        "node A {\n    a: I32 @key @x\n}\n",
    ),
    "strings as they were written": (
        'node A @x("a\\tb") @y("two\nlines") @z("\\\\") {}',
        'node A @x("a\\tb") @y("two\nlines") @z("\\\\") {}\n',
    ),
    "numbers as they were written": ("node A @x(007) @y(1.50) {}", "node A @x(007) @y(1.50) {}\n"),
    "declarations with bodies stand apart": (
        "node A { a: I32 } node B { b: I32 }",
        "node A {\n    a: I32\n}\n\nnode B {\n    b: I32\n}\n",
    ),
    "the settings of merges": (
        "merge{/* why */ properties:combine}node A{}merge{}",
        "merge {  /* why */\n    properties: combine\n}\n\nnode A {}\nmerge {}\n",
    ),
    "those without stand together": (
        "node A {} node B {} edge E: A -> B edge F: A -> B",
        "node A {}\nnode B {}\nedge E: A -> B\nedge F: A -> B\n",
    ),
    "but not with those that have one": (
        "edge E: A -> B node A { a: I32 } edge F: A -> B",
        "edge E: A -> B\n\nnode A {\n    a: I32\n}\n\nedge F: A -> B\n",
    ),
    "one blank line is kept": ("node A {}\n\n\n\nnode B {}", "node A {}\n\nnode B {}\n"),
    "one blank line between members": (
        "node A {\n\n a: I32\n\n\n b: I32\n\n}",
        "node A {\n    a: I32\n\n    b: I32\n}\n",
    ),
    "order is kept": ("node B { z: I32 a: I32 } node A {}", "node B {\n    z: I32\n    a: I32\n}\n\nnode A {}\n"),
    "comments": (
        "// top\nnode A { // behind\n a: I32 // one\n /* two */ b: I32\n // last\n} // end\n// bottom",
        "// top\nnode A {  // behind\n    a: I32  // one\n    /* two */\n    b: I32\n    // last\n}  // end\n"
        "// bottom\n",
    ),
    "a comment keeps an empty body open": ("node A { /* later */ }", "node A {  /* later */\n}\n"),
    "a comment keeps the body of an edge": ("edge E: A -> B { // later\n}", "edge E: A -> B {  // later\n}\n"),
    "a comment in a head": (
        "node A /* c */ implements I { a: I32 }",
        "node A implements I {\n    /* c */\n    a: I32\n}\n",
    ),
    "a comment in the head of an empty node": ("node A /* c */ {}", "node A {}\n/* c */\n"),
    "a comment in a property": (
        "node A { a /* c */ : I32 b: I32 }",
        "node A {\n    a: I32\n    /* c */\n    b: I32\n}\n",
    ),
    "a comment in an enum": ("node A { a: enum(x, // c\ny) }", "node A {\n    a: enum(x, y)\n    // c\n}\n"),
    "a comment behind one that ends its line": (
        "node A { a: enum(x, // c\ny) // d\n}",
        "node A {\n    a: enum(x, y)\n    // c\n    // d\n}\n",
    ),
    "a comment between declarations": (
        "node A { a: I32 }\n// about B\nnode B { b: I32 }",
        "node A {\n    a: I32\n}\n\n// about B\nnode B {\n    b: I32\n}\n",
    ),
    "a file of comments": ("// a\n\n\n/* b */", "// a\n\n/* b */\n"),
    "Windows line ends": (
        "node A {\r\n  a: I32\r\n\r\n  b: I32 // c\r\n}\r\n",
        "node A {\n    a: I32\n\n    b: I32  // c\n}\n",
    ),
}


@pytest.mark.parametrize(("text", "expected"), LAYOUTS.values(), ids=LAYOUTS)
def test_layout(text: str, expected: str) -> None:
    assert format_schema(text) == expected
    assert format_schema(expected) == expected
    assert parse_schema(expected) == parse_schema(text)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.pg")), ids=lambda path: path.stem)
def test_the_examples_are_formatted(path: Path) -> None:
    text = path.read_text()
    assert format_schema(text) == text


def test_a_schema_with_every_construct_is_formatted() -> None:
    formatted = format_schema(everything.SCHEMA)
    assert format_schema(formatted) == formatted
    assert compile_schema(formatted) == compile_schema(everything.SCHEMA)


def test_a_tree_without_source() -> None:
    text = AnnotationValue("string", 'a "b"\n\\')
    tree = SchemaFile(
        (
            NodeDecl(Name("A"), (Annotation(Name("x"), text, ((Name("y"), text),)),), (), ()),
            EdgeDecl(Name("E"), Name("A"), Name("A"), None, (), ()),
        )
    )
    printed = print_schema(tree)
    assert printed == 'node A @x("a \\"b\\"\\n\\\\", y="a \\"b\\"\\n\\\\") {}\nedge E: A -> A\n'
    assert parse_schema(printed) == tree


def test_printing_a_parsed_tree_drops_its_comments() -> None:
    assert print_schema(parse_schema("// c\nnode A { /* d */ a: I32 }")) == "node A {\n    a: I32\n}\n"


def test_a_text_with_syntax_errors_is_not_formatted() -> None:
    with pytest.raises(ParseError) as raised:
        format_schema("node A {", "a.pg")
    assert raised.value.diagnostics[0].source_name == "a.pg"


def test_a_text_with_semantic_errors_is_formatted() -> None:
    assert format_schema("edge E: Nowhere->Nothing") == "edge E: Nowhere -> Nothing\n"
