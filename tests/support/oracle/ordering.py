"""Order, ranks and presented values."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from omnigraph.query.syntax import ast
from support.oracle.expressions import is_rank, ranked_variable
from support.oracle.groups import (
    sort_key,
)
from support.oracle.matching import Matching
from support.oracle.model import Entity, Row, node_key
from support.oracle.paths import Route
from support.oracle.unions import (
    Key,
    shown_fields,
)


def reason(arm: ast.CallExpr, score: float | None, place: int | None, share: float | None) -> dict[str, Any]:
    """The explanation of a candidate for one ranking; scores are negated for sorting."""
    of = arm.arguments[0]
    assert isinstance(of, ast.PropertyExpr)
    value = -score if arm.function == "bm25" and score is not None else score
    return {"by": f"{arm.function}({of.property.text})", "rank": place, "score": value, "share": share}


class Ordering(Matching):
    """Order of rows and ranks."""

    def presented(self, expr: ast.Expr, value: Any) -> Any:
        """The presented form of a value: nodes and paths as objects, also inside objects and lists."""
        match expr:
            case _ if value is None:
                return None
            case ast.ObjectExpr(fields=named):
                return {part.name.text: self.presented(part.value, value[part.name.text]) for part in named}
            case ast.ListExpr(items=items):
                return [self.presented(item, part) for item, part in zip(items, value, strict=True)]
            case ast.CallExpr(function="collect", arguments=(inner,)):
                return [self.presented(inner, part) for part in value]
        if isinstance(value, Route):
            return self.paths.shown(value)
        if not isinstance(value, Entity):
            return value
        assert isinstance(expr, ast.VarExpr)
        types = self.block.types[expr.name][1]
        return shown_fields(self.catalog, types, value.type, value.id, self.world.props(value))

    def sort(self, rows: list[Row], read: ast.Read, limit: int | None) -> list[Row]:
        """The rows in the total order of §11, or of §8.3 with a rank, without the rows that a rank drops."""
        keys = [(self.meant(item.expr), item.direction == "desc") for item in read.order]
        if not keys:
            return rows
        first = keys[0][0]
        values = [name for name, (kind, _) in self.block.types.items() if kind == "value"]
        names = sorted(name for name in self.block.types if not name.startswith("_ ") and name not in values)
        names.sort(key=lambda name: self.block.types[name][0] == "path")
        ranked: str | None = None
        place: dict[Key, Any] = {}
        if is_rank(first):
            assert isinstance(first, ast.CallExpr)
            place, self.fused = self.rank(first, rows, limit)
            ranked = self.ranked = ranked_variable(first)
            rows = [row for row in rows if node_key(row[ranked]) in place]
            edges = [name for name in names if self.block.types[name][0] == "edge"]
            names = [ranked, *edges, *(name for name in names if name not in edges)]
            names.sort(key=lambda name: self.block.types[name][0] == "path")
            keys = keys[1:]
        rows.sort(key=lambda row: [sort_key(row[name].value) for name in values])
        rows.sort(key=lambda row: [sort_key(row[name]) for name in names])
        for expr, descending in reversed(keys):
            rows.sort(key=lambda row: sort_key(self.value(expr, row)), reverse=descending)
        if ranked:
            rows.sort(key=lambda row: place[node_key(row[ranked])])
        return rows

    def rank(self, call: ast.CallExpr, rows: list[Row], limit: int | None) -> tuple[dict[Key, Any], dict[Key, float]]:
        """Candidate → sort position and fused score; other rows are dropped."""
        if call.function != "rrf":
            scores = self.arm(call, rows)
            best = sorted(scores, key=lambda id: (scores[id], id))
            self.reasons = {id: [reason(call, scores[id], at, None)] for at, id in enumerate(best, 1)}
            return scores, {}
        positions = []
        weights = []
        arguments = list(call.arguments)
        last = arguments[-1]
        k = 60 if isinstance(last, ast.ArithmeticExpr) or is_rank(last) else self.value(arguments.pop(), {})
        arms: list[tuple[ast.CallExpr, dict[Key, float]]] = []
        for arm in arguments:
            weights.append(Fraction(self.value(arm.right, {})) if isinstance(arm, ast.ArithmeticExpr) else Fraction(1))
            arm = arm.left if isinstance(arm, ast.ArithmeticExpr) else arm
            assert isinstance(arm, ast.CallExpr)
            scores = self.arm(arm, rows)
            arms.append((arm, scores))
            best = sorted(scores, key=lambda id: (scores[id], id))
            positions.append({id: at for at, id in enumerate(best[:limit] if arm.function == "nearest" else best, 1)})
        every = {id for arm in positions for id in arm}
        both = list(zip(positions, weights, strict=True))
        fused = {id: sum((weight / (k + arm[id]) for arm, weight in both if id in arm), Fraction()) for id in every}
        self.reasons = {
            id: [
                reason(arm, scores[id], places[id], float(weight / (k + places[id])))
                if id in places
                else reason(arm, None, None, None)
                for (arm, scores), places, weight in zip(arms, positions, weights, strict=True)
            ]
            for id in every
        }
        place = {id: (-score, *(arm.get(id, math.inf) for arm in positions)) for id, score in fused.items()}
        return place, {id: float(score) for id, score in fused.items()}

    def arm(self, call: ast.CallExpr, rows: list[Row]) -> dict[Key, float]:
        """Candidate → distance or negated score; null vectors and scores of 0 are not candidates."""
        one_of = {node_key(row[ranked_variable(call)]): row for row in rows}
        scores = {id: self.function(call, row) for id, row in one_of.items()}
        if call.function == "nearest":
            return {id: score for id, score in scores.items() if score is not None}
        return {id: -score for id, score in scores.items() if score > 0}
