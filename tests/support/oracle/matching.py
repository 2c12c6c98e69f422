"""Rows that satisfy a match block."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from omnigraph.query.syntax import ast
from support.oracle.expressions import Expressions, distances
from support.oracle.model import Entity, Row
from support.oracle.paths import Trail
from support.oracle.plan import Block, Leap, Step, variables_of
from support.oracle.unions import (
    Key,
    Pairs,
    named_edges,
    pairs_of,
)


class Matching(Expressions):
    """Assignments of variables."""

    def match(self, block: Block, row: Row) -> list[Row]:
        """Every extension of `row` that satisfies a block."""
        rows = [row]
        bound = set(row)
        steps = list(block.steps)
        optionals = list(block.optionals)
        while steps or optionals:
            step = next((s for s in steps if self.ready(s, bound, block)), None) or next(
                (s for s in steps if isinstance(s, ast.BindingClause)), None
            )
            if step is None and not any(isinstance(s, Leap | Trail) for s in steps):
                inner, given = optionals.pop(0)
                rows = [found for r in rows for found in self.extended(r, inner, given)]
                bound |= set(given)
                continue
            if step is None:
                # A hop without bound ends: bind its left end to every node of its type first.
                walked = next(s for s in steps if isinstance(s, Leap | Trail))
                left = walked.left if isinstance(walked, Leap) else walked.names[0]
                rows = list(self.scan(rows, left, block))
                bound.add(left)
                continue
            steps.remove(step)
            if isinstance(step, ast.FilterClause):
                rows = [r for r in rows if self.holds(step.expr, r)]
            elif isinstance(step, ast.BindingClause):
                if step.var.text not in bound:
                    rows = list(self.scan(rows, step.var.text, block))
                rows = [r for r in rows if self.fits(step, r)]
                bound.add(step.var.text)
            elif isinstance(step, ast.StepClause):
                rows = [found for r in rows for found in steps_of(step, r)]
                bound |= {step.left.text, step.right.text}
            elif isinstance(step, Trail):
                rows = [found for r in rows for found in self.paths.rows(step, r)]
                bound |= {step.clause.var.text, *step.names}
            else:
                rows = list(self.leap(step, rows, block))
                bound |= {step.left, step.right, *([step.edge] if step.edge else [])}
        return [
            r for r in rows if not any(self.match(negation, self.kept(r, negation)) for negation in block.negations)
        ]

    def extended(self, row: Row, block: Block, given: list[str]) -> list[Row]:
        """The row extended by every match of an optional block, or by nulls if there is none."""
        found = [{**row, **{name: way[name] for name in given}} for way in self.match(block, self.kept(row, block))]
        self.missing |= {
            name: Entity(block.types[name][0], min(block.types[name][1], default=""), "") for name in given
        }
        return found or [{**row, **dict.fromkeys(given)}]

    def kept(self, row: Row, block: Block) -> Row:
        return {name: entity for name, entity in row.items() if name in block.outer}

    def ready(self, step: Step, bound: set[str], block: Block) -> bool:
        if isinstance(step, ast.BindingClause):
            return step.var.text in bound
        if isinstance(step, Leap):
            return step.left in bound or step.right in bound
        if isinstance(step, Trail):
            return not bound.isdisjoint(step.names)
        if isinstance(step, ast.StepClause):
            return step.path.text in bound
        return {name for name in variables_of(step.expr, self.params) if name in block.types} <= bound

    def scan(self, rows: list[Row], name: str, block: Block) -> Iterator[Row]:
        for row in rows:
            for type_ in block.types[name][1]:
                for id in self.world.nodes[type_]:
                    yield {**row, name: Entity("node", type_, id)}

    def fits(self, binding: ast.BindingClause, row: Row) -> bool:
        if row[binding.var.text] is None:
            return False
        for match in binding.matches:
            of = ast.PropertyExpr(binding.var, match.property)
            prop = self.catalog.nodes[row[binding.var.text].type].properties[match.property.text]
            if not self.holds(ast.CompareExpr("contains" if prop.type.is_list else "=", of, match.value), row):
                return False
        return True

    def leap(self, leap: Leap, rows: list[Row], block: Block) -> Iterator[Row]:
        """Each row extended by every consistent traversal of the hop."""
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

    def ways(self, leap: Leap) -> Iterator[tuple[Key, Key, str]]:
        """(left, right, edge) of every traversal of a hop; the edge is empty if no variable binds it."""
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

    def relation(self, leap: Leap) -> Pairs:
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
            for node, distance in distances(source, pairs).items():
                if (node != source and bounds.min <= distance <= bounds.max) or (
                    (node, node) in pairs and bounds.min <= distance + 1 <= bounds.max
                ):
                    found.add((source, node))
        if not leap.forward:
            found = {(target, source) for source, target in found}
        self.world.relations[key] = found
        return found


def steps_of(step: ast.StepClause, row: Row) -> Iterator[Row]:
    """The row extended by each edge of its path; an absent path has none."""
    route = row[step.path.text]
    pairs = list(pairwise(route.nodes if route is not None else ()))
    for before, after in pairs + [pair[::-1] for pair in pairs if step.undirected]:
        way = {step.left.text: before, step.right.text: after}
        if all(row.get(name, node) == node for name, node in way.items()):
            yield {**row, **way}
