"""Random trees of both languages, and random ways to write their text.

Every tree here is one the grammar can produce, so printing it must give a text that parses back to the
very same tree. Names are often words the languages themselves use, because no word is reserved.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from omnigraph.lang.spans import Name
from omnigraph.lang.tokens import END, STRING, Token, lex
from omnigraph.query.functions import FUNCTIONS, TEXT
from omnigraph.query.syntax import ast as q
from omnigraph.query.syntax.parse_expressions import OPERATOR_WORDS
from omnigraph.schema import ast as s
from omnigraph.types import SCALARS, VECTOR_DIM_MAX, PropertyType

U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1

WORDS = (
    "a", "b", "name", "_x", "camelCase", "x1", "node", "edge", "interface", "implements", "enum", "key", "unique",
    "index", "range", "check", "card", "embed", "description", "instruction", "query", "match", "return", "order",
    "limit", "not", "as", "asc", "desc", "contains", "starts_with", "insert", "update", "delete", "set", "where",
    "from", "to", "now", "count", "search", "nearest", "date", "null", "trueish", "falsey", "id", "in", "is", "and",
    "or", "matches", "ends_with", "e5", "lower",
)  # fmt: skip
TYPE_WORDS = ("A", "B", "Person", "String", "Vector", "Blob", "Z9_", "Node", "I32")

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ('"', "\\", "\n", "\r\n", "\t", "// no comment", "/* nor this */", "}", "ends in \\", "é🙂", "x" * 120)
)


def lowers(*, but: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """Names that begin with a lower-case letter."""
    free = st.from_regex(r"[a-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
    return (st.sampled_from(WORDS) | free).filter(lambda word: word not in but)


def _named(words: st.SearchStrategy[str]) -> st.SearchStrategy[Name]:
    return words.map(Name)


def _tuples(of: st.SearchStrategy, least: int = 0, most: int = 3) -> st.SearchStrategy[tuple]:
    return st.lists(of, min_size=least, max_size=most).map(tuple)


LOWER = _named(lowers())
UPPER = _named(st.sampled_from(TYPE_WORDS) | st.from_regex(r"[A-Z][A-Za-z0-9_]{0,5}", fullmatch=True))
DIGITS = st.from_regex(r"[0-9]{1,4}", fullmatch=True)
DECIMALS = st.from_regex(r"[0-9]{1,4}\.[0-9]{1,4}", fullmatch=True)


# -- schema trees ------------------------------------------------------------------------------------

_STRING_VALUES = TEXTS.map(lambda text: s.AnnotationValue("string", text))
_PLAIN_VALUES = (
    _STRING_VALUES
    | (DIGITS | DECIMALS).map(lambda text: s.AnnotationValue("number", text))
    | st.sampled_from(("true", "false")).map(lambda text: s.AnnotationValue("bool", text))
)
_NAME_VALUES = lowers(but=("true", "false")).map(lambda text: s.AnnotationValue("name", text))
_RULE_WORDS = ("key", "unique", "index", "range", "check")
_TYPE_WORDS = (*_RULE_WORDS, "embed", "valid")
"""Annotations that a declaration cannot have in the general form."""


@st.composite
def annotations(draw: st.DrawFn, *, but: tuple[str, ...] = (), bare: tuple[str, ...] = ()) -> s.Annotation:
    """An annotation; one whose name is in `bare` has no parentheses."""
    name = draw(_named(lowers(but=but)))
    if name.text in bare or draw(st.booleans()):
        return s.Annotation(name)
    arguments = st.lists(st.tuples(LOWER, _PLAIN_VALUES), max_size=2, unique_by=lambda argument: argument[0])
    return s.Annotation(name, draw(_PLAIN_VALUES | _NAME_VALUES), tuple(draw(arguments)))


@st.composite
def type_exprs(draw: st.DrawFn) -> s.TypeExpr:
    nullable = draw(st.booleans())
    form = draw(st.sampled_from(("scalar", "list", "enum", "vector")))
    if form == "enum":
        values = draw(
            st.lists(st.from_regex(r"[A-Za-z0-9_-]{1,5}", fullmatch=True), min_size=1, max_size=4, unique=True)
        )
        return s.TypeExpr(PropertyType("String", nullable, enum_values=tuple(sorted(values))), tuple(values))
    if form == "vector":
        return s.TypeExpr(PropertyType("Vector", nullable, dim=draw(st.integers(1, VECTOR_DIM_MAX))))
    is_list = form == "list"
    scalar = draw(st.sampled_from([scalar for scalar in SCALARS if not (is_list and scalar == "Blob")]))
    return s.TypeExpr(PropertyType(scalar, nullable, is_list))


PROPERTIES = st.builds(s.PropertyDecl, LOWER, type_exprs(), _tuples(annotations(bare=(*_RULE_WORDS, "valid"))))
_SIGNED = st.builds("{}{}".format, st.sampled_from(("", "-")), DIGITS | DECIMALS).map(Name)
RULES = (
    st.builds(s.ColumnRule, st.sampled_from(("key", "unique", "index")), _tuples(LOWER, 1))
    | st.builds(s.RangeRule, LOWER, _SIGNED, st.none() | _SIGNED)
    | st.builds(s.RangeRule, LOWER, st.none(), _SIGNED)
    | st.builds(s.CheckRule, LOWER, _STRING_VALUES)
)


@st.composite
def cardinalities(draw: st.DrawFn) -> s.CardinalityExpr:
    low = draw(st.integers(0, 3) | st.integers(0, U32_MAX))
    return s.CardinalityExpr(low, draw(st.none() | st.integers(low, U32_MAX)))


VALIDS = st.none() | st.builds(s.ValidExpr, LOWER, LOWER)


@st.composite
def edges(draw: st.DrawFn) -> s.EdgeDecl:
    card = draw(st.none() | cardinalities())
    notes = draw(_tuples(annotations(but=_TYPE_WORDS)))
    if card is None and notes and notes[0].name.text == "card":
        notes = notes[1:] if len(notes) > 1 and notes[1].name.text != "card" else ()
    members, valid = draw(_tuples(PROPERTIES | RULES)), draw(VALIDS)
    return s.EdgeDecl(draw(UPPER), draw(UPPER), draw(UPPER), card, notes, members, valid=valid)


INTERFACES = st.builds(s.InterfaceDecl, UPPER, _tuples(PROPERTIES))
NODES = st.builds(
    s.NodeDecl,
    UPPER,
    _tuples(annotations(but=_TYPE_WORDS)),
    _tuples(UPPER),
    _tuples(PROPERTIES | RULES),
    valid=VALIDS,
)
MERGES = st.builds(
    s.MergeDecl,
    st.just(Name("merge")),
    _tuples(st.builds(s.MergeSetting, st.sampled_from(("conflict", "combine")).map(Name)), 0, 1),
)
SCHEMA_FILES = _tuples(INTERFACES | NODES | edges() | MERGES, 0, 4).map(s.SchemaFile)


# -- query trees -------------------------------------------------------------------------------------

VARIABLES = st.sampled_from(("a", "b", "_", "p", "not", "x1")) | lowers()
VARIABLE_NAMES = _named(VARIABLES)
_DATES = st.dates().map(lambda day: day.isoformat())
_DATETIMES = st.datetimes().map(lambda time: time.isoformat()) | _DATES
LITERALS = (
    TEXTS.map(lambda text: q.LiteralExpr("string", text))
    | st.integers(-(2**63), U64_MAX).map(lambda number: q.LiteralExpr("int", number))
    | st.floats(allow_infinity=False, allow_nan=False).map(lambda number: q.LiteralExpr("decimal", number))
    | st.booleans().map(lambda value: q.LiteralExpr("bool", value))
    | _DATES.map(lambda text: q.LiteralExpr("date", text))
    | _DATETIMES.map(lambda text: q.LiteralExpr("datetime", text))
    | st.uuids().map(lambda uuid: q.LiteralExpr("uuid", str(uuid)))
)
LISTS = st.recursive(
    _tuples(LITERALS).map(q.ListExpr), lambda inner: _tuples(LITERALS | inner).map(q.ListExpr), max_leaves=4
)
VARS = VARIABLES.map(q.VarExpr)
NOW = st.just(q.CallExpr("now", ()))
ATOMS = LITERALS | LISTS | VARS | NOW
FIELDS = st.builds(q.PropertyExpr, VARIABLE_NAMES, LOWER)
BARE_WORDS = lowers(but=("true", "false", "where", "null", "asc", "desc", "as", *OPERATOR_WORDS)).map(q.WordExpr)
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


@st.composite
def calls(draw: st.DrawFn, inner: st.SearchStrategy[q.Expr], names: tuple[str, ...] = tuple(FUNCTIONS)) -> q.CallExpr:
    function = FUNCTIONS[draw(st.sampled_from(names))]
    count = draw(st.integers(function.least, function.most))
    arguments = [draw(FIELDS if function.name == "nearest" and not n else inner) for n in range(count)]
    aggregates = function.family == "aggregate"
    distinct = aggregates and draw(st.booleans())
    where = draw(inner) if aggregates and draw(st.booleans()) else None
    return q.CallExpr(function.name, tuple(arguments), distinct=distinct, where=where)


def operators(inner: st.SearchStrategy[q.Expr]) -> st.SearchStrategy[q.Expr]:
    """Composed expressions."""
    compare = st.builds(q.CompareExpr, st.sampled_from(EVERY_COMPARISON), inner, inner)
    return (
        calls(inner)
        | compare
        | st.builds(q.LogicExpr, st.sampled_from(("and", "or")), _tuples(inner, 2))
        | st.builds(q.NotExpr, inner)
        | st.builds(q.IsNullExpr, inner, st.booleans())
        | st.builds(q.ArithmeticExpr, st.sampled_from(("+", "-", "*", "/", "%")), inner, inner)
        | st.builds(q.NegativeExpr, inner)
        | _tuples(inner).map(q.ListExpr)
        | _tuples(st.builds(q.Field, LOWER, inner)).map(q.ObjectExpr)
    )


def tame(expr: q.Expr) -> q.Expr:
    """The same tree without text that resembles an arrow of another language."""
    match expr:
        case q.CompareExpr("<", q.VarExpr(), right) if begins_with_sign(right):
            return q.CompareExpr(">", expr.left, right)  # `$a <-e` resembles an arrow
        case q.ArithmeticExpr("-", left, q.ListExpr() | q.NegativeExpr() as right):
            return q.ArithmeticExpr("+", left, right)  # `a -[` and `a --` resemble arrows
    return expr


def begins_with_sign(expr: q.Expr) -> bool:
    match expr:
        case q.NegativeExpr():
            return True
        case q.ArithmeticExpr(_, left) | q.CompareExpr(_, left):
            return begins_with_sign(left)
    return False


def first_of(expr: q.Expr) -> q.Expr:
    """The first token of an expression."""
    match expr:
        case q.CompareExpr(_, left) | q.ArithmeticExpr(_, left) | q.IsNullExpr(left):
            return first_of(left)
        case q.LogicExpr(_, parts):
            return first_of(parts[0])
    return expr


EVERY_COMPARISON = (
    *COMPARISONS, "contains", "starts_with", "ends_with", "icontains", "istarts_with", "iends_with", "matches", "in",
    "not in",
)  # fmt: skip
OPERANDS = st.recursive(
    FIELDS | VARS | LITERALS | LISTS | BARE_WORDS, lambda inner: operators(inner).map(tame), max_leaves=6
)


@st.composite
def filters(draw: st.DrawFn) -> q.FilterClause:
    """A condition that does not parse as another clause or as part of the preceding one."""
    expr = draw(OPERANDS)
    if not isinstance(expr, q.CompareExpr | q.LogicExpr | q.IsNullExpr):
        expr = q.CompareExpr(draw(st.sampled_from(EVERY_COMPARISON)), draw(FIELDS), expr)
    first = first_of(expr)
    if not isinstance(first, q.PropertyExpr | q.CallExpr | q.ListExpr) or _is_signed(first):
        expr = q.LogicExpr("and", (q.IsNullExpr(draw(FIELDS)), expr))
    return q.FilterClause(expr)


def _is_signed(expr: q.Expr) -> bool:
    return isinstance(expr, q.LiteralExpr) and str(expr.value).startswith("-")


@st.composite
def bounds(draw: st.DrawFn) -> q.Bounds:
    return q.Bounds(draw(st.integers(0, 9)), draw(st.none() | st.integers(0, 9) | st.integers(0, U64_MAX)))


BINDINGS = st.builds(
    q.BindingClause,
    VARIABLE_NAMES,
    UPPER,
    _tuples(st.builds(q.PropertyMatch, LOWER, ATOMS)),
    also=_tuples(UPPER, 0, 2),
)
HOPS = st.builds(
    q.HopClause,
    VARIABLE_NAMES,
    _named(lowers(but=("not",))),
    VARIABLE_NAMES,
    st.none() | VARIABLE_NAMES,
    st.booleans(),
    st.none() | bounds(),
    also=_tuples(_named(lowers(but=("not",))), 0, 2),
)
ANY_HOPS = st.builds(
    q.HopClause,
    VARIABLE_NAMES,
    st.just(Name(q.ANY_EDGE)),
    VARIABLE_NAMES,
    st.none() | VARIABLE_NAMES,
    st.booleans(),
    st.none() | bounds(),
)
PATH_KINDS = st.sampled_from(("path", "shortest", "all shortest"))
PATHS = st.builds(q.PathClause, VARIABLE_NAMES, PATH_KINDS, _tuples(HOPS | ANY_HOPS, 1), st.none() | LOWER)
STEPS = st.builds(q.StepClause, VARIABLE_NAMES, VARIABLE_NAMES, VARIABLE_NAMES, st.booleans())
CLAUSES = st.recursive(
    BINDINGS | HOPS | ANY_HOPS | PATHS | STEPS | filters() | calls(OPERANDS, tuple(sorted(TEXT))).map(q.FilterClause),
    lambda inner: _tuples(inner, 1).map(q.NotClause) | _tuples(inner, 1).map(q.OptionalClause),
    max_leaves=4,
)


@st.composite
def sort_items(draw: st.DrawFn) -> q.SortItem:
    expr = draw(OPERANDS)
    always_best_first = isinstance(expr, q.CallExpr) and expr.function == "nearest"
    return q.SortItem(expr, None if always_best_first else draw(st.sampled_from((None, "asc", "desc"))))


ITEMS = st.builds(q.ReturnItem, OPERANDS, st.none() | LOWER)


def parts(clauses: st.SearchStrategy[tuple], items: st.SearchStrategy[q.ReturnItem]) -> st.SearchStrategy[q.Read]:
    """A stage, or a read without stages."""
    return st.builds(
        q.Read,
        clauses,
        _tuples(items, 1, 5),
        _tuples(sort_items()),
        st.none() | st.integers(0, U64_MAX) | VARS,
        distinct=st.booleans(),
        having=_tuples(filters()),
        skip=st.none() | st.integers(0, 9) | VARS,
    )


CARRIED = st.builds(q.ReturnItem, OPERANDS, st.none() | VARIABLE_NAMES)
STAGED = st.builds(
    lambda first, others, last: replace(last, stages=(first, *others)),
    parts(_tuples(CLAUSES, 1), CARRIED),
    _tuples(parts(_tuples(CLAUSES), CARRIED), 0, 2),
    parts(_tuples(CLAUSES), ITEMS),
)
INSTANTS = VARS | ATOMS
READS = st.builds(
    lambda read, valid: replace(read, valid=valid),
    parts(_tuples(CLAUSES, 1), ITEMS) | STAGED,
    st.none() | st.builds(q.ValidClause, INSTANTS, st.none() | INSTANTS),
)
ASSIGNS = _tuples(st.builds(q.Assign, LOWER, ATOMS | OPERANDS))
WHERES = st.builds(q.CompareExpr, st.sampled_from(COMPARISONS), lowers().map(q.WordExpr), ATOMS) | filters().map(
    lambda condition: q.NotExpr(condition.expr)
)
ROW_NAMES = st.none() | VARIABLE_NAMES
IDS = VARS | TEXTS.map(lambda text: q.LiteralExpr("string", text))
EDGE_RULES = _tuples(st.builds(q.EdgeRule, UPPER, LOWER))
WRITES = _tuples(
    st.builds(q.InsertStatement, UPPER, ASSIGNS, name=ROW_NAMES)
    | st.builds(q.UpdateStatement, UPPER, ASSIGNS, WHERES, name=ROW_NAMES, valid_from=st.none() | INSTANTS)
    | st.builds(q.EndStatement, UPPER, WHERES, INSTANTS, name=ROW_NAMES)
    | st.builds(q.DeleteStatement, UPPER, WHERES, name=ROW_NAMES)
    | st.builds(q.UnifyStatement, UPPER, IDS, IDS, st.none() | ASSIGNS, st.none() | EDGE_RULES, name=ROW_NAMES)
    | st.builds(q.UpsertStatement, UPPER, ASSIGNS, st.none() | ASSIGNS, st.none() | ASSIGNS, name=ROW_NAMES),
    1,
)
WRITES = st.builds(q.Write, WRITES, st.booleans(), _tuples(ITEMS))


@st.composite
def params(draw: st.DrawFn) -> q.Param:
    type_name, is_list = draw(UPPER), draw(st.booleans())
    dim = draw(st.integers(0, U64_MAX)) if type_name.text == "Vector" and not is_list else None
    return q.Param(draw(VARIABLE_NAMES), type_name, is_list, dim, draw(st.booleans()))


METAS = st.lists(
    st.builds(q.Meta, st.sampled_from(("description", "instruction")), TEXTS),
    max_size=2,
    unique_by=lambda meta: meta.name,
).map(tuple)
QUERIES = st.builds(q.QueryDefinition, LOWER, _tuples(params()), METAS, READS | WRITES)
QUERY_FILES = _tuples(QUERIES, 0, 3).map(q.QueryFile)


# -- other ways to write a text ----------------------------------------------------------------------

_SPACES = (" ", "\n", "\t", "\r\n", "\n\n", "\n\n\n\n", "    ")
_COMMENTS = (
    "//", "// note", "//\ttabs and spaces \t ", "// \"", "//*/", "///*", "// é🙂\r", "//}{",
    "/**/", "/* note */", "/***/", "/* two\n   lines */", "/*\r\n*/", "/* \" */", "/*//*/", "/* é🙂 */", "/*}{*/",
)  # fmt: skip


def rewrite(text: str, random: Random) -> tuple[str, list[str]]:
    """The tokens of `text` with other spaces and with comments between them, and those comments."""
    pieces: list[str] = []
    comments: list[str] = []
    often = random.choice((0.05, 0.3, 0.6))
    before: Token | None = None
    for token in lex(text).tokens:
        if before is None or not _glued(before, token):
            gap: list[str] = []
            while random.random() < often:
                comment = random.choice(_COMMENTS)
                comments.append(comment.rstrip())
                gap += [random.choice(("", "", *_SPACES)), comment, "\n" if comment.startswith("//") else ""]
            if gap and before is not None and before.text == "/":
                gap.insert(0, " ")  # a preceding slash would start the comment earlier
            if not gap and before is not None and before.end < token.start:
                gap.append(random.choice(_SPACES))
            pieces += gap
        pieces.append(token.text)
        before = token
    return "".join(pieces), comments


def _glued(left: Token, right: Token) -> bool:
    """True if the parser joins the two tokens: parts of an enum value, a sign and its number."""
    if left.end < right.start or END in (left.kind, right.kind) or STRING in (left.kind, right.kind):
        return False
    return all(c.isalnum() or c in "_-" for c in left.text + right.text)
