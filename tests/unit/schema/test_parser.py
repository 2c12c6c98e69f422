from __future__ import annotations

import pytest

from omnigraph.errors import Diagnostic, ParseError
from omnigraph.lang.spans import Name, Span
from omnigraph.schema.ast import (
    Annotation,
    AnnotationValue,
    CardinalityExpr,
    CheckRule,
    ColumnRule,
    EdgeDecl,
    InterfaceDecl,
    Member,
    NodeDecl,
    PropertyDecl,
    RangeRule,
    SchemaFile,
    TypeExpr,
)
from omnigraph.schema.parser import parse_schema
from omnigraph.types import PropertyType

I32 = TypeExpr(PropertyType("I32"))


def members(body: str) -> tuple[Member, ...]:
    (node,) = parse_schema(f"node N {{ {body} }}").declarations
    return node.members


def annotation(text: str) -> Annotation:
    (member,) = members(f"p: I32 {text}")
    assert isinstance(member, PropertyDecl)
    (found,) = member.annotations
    return found


def mistakes(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(ParseError) as raised:
        parse_schema(text)
    return raised.value.diagnostics


# -- valid texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "  \n\t", "// nothing", "/* nothing */"])
def test_an_empty_text(text: str) -> None:
    assert parse_schema(text) == SchemaFile(())


def test_a_whole_file() -> None:
    tree = parse_schema("""
        interface Named { name: String @index }
        node Person @description("x") implements Named, Aged { age: I32? @unique }
        edge Knows: Person -> Person @card(0..1) @x { since: Date @key(since) }
        edge Likes: Person -> Person
    """)
    assert tree == SchemaFile(
        (
            InterfaceDecl(
                Name("Named"),
                (PropertyDecl(Name("name"), TypeExpr(PropertyType("String")), (Annotation(Name("index")),)),),
            ),
            NodeDecl(
                Name("Person"),
                (Annotation(Name("description"), AnnotationValue("string", "x")),),
                (Name("Named"), Name("Aged")),
                (
                    PropertyDecl(
                        Name("age"), TypeExpr(PropertyType("I32", nullable=True)), (Annotation(Name("unique")),)
                    ),
                ),
            ),
            EdgeDecl(
                Name("Knows"),
                Name("Person"),
                Name("Person"),
                CardinalityExpr(0, 1),
                (Annotation(Name("x")),),
                (PropertyDecl(Name("since"), TypeExpr(PropertyType("Date"))), ColumnRule("key", (Name("since"),))),
            ),
            EdgeDecl(Name("Likes"), Name("Person"), Name("Person"), None, (), ()),
        )
    )


TYPES = {
    **{scalar: PropertyType(scalar) for scalar in ("String", "Blob", "Bool", "I32", "I64", "U32", "U64", "F32", "F64")},
    "Date": PropertyType("Date"),
    "DateTime?": PropertyType("DateTime", nullable=True),
    "[String]": PropertyType("String", is_list=True),
    "[ F32 ] ?": PropertyType("F32", is_list=True, nullable=True),
    "Vector(1)": PropertyType("Vector", dim=1),
    "Vector ( 2147483647 ) ?": PropertyType("Vector", dim=2147483647, nullable=True),
}


@pytest.mark.parametrize(("text", "type_"), TYPES.items(), ids=TYPES)
def test_types(text: str, type_: PropertyType) -> None:
    assert members(f"p: {text}") == (PropertyDecl(Name("p"), TypeExpr(type_)),)


ENUMS = {
    "enum(b, a)": ("b", "a"),
    "enum(a)": ("a",),
    "enum(in-progress,done)": ("in-progress", "done"),
    "enum(2d, 3D, 10)": ("2d", "3D", "10"),
    "enum(-, --, _, a-)": ("-", "--", "_", "a-"),
    "enum( A , a )": ("A", "a"),
    "enum(node, edge, true)": ("node", "edge", "true"),
    "enum(/* c */ a /* d */, // e\n b)": ("a", "b"),
}


@pytest.mark.parametrize(("text", "values"), ENUMS.items(), ids=ENUMS)
def test_enums_keep_their_order_and_compare_sorted(text: str, values: tuple[str, ...]) -> None:
    expected = TypeExpr(PropertyType("String", enum_values=tuple(sorted(values))), values)
    assert members(f"p: {text}") == (PropertyDecl(Name("p"), expected),)
    (nullable,) = members(f"p: {text}?")
    assert isinstance(nullable, PropertyDecl)
    assert nullable.type.type == expected.type.with_nullable(True)


ANNOTATIONS = {
    "@x": Annotation(Name("x")),
    "@ x": Annotation(Name("x")),
    '@x("a\\"b\\n")': Annotation(Name("x"), AnnotationValue("string", 'a"b\n')),
    '@x("two\nlines")': Annotation(Name("x"), AnnotationValue("string", "two\nlines")),
    "@x(12)": Annotation(Name("x"), AnnotationValue("number", "12")),
    "@x(01.50)": Annotation(Name("x"), AnnotationValue("number", "01.50")),
    "@x(true)": Annotation(Name("x"), AnnotationValue("bool", "true")),
    "@x(trueish)": Annotation(Name("x"), AnnotationValue("name", "trueish")),
    '@x(y, a="1", b=2, c=false)': Annotation(
        Name("x"),
        AnnotationValue("name", "y"),
        (
            (Name("a"), AnnotationValue("string", "1")),
            (Name("b"), AnnotationValue("number", "2")),
            (Name("c"), AnnotationValue("bool", "false")),
        ),
    ),
    "@range": Annotation(Name("range")),
    "@check": Annotation(Name("check")),
    "@key": Annotation(Name("key")),
    '@embed("t", model="m")': Annotation(
        Name("embed"), AnnotationValue("string", "t"), ((Name("model"), AnnotationValue("string", "m")),)
    ),
}


@pytest.mark.parametrize(("text", "expected"), ANNOTATIONS.items(), ids=ANNOTATIONS)
def test_annotations(text: str, expected: Annotation) -> None:
    assert annotation(text) == expected


RULES = {
    "@key(a)": ColumnRule("key", (Name("a"),)),
    "@unique(a, b, a)": ColumnRule("unique", (Name("a"), Name("b"), Name("a"))),
    "@index ( src , dst )": ColumnRule("index", (Name("src"), Name("dst"))),
    "@key(true)": ColumnRule("key", (Name("true"),)),
    "@range(a, 0..1)": RangeRule(Name("a"), Name("0"), Name("1")),
    "@range(a, 0.5..1.5)": RangeRule(Name("a"), Name("0.5"), Name("1.5")),
    "@range(a, -1..-0.5)": RangeRule(Name("a"), Name("-1"), Name("-0.5")),
    "@range(a, 0..)": RangeRule(Name("a"), Name("0"), None),
    "@range(a, ..9)": RangeRule(Name("a"), None, Name("9")),
    "@range(a, .. 9)": RangeRule(Name("a"), None, Name("9")),
    '@check(a, "^\\\\d+$")': CheckRule(Name("a"), AnnotationValue("string", "^\\d+$")),
}


@pytest.mark.parametrize(("text", "expected"), RULES.items(), ids=RULES)
def test_rules(text: str, expected: Member) -> None:
    assert members(text) == (expected,)


@pytest.mark.parametrize("word", ["key", "unique", "index"])
def test_a_rule_on_the_line_of_a_property_is_still_a_rule(word: str) -> None:
    assert members(f"a: I32 @x @{word} (a) b: I32") == (
        PropertyDecl(Name("a"), I32, (Annotation(Name("x")),)),
        ColumnRule(word, (Name("a"),)),
        PropertyDecl(Name("b"), I32),
    )


def test_the_bare_word_is_an_annotation_of_the_property_before_it() -> None:
    assert members("a: I32\n@key\n@key(a)") == (
        PropertyDecl(Name("a"), I32, (Annotation(Name("key")),)),
        ColumnRule("key", (Name("a"),)),
    )


CARDINALITIES = {
    "@card(0..)": CardinalityExpr(0, None),
    "@card(0..*)": CardinalityExpr(0, None),
    "@card(2..2)": CardinalityExpr(2, 2),
    "@card ( 1 .. 3 )": CardinalityExpr(1, 3),
    "@card(0..4294967295)": CardinalityExpr(0, 4294967295),
}


@pytest.mark.parametrize(("text", "expected"), CARDINALITIES.items(), ids=CARDINALITIES)
def test_cardinality(text: str, expected: CardinalityExpr) -> None:
    (edge,) = parse_schema(f"edge E: A -> B {text} @x {{}}").declarations
    assert isinstance(edge, EdgeDecl)
    assert edge.cardinality == expected
    assert edge.annotations == (Annotation(Name("x")),)


def test_no_word_is_reserved() -> None:
    words = ("node", "edge", "interface", "implements", "enum", "true", "card", "key", "range", "String_")
    body = "\n".join(f"{word.lower()}: I32 @{word.lower()}" for word in words)
    assert len(members(body)) == len(words)
    (node,) = parse_schema("node String implements Vector { }").declarations
    assert node.name == Name("String")


def test_declarations_on_one_line() -> None:
    tree = parse_schema("node A{a:I32 b:I32}node B{}edge E:A->B edge F:B->A{}interface I{}")
    assert [declaration.name.text for declaration in tree.declarations] == ["A", "B", "E", "F", "I"]


def test_spans_cover_what_was_written() -> None:
    text = 'node Née {}\nnode N @x(1) {\n  p: [I32]? @y("é", z=1) // c\n  @range(p, -1..2)\n}'
    with pytest.raises(ParseError):
        parse_schema(text)
    text = text.replace("Née", "Nee")
    node = parse_schema(text).declarations[1]
    assert isinstance(node, NodeDecl)

    def at(span: Span) -> str:
        return text[span.start : span.end]

    assert at(node.span) == text[text.index("node N ") :]
    assert at(node.body) == text[text.index("{\n") :]
    assert at(node.name.span) == "N"
    prop, rule = node.members
    assert isinstance(prop, PropertyDecl)
    assert isinstance(rule, RangeRule)
    assert at(prop.span) == 'p: [I32]? @y("é", z=1)'
    assert at(prop.type.span) == "[I32]?"
    assert at(prop.annotations[0].span) == '@y("é", z=1)'
    assert at(rule.span) == "@range(p, -1..2)"
    assert rule.low is not None
    assert at(rule.low.span) == "-1"


# -- invalid texts -----------------------------------------------------------------------------------

SYNTAX = {
    "no declaration": ("x", (1, 1), "expected 'node', 'edge' or 'interface', found 'x'", None),
    "a misspelled one": (
        "nod A {}",
        (1, 1),
        "expected 'node', 'edge' or 'interface', found 'nod'",
        "did you mean 'node'?",
    ),
    "an unknown setting of merges": (
        "merge { rows: combine }",
        (1, 9),
        "expected 'properties', found 'rows'",
        "write properties: combine, or properties: conflict",
    ),
    "an unknown value of it": (
        "merge { properties: join }",
        (1, 21),
        "edits of different properties cannot 'join'",
        "write properties: combine, or properties: conflict",
    ),
    "a number": ("1", (1, 1), "expected 'node', 'edge' or 'interface', found '1'", None),
    "no name": ("node {}", (1, 6), "expected a node type name, found '{'", None),
    "a lower-case name": (
        "node person {}",
        (1, 6),
        "expected a node type name, found 'person'",
        "a node type name begins with an upper-case letter: 'Person'",
    ),
    "no body": ("node A", (1, 7), "expected '{' to open the node's body, found the end of the text", None),
    "an interface without body": (
        "interface I node A {}",
        (1, 13),
        "expected '{' to open the interface, found 'node'",
        None,
    ),
    "an interface with annotation": (
        "interface I @x {}",
        (1, 13),
        "expected '{' to open the interface, found '@'",
        None,
    ),
    "an interface that implements": (
        "interface I implements J {}",
        (1, 13),
        "expected '{' to open the interface, found 'implements'",
        None,
    ),
    "annotations behind implements": (
        "node A implements I @x {}",
        (1, 21),
        "expected '{' to open the node's body, found '@'",
        None,
    ),
    "implements nothing": ("node A implements {}", (1, 19), "expected an interface name, found '{'", None),
    "implements and a comma": ("node A implements I, {}", (1, 22), "expected an interface name, found '{'", None),
    "never closed": ("node A {\n a: I32\n", (3, 1), "expected '}' to close the body, found the end of the text", None),
    "closed twice": ("node A {}\n}", (2, 1), "expected 'node', 'edge' or 'interface', found '}'", None),
    "an edge without colon": ("edge E A -> B", (1, 8), "expected ':' and the edge's source type, found 'A'", None),
    "an edge without arrow": ("edge E: A - B", (1, 11), "expected '->' and the edge's target type, found '-'", None),
    "an edge without target": (
        "edge E: A ->",
        (1, 13),
        "expected the target node type, found the end of the text",
        None,
    ),
    "a card without bounds": ("edge E: A -> B @card", (1, 21), "expected '(', found the end of the text", None),
    "a card of one number": ("edge E: A -> B @card(1)", (1, 23), "expected '..' between the bounds, found ')'", None),
    "a card without minimum": (
        "edge E: A -> B @card(..1)",
        (1, 22),
        "expected the smallest number of edges per source, found '..'",
        None,
    ),
    "a card behind an annotation": (
        "edge E: A -> B @x @card(0..1)",
        (1, 26),
        "expected ')', found '..'",
        "'@card' comes right behind the edge's target type",
    ),
    "no type": ("node A { a: }", (1, 13), "expected a type, found '}'", None),
    "no colon": ("node A { a I32 }", (1, 12), "expected ':' and the property's type, found 'I32'", None),
    "an upper-case property": (
        "node A { Name: String }",
        (1, 10),
        "expected a property name, found 'Name'",
        "a property name begins with a lower-case letter: 'name'",
    ),
    "an unknown type": (
        "node A { a: Kilo }",
        (1, 13),
        "expected a type, found 'Kilo'",
        "the types are String, Blob, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime, Uuid, enum(…), Vector(n) and "
        "lists: [T]",
    ),
    "a misspelled type": ("node A { a: string }", (1, 13), "expected a type, found 'string'", "did you mean 'String'?"),
    "a list of enums": (
        "node A { a: [enum(x)] }",
        (1, 14),
        "a list holds plain scalars, not 'enum'",
        "lists of enums, of vectors and of lists do not exist",
    ),
    "a list of vectors": (
        "node A { a: [Vector(3)] }",
        (1, 14),
        "a list holds plain scalars, not 'Vector'",
        "lists of enums, of vectors and of lists do not exist",
    ),
    "a list of lists": (
        "node A { a: [[I32]] }",
        (1, 14),
        "a list holds plain scalars, not '['",
        "lists of enums, of vectors and of lists do not exist",
    ),
    "nullable items": ("node A { a: [I32?] }", (1, 17), "expected ']' to close the list type, found '?'", None),
    "a vector without dimension": (
        "node A { a: Vector }",
        (1, 20),
        "expected '(' and the number of dimensions, found '}'",
        None,
    ),
    "a vector of a word": ("node A { a: Vector(n) }", (1, 20), "expected the number of dimensions, found 'n'", None),
    "a vector of -1": ("node A { a: Vector(-1) }", (1, 20), "expected the number of dimensions, found '-'", None),
    "an empty enum": ("node A { a: enum() }", (1, 18), "expected an enum value, found ')'", None),
    "a quoted enum value": (
        'node A { a: enum("x") }',
        (1, 18),
        "'\"x\"' is not an enum value: letters, digits, '_' and '-' only",
        "write it without quotes",
    ),
    "an enum value with a dot": (
        "node A { a: enum(a.b) }",
        (1, 18),
        "'a.b' is not an enum value: letters, digits, '_' and '-' only",
        None,
    ),
    "two words in an enum": ("node A { a: enum(a b) }", (1, 20), "expected ')' to close the enum, found 'b'", None),
    "a comma too many in an enum": ("node A { a: enum(a,) }", (1, 20), "expected an enum value, found ')'", None),
    "an annotation without name": ("node A { a: I32 @ }", (1, 19), "expected an annotation name, found '}'", None),
    "an annotation without value": (
        "node A { a: I32 @x() }",
        (1, 20),
        "expected a string, a number, true or false, or a name, found ')'",
        None,
    ),
    "a negative annotation value": (
        "node A { a: I32 @x(-1) }",
        (1, 20),
        "expected a string, a number, true or false, or a name, found '-'",
        None,
    ),
    "two values": ("node A { a: I32 @x(1, 2) }", (1, 23), "expected an argument name, found '2'", None),
    "a keyword first": ("node A { a: I32 @x(y=1) }", (1, 21), "expected ')' to close the annotation, found '='", None),
    "a name as argument": (
        "node A { a: I32 @x(1, y=z) }",
        (1, 25),
        "expected a string, a number, true or false, found 'z'",
        None,
    ),
    "an argument twice": ("node A { a: I32 @x(1, y=1, y=2) }", (1, 28), "the argument 'y' is given twice", None),
    "an annotation alone": (
        "node A {\n  @describe(x)\n}",
        (2, 3),
        "'@describe' stands alone in a body",
        "an annotation follows the property it describes",
    ),
    "a misspelled rule": ("node A { @uniqe(x) }", (1, 10), "'@uniqe' stands alone in a body", "did you mean 'unique'?"),
    "a rule without columns": ("node A { @key() }", (1, 15), "expected a property name, found ')'", None),
    "a bare rule at the top of a body": (
        "node A { @key }",
        (1, 15),
        "expected '(' and the columns of @key, found '}'",
        None,
    ),
    "an exponent": (
        "node A { @range(a, 1e5..) }",
        (1, 21),
        "expected '..' between the bounds, found 'e5'",
        "numbers are written as digits, with an optional fraction",
    ),
    "a number ending in a dot": ("node A { @range(a, 1...2) }", (1, 23), "expected a number, found '.'", None),
    "commas between properties": (
        "node A { a: I32, b: I32 }",
        (1, 16),
        "expected a property name, found ','",
        "properties are not separated by commas: end the line",
    ),
    "a rule in an interface": (
        "interface I { a: I32 @key(a) }",
        (1, 22),
        "an interface holds properties only, not '@key(…)'",
        "write '@key' behind the property, without parentheses",
    ),
    "a range in an interface": (
        "interface I { a: I32 @range(a, 0..) }",
        (1, 22),
        "an interface holds properties only, not '@range(…)'",
        None,
    ),
    "a string never closed": ('node A { a: I32 @x("y }', (1, 20), "a string that is never closed", None),
    "a comment never closed": ("node A { /* a: I32 }", (1, 10), "a comment that is never closed", None),
    "a semicolon": (
        "node A { a: I32; }",
        (1, 16),
        "expected a property name, found ';'",
        "nothing is needed between clauses: end the line",
    ),
    "a byte order mark": ("\ufeffnode A {}", (1, 1), "expected 'node', 'edge' or 'interface', found '\\ufeff'", None),
    "a name of other letters": (
        "node Ähre {}",
        (1, 6),
        "expected a node type name, found 'Ä'",
        "names are written in the letters a to z, digits and underscores",
    ),
    "unpaired surrogate": ("node A {} // \ud800", (1, 14), "unpaired surrogate: the text is not valid Unicode", None),
}


@pytest.mark.parametrize(("text", "place", "message", "hint"), SYNTAX.values(), ids=SYNTAX)
def test_syntax_errors(text: str, place: tuple[int, int], message: str, hint: str | None) -> None:
    first = mistakes(text)[0]
    assert (first.code, first.kind) in {("parse_error", "parse"), ("S19", "parse")}
    assert ((first.line, first.column), first.message, first.hint) == (place, message, hint)


def test_several_errors_in_one_file() -> None:
    found = mistakes(
        """\
node A {
    a: Strin
    b: I32
    c: Vector(0)
    @range(b, ..)
    d: I32 @x()
    fine: I32
    e I32
    f: enum(u, u)
}
nod B {}
edge E: A - B
interface I { p: }
node C { ok: I32 }
"""
    )
    places = [(diagnostic.line, diagnostic.code) for diagnostic in found]
    assert places == [
        (2, "parse_error"),
        (4, "S3"),
        (5, "S19"),
        (6, "parse_error"),
        (8, "parse_error"),
        (9, "S5"),
        (11, "parse_error"),
        (12, "parse_error"),
        (13, "parse_error"),
    ]


def test_an_unclosed_body_does_not_hide_the_next_declaration() -> None:
    found = mistakes("node A {\n  a: I32\nnode B {\n  b: Strin\n}\n")
    assert [(diagnostic.line, diagnostic.message) for diagnostic in found] == [
        (3, "expected '}' to close the body, found 'node'"),
        (4, "expected a type, found 'Strin'"),
    ]


def test_at_most_a_hundred_errors_are_reported() -> None:
    assert len(mistakes("node A {\n" + "  x: Nope\n" * 500 + "}")) == 100


def test_offsets_are_bytes() -> None:
    text = '// é🙂\nnode A @x("é") { a: Nope }'
    (diagnostic,) = mistakes(text)
    assert text.encode()[diagnostic.start : diagnostic.end] == b"Nope"
    assert (diagnostic.line, diagnostic.column) == (2, 21)


def test_errors_name_the_source() -> None:
    with pytest.raises(ParseError) as raised:
        parse_schema("x", "team.pg")
    assert "--> team.pg:1:1\n   1 | x\n     | ^" in str(raised.value)
