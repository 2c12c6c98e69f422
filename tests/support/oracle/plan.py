"""Match blocks with the types of all variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from omnigraph.lang.spans import Name
from omnigraph.query.syntax import ast
from support.oracle.model import Entity, World
from support.oracle.paths import Paths, Trail
from support.oracle.unions import (
    Key,
    Types,
    any_ends,
    bound_types,
    is_any,
    is_forward,
    named_edges,
)


@dataclass
class Block:
    """A match block with the types of all variables."""

    types: dict[str, tuple[str, Types]]
    """Variable → (kind, types), outer variables included."""
    steps: list[Step]
    negations: list[Block]
    outer: frozenset[str]
    optionals: list[tuple[Block, list[str]]] = field(default_factory=list)
    """Each with the variables it binds."""


@dataclass
class Leap:
    """A hop whose anonymous ends have unique names."""

    left: str
    right: str
    hop: ast.HopClause
    edge: str | None
    forward: bool
    """The left end is the source."""


Step = ast.BindingClause | Leap | Trail | ast.StepClause | ast.FilterClause


def name_like(like: Name, text: str) -> Name:
    return Name(text, like.span)


def variables_of(expr: ast.Expr, params: Mapping[str, Any]) -> Iterable[str]:
    match expr:
        case ast.VarExpr(name=name):
            # A parameter hides a variable of the same name.
            yield from () if name in params else (name,)
        case ast.PropertyExpr(var=var):
            yield var.text
        case ast.CompareExpr(left=left, right=right) | ast.ArithmeticExpr(left=left, right=right):
            yield from variables_of(left, params)
            yield from variables_of(right, params)
        case ast.NotExpr(expr=inner) | ast.IsNullExpr(expr=inner) | ast.NegativeExpr(expr=inner):
            yield from variables_of(inner, params)
        case ast.CallExpr(arguments=parts) | ast.LogicExpr(parts=parts) | ast.ListExpr(items=parts):
            for part in parts:
                yield from variables_of(part, params)
        case ast.ObjectExpr(fields=named):
            for part in named:
                yield from variables_of(part.value, params)
        case ast.CaseExpr(subject=subject, branches=branches, otherwise=otherwise):
            tested = [part for branch in branches for part in (branch.condition, branch.value)]
            for part in (subject, *tested, otherwise):
                yield from () if part is None else variables_of(part, params)
        case _:
            return


def comparison_of_values(clause: ast.Clause, types: Mapping[str, tuple[str, Types]]) -> ast.Clause:
    """`$n in $list` is a condition if `$n` is a value of a stage, else a hop."""
    if not isinstance(clause, ast.HopClause) or types.get(clause.left.text, ("", ()))[0] != "value":
        return clause
    sides = ast.VarExpr(clause.left.text), ast.VarExpr(clause.right.text)
    return ast.FilterClause(ast.CompareExpr(cast(ast.CompareOp, clause.edge.text), *sides))


class Planning:
    """Types of variables and orientation of hops."""

    def __init__(self, world: World, params: Mapping[str, Any], declared: Mapping[str, str], now_ms: int) -> None:
        self.world = world
        self.declared = declared
        self.catalog = world.catalog
        self.params = params
        self.now_ms = now_ms
        self.names = 0
        self.paths = Paths(world, Entity)
        self.path_types: dict[str, Types] = {}
        """The node types of each path."""
        self.missing: dict[str, Entity] = {}
        """Placeholder entities of variables that an optional block did not match."""
        self.ranked = ""
        self.fused: dict[Key, float] = {}
        self.reasons: dict[Key, list[dict[str, Any]]] = {}
        """For the ranking that orders the rows: its variable and the explanation of each candidate."""

    def plan(self, clauses: Sequence[ast.Clause], outer: Mapping[str, tuple[str, Types]]) -> Block:
        """Types by §5.1: first bindings, then hops with a known end, then the first of the remaining hops."""
        types = dict(outer)
        clauses = [comparison_of_values(clause, types) for clause in clauses]
        steps: list[Step] = []
        hops: list[Leap] = []
        for clause in clauses:
            if isinstance(clause, ast.BindingClause):
                name = self.named(clause.var.text)
                types[name] = ("node", bound_types(self.catalog, clause))
                steps.append(ast.BindingClause(name_like(clause.var, name), clause.type, clause.matches))
            elif isinstance(clause, ast.HopClause):
                edge = clause.edge_var.text if clause.edge_var and clause.edge_var.text != ast.ANONYMOUS else None
                leap = Leap(self.named(clause.left.text), self.named(clause.right.text), clause, edge, True)
                hops.append(leap)
                steps.append(leap)
            elif isinstance(clause, ast.PathClause):
                leaps = [
                    Leap(self.named(hop.left.text), self.named(hop.right.text), hop, None, True) for hop in clause.hops
                ]
                hops += leaps
                types[clause.var.text] = ("path", frozenset())
                edges = [edge for hop in clause.hops for edge in named_edges(self.catalog, hop)]
                self.path_types[clause.var.text] = frozenset(e for one in edges for e in (one.from_type, one.to_type))
                steps.append(Trail(clause, leaps, types))
            elif isinstance(clause, ast.StepClause):
                ends = (self.named(clause.left.text), self.named(clause.right.text))
                left, right = (name_like(clause.left, end) for end in ends)
                steps.append(ast.StepClause(left, right, clause.path, clause.undirected))
                for end in ends:
                    types.setdefault(end, ("node", self.path_types[clause.path.text]))
            elif isinstance(clause, ast.FilterClause):
                steps.append(clause)
        while hops:
            hops.sort(key=lambda leap: is_any(leap.hop))
            leap = next((hop for hop in hops if hop.left in types or hop.right in types), hops[0])
            hops.remove(leap)
            self.orient(leap, types)
        negations = []
        optionals: list[tuple[Block, list[str]]] = []
        seen = set(outer)
        for clause in clauses:
            if isinstance(clause, ast.NotClause):
                known = {name: types[name] for name in seen}
                negations.append(self.plan(clause.clauses, known))
            elif isinstance(clause, ast.OptionalClause):
                inner = self.plan(clause.clauses, {name: types[name] for name in seen})
                given = [name for name in inner.types if name not in seen and not name.startswith("_ ")]
                types |= {name: inner.types[name] for name in given}
                seen |= set(given)
                optionals.append((inner, given))
            elif isinstance(clause, ast.BindingClause):
                seen.add(clause.var.text)
            elif isinstance(clause, ast.HopClause):
                used = [clause.left, clause.right, *([clause.edge_var] if clause.edge_var else [])]
                seen |= {name.text for name in used}
            elif isinstance(clause, ast.StepClause):
                seen |= {clause.left.text, clause.right.text}
            elif isinstance(clause, ast.PathClause):
                seen |= {clause.var.text, *(end.text for hop in clause.hops for end in (hop.left, hop.right))}
            seen.discard(ast.ANONYMOUS)
        return Block(types, steps, negations, frozenset(outer), optionals)

    def named(self, name: str) -> str:
        """The name of a variable; every `$_` gets a unique name that no query can contain."""
        if name != ast.ANONYMOUS:
            return name
        self.names += 1
        return f"_ {self.names}"

    def orient(self, leap: Leap, types: dict[str, tuple[str, Types]]) -> None:
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
