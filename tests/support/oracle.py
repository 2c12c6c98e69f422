"""What a read answers, worked out the slow way from the specification alone (`query-language.md` §§4-12).

Nothing here is fast and nothing here looks at the program: of it, only the query's tree and the catalog are
used. A graph is plain dicts of stored values: dates are days, datetimes are milliseconds, 32-bit floats are
already rounded.

A match block is read as what it says about assignments. A hop without an edge variable is a relation between
its two ends, so it never multiplies rows and it does not matter which end was known first; an edge variable
ranges over edge rows; every `$_` is a variable of its own that nobody can name again.

Where the text leaves a choice, it is made once and here:

- The *source* of §5.2 is the source of the edge, and of an undirected hop its left end: that is the only
  reading under which the order of clauses has no effect.
- Within a ranked entity, rows that further sort keys leave tied come by the ids of the bound edges, then of
  the other variables, each in name order (§8.3 before §11).
- A list of F32 is an F32 column too: what is looked for in it is rounded first.
- A function of an absent text is false or 0, of an absent vector null.
- Folding to ASCII undoes whatever Unicode calls a composition: accents, and ligatures too.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import cache
from itertools import groupby, pairwise
from typing import Any

import snowballstemmer

from omnigraph.lang.spans import Name
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import Catalog
from support import oracle_functions
from support.oracle_groups import (
    Known,
    aggregates,
    changed,
    hashable,
    inside,
    is_aggregate,
    keys_of,
    sort_key,
    sum_scalar,
    total,
)
from support.oracle_paths import Paths, Route, Trail
from support.oracle_unions import (
    Key,
    Pairs,
    Types,
    any_ends,
    bound_types,
    is_any,
    is_forward,
    named_edges,
    pairs_of,
    shown_fields,
)

Props = dict[str, Any]


@dataclass(frozen=True)
class Entity:
    """A row of a table, as a variable holds it."""

    kind: str
    type: str
    id: str


Row = dict[str, Any]
"""Variable → its `Entity`; None where an optional block found nothing."""


@dataclass
class World:
    """A graph: type → id → stored values; an edge also has `src` and `dst`. What is worked out is kept."""

    catalog: Catalog
    nodes: dict[str, dict[str, Props]]
    edges: dict[str, dict[str, Props]]
    relations: dict[Any, Pairs] = field(default_factory=dict, repr=False)
    corpora: dict[Any, dict[Key, list[str]]] = field(default_factory=dict, repr=False)

    def props(self, entity: Entity) -> Props:
        return (self.nodes if entity.kind == "node" else self.edges)[entity.type][entity.id]


@dataclass(frozen=True)
class Answer:
    """Every row of the result; the limit is not applied when there is no order to cut by.

    There is none either when it is by a sum that another order of adding could have made another.
    """

    columns: list[str]
    rows: list[tuple[Any, ...]]
    ordered: bool
    limit: int | None
    skip: int
    doubt: dict[int, float]
    """Column → how far its values may be off: sums and means are no more exact than their largest term."""


def answer(query: ast.Query, world: World, params: Mapping[str, Any], now_ms: int) -> Answer:
    """The answer of a read that compiles; `params` as JSON has them."""
    assert isinstance(query.body, ast.Read)
    values = {param.name.text: _read_param(params.get(param.name.text), param) for param in query.params}
    declared = {param.name.text: param.type_name.text for param in query.params}
    return _Reading(world, values, declared, now_ms).read(query.body)


# -- values ------------------------------------------------------------------------------------------


def read_date(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


def read_datetime(text: str) -> int:
    moment = datetime.fromisoformat(text)
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def round_f32(number: float) -> float:
    """The 32-bit float nearest to a number, ties to even; infinite beyond the largest."""
    exact = Fraction(number)
    if exact == 0:
        return float(number)
    exponent = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    if Fraction(2) ** exponent > abs(exact):
        exponent -= 1
    unit = Fraction(2) ** max(exponent - 23, -149)
    nearest = round(exact / unit) * unit
    return float(nearest) if abs(nearest) < 2**128 else math.copysign(math.inf, exact)


def _read_param(value: Any, param: ast.Param) -> Any:
    if value is None:
        return None
    if param.dim is not None:
        return [round_f32(item) for item in value]
    if param.is_list:
        return [_read_scalar(item, param.type_name.text) for item in value]
    return _read_scalar(value, param.type_name.text)


def _read_scalar(value: Any, scalar: str) -> Any:
    match scalar:
        case "I32" | "I64" | "U32" | "U64":
            return int(value)
        case "F32":
            return round_f32(value)
        case "F64":
            return float(value)
        case "Date":
            return read_date(value)
        case "DateTime":
            return read_datetime(value)
        case _:
            return value


# -- text (§8.1) -------------------------------------------------------------------------------------

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by for if in into is it no not of on or such that the "
        "their then there these they this to was will with",
    )
)
_stem = cache(snowballstemmer.stemmer("english").stemWord)


def tokens(text: str | None) -> list[str]:
    """The tokens of a text, repeats kept."""
    return [token for run in re.findall(r"[^\W_]+", text or "") for token in _tokens_of_run(run)]


def _tokens_of_run(run: str) -> list[str]:
    if any(map(is_cjk, run)):
        found: list[str] = []
        for cjk, letters in groupby(unicodedata.normalize("NFKC", run), is_cjk):
            part = "".join(letters)
            if cjk:
                found += [_fold(a + b) for a, b in pairwise(part)] or [_fold(part)]
            else:
                found += _tokens_of_run(part)
        return found
    if len(run.encode()) > 40:
        return []
    stem = _stem(run.lower())
    return [_fold(stem)] if stem not in STOP_WORDS else []


def is_cjk(letter: str) -> bool:
    """Whether a letter belongs to a script that is written without spaces, by the name Unicode gives it."""
    name = unicodedata.name(letter, "").removeprefix("HALFWIDTH ")
    scripts = ("CJK UNIFIED", "CJK COMPAT", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "HENTAIGANA")
    marks = tuple(f"IDEOGRAPHIC {mark}" for mark in ("ITERATION", "CLOSING", "NUMBER", "ANNOTATION"))
    return name.startswith((*scripts, *marks)) and letter.isalnum() and not name.endswith("VOICED SOUND MARK")


def _fold(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def levenshtein(a: str, b: str) -> int:
    if not a or not b:
        return len(a) or len(b)
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        above, row = row, [i]
        for j, right in enumerate(b, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (left != right)))
    return row[-1]


def bm25(corpus: Mapping[Key, list[str]], node: Key, query: str | None) -> float:
    """The score of one text among all texts of its types that are there."""
    words = corpus.get(node)
    if not words:
        return 0.0
    average = sum(map(len, corpus.values())) / len(corpus)
    score = 0.0
    for token in sorted(set(tokens(query))):
        holding = sum(token in other for other in corpus.values())
        idf = math.log(1 + (len(corpus) - holding + 0.5) / (holding + 0.5))
        count = words.count(token)
        score += idf * count * 2.2 / (count + 1.2 * (1 - 0.75 + 0.75 * len(words) / average))
    return score


def cosine_distance(a: Sequence[float], b: Sequence[float]) -> float:
    norms = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b))
    return 1.0 - sum(x * y for x, y in zip(a, b, strict=True)) / norms if norms else 1.0


# -- comparisons (§6) --------------------------------------------------------------------------------


def compare(op: str, left: Any, right: Any) -> bool:
    """Whether a comparison is definitely true; Python compares its numbers by value, whatever their kind."""
    if left is None or right is None:
        return False
    match op:
        case "=":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case ">=":
            return bool(left >= right)
        case "contains":
            return right in left
        case "starts_with":
            return bool(left.startswith(right))
        case "ends_with":
            return bool(left.endswith(right))
        case "icontains":
            return right.lower() in left.lower()
        case "istarts_with":
            return bool(left.lower().startswith(right.lower()))
        case "iends_with":
            return bool(left.lower().endswith(right.lower()))
        case "matches":
            return re.search(right, left) is not None
        case "in":
            return left in right
        case "not in":
            return left not in right
        case _:
            raise AssertionError(op)


def any_of(values: list[bool | None]) -> bool | None:
    """`or` of three values: true beats unknown, unknown beats false."""
    return True if True in values else None if None in values else False


def all_of(values: list[bool | None]) -> bool | None:
    """`and` of three values: false beats unknown, unknown beats true."""
    return False if False in values else None if None in values else True


def _within(number: Any, scalar: str) -> Any:
    if isinstance(number, float):
        return number
    low, high = (0, 2**64 - 1) if scalar == "U64" else (-(2**63), 2**63 - 1)
    return number if low <= number <= high else None


# -- reading -----------------------------------------------------------------------------------------


@dataclass
class _Block:
    """A match block: what each of its clauses means once the types of all variables are known."""

    types: dict[str, tuple[str, Types]]
    """Variable → (kind, types), outer variables included."""
    steps: list[_Step]
    negations: list[_Block]
    outer: frozenset[str]
    optionals: list[tuple[_Block, list[str]]] = field(default_factory=list)
    """Each with the names it gives to the rows."""


@dataclass
class _Leap:
    """A hop with its anonymous ends named apart."""

    left: str
    right: str
    hop: ast.Hop
    edge: str | None
    forward: bool
    """The left end is the source."""


_Step = ast.Binding | _Leap | Trail | ast.Condition


class _Reading:
    def __init__(self, world: World, params: Mapping[str, Any], declared: Mapping[str, str], now_ms: int) -> None:
        self.world = world
        self.declared = declared
        self.catalog = world.catalog
        self.params = params
        self.now_ms = now_ms
        self.names = 0
        self.paths = Paths(world, Entity)
        self.missing: dict[str, Entity] = {}
        """What a variable that an optional block did not find would have been."""
        self.ranked = ""
        self.fused: dict[Key, float] = {}
        self.reasons: dict[Key, list[dict[str, Any]]] = {}
        """Of the ranking the rows are ordered by: which variable it is about, and what is known of each candidate."""

    def read(self, read: ast.Read) -> Answer:
        self.block = self.plan(read.clauses, {})
        rows = self.match(self.block, {})
        self.items = read.items
        columns = [_column(item) for item in read.items]
        limit = self.params[read.limit.name] if isinstance(read.limit, ast.Var) else read.limit
        skip = (self.params[read.skip.name] if isinstance(read.skip, ast.Var) else read.skip) or 0
        exprs = [self.meant(item.expr) for item in read.items]
        if read.distinct or any(aggregates(expr) for expr in exprs):
            out, doubt, ordered = self.aggregate(rows, exprs, read)
        else:
            ordered = bool(read.order)
            rows = self.sort(rows, read, None if limit is None else skip + limit)
            out = [tuple(self.presented(expr, self.value(expr, row)) for expr in exprs) for row in rows]
            ranks = [any(_is_rank(call) or call.function == "why" for call in inside(expr)) for expr in exprs]
            doubt = {at: 1e-6 for at, ranked in enumerate(ranks) if ranked}
        if ordered:
            out = out[skip : None if limit is None else skip + limit]
        return Answer(columns, out, ordered, limit, 0 if ordered else skip, doubt)

    # -- what the clauses mean -------------------------------------------------------------------

    def plan(self, clauses: Sequence[ast.Clause], outer: Mapping[str, tuple[str, Types]]) -> _Block:
        """Types by §5.1: bindings say theirs, then hops with a known end, then the first of the others."""
        types = dict(outer)
        steps: list[_Step] = []
        hops: list[_Leap] = []
        for clause in clauses:
            if isinstance(clause, ast.Binding):
                name = self.named(clause.var.text)
                types[name] = ("node", bound_types(self.catalog, clause))
                steps.append(ast.Binding(_name(clause.var, name), clause.type, clause.matches))
            elif isinstance(clause, ast.Hop):
                edge = clause.edge_var.text if clause.edge_var and clause.edge_var.text != ast.ANONYMOUS else None
                leap = _Leap(self.named(clause.left.text), self.named(clause.right.text), clause, edge, True)
                hops.append(leap)
                steps.append(leap)
            elif isinstance(clause, ast.Path):
                leaps = [
                    _Leap(self.named(hop.left.text), self.named(hop.right.text), hop, None, True) for hop in clause.hops
                ]
                hops += leaps
                types[clause.var.text] = ("path", frozenset())
                steps.append(Trail(clause, leaps, types))
            elif isinstance(clause, ast.Condition):
                steps.append(clause)
        while hops:
            hops.sort(key=lambda leap: is_any(leap.hop))
            leap = next((hop for hop in hops if hop.left in types or hop.right in types), hops[0])
            hops.remove(leap)
            self.orient(leap, types)
        negations = []
        optionals: list[tuple[_Block, list[str]]] = []
        seen = set(outer)
        for clause in clauses:
            if isinstance(clause, ast.Negation):
                known = {name: types[name] for name in seen}
                negations.append(self.plan(clause.clauses, known))
            elif isinstance(clause, ast.Optional):
                inner = self.plan(clause.clauses, {name: types[name] for name in seen})
                given = [name for name in inner.types if name not in seen and not name.startswith("_ ")]
                types |= {name: inner.types[name] for name in given}
                seen |= set(given)
                optionals.append((inner, given))
            elif isinstance(clause, ast.Binding):
                seen.add(clause.var.text)
            elif isinstance(clause, ast.Hop):
                used = [clause.left, clause.right, *([clause.edge_var] if clause.edge_var else [])]
                seen |= {name.text for name in used}
            elif isinstance(clause, ast.Path):
                seen |= {clause.var.text, *(end.text for hop in clause.hops for end in (hop.left, hop.right))}
            seen.discard(ast.ANONYMOUS)
        return _Block(types, steps, negations, frozenset(outer), optionals)

    def named(self, name: str) -> str:
        """A variable's name; every `$_` gets one of its own, which no query can write."""
        if name != ast.ANONYMOUS:
            return name
        self.names += 1
        return f"_ {self.names}"

    def orient(self, leap: _Leap, types: dict[str, tuple[str, Types]]) -> None:
        left, right = (types[name][1] if name in types else None for name in (leap.left, leap.right))
        if is_any(leap.hop):
            left, right = any_ends(self.catalog, leap.hop, left, right)
        else:
            edges = named_edges(self.catalog, leap.hop)
            leap.forward = is_forward(edges[0], left, right)
            ends = frozenset(edge.from_type for edge in edges), frozenset(edge.to_type for edge in edges)
            left, right = ends if leap.forward else ends[::-1]
            if leap.edge:
                types[leap.edge] = ("edge", frozenset({edges[0].name}))
        types.setdefault(leap.left, ("node", left))
        types.setdefault(leap.right, ("node", right))

    # -- matching --------------------------------------------------------------------------------

    def match(self, block: _Block, row: Row) -> list[Row]:
        """Every way to extend `row` over a block."""
        rows = [row]
        bound = set(row)
        steps = list(block.steps)
        optionals = list(block.optionals)
        while steps or optionals:
            step = next((s for s in steps if self.ready(s, bound, block)), None) or next(
                (s for s in steps if isinstance(s, ast.Binding)), None
            )
            if step is None and not any(isinstance(s, _Leap | Trail) for s in steps):
                inner, given = optionals.pop(0)
                rows = [found for r in rows for found in self.extended(r, inner, given)]
                bound |= set(given)
                continue
            if step is None:
                # Hops with no end bound: the left one is bound to every node of its type first.
                walked = next(s for s in steps if isinstance(s, _Leap | Trail))
                left = walked.left if isinstance(walked, _Leap) else walked.names[0]
                rows = list(self.scan(rows, left, block))
                bound.add(left)
                continue
            steps.remove(step)
            if isinstance(step, ast.Condition):
                rows = [r for r in rows if self.holds(step.expr, r)]
            elif isinstance(step, ast.Binding):
                if step.var.text not in bound:
                    rows = list(self.scan(rows, step.var.text, block))
                rows = [r for r in rows if self.fits(step, r)]
                bound.add(step.var.text)
            elif isinstance(step, Trail):
                rows = [found for r in rows for found in self.paths.rows(step, r)]
                bound |= {step.clause.var.text, *step.names}
            else:
                rows = list(self.leap(step, rows, block))
                bound |= {step.left, step.right, *([step.edge] if step.edge else [])}
        return [
            r for r in rows if not any(self.match(negation, self.kept(r, negation)) for negation in block.negations)
        ]

    def extended(self, row: Row, block: _Block, given: list[str]) -> list[Row]:
        """The row with every match of an optional block; without any, the row with nothing for its names."""
        found = [{**row, **{name: way[name] for name in given}} for way in self.match(block, self.kept(row, block))]
        self.missing |= {
            name: Entity(block.types[name][0], min(block.types[name][1], default=""), "") for name in given
        }
        return found or [{**row, **dict.fromkeys(given)}]

    def kept(self, row: Row, block: _Block) -> Row:
        return {name: entity for name, entity in row.items() if name in block.outer}

    def ready(self, step: _Step, bound: set[str], block: _Block) -> bool:
        if isinstance(step, ast.Binding):
            return step.var.text in bound
        if isinstance(step, _Leap):
            return step.left in bound or step.right in bound
        if isinstance(step, Trail):
            return not bound.isdisjoint(step.names)
        return {name for name in _variables(step.expr, self.params) if name in block.types} <= bound

    def scan(self, rows: list[Row], name: str, block: _Block) -> Iterator[Row]:
        for row in rows:
            for type_ in block.types[name][1]:
                for id in self.world.nodes[type_]:
                    yield {**row, name: Entity("node", type_, id)}

    def fits(self, binding: ast.Binding, row: Row) -> bool:
        for match in binding.matches:
            of = ast.PropertyOf(binding.var, match.property)
            prop = self.catalog.nodes[row[binding.var.text].type].properties[match.property.text]
            if not self.holds(ast.Compare("contains" if prop.type.is_list else "=", of, match.value), row):
                return False
        return True

    def leap(self, leap: _Leap, rows: list[Row], block: _Block) -> Iterator[Row]:
        """Each row with every way over the hop that agrees with what the row holds already."""
        at: dict[tuple[str, Key], list[Row]] = {}
        for left, right, edge in self.ways(leap):
            if leap.left == leap.right and left != right:
                continue
            if left[0] not in block.types[leap.left][1] or right[0] not in block.types[leap.right][1]:
                continue
            way = {leap.left: Entity("node", *left), leap.right: Entity("node", *right)}
            if leap.edge:
                way[leap.edge] = Entity("edge", min(block.types[leap.edge][1]), edge)
            at.setdefault(("left", left), []).append(way)
            at.setdefault(("right", right), []).append(way)
        for row in rows:
            side, name = ("left", leap.left) if leap.left in row else ("right", leap.right)
            if row[name] is None:
                continue
            for way in at.get((side, (row[name].type, row[name].id)), ()):
                if all(row.get(other, entity) == entity for other, entity in way.items()):
                    yield {**row, **way}

    def ways(self, leap: _Leap) -> Iterator[tuple[Key, Key, str]]:
        """(left, right, edge) of every way over a hop; the edge is empty when no variable holds it."""
        if leap.edge is None:
            yield from ((left, right, "") for left, right in self.relation(leap))
            return
        (edge,) = named_edges(self.catalog, leap.hop)
        for id, row in self.world.edges[edge.name].items():
            ends = {((edge.from_type, row["src"]), (edge.to_type, row["dst"]))}
            if leap.hop.undirected:
                ends |= {(target, source) for source, target in ends}
            for source, target in ends:
                yield (source, target, id) if leap.forward else (target, source, id)

    def relation(self, leap: _Leap) -> Pairs:
        """(left, right) of a hop by §5.2, breadth-first from every source."""
        bounds = leap.hop.bounds or ast.Bounds(1, 1)
        assert bounds.max is not None
        edges = named_edges(self.catalog, leap.hop)
        key = (frozenset(edge.name for edge in edges), leap.hop.undirected, bounds, leap.forward)
        if key in self.world.relations:
            return self.world.relations[key]
        pairs = pairs_of(self.world.edges, edges)
        if leap.hop.undirected:
            pairs |= {(target, source) for source, target in pairs}
        found: Pairs = set()
        for source in {source for source, _ in pairs}:
            for node, distance in _distances(source, pairs).items():
                if (node != source and bounds.min <= distance <= bounds.max) or (
                    (node, node) in pairs and bounds.min <= distance + 1 <= bounds.max
                ):
                    found.add((source, node))
        if not leap.forward:
            found = {(target, source) for source, target in found}
        self.world.relations[key] = found
        return found

    # -- expressions -----------------------------------------------------------------------------

    def holds(self, expr: ast.Expr, row: Row) -> bool:
        """Whether a condition is definitely true; unknown is not."""
        return self.value(expr, row) is True

    def compared(self, expr: ast.Compare, row: Row) -> bool | None:
        """A comparison: None, unknown, when an operand is null."""
        left, right = self.value(expr.left, row), self.value(expr.right, row)
        if expr.op in ("in", "not in") and isinstance(expr.right, ast.ListLiteral):
            equal = [self.compared(ast.Compare("=", expr.left, item), row) for item in expr.right.items]
            found = any_of(equal) if left is not None else None
            return found if expr.op == "in" or found is None else not found
        if left is None or right is None:
            return None
        if self.is_f32(expr.left, row):
            right = [round_f32(item) for item in right] if isinstance(right, list) else round_f32(right)
        if self.is_f32(expr.right, row):
            left = [round_f32(item) for item in left] if isinstance(left, list) else round_f32(left)
        return compare(expr.op, left, right)

    def is_f32(self, expr: ast.Expr, row: Row) -> bool:
        if isinstance(expr, ast.Case):
            return all(self.is_f32(value, row) for value in _values(expr))
        if isinstance(expr, ast.Call) and expr.function in ("head", "last", "item", "slice", "concat", "coalesce"):
            known = expr.arguments if expr.function in ("concat", "coalesce") else expr.arguments[:1]
            return all(self.is_f32(value, row) for value in known)
        if not isinstance(expr, ast.PropertyOf):
            return False
        entity = row[expr.var.text] or self.missing[expr.var.text]
        types = self.catalog.nodes if entity.kind == "node" else self.catalog.edges
        of = types.get(entity.type)  # An interface without implementations has no members.
        return of is not None and of.properties[expr.property.text].type.scalar == "F32"

    def value(self, expr: ast.Expr, row: Row) -> Any:
        """The value of an expression in a row; a node is its `Entity`."""
        match expr:
            case ast.Literal(kind="date", value=str() as text):
                return read_date(text)
            case ast.Literal(kind="datetime", value=str() as text):
                return read_datetime(text)
            case ast.Literal(value=value):
                return value
            case ast.ListLiteral(items=items):
                return self.of_one_type(items, [self.value(item, row) for item in items], row)
            case ast.ObjectLiteral(fields=named):
                return {field.name.text: self.value(field.value, row) for field in named}
            case Known(value=value):
                return value
            case ast.Call(function="rrf"):
                return self.fused[_node(row[_ranked(expr)])]
            case ast.Call(function="why"):
                return self.reasons[_node(row[self.ranked])]
            case ast.Var(name=name):
                return self.params[name] if name in self.params else row[name]
            case ast.PropertyOf(var=var, property=prop):
                entity = row[var.text]
                return None if entity is None else self.world.props(entity).get(prop.text)
            case ast.Call(function="now"):
                return self.now_ms
            case ast.Call(function="coalesce"):
                values = [self.value(argument, row) for argument in expr.arguments]
                first = next((value for value in values if value is not None), None)
                floats = self.scalar(expr, row) in ("F32", "F64")
                return float(first) if floats and first is not None else first
            case ast.Call(function="nodes" | "edges" | "weight"):
                route = self.value(expr.arguments[0], row)
                if route is None or expr.function == "weight":
                    return route and route.weight
                found = self.paths.nodes(route) if expr.function == "nodes" else self.paths.edges(route)
                if len(expr.arguments) == 2:
                    assert isinstance(expr.arguments[1], ast.Word)
                    return [one[expr.arguments[1].name] for one in found]
                return found
            case ast.Call(function=name) if name in oracle_functions.NAMES:
                given = expr.arguments[:-1] if name in oracle_functions.WITH_UNIT else expr.arguments
                values = [self.value(argument, row) for argument in given]
                if name == "length" and isinstance(values[0], Route):
                    return len(values[0])
                if len(given) < len(expr.arguments):
                    values.append(expr.arguments[-1].name)
                return oracle_functions.result(name, values, [self.scalar(argument, row) for argument in given])
            case ast.Case(subject=subject, branches=branches, otherwise=otherwise):
                taken = otherwise
                for branch in branches:
                    test = branch.condition if subject is None else ast.Compare("=", subject, branch.condition)
                    if self.value(test, row) is True:
                        taken = branch.value
                        break
                chosen = None if taken is None else self.value(taken, row)
                floats = self.scalar(expr, row) in ("F32", "F64")
                return float(chosen) if floats and type(chosen) is int else chosen
            case ast.Call(function="id" | "type", arguments=(ast.Var(name=name),)):
                entity = row[name]
                return None if entity is None else entity.id if expr.function == "id" else entity.type
            case ast.Call():
                return self.function(expr, row)
            case ast.Word(name=name):
                named = self.meant(expr)
                assert named is not expr or name == "null", name
                return self.value(named, row) if named is not expr else None
            case ast.Compare():
                return self.compared(expr, row)
            case ast.Logic(op=op, parts=parts):
                values = [self.value(part, row) for part in parts]
                return any_of(values) if op == "or" else all_of(values)
            case ast.Not(expr=inner):
                known = self.value(inner, row)
                return None if known is None else not known
            case ast.IsNull(expr=inner, negated=negated):
                return (self.value(inner, row) is None) != negated
            case ast.Arithmetic(op=op, left=left, right=right):
                return self.arithmetic(op, left, right, row)
            case ast.Negative(expr=inner):
                number = self.value(inner, row)
                return None if number is None else _within(-number, "I64")
            case _:
                raise AssertionError(expr)

    def of_one_type(self, items: Sequence[ast.Expr], values: list[Any], row: Row) -> list[Any]:
        """The values of a list: beside a float every number is one, also field by field in objects."""
        objects = [(item, at) for at, item in enumerate(items) if isinstance(item, ast.ObjectLiteral)]
        for place, named in enumerate(objects[0][0].fields if objects else ()):
            column = [item.fields[place].value for item, _ in objects]
            given = [values[at][named.name.text] for _, at in objects]
            for (_, at), value in zip(objects, self.of_one_type(column, given, row), strict=True):
                values[at][named.name.text] = value
        floats = any(self.scalar(item, row) in ("F32", "F64") for item in items)
        return [float(value) if floats and type(value) is int else value for value in values]

    def arithmetic(self, op: str, left: ast.Expr, right: ast.Expr, row: Row) -> Any:
        """What two values make; None when one is null or nothing comes out."""
        a, b = self.value(left, row), self.value(right, row)
        if a is None or b is None or (op in "/%" and b == 0):
            return None
        if isinstance(a, str):
            return a + b
        if op == "/" or isinstance(a, float) or isinstance(b, float):
            x, y = float(a), float(b)
            try:
                result = {"+": x + y, "-": x - y, "*": x * y}[op] if op != "/" else x / y
            except OverflowError:
                return None
            return result if math.isfinite(result) else None
        whole = {"+": a + b, "-": a - b, "*": a * b}
        number = whole[op] if op in whole else int(math.copysign(1, a)) * (abs(a) % abs(b))
        return _within(number, self.scalar(ast.Arithmetic(op, left, right), row))

    def scalar(self, expr: ast.Expr, row: Row) -> str:
        """Which whole number an expression is: U64 only where nothing signed takes part."""
        match expr:
            case ast.PropertyOf(var=var, property=prop):
                entity = row[var.text] or self.missing[var.text]
                types = self.catalog.nodes if entity.kind == "node" else self.catalog.edges
                of = types.get(entity.type)  # none of an interface that nobody implements: there are no rows either
                return of.properties[prop.text].type.scalar if of is not None else "I64"
            case ast.Var(name=name):
                return self.declared.get(name, "I64")
            case ast.Literal(kind="date") | ast.Call(function="date"):
                return "Date"
            case ast.Literal(kind="datetime") | ast.Call(function="now"):
                return "DateTime"
            case ast.Literal(kind="string"):
                return "String"
            case ast.Literal(value=bool()):
                return "Bool"
            case ast.Call(function=name) if name in oracle_functions.NAMES:
                return oracle_functions.scalar_of(expr, lambda argument: self.scalar(argument, row))
            case ast.Case():
                kinds = [self.scalar(value, row) for value in _values(expr)]
                return oracle_functions.common(kinds)
            case ast.Literal(value=int() as number):
                return "U32" if 0 <= number < 2**63 else "U64" if number >= 0 else "I64"
            case ast.Literal(kind="decimal") | ast.Call(function="weight" | "nearest" | "bm25" | "rrf"):
                return "F64"
            case Known(scalar=scalar):
                return scalar
            case ast.Negative(expr=inner):
                return "F64" if self.scalar(inner, row) in ("F32", "F64") else "I64"
            case ast.Call(function="coalesce", arguments=arguments):
                kinds = {self.scalar(argument, row) for argument in arguments}
                floats = kinds & {"F32", "F64"}
                return "F64" if floats else "U64" if kinds <= {"U32", "U64"} and "U64" in kinds else "I64"
            case ast.Arithmetic(left=left, right=right):
                kinds = {self.scalar(left, row), self.scalar(right, row)}
                if expr.op == "/" or kinds & {"F32", "F64"}:
                    return "F64"
                return "U64" if "U64" in kinds and kinds <= {"U32", "U64"} else "I64"
            case _:
                return "I64"

    def function(self, call: ast.Call, row: Row) -> Any:
        of, query = call.arguments[0], self.value(call.arguments[1], row)
        assert isinstance(of, ast.PropertyOf)
        stored = self.value(of, row)
        match call.function:
            case "search" | "match_text":
                wanted = set(tokens(query))
                if len(call.arguments) == 3:
                    return bool(wanted) and wanted <= set(tokens(stored))
                return not wanted.isdisjoint(tokens(stored))
            case "fuzzy":
                most = self.value(call.arguments[2], row) if len(call.arguments) == 3 else 2
                return any(levenshtein(a, b) <= most for a in set(tokens(stored)) for b in set(tokens(query)))
            case "bm25":
                return bm25(self.corpus(of), (row[of.var.text].type, row[of.var.text].id), query)
            case "nearest":
                return None if stored is None or query is None else cosine_distance(stored, query)
            case _:
                raise AssertionError(call.function)

    def corpus(self, of: ast.PropertyOf) -> dict[Key, list[str]]:
        """Node → tokens of every text of the variable's types that is there."""
        types, prop = self.block.types[of.var.text][1], of.property.text
        if (types, prop) not in self.world.corpora:
            stored = {(t, id): props.get(prop) for t in types for id, props in self.world.nodes[t].items()}
            found = {node: tokens(text) for node, text in stored.items() if text is not None}
            self.world.corpora[types, prop] = found
        return self.world.corpora[types, prop]

    # -- return and order ------------------------------------------------------------------------

    def meant(self, expr: ast.Expr) -> ast.Expr:
        """A bare word means the returned item of that alias."""
        if isinstance(expr, ast.Word):
            named = [item.expr for item in self.items if item.alias and item.alias.text == expr.name]
            return self.meant(named[0]) if named else expr
        return expr

    def presented(self, expr: ast.Expr, value: Any) -> Any:
        """What is shown of a value: a node as its object, a path as its own, also inside objects and lists."""
        match expr:
            case _ if value is None:
                return None
            case ast.ObjectLiteral(fields=named):
                return {part.name.text: self.presented(part.value, value[part.name.text]) for part in named}
            case ast.ListLiteral(items=items):
                return [self.presented(item, part) for item, part in zip(items, value, strict=True)]
            case ast.Call(function="collect", arguments=(inner,)):
                return [self.presented(inner, part) for part in value]
        if isinstance(value, Route):
            return self.paths.shown(value)
        if not isinstance(value, Entity):
            return value
        assert isinstance(expr, ast.Var)
        types = self.block.types[expr.name][1]
        return shown_fields(self.catalog, types, value.type, value.id, self.world.props(value))

    def sort(self, rows: list[Row], read: ast.Read, limit: int | None) -> list[Row]:
        """The rows in the total order of §11, or of §8.3 behind a rank; rows it drops are gone."""
        keys = [(self.meant(item.expr), item.direction == "desc") for item in read.order]
        if not keys:
            return rows
        first = keys[0][0]
        names = sorted(name for name in self.block.types if not name.startswith("_ "))
        names.sort(key=lambda name: self.block.types[name][0] == "path")
        ranked: str | None = None
        place: dict[Key, Any] = {}
        if _is_rank(first):
            assert isinstance(first, ast.Call)
            place, self.fused = self.rank(first, rows, limit)
            ranked = self.ranked = _ranked(first)
            rows = [row for row in rows if _node(row[ranked]) in place]
            edges = [name for name in names if self.block.types[name][0] == "edge"]
            names = [ranked, *edges, *(name for name in names if name not in edges)]
            names.sort(key=lambda name: self.block.types[name][0] == "path")
            keys = keys[1:]
        rows.sort(key=lambda row: [sort_key(row[name]) for name in names])
        for expr, descending in reversed(keys):
            rows.sort(key=lambda row: sort_key(self.value(expr, row)), reverse=descending)
        if ranked:
            rows.sort(key=lambda row: place[_node(row[ranked])])
        return rows

    def rank(self, call: ast.Call, rows: list[Row], limit: int | None) -> tuple[dict[Key, Any], dict[Key, float]]:
        """Candidate → where it stands, smaller first, and its fused score; the others are dropped."""
        if call.function != "rrf":
            scores = self.arm(call, rows)
            best = sorted(scores, key=lambda id: (scores[id], id))
            self.reasons = {id: [_reason(call, scores[id], at, None)] for at, id in enumerate(best, 1)}
            return scores, {}
        positions = []
        weights = []
        arguments = list(call.arguments)
        last = arguments[-1]
        k = 60 if isinstance(last, ast.Arithmetic) or _is_rank(last) else self.value(arguments.pop(), {})
        arms: list[tuple[ast.Call, dict[Key, float]]] = []
        for arm in arguments:
            weights.append(Fraction(self.value(arm.right, {})) if isinstance(arm, ast.Arithmetic) else Fraction(1))
            arm = arm.left if isinstance(arm, ast.Arithmetic) else arm
            assert isinstance(arm, ast.Call)
            scores = self.arm(arm, rows)
            arms.append((arm, scores))
            best = sorted(scores, key=lambda id: (scores[id], id))
            positions.append({id: at for at, id in enumerate(best[:limit] if arm.function == "nearest" else best, 1)})
        every = {id for arm in positions for id in arm}
        both = list(zip(positions, weights, strict=True))
        fused = {id: sum((weight / (k + arm[id]) for arm, weight in both if id in arm), Fraction()) for id in every}
        self.reasons = {
            id: [
                _reason(arm, scores[id], places[id], float(weight / (k + places[id])))
                if id in places
                else _reason(arm, None, None, None)
                for (arm, scores), places, weight in zip(arms, positions, weights, strict=True)
            ]
            for id in every
        }
        place = {id: (-score, *(arm.get(id, math.inf) for arm in positions)) for id, score in fused.items()}
        return place, {id: float(score) for id, score in fused.items()}

    def arm(self, call: ast.Call, rows: list[Row]) -> dict[Key, float]:
        """Candidate → distance, or score turned round; null vectors and scores of 0 are no candidates."""
        one_of = {_node(row[_ranked(call)]): row for row in rows}
        scores = {id: self.function(call, row) for id, row in one_of.items()}
        if call.function == "nearest":
            return {id: score for id, score in scores.items() if score is not None}
        return {id: -score for id, score in scores.items() if score > 0}

    # -- aggregates (§10) ------------------------------------------------------------------------

    def aggregate(
        self, rows: list[Row], exprs: list[ast.Expr], read: ast.Read
    ) -> tuple[list[tuple[Any, ...]], dict[int, float], bool]:
        """The groups in order, how far their values may be off, and whether the order is certain."""
        keys = [key for expr in exprs for key in keys_of(expr, self.depends)]
        groups: dict[Any, list[Row]] = {} if keys else {(): []}
        for row in rows:
            groups.setdefault(tuple(hashable(self.value(key, row)) for key in keys), []).append(row)
        for members in groups.values():  # a sum that overflows is an error, whichever groups are left
            for expr in (*exprs, *(item.expr for item in read.order)):
                self.of_group(expr, members)
        every = [members for members in groups.values() if self.passes(read.having, members)]
        lines = [(members, tuple(self.of_group(expr, members) for expr in exprs)) for members in every]
        if read.distinct and not all(key in exprs for key in keys):
            lines = list({hashable(list(line)): (members, line) for members, line in reversed(lines)}.values())
            keys = exprs
        for key in reversed(keys):
            lines.sort(key=lambda line: sort_key(self.of_group(key, line[0])))
        for item in reversed(read.order):
            reverse = item.direction == "desc"
            lines.sort(key=lambda line: sort_key(self.of_group(item.expr, line[0])), reverse=reverse)
        doubt = {at: self.doubt(expr, every) for at, expr in enumerate(exprs)}
        sure = not any(self.doubt(item.expr, every) for item in read.order)
        shown = [tuple(map(self.presented, exprs, line)) for _, line in lines]
        return shown, doubt, bool(read.order) and sure

    def depends(self, expr: ast.Expr) -> bool:
        """Whether an expression says something of the row."""
        return any(name in self.block.types for name in _variables(expr, self.params))

    def passes(self, having: Sequence[ast.Condition], members: list[Row]) -> bool:
        return all(self.of_group(condition.expr, members) is True for condition in having)

    def of_group(self, expr: ast.Expr, members: list[Row]) -> Any:
        """The value of an expression for a group: its aggregates are worked out, and its keys are those of any row."""

        def known(part: Any) -> Any:
            if isinstance(part, ast.Word) and self.meant(part) is not part:
                return changed(self.meant(part), known)
            return self.aggregated(part, members) if is_aggregate(part) else part

        return self.value(changed(expr, known), members[0] if members else {})

    def aggregated(self, call: ast.Call, members: list[Row]) -> Known:
        (inner,) = call.arguments
        values = [value for value in (self.value(inner, row) for row in members) if value is not None]
        if call.distinct:
            values = list({hashable(value): value for value in values}.values())
        anything = {name: Entity(kind, min(types, default=""), "") for name, (kind, types) in self.block.types.items()}
        some = members[0] if members else anything
        scalar = {"count": "I64", "avg": "F64"}.get(call.function) or self.scalar(inner, some)
        if call.function == "sum":
            return Known(total(values, scalar), sum_scalar(scalar))
        return Known(_AGGREGATES[call.function](values), scalar)

    def doubt(self, expr: ast.Expr, groups: list[list[Row]]) -> float:
        """How far an item may be off: sums are no more exact than their largest term; 0 where they are exact."""
        most = 0.0
        expr = self.meant(expr)
        for call in inside(expr):
            if call.function not in ("sum", "avg"):
                continue
            for members in groups:
                values = [v for v in (self.value(call.arguments[0], row) for row in members) if v is not None]
                if values and not (call.function == "sum" and type(values[0]) is int) and not _adds_exactly(values):
                    most = max(most, 1e-9 * float(max(map(abs, values))) * len(values))
        return most if is_aggregate(expr) else most * 1e3  # what is computed with a sum is off by more


_AGGREGATES: Mapping[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "avg": lambda values: float(sum(map(Fraction, values)) / len(values)) if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
    "collect": lambda values: sorted(values, key=sort_key),
}


def _adds_exactly(values: list[Any]) -> bool:
    """Whether 64-bit floats give the same sum in every order: all are multiples of one step, and not too many."""
    steps = [Fraction(value) * 2**20 for value in values]
    return all(step.denominator == 1 for step in steps) and sum(map(abs, steps)) <= 2**53


# -- small things ------------------------------------------------------------------------------------


def _is_rank(expr: ast.Expr) -> bool:
    return isinstance(expr, ast.Call) and expr.function in ("nearest", "bm25", "rrf")


def _reason(arm: ast.Call, score: float | None, place: int | None, share: float | None) -> dict[str, Any]:
    """Why a candidate is where it is, as far as one ranking goes; scores were turned round to sort by them."""
    of = arm.arguments[0]
    assert isinstance(of, ast.PropertyOf)
    value = -score if arm.function == "bm25" and score is not None else score
    return {"by": f"{arm.function}({of.property.text})", "rank": place, "score": value, "share": share}


def _ranked(call: ast.Call) -> str:
    """The variable a rank is about."""
    first = call.arguments[0]
    if isinstance(first, ast.Arithmetic):
        first = first.left
    if isinstance(first, ast.Call):
        return _ranked(first)
    assert isinstance(first, ast.PropertyOf)
    return first.var.text


def _column(item: ast.ReturnItem) -> str:
    if item.alias:
        return item.alias.text
    match item.expr:
        case ast.PropertyOf(var=var, property=prop):
            return f"{var.text}.{prop.text}"
        case ast.Var(name=name) | ast.Word(name=name):
            return name
        case ast.Call(function=function):
            return function
        case ast.ObjectLiteral():
            return "object"
        case ast.ListLiteral(items=items) if not all(isinstance(item, ast.Literal) for item in items):
            return "list"
        case ast.Literal() | ast.ListLiteral():
            return "literal"
        case _:
            return "value"


def _variables(expr: ast.Expr, params: Mapping[str, Any]) -> Iterable[str]:
    match expr:
        case ast.Var(name=name):
            # A parameter hides a variable of its name.
            yield from () if name in params else (name,)
        case ast.PropertyOf(var=var):
            yield var.text
        case ast.Compare(left=left, right=right) | ast.Arithmetic(left=left, right=right):
            yield from _variables(left, params)
            yield from _variables(right, params)
        case ast.Not(expr=inner) | ast.IsNull(expr=inner) | ast.Negative(expr=inner):
            yield from _variables(inner, params)
        case ast.Call(arguments=parts) | ast.Logic(parts=parts) | ast.ListLiteral(items=parts):
            for part in parts:
                yield from _variables(part, params)
        case ast.ObjectLiteral(fields=named):
            for part in named:
                yield from _variables(part.value, params)
        case ast.Case(subject=subject, branches=branches, otherwise=otherwise):
            tested = [part for branch in branches for part in (branch.condition, branch.value)]
            for part in (subject, *tested, otherwise):
                yield from () if part is None else _variables(part, params)
        case _:
            return


def _values(case: ast.Case) -> list[ast.Expr]:
    """The values of a `case` that are not the word `null`."""
    values = [*(branch.value for branch in case.branches), case.otherwise]
    return [value for value in values if value is not None and not isinstance(value, ast.Word)]


def _distances(source: Key, pairs: Pairs) -> dict[Key, int]:
    """Node → the shortest number of pairs to it from `source`."""
    found = {source: 0}
    edge = [source]
    while edge:
        edge = sorted({target for at, target in pairs if at in edge and target not in found})
        found |= {node: max(found.values()) + 1 for node in edge}
    return found


def _node(entity: Entity) -> Key:
    """What tells a node, in the order of ids and then of types."""
    return entity.id, entity.type


def _name(like: Name, text: str) -> Name:
    return Name(text, like.span)
