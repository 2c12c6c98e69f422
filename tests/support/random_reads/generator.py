"""Random reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from support.random_reads.results import Results
from support.random_reads.terms import Scope


@dataclass
class RandomRead:
    """A read and its parameters."""

    text: str
    params: dict[str, Any]


class ReadGenerator(Results):
    """Writes one random read over a catalog; most of them compile."""

    def query(self) -> RandomRead:
        random = self.random
        scope: Scope = {}
        clauses = self.block(scope, random.choice((0, 1, 1, 2, 2, 3, 4)), depth=0)
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
        match = "\n    ".join(clauses)
        return RandomRead(f"query q({declared}) {{\n  match {{\n    {match}\n  }}\n  {result}\n}}", self.params)
