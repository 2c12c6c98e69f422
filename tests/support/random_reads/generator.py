"""Random reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from omnigraph.schema.catalog import Catalog, NodeType
from support.random_reads import paths
from support.random_reads.stages import SHARE, Stages
from support.random_reads.terms import Scope
from support.random_reads.values import Values


@dataclass
class RandomRead:
    """A read and its parameters."""

    text: str
    params: dict[str, Any]


class ReadGenerator(Stages):
    """Writes one random read over a catalog; most of them compile."""

    stage_share = SHARE

    def query(self) -> RandomRead:
        random = self.random
        scope: Scope = {}
        clauses = self.first_block(scope)
        stages = ""
        while scope and random.random() < self.stage_share and stages.count(" with ") < 3:
            stages += f"{_match(clauses)}\n  {self.stage(scope)}\n  "
            matches = not scope or random.random() < 0.8
            clauses = self.block(scope, random.choice((0, 1, 1, 2)), depth=0) if matches else []
            clauses += self.conditions_on_values(scope)
        result = self.result(scope)
        declared = ", ".join(f"${name}: {type_}" for name, type_ in self.declared.items())
        return RandomRead(f"query q({declared}) {{\n  {stages}{_match(clauses)}\n  {result}\n}}", self.params)

    def first_block(self, scope: Scope) -> list[str]:
        """The clauses of the first match block."""
        return self.block(scope, self.random.choice((0, 1, 1, 2, 2, 3, 4)), depth=0)

    def result(self, scope: Scope) -> str:
        """The return clause with its order and limit."""
        match self.random.random():
            case chance if chance < 0.25:
                return self.grouped(scope)
            case chance if chance < 0.5:
                return self.ranked(scope) or self.listed(scope)
            case chance if chance < 0.6:
                return self.distinct(scope)
            case _:
                return self.listed(scope)


class DirectedGenerator(ReadGenerator):
    """Writes reads that have fewer conditions, so that more of them return rows, and often a wanted construct.

    The construct is the beginning of a call that ranks rows (`nearest`, `bm25`, `rrf`), `path` for any path, `by` for a
    path by weight, or `stage`.
    """

    def __init__(self, random: Random, catalog: Catalog, values: Values, construct: str | None = None) -> None:
        super().__init__(random, catalog, values)
        self.construct = construct
        if construct == "stage":
            self.stage_share = 0.8

    def keyed(self, scope: Scope) -> str:
        return super().keyed(scope) if self.random.random() < 0.3 else self.binding(scope)

    def pattern(self, type_: NodeType) -> str:
        return super().pattern(type_) if self.random.random() < 0.3 else ""

    def condition(self, scope: Scope, names: Sequence[str], depth: int = 0) -> str:
        return "" if depth == 0 and self.random.random() < 0.5 else super().condition(scope, names, depth)

    def first_block(self, scope: Scope) -> list[str]:
        if self.construct not in ("path", "by"):
            return super().first_block(scope)
        found = self.block(scope, self.random.choice((0, 0, 1)), depth=0)
        for _ in range(20):
            reached = dict(scope)
            clause = paths.path(self, reached)
            if clause and (self.construct == "path" or "} by " in clause):
                scope |= reached
                return [*found, clause]
        return found

    def result(self, scope: Scope) -> str:
        if self.construct in ("nearest", "bm25", "rrf"):
            return self.ranked(scope) or super().result(scope)
        return super().result(scope)

    def ranks(self, scope: Scope, name: str) -> list[str]:
        found = super().ranks(scope, name)
        ranked = self.construct in ("nearest", "bm25", "rrf")
        return [rank for rank in found if rank.startswith(self.construct)] if ranked else found


def _match(clauses: list[str]) -> str:
    """A match block; none if a part has no clauses."""
    inner = "\n    ".join(clauses)
    return f"match {{\n    {inner}\n  }}" if clauses else ""
