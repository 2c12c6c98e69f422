"""Random reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from support.random_reads.stages import SHARE, Stages
from support.random_reads.terms import Scope


@dataclass
class RandomRead:
    """A read and its parameters."""

    text: str
    params: dict[str, Any]


class ReadGenerator(Stages):
    """Writes one random read over a catalog; most of them compile."""

    def query(self) -> RandomRead:
        random = self.random
        scope: Scope = {}
        clauses = self.block(scope, random.choice((0, 1, 1, 2, 2, 3, 4)), depth=0)
        stages = ""
        while scope and random.random() < SHARE and stages.count(" with ") < 3:
            stages += f"{_match(clauses)}\n  {self.stage(scope)}\n  "
            matches = not scope or random.random() < 0.8
            clauses = self.block(scope, random.choice((0, 1, 1, 2)), depth=0) if matches else []
            clauses += self.conditions_on_values(scope)
        match random.random():
            case chance if chance < 0.25:
                result = self.grouped(scope)
            case chance if chance < 0.5:
                result = self.ranked(scope) or self.listed(scope)
            case chance if chance < 0.6:
                result = self.distinct(scope)
            case _:
                result = self.listed(scope)
        declared = ", ".join(f"${name}: {type_}" for name, type_ in self.declared.items())
        return RandomRead(f"query q({declared}) {{\n  {stages}{_match(clauses)}\n  {result}\n}}", self.params)


def _match(clauses: list[str]) -> str:
    """A match block; none if a part has no clauses."""
    inner = "\n    ".join(clauses)
    return f"match {{\n    {inner}\n  }}" if clauses else ""
