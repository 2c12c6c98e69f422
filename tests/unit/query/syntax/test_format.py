"""Layout: text before and after formatting."""

from __future__ import annotations

from textwrap import dedent

import pytest

from omnigraph.errors import ParseError
from omnigraph.query.syntax.format import format_queries, print_queries
from omnigraph.query.syntax.parser import parse_queries

# id: (before, after)
LAYOUTS = {
    "nothing": ("", ""),
    "blank lines only": ("\n\n  \n", ""),
    "short blocks stand on one line": (
        "query q(){match{$x:A}return{$x.p}order{$x.p}limit 5}",
        """
        query q() {
            match { $x: A }
            return { $x.p }
            order { $x.p }
            limit 5
        }
        """,
    ),
    "several clauses stand on a line each": (
        'query q(){match{$x:A{p:1,q:$v,}$x e $y $x $w:<e>$z $x e{1,2}$y $x<e>{1,3}$y $x.p="a"search($x.p,"b")}'
        "return{1}}",
        """
        query q() {
            match {
                $x: A { p: 1, q: $v }
                $x e $y
                $x $w:<e> $z
                $x e{1,2} $y
                $x <e>{1,3} $y
                $x.p = "a"
                search($x.p, "b")
            }
            return { 1 }
        }
        """,
    ),
    "empty braces behind a type go": (
        "query q() { match { $x: A {} } return { 1 } }",
        """
        query q() {
            match { $x: A }
            return { 1 }
        }
        """,
    ),
    "a negation always opens its block": (
        "query q() { match { not { $x e $_ } } return { 1 } }",
        """
        query q() {
            match {
                not { $x e $_ }
            }
            return { 1 }
        }
        """,
    ),
    "negations nest": (
        "query q() { match { $x: A not { $x e $y not { $y e $x $y.p = 1 } } } return { 1 } }",
        """
        query q() {
            match {
                $x: A
                not {
                    $x e $y
                    not {
                        $y e $x
                        $y.p = 1
                    }
                }
            }
            return { 1 }
        }
        """,
    ),
    "items get commas on one line": (
        "query q() { match { $x: A } return { $x.p $x as who, count($x) } order { $x.p asc,$x.q desc } }",
        """
        query q() {
            match { $x: A }
            return { $x.p, $x as who, count($x) }
            order { $x.p asc, $x.q desc }
        }
        """,
    ),
    "long lists stand on a line each": (
        """
        query q() {
            match { $x: A }
            return { $x.property_number_one, $x.property_number_two as two, $x.property_number_three, count($x), }
            order { $x.property_number_one, $x.property_number_two desc, $x.property_number_three, $x.property_four }
        }
        """,
        """
        query q() {
            match { $x: A }
            return {
                $x.property_number_one
                $x.property_number_two as two
                $x.property_number_three
                count($x)
            }
            order {
                $x.property_number_one,
                $x.property_number_two desc,
                $x.property_number_three,
                $x.property_four
            }
        }
        """,
    ),
    "expressions": (
        'query q(){match{$x:A}return{rrf(nearest($x.v,[1,2.50]),bm25($x.p,"q"),10),now(),date( "2020-01-01" ),'
        "datetime(\"2020-01-01T00:00Z\"),[],true,007,n}}",
        """
        query q() {
            match { $x: A }
            return {
                rrf(nearest($x.v, [1, 2.50]), bm25($x.p, "q"), 10)
                now()
                date("2020-01-01")
                datetime("2020-01-01T00:00Z")
                []
                true
                7
                n
            }
        }
        """,
    ),
    "strings stay as they were written": (
        r"""query q() { match { $x.p = "a\"b\\c\n\td" } return { "é", "tab	here" } }""",
        r"""
        query q() {
            match { $x.p = "a\"b\\c\n\td" }
            return { "é", "tab	here" }
        }
        """,
    ),
    "statements": (
        'query q($v:String){insert A{p:$v q:1,}insert B{}update A set{p:now()}where q=1 delete A where p!="x"}',
        """
        query q($v: String) {
            insert A { p: $v, q: 1 }
            insert B {}
            update A set { p: now() } where q = 1
            delete A where p != "x"
        }
        """,
    ),
    "long statements": (
        """
        query q($v: String) {
            insert A { property_number_one: $v, property_number_two: $v, property_number_three: $v, four: "4" }
            update A set { property_number_one: $v, property_number_two: $v, property_number_three: $v } where a = $v
        }
        """,
        """
        query q($v: String) {
            insert A {
                property_number_one: $v
                property_number_two: $v
                property_number_three: $v
                four: "4"
            }
            update A set {
                property_number_one: $v
                property_number_two: $v
                property_number_three: $v
            } where a = $v
        }
        """,
    ),
    "queries stand apart by one line": (
        "query a() { match { $x: A } return { 1 } }\nquery b() { match { $x: A } return { 1 } }\n\n\n\n"
        "query c() { match { $x: A } return { 1 } }",
        """
        query a() {
            match { $x: A }
            return { 1 }
        }

        query b() {
            match { $x: A }
            return { 1 }
        }

        query c() {
            match { $x: A }
            return { 1 }
        }
        """,
    ),
    "one blank line between items is kept, none at the edges": (
        """
        query q() {

            match {

                $x: A


                $x e $y

            }

            return { 1 }

            limit 3

        }
        """,
        """
        query q() {
            match {
                $x: A

                $x e $y
            }

            return { 1 }

            limit 3
        }
        """,
    ),
    "parameters and annotations": (
        'query q($a:String,$b:[I32]?,$c:Vector(3)?,$d:Date?)@description("d")@instruction("i"){match{$x:A}return{1}}',
        """
        query q($a: String, $b: [I32]?, $c: Vector(3)?, $d: Date?) @description("d") @instruction("i") {
            match { $x: A }
            return { 1 }
        }
        """,
    ),
    "a long header": (
        "query a_rather_long_name($first_parameter: String, $second_parameter: [I64]?, $third_parameter: Vector(3)) {"
        " match { $x: A } return { 1 } }",
        """
        query a_rather_long_name(
            $first_parameter: String,
            $second_parameter: [I64]?,
            $third_parameter: Vector(3)
        ) {
            match { $x: A }
            return { 1 }
        }
        """,
    ),
    "a long annotation": (
        'query q($a: String) @description("a description that makes the header of this query too long for one line")'
        " { match { $x: A } return { 1 } }",
        """
        query q($a: String)
            @description("a description that makes the header of this query too long for one line")
        {
            match { $x: A }
            return { 1 }
        }
        """,
    ),
    "a long header with annotations": (
        "query a_rather_long_name($first_parameter: String, $second_parameter: [I64]?, $third_parameter: Vector(3))"
        ' @instruction("i") @description("d") { match { $x: A } return { 1 } }',
        """
        query a_rather_long_name(
            $first_parameter: String,
            $second_parameter: [I64]?,
            $third_parameter: Vector(3)
        )
            @instruction("i")
            @description("d")
        {
            match { $x: A }
            return { 1 }
        }
        """,
    ),
    "a long binding stays whole": (
        'query q() { match { $x: A { property_number_1: "a long text", property_two: "another long text", three: 3 } }'
        " return { 1 } }",
        """
        query q() {
            match {
                $x: A { property_number_1: "a long text", property_two: "another long text", three: 3 }
            }
            return { 1 }
        }
        """,
    ),
}  # fmt: skip

COMMENTS = {
    "only a comment": ("  // alone", "// alone\n"),
    "above, behind and below": (
        """
        // about the file

        /* about
           the query */
        query q() { // opens
          match { // clauses
            $x: A // binds
            // hops
            $x e $y /* there */
            // last
          } // matched
          return { 1 } // returned
          limit 3 // few
          // end
        } // closed
        // below
        """,
        """
        // about the file

        /* about
           the query */
        query q() {  // opens
            match {  // clauses
                $x: A  // binds
                // hops
                $x e $y  /* there */
                // last
            }  // matched
            return { 1 }  // returned
            limit 3  // few
            // end
        }  // closed
        // below
        """,
    ),
    "a comment keeps a block open": (
        """
        query q() {
            match { $x: A /* all */ }
            return { $x.p, // the name
                     $x.q }
            order { $x.p /* first */ }
        }
        """,
        """
        query q() {
            match {
                $x: A  /* all */
            }
            return {
                $x.p  // the name
                $x.q
            }
            order {
                $x.p  /* first */
            }
        }
        """,
    ),
    "a comment inside an item follows its line": (
        """
        query q() {
            match { $x: /* a type */ A  $x e $y }
            return { count( /* rows */ $x ) }
        }
        """,
        """
        query q() {
            match {
                $x: A
                /* a type */
                $x e $y
            }
            return {
                count($x)
                /* rows */
            }
        }
        """,
    ),
    "comments among parameters and annotations": (
        """
        query q(
            // whom
            $a: String, // name
            $b: I32 /* years */
        )
            // what for
            @description("d") // shown
        { match { $x: A } return { 1 } }
        """,
        """
        query q(
            // whom
            $a: String,  // name
            $b: I32  /* years */
        )
            // what for
            @description("d")  // shown
        {
            match { $x: A }
            return { 1 }
        }
        """,
    ),
    "comments among statements": (
        """
        query q() {
            // new
            insert A { p: 1, // one
                       q: 2 } // two
            /* gone */ delete A where /* old */ p = 1
            // done
        }
        """,
        """
        query q() {
            // new
            insert A {
                p: 1  // one
                q: 2
            }  // two
            /* gone */
            delete A where p = 1
            /* old */
            // done
        }
        """,
    ),
    "a comment between queries belongs to the one below": (
        """
        query a() { match { $x: A } return { 1 } }
        // about b
        query b() { match { $x: A } return { 1 } }
        """,
        """
        query a() {
            match { $x: A }
            return { 1 }
        }

        // about b
        query b() {
            match { $x: A }
            return { 1 }
        }
        """,
    ),
}

ALL = {**LAYOUTS, **COMMENTS}


def text_of(block):
    return dedent(block).lstrip("\n")


@pytest.mark.parametrize(("before", "after"), ALL.values(), ids=ALL)
def test_format(before, after):
    assert format_queries(dedent(before)) == text_of(after)


@pytest.mark.parametrize(("before", "after"), ALL.values(), ids=ALL)
def test_formatting_is_idempotent(before, after):
    assert format_queries(text_of(after)) == text_of(after)


@pytest.mark.parametrize(("before", "after"), ALL.values(), ids=ALL)
def test_formatting_keeps_the_tree(before, after):
    assert parse_queries(text_of(after)) == parse_queries(dedent(before))


@pytest.mark.parametrize(("before", "after"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_tree_without_source_prints_and_parses(before, after):
    tree = parse_queries(before)
    printed = print_queries(tree)
    assert parse_queries(printed) == tree
    assert format_queries(printed) == printed


def test_a_tree_prints_canonical_strings_and_numbers():
    tree = parse_queries('query q() { match { $x.p = 2.50 } return { "a\\tb\\"", "two\nlines", 1.0 } }')
    assert print_queries(tree) == text_of(r"""
        query q() {
            match { $x.p = 2.5 }
            return { "a\tb\"", "two\nlines", 1.0 }
        }
        """)


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_line_endings_become_newlines(ending):
    text = f"query q() {{{ending}  // a{ending}  match {{ $x: A }}{ending}  return {{ 1 }}{ending}}}{ending}"
    assert format_queries(text) == "query q() {\n    // a\n    match { $x: A }\n    return { 1 }\n}\n"


def test_a_line_of_exactly_the_maximum_width_is_not_split():
    def query(padding):
        return f'query q() {{\n    match {{ $x: A }}\n    return {{ "{"x" * padding}" }}\n}}\n'

    head = len('    return { "" }')
    assert format_queries(query(100 - head)) == query(100 - head)
    assert format_queries(query(101 - head)).count("\n") == query(1).count("\n") + 2


def test_an_invalid_text_is_not_formatted():
    with pytest.raises(ParseError) as caught:
        format_queries("query q( {", "q.gq")
    assert caught.value.diagnostics[0].source_name == "q.gq"


def test_a_comment_behind_an_object_does_not_split_it():
    text = f'query q() {{ match {{ $a: A }} return {{ {{ x: 1, y: $a }} /* why */ as both, "{"long" * 30}" }} }}'
    formatted = format_queries(text)
    assert "{ x: 1, y: $a } as both" in formatted
    assert format_queries(formatted) == formatted
