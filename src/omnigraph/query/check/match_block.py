"""Type checker for match blocks: binds variables, orients hops, and scopes `not`.

The order of clauses does not change the meaning of a block. Types are therefore determined first: from bindings, then
from hops, each as soon as one of its ends has a type. Conditions and `not` blocks are checked afterwards in text order,
because they can use only names introduced above them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf
from typing import assert_never, cast

from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Name
from omnigraph.query.check.errors import Silenced, type_fault
from omnigraph.query.check.expressions import ExpressionChecker
from omnigraph.query.check.operators import check_condition
from omnigraph.query.check.paths import check_path, path_node_type
from omnigraph.query.check.property_patterns import check_match
from omnigraph.query.check.resolved import (
    ResolvedBinding,
    ResolvedBlock,
    ResolvedHop,
    ResolvedOptional,
    ResolvedPath,
    ResolvedStep,
)
from omnigraph.query.check.scopes import BlockVariables, Scope, Variable, not_an_entity
from omnigraph.query.check.unions import Route, any_edge, bound_type
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast
from omnigraph.query.syntax.parse_expressions import WORD_OPERATORS
from omnigraph.schema.catalog import Catalog, EdgeType
from omnigraph.suggestions import did_you_mean, listing

_Position = tuple[int, int]
"""The number of a clause and the number of a hop in it; a path has several hops."""


@dataclass(slots=True)
class _Block(BlockVariables):
    """The block being checked: its variables, and the clauses resolved so far."""

    bindings: list[ResolvedBinding] = field(default_factory=list)
    hops: dict[_Position, ResolvedHop] = field(default_factory=dict)
    paths: list[ResolvedPath] = field(default_factory=list)
    steps: list[ResolvedStep] = field(default_factory=list)
    conditions: list[ir.Condition] = field(default_factory=list)
    negations: list[ResolvedBlock] = field(default_factory=list)
    optionals: list[ResolvedOptional] = field(default_factory=list)

    def find(self, name: str) -> Variable | None:
        return self.own.get(name) or (self.outer.find(name) if self.outer else None)

    def scope_at(self, clause: float) -> Scope:
        """Return the scope of a clause; clause infinity sees every variable."""
        return Scope(self, clause)

    def touch(self, variable: Variable) -> None:
        self.mentioned[variable.ir_name] = None


class _HopQueue:
    """The order in which hops are resolved: the first hop in the text that has an end of known type comes next.

    A hop over a named edge comes before one over any edge, because it restricts the types of its ends more. If no hop
    has a known end, the first remaining hop comes next.
    """

    def __init__(self, hops: Mapping[_Position, ast.HopClause]) -> None:
        self._hops = hops
        self._priority = {position: (hop.edge.text == ast.ANY_EDGE, position) for position, hop in hops.items()}
        self._waiting = iter(sorted(self._priority.values()))
        self._ready: list[tuple[bool, _Position]] = []
        self._done: set[_Position] = set()
        self._at_end: dict[str, list[_Position]] = {}
        for position, hop in hops.items():
            for end in {hop.left.text, hop.right.text} - {ast.ANONYMOUS}:
                self._at_end.setdefault(end, []).append(position)

    def __iter__(self) -> Iterator[tuple[_Position, ast.HopClause]]:
        while len(self._done) < len(self._hops):
            _, position = heapq.heappop(self._ready) if self._ready else next(self._waiting)
            if position not in self._done:
                self._done.add(position)
                yield position, self._hops[position]

    def push(self, position: _Position) -> None:
        """Mark a hop as having an end of known type."""
        heapq.heappush(self._ready, self._priority[position])

    def push_neighbours(self, hop: ast.HopClause) -> None:
        """Mark the hops that share an end with a resolved hop."""
        for end in (hop.left.text, hop.right.text):
            for position in self._at_end.pop(end, ()):
                if position not in self._done:
                    self.push(position)


class MatchChecker:
    """Type checker for the match block of one query and its nested blocks."""

    def __init__(self, catalog: Catalog, expressions: ExpressionChecker) -> None:
        self.catalog = catalog
        self.expressions = expressions
        self.report = expressions.report
        self.taken: dict[str, int] = {}

    def check(self, clauses: Sequence[ast.Clause], outer: Scope | None = None) -> tuple[ResolvedBlock, Scope]:
        """Return the checked block and the scope behind it."""
        block = _Block(outer)
        clauses = [_comparison_of_values(block, clause) for clause in clauses]
        self.bindings(block, clauses)
        self.all_hops(block, clauses)
        for number, clause in enumerate(clauses):
            match clause:
                case ast.BindingClause():
                    self.expressions.attempt(self.pattern, block, clause)
                case ast.FilterClause():
                    self.expressions.attempt(self.condition, block, clause, number)
                case ast.PathClause():
                    self.expressions.attempt(self.path, block, clause, number)
                case ast.NotClause():
                    self.expressions.attempt(self.negation, block, clause, number)
                case ast.OptionalClause():
                    self.expressions.attempt(self.optional, block, clause, number)
                case ast.HopClause() | ast.StepClause():
                    pass  # resolved by `all_hops`
                case _:
                    assert_never(clause)
        own = {variable.ir_name for variable in block.own.values()}
        resolved = ResolvedBlock(
            tuple(block.bindings),
            tuple(block.hops[position] for position in sorted(block.hops)),
            tuple(block.conditions),
            tuple(block.negations),
            tuple(name for name in block.mentioned if name not in own),
            tuple(block.optionals),
            tuple(block.paths),
            tuple(block.steps),
        )
        return resolved, block.scope_at(math.inf)

    def introduce(
        self,
        block: _Block,
        name: str,
        type_name: str | None,
        number: int,
        kind: OneOf["node", "edge", "path"] = "node",
    ) -> Variable:
        """Introduce a variable of this block, with a unique name in the plan."""
        uses = self.taken.get(name, 0)
        self.taken[name] = uses + 1
        variable = Variable(name, f"{name}#{uses}" if uses or name == ast.ANONYMOUS else name, kind, type_name)
        if name != ast.ANONYMOUS:
            block.own[name] = variable
            block.since[name] = number
        return variable

    # -- bindings --------------------------------------------------------------------------------

    def bindings(self, block: _Block, clauses: Sequence[ast.Clause]) -> None:
        for number, clause in enumerate(clauses):
            if isinstance(clause, ast.BindingClause):
                self.expressions.attempt(self.binding, block, clause, number)

    def binding(self, block: _Block, clause: ast.BindingClause, number: int) -> None:
        name = clause.var.text
        known = block.find(name) if name != ast.ANONYMOUS else None
        try:
            type_name = bound_type(self.catalog, (clause.type, *clause.also))
        except Fault:
            if known is None:
                self.introduce(block, name, None, number)
            raise
        if known is None:
            variable = self.introduce(block, name, type_name, number)
            block.bindings.append(ResolvedBinding(variable.ir_name, type_name))
        elif known.kind == "edge":
            raise type_fault("T23", f"the edge variable '${name}' cannot be bound to a node", clause.span)
        elif known.kind == "path":
            raise type_fault("T36", f"'${name}' is a path and cannot be bound to a node", clause.span)
        elif known.kind == "value":
            raise not_an_entity(name, clause.span, "choose another name for the node")
        elif known.type_name is not None and known.type_name != type_name:
            raise type_fault(
                None, f"'${name}' is bound to {known.type_name} already and cannot be a {type_name}", clause.span
            )
        else:
            block.touch(known)
            if known.kept and known.optional:
                # A binding matches a node; the earlier stage may carry none on.
                block.conditions.append(ir.Not(ir.IsNull(ir.Prop(known.ir_name, "id", ir.NULL))))

    def pattern(self, block: _Block, clause: ast.BindingClause) -> None:
        """Check the `{ p: value }` part of a binding."""
        if not clause.matches:
            return
        try:
            type_ = self.catalog.node(bound_type(self.catalog, (clause.type, *clause.also)))
        except Fault:
            raise Silenced from None  # reported by the binding
        variable = block.find(clause.var.text)
        if clause.var.text == ast.ANONYMOUS:
            raise type_fault(None, "'$_' cannot have a pattern", clause.span, "give the variable a name")
        assert variable is not None
        for match in clause.matches:
            condition = self.expressions.attempt(
                check_match, self.expressions, variable, type_, match, known=block.find
            )
            if condition is not None:
                block.conditions.append(condition)

    # -- hops ------------------------------------------------------------------------------------

    def all_hops(self, block: _Block, clauses: Sequence[ast.Clause]) -> None:
        """Resolve every hop, in the order of `_HopQueue`."""
        hops = self.collect_hops(block, clauses)
        for position, hop in hops.items():
            self.introduce_edge_variable(block, hop, position[0])
        for number, clause in enumerate(clauses):
            if isinstance(clause, ast.StepClause):
                self.steps_of_path(block, clause, number, clauses)
        queue = _HopQueue(hops)
        for position, hop in hops.items():
            if self.known_end(block, hop):
                queue.push(position)
        for position, hop in queue:
            try:
                block.hops[position] = self.hop(block, hop, position[0])
            except Fault as fault:
                self.report(fault)
                self.bind_without_types(block, hop, position[0])
            except Silenced:
                self.bind_without_types(block, hop, position[0])
            queue.push_neighbours(hop)

    def collect_hops(self, block: _Block, clauses: Sequence[ast.Clause]) -> dict[_Position, ast.HopClause]:
        """Return the hops of all clauses, and introduce the variables of paths."""
        hops: dict[_Position, ast.HopClause] = {}
        for number, clause in enumerate(clauses):
            if isinstance(clause, ast.HopClause):
                hops[number, 0] = clause
            elif isinstance(clause, ast.PathClause):
                self.expressions.attempt(self.introduce_path, block, clause, number)
                hops |= {(number, at): hop for at, hop in enumerate(clause.hops)}
        return hops

    def known_end(self, block: _Block, hop: ast.HopClause) -> bool:
        return any(block.find(end.text) is not None for end in (hop.left, hop.right) if end.text != ast.ANONYMOUS)

    def bind_without_types(self, block: _Block, hop: ast.HopClause | ast.StepClause, number: int) -> None:
        """Bind the ends of a hop or step that has an error, without types."""
        for end in (hop.left.text, hop.right.text):
            if end != ast.ANONYMOUS:
                block.touch(block.find(end) or self.introduce(block, end, None, number))

    def introduce_edge_variable(self, block: _Block, hop: ast.HopClause, number: int) -> None:
        """Introduce the edge variable of a hop, so that no other clause binds its name to a node."""
        name = hop.edge_var
        if name is None or name.text == ast.ANONYMOUS:
            return
        if name.text in (hop.left.text, hop.right.text):
            self.report(type_fault("T23", f"the edge variable '${name}' is also an end of its hop", name.span))
        elif block.find(name.text) is not None:
            self.report(
                type_fault(
                    "T23", f"'${name}' is bound already and cannot be an edge variable", name.span, "choose a new name"
                )
            )
        else:
            edge = self.catalog.find_edge(hop.edge.text)
            self.introduce(block, name.text, edge.name if edge else None, number, "edge")

    def introduce_path(self, block: _Block, path: ast.PathClause, number: int) -> None:
        """Introduce the variable of a path, so that no hop binds its name to a node."""
        name = path.var
        if name.text == ast.ANONYMOUS:
            raise type_fault("T36", "a path needs a name", name.span, "write the hops without a path, or give it one")
        if block.find(name.text) is not None:
            raise type_fault("T36", f"'${name}' is bound already and cannot be a path", name.span, "choose a new name")
        self.introduce(block, name.text, None, number, "path")

    def path(self, block: _Block, path: ast.PathClause, number: int) -> None:
        positions = [(number, at) for at in range(len(path.hops))]
        hops = [block.hops.pop(position) for position in positions if position in block.hops]
        variable = block.own.get(path.var.text)
        if len(hops) == len(positions) and variable is not None and variable.kind == "path":
            block.paths.append(check_path(self.catalog, path, hops, variable))

    def steps_of_path(self, block: _Block, clause: ast.StepClause, number: int, clauses: Sequence[ast.Clause]) -> None:
        """Resolve `$a -> $b in $p`. The types of the ends are known before hops are resolved, which can start there."""
        try:
            block.steps.append(self.step(block, clause, number, clauses))
        except (Fault, Silenced) as problem:
            if isinstance(problem, Fault):
                self.report(problem)
            self.bind_without_types(block, clause, number)

    def step(self, block: _Block, clause: ast.StepClause, number: int, clauses: Sequence[ast.Clause]) -> ResolvedStep:
        path = block.scope_at(number).get(clause.path)
        if path.kind != "path":
            hint = "a path is named by '$p: path { $a edge{1,3} $b }'"
            raise type_fault("T36", f"'${clause.path}' is not a path and has no steps", clause.path.span, hint)
        if clause.left.text == clause.right.text != ast.ANONYMOUS:
            raise type_fault("T36", "a step leads from one node to another", clause.right.span, "use two variables")
        own = next((c for c in clauses if isinstance(c, ast.PathClause) and c.var.text == clause.path.text), None)
        type_name = path_node_type(self.catalog, clause, own, path)
        for end in (clause.left, clause.right):
            known = self.end_type(block, end)
            if known not in (None, type_name):
                message = f"'${end}' is a {known}, but a node of '${clause.path}' is a {type_name}"
                raise type_fault("T36", message, end.span, "use a new variable for the node of the path")
        left = self.endpoint(block, clause.left, type_name, number)
        right = self.endpoint(block, clause.right, type_name, number)
        return ResolvedStep(path.ir_name, left.ir_name, right.ir_name, type_name, clause.undirected)

    def hop(self, block: _Block, hop: ast.HopClause, number: int) -> ResolvedHop:
        if hop.edge.text == ast.ANY_EDGE:
            least, most = self.hop_bounds(hop)
            ends = (self.end_type(block, hop.left), self.end_type(block, hop.right))
            route = any_edge(self.catalog, hop, *ends, least, most)
        else:
            route = self.named_edges(block, hop)
            least, most = self.hop_bounds(hop)
        if not route.continues(undirected=hop.undirected):
            most = min(most, 1)
        left = self.endpoint(block, hop.left, route.left, number)
        right = self.endpoint(block, hop.right, route.right, number)
        assert left.type_name is not None
        assert right.type_name is not None
        edge_var = block.own.get(hop.edge_var.text) if hop.edge_var else None
        first, *others = (edge.name for edge in route.edges)
        return ResolvedHop(
            left.ir_name,
            left.type_name,
            right.ir_name,
            right.type_name,
            first,
            route.left_is_source,
            hop.undirected,
            least,
            most,
            edge_var.ir_name if edge_var and edge_var.kind == "edge" else None,
            tuple(others),
            mixed_types=not route.leads_between(left.type_name, right.type_name, undirected=hop.undirected),
        )

    def named_edges(self, block: _Block, hop: ast.HopClause) -> Route:
        """Return the route of the edges that a hop names."""
        edge = self.known_edge(hop.edge)
        if hop.undirected and edge.from_type != edge.to_type:
            raise type_fault(
                "T22",
                f"'{edge.word}' leads from {edge.from_type} to {edge.to_type} and cannot be followed both ways",
                hop.edge.span,
                f"'<{edge.word}>' needs an edge between nodes of one type: write '{edge.word}'",
            )
        left_is_source = self.orient(block, hop, edge)
        found = {edge.name: edge}
        for name in hop.also:
            other = self.known_edge(name)
            self.alternative(block, hop, edge, other, left_is_source, name)
            found[other.name] = other
        if hop.also and hop.edge_var is not None and hop.edge_var.text != ast.ANONYMOUS:
            message = f"'${hop.edge_var}' would be an edge of several types"
            raise type_fault("T33", message, hop.edge_var.span, "drop the edge variable, or the alternatives")
        return Route(tuple(found.values()), left_is_source)

    def alternative(
        self, block: _Block, hop: ast.HopClause, edge: EdgeType, other: EdgeType, left_is_source: bool, name: Name
    ) -> None:
        """T33: an alternative between other node types needs a single hop in the same direction."""
        if (other.from_type, other.to_type) == (edge.from_type, edge.to_type):
            return
        leads = (
            f"'{edge.word}' leads from {edge.from_type} to {edge.to_type}, "
            f"but '{other.word}' from {other.from_type} to {other.to_type}"
        )
        if hop.undirected or hop.bounds is not None:
            hint = "both ways, and over several edges, alternatives lead between the same types; '->' follows any edge"
            raise type_fault("T33", leads, name.span, hint)
        if self.orient(block, hop, other) != left_is_source:
            hint = "alternatives are followed from the same side: use two hops, or '<->' for any edge"
            raise type_fault("T33", leads, name.span, hint)

    def known_edge(self, name: Name) -> EdgeType:
        """Return the edge type of a word; T4 if there is none."""
        edge = self.catalog.find_edge(name.text)
        if edge is None:
            words = [e.word for e in self.catalog.edges.values()]
            hint = did_you_mean(name.text, words) or f"the edges are {listing(words) or 'none'}"
            raise type_fault("T4", f"there is no edge '{name}'", name.span, hint)
        return edge

    def hop_bounds(self, hop: ast.HopClause) -> tuple[int, int]:
        """Return the bounds of the length of a hop."""
        bounds = hop.bounds
        if bounds is None:
            return 1, 1
        if bounds.max is None:
            hint = f"give a maximum length: '{hop.edge}{{{bounds.min},4}}'"
            raise type_fault("T15", "the hop has no maximum length", bounds.span, hint)
        if bounds.min < 1:
            raise type_fault("T15", "a hop has minimum length 1", bounds.span, f"write {{1,{max(1, bounds.max)}}}")
        if bounds.max < bounds.min:
            hint = f"write {{{bounds.max},{bounds.min}}}"
            raise type_fault("T15", "the maximum length of the hop is below its minimum", bounds.span, hint)
        if hop.edge_var is not None and hop.edge_var.text != ast.ANONYMOUS:
            raise type_fault(
                "T23",
                f"the edge variable '${hop.edge_var}' needs a single hop, without '{{{bounds.min},{bounds.max}}}'",
                bounds.span,
                "drop the bounds, or the edge variable",
            )
        return bounds.min, bounds.max

    def orient(self, block: _Block, hop: ast.HopClause, edge: EdgeType) -> bool:
        """True if the left end is the source of the edge; T5 if the ends do not fit."""
        left, right = (self.end_type(block, end) for end in (hop.left, hop.right))
        forward = self.can_be(left, edge.from_type) and self.can_be(right, edge.to_type)
        backward = self.can_be(left, edge.to_type) and self.can_be(right, edge.from_type)
        if hop.left.text == hop.right.text != ast.ANONYMOUS and edge.from_type != edge.to_type:
            forward = backward = False
        if forward or backward:
            return forward
        touches = self.can_be(left, edge.from_type) or self.can_be(left, edge.to_type)
        wrong = hop.right if touches else hop.left
        if hop.left.text == hop.right.text:
            message = f"'${hop.left}' cannot be both ends of '{edge.word}'"
        elif touches and left is not None:
            other = edge.to_type if self.can_be(left, edge.from_type) else edge.from_type
            message = f"'${hop.right}' is a {right}, but '{edge.word}' leads from ${hop.left} ({left}) to a {other}"
        else:
            kind = left if wrong is hop.left else right
            message = f"'${wrong}' is a {kind}, which '{edge.word}' does not touch"
        hint = f"edge {edge.name}: {edge.from_type} -> {edge.to_type}"
        fitting = [e.word for e in self.catalog.edges.values() if {e.from_type, e.to_type} == {left, right}]
        if fitting:
            hint += f"; between {left} and {right} there is {listing(fitting)}"
        raise type_fault("T5", message, wrong.span, hint)

    def can_be(self, type_name: str | None, wanted: str) -> bool:
        """True if an end of this type, or of unknown type, can be a node of the wanted type."""
        return type_name is None or wanted in self.catalog.members(type_name)

    def end_type(self, block: _Block, end: Name) -> str | None:
        variable = block.find(end.text) if end.text != ast.ANONYMOUS else None
        if variable is None:
            return None
        if variable.kind == "edge":
            raise type_fault("T23", f"the edge variable '${end}' cannot be an end of a hop", end.span)
        if variable.kind == "path":
            raise type_fault("T36", f"'${end}' is a path and cannot be an end of a hop", end.span)
        if variable.kind == "value":
            raise not_an_entity(end.text, end.span, "an end of a hop is a node")
        if variable.type_name is None:
            raise Silenced
        return variable.type_name

    def endpoint(self, block: _Block, end: Name, type_name: str, number: int) -> Variable:
        variable = block.find(end.text) if end.text != ast.ANONYMOUS else None
        if variable is None:
            return self.introduce(block, end.text, type_name, number)
        block.touch(variable)
        if end.text in block.own:
            block.since[end.text] = min(block.since[end.text], number)
        return variable

    # -- conditions ------------------------------------------------------------------------------

    def condition(self, block: _Block, clause: ast.FilterClause, number: int) -> None:
        condition = check_condition(self.expressions, clause.expr, block.scope_at(number))
        block.conditions += ir.conjuncts_of(condition)

    def optional(self, block: _Block, clause: ast.OptionalClause, number: int) -> None:
        """Check an `optional` block; its variables are visible below it and may be null there."""
        faults = self.expressions.faults
        inner, scope = self.check(clause.clauses, block.scope_at(number))
        if not inner.outer_vars and self.expressions.faults == faults:
            hint = "an 'optional' block extends a row: use one of the row's variables in it"
            raise type_fault("T31", "the 'optional' block mentions no variable from outside it", clause.span, hint)
        for name in inner.outer_vars:
            block.mentioned[name] = None
        for name, variable in scope.own.items():
            if name in block.own:
                message = f"'${name}' is introduced by an 'optional' block and by a clause outside it"
                raise type_fault("T31", message, clause.span, "give one of them another name")
            block.own[name] = replace(variable, optional=True)
            block.since[name] = number
        block.optionals.append(ResolvedOptional(inner, tuple(v.ir_name for v in scope.own.values())))

    def negation(self, block: _Block, clause: ast.NotClause, number: int) -> None:
        faults = self.expressions.faults
        inner, scope = self.check(clause.clauses, block.scope_at(number))
        block.hidden.update(scope.own)
        # A clause with an error may have mentioned the outer variable.
        if not inner.outer_vars and self.expressions.faults == faults:
            raise type_fault(
                "T9",
                "the 'not' block mentions no variable from outside it",
                clause.span,
                "a 'not' block excludes rows: use one of the row's variables in it",
            )
        for name in inner.outer_vars:
            block.mentioned[name] = None
        block.negations.append(inner)


def _comparison_of_values(block: _Block, clause: ast.Clause) -> ast.Clause:
    """Return `$n in $list` as a condition if `$n` is a value; the parser reads it as a hop over an edge named `in`."""
    if not isinstance(clause, ast.HopClause) or clause.edge.text not in WORD_OPERATORS:
        return clause
    left = block.find(clause.left.text)
    if left is None or left.kind != "value":
        return clause
    near, far = (ast.VarExpr(end.text, end.span) for end in (clause.left, clause.right))
    compared = ast.CompareExpr(cast(ast.CompareOp, clause.edge.text), near, far, clause.span)
    return ast.FilterClause(compared, clause.span)
