"""Registry of all functions of the language: usage, number of arguments, and family."""

from __future__ import annotations

from typing import Literal

from omnigraph.fast_dataclass import dataclass
from omnigraph.query.aggregates import AGGREGATES
from omnigraph.query.scalars import SCALARS

Family = Literal["clock", "text", "rank", "why", "aggregate", "value", "entity", "path"]


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """The name, family, number of arguments and usage of a function."""

    name: str
    family: Family
    least: int
    most: int
    usage: str

    @property
    def wanted(self) -> str:
        """The number of arguments, for messages."""
        if self.least == self.most:
            return str(self.least)
        return f"{self.least} or {self.most}" if self.most == self.least + 1 else f"{self.least} to {self.most}"


FUNCTIONS: dict[str, FunctionSpec] = {
    function.name: function
    for function in (
        FunctionSpec("now", "clock", 0, 0, "now()"),
        FunctionSpec("search", "text", 2, 3, "search($x.text, query) or search($x.text, query, all)"),
        FunctionSpec("match_text", "text", 2, 3, "match_text($x.text, query) or match_text($x.text, query, all)"),
        FunctionSpec("fuzzy", "text", 2, 3, "fuzzy($x.text, query) or fuzzy($x.text, query, max_edits)"),
        FunctionSpec("nearest", "rank", 2, 3, "nearest($x.vector, query) or nearest($x.vector, query, approx)"),
        FunctionSpec("bm25", "rank", 2, 2, "bm25($x.text, query)"),
        FunctionSpec("rrf", "rank", 2, 9, "rrf(nearest(…), bm25(…)) or rrf(nearest(…), bm25(…) * weight, …, k)"),
        FunctionSpec("why", "why", 0, 0, "why()"),
        *(FunctionSpec(each.name, "aggregate", 1, 1, each.usage) for each in AGGREGATES.values()),
        *(FunctionSpec(each.name, "value", each.fewest, each.most, each.usage) for each in SCALARS.values()),
        FunctionSpec("id", "entity", 1, 1, "id($x)"),
        FunctionSpec("type", "entity", 1, 1, "type($x)"),
        FunctionSpec("nodes", "path", 1, 2, "nodes($path) or nodes($path, property)"),
        FunctionSpec("edges", "path", 1, 2, "edges($path) or edges($path, property)"),
        FunctionSpec("weight", "path", 1, 1, "weight($path)"),
    )
}


def names_of(family: Family) -> frozenset[str]:
    """Return the names of the functions of one family."""
    return frozenset(function.name for function in FUNCTIONS.values() if function.family == family)


TEXT = names_of("text")
RANK = names_of("rank")
AGGREGATE = names_of("aggregate")
VALUE = names_of("value")
ENTITY = names_of("entity")
PATH = names_of("path")
