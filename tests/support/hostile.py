"""Texts built to be slow or deep, each aimed at one weakness: what is quadratic, recursive or unbounded shows.

Every text is about `size` characters long. In a form, `#` stands for a number and `@@` for a long name; names
of equal number are equal, and all of them are near to one another.
"""

from __future__ import annotations


def _each(form: str, size: int, between: str = "\n") -> str:
    """Repeat the form with increasing numbers up to `size` characters."""
    long = form.replace("@@", "abcdefghijklmnop#")
    count = max(1, size // (len(long) + len(between) + 3 * long.count("#")))
    return between.join(long.replace("#", f"{number:04}") for number in range(count))


def _node(body: str) -> str:
    return "node A {\n" + body + "\n}"


def hostile_schemas(size: int) -> dict[str, str]:
    """Schema texts by name."""
    half = size // 2
    return {
        "unknown columns": _node(_each("@@: I32", half) + "\n" + _each("@index(@@x)", half)),
        "unknown columns, alike at both ends": _node(
            _each("a#abcdefghij#b: I32", half) + _each("@index(b#abcdefghij#a)", half)
        ),
        "unknown interfaces": "node A implements " + _each("I@@", half, ", ") + " {}" + _each("interface J@@ {}", half),
        "unknown endpoints": _each("node A@@ {}", half) + _each(" edge E@@: B@@ -> C@@", half),
        "an interface of many indexes": "interface I {" + _each("p#: I32 @index", size) + "} node A implements I {}",
        "an interface of many nodes": "interface I { a: I32 @index b: I32 }" + _each("node N# implements I {}", size),
        "interfaces that agree": _each("interface I# { a: String @index }", half)
        + " node A implements "
        + _each("I#", half // 6, ", ")
        + " {}",
        "interfaces that disagree": _each("interface I# { a: Vector(1#) }", half)
        + " node A implements "
        + _each("I#", half // 6, ", ")
        + " {}",
        "properties": _node(_each("p#: String @index @unique", size)),
        "keys": _node(_each("p#: String @key", size)),
        "declarations": _each("node N# { a: I32 }", size),
        "one declaration again and again": _each("node N { a: I32 }", size),
        "comments in one line": _node("a: I32 " + "/**/" * (size // 4)),
        "comments on their lines": "//\n" * (size // 4) + "node A {}" + "\n//" * (size // 8),
        "a long enum that no node fits": "interface I { e: enum("
        + _each("v#", half, ",")
        + ") }"
        + _each("node N# implements I { e: Bool }", half),
        "enum values twice": _node(_each("p#: enum(b, b)", size)),
        "an enum never closed": "node A { a: enum(" + _each("v#", size, ","),
        "patterns": _node("a: String\n" + _each('@check(a, "((a{10}){10}){9}")', half)),
        "a deep pattern": _node('a: String @check(a, "' + "(" * half + ")" * half + '")'),
        "a wide pattern": _node('a: String @check(a, "' + "(a|b)*" * (size // 6) + '")'),
        "a repeating pattern": _node('a: String @check(a, "' + "a{1000}" * (size // 7) + '")'),
        "stray characters": "; " * half,
        "letters no name has": "é " * half,
        "words": "x y " * (size // 4),
        "words in a body": _node("x y " * (size // 4)),
        "keywords": "node " * (size // 5),
        "braces": "{" * size,
        "brackets": "node A { a: " + "[" * size,
        "rules": _node("@key(a) " * (size // 8)),
        "annotations": "node A " + "@a(1) " * (size // 6) + "{}",
        "arguments": "node A @a(1, " + _each("b#=1", size, ", ") + ") {}",
        "long names": "node A" + "a" * size + " { b" + "c" * size + ": I32 @index(" + "d" * size + ") }",
        "a long string": 'node A @description("' + "x" * size + '") {}',
        "escapes": 'node A @description("' + "\\n" * half + '") {}',
        "a bad escape behind many good ones": 'node A @description("' + "\\n" * half + '\\q") {}',
        "long numbers": _node(f"a: Vector({'9' * size}) b: F64 @range(b, {'1' * size}.5..{'2' * size})"),
        "a long fraction": _node(f"b: F64 @range(b, 0.{'0' * size}1..1)"),
        "fractions": _node("b: F64\n" + f"@range(b, 0.{'1' * 800}..1)\n" * (size // 800)),
        "one long line": _node("a: I32 " * (size // 7)),
        "empty lines": "\n" * size + "node",
        "a string never closed": 'node A { a: String @check(a, "' + "x\n" * half,
        "a comment never closed": "node A { /*" + "*" * size,
        "comment openers": "/*" * half + "*/ node",
    }


def _read(match: str, results: str = "return { $a }") -> str:
    return "query a() { match { " + match + " } " + results + " }"


def _write(statements: str) -> str:
    return "query a() { " + statements + " }"


def hostile_queries(size: int) -> dict[str, str]:
    """Query texts by name, for the schema of the library example."""
    half = size // 2
    chain = size // 24
    return {
        "unknown variables": _read(_each("$@@: Book", half) + " " + _each("$@@x.pages = 1", half)),
        "unknown properties": _read("$a: Book " + _each("$a.@@ = 1", size)),
        "unknown types": _read(_each("$a#: Bock", size)),
        "unknown edges": _read("$a: Member " + _each("$a mentorz $b#", size)),
        "unknown parameters": "query a("
        + _each("$@@: String", half, ", ")
        + ") { match { $a: Book { "
        + _each("isbn: $@@x", half, ", ")
        + " } } return { $a } }",
        "unknown aliases": _read(
            "$a: Book", "return { " + _each("$a.isbn as @@", half) + " " + _each("@@x", half) + " }"
        ),
        "unknown sort keys": _read(
            "$a: Book", "return { " + _each("$a.isbn as @@", half) + " } order { " + _each("@@x", half, ", ") + " }"
        ),
        "unknown parameter types": "query a("
        + _each("$p#: Strin", size, ", ")
        + ") { match { $a: Book } return { $a } }",
        "a chain of hops": _read("$a: Member " + " ".join(f"$x{n} mentors $x{n + 1}" for n in range(chain))),
        "a chain of hops, last first": _read(
            " ".join(f"$x{n + 1} mentors $x{n}" for n in range(chain)) + " $x0: Member"
        ),
        "a star of hops": _read("$a: Member " + _each("$a mentors $x#", size)),
        "hops back to one place": _read("$a: Member " + _each("$x# mentors $a", size)),
        "hops with edge variables": _read("$a: Member " + _each("$a $e#:borrowed $b", size)),
        "negations": _read(_each("$a#: Member", half) + " " + _each("not { $a# mentors $_ }", half)),
        "negations in negations": _read("$a: Member " + "not { $a mentors $b " * 60 + "}" * 60),
        "too deep: negations": _read("not {" * (size // 5)),
        "too deep: lists": _read("$a.pages = " + "[" * size),
        "too deep: calls": _read("$a.pages = " + "count(" * (size // 6)),
        "too deep: closed calls": _read(
            "$a: Book", "return { " + "rrf(bm25(" * (size // 11) + "))" * (size // 11) + " }"
        ),
        "a list": _read("$a: Book { pages: [" + "1, " * (size // 3) + "1] }"),
        "a mixed list": _read("$a: Book $a.pages = [" + "1, " * (size // 3) + "true]"),
        "a vector": _read(
            "$a: Book", "return { $a } order { nearest($a.vec, [" + "1, " * (size // 3) + "1]) } limit 1"
        ),
        "conditions": _read("$a: Book " + "$a.pages > 1 " * (size // 13)),
        "wrong conditions": _read("$a: Book " + _each('$a.pages = "#"', size)),
        "a wide pattern": _read("$a: Book { " + "pages: 1, " * (size // 10) + " }"),
        "queries": _each("query q#() { match { $a: Book } return { $a.isbn } }", size),
        "wrong queries": _each("query q#() { match { $a: Bok } return { $a.isbn } }", size),
        "broken queries": _each("query q#() { match { $a Book } }", size),
        "columns": _read("$a: Book", "return { " + _each("$a.isbn as c#", size) + " }"),
        "aliases of aliases": _read("$a: Book", "return { $a.isbn as c " + "c as c " * (size // 7) + " }"),
        "aggregates": _read("$a: Book", "return { " + _each("count($a) as c#", size) + " }"),
        "not group keys": _read("$a: Book", "return { count($a) " + "now() " * (size // 6) + " }"),
        "sort keys": _read("$a: Book", "return { $a } order { " + "$a.isbn, " * (size // 9) + "$a.isbn }"),
        "rankings": _read("$a: Book", "return { " + 'bm25($a.title, "x") ' * (size // 20) + " }"),
        "fusions": _read(
            "$a: Book", "return { " + 'rrf(bm25($a.title, "x"), bm25($a.title, "y")) ' * (size // 46) + " }"
        ),
        "inserts": _write('insert Author { name: "x" } ' * (size // 28)),
        "wrong inserts": _write('insert Auther { name: "x" } ' * (size // 28)),
        "assignments": _write("insert Author { " + _each('nam#: "x"', size) + " }"),
        "inserts and deletes": _write('insert Author { name: "x" } delete Author where name = "x" ' * (size // 59)),
        "comments before negations": _read(
            "$a: Member " + "/**/" * (size // 5) + "not { $a mentors $_ " * 60 + "}" * 60
        ),
        "comments in a header": "query a(" + "/**/" * (size // 4) + "$a: I32) { match { $a: Book } return { $a } }",
        "comments in a list": _read("$a: Book", "return { " + "$a.isbn /**/ " * (size // 13) + " }"),
        "stray characters": "; " * half,
        "letters no name has": _read("é " * half),
        "words": "x y " * (size // 4),
        "long names": _read("$a: Book", "return { $a." + "c" * size + ", $" + "d" * size + ", " + "e" * size + " }"),
        "a long string": _read('$a: Book { isbn: "' + "x" * size + '" }'),
        "a long string for a number": _read('$a: Book { pages: "' + "x" * size + '" }'),
        "a long string for an enum": _read('$a: Book { genre: "' + "x" * size + '" }'),
        "a long integer": _read("$a: Book { pages: " + "1" * size + " }"),
        "leading zeros": _read("$a: Book { pages: " + "0" * size + "1 }", "return { $a } limit " + "0" * size),
        "a long decimal": _read("$a: Book { price: " + "1" * size + ".5 }"),
        "a long fraction": _read("$a: Book { price: 0." + "1" * size + " }"),
        "a long datetime": _read('$a: Member { joined: datetime("2020-01-01T00:00:00.' + "1" * size + '") }'),
        "a long wrong date": _read('$a: Book { published: date("' + "1" * size + '") }'),
        "a string never closed": _read('$a: Book { isbn: "' + "x\n" * half),
    }
