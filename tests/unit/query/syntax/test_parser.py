"""The grammar: texts and their trees, and syntax errors."""

from __future__ import annotations

import pytest

from omnigraph.errors import ParseError
from omnigraph.lang.spans import Name
from omnigraph.query.syntax import ast
from omnigraph.query.syntax.ast import (
    ArithmeticExpr,
    Assign,
    BindingClause,
    Bounds,
    CallExpr,
    CompareExpr,
    DeleteStatement,
    FilterClause,
    HopClause,
    InsertStatement,
    IsNullExpr,
    ListExpr,
    LiteralExpr,
    LogicExpr,
    Meta,
    NegativeExpr,
    NotClause,
    NotExpr,
    Param,
    PropertyExpr,
    PropertyMatch,
    QueryCheck,
    Read,
    ReturnItem,
    SortItem,
    UpdateStatement,
    VarExpr,
    WordExpr,
    Write,
)
from omnigraph.query.syntax.format import format_queries
from omnigraph.query.syntax.parser import parse_queries


def parse_one(text):
    (query,) = parse_queries(text).queries
    return query


def clauses(text):
    body = parse_one(f"query q() {{ match {{ {text} }} return {{ 1 }} }}").body
    assert isinstance(body, Read)
    return body.clauses


def reading(text):
    body = parse_one(f"query q() {{ match {{ $x: A }} {text} }}").body
    assert isinstance(body, Read)
    return body


def statements(text):
    body = parse_one(f"query q() {{ {text} }}").body
    assert isinstance(body, Write)
    return body.statements


def name(text):
    return Name(text)


def prop(var, property_):
    return PropertyExpr(Name(var), Name(property_))


def string(value):
    return LiteralExpr("string", value)


def integer(value):
    return LiteralExpr("int", value)


# -- clauses -----------------------------------------------------------------------------------------

# text: its single clause
CLAUSES = {
    "$x: A": BindingClause(name("x"), name("A")),
    "$x:A": BindingClause(name("x"), name("A")),
    "$x : A": BindingClause(name("x"), name("A")),
    "$_: A": BindingClause(name("_"), name("A")),
    "$_x1: A_b2": BindingClause(name("_x1"), name("A_b2")),
    "$x: A {}": BindingClause(name("x"), name("A")),
    "$x: A { p: 1 }": BindingClause(name("x"), name("A"), (PropertyMatch(name("p"), integer(1)),)),
    "$x: A { p: 1, }": BindingClause(name("x"), name("A"), (PropertyMatch(name("p"), integer(1)),)),
    '$x: A { p: $v, q: "a" }': BindingClause(
        name("x"), name("A"), (PropertyMatch(name("p"), VarExpr("v")), PropertyMatch(name("q"), string("a")))
    ),
    "$x: A { p: now() }": BindingClause(name("x"), name("A"), (PropertyMatch(name("p"), CallExpr("now", ())),)),
    "$a e $b": HopClause(name("a"), name("e"), name("b")),
    "$a e $a": HopClause(name("a"), name("e"), name("a")),
    "$_ e $_": HopClause(name("_"), name("e"), name("_")),
    "$a _e9 $b": HopClause(name("a"), name("_e9"), name("b")),
    "$a <e> $b": HopClause(name("a"), name("e"), name("b"), undirected=True),
    "$a < e > $b": HopClause(name("a"), name("e"), name("b"), undirected=True),
    "$a $w:e $b": HopClause(name("a"), name("e"), name("b"), name("w")),
    "$a $w: e $b": HopClause(name("a"), name("e"), name("b"), name("w")),
    "$a $_:e $b": HopClause(name("a"), name("e"), name("b"), name("_")),
    "$a $w:<e> $b": HopClause(name("a"), name("e"), name("b"), name("w"), undirected=True),
    "$a e{1,3} $b": HopClause(name("a"), name("e"), name("b"), bounds=Bounds(1, 3)),
    "$a e { 1 , 3 } $b": HopClause(name("a"), name("e"), name("b"), bounds=Bounds(1, 3)),
    "$a e{2,} $b": HopClause(name("a"), name("e"), name("b"), bounds=Bounds(2, None)),
    "$a e{0,0} $b": HopClause(name("a"), name("e"), name("b"), bounds=Bounds(0, 0)),
    "$a <e>{1,2} $b": HopClause(name("a"), name("e"), name("b"), undirected=True, bounds=Bounds(1, 2)),
    "$a contains $b": HopClause(name("a"), name("contains"), name("b")),
    "$a starts_with $b": HopClause(name("a"), name("starts_with"), name("b")),
    "$a contains{1,2} $b": HopClause(name("a"), name("contains"), name("b"), bounds=Bounds(1, 2)),
    "$a in|knows $b": HopClause(name("a"), name("in"), name("b"), also=(name("knows"),)),
    "$a $w:contains $b": HopClause(name("a"), name("contains"), name("b"), name("w")),
    "$a contains $b.p": FilterClause(CompareExpr("contains", VarExpr("a"), prop("b", "p"))),
    '$a contains "b"': FilterClause(CompareExpr("contains", VarExpr("a"), string("b"))),
    "$a.p contains $b": FilterClause(CompareExpr("contains", prop("a", "p"), VarExpr("b"))),
    "$a.p starts_with $b.q": FilterClause(CompareExpr("starts_with", prop("a", "p"), prop("b", "q"))),
    '"x" contains $b': FilterClause(CompareExpr("contains", string("x"), VarExpr("b"))),
    "$a < $b": FilterClause(CompareExpr("<", VarExpr("a"), VarExpr("b"))),
    "and = 1": FilterClause(CompareExpr("=", WordExpr("and"), integer(1))),
    "where contains $b": FilterClause(CompareExpr("contains", WordExpr("where"), VarExpr("b"))),
    "$a < word": FilterClause(CompareExpr("<", VarExpr("a"), WordExpr("word"))),
    "$a.p < 1": FilterClause(CompareExpr("<", prop("a", "p"), integer(1))),
    "$a.p<=1": FilterClause(CompareExpr("<=", prop("a", "p"), integer(1))),
    "$a.p>=1": FilterClause(CompareExpr(">=", prop("a", "p"), integer(1))),
    "$a.p!=1": FilterClause(CompareExpr("!=", prop("a", "p"), integer(1))),
    "$a.p = $b": FilterClause(CompareExpr("=", prop("a", "p"), VarExpr("b"))),
    "1 > $a.p": FilterClause(CompareExpr(">", integer(1), prop("a", "p"))),
    "$a . p = 1": FilterClause(CompareExpr("=", prop("a", "p"), integer(1))),
    "now() = $a.p": FilterClause(CompareExpr("=", CallExpr("now", ()), prop("a", "p"))),
    'search($a.p, "x")': FilterClause(CallExpr("search", (prop("a", "p"), string("x")))),
    'match_text($a.p, "x")': FilterClause(CallExpr("match_text", (prop("a", "p"), string("x")))),
    'fuzzy($a.p, "x")': FilterClause(CallExpr("fuzzy", (prop("a", "p"), string("x")))),
    'fuzzy($a.p, "x", 1)': FilterClause(CallExpr("fuzzy", (prop("a", "p"), string("x"), integer(1)))),
    'search($a.p, "x") = true': FilterClause(
        CompareExpr("=", CallExpr("search", (prop("a", "p"), string("x"))), LiteralExpr("bool", True))
    ),
    "not { $a e $b }": NotClause((HopClause(name("a"), name("e"), name("b")),)),
    "not{$a e $_ $_ e $a}": NotClause(
        (HopClause(name("a"), name("e"), name("_")), HopClause(name("_"), name("e"), name("a")))
    ),
    "not { not { $a: A } }": NotClause((NotClause((BindingClause(name("a"), name("A")),)),)),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CLAUSES.items(), ids=CLAUSES)
def test_clause(text, expected):
    assert clauses(text) == (expected,)


def test_clauses_need_no_separator():
    assert clauses('$x:A$x e $y$y.p="a"not{$y e $x}') == (
        BindingClause(name("x"), name("A")),
        HopClause(name("x"), name("e"), name("y")),
        FilterClause(CompareExpr("=", prop("y", "p"), string("a"))),
        NotClause((HopClause(name("y"), name("e"), name("x")),)),
    )


def test_a_comparison_with_a_variable_does_not_consume_the_next_clause():
    assert clauses("$x.p = $v $x e $y") == (
        FilterClause(CompareExpr("=", prop("x", "p"), VarExpr("v"))),
        HopClause(name("x"), name("e"), name("y")),
    )


# -- no word is reserved -----------------------------------------------------------------------------

WORDS = (
    "query", "match", "return", "order", "limit", "not", "as", "asc", "desc", "insert", "update", "delete", "set",
    "where", "now", "search", "count", "nearest", "true", "false", "date", "contains", "and", "or", "null",
)  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_a_keyword_can_be_any_name(word):
    text = f"""
    query {word}(${word}: String) {{
        match {{ ${word}: A {{ {word}: ${word} }}  ${word}.{word} = 1 }}
        return {{ ${word}.{word} as {word} }}
        order {{ ${word}.{word} }}
    }}"""
    assert parse_one(text).name == Name(word)
    assert statements(f"insert A {{ {word}: 1 }} update A set {{ {word}: 1 }} where {word} = 1")


@pytest.mark.parametrize("word", [word for word in WORDS if word != "not"])
def test_a_keyword_can_be_an_edge(word):
    assert clauses(f"$a {word} $b") == (HopClause(name("a"), name(word), name("b")),)


@pytest.mark.parametrize("word", [word for word in WORDS if word not in ("true", "false")])
def test_a_keyword_can_be_an_alias(word):
    body = reading(f"return {{ 1 as {word}, {word} }} order {{ {word} desc }}")
    assert body.items[1].expr == WordExpr(word)
    assert body.order[0].expr == WordExpr(word)


def test_longest_match():
    assert clauses("$a notify $b  $a containsx $b") == (
        HopClause(name("a"), name("notify"), name("b")),
        HopClause(name("a"), name("containsx"), name("b")),
    )


# -- return, order, limit ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "items",
    ["$x.p, $x, 1", "$x.p $x 1", "$x.p\n$x\n1", "$x.p, $x 1", "$x.p, $x, 1,", "$x.p $x 1,"],
)
def test_commas_between_items_are_optional(items):
    assert [item.expr for item in reading(f"return {{ {items} }}").items] == [prop("x", "p"), VarExpr("x"), integer(1)]


def test_aliases():
    body = reading("return { $x.p as a $x as b, c as d }")
    assert body.items == (
        ReturnItem(prop("x", "p"), name("a")),
        ReturnItem(VarExpr("x"), name("b")),
        ReturnItem(WordExpr("c"), name("d")),
    )


# text: its expression
EXPRESSIONS = {
    "now()": CallExpr("now", ()),
    "now ( )": CallExpr("now", ()),
    "count($x)": CallExpr("count", (VarExpr("x"),)),
    "sum($x.p)": CallExpr("sum", (prop("x", "p"),)),
    "avg(1)": CallExpr("avg", (integer(1),)),
    "min(max($x.p))": CallExpr("min", (CallExpr("max", (prop("x", "p"),)),)),
    "nearest($x.v, $q)": CallExpr("nearest", (prop("x", "v"), VarExpr("q"))),
    "nearest($x.v, [1, 2.5])": CallExpr(
        "nearest", (prop("x", "v"), ListExpr((integer(1), LiteralExpr("decimal", 2.5))))
    ),
    'bm25($x.p, "a")': CallExpr("bm25", (prop("x", "p"), string("a"))),
    "rrf(nearest($x.v, $q), bm25($x.p, $t))": CallExpr(
        "rrf", (CallExpr("nearest", (prop("x", "v"), VarExpr("q"))), CallExpr("bm25", (prop("x", "p"), VarExpr("t"))))
    ),
    "rrf(bm25($x.p, $t), bm25($x.q, $t), 10)": CallExpr(
        "rrf",
        (
            CallExpr("bm25", (prop("x", "p"), VarExpr("t"))),
            CallExpr("bm25", (prop("x", "q"), VarExpr("t"))),
            integer(10),
        ),
    ),
    "count": WordExpr("count"),
    "now": WordExpr("now"),
    "date": WordExpr("date"),
    "true": LiteralExpr("bool", True),
    "false": LiteralExpr("bool", False),
    "0": integer(0),
    "007": integer(7),
    "18446744073709551615": integer(2**64 - 1),
    "0.5": LiteralExpr("decimal", 0.5),
    "1.0": LiteralExpr("decimal", 1.0),
    '""': string(""),
    r'"a\"b\\c\nd\re\tf"': string('a"b\\c\nd\re\tf'),
    '"two\nlines"': string("two\nlines"),
    '"// no comment /* here */"': string("// no comment /* here */"),
    '"naïve ☃"': string("naïve ☃"),
    'date("2020-02-29")': LiteralExpr("date", "2020-02-29"),
    'datetime("2020-02-29T10:00:00+02:00")': LiteralExpr("datetime", "2020-02-29T10:00:00+02:00"),
    "[]": ListExpr(()),
    "[1]": ListExpr((integer(1),)),
    '["a", true, 1.5, date("2020-01-01")]': ListExpr(
        (string("a"), LiteralExpr("bool", True), LiteralExpr("decimal", 1.5), LiteralExpr("date", "2020-01-01"))
    ),
    "[[1], []]": ListExpr((ListExpr((integer(1),)), ListExpr(()))),
}


@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS.items(), ids=EXPRESSIONS)
def test_expression(text, expected):
    assert reading(f"return {{ {text} }}").items == (ReturnItem(expected),)


def test_order_and_limit():
    body = reading("return { $x } order { $x.p, $x.q asc, n desc } limit 10")
    assert body.order == (
        SortItem(prop("x", "p")),
        SortItem(prop("x", "q"), "asc"),
        SortItem(WordExpr("n"), "desc"),
    )
    assert body.limit == 10


@pytest.mark.parametrize("then", ["", "limit 3", "order { n }", "order { n } limit 0"])
def test_order_and_limit_are_optional(then):
    reading(f"return {{ 1 as n }} {then}")


@pytest.mark.parametrize("rank", ["bm25($x.p, $t)", "rrf(bm25($x.p, $t), bm25($x.q, $t))"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_bm25_and_rrf_take_a_direction(rank, direction):
    (item,) = reading(f"return {{ 1 }} order {{ {rank} {direction} }}").order
    assert item.direction == direction


# -- queries -----------------------------------------------------------------------------------------


def test_parameters():
    query = parse_one(
        "query q($a: String, $b: I32?, $c: [F64], $d: [Date]?, $e: Vector(3), $f: Vector(4)?, $g: Nonsense)"
        " { match { $x: A } return { 1 } }"
    )
    assert query.params == (
        Param(name("a"), name("String")),
        Param(name("b"), name("I32"), nullable=True),
        Param(name("c"), name("F64"), is_list=True),
        Param(name("d"), name("Date"), is_list=True, nullable=True),
        Param(name("e"), name("Vector"), dim=3),
        Param(name("f"), name("Vector"), dim=4, nullable=True),
        Param(name("g"), name("Nonsense")),
    )


def test_annotations_in_either_order():
    body = "{ match { $x: A } return { 1 } }"
    query = parse_one(f'query q() @instruction("ask") @description("says \\"hi\\"") {body}')
    assert query.metas == (Meta("instruction", "ask"), Meta("description", 'says "hi"'))
    assert not query.is_mutation


def test_annotations_of_stored_queries():
    text = (
        'query q() @tool_name("ask_q") @expose(false) @timeout_ms(500) @rows_max(10) @definer '
        "@check(at_most 3, required) { match { $x: A } return { 1 } }"
    )
    assert [(meta.name, meta.value) for meta in parse_one(text).metas] == [
        ("tool_name", "ask_q"),
        ("expose", False),
        ("timeout_ms", 500),
        ("rows_max", 10),
        ("definer", None),
        ("check", QueryCheck("at_most", 3, required=True)),
    ]
    assert format_queries(text).split() == text.split()


def test_a_file_contains_any_number_of_queries_including_duplicate_names():
    body = "{ match { $x: A } return { 1 } }"
    assert parse_queries("").queries == ()
    assert parse_queries("// nothing\n/* at\nall */").queries == ()
    found = parse_queries(f"query a() {body}query b(){body} query a() {body}").queries
    assert [query.name.text for query in found] == ["a", "b", "a"]


def test_comments_are_allowed_anywhere():
    assert (
        parse_one("/**/query/*a*/q(/*b*/)//c\n{match{$x/*d*/:A}return{//e\n1}}/*f*/").body
        == parse_one("query q() { match { $x: A } return { 1 } }").body
    )


# -- writes ------------------------------------------------------------------------------------------

STATEMENTS = {
    "insert A { p: 1, q: $v }": InsertStatement(
        name("A"), (Assign(name("p"), integer(1)), Assign(name("q"), VarExpr("v")))
    ),
    "insert A { p: 1 q: $v }": InsertStatement(
        name("A"), (Assign(name("p"), integer(1)), Assign(name("q"), VarExpr("v")))
    ),
    "insert A { p: [1], q: now(), }": InsertStatement(
        name("A"), (Assign(name("p"), ListExpr((integer(1),))), Assign(name("q"), CallExpr("now", ())))
    ),
    "insert A {}": InsertStatement(name("A"), ()),
    "update A set { p: 1 } where q = 2": UpdateStatement(
        name("A"), (Assign(name("p"), integer(1)),), CompareExpr("=", WordExpr("q"), integer(2))
    ),
    "update A set {} where q >= $v": UpdateStatement(name("A"), (), CompareExpr(">=", WordExpr("q"), VarExpr("v"))),
    "delete A where q < now()": DeleteStatement(name("A"), CompareExpr("<", WordExpr("q"), CallExpr("now", ()))),
    'delete A where from = "a"': DeleteStatement(name("A"), CompareExpr("=", WordExpr("from"), string("a"))),
    'delete A where where != "a"': DeleteStatement(name("A"), CompareExpr("!=", WordExpr("where"), string("a"))),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), STATEMENTS.items(), ids=STATEMENTS)
def test_statement(text, expected):
    assert statements(text) == (expected,)


def test_statements_follow_one_another():
    assert [
        type(one) for one in statements("insert A { p: 1 } update A set { p: 1 } where p = 1 delete A where p = 1")
    ] == [
        InsertStatement,
        UpdateStatement,
        DeleteStatement,
    ]


# -- errors ------------------------------------------------------------------------------------------


def fault(text):
    """Return the underlined text, the message and the hint of the first error."""
    with pytest.raises(ParseError) as caught:
        parse_queries(text)
    first = caught.value.diagnostics[0]
    return text.encode()[first.start : first.end].decode(), first.message, first.hint


ANNOTATIONS = (
    "'@check', '@definer', '@description', '@expose', '@instruction', '@rows_max', '@timeout_ms', '@tool_name'"
)
OR_CLAUSE = "a clause ('$x: Type', '$a edge $b', a comparison, 'not { … }' or 'search(…)')"
COMPARISON = "a comparison (=, !=, <, <=, >, >=, contains, in, is null, …)"
DOLLAR = "variables are written with a dollar sign: "
HOP = "a hop is written '$a edge $b', without arrows or parentheses"
PARTS = "the parts come in this order: match { … } return { … } having { … } order { … } skip n limit n"

# match block: (underlined, message, hint)
BAD_CLAUSES = {
    "": ("}", f"expected {OR_CLAUSE}, found '}}'", None),
    "not { }": ("}", f"expected {OR_CLAUSE}, found '}}'", None),
    "$x: a": ("a", "expected a node type, found 'a'", "a node type begins with an upper-case letter: 'A'"),
    "$x: A { p 1 }": ("1", "expected ':' and the property's value, found '1'", None),
    "$x: A { P: 1 }": (
        "P", "expected a property name, found 'P'", "a property name begins with a lower-case letter: 'p'",
    ),
    "$x: A { p: 1 q: 2 }": ("q", "expected ',' or '}' behind a property, found 'q'", None),
    "$x: A { p: $y.q }": (
        "$y.q", "only a literal, a '$param' or now() is allowed here",
        "compute the value beforehand and pass it as a parameter",
    ),
    "$x: A { p: count($x) }": (
        "count($x)", "only a literal, a '$param' or now() is allowed here",
        "compute the value beforehand and pass it as a parameter",
    ),
    "$x: A { p: word }": (
        "word", "only a literal, a '$param' or now() is allowed here", 'text is written in double quotes: "word"',
    ),
    "$x: A { p: null }": (
        "null", "only a literal, a '$param' or now() is allowed here",
        "to find null values, write a clause: '$x.property is null'",
    ),
    "$a not $b": ("not", f"expected {COMPARISON}, found 'not'", None),
    "$a <not> $b": ("not", "expected an edge name, found 'not'", None),
    "$a Knows $b": (
        "Knows", "expected an edge name, found 'Knows'", "an edge name begins with a lower-case letter: 'knows'",
    ),
    "$a <Knows> $b": (
        "Knows", "expected an edge name, found 'Knows'", "an edge name begins with a lower-case letter: 'knows'",
    ),
    "$a <e $b": ("}", f"expected {COMPARISON}, found '}}'", None),
    "$a <e{1,2}> $b": ("{", "expected '>' to close the undirected edge, found '{'", "bounds come last: '<e>{1,3}'"),
    "$a e{2} $b": ("}", "expected ',' and the largest number of hops, found '}'", "exactly 2 hops is {2,2}"),
    "$a e{,2} $b": (",", "expected the smallest number of hops, found ','", None),
    "$a e{1..2} $b": ("..", "expected ',' and the largest number of hops, found '..'", None),
    "$a e{1,x} $b": ("x", "expected the largest number of hops, found 'x'", None),
    "$a e b": ("b", "expected a variable at the far end of the hop, found 'b'", DOLLAR + "'$b'"),
    "$a e": ("}", "expected a variable at the far end of the hop, found '}'", None),
    "$a $b": ("$b", "expected an edge between the two variables, found '$b'", "a hop names its edge: '$a edge $b'"),
    "$a $w e $b": (
        "$w", "expected an edge between the two variables, found '$w'", "a hop names its edge: '$a edge $w'",
    ),
    "$a -[:e]-> $b": ("-", "expected a comparison, found '-'", HOP),
    "$a ->e $b": (
        "e", "expected a variable at the far end of the hop, found 'e'",
        "'->' follows any edge; one of a type is written '$a e $b'",
    ),
    "$a: A|b": (
        "b", "expected another node type, found 'b'", "another node type begins with an upper-case letter: 'B'",
    ),
    "$a <-e- $b": ("-", "expected a value to compare with, found '-'", HOP),
    "(a)-[:e]->(b)": ("(", f"expected {OR_CLAUSE}, found '('", HOP),
    "Person": ("Person", f"expected {OR_CLAUSE}, found 'Person'", "a node type is bound by a variable: '$x: Person'"),
    "x: A": ("x", "'x' is not a variable", DOLLAR + "'$x'"),
    "x e $y": ("x", "'x' is not a variable", DOLLAR + "'$x'"),
    "x e y": ("x", "'x' is not a variable", DOLLAR + "'$x'"),
    "x.p = 1": ("x", "'x' is not a variable", DOLLAR + "'$x.p'"),
    "$X: A": ("$X", f"expected {OR_CLAUSE}, found '$X'",
              "a variable is '$' and a name that begins with a lower-case letter or underscore"),
    "$x.P = 1": ("P", "expected a property name, found 'P'", "a property name begins with a lower-case letter: 'p'"),
    "$x.p == 1": ("=", "expected a value, found '='", "equality is written with one '='"),
    "$x.p <> 1": (">", "expected a value, found '>'", "'not equal' is written '!='"),
    "$x.p => 1": (">", "expected a value, found '>'", "'at least' is written '>='"),
    "$x.p =< 1": ("<", "expected a value, found '<'", "'at most' is written '<='"),
    '$x.p like "a"': ("like", f"expected {COMPARISON}, found 'like'",
                      "a part of a text is found by 'contains', its beginning by 'starts_with', "
                      "a pattern by 'matches'"),
    "$x.p = 'a'": ("'a'", "text is written in double quotes, not in single ones", 'write "a"'),
    "$x.p = 'say \"a\"'": (
        "'say \"a\"'", "text is written in double quotes, not in single ones", r'write "say \"a\""',
    ),
    "$x.p = 'a": ("'", "expected a value, found '''", "strings are written in double quotes"),
    "$x.p = `a`": ("`", "expected a value to compare with, found '`'", "strings are written in double quotes"),
    "$x.p = Ann": ("Ann", "expected a value to compare with, found 'Ann'", 'text is written in double quotes: "Ann"'),
    '$x.p = "a': ('"', "a string that is never closed", None),
    r'$x.p = "a\x"': (r"\x", r"unsupported escape '\x' in a string", 'the escapes are \\" \\\\ \\n \\r \\t'),
    "$x.p = 18446744073709551616": ("18446744073709551616", "the number does not fit 64 bits", None),
    f"$x.p = {'9' * 400}.0": (f"{'9' * 400}.0", "the number is too large for a 64-bit float", None),
    '$x.p = date("2020-02-30")': ('"2020-02-30"', "'2020-02-30' is not a date of the calendar", None),
    '$x.p = date("soon")': (
        '"soon"', "'soon' is not a date", "write YYYY-MM-DD, or YYYY-MM-DDTHH:MM:SS with an optional zone",
    ),
    '$x.p = datetime("2020-01-01T25:00")': ('"2020-01-01T25:00"', "'2020-01-01T25:00' has no such time of day", None),
    "$x.p = date(2020)": ("2020", "expected a text in double quotes, found '2020'", None),
    "$x.p = [1 2]": ("2", "expected ']' to close the list, found '2'", None),
    "$x.p = [1, 2,]": ("]", "expected a value or ']', found ']'", None),
    "$x.p + 1": ("}", f"expected {COMPARISON}, found '}}'", None),
    "$x.p = -9223372036854775809": ("-9223372036854775809", "the number does not fit 64 bits", None),
    "$x.p = -1e999": ("-1e999", "the number is too large for a 64-bit float", None),
    "$x.p = 1 or ": ("or", f"expected {OR_CLAUSE}, found 'or'", "'or' joins two conditions; there is none before it"),
    "not": ("}", f"expected {COMPARISON}, found '}}'", "did you mean 'not'?"),
    "not ($x.p = 1": ("}", "expected ')' to close the parentheses, found '}'", None),
    "($x.p = 1 or ($x.q = 2)": ("}", "expected ')' to close the parentheses, found '}'", None),
    "1 < $x.p < 3": ("<", "expected one comparison, found '<'", "compare two values at a time: a < b and b < c"),
    "-1 < $x.p": ("-", f"expected {OR_CLAUSE}, found '-'",
                  "a clause cannot begin with a sign: put the number on the right"),
    "$x.p between 1 and 2": ("between", f"expected {COMPARISON}, found 'between'",
                             "write both bounds: $x.p >= 1 and $x.p <= 9"),
    "$x: A, $y: B": (",", f"expected {OR_CLAUSE}, found ','", "clauses are not separated by commas: end the line"),
    "$x: A; $y: B": (";", f"expected {OR_CLAUSE}, found ';'", "nothing is needed between clauses: end the line"),
    "$x: A and $x.p = 1": ("and", f"expected {OR_CLAUSE}, found 'and'",
                           "'and' joins two conditions; there is none before it"),
    "$x: A && $x.p = 1": ("&&", f"expected {OR_CLAUSE}, found '&&'", "conditions are joined by 'and'"),
    "$x: A where $x.p = 1": ("where", f"expected {OR_CLAUSE}, found 'where'",
                             "a condition is a clause by itself, without 'where'"),
    "nott { $x: A }": ("{", f"expected {COMPARISON}, found '{{'", "did you mean 'not'?"),
    "serch($x.p, $q)": ("serch", "there is no function 'serch'", "did you mean 'search'?"),
    'search($x.p)': (
        "search($x.p)",
        "'search' takes 2 or 3 arguments, not 1",
        "write search($x.text, query) or search($x.text, query, all)",
    ),
    'fuzzy($x.p, "a", 1, 2)': (
        'fuzzy($x.p, "a", 1, 2)', "'fuzzy' takes 2 or 3 arguments, not 4",
        "write fuzzy($x.text, query) or fuzzy($x.text, query, max_edits)",
    ),
    "now(1) = 2": ("now(1)", "'now' takes 0 arguments, not 1", "write now()"),
    "nearest($v, $q) = 1": (
        "$v",
        "'nearest' ranks a vector property",
        "write nearest($x.vector, query) or nearest($x.vector, query, approx)",
    ),
    "count($x)": ("}", f"expected {COMPARISON}, found '}}'", None),
    "$é: A": ("$", f"expected {OR_CLAUSE}, found '$'",
              "a variable is '$' and a name that begins with a lower-case letter or underscore"),
    "$x: A é": (
        "é", f"expected {OR_CLAUSE}, found 'é'", "names are written in the letters a to z, digits and underscores",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BAD_CLAUSES.items(), ids=[text[:30] for text in BAD_CLAUSES])
def test_invalid_clause(text, expected):
    assert fault(f"query q() {{ match {{ {text} }} return {{ 1 }} }}") == expected


A, B, C = (CompareExpr("=", PropertyExpr(Name("x"), Name(name)), LiteralExpr("int", 1)) for name in "abc")
P = PropertyExpr(Name("x"), Name("p"))
ONE, TWO, THREE = (LiteralExpr("int", number) for number in (1, 2, 3))
CONDITIONS = {
    "$x.a = 1 or $x.b = 1 and $x.c = 1": LogicExpr("or", (A, LogicExpr("and", (B, C)))),
    "($x.a = 1 or $x.b = 1) and $x.c = 1": LogicExpr("and", (LogicExpr("or", (A, B)), C)),
    "not $x.a = 1 and $x.b = 1": LogicExpr("and", (NotExpr(A), B)),
    "not ($x.a = 1 and $x.b = 1)": NotExpr(LogicExpr("and", (A, B))),
    "not not $x.a = 1": NotExpr(NotExpr(A)),
    "$x.p in [1, 2]": CompareExpr("in", P, ListExpr((ONE, TWO))),
    "$x.p not in $list": CompareExpr("not in", P, VarExpr("list")),
    "$x.p in [$x.p, $y]": CompareExpr("in", P, ListExpr((P, VarExpr("y")))),
    "$x.p is null": IsNullExpr(P),
    "$x.p is not null": IsNullExpr(P, True),
    "$y is null": IsNullExpr(VarExpr("y")),
    '$x.p ends_with "a"': CompareExpr("ends_with", P, LiteralExpr("string", "a")),
    '$x.p matches "^a"': CompareExpr("matches", P, LiteralExpr("string", "^a")),
    "$x.p = -1": CompareExpr("=", P, LiteralExpr("int", -1)),
    "$x.p = -9223372036854775808": CompareExpr("=", P, LiteralExpr("int", -(2**63))),
    "$x.p = -1.5e3": CompareExpr("=", P, LiteralExpr("decimal", -1500.0)),
    "$x.p = 1E-2": CompareExpr("=", P, LiteralExpr("decimal", 0.01)),
    "$x.p = 1 + 2 * 3": CompareExpr("=", P, ArithmeticExpr("+", ONE, ArithmeticExpr("*", TWO, THREE))),
    "$x.p = (1 + 2) * 3": CompareExpr("=", P, ArithmeticExpr("*", ArithmeticExpr("+", ONE, TWO), THREE)),
    "$x.p = 3 - 2 - 1": CompareExpr("=", P, ArithmeticExpr("-", ArithmeticExpr("-", THREE, TWO), ONE)),
    "$x.p = 3 -2": CompareExpr("=", P, ArithmeticExpr("-", THREE, TWO)),
    "$x.p = -$x.p": CompareExpr("=", P, NegativeExpr(P)),
    "$x.p": P,
    "$y + 1 > $x.p": CompareExpr(">", ArithmeticExpr("+", VarExpr("y"), ONE), P),
}


@pytest.mark.parametrize(("text", "expected"), CONDITIONS.items(), ids=CONDITIONS)
def test_condition(text, expected):
    query = parse_queries(f"query q() {{ match {{ {text} $x: A }} return {{ 1 }} }}").queries[0]
    assert isinstance(query.body, Read)
    assert query.body.clauses[0] == FilterClause(expected)
    assert len(query.body.clauses) == 2


@pytest.mark.parametrize("word", ["in", "is", "and", "or", "not", "contains", "matches", "null"])
def test_an_operator_can_be_a_name(word):
    text = f"query q() {{ update T set {{ a: 1 {word}: 2 {word}: 3 }} where {word} = 1 }}"
    (statement,) = parse_queries(text).queries[0].body.statements
    assert [assign.property.text for assign in statement.assigns] == ["a", word, word]
    assert statement.where == CompareExpr("=", WordExpr(word), ONE)


def test_an_edge_can_have_the_name_of_an_operator():
    query = parse_queries("query q() { match { $a in $b $a is{1,2} $b $a or $b } return { $a.x as or, or } }").queries[
        0
    ]
    assert [type(clause) for clause in query.body.clauses] == [HopClause, HopClause, HopClause]
    assert query.body.items[1].expr == WordExpr("or")


def test_a_long_chain_of_operators_is_refused():
    text = "query q() { match { $x.p = " + "1 + " * 100 + "1 } return { 1 } }"
    assert fault(text)[1] == "nested more than 64 levels deep"
    joined = " or ".join(["$x.p = 1"] * 1000)
    assert len(parse_queries(f"query q() {{ match {{ {joined} }} return {{ 1 }} }}").queries[0].body.clauses) == 1


# rest of a query: (underlined, message, hint)
BAD_RESULTS = {
    "return { }": ("}", "expected what to return ('$x.property', '$x', an aggregate, …), found '}'", None),
    "return { 1,, 2 }": (",", "expected what to return ('$x.property', '$x', an aggregate, …), found ','", None),
    "return { x.p }": ("x", "'x' is not a variable", DOLLAR + "'$x.p'"),
    "return { $x.p as P }": ("P", "expected an alias, found 'P'", "an alias begins with a lower-case letter: 'p'"),
    "return { $x.p as $p }": ("$p", "expected an alias, found '$p'", None),
    "return { count(*) }": ("*", "expected an argument, found '*'", "count rows by a variable: count($x)"),
    "return { count() }": ("count()", "'count' takes 1 argument, not 0", "write count($x)"),
    "return { sum($x.p, $x.q) }": ("sum($x.p, $x.q)", "'sum' takes 1 argument, not 2", "write sum($x.number)"),
    "return { cuont($x) }": ("cuont", "there is no function 'cuont'", "did you mean 'count'?"),
    "return { $x.p": (
        "", "expected what to return ('$x.property', '$x', an aggregate, …), found the end of the text", None,
    ),
    "return $x": ("$x", "expected '{' to open 'return', found '$x'", "write return { $x.property }"),
    "order { $x.p } return { 1 }": ("order", "expected 'return' and what the query returns, found 'order'", PARTS),
    "return { 1 } limit 5 order { $x.p }": ("order", "expected '}' to close the query, found 'order'", PARTS),
    "return { 1 } return { 2 }": ("return", "expected '}' to close the query, found 'return'", PARTS),
    "return { 1 } where $x.p = 1": (
        "where", "expected '}' to close the query, found 'where'",
        "a condition is a clause inside the braces: match { $x: Type $x.property > 1 }",
    ),
    "return { 1 } order { }": ("}", "expected a sort key, found '}'", None),
    "return { 1 } order { $x.p, }": ("}", "expected a sort key, found '}'", None),
    "return { 1 } order { $x.p $x.q }": (
        "$x", "expected '}' to close 'order' (sort keys are separated by commas), found '$x'", None,
    ),
    "return { 1 } order { $x.p descending }": (
        "descending", "expected '}' to close 'order' (sort keys are separated by commas), found 'descending'", None,
    ),
    "return { 1 } order by { $x.p }": (
        "by", "expected '{' to open 'order', found 'by'", "write order { $x.property desc }, without 'by'",
    ),
    "return { 1 } order { nearest($x.v, $q) asc }": (
        "asc", "'nearest' is always best first and takes no 'asc'", "drop 'asc'",
    ),
    "return { 1 } order { nearest($x.v, $q) desc }": (
        "desc", "'nearest' is always best first and takes no 'desc'", "drop 'desc'",
    ),
    "return { 1 } limit": ("}", "expected a whole number of rows, or a parameter, found '}'", None),
    "return { 1 } limit n": ("n", "expected a whole number of rows, or a parameter, found 'n'", None),
    "return { 1 } limit 5 skip 1": ("skip", "expected '}' to close the query, found 'skip'", PARTS),
    "return { 1 } limit 1 having { n > 1 }": ("having", "expected '}' to close the query, found 'having'", PARTS),
    "return { 1 } limit 1.5": ("1.5", "expected a whole number of rows, or a parameter, found '1.5'", None),
    "return { 1 } limit -1": ("-", "expected a whole number of rows, or a parameter, found '-'", None),
    "return { 1 } limit 18446744073709551616": ("18446744073709551616", "the number does not fit 64 bits", None),
    "insert A { p: 1 }": ("insert", "expected 'return' and what the query returns, found 'insert'", None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BAD_RESULTS.items(), ids=BAD_RESULTS)
def test_invalid_result(text, expected):
    underlined, message, hint = fault(f"query q() {{ match {{ $x: A }} {text}" + (" }" if expected[0] else ""))
    assert (message, hint) == expected[1:]
    assert underlined == expected[0]


# whole text: (underlined, message, hint)
BAD_QUERIES = {
    "match { $x: A } return { 1 } }": ("}", "expected the end of the query, found '}'", None),
    "qurey q() { match { $x: A } return { 1 } }": ("qurey", "expected 'query', found 'qurey'", "did you mean 'query'?"),
    "query Q() { match { $x: A } return { 1 } }": (
        "Q", "expected a query name, found 'Q'", "a query name begins with a lower-case letter: 'q'",
    ),
    "query q { match { $x: A } return { 1 } }": ("{", "expected '(' and the query's parameters, found '{'", None),
    "query q() match { $x: A } return { 1 }": ("match", "expected '{' to open the query, found 'match'", None),
    "query q(a: String) { }": ("a", "expected a parameter ('$name: Type'), found 'a'", DOLLAR + "'$a'"),
    "query q($a) { }": (")", "expected ':' and the parameter's type, found ')'", None),
    "query q($a: string) { }": ("string", "expected a type, found 'string'", "did you mean 'String'?"),
    "query q($a: enum(x, y)) { }": (
        "enum", "expected a type, found 'enum'", "a parameter for an enum property is a String",
    ),
    "query q($a: int) { }": (
        "int", "expected a type, found 'int'", "write I64",
    ),
    "query q($a: kilo) { }": (
        "kilo", "expected a type, found 'kilo'",
        "the types are String, Blob, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime, Uuid, Vector(n) "
        "and lists: [T]",
    ),
    "query q($a: [String) { }": (")", "expected ']' to close the list type, found ')'", None),
    "query q($a: [Vector(3)]) { }": ("(", "expected ']' to close the list type, found '('", None),
    "query q($a: Vector) { }": (")", "expected '(' and the number of dimensions, found ')'", None),
    "query q($a: Vector(x)) { }": ("x", "expected the number of dimensions, found 'x'", None),
    "query q($a: String $b: I32) { }": ("$b", "expected ',' or ')' behind a parameter, found '$b'", None),
    "query q($a: String,) { }": (")", "expected a parameter ('$name: Type'), found ')'", None),
    "query q($a: String!) { }": ("!", "expected ')' to close the parameters, found '!'", None),
    'query q() @description("a") @description("b") { }': ("@description", "'@description' is written twice", None),
    'query q() @desc("a") { }': (
        "@desc", f"a query has no '@desc', only {ANNOTATIONS}", None,
    ),
    'query q() @descriptoin("a") { }': (
        "@descriptoin", f"a query has no '@descriptoin', only {ANNOTATIONS}",
        "did you mean 'description'?",
    ),
    "query q() @description { }": ("{", "expected '(' and the value, found '{'", None),
    "query q() @expose(yes) { }": ("yes", "expected one of 'false', 'true', found 'yes'", None),
    "query q() @rows_max(0) { }": ("0", "the number must be from 1 to 2147483647", None),
    "query q() @timeout_ms(x) { }": ("x", "expected a positive number, found 'x'", None),
    "query q() @check(none) { }": (
        "none",
        "expected one of 'at_most', 'empty', 'no_more_than_before', 'some', 'unchanged', found 'none'",
        None,
    ),
    "query q() @check(at_most) { }": (")", "expected the number of rows, found ')'", None),
    "query q() @check(empty, always) { }": ("always", "expected one of 'required', found 'always'", None),
    "query q() @description(a) { }": ("a", "expected a text in double quotes, found 'a'", None),
    "query q() { }": ("}", "expected 'match', 'insert', 'update' or 'delete', found '}'", None),
    "query q() { mtach { $x: A } }": (
        "mtach", "expected 'match', 'insert', 'update' or 'delete', found 'mtach'", "did you mean 'match'?",
    ),
    "query q() { match $x: A }": (
        "$x", "expected '{' to open 'match', found '$x'", "write match { $x: Type } return { $x.property }",
    ),
    "query q() { match { $x: A return { 1 } }": ("return", "expected '}' to close 'match', found 'return'", None),
    "query q() { match { not { $x: A return { 1 } }": ("return", "expected '}' to close 'not', found 'return'", None),
    "query q() { match { $x: A } return { 1 } ": (
        "", "expected '}' to close the query, found the end of the text", None,
    ),
    "query q() { match { $x: A } return { 1 } } }": (
        "}", "expected 'query', found '}'", "a file holds queries: query name($param: Type) { … }",
    ),
    "/* query q() {": ("/*", "a comment that is never closed", None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BAD_QUERIES.items(), ids=BAD_QUERIES)
def test_invalid_query(text, expected):
    assert fault(text) == expected


# statement: (underlined, message, hint)
BAD_STATEMENTS = {
    "insert a { p: 1 }": ("a", "expected a type, found 'a'", "a type begins with an upper-case letter: 'A'"),
    "insert A p: 1": ("p", "expected '{' to open 'insert', found 'p'", "write insert Type { property: value }"),
    "insert A { p = 1 }": ("=", "expected ':' and the property's value, found '='", "write p: value"),
    "insert A { p: }": ("}", "expected a value, found '}'", None),
    "insert A { p: 1,, q: 2 }": (",", "expected a property name, found ','", None),
    "insert A { $p: 1 }": ("$p", "expected a property name, found '$p'", None),
    "update A { p: 1 } where p = 1": (
        "{", "expected 'set' and the new values, found '{'", "write update A set { property: value } where condition",
    ),
    "update A set p = 1 where p = 1": ("p", "expected '{' to open 'set', found 'p'", "write set { p: value }"),
    "update A set { p: 1 }": (
        "}", "expected 'where' and which rows to update, found '}'", "every update names its rows: where key = $key",
    ),
    "delete A": ("}", "expected 'where' and which rows to delete, found '}'",
                 "every delete names its rows: where key = $key"),
    "delete A where": ("}", "expected a condition on the properties of a row, found '}'", None),
    "delete A where $x.p = 1": ("$x", "expected a property name, found '$x'", "name the property alone: 'p'"),
    "delete A where p == 1": ("=", "expected a value, found '='", "equality is written with one '='"),
    "delete A where p <> 1": (">", "expected a value, found '>'", "'not equal' is written '!='"),
    "delete A where p = 'q'": ("'q'", "text is written in double quotes, not in single ones", 'write "q"'),
    "insert A { p: 1 } remove A": (
        "remove", "expected another statement or '}' to close the query, found 'remove'", None,
    ),
    "insert A { p: 1 } delet A where p = 1": (
        "delet", "expected another statement or '}' to close the query, found 'delet'", "did you mean 'delete'?",
    ),
    "insert A { p: 1 } match { $x: A } return { 1 }": (
        "match", "expected another statement or '}' to close the query, found 'match'", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BAD_STATEMENTS.items(), ids=BAD_STATEMENTS)
def test_invalid_statement(text, expected):
    assert fault(f"query q() {{ {text} }}") == expected


# function: (minimum, maximum) number of arguments
ARITIES = {
    "now": (0, 0), "search": (2, 3), "match_text": (2, 3), "fuzzy": (2, 3), "nearest": (2, 3), "bm25": (2, 2),
    "rrf": (2, 9), "count": (1, 1), "sum": (1, 1), "avg": (1, 1), "median": (1, 1), "min": (1, 1), "max": (1, 1),
}  # fmt: skip


@pytest.mark.parametrize(("function", "least", "most"), [(name, *arity) for name, arity in ARITIES.items()])
def test_arity(function, least, most):
    def call(count):
        return f"{function}({', '.join(['$x.p'] * count)})"

    for count in range(least, most + 1):
        assert reading(f"return {{ {call(count)} }}").items == (
            ReturnItem(CallExpr(function, (prop("x", "p"),) * count)),
        )
    for count in {least - 1, most + 1} - {-1}:
        underlined, message, hint = fault(f"query q() {{ match {{ $x: A }} return {{ {call(count)} }} }}")
        assert underlined == call(count)
        assert message.startswith(f"'{function}' takes ")
        assert message.endswith(f", not {count}")
        assert hint is not None
        assert hint.startswith(f"write {function}(")


def test_one_error_is_reported_for_each_query_of_a_file():
    text = """
query one() { match { $x: A  $x.p == 1 } return { 1 } }
query two() { match { $x: A } return { $x.p } }
query three() { match { $x: A } return { } }
query four(
query five() { insert A { p = 1 } }
query six() { delete A where p = 1 }
stray
query seven() { delete A where p = 'x' }
"""
    with pytest.raises(ParseError) as caught:
        parse_queries(text, "f.gq")
    assert [(found.line, found.column) for found in caught.value.diagnostics] == [
        (2, 36), (4, 42), (6, 1), (6, 29), (8, 1), (9, 36),
    ]  # fmt: skip
    assert all(found.kind == "parse" and found.source_name == "f.gq" for found in caught.value.diagnostics)
    assert str(caught.value).count("parse error: ") == 6


def test_nesting_is_limited():
    depth = 70
    text = "query q() { match { " + "not { " * depth + "$x: A" + " }" * depth + " } return { 1 } }"
    assert fault(text)[1] == "nested more than 64 levels deep"
    lists = f"query q() {{ match {{ $x.p = {'[' * depth}{']' * depth} }} return {{ 1 }} }}"
    assert fault(lists)[1] == "nested more than 64 levels deep"
    calls = f"query q() {{ match {{ $x: A }} return {{ {'count(' * depth}$x{')' * depth} }} }}"
    assert fault(calls)[1] == "nested more than 64 levels deep"


def test_an_unpaired_surrogate_is_refused():
    with pytest.raises(ParseError, match="not valid Unicode"):
        parse_queries('query q() { match { $x: A { p: "\ud800" } } return { 1 } }')


# -- spans -------------------------------------------------------------------------------------------

TEXT = """query q($a: [String]?) @description("d") {
    match { $x: A { p: $a }  $x $w:e{1,2} $y  not { $x.p = "é" } }
    return { $x.p as n, count($y) }
    order { n desc }
    limit 10
}
"""


def test_spans_cover_their_constructs():
    def at(span):
        return TEXT[span.start : span.end]

    query = parse_one(TEXT)
    assert isinstance(query.body, Read)
    binding, hop, negation = query.body.clauses
    assert isinstance(binding, BindingClause)
    assert isinstance(hop, HopClause)
    assert isinstance(negation, NotClause)
    (condition,) = negation.clauses
    assert isinstance(condition, FilterClause)
    assert isinstance(condition.expr, CompareExpr)
    assert hop.bounds is not None
    assert hop.edge_var is not None
    assert [
        at(query.name.span), at(query.params_span), at(query.params[0].span), at(query.params[0].type_name.span),
        at(query.metas[0].span), at(query.metas[0].text_span),
    ] == ["q", "($a: [String]?)", "$a: [String]?", "String", '@description("d")', '"d"']  # fmt: skip
    assert at(query.span) == TEXT.rstrip()
    assert at(query.braces) == TEXT[TEXT.index("{\n") :].rstrip()
    assert [at(binding.span), at(binding.var.span), at(binding.type.span), at(binding.matches[0].span)] == [
        "$x: A { p: $a }", "$x", "A", "p: $a",
    ]  # fmt: skip
    assert [at(hop.span), at(hop.left.span), at(hop.edge_var.span), at(hop.edge.span), at(hop.bounds.span)] == [
        "$x $w:e{1,2} $y", "$x", "$w", "e", "{1,2}",
    ]  # fmt: skip
    assert [at(negation.span), at(negation.body)] == ['not { $x.p = "é" }', '{ $x.p = "é" }']
    assert [at(condition.span), at(condition.expr.left.span), at(condition.expr.right.span)] == [
        '$x.p = "é"', "$x.p", '"é"',
    ]  # fmt: skip
    assert [at(item.span) for item in query.body.items] == ["$x.p as n", "count($y)"]
    assert [at(item.span) for item in query.body.order] == ["n desc"]
    assert [at(query.body.return_body), at(query.body.order_body), at(query.body.limit_span)] == [
        "{ $x.p as n, count($y) }", "{ n desc }", "limit 10",
    ]  # fmt: skip


def test_equality_ignores_spans():
    assert parse_queries(TEXT) == parse_queries(" \n" + TEXT.replace(" ", "  "))
    assert parse_queries(TEXT) != parse_queries(TEXT.replace("limit 10", "limit 11"))


def test_anonymous_is_an_ordinary_name_in_the_tree():
    (hop,) = clauses("$a e $_")
    assert isinstance(hop, HopClause)
    assert hop.right.text == ast.ANONYMOUS
