"""The hand-written parser and a generated parser accept the same texts.

The oracle is `bench/query.lark`, the grammar of the first version of the language. Our parser accepts every text that
the grammar accepts; a text that only our parser accepts uses a later construct. The corpus is every example query, and
the same queries with one token deleted, repeated, swapped or replaced. Permitted differences are listed here: `LENIENT`
constructs are rejected by the grammar and left to the type checker by our parser; `STRICT` constructs cannot be
expressed in the grammar and are rejected by our parser.
"""

from __future__ import annotations

import importlib.util
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from lark import Lark
from lark.exceptions import LarkError

from omnigraph.errors import ParseError
from omnigraph.lang.tokens import END, lex
from omnigraph.query.functions import VALUE
from omnigraph.query.syntax.ast import (
    ArithmeticExpr,
    Assign,
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
    NegativeExpr,
    NotClause,
    NotExpr,
    OptionalClause,
    QueryDefinition,
    QueryFile,
    Read,
    ReturnItem,
    SortItem,
    UpdateStatement,
    UpsertStatement,
    VarExpr,
    WordExpr,
    Write,
)
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.types import SCALARS

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "tests" / "cases" / "examples").glob("*.gq"))
SEED = 20_240_601
MUTATIONS_EACH = 8
MUTATIONS_LONG = 400

LANGUAGE = """
query every_type($a: Vector(3), $b: [String]?, $c: F32?) @description("x") @instruction("y") {
    match { $a: T {} $a: T { p: 1, q: $c, } } return { $a }
}
query every_hop() {
    match { $a e $b $a <e>{1,2} $_ $a $w:e $b $a $w:<e> $b $a e{2,} $b $a contains $b $a contains{1,2} $b }
    return { $a }
}
query every_filter() {
    match { $a.b starts_with $c.d $a contains "x" $a contains $b.c 5 = $a.x $a < b now() >= $a.w [1, 2] = $a.v }
    return { $a }
}
query every_function() {
    match { search($a.b, "q") = true fuzzy($a.b, $q, 1) match_text($a.b, "q") bm25($a.b, "x") > 0.5 not { $a e $b } }
    return { now() as n, count($a) as c, foo, [1, "x", date("2020-01-01")] $a.b true false, }
    order { rrf(nearest($a.v, $q), bm25($a.t, "x"), 60), foo desc }
    limit 5
}
query every_statement() {
    insert T { a: 1 b: now(), c: [1, [2]], d: datetime("2020-01-01"), }
    update T set { a: true } where not != $x
    delete T where x >= 1.5
}
query words_are_not_reserved($query: String) {
    match { $match: Match { return: $query } $match order $limit $match.not = $limit.true }
    return { $match.insert as match, now, count asc }
    order { count desc, asc }
}
"""

# -- what may differ ---------------------------------------------------------------------------------


def empty_assignment(query: QueryDefinition) -> bool:
    """`insert T {}`: the type checker reports T10."""
    return isinstance(query.body, Write) and any(
        isinstance(statement, InsertStatement | UpdateStatement) and not statement.assigns
        for statement in query.body.statements
    )


def unknown_parameter_type(query: QueryDefinition) -> bool:
    """`$p: Person`, `$p: [Vector]`: any type name parses; the type checker reports unknown ones."""
    return any(param.dim is None and param.type_name.text not in SCALARS for param in query.params)


def free_arms(query: QueryDefinition) -> bool:
    """`rrf($x.p, 3)`: any expression parses as an arm; the type checker reports T21."""
    return any(
        call.function == "rrf"
        and not all(isinstance(arm, CallExpr) and arm.function in ("nearest", "bm25") for arm in call.arguments[:2])
        for call in calls(query)
    )


def beyond_the_seeds(query: QueryDefinition) -> bool:
    """Return whether the query uses a construct that was added after the first version of the language."""
    return any(map(is_addition, nodes(query)))


def is_addition(node: object) -> bool:
    match node:
        case (
            LogicExpr()
            | NotExpr()
            | IsNullExpr()
            | ArithmeticExpr()
            | NegativeExpr()
            | OptionalClause()
            | UpsertStatement()
            | Write(atomic=True)
        ):
            return True
        case HopClause():
            return bool(node.also)
        case CompareExpr(op):
            return op not in SEED_OPERATORS
        case CallExpr(function, arguments):
            return function in (*VALUE, "collect") or node.distinct or (function == "rrf" and len(arguments) > 3)
        case Read():
            return bool(node.distinct or node.having or node.skip is not None or isinstance(node.limit, VarExpr))
        case LiteralExpr("int" | "decimal", value):
            return str(value).startswith("-") or node.kind == "decimal"  # with an exponent, perhaps
        case ListExpr(items):
            return not all(isinstance(item, LiteralExpr | ListExpr) for item in items)
        case FilterClause(expr):
            return not isinstance(expr, CompareExpr | CallExpr)
        case ReturnItem(expr) | SortItem(expr):
            return isinstance(expr, CompareExpr)
        case CallExpr(_, arguments):
            return any(isinstance(argument, CompareExpr) for argument in arguments)
        case Assign(_, value):
            return not is_atom(value)
        case UpdateStatement(_, _, where) | DeleteStatement(_, where):
            return not (isinstance(where, CompareExpr) and isinstance(where.left, WordExpr) and is_atom(where.right))
    return False


def is_atom(expr: object) -> bool:
    return isinstance(expr, LiteralExpr | ListExpr | VarExpr) or (isinstance(expr, CallExpr) and expr.function == "now")


def nodes(tree: object) -> Iterator[object]:
    """Yield every node of a tree."""
    yield tree
    if is_dataclass(tree):
        for field in fields(tree):
            yield from nodes(getattr(tree, field.name))
    elif isinstance(tree, tuple):
        for part in tree:
            yield from nodes(part)


SEED_OPERATORS = {"=", "!=", "<", "<=", ">", ">=", "contains", "starts_with"}
LENIENT: tuple[Callable[[QueryDefinition], bool], ...] = (
    empty_assignment,
    unknown_parameter_type,
    free_arms,
    beyond_the_seeds,
)

STRICT = {
    "a date literal must be a date": r"'.*' (is not a date|is not a datetime|has no such)",
    "an annotation is written once": r"'@(description|instruction)' is written twice",
    "nearest takes no direction": r"'nearest' is always best first",
    "integers have 64 bits": r"the number does not fit 64 bits",
    "decimals are finite": r"the number is too large",
    "nesting is limited": r"nested more than 64 levels deep",
}


def calls(query: QueryDefinition) -> Iterator[CallExpr]:
    pending: list[object] = [query.body]
    while pending:
        match pending.pop():
            case Read(clauses, items, order):
                pending += [*clauses, *items, *order]
            case NotClause(clauses):
                pending += clauses
            case FilterClause(expr) | ReturnItem(expr) | SortItem(expr):
                pending.append(expr)
            case CompareExpr(_, left, right):
                pending += [left, right]
            case CallExpr() as call:
                yield call
                pending += call.arguments


# -- the corpus --------------------------------------------------------------------------------------


def split(text: str) -> list[str]:
    return re.split(r"(?m)^(?=query )", text)[1:]


EXAMPLE_QUERIES = [query for path in EXAMPLES for query in split(path.read_text(encoding="utf-8"))]
QUERIES = EXAMPLE_QUERIES + split(LANGUAGE)


def words_of(text: str) -> list[str]:
    return [token.text for token in lex(text).tokens if token.kind != END]


VOCABULARY = sorted({word for query in QUERIES for word in words_of(query)} | {"and", "or", "null", "in", "-"})


def mutated(text: str, rng: random.Random) -> str:
    words = words_of(text)
    at = rng.randrange(len(words))
    match rng.choice(("delete", "repeat", "swap", "swap far", "replace", "insert")):
        case "delete":
            del words[at]
        case "repeat":
            words.insert(at, words[at])
        case "swap":
            other = min(at + 1, len(words) - 1)
            words[at], words[other] = words[other], words[at]
        case "swap far":
            other = rng.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        case "replace":
            words[at] = rng.choice(VOCABULARY)
        case _:
            words.insert(at, rng.choice(VOCABULARY))
    return " ".join(words)


# -- the comparison ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def oracle() -> Lark:
    spec = importlib.util.spec_from_file_location("bench_grammar", ROOT / "bench" / "grammar.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.lark_parser()


def ours(text: str) -> QueryFile | str:
    """Return the tree, or the error."""
    try:
        return parse_queries(text)
    except ParseError as error:
        return error.diagnostics[0].message


def accepts(oracle: Lark, text: str) -> bool:
    try:
        oracle.parse(text)
    except LarkError:
        return False
    return True


def verdict(oracle: Lark, text: str) -> str:
    """Return `both`, `neither`, or the name of the listed difference; fail if the difference is not listed."""
    found = ours(text)
    expected = accepts(oracle, text)
    if isinstance(found, str):
        if not expected:
            return "neither"
        for name, pattern in STRICT.items():
            if re.match(pattern, found):
                return name
        pytest.fail(f"the grammar accepts what ours refuses ({found}):\n{text}")
    if expected:
        return "both"
    for allowed in LENIENT:
        if any(allowed(query) for query in found.queries):
            return allowed.__name__
    pytest.fail(f"ours accepts what the grammar refuses:\n{text}")


def test_corpus_is_complete():
    assert len(EXAMPLE_QUERIES) == 75


@pytest.mark.parametrize("text", QUERIES, ids=lambda text: text.split("(")[0].removeprefix("query "))
def test_whole_queries(oracle: Lark, text: str):
    assert verdict(oracle, text) == "both"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_whole_files(oracle: Lark, path: Path):
    assert verdict(oracle, path.read_text(encoding="utf-8")) == "both"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "both"),
        ("query q() { insert T {} }", "empty_assignment"),
        ("query q() { update T set {} where a = 1 }", "empty_assignment"),
        ("query q($p: Person) { delete T where a = $p }", "unknown_parameter_type"),
        ("query q($p: [Vector]) { delete T where a = $p }", "unknown_parameter_type"),
        ("query q($p: Vector) { delete T where a = $p }", "neither"),
        ("query q() { match { $a: T } return { $a } order { rrf($a.b, $a.c) } limit 1 }", "free_arms"),
        ('query q() { insert T { a: date("soon") } }', "a date literal must be a date"),
        ('query q() @description("a") @description("b") { delete T where a = 1 }', "an annotation is written once"),
        ("query q() { match { $a: T } return { $a } order { nearest($a.v, $q) asc } }", "nearest takes no direction"),
        ("query q() { match { and = 1 } return { $a } }", "both"),
        ("query q() { match { $a: T and $a.b = 1 } return { $a } }", "neither"),
        ("query q() { match { $a: T or $a.b = 1 } return { $a } }", "neither"),
        ("query q() { delete T where a = 99999999999999999999 }", "integers have 64 bits"),
        (f"query q() {{ delete T where a = {'9' * 400}.0 }}", "decimals are finite"),
        (f"query q() {{ match {{ {'not { ' * 70}$a e $b{' }' * 70} }} return {{ $a }} }}", "nesting is limited"),
        ("queryq() { delete T where a = 1 }", "neither"),
        ("query q() { match { $a: T } return { $a } limit5 }", "neither"),
        ("query q() { match { $a not $b } return { $a } }", "neither"),
        ("query q() { match { $a nothing $b } return { $a } }", "both"),
        ("query q() { match { $a e{2} $b } return { $a } }", "neither"),
        ("query q() { match { $a: T } return { $a } limit 1 order { $a.b } }", "neither"),
        ("query q() { match { sum($a.b, $a.c) > 1 } return { $a } }", "neither"),
        ("query q() { match { now($a) > 1 } return { $a } }", "neither"),
        ("query q() { match { $a.b = -1 } return { $a } }", "beyond_the_seeds"),
        ("query q() { match { $a.b = 1e5 } return { $a } }", "beyond_the_seeds"),
        ("query q() { match { $a.b = 1 or not $a.c in $d } return { $a } }", "beyond_the_seeds"),
        ("query q() { match { $a.b < 1 < 2 } return { $a } }", "neither"),
        ("query q() { update T set { a: 1 in: 2 is: 3 } where in = 1 }", "both"),
        ("query q() { match { $a.b = 1. } return { $a } }", "neither"),
        ('query q() { match { $a.b = "\\q" } return { $a } }', "neither"),
        ("query q() { match {} return { $a } }", "neither"),
        ("query q() { match { $a: T } return {} }", "neither"),
        ("query q() { match { $a: T } return { $a,, $a.b } }", "neither"),
        ("query q() { match { $a: T { a: 1 b: 2 } } return { $a } }", "neither"),
        ("query q() {}", "neither"),
        ("query q() { match { $a: T } return { $a } } }", "neither"),
    ],
)
def test_edges_of_the_language(oracle: Lark, text: str, expected: str):
    assert verdict(oracle, text) == expected


@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_mutated_queries(oracle: Lark, number: int):
    rng = random.Random(SEED + number)
    for _ in range(MUTATIONS_EACH):
        verdict(oracle, mutated(QUERIES[number], rng))


@pytest.mark.long
def test_mutated_queries_at_length(oracle: Lark):
    rng = random.Random(SEED)
    seen: Counter[str] = Counter()
    for text in QUERIES:
        for _ in range(MUTATIONS_LONG):
            changed = mutated(text, rng)
            seen[verdict(oracle, changed if rng.random() < 0.7 else mutated(changed, rng))] += 1
    assert seen["both"] > 1_000
    assert seen["neither"] > 1_000
